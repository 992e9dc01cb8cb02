"""Where one attempt of a run ends and the next begins: at a loaded checkpoint, or where the step goes back."""

from __future__ import annotations

from collections import deque

import msgspec

from trainflow_tui.monitoring.logs.records import LogEvent

REMEMBERED_LINES = 64
"""Recent metric lines kept to tell a second rank's copy of a line from a step that is done again."""


class AttemptState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where the count stands; the caller stores it beside the read position, so that a restart goes on from here."""

    attempt: int = 1
    last_step: int | None = None
    """The last step seen in this attempt. None: no record yet."""
    total_steps: int | None = None
    """The length of the run as its last record states it."""


class Attempts:
    """Counts the attempts in one log."""

    def __init__(self, state: AttemptState | None = None) -> None:
        start = state or AttemptState()
        self.number = start.attempt
        self._last_step = start.last_step
        self._total_steps = start.total_steps
        self._recent: deque[str] = deque(maxlen=REMEMBERED_LINES)

    @property
    def state(self) -> AttemptState:
        """What `Attempts(state)` needs to go on counting."""
        return AttemptState(attempt=self.number, last_step=self._last_step, total_steps=self._total_steps)

    def resumed(self, line: int, step: int) -> LogEvent:
        """A checkpoint of `step` was loaded. The first load of a log belongs to the attempt that it starts."""
        if self._last_step is not None:
            self._begin_next()
        return LogEvent(type="resume", line=line, fields={"step": step, "attempt": self.number})

    def restarted(self) -> None:
        """The log says that a new job begins."""
        if self._last_step is not None:
            self._begin_next()

    def stepped(self, line: int, step: int, text: str, *, total_steps: object = None) -> LogEvent | None:
        """A record of `step` was read from `text`. A lower step begins an attempt, unless it repeats a recent line.

        With another total it is another run written to the same file: counted apart, and nothing was lost.
        """
        event = None
        last, same_run = self._last_step, total_steps == self._total_steps
        if last is not None and step < last:
            if text in self._recent:
                return None
            self._begin_next()
            if same_run:
                fields: dict[str, object] = {"reason": f"step {last} -> {step}", "attempt": self.number}
                event = LogEvent(type="new_attempt", line=line, fields=fields)
        self._last_step = step
        self._total_steps = total_steps if isinstance(total_steps, int) else None
        self._recent.append(text)
        return event

    def _begin_next(self) -> None:
        self.number += 1
        self._last_step = None
        self._recent.clear()
