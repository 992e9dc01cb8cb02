"""Entries in the task's folder that nobody means well with: each is said once, and scanning goes on (T-10)."""

from __future__ import annotations

import os
import queue
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.places import PATIENCE_S, ROOT, collector, until
from trainflow_tui.collaboration import change_events, guidance, health, odd_entries, tasks
from trainflow_tui.collaboration.change_events import ChangeWatcher
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.generated_files import render_task
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.workspace import Workspace

NOT_UTF8 = "its name is not UTF-8"
NOT_SHOWN = "its name holds characters that cannot be shown"


def make_hostile(folder: Path) -> dict[str, str]:
    """Fill a folder; returns what is expected to be said of which printable name."""
    here = os.fsencode(folder)
    (folder / ("n" * 255)).write_text("long, and nothing else")
    (folder / "[@click=app.quit]press").write_text("markup, and nothing else")
    (folder / "notes.md").write_text("a person's own")
    for name in (b"caf\xe9.md", b"\xff\xfe"):
        with open(here + b"/" + name, "wb"):
            pass
    for name in ("red\x1b[31m.md", "two\nlines", "\u202egnp.exe"):
        (folder / name).write_text("x")
    os.mkfifo(folder / "pipe")
    # Through a relative name: a socket's may have 108 bytes only.
    with socket.socket(socket.AF_UNIX) as listener, _inside(folder):
        listener.bind("socket")
    (folder / "round").symlink_to("round")
    (folder / "ping").symlink_to("pong")
    (folder / "pong").symlink_to("ping")
    expected = {
        r"caf\xe9.md": NOT_UTF8,
        r"\xff\xfe": NOT_UTF8,
        r"red\x1b[31m.md": NOT_SHOWN,
        r"two\nlines": NOT_SHOWN,
        r"\u202egnp.exe": NOT_SHOWN,
        "pipe": "it is a named pipe",
        "socket": "it is a socket",
        "round": "it is a symbolic link",
        "ping": "it is a symbolic link",
        "pong": "it is a symbolic link",
    }
    try:
        os.mknod(folder / "null", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        expected["null"] = "it is a character device"
    except PermissionError:
        pass  # only root makes devices
    return expected


class _inside:  # noqa: N801  a context, like contextlib's own (contextlib.chdir moves the same)
    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.back = os.open(".", os.O_RDONLY)
        os.chdir(self.folder)

    def __exit__(self, *_):
        os.fchdir(self.back)
        os.close(self.back)


@pytest.fixture
def task(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    return workspace.task_folder("t")


@pytest.fixture
def scan(workspace, actor):
    return lambda: collect(workspace, actor=actor, reader=SettledReader(clock=workspace.clock, sleep=lambda _: None))


def test_every_bad_entry_is_said_once_and_the_files_beside_it_are_collected(workspace, task, scan):
    expected = make_hostile(task)
    (task / "GUIDANCE.md").write_text("## wish\n")
    found = scan()
    assert found.errors == []
    assert found.new == 1
    assert sorted(found.hints) == sorted(f"collaboration/t/{n} is not read: {why}." for n, why in expected.items())
    assert {e.name: e.reason for e in odd_entries.stored(workspace.ledger)} == expected
    assert [t.text for t in health.recorded(workspace.ledger)] == found.hints
    render_task(workspace, "t")
    board = (task / "BOARD.md").read_text()
    assert f"## Entries that are not read ({len(expected)})" in board
    for name in expected:
        assert board.count(f"`{name}`") == 1
    assert "\x1b" not in board


def test_what_is_gone_is_said_no_more_and_what_stays_writes_nothing_new(workspace, task, scan):
    os.mkfifo(task / "pipe")
    (task / "link").symlink_to("GUIDANCE.md")
    scan()
    first = workspace.ledger.query("SELECT name, scanned_at FROM human_file WHERE state = 'odd' ORDER BY name")
    workspace.clock.advance(300)
    scan()
    assert workspace.ledger.query("SELECT name, scanned_at FROM human_file WHERE state = 'odd' ORDER BY name") == first
    (task / "pipe").unlink()
    scan()
    assert [e.name for e in odd_entries.stored(workspace.ledger)] == ["link"]


def test_a_folder_of_thousands_of_bad_names_says_how_many_more(workspace, task, scan):
    for number in range(odd_entries.LISTED + 30):
        with open(os.fsencode(task) + b"/\xff%03d" % number, "wb"):
            pass
    assert len(scan().hints) == odd_entries.LISTED + 1
    assert [e.reason for e in odd_entries.stored(workspace.ledger) if e.name == "…"] == [
        "30 more entries are like these"
    ]


@pytest.mark.parametrize("make", ["pipe", "socket", "loop", "folder", "device"])
def test_a_bad_entry_in_a_human_files_place_is_an_error_of_that_file_alone(workspace, task, scan, make):
    path = task / "GUIDANCE.md"
    path.unlink()
    if make == "pipe":
        os.mkfifo(path)
    elif make == "loop":
        path.symlink_to("GUIDANCE.md")
    elif make == "folder":
        path.mkdir()
    elif make == "socket":
        with socket.socket(socket.AF_UNIX) as listener, _inside(task):
            listener.bind("GUIDANCE.md")
    else:
        try:
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    (task / "QUESTIONS.md").write_text("## Q1: why?\n")
    found = scan()
    assert [(e.code, e.file) for e in found.errors] == [("not-regular", "t/GUIDANCE.md")]
    assert found.new == 1
    assert found.hints == []
    assert [t.detail for t in health.recorded(workspace.ledger)] == ["t/GUIDANCE.md"]


def test_the_watcher_outlives_names_that_end_watchfiles_and_still_wakes(task, monkeypatch):
    monkeypatch.setattr(change_events, "RETRY_S", 0.05)
    wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
    watcher = ChangeWatcher(wakes)
    watcher.watch((task,))
    try:
        wakes.get(timeout=PATIENCE_S)  # that it began
        for number in range(3):
            with open(os.fsencode(task) + b"/\xff%d" % number, "wb"):
                pass
            wakes.get(timeout=PATIENCE_S)  # that it began again: nothing of between is missed
        until(lambda: watcher._thread.is_alive() and not watcher.trouble, "the watcher to stand")
        while not wakes.empty():
            wakes.get()
        (task / "GUIDANCE.md").write_text("## wish\n")
        wakes.get(timeout=PATIENCE_S)
    finally:
        watcher.stop()


_UNPRIVILEGED = """
import os, sys
from pathlib import Path
from trainflow_tui.collaboration import collector, guidance, odd_entries, tasks
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.ledger.events import Actor
from trainflow_tui.refresh import run_round
from trainflow_tui.workspace import Workspace
root, actor = Path(sys.argv[1]), Actor(door="cli")
workspace = Workspace.open(root, create=True)
for id in ("shut", "open"):
    tasks.create(workspace, title=id, actor=actor)
(root / "collaboration/open/closed").mkdir(mode=0)
(root / "collaboration/open/GUIDANCE.md").write_text("## wish\\n")
os.chmod(root / "collaboration/shut", 0)
reader = SettledReader(sleep=lambda _: None)
done = run_round(workspace, actor=actor, reader=reader, check_nodes=False)
print(sorted(t.code for t in done.troubles), [e.file for e in done.scan.errors])
print([(e.task, e.name, e.reason) for e in odd_entries.stored(workspace.ledger)])
print([i.task for i in guidance.listed(workspace.ledger)], [p.name for p in collector.watched_directories(workspace)])
os.chmod(root / "collaboration", 0)
done = run_round(workspace, actor=actor, reader=reader, check_nodes=False)
print(len(done.troubles), [p.name for p in collector.watched_directories(workspace)])
os.chmod(root / "collaboration", 0o700); os.chmod(root / "collaboration/shut", 0o700)
done = run_round(workspace, actor=actor, reader=reader, check_nodes=False)
print(done.troubles)
"""


def test_a_folder_that_may_not_be_opened_is_said_and_stops_no_other(tmp_path):
    # Root opens everything, unless this right is taken from it.
    less = ("setpriv", "--bounding-set=-dac_override,-dac_read_search") if os.getuid() == 0 else ()
    if less and shutil.which("setpriv") is None:
        pytest.skip("to root no folder is shut, and there is no setpriv to take its rights")
    (tmp_path / "ws").mkdir(mode=0o700)
    done = subprocess.run(
        [*less, sys.executable, "-c", _UNPRIVILEGED, str(tmp_path / "ws")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['render-failed', 'unreadable', 'unreadable'] ['shut/GUIDANCE.md', 'shut/QUESTIONS.md']",
        "[('open', 'closed', 'it may not be opened')]",
        "['open'] ['spool', 'open']",
        "4 ['spool']",
        "[]",
    ]


def test_a_running_collector_goes_on_through_all_of_it(tmp_path, actor, command):
    root = tmp_path / "ws"
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    folder = workspace.task_folder("t")
    with collector(root, "--poll-seconds", "1") as running:
        until(lambda: workspace.ledger.query("SELECT 1 FROM lease WHERE name = 'watch' AND owner != ''"), "the lease")
        expected = make_hostile(folder)
        (folder / "GUIDANCE.md").write_text("## wish\n")
        until(lambda: guidance.listed(workspace.ledger), "the item")
        until(lambda: len(odd_entries.stored(workspace.ledger)) == len(expected), "the entries")
        assert running.poll() is None
        code, said = command.json("--once")
        assert code == 0
        hints = [r["text"] for r in said["reasons"] if r["code"] == "hint"]
        assert sorted(hints) == sorted(f"collaboration/t/{n} is not read: {why}." for n, why in expected.items())
    assert running.returncode == 0
    workspace.close()
