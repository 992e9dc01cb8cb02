"""The board's panes: tasks, approvals, and on the overview everything that waits for a person."""

from __future__ import annotations

from typing import Final

from trainflow_tui.collaboration.tasks import STOPPED, Task
from trainflow_tui.language import N_
from trainflow_tui.screens.freshness import from_ledger
from trainflow_tui.screens.pane_view import Cell, PaneView, row
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.columns import cached, moment, muted, words
from trainflow_tui.screens.widgets.patched_table import MAX_ROWS, Column, Row
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, joined, line, mark, say

TASK_MARKS: Final = {
    "failed": ("✗", BAD),
    "blocked": ("■", BAD),
    "paused": ("‖", WARN),
    "training": ("●", OK),
    "completed": ("✓", OK),
    "cancelled": ("–", MUTED),
}
APPROVAL_MARKS: Final = {
    "pending": ("!", BAD),
    "approved": ("✓", OK),
    "denied": ("✗", BAD),
    "changes_requested": ("↺", WARN),
    "expired": ("◷", MUTED),
    "lapsed": ("◷", MUTED),
    "consumed": ("●", OK),
}
STATES: Final = {
    "draft": N_("draft"),
    "prepared": N_("prepared"),
    "environment_checked": N_("environment_checked"),
    "baseline_validated": N_("baseline_validated"),
    "profiling": N_("profiling"),
    "optimizing": N_("optimizing"),
    "scale_ready": N_("scale_ready"),
    "training": N_("training"),
    "completed": N_("completed"),
    "paused": N_("paused"),
    "blocked": N_("blocked"),
    "failed": N_("failed"),
    "cancelled": N_("cancelled"),
    "pending": N_("pending"),
    "approved": N_("approved"),
    "denied": N_("denied"),
    "changes_requested": N_("changes requested"),
    "expired": N_("expired"),
    "lapsed": N_("lapsed"),
    "consumed": N_("consumed"),
}
"""Our words for states, for the catalogue; a state of a later version shows as it is stored."""


def state_words(state: str) -> str:
    """A state in the reader's language."""
    return _(STATES.get(state, state.replace("_", " ")))


def _task_rank(snapshot: Snapshot, task: Task) -> tuple[int, str]:
    order = {"failed": 0, "blocked": 1, "paused": 3, "completed": 6, "cancelled": 7}
    rank = order.get(task.state, 4)
    return (2 if snapshot.waiting(task.id) and rank > 2 else rank, task.created_at)


def tasks(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Tasks, worst first: failed, blocked, waiting for a person, paused, at work, done. Compact leaves the time out."""
    found = sorted(snapshot.tasks, key=lambda t: _task_rank(snapshot, t))
    columns = (
        Column("", 1),
        Column(_("Task"), 14, "task"),
        Column(_("Stage"), 19, "stage"),
        Column("!", 3, "waiting"),
        Column(_("Latest word"), None, "latest_word"),
        Column(_("At"), 8, "latest_at"),
    )
    empty = say(_("No task yet.  n  or  trainflow task create TITLE"))
    rows = tuple(_task_row(task, snapshot.waiting(task.id)) for task in found)
    view = PaneView(say(_("Tasks")), columns, rows, empty, as_of=from_ledger())
    return view.only(0, 1, 2, 3, 4) if compact else view


def _task_row(task: Task, waits: int) -> Row:
    state = state_words(task.state)
    if task.state in STOPPED and task.resume_state:
        state += f" ({state_words(task.resume_state)})"
    return row(
        task.id,
        mark(*TASK_MARKS.get(task.state, ("●", ACCENT))),
        words(task.id),
        words(state, MUTED, task.state),
        Cell(mark(f"!{waits}", BAD) if waits else mark("", MUTED), waits),
        words(task.latest_word or task.title),
        moment(task.latest_at),
    )


def approvals(snapshot: Snapshot) -> PaneView:
    """The queue of requests, and below it what was decided."""
    columns = (
        Column("", 1),
        Column(_("Id"), 9, "approval"),
        Column(_("State"), 12, "state"),
        Column(_("Task"), 10, "task"),
        Column(_("Request"), None, "title"),
        Column(_("At"), 8, "requested_at"),
    )
    empty = say(_("Nothing waits for a decision.  trainflow approval request TASK …"))
    note = say(_("{n} waiting"), n=len(snapshot.pending))
    rows = tuple(
        _approval_row(
            a.id,
            a.state,
            a.request.task,
            a.request.title,
            a.requested_at,
            high=a.high_impact and a.state == "pending",
            without_terminal=a.decision is not None and a.decision.without_terminal,
        )
        for a in snapshot.approvals[:MAX_ROWS]
    )
    return PaneView(say(_("Approvals")), columns, rows, empty, note, from_ledger(), len(snapshot.approvals))


@cached
def _approval_row(
    id: str, state: str, task: str, title: str, requested_at: str, *, high: bool, without_terminal: bool
) -> Row:
    name = f"⌁ {state_words(state)}" if without_terminal else state_words(state)
    return row(
        id,
        mark(*APPROVAL_MARKS.get(state, ("?", MUTED))),
        words(id),
        words(name, APPROVAL_MARKS.get(state, ("?", MUTED))[1], state),
        muted(task),
        Cell(joined(mark(_("HIGH"), BAD) if high else mark("", MUTED), line(title)), title),
        moment(requested_at),
    )


def waiting(snapshot: Snapshot) -> PaneView:
    """All that waits for a person: approvals by impact, then questions, the blocking ones first."""
    rows = [
        _waiting_row(
            a.id, "!", BAD, _("HIGH") if a.high_impact else "", a.request.title, a.request.task, a.requested_at
        )
        for a in snapshot.pending[:MAX_ROWS]
    ]
    rows += [
        _waiting_row(
            f"{q.task}/{q.id}",
            "?",
            BAD if q.blocking else WARN,
            _("BLOCKS") if q.blocking else "",
            q.title,
            q.task,
            q.asked_at,
        )
        for q in snapshot.asked[: MAX_ROWS - len(rows)]
    ]
    columns = (
        Column("", 1),
        Column(_("What waits"), None, "title"),
        Column(_("Task"), 10, "task"),
        Column(_("At"), 8, "asked_at"),
    )
    return PaneView(say(_("Needs you")), columns, tuple(rows), say(_("Nothing waits for you.")), as_of=from_ledger())


@cached
def _waiting_row(key: str, sign: str, style: str, risk: str, title: str, task: str, asked_at: str) -> Row:
    return row(key, mark(sign, style), Cell(joined(line(risk, BAD), line(title)), title), muted(task), moment(asked_at))
