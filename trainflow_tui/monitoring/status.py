"""The rows of measured state that first paint needs: one a run, one a node. Plain rows in the ledger, replaced as time goes on."""

from __future__ import annotations

from typing import Any

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.monitoring import node_history

RECENT_POINTS = 300


class RunEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a log says besides its numbers."""

    type: str
    line: int = 0
    step: int | None = None
    text: str = ""
    at: str = ""


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a run without opening the store. Numbers as the log prints them; None is not known."""

    framework: str = ""
    state: str = "waiting"
    """waiting, following, stale, missing or damaged."""
    detail: str = ""
    step: int | None = None
    total_steps: int | None = None
    attempt: int = 1
    loss: float | None = None
    throughput: float | None = None
    throughput_unit: str = ""
    step_time_s: float | None = None
    samples: int = 0
    rejected: int = 0
    last_sample_at: str = ""
    printed_at: str = ""
    """The newest time that the log itself printed, without a zone."""
    recent: list[tuple[int, float | None, float | None]] = []
    """The last points: step, loss, throughput; a non-finite value is None, which the chart shows as a gap."""
    events: list[RunEvent] = []
    """The newest events, at most 50."""


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One followed log: where it is, how far it was read, what it says."""

    id: str
    task: str
    path: str
    added_at: str
    updated_at: str
    tail: dict[str, Any]
    summary: RunSummary


class NodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One node and the last thing that was seen of it; `status` is empty before the first check."""

    name: str
    target: str
    checked_at: str
    status: dict[str, Any]


class TraceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One ingested trace with its split and its first hot-spots."""

    id: str
    task: str
    path: str
    sha256: str
    added_at: str
    summary: dict[str, Any]


def runs(ledger: Ledger) -> list[RunStatus]:
    """All followed logs, newest first."""
    rows = ledger.query(
        "SELECT run.id, task, path, added_at, coalesce(updated_at, ''), coalesce(tail, '{}'), summary FROM run "
        "LEFT JOIN run_status ON run_status.run = run.id ORDER BY added_at DESC, run.id"
    )
    return [
        RunStatus(
            id=row[0],
            task=row[1],
            path=row[2],
            added_at=row[3],
            updated_at=row[4],
            tail=msgspec.json.decode(row[5]),
            summary=msgspec.json.decode(row[6], type=RunSummary) if row[6] else RunSummary(),
        )
        for row in rows
    ]


def nodes(ledger: Ledger) -> list[NodeRow]:
    """All nodes by name."""
    rows = ledger.query(
        "SELECT node.name, target, coalesce(checked_at, ''), coalesce(status, '{}') FROM node "
        "LEFT JOIN node_status ON node_status.name = node.name ORDER BY node.name"
    )
    return [NodeRow(name=r[0], target=r[1], checked_at=r[2], status=msgspec.json.decode(r[3])) for r in rows]


def traces(ledger: Ledger) -> list[TraceRow]:
    """All ingested traces, newest first."""
    rows = ledger.query("SELECT id, task, path, sha256, added_at, summary FROM trace ORDER BY added_at DESC, id")
    return [
        TraceRow(id=r[0], task=r[1], path=r[2], sha256=r[3], added_at=r[4], summary=msgspec.json.decode(r[5]))
        for r in rows
    ]


def store_run(transaction: Transaction, ledger: Ledger, run: str, *, tail: object, summary: RunSummary) -> None:
    """Replace a run's row and tell the screens."""
    transaction.execute(
        "INSERT OR REPLACE INTO run_status VALUES (?, ?, ?, ?)",
        (run, msgspec.json.encode(tail).decode(), msgspec.json.encode(summary).decode(), to_iso(ledger.clock.now())),
    )
    transaction.pulse("run")


def store_node(
    transaction: Transaction,
    ledger: Ledger,
    name: str,
    status: object,
    *,
    tell: bool = True,
    keep_days: int | None = None,
) -> None:
    """Replace a node's row and keep it in the node's history where it is news; the screens are told where `tell` says so.

    `keep_days`: how long the history goes back; without it nothing is taken from it.
    """
    now = ledger.clock.now()
    text = msgspec.json.encode(status).decode()
    transaction.execute("INSERT OR REPLACE INTO node_status VALUES (?, ?, ?)", (name, text, to_iso(now)))
    node_history.note(transaction, name, msgspec.json.decode(text), now=now, keep_days=keep_days)
    if tell:
        transaction.pulse("node")
