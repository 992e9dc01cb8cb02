"""A directory into which many writers drop one record a file. A record is whole and durable or it is not there."""

from __future__ import annotations

import itertools
import os
import re
import secrets
import time
from pathlib import Path
from typing import Final

from trainflow_tui.files import ensure_private_directory, write_atomic

_NAME: Final = re.compile(r"[0-9]{20}-[0-9]{10}-[0-9]{10}-[0-9a-f]{8}\.json")
_counter = itertools.count()


def write_record(directory: Path, record: bytes) -> Path:
    """Write one record durably; names sort by time, then by writer and count, so that one writer's order is kept."""
    ensure_private_directory(directory)
    name = f"{time.time_ns():020d}-{os.getpid():010d}-{next(_counter):010d}-{secrets.token_hex(4)}.json"
    path = directory / name
    write_atomic(path, record)
    return path


def pending(directory: Path) -> list[Path]:
    """Complete records, oldest first. What has another name is somebody else's and is left alone."""
    try:
        names = sorted(name for name in os.listdir(directory) if _NAME.fullmatch(name))
    except FileNotFoundError:
        return []
    return [directory / name for name in names]


def archive(path: Path) -> None:
    """Remove a record whose content is durable elsewhere; its text stays in the ledger for ever."""
    path.unlink(missing_ok=True)
