"""The workspace or a task's folder is renamed, removed, made anew, unmounted: collecting goes on, and what is missing is said (T-11)."""

from __future__ import annotations

import itertools
import os
import queue
import shutil
import subprocess

import pytest

from tests.faults.places import PATIENCE_S, collector, small_disk, until
from trainflow_tui.collaboration import guidance, health, tasks
from trainflow_tui.collaboration.change_events import ChangeWatcher
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.screens.desk import Desk
from trainflow_tui.workspace import Workspace


@pytest.fixture
def root(tmp_path, actor):
    place = tmp_path / "ws"
    workspace = Workspace.open(place, create=True)
    tasks.create(workspace, title="t", actor=actor)
    workspace.close()
    return place


@pytest.fixture
def scan(actor):
    def run(workspace):
        return collect(workspace, actor=actor, reader=SettledReader(clock=workspace.clock, sleep=lambda _: None))

    return run


def texts(root):
    workspace = Workspace.open(root)
    try:
        return [i.text for i in guidance.listed(workspace.ledger) if i.removed_at is None]
    finally:
        workspace.close()


def has_collector(root):
    workspace = Workspace.open(root)
    try:
        return workspace.ledger.query("SELECT 1 FROM lease WHERE name = 'watch' AND owner != ''")
    finally:
        workspace.close()


@pytest.mark.parametrize("how", ["renamed", "removed"])
def test_a_tasks_folder_that_is_made_anew_is_watched_again(tmp_path, how):
    folder = tmp_path / "t"
    folder.mkdir()
    wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
    watcher = ChangeWatcher(wakes)

    try:
        watcher.watch((folder,))
        wakes.get(timeout=PATIENCE_S)  # each start is one
        folder.rename(tmp_path / "away") if how == "renamed" else folder.rmdir()
        folder.mkdir()  # before anybody looked, and perhaps with the number that the old one had

        def started_again():
            watcher.watch((folder,))  # as each turn of the loop does
            return not wakes.empty()

        until(started_again, "the watcher to begin again")
        wakes.get()
        saved = itertools.count()

        def woken():
            (folder / "GUIDANCE.md").write_text(f"## wish {next(saved)}\n")
            return not wakes.empty()

        until(woken, "a wake")
    finally:
        watcher.stop()


def test_a_folder_that_is_gone_is_said_and_the_next_scan_goes_on_where_it_is_back(root, scan, clock):
    workspace = Workspace.open(root, clock=clock)
    folder = workspace.task_folder("t")
    (folder / "GUIDANCE.md").write_text("## wish\n")
    assert scan(workspace).new == 1
    folder.rename(folder.with_name("away"))
    assert {e.code for e in scan(workspace).errors} == {"missing"}
    assert [t.detail for t in health.recorded(workspace.ledger)] == ["t/GUIDANCE.md", "t/QUESTIONS.md"]
    assert not folder.exists()  # nothing is made in a place that a person cleared
    folder.with_name("away").rename(folder)
    (folder / "GUIDANCE.md").write_text("## wish\n\n## another\n")
    done = scan(workspace)
    assert (done.errors, done.new) == ([], 1)
    assert health.recorded(workspace.ledger) == []
    workspace.close()


def test_folders_behind_a_mount_that_comes_and_goes_are_collected_each_time(root, scan, clock):
    workspace = Workspace.open(root, clock=clock)
    folder = workspace.task_folder("t")
    with small_disk(root / "other"):
        (root / "other/t").mkdir()
        for number in range(2):
            (root / "other/t/GUIDANCE.md").write_text(f"## wish {number}\n")
            (root / "other/t/QUESTIONS.md").write_text("")
            subprocess.run(["mount", "--bind", root / "other", folder.parent], check=True)
            try:
                assert scan(workspace).errors == []
            finally:
                subprocess.run(["umount", "-l", folder.parent], check=True)
            assert [i.heading for i in guidance.listed(workspace.ledger) if not i.removed_at] == [f"wish {number}"]
            (folder / "GUIDANCE.md").unlink(missing_ok=True)
            assert "missing" in {e.code for e in scan(workspace).errors}
    workspace.close()


@pytest.mark.parametrize("how", ["copied", pytest.param("moved back", marks=pytest.mark.long)])
def test_a_collector_waits_for_its_workspace_and_goes_on_in_it(root, tmp_path, how):
    away = tmp_path / "away"
    with collector(root, "--poll-seconds", "1") as running:
        until(lambda: has_collector(root), "the collector")
        root.rename(away)
        until(lambda: not has_collector(away), "the collector to let go")
        assert running.poll() is None
        assert not root.exists()  # nothing is written where nothing is
        away.rename(root) if how == "moved back" else shutil.copytree(away, root)
        (root / "collaboration/t/GUIDANCE.md").write_text(f"## {how}\n")
        until(lambda: texts(root) == [f"## {how}"], "the wish")
        assert running.poll() is None
    assert running.returncode == 0
    if how == "copied":
        assert texts(away) == []


def test_a_collector_whose_workspace_is_removed_ends_when_it_is_told(root):
    with collector(root, "--poll-seconds", "1") as running:
        until(lambda: has_collector(root), "the collector")
        shutil.rmtree(root)
        until(lambda: not os.path.exists(root), "it to be gone")
    assert running.returncode == 0
    assert not root.exists()


async def test_the_screens_desk_says_so_and_opens_what_is_back(root, tmp_path, clock, actor):
    desk = Desk(Workspace.open(root, clock=clock))
    try:
        seen = desk.first.version
        assert await desk.changed_since(seen) is None
        root.rename(tmp_path / "away")
        gone = await desk.changed_since(seen)
        assert [t.code for t in gone.troubles] == ["workspace-gone"]
        assert [t.id for t in gone.tasks] == ["t"]
        assert await desk.changed_since(gone.version) is None  # said once, not each second
        shutil.copytree(tmp_path / "away", root)
        other = Workspace.open(root, clock=clock)
        tasks.create(other, title="u", actor=actor)
        other.close()
        back = await desk.changed_since(gone.version)
        assert back.troubles == []
        assert [t.id for t in back.tasks] == ["t", "u"]
    finally:
        desk.close()


async def test_a_ledger_that_becomes_unreadable_leaves_the_last_picture_with_the_reason(root, clock, monkeypatch):
    workspace = Workspace.open(root, clock=clock)
    desk = Desk(workspace)
    try:
        (root / ".trainflow").rename(root / "was")
        (root / ".trainflow").mkdir(mode=0o700)
        (root / ".trainflow/ledger.db").write_bytes(b"no ledger at all" * 300)
        found = await desk.changed_since(desk.first.version)
        assert [t.code for t in found.troubles] == ["unreadable"]
        assert "ledger.db" in found.troubles[0].text
        assert [t.id for t in found.tasks] == ["t"]
        assert await desk.changed_since(found.version) is None
    finally:
        desk.close()
