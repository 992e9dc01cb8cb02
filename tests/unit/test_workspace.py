"""The workspace: where it is, what is refused, with which modes it is made."""

from __future__ import annotations

import os
import stat

import pytest

from trainflow_tui import workspace as workspaces
from trainflow_tui.collaboration import tasks
from trainflow_tui.collaboration.generated_files import render_all
from trainflow_tui.errors import DamagedError, RefusedError, UsageError
from trainflow_tui.workspace import Workspace


def test_the_nearest_parent_with_a_state_directory_is_the_workspace(tmp_path, monkeypatch, workspace):
    below = workspace.root / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert workspaces.locate() == workspace.root
    monkeypatch.setenv("TRAINFLOW_WORKSPACE", str(tmp_path))
    assert workspaces.locate() == tmp_path
    assert workspaces.locate(below) == below


def test_a_new_directory_is_new_and_nothing_is_made_in_it_by_looking(tmp_path):
    with pytest.raises(UsageError) as refused:
        Workspace.open(tmp_path)
    assert refused.value.code == "no-workspace"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o720])
def test_a_directory_that_others_may_write_to_is_refused(workspace, mode):
    root = workspace.root
    before = (root / ".trainflow/ledger.db").read_bytes()
    root.chmod(mode)
    with pytest.raises(RefusedError, match="others may write"):
        Workspace.open(root)
    assert (root / ".trainflow/ledger.db").read_bytes() == before


def test_a_linked_state_directory_is_refused(tmp_path, workspace):
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (other / ".trainflow").symlink_to(workspace.state)
    with pytest.raises(RefusedError, match="symbolic link"):
        Workspace.open(other, create=True)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a directory to somebody else")
def test_a_directory_of_another_owner_is_refused(workspace):
    os.chown(workspace.root, 65534, 65534)
    with pytest.raises(RefusedError, match="belongs to uid 65534"):
        Workspace.open(workspace.root)


def test_a_foreign_ledger_is_refused_and_left_as_it_is(tmp_path):
    (tmp_path / ".trainflow").mkdir(mode=0o700)
    tmp_path.chmod(0o700)
    path = tmp_path / ".trainflow/ledger.db"
    path.write_bytes(b"my notes\n" * 500)
    with pytest.raises(DamagedError):
        Workspace.open(tmp_path)
    assert path.read_bytes() == b"my notes\n" * 500


def test_under_an_open_umask_all_is_private(tmp_path, actor, clock):
    root = tmp_path / "private"
    root.mkdir(mode=0o700)
    before = os.umask(0)
    try:
        opened = Workspace.open(root, create=True, clock=clock)
        tasks.create(opened, title="t", actor=actor)
        render_all(opened)
        opened.artifacts.add(b"evidence")
        opened.close()
    finally:
        os.umask(before)
    for folder, names, files in os.walk(root):
        for name in names:
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o700, name
        for name in files:
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o600, name


def test_an_artifact_that_changed_on_disk_is_noticed_when_read(workspace):
    sha = workspace.artifacts.add(b"measured 1")
    assert workspace.artifacts.read(sha) == b"measured 1"
    workspace.artifacts.path(sha).write_bytes(b"measured 2")
    with pytest.raises(DamagedError, match="changed on disk"):
        workspace.artifacts.read(sha)
