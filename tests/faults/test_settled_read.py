"""Files that change while they are read, or in ways that time stamps do not show."""

import errno
import hashlib
import os
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from trainflow_tui.clock import ManualClock
from trainflow_tui.collaboration.settled_read import (
    HASH_EVERY_SCANS,
    BeingEdited,
    Fingerprint,
    Missing,
    NotRegular,
    Oversize,
    Settled,
    SettledReader,
    Unchanged,
    Unreadable,
    needs_read,
)
from trainflow_tui.files import open_regular


@pytest.fixture
def clock():
    return ManualClock(datetime.now(UTC))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "GUIDANCE.md"


class Sleeper:
    """Time passes only here; `meanwhile` is what somebody else does in it."""

    def __init__(self, clock: ManualClock):
        self.clock, self.meanwhile, self.slept_s = clock, lambda: None, 0.0

    def __call__(self, seconds: float) -> None:
        self.slept_s += seconds
        self.clock.advance(seconds)
        self.meanwhile()


@pytest.fixture
def sleep(clock):
    return Sleeper(clock)


@pytest.fixture
def reader(clock, sleep):
    return SettledReader(clock=clock, sleep=sleep)


def test_a_young_file_is_read_twice_and_stays_provisional(reader, path, sleep):
    path.write_bytes(b"## a\n")
    found = reader.read(path)
    assert isinstance(found, Settled)
    assert (found.content, found.provisional) == (b"## a\n", True)
    assert found.sha256 == hashlib.sha256(b"## a\n").hexdigest()
    assert found.fingerprint == Fingerprint.of(path)
    assert sleep.slept_s == 0.3


def test_a_file_untouched_for_ten_seconds_is_read_once(reader, path, sleep, clock):
    path.write_bytes(b"## a\n")
    clock.advance(11)
    found = reader.read(path)
    assert isinstance(found, Settled)
    assert found.provisional is False
    assert sleep.slept_s == 0


def test_a_restored_time_stamp_makes_a_file_no_older(reader, path, sleep):
    path.write_bytes(b"## a\n")
    os.utime(path, (1, 1))  # as cp -p and rsync -t do
    found = reader.read(path)
    assert isinstance(found, Settled)
    assert found.provisional is True


def test_provisional_content_is_read_again_and_becomes_final(reader, path, clock):
    path.write_bytes(b"## a\n")
    first = reader.read(path)
    scanned = clock.now()
    clock.advance(300)
    again = reader.read(path, previous=first.fingerprint, last_scan=scanned, was_provisional=True)
    assert isinstance(again, Settled)
    assert again.provisional is False


def test_an_unchanged_file_is_not_read(clock, path):
    path.write_bytes(b"## a\n")
    clock.advance(300)
    reads = []
    reader = SettledReader(clock=clock, read=lambda fd, n: reads.append(n) or os.read(fd, n))
    first = reader.read(path)
    scanned, count = clock.now(), len(reads)
    assert reader.read(path, previous=first.fingerprint, last_scan=scanned) == Unchanged(fingerprint=first.fingerprint)
    assert len(reads) == count > 0


def test_needs_read_where_the_stamps_cannot_tell():
    scanned = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def of(age_s: float, **changes) -> Fingerprint:
        stamp = int((scanned.timestamp() - age_s) * 1e9)
        values = {"device": 1, "inode": 2, "size_bytes": 3, "mtime_ns": stamp, "ctime_ns": stamp}
        return Fingerprint(**(values | changes))

    def needs(previous, now, *, scans=0):
        return needs_read(previous, now, scans_since_hash=scans, last_scan=scanned)

    old = of(60)
    assert not needs(old, old)
    for field in ("device", "inode", "size_bytes", "mtime_ns", "ctime_ns"):
        assert needs(old, of(60, **{field: 99})), field
    assert not needs(of(2.1), of(2.1))
    assert needs(of(1.9), of(1.9))
    assert needs(of(-3600), of(-3600))  # a file server that is ahead
    assert [n for n in range(13) if needs(old, old, scans=n)] == [11, 12]
    assert needs(None, old)
    assert needs_read(old, old, scans_since_hash=0, last_scan=None)


def test_two_edits_within_one_grain_of_the_time_stamps_are_both_read(clock, path, sleep):
    """100 pairs, 50 ms apart, on a file system that keeps whole seconds; a scan lies between the two."""

    def coarse_stat(fd):
        found = os.fstat(fd)
        now_ns = int(clock.now().timestamp()) * 10**9
        return SimpleNamespace(
            st_dev=found.st_dev,
            st_ino=found.st_ino,
            st_size=found.st_size,
            st_mode=found.st_mode,
            st_mtime_ns=stamps.get("mtime", now_ns),
            st_ctime_ns=stamps.get("mtime", now_ns),
        )

    stamps = {}
    collected = 0
    reader = SettledReader(clock=clock, sleep=lambda seconds: None, stat=coarse_stat)
    for number in range(100):
        stamps["mtime"] = int(clock.now().timestamp()) * 10**9
        path.write_bytes(b"first  %03d" % number)
        first = reader.read(path)
        assert first.content == b"first  %03d" % number
        scanned = clock.now()
        clock.advance(0.05)
        path.write_bytes(b"second %03d" % number)
        second = reader.read(path, previous=first.fingerprint, last_scan=scanned)
        assert second.fingerprint == first.fingerprint  # nothing but the content tells them apart
        collected += second.content == b"second %03d" % number
        clock.advance(0.61)
    assert collected == 100


@pytest.mark.parametrize("in_place", [True, False])
def test_a_replacement_of_the_same_size_with_restored_times_is_seen(reader, clock, path, tmp_path, in_place):
    path.write_bytes(b"old %03d" % 999)
    seen = 0
    for number in range(100):
        clock.advance(300)
        known = reader.read(path)
        stat = path.stat()
        scanned = clock.now()
        target = path if in_place else tmp_path / "other"
        target.write_bytes(b"new %03d" % number)
        os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        if not in_place:
            target.replace(path)
        assert (path.stat().st_size, path.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
        clock.advance(300)
        found = reader.read(path, previous=known.fingerprint, last_scan=scanned)
        seen += isinstance(found, Settled) and found.content == b"new %03d" % number
    assert seen == 100


def test_a_change_that_no_stamp_shows_is_found_within_twelve_scans(clock, path):
    def frozen_stat(fd):
        found = os.fstat(fd)
        return SimpleNamespace(
            st_dev=1, st_ino=1, st_size=found.st_size, st_mode=found.st_mode, st_mtime_ns=10**9, st_ctime_ns=10**9
        )

    reader = SettledReader(clock=clock, sleep=lambda seconds: None, stat=frozen_stat)
    path.write_bytes(b"old")
    known = reader.read(path)
    path.write_bytes(b"new")
    outcomes = []
    for scans in range(HASH_EVERY_SCANS):
        scanned = clock.now()
        clock.advance(300)
        outcomes.append(reader.read(path, previous=known.fingerprint, last_scan=scanned, scans_since_hash=scans))
    assert [type(outcome) for outcome in outcomes[:-1]] == [Unchanged] * 11
    assert outcomes[-1].content == b"new"


DOCUMENT = b"".join(b"## Item %d\nplease do %d things\n\n" % (n, n) for n in range(70))[:2000]


def test_a_save_that_pauses_at_any_byte_is_never_taken_for_final(clock, path):
    """2,000 pauses, each longer than the scan; a scan in each, one more when the save is through and settled."""
    path.write_bytes(b"## before\n")
    clock.advance(300)
    reader = SettledReader(clock=clock, sleep=lambda seconds: clock.advance(seconds))
    known = reader.read(path)
    final_halves = 0
    with path.open("wb", buffering=0) as file:
        for offset in range(len(DOCUMENT)):
            clock.set_wall(datetime.now(UTC) + timedelta(seconds=0.5))
            found = reader.read(path, previous=known.fingerprint, last_scan=clock.now() - timedelta(seconds=300))
            final_halves += isinstance(found, Settled) and not found.provisional
            if isinstance(found, Settled):
                assert found.content == DOCUMENT[:offset]
            file.write(DOCUMENT[offset : offset + 1])
    assert final_halves == 0
    clock.set_wall(datetime.now(UTC) + timedelta(seconds=11))
    found = reader.read(path, previous=known.fingerprint, last_scan=clock.now() - timedelta(seconds=300))
    assert (found.content, found.provisional) == (DOCUMENT, False)


def test_a_save_that_goes_on_between_the_two_reads_is_being_edited(reader, path, sleep):
    for half in range(0, len(DOCUMENT), 100):
        path.write_bytes(DOCUMENT[:half])
        sleep.meanwhile = lambda: path.write_bytes(DOCUMENT)
        assert isinstance(reader.read(path), BeingEdited)


@pytest.mark.parametrize("change", ["append", "truncate", "rewrite"])
def test_a_save_in_the_middle_of_one_read_is_being_edited(clock, path, change):
    path.write_bytes(b"0123456789" * 100)
    clock.advance(300)

    def read(fd, count):
        piece = os.read(fd, min(count, 100))
        if piece and os.lseek(fd, 0, os.SEEK_CUR) == 500:
            if change == "append":
                with path.open("ab") as file:
                    file.write(b"more")
            elif change == "truncate":
                os.truncate(path, 0)
            else:
                path.write_bytes(b"abcdefghij" * 100)
                os.utime(path, (5, 5))
        return piece

    assert isinstance(SettledReader(clock=clock, read=read).read(path), BeingEdited)


def test_a_read_shorter_than_the_file_is_not_accepted(clock, path):
    """sshfs with default caches: the old size with the new bytes gave 4 of 61."""
    path.write_bytes(b"x" * 61)
    clock.advance(300)
    pieces = iter([b"xxxx", b""])
    reader = SettledReader(clock=clock, read=lambda fd, count: next(pieces))
    assert isinstance(reader.read(path), BeingEdited)


def test_an_impatient_reader_takes_a_consistent_read_as_provisional(reader, path, sleep):
    path.write_bytes(b"half")
    found = reader.read(path, impatient=True)
    assert (found.content, found.provisional, sleep.slept_s) == (b"half", True, 0)


def test_not_even_an_impatient_reader_takes_a_torn_read(clock, path):
    path.write_bytes(b"x" * 61)
    pieces = iter([b"xxxx", b""])
    reader = SettledReader(clock=clock, read=lambda fd, count: next(pieces))
    assert isinstance(reader.read(path, impatient=True), BeingEdited)


class TestAnEmptiedFile:
    def known(self, reader, path, clock):
        path.write_bytes(b"## all my guidance\n")
        clock.advance(300)
        return {"previous": reader.read(path).fingerprint, "last_scan": clock.now() - timedelta(seconds=300)}

    def test_waits_as_being_edited_until_it_has_been_so_for_ten_seconds(self, reader, path, clock):
        known = self.known(reader, path, clock)
        os.truncate(path, 0)
        clock.set_wall(datetime.now(UTC))
        outcomes = []
        for delay_s in (1, 2, 5, 10):
            outcomes.append(type(reader.read(path, **known)))
            clock.advance(delay_s)
        assert outcomes == [BeingEdited] * 4
        found = reader.read(path, **known)
        assert (found.content, found.provisional) == (b"", False)

    def test_is_settled_on_a_server_whose_clock_is_an_hour_ahead(self, reader, path, clock):
        known = self.known(reader, path, clock)
        os.truncate(path, 0)
        clock.set_wall(datetime.now(UTC) - timedelta(hours=1))
        assert isinstance(reader.read(path, **known), BeingEdited)
        clock.advance(11)
        assert isinstance(reader.read(path, **known), Settled)

    def test_that_was_empty_before_is_settled(self, reader, path, clock):
        path.write_bytes(b"")
        first = reader.read(path)
        assert isinstance(first, Settled)
        path.write_bytes(b"")
        assert isinstance(reader.read(path, previous=first.fingerprint, last_scan=clock.now()), Settled)


def test_a_server_whose_clock_is_behind_makes_no_fresh_file_old(reader, path, clock, sleep):
    path.write_bytes(b"## a\n")
    clock.advance(3600)  # ours is an hour ahead of the file's stamps
    known = reader.read(path)
    scanned = clock.now()
    path.write_bytes(b"## b, half")
    found = reader.read(path, previous=known.fingerprint, last_scan=scanned)
    assert (found.content, found.provisional) == (b"## b, half", True)
    clock.advance(11)
    assert reader.read(path, previous=known.fingerprint, last_scan=scanned).provisional is False


def test_a_missing_file_is_missing_at_once_where_there_never_was_one(reader, path, sleep):
    assert reader.read(path) == Missing()
    assert reader.read(path / "below") == Missing()
    assert sleep.slept_s == 0


def test_an_editor_that_deletes_and_creates_is_not_missing(reader, path, clock, sleep):
    path.write_bytes(b"old")
    known = reader.read(path)
    path.unlink()
    sleep.meanwhile = lambda: path.write_bytes(b"new") if not path.exists() else None
    found = reader.read(path, previous=known.fingerprint, last_scan=clock.now())
    assert found.content == b"new"


def test_a_file_that_stays_away_is_missing(reader, path, clock):
    path.write_bytes(b"old")
    known = reader.read(path)
    path.unlink()
    assert reader.read(path, previous=known.fingerprint, last_scan=clock.now()) == Missing()


def test_a_file_that_vanishes_between_two_reads_is_being_edited(reader, path, sleep):
    path.write_bytes(b"x")
    sleep.meanwhile = lambda: path.unlink(missing_ok=True)
    assert isinstance(reader.read(path), BeingEdited)


def test_an_oversized_file_is_told_with_its_size_and_not_read(clock, path):
    with path.open("wb") as file:
        file.truncate((1 << 20) + 1)
    reads = []
    reader = SettledReader(clock=clock, read=lambda fd, n: reads.append(n) or os.read(fd, n))
    assert reader.read(path) == Oversize(size_bytes=(1 << 20) + 1)
    assert not reads


def test_a_file_of_exactly_the_cap_is_read(clock, path):
    path.write_bytes(b"x" * 1000)
    clock.advance(300)
    assert len(SettledReader(clock=clock, max_bytes=1000).read(path).content) == 1000
    assert SettledReader(clock=clock, max_bytes=999).read(path) == Oversize(size_bytes=1000)


def test_a_file_without_end_stops_at_the_cap(clock, path):
    path.write_bytes(b"x")
    clock.advance(300)
    reader = SettledReader(clock=clock, read=lambda fd, count: b"x" * min(count, 7), max_bytes=1000)
    assert reader.read(path) == Oversize(size_bytes=1001)


@pytest.mark.parametrize("kind", ["symbolic link", "directory", "named pipe"])
def test_what_is_no_regular_file_is_told_and_not_read(reader, path, tmp_path, kind):
    if kind == "symbolic link":
        (tmp_path / "secret").write_bytes(b"secret")
        path.symlink_to(tmp_path / "secret")
    elif kind == "directory":
        path.mkdir()
    else:
        os.mkfifo(path)
    assert reader.read(path) == NotRegular(kind=kind)


class FailingCalls:
    """The n-th call to the system fails."""

    def __init__(self, n: int, code: int):
        self.left, self.code = n, code

    def __call__(self, call):
        def wrapped(*args):
            self.left -= 1
            if self.left == 0:
                raise OSError(self.code, os.strerror(self.code))
            return call(*args)

        return wrapped


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.ESTALE, errno.ENOENT, errno.EMFILE, errno.ELOOP])
def test_no_failing_call_raises_or_gives_content_or_leaves_a_descriptor(clock, path, code):
    path.write_bytes(b"0123456789")
    open_before = len(os.listdir("/dev/fd"))
    kinds = set()
    for n in range(1, 20):
        fail = FailingCalls(n, code)
        reader = SettledReader(
            clock=clock, sleep=lambda s: None, open_file=fail(open_regular), stat=fail(os.fstat), read=fail(os.read)
        )
        found = reader.read(path)
        if fail.left > 0:
            assert isinstance(found, Settled)
            break
        assert not isinstance(found, Settled)
        kinds.add(type(found))
    else:
        pytest.fail("the calls never ran out")
    assert n == 11  # 2 reads: open, stat, content, end, stat
    wanted = {errno.ESTALE: {BeingEdited}, errno.ENOENT: {Missing, BeingEdited}}.get(code, {Unreadable})
    assert kinds == wanted
    assert len(os.listdir("/dev/fd")) == open_before


def test_the_reason_of_a_refusal_is_the_system_s(clock, path):
    def deny(path):
        raise PermissionError(errno.EACCES, "Permission denied")

    assert SettledReader(clock=clock, open_file=deny).read(path) == Unreadable(reason="permission denied")
