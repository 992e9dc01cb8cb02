"""What SQLite and the system say when the ledger cannot be used, as the program's own errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from trainflow_tui.errors import BusyError, DamagedError, TrainflowError, UsageError

_UNAVAILABLE = (
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.IOError,
    apsw.PermissionsError,
    apsw.AuthError,
    apsw.ProtocolError,
    apsw.NoLFSError,
)

_ROOM_BYTES = 1 << 20


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn what goes wrong inside into a sentence about the ledger at `path`.

    Raises:
        BusyError: another process holds the file.
        DamagedError: the file is damaged, the disk is full, or the system refuses.
        UsageError: a text is not Unicode: bytes of another encoding reached the command line.
    """
    try:
        yield
    except apsw.Error as problem:
        raise _error(problem, path) from problem
    except UnicodeDecodeError as problem:
        raise _damaged(path, "a text is not UTF-8") from problem
    except UnicodeEncodeError as problem:
        raise _not_unicode(problem) from problem
    except OverflowError as problem:
        raise UsageError("number-too-large", "A number is too large to be recorded.", subject="number") from problem


def _error(problem: apsw.Error, path: Path) -> Exception:
    if isinstance(problem, apsw.BusyError | apsw.LockedError):
        step = "Try again in a moment."
        return BusyError("ledger-busy", "Another process is writing the ledger.", subject=str(path), next_step=step)
    if isinstance(problem, apsw.FullError) or (isinstance(problem, _UNAVAILABLE) and is_full(path)):
        return _refused(
            "disk-full", f"There is no room to write {path}: nothing was recorded.", path, "Free some space."
        )
    if isinstance(problem, apsw.NotADBError | apsw.CorruptError):
        return _damaged(path, str(problem))
    if isinstance(problem, _UNAVAILABLE):
        return unavailable(path, problem)
    return problem


def _damaged(path: Path, reason: str) -> TrainflowError:
    words = f"{path} is not a ledger that this program can read ({reason})."
    return _refused("not-a-ledger", words, path, "Move the file aside; keep it, it may hold decisions.")


def is_full(path: Path) -> bool:
    """Whether the disk of a ledger has no room: without it for its shared memory file SQLite says that it cannot open, or
    that the disk failed.
    """
    try:
        found = os.statvfs(path.parent)
        return found.f_bavail * found.f_frsize < _ROOM_BYTES
    except OSError:
        return False


def unavailable(path: Path, problem: Exception) -> TrainflowError:
    """The error for a file that the system refuses to open or to write."""
    words = getattr(problem, "strerror", None) or str(problem)
    step = "Look at the disk and its rights; --readonly only reads."
    return _refused("ledger-unavailable", f"{path} cannot be used: {words}.", path, step)


def _refused(code: str, message: str, path: Path, next_step: str) -> TrainflowError:
    return DamagedError(code, message, subject=str(path), next_step=next_step)


def _not_unicode(problem: UnicodeEncodeError) -> UsageError:
    around = problem.object[max(0, problem.start - 20) : problem.start + 20]
    return UsageError(
        "text-not-unicode",
        f"{around!r} holds bytes that are not UTF-8.",
        subject="text",
        next_step="Give it as UTF-8.",
    )
