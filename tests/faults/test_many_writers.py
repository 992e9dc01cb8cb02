"""Many processes at once: writers, deciders, refreshes (T-13, T-20, T-46)."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from trainflow_tui.collaboration import approvals, guidance, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.workspace import Workspace

_WRITER = """
import sys
from pathlib import Path
from trainflow_tui import refresh
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
for i in range(4):
    refresh.add_guidance(workspace, task="t", text=f"writer {sys.argv[2]} note {i}", actor=Actor(door="cli"))
"""

_DECIDER = """
import sys
from pathlib import Path
from trainflow_tui.collaboration import approvals
from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
sys.stdin.readline()
won = []
for id in sys.argv[3].split(","):
    try:
        approvals.decide(workspace.ledger, id, sys.argv[2], by=Actor(door="cli", user=sys.argv[2]), agent=None, comment="c")
        won.append(id)
    except RefusedError as problem:
        assert problem.code == "already-decided", problem.code
        assert "already decided" in problem.message
print(",".join(won))
"""


@pytest.fixture
def root(tmp_path, actor):
    place = tmp_path / "ws"
    place.mkdir(mode=0o700)
    workspace = Workspace.open(place, create=True)
    tasks.create(workspace, title="t", actor=actor)
    workspace.close()
    return place


def test_fifty_writers_lose_no_note_and_keep_their_order(root):
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(root), str(n)], stderr=subprocess.PIPE, text=True)
        for n in range(50)
    ]
    said = [w.communicate(timeout=300)[1] for w in writers]
    assert [w.returncode for w in writers] == [0] * 50, [s for s in said if s]
    workspace = Workspace.open(root)
    texts = [i.text for i in guidance.listed(workspace.ledger)]
    assert sorted(texts) == sorted(f"writer {n} note {i}" for n in range(50) for i in range(4))
    for n in range(50):
        own = [t for t in texts if t.startswith(f"writer {n} ")]
        assert own == sorted(own)
    assert list(workspace.spool.glob("*.json")) == []
    workspace.close()


def test_of_three_deciders_exactly_one_settles_each_request(root, actor):
    workspace = Workspace.open(root)
    wanted = ApprovalRequest(task="t", title="x", payload=CommandPayload(argv=["x"]))
    ids = [approvals.request(workspace.ledger, wanted, actor=actor).id for _ in range(100)]
    deciders = [
        subprocess.Popen(
            [sys.executable, "-c", _DECIDER, str(root), verdict, ",".join(ids)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for verdict in ("approve", "deny", "changes")
    ]
    for decider in deciders:
        decider.stdin.write("go\n")
        decider.stdin.flush()
    won = [decider.communicate(timeout=120)[0].strip() for decider in deciders]
    assert all(d.returncode == 0 for d in deciders)
    settled = [id for line in won for id in line.split(",") if id]
    assert sorted(settled) == sorted(ids)
    assert workspace.ledger.query("SELECT count(*) FROM event WHERE kind = 'approval.decided'") == [(100,)]
    workspace.close()


def test_twenty_refreshes_beside_a_collector_and_a_writer_meet_no_lock(root, command):
    collector = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "trainflow_tui",
            "--workspace",
            str(root),
            "watch",
            "--with-parent",
            "--poll-seconds",
            "1",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    writer = subprocess.Popen([sys.executable, "-c", _WRITER.replace("range(4)", "range(400)"), str(root), "1"])
    try:
        answers = []
        for _ in range(20):
            done = subprocess.run(
                [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "--once", "--json"],
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            answers.append((done.returncode, json.loads(done.stdout)))
        assert {code for code, _ in answers} <= {0, 10}, answers[-1]
        assert all("busy" not in json.dumps(a["reasons"]) for _, a in answers)
    finally:
        writer.kill()
        writer.wait()
        collector.stdin.close()
        assert collector.wait(timeout=30) == 0
