"""What a new version of a human file changes: the events that bring the ledger from what it holds to what the file says."""

from __future__ import annotations

from typing import Any

import msgspec

from trainflow_tui.collaboration.guidance_file import GUIDANCE_TEMPLATE, Item, parse_guidance
from trainflow_tui.collaboration.item_matching import KnownItem, match_items, new_item_id
from trainflow_tui.collaboration.questions_file import parse_questions
from trainflow_tui.ledger.database import Transaction
from trainflow_tui.text import display


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One event to append; `counts_as` is new, revised, removed or empty."""

    kind: str
    payload: dict[str, Any]
    counts_as: str = ""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All changes in the order of the file, and what its writer should know."""

    changes: list[Change]
    hints: list[str]


def guidance_changes(transaction: Transaction, task: str, text: str, *, provisional: bool) -> Plan:
    """Compare GUIDANCE.md with the items that came from it.

    Items of commands and of the screen are not in the file and are left alone. A removed item whose text comes back is a new
    version of itself: going back is a human action too.
    """
    title = transaction.query("SELECT title FROM task WHERE id = ?", (task,))[0][0]
    parsed = parse_guidance(text, template=GUIDANCE_TEMPLATE.format(title=display(title)))
    rows = transaction.query(
        "SELECT id, anchor, heading, text, position, version, provisional, removed_at IS NOT NULL FROM guidance "
        "WHERE task = ? AND source = 'file' ORDER BY position",
        (task,),
    )
    present = [KnownItem(id=r[0], anchor=r[1], heading=r[2], text=r[3], position=r[4]) for r in rows if not r[7]]
    gone = _by_text_and_id([(r[0], r[1]) for r in rows if r[7]])
    version_of = {r[0]: r[5] for r in rows}
    was_provisional = {r[0] for r in rows if r[6]}
    taken = {str(r[0]) for r in transaction.query("SELECT id FROM guidance WHERE task = ?", (task,))}
    changes: list[Change] = []
    kept: set[str] = set()
    order = {r[0]: r[4] for r in rows}
    moved: dict[str, int] = {}
    for position, match in enumerate(match_items(present, parsed.items), 1):
        item, id = match.item, match.known_id
        if id is None:
            back = (i for i in gone.get(item.explicit_id or item.anchor, ()) if i not in kept)
            id = next(back, None) or new_item_id(task, item, taken)
        taken.add(id)
        kept.add(id)
        if match.kind != "same":
            version = version_of.get(id, 0) + 1
            payload = _guidance_payload(task, id, item, position, version, provisional)
            counts = "revised" if version > 1 else "new"
            changes.append(Change(kind="guidance.collected", payload=payload, counts_as=counts))
            continue
        if order[id] != position:
            moved[id] = position
        if id in was_provisional and not provisional:
            changes.append(Change(kind="guidance.settled", payload={"task": task, "id": id}))
    removed = [known.id for known in present if known.id not in kept]
    changes += [
        Change(kind="guidance.removed", payload={"task": task, "id": id}, counts_as="removed") for id in removed
    ]
    if moved:
        payload = {"task": task, "id": "GUIDANCE.md", "positions": moved}
        changes.append(Change(kind="guidance.ordered", payload=payload))
    return Plan(changes=changes, hints=[f"line {w.line}: {w.text}" for w in parsed.warnings])


def _by_text_and_id(removed: list[tuple[str, str]]) -> dict[str, list[str]]:
    """The ids of removed items by what they are known again by; two of equal text come back as two."""
    found: dict[str, list[str]] = {}
    for id, anchor in removed:
        found.setdefault(anchor, []).append(id)
        found.setdefault(id, []).append(id)
    return found


def _guidance_payload(task: str, id: str, item: Item, position: int, version: int, provisional: bool) -> dict[str, Any]:
    return {
        "task": task,
        "id": id,
        "heading": item.heading,
        "text": item.text,
        "anchor": item.anchor,
        "position": position,
        "version": version,
        "source": "file",
        "by": "human",
        "provisional": provisional,
    }


def question_changes(transaction: Transaction, task: str, text: str, *, provisional: bool) -> Plan:
    """Compare QUESTIONS.md with the questions that came from it: a changed text opens its question again."""
    parsed = parse_questions(text)
    rows = transaction.query(
        "SELECT id, version, state, provisional FROM question WHERE task = ? AND position > 0", (task,)
    )
    known = {r[0]: (r[1], r[2], bool(r[3])) for r in rows}
    changes: list[Change] = []
    hints = [f"line {w.line}: {w.text}" for w in parsed.warnings]
    for position, question in enumerate(parsed.questions, 1):
        hints += [f"line {w.line}: {w.text}" for w in question.warnings]
        version, state, was_provisional = known.get(question.id, ("", "", False))
        if version != question.version or state == "withdrawn":
            payload = {
                "task": task,
                "id": question.id,
                "direction": "to-agent",
                "title": question.title,
                "body": question.body,
                "version": question.version,
                "position": position,
                "by": "human",
                "provisional": provisional,
            }
            counts = "revised" if version else "new"
            changes.append(Change(kind="question.asked", payload=payload, counts_as=counts))
        elif was_provisional and not provisional:
            changes.append(Change(kind="question.settled", payload={"task": task, "id": question.id}))
    asked = {question.id for question in parsed.questions}
    for id, (_, state, _) in known.items():
        if id not in asked and state != "withdrawn":
            payload = {"task": task, "id": id}
            changes.append(Change(kind="question.withdrawn", payload=payload, counts_as="removed"))
    return Plan(changes=changes, hints=hints)
