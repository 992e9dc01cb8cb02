"""Reports: a status that rests on evidence. Missing or empty evidence is never a pass."""

from __future__ import annotations

import hashlib
import re
from typing import Final

import msgspec

from trainflow_tui.collaboration.identity import new_id
from trainflow_tui.errors import UsageError
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.ledger.events import Actor

STATUSES: Final = ("pass", "fail", "incomplete", "complete")
_NOTHING: Final = hashlib.sha256(b"").hexdigest()
"""The hash of an empty file, which is evidence of nothing."""
_KIND: Final = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded report. `evidence` holds artifact hashes; `executed` counts the checks that ran."""

    id: str
    task: str
    kind: str
    status: str
    summary: str
    executed: int | None
    evidence: list[str]
    at: str
    by: str


_COLUMNS: Final = ", ".join(Report.__struct_fields__)


def add(
    ledger: Ledger,
    *,
    task: str,
    kind: str,
    status: str,
    summary: str,
    evidence: list[str],
    actor: Actor,
    executed: int | None = None,
) -> Report:
    """Record a report. `evidence` are hashes of artifacts that are kept already.

    Raises:
        UsageError: a field is out of its domain, or a pass comes without evidence or without a positive `executed`.
    """
    if not _KIND.fullmatch(kind):
        raise UsageError(
            "report-kind",
            f"{kind[:60]!r} is not a report kind.",
            subject="kind",
            next_step="Lower-case words joined by '-'.",
        )
    if status not in STATUSES:
        raise UsageError(
            "report-status",
            f"There is no status {status!r}.",
            subject="status",
            next_step=f"One of {', '.join(STATUSES)}.",
        )
    if executed is not None and executed < 0:
        raise UsageError("report-executed", f"A number of checks is not {executed}.", subject="executed")
    if len(summary) > 1000:
        raise UsageError(
            "report-summary", f"A summary has at most 1000 characters, this one {len(summary)}.", subject="summary"
        )
    if status in ("pass", "complete") and not set(evidence) - {_NOTHING}:
        raise UsageError(
            "report-evidence",
            f"A report that says {status} needs evidence, and an empty file is none.",
            subject="evidence",
            next_step="Name files with --evidence.",
        )
    if status == "pass" and (executed is None or executed < 1):
        raise UsageError(
            "report-executed",
            "A pass says how many checks ran, at least 1.",
            subject="executed",
            next_step="Give --executed N.",
        )
    id = new_id("rp")
    payload = {
        "task": task,
        "kind": kind,
        "status": status,
        "summary": summary.strip(),
        "evidence": evidence,
        "executed": executed,
    }
    with ledger.transaction() as transaction:
        if not transaction.query("SELECT 1 FROM task WHERE id = ?", (task,)):
            raise UsageError("no-task", f"There is no task {task[:120]!r}.", subject=task[:120])
        transaction.append("report.added", id, payload, actor=actor)
    return next(report for report in of_task(ledger, task) if report.id == id)


def of_task(ledger: Ledger, task: str) -> list[Report]:
    """All reports of a task, newest first."""
    return [
        _report(row)
        for row in ledger.query(f"SELECT {_COLUMNS} FROM report WHERE task = ? ORDER BY rowid DESC", (task,))
    ]


def latest(ledger: Ledger, task: str, kind: str) -> Report | None:
    """The current report of a kind: the last one recorded, whatever the clocks said."""
    rows = ledger.query(
        f"SELECT {_COLUMNS} FROM report WHERE task = ? AND kind = ? ORDER BY rowid DESC LIMIT 1", (task, kind)
    )
    return _report(rows[0]) if rows else None


def is_passing(report: Report | None) -> bool:
    """Whether a gate may count on it; an analysis passes when it is complete."""
    return report is not None and (
        report.status == "pass" or (report.kind == "analysis" and report.status == "complete")
    )


def _report(row: tuple[object, ...]) -> Report:
    fields = dict(zip(Report.__struct_fields__, row, strict=True))
    fields["evidence"] = msgspec.json.decode(str(fields["evidence"]), type=list[str])
    return Report(**fields)  # type: ignore[arg-type]
