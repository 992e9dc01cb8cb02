"""The newest event as one line beside the ledger, so that a write-ahead log that was deleted or cut does not pass unnoticed.

SQLite opens such a file without a word, at an older state: a decision would be undone, an approval could be used again. The
line is written after each commit and not synchronised: after a power cut it may be older than the ledger, never newer.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

SUFFIX: Final = ".head"
_WIDTH: Final = 20


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was committed once and is gone, or is another one now."""

    seq: int
    path: str
    """The file that says so."""


def write(ledger: Path, seq: int, digest: str) -> None:
    """Remember the newest event. Best effort: it is a witness, not a record."""
    with contextlib.suppress(OSError):
        descriptor = os.open(_path(ledger), os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, f"{seq:0{_WIDTH}d} {digest}\n".encode(), 0)
        finally:
            os.close(descriptor)


def missing(ledger: Path, hash_at: Callable[[int], str | None]) -> Loss | None:
    """The witnessed event if the ledger does not hold it; None where it does or nothing was witnessed."""
    seen = _read(ledger)
    # A second look: the line may be being written at this very moment.
    if seen is None or hash_at(seen[0]) == seen[1] or _read(ledger) != seen:
        return None
    return Loss(seq=seen[0], path=str(_path(ledger)))


def _read(ledger: Path) -> tuple[int, str] | None:
    try:
        with open(_path(ledger), "rb") as stream:
            number, digest = stream.read(256).decode("ascii").split()
        return int(number), digest
    except (OSError, ValueError):
        return None


def _path(ledger: Path) -> Path:
    return ledger.with_name(ledger.name + SUFFIX)
