"""What a person writes and decides: the dialogs, and the rules that their answers go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from textual import work
from textual.notifications import SeverityLevel
from textual.screen import ModalScreen

from trainflow_tui.collaboration import approvals, questions, tasks
from trainflow_tui.collaboration.identity import agent_behind, current_actor
from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.desk import Desk
from trainflow_tui.screens.key_order import KeyOrder
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.detail import detail
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display, display

if TYPE_CHECKING:
    from trainflow_tui.screens.dialogs.approval import Verdict

T = TypeVar("T")


class Requests(KeyOrder):
    """Mix in before `Host`: every dialog that changes something."""

    desk: Desk
    _asking = False

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a notice, never as markup; one that stands there already is not piled up: ten refused keys would cover the screen."""
        if all((n.message, n.title) != (message, title) for n in self._notifications):
            shown = display(message, max_cells=1000)
            super().notify(shown, title=display(title), severity=severity, timeout=timeout, markup=False)

    def tell(self, problem: TrainflowError) -> None:
        """Show what went wrong, with what to do."""
        words = say("{message} {next}", message=problem.message, next=problem.next_step)
        self.notify(words, title=_("Not done"), severity="error", timeout=10, markup=False)

    def done(self, words: str) -> None:
        """Say that something was done."""
        self.notify(display(words), timeout=4, markup=False)

    def take(self, snapshot: Snapshot) -> None:
        """Show a newer reading of the workspace."""
        raise NotImplementedError

    async def answer_of(self, dialog: ModalScreen[T]) -> T | None:
        """Show a dialog and wait for its answer. None where one stands already: two quick keys open one dialog, not a pile."""
        if self._asking or not isinstance(self.screen, ModeScreen):
            self.release_keys()
            return None
        self._asking = True
        try:
            answer = self.push_screen(dialog, wait_for_dismiss=True)
            # Keys wait until it stands: before that nothing in it has the focus, and the first would be lost.
            dialog.call_after_refresh(self.call_later, self.release_keys)
            return await answer
        finally:
            self._asking = False
            self.release_keys()

    @work(group="write", exit_on_error=False)
    async def record(
        self, change: Callable[[Any], object], done: str, again: Callable[[], object] | None = None
    ) -> None:
        """Change the workspace off the loop, then show it. Where that fails, `again` gives the written words back."""
        try:
            await self.desk.run(change)
        except TrainflowError as problem:
            self.tell(problem)
            if again is not None:
                again()
            return
        fresh = await self.desk.changed_since(None)
        if fresh is not None:
            self.take(fresh)
        self.done(done)

    def make_task(self, title: str) -> None:
        """Make a task."""
        by = current_actor("tui")
        self.record(lambda w: tasks.create(w, title=title, actor=by), _("Task created"), lambda: self._new_task(title))

    def ask_new_task(self) -> None:
        """Ask for a title and make a task."""
        self.hold_keys()
        self._new_task()

    def ask_guidance(self) -> None:
        """Let guidance be written for the current task; it is collected at once."""
        self.hold_keys()
        self._write_guidance()

    def ask_answer(self, key: str) -> None:
        """Let an agent's question be answered; an answered one is shown."""
        self.hold_keys()
        self._answer_question(key)

    def ask_decision(self, id: str) -> None:
        """Open a request and record the verdict."""
        self.hold_keys()
        self._open_approval(id)

    @work(group="dialog", exit_on_error=False)
    async def _new_task(self, draft: str = "") -> None:
        from trainflow_tui.screens.dialogs.writing import LineDialog

        if self.refused():
            self.release_keys()
            return
        hint = say(_("A title; enter makes it, esc goes back"))
        title = await self.answer_of(LineDialog(say(_("New task")), hint, draft))
        if title:
            self.make_task(title)

    @work(group="dialog", exit_on_error=False)
    async def _write_guidance(self, draft: str = "") -> None:
        from trainflow_tui.screens.dialogs.writing import WritingDialog

        if self.refused():
            self.release_keys()
            return
        task = self.current_task
        if not task:
            self.release_keys()
            self.notify(_("Make a task first: n on the board."), severity="warning", markup=False)
            return
        about = say(_("The agent must answer each item. Your GUIDANCE.md stays as it is."))
        text = await self.answer_of(WritingDialog(say(_("Guidance for {task}"), task=task), about, draft))
        if text:
            done = _("Recorded and collected")
            self.record(lambda w: self.desk.guide(w, task, text), done, lambda: self._write_guidance(text))

    @work(group="dialog", exit_on_error=False)
    async def _answer_question(self, key: str, draft: str = "") -> None:
        from trainflow_tui.screens.dialogs.writing import WritingDialog

        task, _slash, id = key.partition("/")
        known = self.snapshot.questions if self.snapshot else []
        found = next((q for q in known if q.task == task and q.id == id), None)
        if found is None:
            self.release_keys()
            return
        if found.state != "open" or self.refused(quiet=True):
            self.read_detail("asked", key)
            return
        about = display(found.body, multiline=True, max_cells=2000)
        text = await self.answer_of(WritingDialog(say("? {title}", title=found.title), about, draft))
        if text:
            by, agent = current_actor("tui"), agent_behind()
            self.record(
                lambda w: questions.answer(w.ledger, id, text, actor=by, agent=agent, task=task),
                _("Answered"),
                lambda: self._answer_question(key, text),
            )

    def read_detail(self, pane: str, key: str) -> None:
        """Show the whole text of a row."""
        found = detail(self.snapshot, pane, key) if self.snapshot else None
        if found is not None:
            self.read(display(found[0]), display(found[1], multiline=True, max_cells=100_000))

    def read(self, title: Display, text: Display) -> None:
        """Show a text to read."""
        from trainflow_tui.screens.dialogs.writing import ReadingDialog

        if isinstance(self.screen, ModeScreen):
            self.push_screen(ReadingDialog(title, text))
        self.release_keys()

    @work(group="dialog", exit_on_error=False)
    async def _open_approval(self, id: str) -> None:
        from trainflow_tui.screens.dialogs.approval import ApprovalDialog

        try:
            found = await self._approval(id)
        except TrainflowError as problem:
            self.release_keys()
            self.tell(problem)
            return
        answer = await self.answer_of(ApprovalDialog(found, why_not=self.why_disabled("approval-approve")))
        if answer is not None:
            self._decide(answer)

    async def _approval(self, id: str) -> approvals.Approval:
        # As it stands in the ledger now; at the time cursor as it stood then.
        if self.moment and self.snapshot is not None:
            return next(a for a in self.snapshot.approvals if a.id == id)
        return await self.desk.run(lambda w: approvals.get(w.ledger, id))

    def _decide(self, answer: Verdict) -> None:
        by, agent = current_actor("tui"), agent_behind()
        self.record(
            lambda w: approvals.decide(
                w.ledger,
                answer.approval,
                answer.verdict,
                by=by,
                agent=agent,
                comment=answer.comment,
                shown_digest=answer.shown_digest,
                shown_for_ms=answer.shown_for_ms,
                input=answer.input,
            ),
            _("Decision recorded"),
        )
