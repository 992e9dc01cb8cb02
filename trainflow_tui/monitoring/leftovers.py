"""What processes that were killed left unfinished: temporary files, half-read traces, segments that no row names.

It is removed once it is nobody's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainflow_tui.collaboration import tasks
from trainflow_tui.files import TEMPORARY_NAME
from trainflow_tui.ledger import manifest
from trainflow_tui.monitoring import traces
from trainflow_tui.workspace import Workspace

AFTER_S: Final = 3600.0
"""No write of ours takes so long."""


def drop(workspace: Workspace) -> int:
    """Remove them; returns how many. What cannot be removed is left."""
    dropped = traces.drop_unfinished(workspace)
    oldest_s = time.time() - AFTER_S  # beside the file system's stamps, which are of the same kind
    for folder in _folders(workspace):
        for path in folder.glob(".trainflow-*.tmp"):
            with contextlib.suppress(OSError):
                if TEMPORARY_NAME.fullmatch(path.name) and _made_before(path, oldest_s):
                    path.unlink()
                    dropped += 1
    return dropped + _drop_unnamed_segments(workspace, oldest_s)


def _drop_unnamed_segments(workspace: Workspace, oldest_s: float) -> int:
    old = [p for p in (workspace.state / "metrics").glob("*/*/*.parquet") if _made_before(p, oldest_s)]
    named = manifest.paths(workspace.ledger)
    unnamed = [path for path in old if str(path.relative_to(workspace.state)) not in named]
    if unnamed:
        # In a transaction, as whoever records a segment looks in one whether it is still there.
        with workspace.ledger.transaction():
            named = manifest.paths(workspace.ledger)
            for path in unnamed:
                if str(path.relative_to(workspace.state)) not in named:
                    path.unlink(missing_ok=True)
    return len(unnamed)


def _made_before(path: Path, moment_s: float) -> bool:
    try:
        return path.lstat().st_mtime < moment_s
    except OSError:
        return False


def _folders(workspace: Workspace) -> Iterator[Path]:
    yield workspace.state
    yield workspace.spool
    yield from (workspace.state / "objects").glob("??")
    yield from (workspace.state / "metrics").glob("*/*")
    for task in tasks.all_tasks(workspace.ledger):
        if workspace.has_task_folder(task.id):
            yield workspace.task_folder(task.id)
