"""The manifest of metric segments: which files hold a run's samples. Plain rows; readers take the list in one SELECT."""

from __future__ import annotations

from typing import Final

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger.database import Ledger, Transaction

SEGMENT_TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "live": frozenset({"sealed"}),
    "sealed": frozenset({"dropped"}),
    "parquet": frozenset({"dropped"}),
    "dropped": frozenset(),
}
"""live: a JSONL tail being written · sealed: its rows stand in a Parquet segment · dropped: unlinked after ten minutes."""


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One file of samples; `path` is relative to the state directory."""

    id: int
    run: str
    path: str
    state: str
    rows: int | None
    created_at: str


def readable(ledger: Ledger, run: str) -> list[Segment]:
    """The files that together hold every sample of the run exactly once, oldest first."""
    rows = ledger.query(
        "SELECT id, run, path, state, rows, created_at FROM segment WHERE run = ? AND state IN ('live', 'parquet') ORDER BY id",
        (run,),
    )
    names = ("id", "run", "path", "state", "rows", "created_at")
    return [Segment(**dict(zip(names, row, strict=True))) for row in rows]


def start_live(transaction: Transaction, ledger: Ledger, run: str, path: str) -> None:
    """Record a new JSONL tail before its first line is written."""
    transaction.execute(
        "INSERT OR IGNORE INTO segment (run, path, state, created_at) VALUES (?, ?, 'live', ?)",
        (run, path, to_iso(ledger.clock.now())),
    )


def seal(
    transaction: Transaction, ledger: Ledger, *, live_path: str, parquet_path: str, rows: int, first: str, last: str
) -> None:
    """Let the Parquet file take the place of the tail, in the caller's transaction.

    Raises:
        RefusedError: the tail is not live.
    """
    found = transaction.query("SELECT run, state FROM segment WHERE path = ?", (live_path,))
    state = found[0][1] if found else "unknown"
    if "sealed" not in SEGMENT_TRANSITIONS.get(state, frozenset()):
        raise RefusedError("segment-transition", f"A segment that is {state} cannot be sealed.", subject=live_path)
    now = to_iso(ledger.clock.now())
    transaction.execute("UPDATE segment SET state = 'sealed', dropped_at = ? WHERE path = ?", (now, live_path))
    transaction.execute(
        "INSERT INTO segment (run, path, state, rows, first_at, last_at, created_at) VALUES (?,?,'parquet',?,?,?,?)",
        (found[0][0], parquet_path, rows, first, last, now),
    )


def droppable(ledger: Ledger, *, before: str) -> list[str]:
    """Paths of sealed tails that no reader can still be asked for: sealed before the given time."""
    rows = ledger.query("SELECT path FROM segment WHERE state = 'sealed' AND dropped_at < ?", (before,))
    return [str(row[0]) for row in rows]


def mark_dropped(ledger: Ledger, paths: list[str]) -> None:
    """Record that the files are unlinked."""
    with ledger.transaction() as transaction:
        for path in paths:
            transaction.execute("UPDATE segment SET state = 'dropped' WHERE path = ? AND state = 'sealed'", (path,))
