"""Traces on disk: a file becomes a folder of Parquet parts and one event in the ledger; the same bytes are read once."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from trainflow_tui.analysis.traces.records import IngestResult, TraceHotspots
from trainflow_tui.errors import UsageError
from trainflow_tui.files import ensure_private_directory, sync_directory, write_atomic
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.source_file import open_source
from trainflow_tui.monitoring.status import TraceRow
from trainflow_tui.workspace import Workspace

Progress = Callable[[int, int | None], None]
META = "meta.json"
_UNFINISHED = ".building-"
_UNFINISHED_AFTER_S = 60.0
"""Between making a folder and locking it a process has so much time."""


def add_trace(
    workspace: Workspace,
    path: Path,
    *,
    task: str,
    actor: Actor,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[TraceRow, bool]:
    """Read a trace into the workspace; the second value is False where these very bytes are in it already.

    Raises:
        UsageError: no such file or task.
        DamagedError: the file holds no trace.
    """
    from trainflow_tui.analysis.traces.hotspots import hotspots
    from trainflow_tui.analysis.traces.reader import ingest
    from trainflow_tui.analysis.traces.summary import summarise

    if task and not workspace.ledger.query("SELECT 1 FROM task WHERE id = ?", (task,)):
        raise UsageError("no-task", f"There is no task {task[:120]!r}.", subject=task[:120])
    with _building(workspace) as building, open_source(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        found = ingest(stream, building, total_bytes=size, on_progress=on_progress, cancelled=cancelled)
        existing = [row for row in status.traces(workspace.ledger) if row.sha256 == found.source_sha256]
        if existing:
            return existing[0], False
        summary = summarise(found, hotspots(found.parts, file=path.name, quality=found.quality))
        write_atomic(building / META, msgspec.json.encode({"source": str(path), "ingest": _relative(found)}))
        id = found.source_sha256[:12]
        _put_in_place(building, workspace.state / "traces" / id)
    payload = {"task": task, "path": str(path), "sha256": found.source_sha256, "summary": msgspec.to_builtins(summary)}
    with workspace.ledger.transaction() as transaction:
        new = not transaction.query("SELECT 1 FROM trace WHERE id = ?", (id,))
        if new:
            transaction.append("trace.added", id, payload, actor=actor)
    return next(row for row in status.traces(workspace.ledger) if row.id == id), new


@contextmanager
def _building(workspace: Workspace) -> Iterator[Path]:
    """A folder for the parts, which is gone afterwards unless it was put in its place."""
    folder = workspace.state / "traces" / f"{_UNFINISHED}{secrets.token_hex(6)}"
    ensure_private_directory(folder)
    held = _hold(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


def _hold(folder: Path) -> int | None:
    """Lock a folder for as long as this process lives; None where another holds it or locks do not work."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _put_in_place(building: Path, target: Path) -> None:
    sync_directory(building)
    try:
        os.replace(building, target)
    except OSError as problem:
        # Another process, or one that was killed before its event, has put the same bytes there.
        if problem.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not (target / META).exists():
            raise
    sync_directory(target.parent)


def drop_unfinished(workspace: Workspace) -> int:
    """Remove the folders of processes that were killed while they read a trace; returns how many."""
    dropped = 0
    for folder in (workspace.state / "traces").glob(f"{_UNFINISHED}*"):
        with contextlib.suppress(OSError):
            is_old = time.time() - folder.lstat().st_mtime > _UNFINISHED_AFTER_S
            held = _hold(folder) if is_old else None
            if held is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(held)
                dropped += 1
    return dropped


def hotspots_of_file(path: Path, *, target: float, all_rows: bool) -> TraceHotspots:
    """The ranked list of a file, which is read for this call only.

    Raises:
        UsageError: no such file.
        DamagedError: the file holds no trace.
    """
    from trainflow_tui.analysis.traces.columns import DEVICE_ROWS
    from trainflow_tui.analysis.traces.hotspots import hotspots
    from trainflow_tui.analysis.traces.reader import ingest

    with tempfile.TemporaryDirectory(prefix="trainflow-") as folder, open_source(path) as stream:
        # Device events in half pieces: the same table for a quarter less CPU and half the memory.
        found = ingest(stream, Path(folder), schema=DEVICE_ROWS, piece_bytes=16 << 20)
        return hotspots(found.parts, file=path.name, quality=found.quality, target=target, all_rows=all_rows)


def hotspots_of_id(workspace: Workspace, id: str, *, target: float, all_rows: bool) -> TraceHotspots:
    """The ranked list of an ingested trace, from its parts.

    Raises:
        UsageError: there is no trace of this id.
    """
    from trainflow_tui.analysis.traces.hotspots import hotspots

    row = next((r for r in status.traces(workspace.ledger) if r.id == id), None)
    folder = workspace.state / "traces" / id
    if row is None or not (folder / META).exists():
        raise UsageError(
            "no-trace",
            f"There is no trace {id[:80]!r}.",
            subject=id[:80],
            next_step="`trainflow trace list` shows them.",
        )
    meta = msgspec.json.decode((folder / META).read_bytes())
    parts = tuple(str(folder / name) for name in meta["ingest"]["parts"])
    found = msgspec.convert(meta["ingest"] | {"parts": parts}, IngestResult)
    name = Path(row.path).name
    return hotspots(found.parts, file=name, quality=found.quality, target=target, all_rows=all_rows)


def _relative(found: IngestResult) -> dict[str, object]:
    kept: dict[str, object] = msgspec.to_builtins(found)
    return kept | {"parts": [Path(part).name for part in found.parts]}
