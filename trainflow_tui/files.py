"""Small durable file operations, and what kind of file or file system a path names. Knows no layout and no format."""

from __future__ import annotations

import errno
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.errors import DamagedError, RefusedError

__all__ = [
    "TEMPORARY_NAME",
    "FilesystemKind",
    "NotRegularFileError",
    "create_exclusive",
    "ensure_private_directory",
    "filesystem_kind",
    "kind_of",
    "open_regular",
    "shortage",
    "sync_directory",
    "write_atomic",
]

TEMPORARY_NAME: Final = re.compile(r"\.trainflow-[0-9a-f]{16}\.tmp")
"""How our unfinished files are called. One stays behind only where a process was killed, and never as the only copy."""

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK})
_NO_DIRECTORY_SYNC: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


class NotRegularFileError(DamagedError):
    """A path that should name a regular file names something else; `kind` says what."""

    def __init__(self, path: str | os.PathLike[str], kind: str) -> None:
        super().__init__(
            "not-a-regular-file",
            f"{path} is a {kind}, not a regular file.",
            subject=str(path),
            next_step="Put a regular file there.",
        )
        self.kind = kind


class FilesystemKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a directory is kept on."""

    name: str
    """As the kernel calls it: ext4, nfs4, fuse.sshfs; `unknown` where the system does not tell."""
    local: bool
    """Shared memory and locks work as SQLite's write-ahead log needs them. A kind that is not known is not trusted."""
    watchable: bool
    """The kernel reports every change. Not so on network and FUSE mounts (one made by another machine) and on overlays
    (one in the lower layer)."""


def write_atomic(path: str | os.PathLike[str], content: bytes, *, mode: int = 0o600) -> None:
    """Replace the file by these bytes: a reader finds the old or the new content, also after a power cut.

    A symbolic link at `path` is replaced, not followed. `mode` is what the file ends up with, whatever the umask is.

    Raises:
        OSError: the bytes are not durable; the old content is untouched and nothing is left behind.
    """
    target = Path(path)
    temporary = _write_temporary(target.parent, content, mode)
    try:
        os.replace(temporary, target)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def create_exclusive(path: str | os.PathLike[str], content: bytes, *, mode: int = 0o600) -> bool:
    """Make the file with these bytes, or return False and touch nothing where something of this name is there.

    The name appears with its whole content or not at all, except on file systems without hard links.

    Raises:
        OSError: the bytes are not durable.
    """
    target = Path(path)
    if os.path.lexists(target):
        return False
    temporary = _write_temporary(target.parent, content, mode)
    try:
        os.link(temporary, target, follow_symlinks=False)
    except FileExistsError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        # FAT, some FUSE mounts and some containers have no hard links.
        try:
            _write_new(target, content, mode)
        except FileExistsError:
            return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(target.parent)
    return True


def ensure_private_directory(path: str | os.PathLike[str], *, parents: bool = True) -> None:
    """Make the directory, and the missing ones above it, for this user alone (0700). One that exists keeps its mode.

    Without `parents` only the last one is made: where the place itself may be gone, no other is put there.

    Raises:
        RefusedError: the path is a symbolic link or no directory, or others may write to the directory that is there.
        OSError: it cannot be made.
    """
    directory = Path(path)
    try:
        found = directory.lstat()
    except FileNotFoundError:
        if parents:
            _make_private(directory)
        else:
            directory.mkdir(mode=0o700, exist_ok=True)
        found = directory.lstat()
    if not stat.S_ISDIR(found.st_mode):
        raise RefusedError(
            "not-a-directory",
            f"{directory} is a {kind_of(found.st_mode)}, not a directory.",
            subject=str(directory),
            next_step="Move it away, or name another place.",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RefusedError(
            "directory-not-private",
            f"Others may write to {directory}.",
            subject=str(directory),
            next_step=f"Run `chmod go-w {directory}` if that was not meant.",
        )


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading and return its descriptor. Neither follows a final link nor waits on a pipe.

    Raises:
        NotRegularFileError: the path names a link, directory, pipe, socket or device.
        OSError: it does not exist or may not be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        descriptor = os.open(path, flags)
    except OSError as problem:
        # ELOOP and EMLINK tell a link, ENXIO a socket or a device without a driver.
        if problem.errno in (errno.ELOOP, errno.EMLINK, errno.ENXIO):
            mode = os.lstat(path).st_mode
            if not stat.S_ISREG(mode):
                raise NotRegularFileError(path, kind_of(mode)) from problem
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise NotRegularFileError(path, kind_of(mode))
    return descriptor


def sync_directory(path: str | os.PathLike[str]) -> None:
    """Make the names in a directory durable. File systems that cannot sync a directory are passed over.

    Raises:
        OSError: the disk failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in _NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def _write_temporary(directory: Path, content: bytes, mode: int) -> Path:
    temporary = directory / f".trainflow-{secrets.token_hex(8)}.tmp"
    _write_new(temporary, content, mode)
    return temporary


def _write_new(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            if mode != 0o600:
                os.fchmod(descriptor, mode)
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _make_private(directory: Path) -> None:
    for parent in reversed([d for d in directory.parents if not d.exists()]):
        parent.mkdir(mode=0o700, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)


_KINDS: Final = {
    stat.S_IFREG: "regular file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symbolic link",
    stat.S_IFIFO: "named pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


def kind_of(mode: int) -> str:
    """What a `st_mode` says that something is, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "special file")


RESERVE_BYTES: Final = 64 << 20
_FEW_INODES: Final = 8


def shortage(path: str | os.PathLike[str]) -> str:
    """Why only what people decide may still be written to the disk of `path`, in words; empty where there is room.

    The last 64 MiB, or the last twentieth of a smaller disk, are left to the ledger and to what people write. No file holds
    that room: whoever filled the disk would take it too as soon as it was given free.
    """
    try:
        found = os.statvfs(path)
    except OSError:
        return ""
    if found.f_flag & os.ST_RDONLY:
        return "the disk is mounted read-only"
    free_bytes, all_bytes = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    if free_bytes < min(RESERVE_BYTES, all_bytes // 20):
        return f"{free_bytes >> 20} MiB are left" if free_bytes >> 20 else "less than 1 MiB is left"
    # File systems that have as many as they want report none at all.
    return "the disk takes no more files" if found.f_files and found.f_favail < _FEW_INODES else ""


_LOCAL: Final = re.compile(
    "apfs|bcachefs|btrfs|devtmpfs|erofs|exfat|ext[234]|f2fs|fuseblk|hfs|iso9660|jfs|msdos|nilfs2|ntfs3|overlay|ramfs"
    "|reiserfs|rootfs|squashfs|tmpfs|ubifs|ufs|vfat|xfs|zfs"
)
_LOCAL_BUT_SILENT: Final = frozenset({"overlay", "fuseblk"})
_OCTAL: Final = re.compile(r"\\([0-7]{3})")
_MOUNTS: Final = Path("/proc/self/mountinfo")


def filesystem_kind(path: str | os.PathLike[str], *, mounts: Path = _MOUNTS) -> FilesystemKind:
    """The file system that a path is on, or would be on if it was made; links are followed.

    Read from the kernel's mount table (proc(5), mountinfo): the longest mount point above the path, the last of several
    at one point. Where there is no such table (macOS) the answer is `unknown` and taken for a local disk.
    """
    try:
        table = os.fsdecode(mounts.read_bytes())
    except OSError:
        return FilesystemKind(name="unknown", local=True, watchable=True)
    place = os.path.realpath(path).rstrip("/") + "/"
    name, longest = "unknown", -1
    for line in table.split("\n"):
        front, _, back = line.partition(" - ")
        fields = front.split(" ")
        if len(fields) < 6 or not back:
            continue
        point = _OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4]).rstrip("/") + "/"
        if len(point) >= longest and place.startswith(point):
            name, longest = back.split(" ", 1)[0], len(point)
    local = _LOCAL.fullmatch(name) is not None
    return FilesystemKind(name=name, local=local, watchable=local and name not in _LOCAL_BUT_SILENT)
