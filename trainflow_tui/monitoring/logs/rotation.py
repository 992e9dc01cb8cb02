"""Which file on disk is the one that was being read: by inode and content, under its own name or a rotated one."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from dataclasses import dataclass

import msgspec

from trainflow_tui.files import NotRegularFileError, open_regular

HEAD_BYTES = 256
ROTATED_NAMES = 9
"""How many rotations between two polls are followed: `path.1` … `path.9`."""


class Generation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a file is recognised. An inode number alone is not enough: it may be used again.

    The head are the first bytes (at most 256), the anchor the bytes before the offset (at most 256). A log that was
    emptied and has grown past the offset again differs in one of them, unless it repeats both.
    """

    device: int
    inode: int
    head_bytes: int
    head_sha256: str
    anchor_bytes: int
    anchor_sha256: str


@dataclass(frozen=True)
class Found:
    """An open regular file, with its size at the moment it was opened."""

    descriptor: int
    device: int
    inode: int
    size_bytes: int

    def is_inode_of(self, known: Generation) -> bool:
        """Whether device and inode are the known ones."""
        return (self.device, self.inode) == (known.device, known.inode)

    def holds(self, known: Generation, offset: int) -> bool:
        """Whether the bytes that were read are still where they were."""
        return (
            self.size_bytes >= offset
            and _digest(self.descriptor, known.head_bytes, 0) == known.head_sha256
            and _digest(self.descriptor, known.anchor_bytes, offset - known.anchor_bytes) == known.anchor_sha256
        )

    def generation(self, offset: int) -> Generation:
        """How this file, read up to `offset`, is recognised later."""
        head_bytes = min(HEAD_BYTES, offset)
        return Generation(
            device=self.device,
            inode=self.inode,
            head_bytes=head_bytes,
            head_sha256=_digest(self.descriptor, head_bytes, 0),
            anchor_bytes=head_bytes,
            anchor_sha256=_digest(self.descriptor, head_bytes, offset - head_bytes),
        )


@dataclass(frozen=True)
class Problem:
    """Why the path itself cannot be read."""

    code: str
    text: str


def open_candidates(path: str, stack: contextlib.ExitStack) -> tuple[list[Found], Problem | None]:
    """The file at `path` and its rotated predecessors `path.1` …, newest first, each inode once.

    A file only moves to a higher number, so looking from low to high may see it twice and never misses it. The
    descriptors are closed by `stack`.
    """
    found: list[Found] = []
    problem: Problem | None = None
    for number in range(ROTATED_NAMES + 1):
        name = f"{path}.{number}" if number else path
        try:
            candidate = _open(name, stack)
        except (OSError, NotRegularFileError) as error:
            if number == 0:
                problem = _problem(name, error)
            continue  # a number may be free for a moment, while a rotation is under way
        if all((candidate.device, candidate.inode) != (other.device, other.inode) for other in found):
            found.append(candidate)
    return found, problem


def locate(candidates: list[Found], known: Generation | None, offset: int) -> int | None:
    """The place of the known file among the candidates; None if none is it.

    A copy counts only where a full head and a full anchor prove it: copytruncate leaves what was not read yet in
    `path.1`, under another inode.
    """
    if known is None:
        return None
    for place, candidate in enumerate(candidates):
        if candidate.is_inode_of(known) and candidate.holds(known, offset):
            return place
    if known.anchor_bytes == HEAD_BYTES:
        for place, candidate in enumerate(candidates):
            if candidate.holds(known, offset):
                return place
    return None


def pread(descriptor: int, size: int, offset: int) -> bytes:
    """Exactly `size` bytes from `offset`, fewer only at the end of the file."""
    pieces: list[bytes] = []
    while size > 0 and (piece := os.pread(descriptor, size, offset)):
        pieces.append(piece)
        offset += len(piece)
        size -= len(piece)
    return b"".join(pieces)


def _open(name: str, stack: contextlib.ExitStack) -> Found:
    descriptor = open_regular(name)
    stack.callback(os.close, descriptor)
    status = os.fstat(descriptor)
    return Found(descriptor, status.st_dev, status.st_ino, status.st_size)


def _problem(name: str, error: OSError | NotRegularFileError) -> Problem:
    if isinstance(error, NotRegularFileError):
        return Problem("not-a-regular-file", error.message)
    if error.errno == errno.ENOENT:
        return Problem("file-missing", f"{name} does not exist")
    return Problem("unreadable", f"{name} cannot be opened: {error.strerror}")


def _digest(descriptor: int, size: int, offset: int) -> str:
    return hashlib.sha256(pread(descriptor, size, offset)).hexdigest()
