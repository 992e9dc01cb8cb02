"""What a screen may ask of the application that shows it. The application implements it; screens import only this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import App

from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.freshness import Freshness
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.text import Display

if TYPE_CHECKING:
    from trainflow_tui.screens.commands import Command
    from trainflow_tui.screens.memory import Memory

History = tuple[tuple[float, float | None, float | None], ...]
"""Points of a whole run, oldest first: step, loss, throughput."""


class Host(App[int]):
    """The snapshot that is shown, what is chosen, and the requests that screens pass on."""

    snapshot: Snapshot | None = None
    """What is shown: the newest, or the one of the time cursor."""
    latest: Snapshot | None = None
    """The newest, also while the past is shown."""
    freshness: Freshness = Freshness()
    current_task: str = ""
    notice: str = ""
    readonly: bool = False
    moment: str = ""
    """The time cursor, UTC; empty is now."""
    armed_after: float = 0.0
    """Keys and clicks that are older than this (`time.monotonic`) are dropped: they were meant for what was before."""
    remembered: Memory
    own_keys: dict[str, str]

    def release_keys(self) -> None:
        """What keys were held for has come."""
        raise NotImplementedError

    def refused(self, *, quiet: bool = False) -> bool:
        """Whether nothing may be changed now (read-only mode, the past), saying why."""
        raise NotImplementedError

    def why_disabled(self, binding: str) -> Display | None:
        """Why a binding does nothing now, or None where it works."""
        raise NotImplementedError

    def history(self, run: RunStatus | None) -> History:
        """The run's stored points before its recent ones; empty until they were read."""
        raise NotImplementedError

    def read_history(self, runs: Sequence[str]) -> None:
        """Read the whole course of these runs in the background."""
        raise NotImplementedError

    def say_notice(self, words: str) -> None:
        """A standing word in the header; empty removes it."""
        raise NotImplementedError

    def commands(self) -> Sequence[Command]:
        """What may stand after ':'."""
        raise NotImplementedError

    def run_command(self, words: str) -> None:
        """Do what stands after ':'."""
        raise NotImplementedError

    def choose_task(self, id: str) -> None:
        """Make a task the current one."""
        raise NotImplementedError

    def step(self, direction: int) -> None:
        """The next or previous task; in the past a minute on or back."""
        raise NotImplementedError

    def leap(self, direction: int) -> None:
        """Go to the event after or before the time cursor."""
        raise NotImplementedError

    def ask_new_task(self) -> None:
        """Ask for a title and make a task."""
        raise NotImplementedError

    def ask_guidance(self) -> None:
        """Let guidance be written for the current task."""
        raise NotImplementedError

    def ask_answer(self, key: str) -> None:
        """Let an agent's question be answered; `key` is `task/id`."""
        raise NotImplementedError

    def ask_decision(self, id: str) -> None:
        """Open an approval."""
        raise NotImplementedError

    def read_detail(self, pane: str, key: str) -> None:
        """Show the whole text of a row."""
        raise NotImplementedError

    def edit_human_file(self, name: str) -> None:
        """Open GUIDANCE.md or QUESTIONS.md of the current task in the editor."""
        raise NotImplementedError

    def ask_sorting(self) -> None:
        """Let the column be chosen by which the focused pane is sorted."""
        raise NotImplementedError

    def ask_cell(self) -> None:
        """Let a cell of the row under the cursor be chosen and copy it."""
        raise NotImplementedError

    def copy_rows(self) -> None:
        """Copy the row under the cursor, or the marked ones, as Markdown."""
        raise NotImplementedError

    def page_detail(self) -> None:
        """Open the whole text of the row under the cursor in the pager."""
        raise NotImplementedError

    def ask_export(self) -> None:
        """Let a format be chosen and write the focused pane into a file."""
        raise NotImplementedError

    def remember(self) -> None:
        """Keep what the screens look like for the next time."""
        raise NotImplementedError

    def action_show_mode(self, mode: str) -> None:
        """Go to one of the six screens."""
        raise NotImplementedError
