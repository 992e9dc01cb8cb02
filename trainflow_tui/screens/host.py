"""What a screen may ask of the application that shows it. The application implements it; screens import only this."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App

from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.snapshot import Snapshot

History = tuple[tuple[float, float | None, float | None], ...]
"""Points of a whole run, oldest first: step, loss, throughput."""


class Host(App[int]):
    """The newest snapshot, what is chosen, and the requests that screens pass on."""

    snapshot: Snapshot | None = None
    current_task: str = ""
    notice: str = ""
    readonly: bool = False

    def history(self, run: RunStatus | None) -> History:
        """The run's stored points before its recent ones; empty until they were read."""
        raise NotImplementedError

    def read_history(self, runs: Sequence[str]) -> None:
        """Read the whole course of these runs in the background."""
        raise NotImplementedError

    def say_notice(self, words: str) -> None:
        """A standing word in the header; empty removes it."""
        raise NotImplementedError

    def run_command(self, words: str) -> None:
        """Do what stands after ':'."""
        raise NotImplementedError

    def choose_task(self, id: str) -> None:
        """Make a task the current one."""
        raise NotImplementedError

    def step_task(self, step: int) -> None:
        """The next or previous task."""
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

    def read_guidance(self, key: str) -> None:
        """Show a guidance item with its receipts."""
        raise NotImplementedError

    def read_question(self, key: str) -> None:
        """Show a question of one's own with its answer."""
        raise NotImplementedError

    def action_show_mode(self, mode: str) -> None:
        """Go to one of the six screens."""
        raise NotImplementedError
