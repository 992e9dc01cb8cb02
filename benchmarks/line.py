"""A program at the other end of a line: what it writes is kept with its moment and drawn by an emulator when it is asked about.

A line of `rate` bytes a second takes no more than that, as a slow SSH connection does.
"""

from __future__ import annotations

import os
import re
import select
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.tui import terminal
from tests.tui.terminal import Terminal

SLOW: Final = 4000
"""Bytes a second of the slowest line that the screens are made for."""
_BURST_S: Final = 0.1
_LEAST_READ: Final = 64
_LOOK_S: Final = 0.05
_LONGEST_QUESTION: Final = max(len(question) for question, _ in terminal.ANSWERS) - 1


class Line(Terminal):
    """A `Terminal` that draws late: emulating a repaint takes longer than receiving it, and would be measured with it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        config_home: Path,
        size: tuple[int, int] = (120, 40),
        rate: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.rate = rate
        self.pieces: list[tuple[float, bytes]] = []
        """What each read gave, with the moment on `clock`."""
        self._drawn = 0
        self._tail = b""
        self._tokens, self._refilled = 0.0, time.perf_counter()
        self.begun = time.perf_counter()
        super().__init__(argv, size=size, env=env, config_home=config_home)

    def _take(self, seconds: float) -> bool:
        if self._master < 0:
            return False
        room = self._room()
        if room < _LEAST_READ:
            time.sleep(min(0.005, seconds))
            return True
        ready, _, _ = select.select([self._master], [], [], min(_LOOK_S, seconds))
        if not ready:
            return True
        try:
            written = os.read(self._master, room)
        except OSError:
            return False
        self._tokens -= len(written)
        self.raw += written
        self.pieces.append((time.perf_counter(), written))
        self._answer(written)
        return bool(written)

    def _answer(self, written: bytes) -> None:
        """Answer each question once, in order, also one that the end of a read has cut."""
        known, whole = len(self._tail), self._tail + written
        found = [
            (at.start(), answer)
            for question, answer in terminal.ANSWERS
            for at in re.finditer(re.escape(question), whole)
            if at.end() > known
        ]
        for _, answer in sorted(found):
            self.send(answer)
        self._tail = whole[-_LONGEST_QUESTION:]

    def _room(self) -> int:
        """How much may be read now."""
        if self.rate is None:
            return 65536
        now = time.perf_counter()
        self._tokens = min(self.rate * _BURST_S, self._tokens + (now - self._refilled) * self.rate)
        self._refilled = now
        return int(self._tokens)

    @property
    def alive(self) -> bool:
        """Whether the program runs."""
        return self._process.poll() is None

    # What it shows

    def draw(self, until: int | None = None) -> None:
        """Draw what was received, up to a piece."""
        for _, written in self.pieces[self._drawn : until]:
            whole = self._rest + written
            cut = terminal._CUT_SEQUENCE.search(whole)
            end = cut.start() if cut else len(whole)
            self._rest = whole[end:]
            self._stream.feed(terminal._UNKNOWN_TO_PYTE.sub(b"", whole[:end]))
        self._drawn = len(self.pieces) if until is None else max(self._drawn, until)

    @property
    def rows(self) -> list[str]:
        """The picture, a string a line."""
        self.draw()
        return super().rows

    @property
    def text(self) -> str:
        """The picture as one string."""
        self.draw()
        return super().text

    def look(self) -> str:
        """The picture as far as it is drawn."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def stripe(self, row: int) -> tuple[tuple[str, bool], ...]:
        """Background and reverse of every cell of a row, as far as it is drawn."""
        cells = self._screen.buffer[row]
        return tuple((cells[x].bg, cells[x].reverse) for x in range(self._screen.columns))

    @property
    def height(self) -> int:
        """Rows of the terminal."""
        return int(self._screen.lines)

    # When it showed it

    @property
    def here(self) -> int:
        """The place in what was received that `since` takes."""
        return len(self.pieces)

    def bytes_between(self, since: int, until: int | None = None) -> int:
        """What was written from one place to another."""
        return sum(len(written) for _, written in self.pieces[since:until])

    def rest(self, quiet_s: float, limit_s: float = 20.0) -> None:
        """Receive until nothing has come for a while; what never rests is left after the limit."""
        end = time.perf_counter() + limit_s
        while time.perf_counter() < end:
            if self.pump(quiet_s) == 0:
                return

    def catch_up(self, settle_s: float, limit_s: float = 90.0) -> None:
        """Receive for a while, and on until the line has not been full for three seconds."""
        self.pump(settle_s)
        end, calm = self.clock() + limit_s, 0
        while calm < 3 and self.clock() < end:
            calm = calm + 1 if self.pump(1.0) < (self.rate or SLOW) / 2 else 0

    def first(self, condition: Callable[[], object], since: int) -> int | None:
        """The piece after which a condition on the picture held; draws what was received piece by piece."""
        self.draw(since)
        for number in range(max(since, self._drawn), len(self.pieces)):
            self.draw(number + 1)
            if condition():
                return number
        return None

    def await_first(self, condition: Callable[[], object], since: int, limit_s: float) -> int | None:
        """The same, receiving until then. What comes while it is drawn waits in the terminal, at most 50 ms."""
        end = time.perf_counter() + limit_s
        while time.perf_counter() < end:
            self.pump(_LOOK_S)
            found = self.first(condition, since)
            if found is not None:
                return found
            since = len(self.pieces)
        return None

    def moment(self, piece: int) -> float:
        """When a piece came, on `clock`."""
        return self.pieces[piece][0]

    clock = staticmethod(time.perf_counter)
    """The seconds of every moment here."""


@contextmanager
def opened(argv: Sequence[str], *, size: tuple[int, int] = (120, 40), rate: int | None = None) -> Iterator[Line]:
    """A program on a line, without the user's settings; ended as a closed terminal ends it."""
    with tempfile.TemporaryDirectory() as home, Line(argv, config_home=Path(home), size=size, rate=rate) as line:
        try:
            yield line
        finally:
            line.hang_up()
            _await_end(line)


def _await_end(line: Line) -> None:
    end = time.perf_counter() + 5
    while line.alive and time.perf_counter() < end:
        time.sleep(0.02)


def shows(line: Line, *words: str) -> Callable[[], bool]:
    """A condition: the picture holds all of these words, whatever the spaces between them."""

    def holds() -> bool:
        text = re.sub(r"\s+", " ", line.look())
        return all(word in text for word in words)

    return holds
