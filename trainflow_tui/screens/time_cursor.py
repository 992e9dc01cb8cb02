"""The time cursor: every screen as it was at a moment, read-only, from the ledger and the store."""

from __future__ import annotations

from datetime import timedelta

from textual import work

from trainflow_tui.clock import from_iso, local_clock_time, to_iso
from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.freshness import Freshness
from trainflow_tui.screens.requests import Requests
from trainflow_tui.screens.words import _, say

STEP_S = 60


class TimeCursor(Requests):
    """Mix in before `Requests`: what is shown follows the cursor; what is decided never does."""

    _aim = ""
    """The moment that is being read; empty when what is shown is what was asked for."""
    _leaps = 0
    """Events that are still to be passed, forwards or back."""
    _leaping = False

    def go_to_moment(self, words: str) -> None:
        """Show the screens as they were then; `now`, or no word, returns.

        Raises:
            UsageError: the words name no moment.
        """
        if words.strip() in ("", "now"):
            self.leave_past()
            return
        from trainflow_tui.clock import moment_of

        now = self.desk.clock.now()
        moment = moment_of(words, now)
        if moment >= now:
            self.leave_past()
        else:
            self._show_past(to_iso(moment))

    def step(self, direction: int) -> None:
        """The next or previous task; in the past a minute on or back, from where quick presses before it lead."""
        if not (self._aim or self.moment):
            self.step_task(direction)
            return
        moment = from_iso(self._aim or self.moment) + timedelta(seconds=STEP_S * direction)
        if moment >= self.desk.clock.now():
            self.leave_past()
        else:
            self._show_past(to_iso(moment))

    def step_task(self, step: int) -> None:
        """The next or previous task."""
        raise NotImplementedError

    def leap(self, direction: int) -> None:
        """Go to the event before or after; from now only back. Each of several quick presses counts."""
        if self.moment or self._aim or self._leaping or direction < 0:
            self._leaps += direction
            if not self._leaping:
                self._leaping = True
                self._leap(self._aim or self.moment or to_iso(self.desk.clock.now()))

    @work(group="past", exclusive=True, exit_on_error=False)
    async def _leap(self, here: str) -> None:
        try:
            while self._leaps:
                start = here
                while self._leaps:
                    direction = 1 if self._leaps > 0 else -1
                    there = await self.desk.step(here, direction)
                    if not there:
                        self._leaps = 0
                        words = _("There is no earlier event.") if direction < 0 else _("There is no later event.")
                        self.notify(words, markup=False)
                        break
                    self._leaps, here = self._leaps - direction, there
                if here != start:
                    self._aim = here
                    await self._read_past(here)
        finally:
            self._leaping, self._leaps = False, 0

    def _show_past(self, moment: str) -> None:
        self._aim = moment
        self._load_past(moment)

    @work(group="past", exclusive=True, exit_on_error=False)
    async def _load_past(self, moment: str) -> None:
        await self._read_past(moment)

    async def _read_past(self, moment: str) -> None:
        try:
            snapshot = await self.desk.past(moment)
        except TrainflowError as problem:
            self._aim = ""
            self.tell(problem)
            return
        if self._aim == moment:
            self._aim = ""
        entered = not self.moment
        self.moment, self.snapshot, self.freshness = moment, snapshot, Freshness()
        self.forget_histories()
        if snapshot.runs:
            self.read_history([run.id for run in snapshot.runs])
        self.redraw()
        if entered:
            words = say(
                _("As it was at {at}. [ ] a minute, {{ }} an event, esc now."),
                at=local_clock_time(moment, with_date=True),
            )
            self.notify(words, timeout=5, markup=False)

    def leave_past(self) -> None:
        """Return to now, also from a moment that is still being read."""
        if self._aim or self._leaping:
            self.workers.cancel_group(self, "past")
            self._aim, self._leaps = "", 0
        if self.moment:
            self.moment, self.snapshot = "", self.latest
            self.forget_histories()
            self.judge_sources()
            if self.snapshot is not None and self.snapshot.runs:
                self.read_history([self.snapshot.runs[0].id])
            self.redraw()

    def forget_histories(self) -> None:
        """What was read of runs belongs to another time."""
        raise NotImplementedError

    def judge_sources(self) -> None:
        """Judge again what is stale."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Draw the screen that is shown from the snapshot again."""
        raise NotImplementedError
