"""Durable file operations, and what a path names."""

import errno
import os
import socket
import stat
import threading

import pytest

from trainflow_tui import files
from trainflow_tui.errors import DamagedError, RefusedError
from trainflow_tui.files import (
    TEMPORARY_NAME,
    NotRegularFileError,
    create_exclusive,
    ensure_private_directory,
    filesystem_kind,
    open_regular,
    write_atomic,
)


@pytest.fixture(params=[0o000, 0o077], ids=oct)
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_write_atomic_replaces_the_content_and_leaves_nothing_else(tmp_path):
    path = tmp_path / "BOARD.md"
    write_atomic(path, b"one")
    write_atomic(path, b"two" * 100_000)
    assert path.read_bytes() == b"two" * 100_000
    assert os.listdir(tmp_path) == ["BOARD.md"]


def test_files_are_private_under_any_umask(tmp_path, umask):
    write_atomic(tmp_path / "a", b"x")
    create_exclusive(tmp_path / "b", b"x")
    write_atomic(tmp_path / "c", b"x", mode=0o644)
    assert [mode_of(tmp_path / name) for name in "abc"] == [0o600, 0o600, 0o644]


def test_write_atomic_replaces_a_link_and_not_its_target(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(b"precious")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert target.read_bytes() == b"precious"
    assert not link.is_symlink()
    assert link.read_bytes() == b"new"


@pytest.mark.parametrize("call", ["open", "write", "fsync", "replace"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_failed_write_keeps_the_old_content_and_leaves_nothing_behind(tmp_path, monkeypatch, call, code):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fail(*args, **kwargs):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises(OSError) as raised:
            write_atomic(path, b"new")
    assert raised.value.errno == code
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, rest: real(fd, bytes(rest[:3])))
    write_atomic(tmp_path / "file", b"0123456789")
    assert (tmp_path / "file").read_bytes() == b"0123456789"


def test_the_content_is_synced_before_the_name_and_the_name_before_return(tmp_path, monkeypatch):
    calls = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(fd):
        calls.append("directory" if stat.S_ISDIR(os.fstat(fd).st_mode) else "content")
        real_fsync(fd)

    def replace(source, target):
        calls.append("rename")
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    write_atomic(tmp_path / "file", b"x")
    assert calls == ["content", "rename", "directory"]


def test_a_directory_that_cannot_be_synced_is_passed_over_but_a_failing_disk_is_not(tmp_path, monkeypatch):
    real = os.fsync
    failure = [errno.EINVAL]

    def fsync(fd):
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(failure[0], "")
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "file", b"x")
    failure[0] = errno.EIO
    with pytest.raises(OSError):
        write_atomic(tmp_path / "file", b"y")


def test_create_exclusive_touches_nothing_that_is_there(tmp_path):
    path = tmp_path / "GUIDANCE.md"
    assert create_exclusive(path, b"template") is True
    path.write_bytes(b"mine")
    assert create_exclusive(path, b"template") is False
    assert path.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["GUIDANCE.md"]


def test_create_exclusive_does_not_write_through_a_dangling_link(tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    assert create_exclusive(link, b"x") is False
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("hard_links", [True, False])
def test_one_of_many_creators_wins_and_its_content_is_whole(tmp_path, monkeypatch, hard_links):
    if not hard_links:
        monkeypatch.setattr(os, "link", lambda *a, **k: (_ for _ in ()).throw(OSError(errno.EPERM, "")))
    monkeypatch.setattr(files.os.path, "lexists", lambda path: False)  # all of them pass the first look
    start, won = threading.Barrier(8), []

    def create(number):
        start.wait()
        if create_exclusive(tmp_path / "file", bytes([number]) * 1000):
            won.append(number)

    threads = [threading.Thread(target=create, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert (tmp_path / "file").read_bytes() == bytes(won) * 1000
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_creation_leaves_no_name(tmp_path, monkeypatch):
    def fail(fd):
        raise OSError(errno.ENOSPC, "")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError):
        create_exclusive(tmp_path / "file", b"x")
    assert os.listdir(tmp_path) == []


def test_unfinished_files_have_a_name_that_is_known(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "replace", lambda source, target: seen.append(os.path.basename(source)))
    write_atomic(tmp_path / "x", b"x")
    assert TEMPORARY_NAME.fullmatch(seen[0])


def test_directories_are_made_private_with_those_above_them(tmp_path, umask):
    ensure_private_directory(tmp_path / "a" / "b")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700
    ensure_private_directory(tmp_path / "a" / "b")


def test_a_directory_that_exists_keeps_its_mode(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o755)
    ensure_private_directory(tmp_path / "shared")
    assert mode_of(tmp_path / "shared") == 0o755


def test_a_directory_that_others_may_write_to_is_refused(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(RefusedError) as raised:
        ensure_private_directory(tmp_path / "open")
    assert raised.value.code == "directory-not-private"
    assert "chmod go-w" in raised.value.next_step


@pytest.mark.parametrize("kind", ["file", "link", "dangling link"])
def test_what_is_no_directory_is_refused(tmp_path, kind):
    path = tmp_path / "x"
    if kind == "file":
        path.write_bytes(b"")
    else:
        path.symlink_to(tmp_path if kind == "link" else tmp_path / "nothing")
    with pytest.raises(RefusedError) as raised:
        ensure_private_directory(path)
    assert raised.value.code == "not-a-directory"
    assert not (tmp_path / "nothing").exists()


def make(path, kind):
    if kind == "directory":
        path.mkdir()
    elif kind == "named pipe":
        os.mkfifo(path)
    elif kind == "symbolic link":
        (path.parent / "target").write_bytes(b"secret")
        path.symlink_to(path.parent / "target")
    elif kind == "socket":
        server = socket.socket(socket.AF_UNIX)
        here = os.getcwd()
        os.chdir(path.parent)  # the address is limited to 108 bytes
        server.bind(path.name)
        os.chdir(here)
        server.close()


@pytest.mark.parametrize("kind", ["directory", "named pipe", "symbolic link", "socket"])
def test_only_regular_files_are_opened_and_a_pipe_without_writer_does_not_block(tmp_path, kind):
    make(tmp_path / "x", kind)
    open_before = len(os.listdir("/dev/fd"))
    with pytest.raises(NotRegularFileError) as raised:
        open_regular(tmp_path / "x")
    assert raised.value.kind == kind
    assert isinstance(raised.value, DamagedError)
    assert kind in raised.value.message
    assert len(os.listdir("/dev/fd")) == open_before


def test_a_device_is_not_opened():
    with pytest.raises(NotRegularFileError) as raised:
        open_regular("/dev/null")
    assert raised.value.kind == "character device"


def test_a_regular_file_is_opened_and_not_inherited(tmp_path):
    (tmp_path / "x").write_bytes(b"content")
    descriptor = open_regular(tmp_path / "x")
    try:
        assert os.read(descriptor, 100) == b"content"
        assert not os.get_inheritable(descriptor)
    finally:
        os.close(descriptor)


def test_a_missing_file_is_told_as_such(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


def table(tmp_path, *mounts: tuple[str, str]):
    """A mount table in the kernel's form, see proc(5)."""
    path = tmp_path / "mountinfo"
    rows = [
        f"{n + 20} 1 8:{n} / {point} rw,relatime shared:{n} master:1 - {kind} source{n} rw"
        for n, (point, kind) in enumerate(mounts)
    ]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("name", "local", "watchable"),
    [
        ("ext4", True, True),
        ("xfs", True, True),
        ("tmpfs", True, True),
        ("overlay", True, False),
        ("nfs", False, False),
        ("nfs4", False, False),
        ("cifs", False, False),
        ("smb3", False, False),
        ("fuse.sshfs", False, False),
        ("fuse.gocryptfs", False, False),
        ("lustre", False, False),
        ("gpfs", False, False),
        ("ceph", False, False),
        ("9p", False, False),
        ("virtiofs", False, False),
        ("beegfs", False, False),
        ("something-of-2031", False, False),
    ],
)
def test_a_network_or_unknown_file_system_is_not_trusted(tmp_path, name, local, watchable):
    found = filesystem_kind("/data/run/x", mounts=table(tmp_path, ("/", "ext4"), ("/data", name)))
    assert (found.name, found.local, found.watchable) == (name, local, watchable)


def test_the_longest_mount_point_above_the_path_counts(tmp_path):
    mounts = table(tmp_path, ("/", "ext4"), ("/data", "xfs"), ("/data/scratch", "lustre"), ("/data/scratch2", "nfs4"))
    assert filesystem_kind("/data/scratch/x", mounts=mounts).name == "lustre"
    assert filesystem_kind("/data/scratch", mounts=mounts).name == "lustre"
    assert filesystem_kind("/data/scratch3", mounts=mounts).name == "xfs"
    assert filesystem_kind("/database", mounts=mounts).name == "ext4"


def test_the_last_mount_on_one_point_counts(tmp_path):
    assert filesystem_kind("/a/b", mounts=table(tmp_path, ("/", "ext4"), ("/a", "xfs"), ("/a", "nfs4"))).name == "nfs4"


def test_blanks_in_a_mount_point_are_read_as_the_kernel_writes_them(tmp_path):
    mounts = table(tmp_path, ("/", "ext4"), (r"/my\040disk\134x", "fuse.sshfs"))
    assert filesystem_kind("/my disk\\x/file", mounts=mounts).name == "fuse.sshfs"


def test_links_are_followed_to_where_the_file_is(tmp_path):
    (tmp_path / "link").symlink_to("/remote")
    mounts = table(tmp_path, ("/", "ext4"), ("/remote", "nfs4"))
    assert filesystem_kind(tmp_path / "link" / "x", mounts=mounts).name == "nfs4"


def test_a_system_without_a_mount_table_counts_as_local(tmp_path):
    found = filesystem_kind(tmp_path, mounts=tmp_path / "nothing")
    assert (found.name, found.local) == ("unknown", True)


def test_damaged_lines_of_the_mount_table_are_passed_over(tmp_path):
    mounts = table(tmp_path, ("/", "ext4"))
    mounts.write_bytes(b"\xff\xfe\n\n1 2 3\n - \n20 1 8:1 / / - nfs4\n" + mounts.read_bytes())
    assert filesystem_kind("/x", mounts=mounts).name == "ext4"


@pytest.mark.skipif(not os.path.exists("/proc/self/mountinfo"), reason="no mount table on this system")
def test_the_table_of_this_machine_is_read():
    assert filesystem_kind("/proc/self").name == "proc"
