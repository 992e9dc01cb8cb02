"""How each kind of event changes the tables of current state. Replaying all events rebuilds every table.

Stored events are read tolerantly: a field that a later version added is ignored, a kind that is not known changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from trainflow_tui.ledger.events import Event, canonical


class Cursor(Protocol):
    """The part of a database cursor that a projection uses."""

    def execute(self, statements: str, bindings: Sequence[Any] = ()) -> Any:
        """Run one statement."""
        ...


def _insert(cursor: Cursor, table: str, values: dict[str, Any]) -> None:
    names = ", ".join(values)
    marks = ", ".join("?" * len(values))
    cursor.execute(f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))


def _word(cursor: Cursor, task: str, text: str, at: str) -> None:
    cursor.execute("UPDATE task SET latest_word = ?, latest_at = ? WHERE id = ?", (text, at, task))


def _task_created(cursor: Cursor, event: Event) -> None:
    p = event.payload
    _insert(
        cursor,
        "task",
        {
            "id": event.entity,
            "title": p.get("title", event.entity),
            "objective": p.get("objective", ""),
            "mode": p.get("mode", "full"),
            "state": "draft",
            "created_at": event.at,
            "moved_at": event.at,
            "latest_word": p.get("objective", ""),
            "latest_at": event.at,
        },
    )


def _task_moved(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute(
        "UPDATE task SET state = ?, resume_state = ?, reason = ?, moved_at = ? WHERE id = ?",
        (p["to"], p.get("resume_state"), p.get("reason", ""), event.at, event.entity),
    )
    if p.get("reason"):
        _word(cursor, event.entity, p["reason"], event.at)


def _report_added(cursor: Cursor, event: Event) -> None:
    p = event.payload
    _insert(
        cursor,
        "report",
        {
            "id": event.entity,
            "task": p["task"],
            "kind": p["kind"],
            "status": p["status"],
            "summary": p.get("summary", ""),
            "executed": p.get("executed"),
            "evidence": canonical(p.get("evidence", [])),
            "at": event.at,
            "by": event.actor.label,
        },
    )
    _word(cursor, p["task"], p.get("summary", "") or f"{p['kind']}: {p['status']}", event.at)


def _guidance_collected(cursor: Cursor, event: Event) -> None:
    p = event.payload
    first = cursor.execute("SELECT first_at FROM guidance WHERE task = ? AND id = ?", (p["task"], p["id"])).fetchall()
    _insert(
        cursor,
        "guidance",
        {
            "task": p["task"],
            "id": p["id"],
            "position": p.get("position", 0),
            "heading": p.get("heading", ""),
            "text": p["text"],
            "anchor": p.get("anchor", ""),
            "version": p.get("version", 1),
            "source": p.get("source", "file"),
            "provisional": int(p.get("provisional", False)),
            "collected_at": event.at,
            "first_at": first[0][0] if first else event.at,
            "removed_at": None,
            "by": p.get("by", event.actor.label),
        },
    )


def _guidance_settled(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute("UPDATE guidance SET provisional = 0 WHERE task = ? AND id = ?", (p["task"], p["id"]))


def _guidance_ordered(cursor: Cursor, event: Event) -> None:
    for id, position in event.payload["positions"].items():
        cursor.execute(
            "UPDATE guidance SET position = ? WHERE task = ? AND id = ?", (position, event.payload["task"], id)
        )


def _guidance_removed(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute("UPDATE guidance SET removed_at = ? WHERE task = ? AND id = ?", (event.at, p["task"], p["id"]))


def _receipt_added(cursor: Cursor, event: Event) -> None:
    p = event.payload
    _insert(
        cursor,
        "receipt",
        {
            "seq": event.seq,
            "task": p["task"],
            "item": p["item"],
            "version": p.get("version", 1),
            "state": p["state"],
            "note": p.get("note", ""),
            "at": event.at,
            "by": event.actor.label,
        },
    )


def _question_asked(cursor: Cursor, event: Event) -> None:
    p = event.payload
    _insert(
        cursor,
        "question",
        {
            "task": p["task"],
            "id": p["id"],
            "direction": p["direction"],
            "title": p.get("title", ""),
            "body": p.get("body", ""),
            "blocking": int(p.get("blocking", False)),
            "state": "open",
            "version": p.get("version", ""),
            "asked_at": event.at,
            "by": p.get("by", event.actor.label),
            "position": p.get("position", 0),
            "provisional": int(p.get("provisional", False)),
        },
    )


def _question_settled(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute("UPDATE question SET provisional = 0 WHERE task = ? AND id = ?", (p["task"], p["id"]))


def _question_answered(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute(
        "UPDATE question SET state = 'answered', answer = ?, answered_at = ?, answered_by = ? WHERE task = ? AND id = ?",
        (p["answer"], event.at, event.actor.label, p["task"], p["id"]),
    )


def _question_withdrawn(cursor: Cursor, event: Event) -> None:
    p = event.payload
    cursor.execute("UPDATE question SET state = 'withdrawn' WHERE task = ? AND id = ?", (p["task"], p["id"]))


def _approval_requested(cursor: Cursor, event: Event) -> None:
    p = event.payload
    _insert(
        cursor,
        "approval",
        {
            "id": event.entity,
            "task": p["task"],
            "title": p["title"],
            "kind": p.get("kind", "command"),
            "state": "pending",
            "request": canonical(p),
            "digest": p["digest"],
            "requested_at": event.at,
            "expires_at": p.get("expires_at"),
            "start_before": p.get("start_before"),
        },
    )


def _approval_decided(cursor: Cursor, event: Event) -> None:
    cursor.execute(
        "UPDATE approval SET state = ?, decision = ?, decided_at = ? WHERE id = ?",
        (event.payload["state"], canonical(event.payload), event.at, event.entity),
    )


def _approval_closed(cursor: Cursor, event: Event) -> None:
    cursor.execute("UPDATE approval SET state = ? WHERE id = ?", (event.payload["state"], event.entity))


def _approval_consumed(cursor: Cursor, event: Event) -> None:
    cursor.execute(
        "UPDATE approval SET state = 'consumed', start_token = ?, consumed_at = ? WHERE id = ?",
        (event.payload["start_token"], event.at, event.entity),
    )


def _run_added(cursor: Cursor, event: Event) -> None:
    p = event.payload
    values = {"id": event.entity, "task": p.get("task", ""), "path": p["path"], "framework": p.get("framework", "")}
    _insert(cursor, "run", values | {"added_at": event.at})


def _trace_added(cursor: Cursor, event: Event) -> None:
    p = event.payload
    values = {"id": event.entity, "task": p.get("task", ""), "path": p["path"], "sha256": p["sha256"]}
    _insert(cursor, "trace", values | {"added_at": event.at, "summary": canonical(p.get("summary", {}))})


def _node_added(cursor: Cursor, event: Event) -> None:
    _insert(cursor, "node", {"name": event.entity, "target": event.payload.get("target", ""), "added_at": event.at})


PROJECTIONS: Final[dict[str, Callable[[Cursor, Event], None]]] = {
    "task.created": _task_created,
    "task.moved": _task_moved,
    "report.added": _report_added,
    "guidance.collected": _guidance_collected,
    "guidance.settled": _guidance_settled,
    "guidance.ordered": _guidance_ordered,
    "guidance.removed": _guidance_removed,
    "receipt.added": _receipt_added,
    "question.asked": _question_asked,
    "question.settled": _question_settled,
    "question.answered": _question_answered,
    "question.withdrawn": _question_withdrawn,
    "approval.requested": _approval_requested,
    "approval.decided": _approval_decided,
    "approval.closed": _approval_closed,
    "approval.consumed": _approval_consumed,
    "run.added": _run_added,
    "trace.added": _trace_added,
    "node.added": _node_added,
}
"""Kinds without an entry here (`file.collected`) are history only."""


def apply(cursor: Cursor, event: Event) -> None:
    """Bring the tables up to date with one event."""
    projection = PROJECTIONS.get(event.kind)
    if projection is not None:
        projection(cursor, event)
