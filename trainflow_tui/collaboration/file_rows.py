"""The collector's row for each human file: what was read of it last and what is the matter with it. Plain rows, not events."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.collaboration.settled_read import Fingerprint
from trainflow_tui.ledger.database import Transaction
from trainflow_tui.ledger.events import canonical
from trainflow_tui.workspace import Workspace


class LastRead(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered of the last time that a file's content was read."""

    fingerprint: Fingerprint
    scanned_at: datetime
    """Before the last scan that met this fingerprint."""
    scans_since_hash: int = 0
    provisional: bool = False


class FileRow(msgspec.Struct, frozen=True, kw_only=True):
    """The collector's row for one file."""

    state: str = ""
    last: LastRead | None = None
    sha256: str = ""
    detail: str = ""
    """Since when it is being edited, or what is wrong."""


def load(workspace: Workspace, task: str, name: str) -> FileRow:
    """The row of one file; an empty one where it was never scanned."""
    rows = workspace.ledger.query(
        "SELECT state, last, sha256, detail FROM human_file WHERE task = ? AND name = ?", (task, name)
    )
    if not rows:
        return FileRow()
    state, last, sha256, detail = rows[0]
    decoded = msgspec.json.decode(last, type=LastRead) if last else None
    return FileRow(state=state, last=decoded, sha256=sha256, detail=detail)


def keep(transaction: Transaction, workspace: Workspace, task: str, name: str, row: FileRow) -> None:
    """Note that the same content was met again; nothing where another process has taken a newer one meanwhile."""
    last = msgspec.json.encode(row.last).decode() if row.last else ""
    transaction.execute(
        "UPDATE human_file SET state = ?, detail = ?, last = ?, scanned_at = ? WHERE task = ? AND name = ? AND sha256 = ?",
        (row.state, row.detail, last, to_iso(workspace.clock.now()), task, name, row.sha256),
    )


def store(workspace: Workspace, task: str, name: str, row: FileRow) -> None:
    """Replace the row; its hints stay."""
    with workspace.ledger.transaction() as transaction:
        write(transaction, workspace, task, name, row, None)


def write(
    transaction: Transaction, workspace: Workspace, task: str, name: str, row: FileRow, hints: list[str] | None
) -> None:
    """The same in a transaction of the caller, with the hints where they are given."""
    now = to_iso(workspace.clock.now())
    last = msgspec.json.encode(row.last).decode() if row.last else ""
    transaction.execute(
        "INSERT INTO human_file (task, name, state, last, sha256, detail, scanned_at, hints) VALUES (?,?,?,?,?,?,?,?) "
        "ON CONFLICT (task, name) DO UPDATE SET state = excluded.state, last = excluded.last, sha256 = excluded.sha256, "
        "detail = excluded.detail, scanned_at = excluded.scanned_at, "
        "hints = CASE WHEN ? THEN excluded.hints ELSE human_file.hints END",
        (task, name, row.state, last, row.sha256, row.detail, now, canonical(hints or []), hints is not None),
    )
