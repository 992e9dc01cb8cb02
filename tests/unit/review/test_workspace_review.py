"""Where a workspace may be, and that a refusal leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from trainflow_tui import config
from trainflow_tui import workspace as workspaces
from trainflow_tui.collaboration import tasks
from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.workspace import Workspace


def test_a_refused_directory_is_left_as_it_was(tmp_path):
    # One state directory in /tmp would become the workspace of everything below it.
    tmp_path.chmod(0o777)
    with pytest.raises(RefusedError):
        Workspace.open(tmp_path, create=True)
    assert list(tmp_path.iterdir()) == []


def test_read_only_makes_no_workspace(tmp_path):
    tmp_path.chmod(0o700)
    with pytest.raises(UsageError) as refused:
        Workspace.open(tmp_path, create=True, flags={"readonly": True})
    assert refused.value.code == "no-workspace"
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_text_is_refused_before_anything_is_made(tmp_path):
    root = tmp_path / os.fsdecode(b"bad\xff")
    root.mkdir(mode=0o700)
    with pytest.raises(RefusedError):
        Workspace.open(root, create=True)
    assert list(root.iterdir()) == []


def test_an_empty_name_is_no_workspace(monkeypatch):
    with pytest.raises(UsageError):
        workspaces.locate("")
    monkeypatch.setenv("TRAINFLOW_WORKSPACE", "")
    assert workspaces.locate() == workspaces.Path.cwd()


def test_a_folder_that_was_deleted_is_made_again(workspace):
    workspace.close()
    (workspace.state / "spool").rmdir()
    Workspace.open(workspace.root).close()
    assert (workspace.state / "spool").is_dir()


def test_settings_that_are_a_pipe_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / config.FILE_NAME)
    with pytest.raises(UsageError) as refused:
        config.load(workspace=tmp_path, environment={})
    assert refused.value.code == "settings-unreadable"


@pytest.mark.parametrize("name", ["a b'c\"d", "new\nline", "训练", "gl[o]b*?", "-dash", "50%$x"])
def test_any_name_that_is_text_will_do(tmp_path, name, clock, actor):
    from trainflow_tui.demo import job
    from trainflow_tui.ledger import manifest
    from trainflow_tui.monitoring import follow

    root = tmp_path / name
    opened = Workspace.open(root, create=True, clock=clock)
    tasks.create(opened, title="t", actor=actor)
    job.write_story(root / "train.log", steps=20, start=clock.now())
    run, _ = follow.add_run(opened, root / "train.log", task="t", id=None, actor=actor)
    follower = follow.Follower(seals_by_age=True)
    follower.follow_all(opened)
    clock.advance(100)
    follower.follow_all(opened)
    segments = manifest.readable(opened.ledger, run)
    assert [s.path.endswith(".parquet") for s in segments] == [True]
    assert opened.store.count([s.path for s in segments]) == 20
    opened.close()


def test_of_two_nested_workspaces_the_nearer_is_meant(tmp_path, monkeypatch, clock):
    inner = tmp_path / "outer" / "inner"
    for root in (inner.parent, inner):
        Workspace.open(root, create=True, clock=clock).close()
    (inner / "below").mkdir()
    monkeypatch.chdir(inner / "below")
    assert workspaces.locate() == inner
    monkeypatch.chdir(inner.parent)
    assert workspaces.locate("inner") == inner


def test_many_processes_may_make_the_workspace_at_once(tmp_path):
    root = tmp_path / "new"
    root.mkdir(mode=0o700)
    words = [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "task", "create"]
    makers = [subprocess.Popen([*words, f"t{n}"], stdout=subprocess.PIPE, text=True) for n in range(6)]
    said = [maker.communicate(timeout=60)[0] for maker in makers]
    assert [maker.returncode for maker in makers] == [0] * 6, said
    opened = Workspace.open(root)
    assert {t.id for t in tasks.all_tasks(opened.ledger)} == {f"t{n}" for n in range(6)}
    assert opened.ledger.verify().first_bad_seq is None
    opened.close()
