"""The whole text of a row: what a cell has no room for. Raw text; whoever shows it makes it harmless."""

from __future__ import annotations

import json
from collections.abc import Sequence

from trainflow_tui.monitoring.status import RunEvent
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.words import _


def detail(snapshot: Snapshot, pane: str, key: str) -> tuple[str, str] | None:
    """Title and text of what a row stands for; None where the row says everything. `pane` is the list's id."""
    if pane == "guidance":
        return _guidance(snapshot, key)
    if pane in ("asked", "own") or (pane == "waiting" and "/" in key):
        return _question(snapshot, key)
    if pane in ("approvals", "waiting"):
        return _approval(snapshot, key)
    if pane == "tasks":
        return _task(snapshot, key)
    if pane == "spots":
        kind, _slash, name = key.partition("/")
        return kind, name
    if pane == "traces":
        found = next((t for t in snapshot.traces if t.id == key.rsplit("/", 1)[0] or t.id == key), None)
        return (found.id, f"{found.path}\nsha256 {found.sha256}\n\n{_pretty(found.summary)}") if found else None
    if pane in ("nodes", "signals"):
        node = next((n for n in snapshot.nodes if n.name == key), None)
        return (node.name, _pretty(node.status)) if node else None
    if pane == "runs":
        run = next((r for r in snapshot.runs if r.id == key), None)
        return (run.id, f"{run.path}\n\n{_events(run.summary.events)}") if run else None
    return None


def _guidance(snapshot: Snapshot, key: str) -> tuple[str, str] | None:
    item = next((i for i in snapshot.guidance if f"{i.task}/{i.id}" == key), None)
    if item is None:
        return None
    receipts = "\n".join(f"v{r.version} {r.state} {r.by}: {r.note}" for r in item.receipts)
    return f"{item.id} v{item.version} {item.state}", f"{item.text}\n\n{receipts}"


def _question(snapshot: Snapshot, key: str) -> tuple[str, str] | None:
    found = next((q for q in snapshot.questions if f"{q.task}/{q.id}" == key), None)
    return (found.title, f"{found.body}\n\n{found.answer or _('No answer yet.')}") if found else None


def _approval(snapshot: Snapshot, key: str) -> tuple[str, str] | None:
    from trainflow_tui.screens.dialogs.approval import request_lines

    found = next((a for a in snapshot.approvals if a.id == key), None)
    return (found.request.title, "\n".join(text.plain for text in request_lines(found))) if found else None


def _task(snapshot: Snapshot, key: str) -> tuple[str, str] | None:
    task = next((t for t in snapshot.tasks if t.id == key), None)
    if task is None:
        return None
    facts = "\n".join(
        part for part in (task.title, task.objective, f"{task.state} {task.reason}".strip(), task.latest_word) if part
    )
    return f"{task.id}: {task.title}", facts


def _events(events: Sequence[RunEvent]) -> str:
    return "\n".join(f"{e.at} {e.type} {e.text}" for e in events)


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
