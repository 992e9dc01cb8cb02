"""Every way of saving a human file ends with its last content collected, once, and the file as the person left it (T-05 to T-08)."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest

from trainflow_tui.collaboration import guidance, tasks
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.workspace import Workspace


def in_place(path, text):
    with open(path, "r+") as stream:
        stream.truncate(0)
        stream.write(text)


def append(path, text):
    with open(path, "a") as stream:
        stream.write(text[len(path.read_text()) :])


def rename_over(path, text):
    fresh = path.with_name("4913")
    fresh.write_text(text)
    os.replace(fresh, path)


def backup_rename(path, text):
    os.replace(path, path.with_name(path.name + "~"))
    path.write_text(text)


def delete_and_create(path, text):
    path.unlink()
    path.write_text(text)


def same_stamp(path, text):
    found = path.stat()
    path.write_text(text)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def copy_with_stamp(path, text):
    other = path.with_name("restored")
    other.write_text(text)
    shutil.copystat(path, other)
    os.replace(other, path)


def with_bom_and_crlf(path, text):
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())


def utf16(path, text):
    path.write_bytes(text.encode("utf-16"))


def gb18030(path, text):
    path.write_bytes((text + "\n保留检查点\n").encode("gb18030"))


def swap_file_beside(path, text):
    path.with_name(".GUIDANCE.md.swp").write_bytes(b"b0VIM 9.0")
    in_place(path, text)
    path.with_name(".GUIDANCE.md.swp").unlink()


def truncate_wait_write(path, text):
    path.write_text("")
    path.write_text(text)


STYLES = [
    in_place,
    append,
    rename_over,
    backup_rename,
    delete_and_create,
    same_stamp,
    copy_with_stamp,
    with_bom_and_crlf,
    utf16,
    gb18030,
    swap_file_beside,
    truncate_wait_write,
]


@pytest.fixture(params=["disk", "tmpfs"])
def root(request, tmp_path):
    if request.param == "disk":
        place = tmp_path / "ws"
    else:
        if not os.access("/dev/shm", os.W_OK):
            pytest.skip("no tmpfs at /dev/shm")
        place = request.getfixturevalue("tmp_path_factory").getbasetemp()
        place = type(place)(f"/dev/shm/trainflow-test-{os.getpid()}-{time.time_ns()}")
    place.mkdir(mode=0o700)
    yield place
    shutil.rmtree(place, ignore_errors=True)


def settled_reader():
    return SettledReader(sleep=lambda _: None)


@pytest.mark.parametrize("style", STYLES, ids=lambda f: f.__name__)
def test_each_way_of_saving_is_collected_by_the_second_scan(root, actor, style):
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    reader = settled_reader()
    text = path.read_text()
    for number in range(12):
        text += f"\n## item {number}\n\nbody {number}\n"
        style(path, text)
        left = path.read_bytes()
        for _ in range(2):
            collect(workspace, actor=actor, reader=reader)
        headings = [i.heading for i in guidance.listed(workspace.ledger) if i.removed_at is None]
        assert f"item {number}" in headings
        assert path.read_bytes() == left
    events = workspace.ledger.query("SELECT count(*) FROM event WHERE kind = 'guidance.collected'")[0][0]
    extra = 11 if style is gb18030 else 0  # its last line belongs to the item before it, which is thus revised
    assert events <= 12 + 2 * extra
    workspace.close()


def test_two_edits_within_one_second_end_with_the_last(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    reader = settled_reader()
    for number in range(100):
        path.write_text(f"## G1 a\n\nfirst  {number:04}\n")
        collect(workspace, actor=actor, reader=reader)
        path.write_text(f"## G1 a\n\nsecond {number:04}\n")
        collect(workspace, actor=actor, reader=reader)
        assert guidance.listed(workspace.ledger)[0].text.endswith(f"second {number:04}")


def test_a_replacement_of_the_same_size_and_time_is_seen(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    reader = settled_reader()
    path.write_text("## G1 a\n\nvalue 0000\n")
    past = time.time() - 3600
    os.utime(path, (past, past))
    for number in range(1, 201):
        other = path.with_name("o")
        other.write_text(f"## G1 a\n\nvalue {number:04}\n")
        os.utime(other, (past, past))
        os.replace(other, path)
        collect(workspace, actor=actor, reader=reader)
        assert guidance.listed(workspace.ledger)[0].text.endswith(f"value {number:04}")


def test_a_half_saved_file_leaves_nothing_final(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    whole = "".join(f"## G{i} item {i}\n\nbody {i} ends here\n\n" for i in range(8)).encode()
    reader = settled_reader()
    for cut in range(0, len(whole), 3):
        path.write_bytes(whole[:cut])
        collect(workspace, actor=actor, reader=reader)
        final = [i for i in guidance.listed(workspace.ledger) if not i.provisional and i.removed_at is None]
        assert final == []
    path.write_bytes(whole)
    os.utime(path, (time.time() - 60,) * 2)
    old = SettledReader(sleep=lambda _: None)
    collect(workspace, actor=actor, reader=old)
    # Its change time is of this moment, so it rests ten seconds later; the reader's clock is the system's.
    assert [i.id for i in guidance.listed(workspace.ledger) if i.removed_at is None] == [f"G{i}" for i in range(8)]


def test_a_missing_an_oversize_and_an_undecodable_file_stop_nothing_else(workspace, actor):
    for name in ("a", "b", "c", "d"):
        tasks.create(workspace, title=name, actor=actor)
    collect(workspace, actor=actor, reader=settled_reader())
    (workspace.task_folder("a") / "GUIDANCE.md").unlink()
    (workspace.task_folder("b") / "GUIDANCE.md").write_bytes(b"x" * (1 << 20) + b"y")
    (workspace.task_folder("c") / "GUIDANCE.md").write_bytes(b"## \x00\x01\x02")
    (workspace.task_folder("d") / "GUIDANCE.md").write_text("## G1 kept\n")
    (workspace.task_folder("d") / "QUESTIONS.md").unlink()
    os.mkfifo(workspace.task_folder("d") / "QUESTIONS.md")
    found = collect(workspace, actor=actor, reader=settled_reader())
    assert {e.code for e in found.errors} == {"missing", "oversize", "undecodable", "not-regular"}
    assert [i.id for i in guidance.listed(workspace.ledger)] == ["G1"]
    assert not (workspace.task_folder("a") / "GUIDANCE.md").exists()


@pytest.mark.skipif(shutil.which("vim") is None, reason="vim is not installed")
@pytest.mark.parametrize("mode", ["yes", "no"])
def test_vim_saves_are_collected_once(workspace, actor, mode):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    script = ["-c", f"set backupcopy={mode}", "-c", "normal Go## From vim", "-c", "wq"]
    subprocess.run(["vim", "-u", "NONE", "-es", *script, str(path)], check=False, stdin=subprocess.DEVNULL)
    left = path.read_bytes()
    for _ in range(3):
        collect(workspace, actor=actor, reader=settled_reader())
    assert [i.heading for i in guidance.listed(workspace.ledger)] == ["From vim"]
    assert path.read_bytes() == left


def test_byte_order_mark_and_line_ends_change_no_item(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    text = "## One\n\nbody\n\n## Two\n"
    for content in (
        text,
        text.replace("\n", "\r\n"),
        "\ufeff" + text,
        text.replace("body", "body  "),
        text.rstrip("\n"),
    ):
        path.write_bytes(content.encode())
        collect(workspace, actor=actor, reader=settled_reader())
    assert [(i.heading, i.version) for i in guidance.listed(workspace.ledger)] == [("One", 1), ("Two", 1)]


def test_going_back_to_an_older_text_is_a_new_version(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    for body in ("A", "B", "A"):
        path.write_text(f"## G1 x\n\n{body}\n")
        collect(workspace, actor=actor, reader=settled_reader())
    assert [(i.version, i.text[-1]) for i in guidance.listed(workspace.ledger)] == [(3, "A")]


def test_a_removed_item_stays_on_record_and_returns_as_itself(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    both = "## One\n\na\n\n## Two\n\nb\n"
    path.write_text(both)
    collect(workspace, actor=actor, reader=settled_reader())
    ids = [i.id for i in guidance.listed(workspace.ledger)]
    path.write_text("## Two\n\nb\n")
    collect(workspace, actor=actor, reader=settled_reader())
    assert [i.heading for i in guidance.listed(workspace.ledger) if i.removed_at] == ["One"]
    path.write_text(both)
    collect(workspace, actor=actor, reader=settled_reader())
    found = guidance.listed(workspace.ledger)
    assert sorted(i.id for i in found) == sorted(ids)
    assert all(i.removed_at is None for i in found)


def test_items_that_change_places_keep_their_ids_and_show_their_order(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    path.write_text("## One\n\na\n\n## Two\n\nb\n\n## Three\n\nc\n")
    collect(workspace, actor=actor, reader=settled_reader())
    before = {i.heading: i.id for i in guidance.listed(workspace.ledger)}
    path.write_text("## Three\n\nc\n\n## One\n\na\n\n## Two\n\nb\n")
    found = collect(workspace, actor=actor, reader=settled_reader())
    assert (found.new, found.revised, found.removed) == (0, 0, 0)
    listed = guidance.listed(workspace.ledger)
    assert [i.heading for i in listed] == ["Three", "One", "Two"]
    assert {i.heading: i.id for i in listed} == before
    assert collect(workspace, actor=actor, reader=settled_reader()).new == 0
    assert workspace.ledger.verify().projections_match
