"""What processes that were killed left unfinished: temporary files and half-read traces, removed once they are nobody's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from trainflow_tui.collaboration import tasks
from trainflow_tui.files import TEMPORARY_NAME
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
                if TEMPORARY_NAME.fullmatch(path.name) and path.lstat().st_mtime < oldest_s:
                    path.unlink()
                    dropped += 1
    return dropped


def _folders(workspace: Workspace) -> Iterator[Path]:
    yield workspace.state
    yield workspace.spool
    yield from (workspace.state / "objects").glob("??")
    for task in tasks.all_tasks(workspace.ledger):
        if workspace.has_task_folder(task.id):
            yield workspace.task_folder(task.id)
