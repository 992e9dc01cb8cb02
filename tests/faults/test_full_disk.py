"""A disk that is full, read-only, without inodes, or that fails to make bytes durable (T-42, T-43).

What cannot be kept is refused and stays as it was; the screen lives, says so, and goes on where there is room again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import time

import apsw
import pytest

from tests.faults.places import collector, fill, small_disk, until
from tests.tui.conftest import QuietDesk, screen_text
from tests.tui.test_approval_dialog import until as until_shown
from trainflow_tui import files, refresh
from trainflow_tui.app import TrainflowApp
from trainflow_tui.collaboration import approvals, guidance, health, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.errors import DamagedError
from trainflow_tui.files import shortage
from trainflow_tui.screens.desk import Desk
from trainflow_tui.screens.dialogs.approval import ApprovalDialog
from trainflow_tui.workspace import Workspace

BANNER_S = 5.0
ROOM = "less than 1 MiB is left"


@pytest.fixture
def disk(tmp_path):
    with small_disk(tmp_path / "disk") as place:
        yield place


@pytest.fixture
def root(disk, actor):
    workspace = Workspace.open(disk / "ws", create=True)
    tasks.create(workspace, title="t", actor=actor)
    workspace.close()
    return disk / "ws"


def asked(workspace, actor, title="Restart"):
    wanted = ApprovalRequest(task="t", title=title, payload=CommandPayload(argv=["x"]), reversible="yes")
    return approvals.request(workspace.ledger, wanted, actor=actor).id


def state(workspace, id):
    return approvals.get(workspace.ledger, id).state


def test_a_disk_with_room_has_no_shortage(disk):
    assert shortage(disk) == ""
    stuffing = fill(disk)
    assert shortage(disk) == ROOM
    stuffing.unlink()
    assert shortage(disk) == ""
    assert shortage(disk / "nowhere") == ""


def test_the_last_twentieth_of_a_small_disk_is_left_to_what_people_decide(tmp_path):
    with small_disk(tmp_path / "disk", "size=100m") as place:
        with open(place / "most", "wb") as stream:
            stream.write(bytes(94 << 20))
        assert shortage(place) == ""
        with open(place / "more", "wb") as stream:
            stream.write(bytes(3 << 20))
        assert shortage(place) == "3 MiB are left"


def filled(disk, workspace):
    """Take all the room, also that which SQLite's journal has before it must grow; returns the file that has it."""
    connection = apsw.Connection(str(workspace.ledger.path))
    until(lambda: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall() == [(0, 0, 0)], "an empty journal")
    connection.close()
    return fill(disk)


def test_every_write_to_a_full_disk_is_refused_and_done_when_there_is_room(root, disk, actor):
    workspace = Workspace.open(root)
    id, head = asked(workspace, actor), workspace.ledger.head()
    stuffing = filled(disk, workspace)
    for code, write in (
        ("disk-full", lambda: approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None)),
        ("disk-full", lambda: asked(workspace, actor, "Another")),
        ("guidance-not-recorded", lambda: refresh.add_guidance(workspace, task="t", text="wish", actor=actor)),
    ):
        with pytest.raises(DamagedError) as refused:
            write()
        assert refused.value.code == code
        assert refused.value.next_step
    assert (state(workspace, id), workspace.ledger.head()) == ("pending", head)
    assert os.listdir(workspace.spool) == []
    stuffing.unlink()
    assert approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None).state == "approved"
    verified = workspace.ledger.verify()
    assert (verified.first_bad_seq, verified.integrity, verified.projections_match) == (None, "ok", True)
    workspace.close()


def test_a_workspace_on_a_full_disk_opens_to_be_read_or_says_why_not(root, disk, actor, command):
    stuffing = fill(disk)
    command.root = root
    code, said = command.json("task", "list")
    assert (code, [r["code"] for r in said["reasons"]]) in ((0, []), (20, ["disk-full"]))
    code, said = command.json("--readonly", "task", "list")
    assert (code, [t["id"] for t in said["tasks"]]) == (0, ["t"])
    stuffing.unlink()
    code, said = command.json("task", "list")
    assert (code, [t["id"] for t in said["tasks"]]) == (0, ["t"])


async def test_a_reader_on_a_full_disk_sees_what_is_recorded_when_there_is_room_again(root, disk, actor):
    stuffing = fill(disk)
    desk = Desk(Workspace.open(root, flags={"readonly": True}))
    try:
        assert [t.code for t in desk.first.troubles] == ["disk-short"]
        assert await desk.changed_since(desk.first.version) is None
        stuffing.unlink()
        writing = Workspace.open(root)
        tasks.create(writing, title="u", actor=actor)
        seen = await desk.changed_since(desk.first.version)
        assert ([t.id for t in seen.tasks], seen.troubles, seen.readonly) == (["t", "u"], [], True)
        writing.close()
    finally:
        desk.close()


def test_a_round_on_a_full_disk_says_so_and_follows_no_log(root, disk, actor, monkeypatch):
    workspace = Workspace.open(root)
    followed = []
    monkeypatch.setattr(refresh.follow.Follower, "follow_all", lambda *_: followed.append(1) or refresh.follow.NOTHING)
    stuffing = fill(disk)
    done = refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert "disk-short" in [t.code for t in done.troubles]
    assert followed == []
    stuffing.unlink()
    done = refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert (done.troubles, followed) == ([], [1])
    workspace.close()


async def test_the_screen_lives_on_a_full_disk_says_so_and_decides_when_there_is_room(root, disk, actor):
    workspace = Workspace.open(root)
    id = asked(workspace, actor)
    app = TrainflowApp(QuietDesk(Workspace.open(root)))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        stuffing = filled(disk, workspace)
        since = time.monotonic()
        await until_shown(app, pilot, lambda: f"⚠ disk: {ROOM}" in screen_text(app)[0], seconds=30)
        print(f"banner after {time.monotonic() - since:.1f} s, to be {BANNER_S:.0f}")
        await _approve(app, pilot)
        await until_shown(app, pilot, lambda: app._notifications, seconds=30)
        assert [n.severity for n in app._notifications] == ["error"]
        assert "nothing was recorded" in next(iter(app._notifications)).message
        assert state(workspace, id) == "pending"
        assert app.is_running
        stuffing.unlink()
        app.clear_notifications()
        await until_shown(app, pilot, lambda: "⚠" not in screen_text(app)[0], seconds=30)
        await _approve(app, pilot)
        await until_shown(app, pilot, lambda: state(workspace, id) == "approved", seconds=30)
    workspace.close()


async def _approve(app, pilot):
    await pilot.press("a")
    await until_shown(app, pilot, lambda: isinstance(app.screen, ApprovalDialog) and app.screen.armed_at < 1e9)
    await until_shown(app, pilot, lambda: time.monotonic() > app.screen.armed_at)
    await pilot.press("a")
    await until_shown(app, pilot, lambda: not isinstance(app.screen, ApprovalDialog))


def test_a_collector_on_a_full_disk_stays_and_collects_when_there_is_room(root, disk, actor):
    workspace = Workspace.open(root)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    with collector(root, "--poll-seconds", "1") as running:
        until(lambda: workspace.ledger.query("SELECT 1 FROM pulse WHERE topic = 'scan'"), "a scan")
        path.write_text("## wish\n\n" + "word " * 4000 + "\n")
        stuffing = fill(disk)
        until(lambda: _log_says(workspace, "disk-short") or _has_nothing_to_write(disk), "a round on the full disk")
        assert running.poll() is None
        stuffing.unlink()
        until(lambda: guidance.listed(workspace.ledger), "the item")
        assert running.poll() is None
    assert running.returncode == 0
    workspace.close()


def _log_says(workspace, code):
    path = workspace.logs / "trainflow.jsonl"
    return path.exists() and code in path.read_text()


def _has_nothing_to_write(disk):
    return shortage(disk) == ROOM


# Read-only, without inodes, failing


def test_on_a_read_only_disk_decisions_are_refused_and_everything_can_be_read(root, disk, actor, command):
    workspace = Workspace.open(root)
    id = asked(workspace, actor)
    workspace.close()
    command.root = root
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    code, said = command.json("approval", "decide", id, "approve")
    assert (code, said["status"]) == (20, "attention")
    code, said = command.json("--readonly", "approval", "show", id)
    assert (code, said["approval"]["state"]) == (11, "pending")
    assert shortage(root) == "the disk is mounted read-only"
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    code, said = command.json("approval", "decide", id, "approve")
    assert (code, said["approval"]["state"]) == (0, "approved")


def test_without_inodes_nothing_is_half_recorded_and_the_ledger_still_decides(tmp_path, actor):
    with small_disk(tmp_path / "disk", "size=6m,nr_inodes=80") as place:
        workspace = Workspace.open(place / "ws", create=True)
        tasks.create(workspace, title="t", actor=actor)
        id = asked(workspace, actor)
        made = 0
        with contextlib.suppress(OSError):
            for made in range(100):
                (place / f"f{made}").touch()
        assert 0 < made < 100
        assert shortage(place) == "the disk takes no more files"
        assert [t.code for t in health.standing(workspace)] == ["disk-short"]
        with pytest.raises(DamagedError) as refused:
            refresh.add_guidance(workspace, task="t", text="wish", actor=actor)
        assert refused.value.code == "guidance-not-recorded"
        assert os.listdir(workspace.spool) == []
        assert approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None).state == "approved"
        for number in range(3):  # in memory a link takes one too
            (place / f"f{number}").unlink()
        item = refresh.add_guidance(workspace, task="t", text="wish", actor=actor)
        refresh.run_round(workspace, actor=actor, check_nodes=False)
        assert [i.id for i in guidance.listed(workspace.ledger)] == [item]
        workspace.close()


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT])
def test_guidance_that_is_not_durable_is_not_acknowledged(workspace, actor, monkeypatch, number):
    tasks.create(workspace, title="t", actor=actor)
    real = os.fsync

    def failing(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", failing)
    with pytest.raises(DamagedError) as refused:
        refresh.add_guidance(workspace, task="t", text="wish", actor=actor)
    assert os.strerror(number).lower() in refused.value.message
    monkeypatch.setattr(files.os, "fsync", real)
    assert os.listdir(workspace.spool) == []
    refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert guidance.listed(workspace.ledger) == []


class FailingDisk(apsw.VFS):
    """The system's file layer, of which every `xSync` (or write) fails while it is told to."""

    def __init__(self, call: str) -> None:
        self.call, self.fails = call, False
        super().__init__("failing", "unix", makedefault=True)

    def xOpen(self, name, flags):  # noqa: N802  SQLite's names
        return _FailingFile(self, name, flags)


class _FailingFile(apsw.VFSFile):
    def __init__(self, disk, name, flags):
        self.disk = disk
        super().__init__("unix", name, flags)

    def xSync(self, flags):  # noqa: N802
        self._may_fail("xSync")
        super().xSync(flags)

    def xWrite(self, data, offset):  # noqa: N802
        self._may_fail("xWrite")
        super().xWrite(data, offset)

    def _may_fail(self, call):
        if self.disk.fails and self.disk.call == call:
            raise apsw.IOError("the disk failed")


@pytest.fixture
def failing_disk(request):
    disk = FailingDisk(request.param)
    yield disk
    disk.fails = False
    disk.unregister()


@pytest.mark.parametrize("failing_disk", ["xSync", "xWrite"], indirect=True)
def test_a_decision_that_the_disk_does_not_make_durable_is_refused_and_can_be_made_again(failing_disk, tmp_path, actor):
    workspace = Workspace.open(tmp_path / "ws", create=True)
    tasks.create(workspace, title="t", actor=actor)
    id = asked(workspace, actor)
    failing_disk.fails = True
    for _ in range(3):
        with pytest.raises(DamagedError) as refused:
            approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None)
        assert refused.value.code == "ledger-unavailable"
        assert state(workspace, id) == "pending"
    failing_disk.fails = False
    assert approvals.decide(workspace.ledger, id, "deny", by=actor, agent=None).state == "denied"
    assert workspace.ledger.verify().first_bad_seq is None
    workspace.close()
