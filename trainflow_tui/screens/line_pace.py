"""What is known of the line to the terminal: what is under way on it, how quick it is, when data may be repainted.

Arithmetic only: no thread, no terminal, no clock of its own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

QUICK_BYTES_PER_S: Final = 64_000
"""A line that takes more than this delays nobody: a whole screen of 40 KB is there after 0.6 s."""
PORTION_S: Final = 0.1
"""On a slower line a frame goes in portions of this length, so that a key waits for no more than one of them."""
SMALLEST_PORTION: Final = 400
FIRST_PORTION: Final = 4096
"""Of the first frame, before anything is known; smaller would cost a quick line round trips."""
_MEASURABLE: Final = 200
"""Bytes from which a frame's time says something of the rate, rather than of the answer's way back."""
_OVERDUE_S: Final = 0.1
_PATIENCE_S: Final = 2.0
_LONGEST_S: Final = 60.0
_UNANSWERED: Final = 3
_REMEMBERED: Final = 32


@dataclass(frozen=True)
class _Frame:
    size: int
    sent_at: float
    measured: bool


class LinePace:
    """Frames are followed by a question that every terminal answers in order, so its answer says that they were drawn.

    Neither a writer thread nor the kernel knows as much: of a pseudo-terminal Linux always tells an empty output queue
    while it holds 16 KB, and an SSH server behind it takes a megabyte more before it lets anybody wait.
    """

    def __init__(self) -> None:
        self.answers = False
        """Whether this terminal has ever answered."""
        self.asks = True
        """False once a terminal has left the first questions unanswered."""
        self._under_way: _Frame | None = None
        self._round_trips_s: deque[float] = deque(maxlen=_REMEMBERED)
        self._s_per_byte: float | None = None
        self._lost = 0
        self._late = 0

    @property
    def bytes_per_s(self) -> float | None:
        """The measured rate; None before there is one. Above `QUICK_BYTES_PER_S` its value means nothing."""
        return 1 / self._s_per_byte if self._s_per_byte is not None else None

    @property
    def under_way(self) -> bool:
        """Whether a question is open. There is one at most: some terminals answer two that they read together once."""
        return self._under_way is not None

    def sent(self, size: int, now: float, *, measured: bool = True) -> None:
        """A frame of so many bytes, and the question behind it, went out at `now` (monotonic seconds).

        `measured` is False where some of the bytes went out before.
        """
        self._under_way = _Frame(size, now, measured)

    def answered(self, now: float) -> None:
        """The terminal answered the oldest question."""
        self.answers, self.asks, self._lost = True, True, 0
        frame, self._under_way = self._under_way, None
        if self._late:
            # The answer may be that of a question which was given up: it frees the line and measures nothing.
            self._late -= 1
        elif frame is not None and frame.measured:
            self._measure(frame.size, now - frame.sent_at)

    def _measure(self, size: int, took_s: float) -> None:
        self._round_trips_s.append(took_s)
        if size >= _MEASURABLE:
            sample = max(1e-6, took_s - self._round_trip_s) / size
            # Times are averaged, not rates: one slow frame makes a quick line slow at once.
            self._s_per_byte = sample if self._s_per_byte is None else (self._s_per_byte + sample) / 2

    @property
    def _round_trip_s(self) -> float:
        return min(self._round_trips_s, default=0.0)

    @property
    def _is_quick(self) -> bool:
        return self._s_per_byte is not None and self._s_per_byte * QUICK_BYTES_PER_S <= 1

    def holds(self, now: float) -> bool:
        """Whether the next frame would stand in line behind one that is not drawn yet.

        On a quick line frames may follow each other until an answer is overdue: waiting for each would add the way to
        the terminal and back, which on a long line is much, to every key.
        """
        self._give_up_lost(now)
        frame = self._under_way
        if frame is None or not self.answers:
            return False
        return not self._is_quick or now - frame.sent_at > self._round_trip_s + _OVERDUE_S

    def _give_up_lost(self, now: float) -> None:
        # An answer can be lost (a reset terminal, another client of a multiplexer); on a dead line each wait is longer.
        frame = self._under_way
        if frame is None:
            return
        expected_s = frame.size * (self._s_per_byte or 1e-3) * 2 + self._round_trip_s * 2
        if now - frame.sent_at > min(_LONGEST_S, (_PATIENCE_S + expected_s) * 2**self._lost):
            self._lost += 1
            self._late += 1
            self._under_way = None
            if not self.answers and self._lost >= _UNANSWERED:
                self.asks = False

    @property
    def portion_bytes(self) -> int | None:
        """How much of a frame may go at once; None is all of it."""
        if not self.answers or self._is_quick:
            return None
        if self._s_per_byte is None:
            return FIRST_PORTION
        return max(SMALLEST_PORTION, int((PORTION_S + self._round_trip_s) / self._s_per_byte))


class DataPace:
    """When what arrived by itself may be repainted: at every tick, or at most every `SELDOM_S` seconds.

    Seldom on a slow line, where three of five ticks were not drawn when the next one came, until six in a row were
    drawn in half a tick. Seldom also in a window without the focus: it may well be seen, beside another one.
    """

    SELDOM_S: Final = 5.0

    def __init__(self, tick_s: float) -> None:
        self.slow = False
        self._tick_s = tick_s
        self._late: deque[bool] = deque(maxlen=5)
        self._quick = 0
        self._began: float | None = None
        self._counted = False
        self._painted_at = float("-inf")

    def may_paint(self, now: float, *, focused: bool) -> bool:
        """Whether data may be painted at `now`."""
        if focused and not self.slow:
            return True
        return now - self._painted_at >= self.SELDOM_S - 0.1  # ticks are not exact

    def painted(self, now: float) -> None:
        """Data was given to the widgets."""
        self._painted_at = now

    def began(self, now: float) -> None:
        """The first frame with that data went to the line."""
        self._began, self._counted = now, False

    def tick(self, now: float) -> None:
        """A second passed: a frame of data that is still under way is late, and once more at each further tick."""
        if self._began is not None and now - self._began > self._tick_s:
            self._counted = True
            self._note(late=True, quick=False)

    def drawn(self, now: float) -> None:
        """The terminal has drawn everything."""
        if self._began is None:
            return
        took_s, self._began = now - self._began, None
        if not self._counted:
            self._note(late=took_s > self._tick_s, quick=took_s < self._tick_s / 2)

    def forget(self) -> None:
        """What is under way will never be known to be drawn."""
        self._began = None

    def _note(self, *, late: bool, quick: bool) -> None:
        self._late.append(late)
        self._quick = self._quick + 1 if quick else 0
        if not self.slow and sum(self._late) >= 3:
            self.slow, self._quick = True, 0
        elif self.slow and self._quick >= 6:
            self.slow = False
            self._late.clear()
