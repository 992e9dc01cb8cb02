"""Board: tasks worst first, what they last said, and the queue of approvals."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import board
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import N_


class BoardScreen(ModeScreen):
    """Tasks above, approvals below."""

    mode = "board"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("New task"), "decide": N_("Open approval")}

    def panes(self) -> ComposeResult:
        """Two lists."""
        yield ListPane(id="tasks")
        yield ListPane(id="approvals")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill both lists."""
        pane = self.query_one("#tasks", ListPane)
        pane.show(board.tasks(snapshot))
        pane.table.move_to(self.app.current_task)
        self.query_one("#approvals", ListPane).show(board.approvals(snapshot))

    def go_to(self, task: str) -> None:
        """Put the cursor on a task."""
        self.query_one("#tasks", ListPane).go_to(task)

    def action_new(self) -> None:
        """Ask for a title and make a task."""
        self.app.ask_new_task()

    def action_decide(self) -> None:
        """Open the approval under the cursor, else the one that waits first."""
        pane = self.query_one("#approvals", ListPane)
        if pane.selected is not None and pane.table.has_focus:
            self.app.ask_decision(pane.selected)
        else:
            super().action_decide()

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        if event.pane.id == "approvals":
            self.app.ask_decision(event.key)
        else:
            self.app.choose_task(event.key)

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        # An event of before the cursor went to the current task is too late.
        if event.pane.id == "tasks" and event.key is not None and event.key == event.pane.selected:
            self.app.choose_task(event.key)
