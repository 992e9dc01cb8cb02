"""Reading a file that a person may be saving right now: what is on disk and whether it is likely to be all of it.

Keeps no bytes and decides nothing about items; who reads again, and when, is the caller's.
"""

from __future__ import annotations

import errno
import hashlib
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.clock import Clock, SystemClock
from trainflow_tui.files import NotRegularFileError, open_regular

__all__ = [
    "MAX_BYTES",
    "RETRY_DELAYS_S",
    "BeingEdited",
    "Fingerprint",
    "Missing",
    "NotRegular",
    "Outcome",
    "Oversize",
    "Settled",
    "SettledReader",
    "Unchanged",
    "Unreadable",
    "needs_read",
]

MAX_BYTES: Final = 1 << 20
"""No file of remarks is longer; a longer one is reported, not cut."""
RETRY_DELAYS_S: Final = (1.0, 2.0, 5.0, 10.0)
"""When to look again at a file that is being edited. After the last of them it is read impatiently."""
GAP_S: Final = 0.3
QUIET_S: Final = 10.0
"""No save takes longer between two of its writes."""
HASH_EVERY_SCANS: Final = 12
"""At one scan in 5 minutes the content is compared at least once an hour, whatever the time stamps say."""
_STAMP_GRAIN_S: Final = 2.0
"""FAT keeps even seconds; nothing in use is coarser."""


class Fingerprint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a file system tells of a file's content without reading it."""

    device: int
    inode: int
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    """Cannot be set back by a program, so it tells a replacement that restored size and mtime (rsync -t, cp -p)."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Fingerprint:
        """The fingerprint of what the path names now, a link's own if it is one.

        Raises:
            OSError: there is nothing, or it may not be looked at.
        """
        return cls.from_stat(os.lstat(path))

    @classmethod
    def from_stat(cls, found: os.stat_result) -> Fingerprint:
        """The fingerprint in a stat result."""
        return cls(
            device=found.st_dev,
            inode=found.st_ino,
            size_bytes=found.st_size,
            mtime_ns=found.st_mtime_ns,
            ctime_ns=found.st_ctime_ns,
        )

    @property
    def changed_s(self) -> float:
        """When the content was last touched, in seconds of the file system's wall clock."""
        return max(self.mtime_ns, self.ctime_ns) / 1e9


class Unchanged(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="unchanged"):
    """The fingerprint of the last read; the content was not read."""

    fingerprint: Fingerprint


class Settled(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="settled"):
    """The whole content as it is on disk, read consistently."""

    content: bytes
    fingerprint: Fingerprint
    sha256: str
    provisional: bool
    """Touched within the last 10 s, where two equal reads cannot tell a finished save from a pause inside one; or taken
    by an impatient caller."""


class BeingEdited(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="being-edited"):
    """The file changed while it was read, or was emptied a moment ago. See `RETRY_DELAYS_S`."""

    reason: str


class Missing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="missing"):
    """Nothing has this name, also a moment later. An editor that saves by delete and create comes through here."""


class Oversize(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="oversize"):
    """More than the cap; nothing was kept."""

    size_bytes: int


class NotRegular(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="not-regular"):
    """The name is a link, a directory, a pipe, a socket or a device; it was not read."""

    kind: str


class Unreadable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="unreadable"):
    """The system refused."""

    reason: str


Outcome = Unchanged | Settled | BeingEdited | Missing | Oversize | NotRegular | Unreadable


def needs_read(
    previous: Fingerprint | None, now: Fingerprint, *, scans_since_hash: int, last_scan: datetime | None
) -> bool:
    """Whether the content may have changed since it was last read.

    True where the fingerprint differs; where the file was touched after, or up to 2 s before, the last scan, because a
    second change within the grain of the time stamps leaves them as they are; and on every 12th scan.
    """
    if previous is None or last_scan is None or now != previous:
        return True
    return scans_since_hash + 1 >= HASH_EVERY_SCANS or now.changed_s >= last_scan.timestamp() - _STAMP_GRAIN_S


class _Read(msgspec.Struct, frozen=True):
    content: bytes
    fingerprint: Fingerprint


class _Known(msgspec.Struct, frozen=True):
    """What the caller remembers of the file."""

    fingerprint: Fingerprint
    last_scan: datetime | None
    scans_since_hash: int
    was_provisional: bool

    def is_current(self, now: Fingerprint) -> bool:
        return not self.was_provisional and not needs_read(
            self.fingerprint, now, scans_since_hash=self.scans_since_hash, last_scan=self.last_scan
        )


class SettledReader:
    """Reads human files. One object serves many files and remembers since when each has looked as it does.

    The calls to the system can be replaced, so that a test can tear a read at any place.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        open_file: Callable[[Path], int] = open_regular,
        stat: Callable[[int], os.stat_result] = os.fstat,
        read: Callable[[int, int], bytes] = os.read,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self._clock = clock or SystemClock()
        self._sleep = sleep
        self._open = open_file
        self._stat = stat
        self._read = read
        self._max_bytes = max_bytes
        self._seen: dict[Path, tuple[Fingerprint, float]] = {}

    def read(
        self,
        path: Path,
        *,
        previous: Fingerprint | None = None,
        last_scan: datetime | None = None,
        scans_since_hash: int = 0,
        was_provisional: bool = False,
        impatient: bool = False,
    ) -> Outcome:
        """Look at the file once; takes 0.3 s where it was touched in the last 10 s. Never raises for what is on disk.

        One read is enough for an older file, two equal ones 0.3 s apart for a younger. `previous` is the fingerprint of
        the content that the caller has, `last_scan` the time before it was last met; they spare the read where nothing
        changed, unless that content was provisional. `impatient` takes what is there once, if one read was consistent.
        """
        known = _Known(previous, last_scan, scans_since_hash, was_provisional) if previous else None
        try:
            try:
                return self._look(path, known, impatient)
            except FileNotFoundError:
                if known is None:
                    return Missing()
                # Between an editor's delete and its create there is no file.
                self._sleep(GAP_S)
                return self._look(path, known, impatient)
        except FileNotFoundError:
            self._seen.pop(path, None)
            return Missing()
        except NotRegularFileError as problem:
            return NotRegular(kind=problem.kind)
        except OSError as problem:
            return _refused(problem)

    def _look(self, path: Path, known: _Known | None, impatient: bool) -> Outcome:
        first = self._read_once(path, known)
        if not isinstance(first, _Read):
            return first
        young = self._age_s(path, first.fingerprint, known) < QUIET_S
        if young and not impatient:
            if first.fingerprint.size_bytes == 0 and known and known.fingerprint.size_bytes > 0:
                # An editor that truncates before it writes; or a full disk, which leaves it so.
                return BeingEdited(reason="it was emptied a moment ago")
            self._sleep(GAP_S)
            if self._read_again(path) != first:
                return BeingEdited(reason="it changed between two reads")
        return Settled(
            content=first.content,
            fingerprint=first.fingerprint,
            sha256=hashlib.sha256(first.content).hexdigest(),
            provisional=young,
        )

    def _read_again(self, path: Path) -> _Read | Unchanged | Oversize | BeingEdited | None:
        try:
            found = self._read_once(path, None)
        except FileNotFoundError:
            return None
        if isinstance(found, _Read):
            self._watched_s(path, found.fingerprint)
        return found

    def _read_once(self, path: Path, known: _Known | None) -> _Read | Unchanged | Oversize | BeingEdited:
        descriptor = self._open(path)
        try:
            before = Fingerprint.from_stat(self._stat(descriptor))
            if known and known.is_current(before):
                return Unchanged(fingerprint=before)
            if before.size_bytes > self._max_bytes:
                return Oversize(size_bytes=before.size_bytes)
            content = self._read_all(descriptor)
            after = Fingerprint.from_stat(self._stat(descriptor))
        finally:
            os.close(descriptor)
        if len(content) > self._max_bytes:
            return Oversize(size_bytes=max(len(content), after.size_bytes))
        if before != after or len(content) != after.size_bytes:
            # Also sshfs with default caching, which gave 4 of 61 bytes under the old size.
            return BeingEdited(reason="it changed while it was read")
        return _Read(content, after)

    def _read_all(self, descriptor: int) -> bytes:
        pieces, total = [], 0
        while total <= self._max_bytes:
            piece = self._read(descriptor, self._max_bytes + 1 - total)
            if not piece:
                break
            pieces.append(piece)
            total += len(piece)
        return b"".join(pieces)

    def _age_s(self, path: Path, found: Fingerprint, known: _Known | None) -> float:
        """Seconds since the file was touched, as far as that can be trusted.

        The stamps are the file server's clock. One that is ahead makes no file old enough, so the time for which this
        object saw it unchanged counts too. One that is behind makes every file old: it shows where a change since the
        last scan is stamped before that scan.
        """
        watched_s = self._watched_s(path, found)
        last_scan_s = known.last_scan.timestamp() if known and known.last_scan and found != known.fingerprint else None
        if last_scan_s is not None and found.changed_s < last_scan_s - _STAMP_GRAIN_S:
            return watched_s
        return max(watched_s, self._clock.now().timestamp() - found.changed_s)

    def _watched_s(self, path: Path, found: Fingerprint) -> float:
        now_s = self._clock.monotonic()
        fingerprint, since_s = self._seen.get(path, (None, now_s))
        if fingerprint != found:
            self._seen[path] = (found, now_s)
            return 0.0
        return now_s - since_s


def _refused(problem: OSError) -> Outcome:
    if problem.errno == errno.ENOTDIR:
        return Missing()
    if problem.errno == errno.ESTALE:
        # NFS: the file that was opened has been replaced.
        return BeingEdited(reason="it was replaced while it was read")
    return Unreadable(reason=(problem.strerror or str(problem)).lower())
