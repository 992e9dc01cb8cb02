"""The panes of the screen of questions: guidance with what became of it, and questions in both directions."""

from __future__ import annotations

from typing import Final

from trainflow_tui.collaboration.guidance import GuidanceItem
from trainflow_tui.collaboration.questions import Question
from trainflow_tui.language import N_
from trainflow_tui.screens.freshness import Freshness, from_collector, from_ledger
from trainflow_tui.screens.pane_view import Cell, PaneView, row
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.columns import cached, moment, muted, words
from trainflow_tui.screens.widgets.patched_table import MAX_ROWS, Column, Row
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, joined, line, mark, say

GUIDANCE_MARKS: Final = {
    "collected": ("◐", WARN),
    "seen": ("◉", ACCENT),
    "applied": ("✓", OK),
    "declined": ("✗", BAD),
    "deferred": ("…", WARN),
    "accepted": ("★", OK),
}
STATES: Final = {
    "collected": N_("collected"),
    "seen": N_("seen"),
    "applied": N_("applied"),
    "declined": N_("declined"),
    "deferred": N_("deferred"),
    "accepted": N_("accepted"),
    "open": N_("open"),
    "answered": N_("answered"),
    "withdrawn": N_("withdrawn"),
}


def _state(state: str) -> str:
    return _(STATES.get(state, state))


def guidance(snapshot: Snapshot, freshness: Freshness) -> PaneView:
    """Guidance items of all tasks with what became of each."""
    columns = (
        Column("", 1),
        Column(_("Item"), 9, "item"),
        Column(_("State"), 9, "state"),
        Column(_("Task"), 10, "task"),
        Column(_("Guidance"), None, "text"),
        Column(_("At"), 8, "at"),
    )
    open_items = sum(1 for i in snapshot.guidance if i.state in ("collected", "seen") and i.removed_at is None)
    empty = say(_("No guidance yet.  n  or  trainflow guidance add TASK --text …"))
    note = say(_("{n} not handled"), n=open_items)
    rows = tuple(_guidance_row(item) for item in snapshot.guidance[:MAX_ROWS])
    return PaneView(
        say(_("Guidance")), columns, rows, empty, note, from_collector(snapshot, freshness), len(snapshot.guidance)
    )


def _guidance_row(item: GuidanceItem) -> Row:
    state = _("removed") if item.removed_at else _state(item.state)
    badge = mark("✎", WARN) if item.provisional else mark("", MUTED)
    last = item.receipts[-1] if item.receipts else None
    note = line(f"— {last.note}", MUTED) if last and last.note else mark("", MUTED)
    return row(
        f"{item.task}/{item.id}",
        mark(*GUIDANCE_MARKS.get(item.state, ("?", MUTED))) if not item.removed_at else mark("–", MUTED),
        words(item.id),
        words(f"{state} v{item.version}" if item.version > 1 else state, MUTED, item.state),
        muted(item.task),
        Cell(joined(badge, line(item.heading or item.text), note), item.text),
        moment(last.at if last else item.collected_at),
    )


def agent_questions(snapshot: Snapshot) -> PaneView:
    """What agents asked of the human: open and blocking first."""
    found = [q for q in snapshot.questions if q.direction == "to-human" and q.state != "withdrawn"]
    note = say(_("{n} open"), n=len(snapshot.asked))
    rows = tuple(_question_row(f"{q.task}/{q.id}", q) for q in found[:MAX_ROWS])
    empty = say(_("No agent asks anything."))
    return PaneView(say(_("Agents ask")), _columns(), rows, empty, note, from_ledger(), len(found))


def human_questions(snapshot: Snapshot, freshness: Freshness) -> PaneView:
    """What the human asked of the agents, with the answers."""
    found = [q for q in snapshot.questions if q.direction == "to-agent"]
    note = say(_("{n} open"), n=sum(1 for q in found if q.state == "open"))
    empty = say(_("No question of yours.  E  edits QUESTIONS.md of the task."))
    rows = tuple(_question_row(f"{q.task}/{q.id}", q) for q in found[:MAX_ROWS])
    return PaneView(say(_("You asked")), _columns(), rows, empty, note, from_collector(snapshot, freshness), len(found))


def _columns() -> tuple[Column, ...]:
    return (
        Column("", 1),
        Column(_("Id"), 9, "question"),
        Column(_("State"), 9, "state"),
        Column(_("Task"), 10, "task"),
        Column(_("Question"), None, "title"),
        Column(_("At"), 8, "at"),
    )


@cached
def _question_row(key: str, question: Question) -> Row:
    style = {"open": WARN, "answered": OK}.get(question.state, MUTED)
    glyph = "?" if question.state == "open" else "✓" if question.state == "answered" else "–"
    blocking = question.blocking and question.state == "open"
    answer = line(f"→ {question.answer}", MUTED) if question.answer else mark("", MUTED)
    return row(
        key,
        mark("!" if blocking else glyph, BAD if blocking else style),
        words(question.id),
        words(_state(question.state), style, question.state),
        muted(question.task),
        Cell(joined(line(question.title), answer), question.title),
        moment(question.answered_at or question.asked_at),
    )
