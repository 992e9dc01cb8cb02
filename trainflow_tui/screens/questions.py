"""Questions: what agents ask, what you asked, and your guidance with what became of it."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import questions
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import N_


class QuestionsScreen(ModeScreen):
    """Three lists; enter shows the whole text, `a` answers."""

    mode = "questions"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("Write guidance"), "decide": N_("Answer")}

    def panes(self) -> ComposeResult:
        """Agents' questions, guidance, own questions."""
        yield ListPane(id="asked")
        yield ListPane(id="guidance")
        yield ListPane(id="own")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill the three lists."""
        fresh = self.app.freshness
        self.query_one("#asked", ListPane).show(questions.agent_questions(snapshot))
        self.query_one("#guidance", ListPane).show(questions.guidance(snapshot, fresh))
        self.query_one("#own", ListPane).show(questions.human_questions(snapshot, fresh))

    def action_new(self) -> None:
        """Write guidance for the current task."""
        self.app.ask_guidance()

    def action_decide(self) -> None:
        """Answer the question under the cursor, else the first that waits."""
        pane = self.query_one("#asked", ListPane)
        if pane.selected is not None:
            self.app.ask_answer(pane.selected)

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        if event.pane.id == "asked":
            self.app.ask_answer(event.key)
        else:
            self.app.read_detail(str(event.pane.id), event.key)
