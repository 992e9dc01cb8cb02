"""The kernel reports no changes: every inotify instance or watch is taken (T-17). The collector looks by itself, and says so."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.faults.places import collector, until
from trainflow_tui.collaboration import guidance, health, tasks
from trainflow_tui.screens import snapshot
from trainflow_tui.workspace import Workspace

LIMITS = {"max_inotify_instances": "too many open files", "max_inotify_watches": "file watch limit"}


def without(limit: str) -> tuple[str, ...]:
    """A command in front of a command: in a user namespace of its own, where none of these may be had (user_namespaces(7))."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("inotify is Linux's, and unshare(1) makes the namespace")
    words = ("unshare", "-Ur", "sh", "-c", f'echo 0 > /proc/sys/user/{limit} && exec "$@"', "sh")
    tried = subprocess.run([*words, "true"], capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no user namespace can be had here: {tried.stderr.decode().strip()}")
    return words


@pytest.mark.parametrize(
    "limit", ["max_inotify_instances", pytest.param("max_inotify_watches", marks=pytest.mark.long)]
)
def test_where_no_change_is_reported_the_collector_looks_by_itself_and_says_so(tmp_path, actor, limit):
    before = without(limit)
    root = tmp_path / "ws"
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    path = workspace.task_folder("t") / "GUIDANCE.md"
    # An hour between two scans: what comes earlier comes from looking every few seconds.
    with collector(root, "--poll-seconds", "3600", before=before) as running:
        until(lambda: snapshot.load(workspace).troubles, "the banner")
        seen = snapshot.load(workspace)
        assert seen.collector.mode == "polling"
        assert [t.code for t in seen.troubles] == ["no-events"]
        assert LIMITS[limit] in seen.troubles[0].text.lower()
        path.write_text("## wish\n")
        until(lambda: guidance.listed(workspace.ledger), "the item")
        assert running.poll() is None
    assert running.returncode == 0
    assert health.recorded(workspace.ledger) == []  # a collector that has ended reports nothing either way
    workspace.close()


@pytest.mark.long
def test_where_changes_are_reported_nothing_is_said(tmp_path, actor):
    root = tmp_path / "ws"
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    if not workspace.filesystem.watchable:
        pytest.skip(f"{workspace.filesystem.name} reports no changes")
    with collector(root, "--poll-seconds", "3600"):
        until(lambda: snapshot.load(workspace).collector.scanned_at, "a scan")
        (workspace.task_folder("t") / "GUIDANCE.md").write_text("## wish\n")
        until(lambda: guidance.listed(workspace.ledger), "the item")
        seen = snapshot.load(workspace)
        assert (seen.collector.mode, seen.troubles) == ("watching", [])
    workspace.close()
