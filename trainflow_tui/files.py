"""Small durable file operations: atomic replacement, exclusive creation, private folders, regular files only."""

from __future__ import annotations

import os
import secrets
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trainflow_tui.errors import DamagedError, RefusedError, UsageError

_NETWORK: Final = ("nfs", "cifs", "smb", "fuse", "lustre", "gpfs", "ceph", "9p", "afs", "beegfs", "glusterfs", "sshfs")


@dataclass(frozen=True)
class FilesystemKind:
    """What a path lies on. `local`: file locks and shared memory work; `watchable`: change events arrive for every edit."""

    name: str
    local: bool
    watchable: bool


def write_atomic(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Replace the file in one step: readers see the old bytes or the new ones, durable when this returns."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(temporary, content, mode)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)


def create_exclusive(path: Path, content: bytes, *, mode: int = 0o600) -> bool:
    """Create the file; False, and nothing touched, where one exists. Readers never see it half written."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        _write_new(temporary, content, mode)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        except OSError:
            # File systems without hard links: the exclusive open still never overwrites.
            try:
                _write_new(path, content, mode)
            except FileExistsError:
                return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)
    return True


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Make names in the directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def ensure_private_directory(path: Path) -> None:
    """Make the directory with mode 0700, parents too.

    Raises:
        RefusedError: something else stands there, or a symbolic link.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as problem:
        raise RefusedError("not-a-directory", f"{path} is not a directory.", subject=str(path)) from problem
    if path.is_symlink():
        raise RefusedError("symlinked-directory", f"{path} is a symbolic link.", subject=str(path), next_step="Remove the link.")


def open_regular(path: Path) -> int:
    """A descriptor for reading a regular file; links, pipes and devices are never opened for real.

    Raises:
        UsageError: there is no such file.
        DamagedError: it is something else, which is named, or it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as problem:
        raise UsageError("no-file", f"There is no file {path}.", subject=str(path)) from problem
    except OSError as problem:
        kind = "a symbolic link" if path.is_symlink() else f"not readable ({problem.strerror})"
        raise DamagedError("not-regular", f"{path} is {kind}.", subject=str(path), next_step="A regular file is expected.") from problem
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise DamagedError("not-regular", f"{path} is {kind_of(mode)}.", subject=str(path), next_step="A regular file is expected.")
    return descriptor


def kind_of(mode: int) -> str:
    """The kind of a file in words."""
    kinds = (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISLNK, "a symbolic link"),
    )
    return next((words for test, words in kinds if test(mode)), "a regular file")


def filesystem_kind(path: Path) -> FilesystemKind:
    """The file system under a path, from the kernel's mount table; elsewhere than on Linux it counts as local."""
    if not sys.platform.startswith("linux"):
        return FilesystemKind("unknown", local=True, watchable=True)
    try:
        wanted = os.path.realpath(path)
        table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return FilesystemKind("unknown", local=True, watchable=True)
    best, name = -1, "unknown"
    for row in table.splitlines():
        left, _, right = row.partition(" - ")
        fields = left.split(" ")
        if len(fields) < 5 or not right:
            continue
        point = fields[4].replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")
        inside = wanted == point or wanted.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, name = len(point), right.split(" ")[0]
    network = any(name.startswith(prefix) for prefix in _NETWORK)
    return FilesystemKind(name, local=not network, watchable=not network and name != "overlay")
