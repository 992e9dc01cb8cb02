"""What is kept of each run: files, rows, bytes and times by level, as the manifest has it and the disk confirms it."""

from __future__ import annotations

import msgspec

from trainflow_tui.errors import UsageError
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.manifest import Segment
from trainflow_tui.workspace import Workspace

LEVELS = ("live", "raw", "roll60", "roll600")


class KeptLevel(msgspec.Struct, frozen=True, kw_only=True):
    """One level of one run. Rows of a live tail are not counted."""

    level: str
    files: int
    rows: int
    bytes: int
    first_at: str
    last_at: str


class KeptRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run's files."""

    run: str
    levels: list[KeptLevel]
    not_rolled: int
    """Sealed segments whose samples are in no roll-up yet."""
    to_unlink: int
    """Files that are out of use and stay for ten minutes."""
    missing: list[str]
    """Files of the manifest that are not on disk. A live tail that was not written to yet is none of them."""


def kept(workspace: Workspace, *, run: str | None = None) -> list[KeptRun]:
    """Each run that has segments, by name.

    Raises:
        UsageError: there is no such run.
    """
    check_run(workspace, run)
    waiting = manifest.waiting(workspace.ledger)
    found = manifest.segments(workspace.ledger, run)
    return [
        _kept(workspace, name, [s for s in found if s.run == name], waiting.get(name, 0))
        for name in sorted({s.run for s in found})
    ]


def check_run(workspace: Workspace, run: str | None) -> None:
    """Refuse the name of a run that is not followed.

    Raises:
        UsageError: there is no such run.
    """
    if run is not None and not workspace.ledger.query("SELECT 1 FROM run WHERE id = ?", (run,)):
        step = "`trainflow log list` names them."
        raise UsageError("no-run", f"There is no run {run[:120]!r}.", subject=run[:120], next_step=step)


def _kept(workspace: Workspace, run: str, segments: list[Segment], waiting: int) -> KeptRun:
    sizes = {s.id: _size(workspace, s) for s in segments}
    levels = []
    for level in LEVELS:
        of_level = [s for s in segments if s.level == level]
        timed = [s for s in of_level if s.first_at]
        if of_level:
            levels.append(
                KeptLevel(
                    level=level,
                    files=len(of_level),
                    rows=sum(s.rows or 0 for s in of_level),
                    bytes=sum(sizes[s.id] or 0 for s in of_level),
                    first_at=min((s.first_at for s in timed), default=""),
                    last_at=max((s.last_at for s in timed), default=""),
                )
            )
    return KeptRun(
        run=run,
        levels=levels,
        not_rolled=sum(s.state == "parquet" for s in segments),
        to_unlink=waiting,
        missing=[s.path for s in segments if sizes[s.id] is None and s.state != "live"],
    )


def _size(workspace: Workspace, segment: Segment) -> int | None:
    try:
        return (workspace.state / segment.path).stat().st_size
    except OSError:
        return None
