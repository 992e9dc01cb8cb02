"""The spool: records that wait for the collector, one a file, so that any number of writers need no lock.

Of 200 records by 50 writers at once, rewriting one shared file kept 9 to 18, one file a record kept all; and that holds on
NFS, where appending is not atomic. Knows no content of a record.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from trainflow_tui.errors import UsageError
from trainflow_tui.files import TEMPORARY_NAME, create_exclusive, sync_directory

__all__ = ["MAX_RECORD_BYTES", "archive", "pending", "strangers", "write_record"]

MAX_RECORD_BYTES: Final = 1 << 20
_NAME: Final = re.compile(r"[0-9]{20}-[0-9]{10}-[0-9]{6}\.record")
_turn: Final = threading.Lock()
_last_ns = 0


def write_record(spool: Path, record: bytes, *, now_ns: Callable[[], int] = time.time_ns) -> Path:
    """Put one record into the spool; when this returns it is durable, and nothing short of `archive` removes it.

    The names sort by time, process and a count: those of one process in the order of its calls, also where the clock
    goes back.

    Raises:
        UsageError: the record is empty or longer than 1 MiB.
        OSError: it is not durable; nothing is left behind.
    """
    if not record or len(record) > MAX_RECORD_BYTES:
        raise UsageError(
            "record-size",
            f"A record has 1 byte to 1 MiB, this one {len(record):,} bytes.",
            subject="record",
            next_step="Put long texts into a file and name it.",
        )
    moment_ns = _next_moment_ns(now_ns())
    for count in range(1_000_000):
        path = spool / f"{moment_ns:020d}-{os.getpid():010d}-{count:06d}.record"
        if create_exclusive(path, record):
            return path
        # Another machine on a shared disk had this process number at this moment.
    raise AssertionError("unreachable: a million records of one moment")


def _next_moment_ns(now_ns: int) -> int:
    global _last_ns
    with _turn:
        _last_ns = max(now_ns, _last_ns + 1)
        return _last_ns


def pending(spool: Path) -> list[Path]:
    """The records that wait, oldest first; empty where there is no spool."""
    return sorted(spool / entry.name for entry in _entries(spool) if _is_record(entry))


def strangers(spool: Path) -> list[str]:
    """Names in the spool that are not ours, sorted. They are left alone; a person should know of them."""
    found = (entry for entry in _entries(spool) if not _is_record(entry) and not TEMPORARY_NAME.fullmatch(entry.name))
    return sorted(entry.name for entry in found)


def archive(path: Path) -> None:
    """Remove a record whose content is durable elsewhere. One that is gone already is no fault."""
    path.unlink(missing_ok=True)
    sync_directory(path.parent)


def _entries(spool: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(spool) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _is_record(entry: os.DirEntry[str]) -> bool:
    # A link or a directory under one of our names was not made here.
    # `is_file` says no where another process has just taken the record in.
    return _NAME.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False)
