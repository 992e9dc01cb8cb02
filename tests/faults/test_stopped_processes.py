"""Processes that are stopped and continued, or killed and started again (T-31, T-45): nothing is decided by it, nothing is done twice."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest

from tests.faults.places import collector, until
from tests.tui.terminal import Terminal, processes_about
from trainflow_tui.collaboration import approvals, guidance, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.ledger import leases
from trainflow_tui.watching import LEASE, LEASE_TTL_S
from trainflow_tui.workspace import Workspace

PENDING = 50
STOPPED_S = 10


@pytest.fixture
def opened(tmp_path, actor):
    workspace = Workspace.open(tmp_path / "ws", create=True)
    tasks.create(workspace, title="t", actor=actor)
    yield workspace
    workspace.close()


def scans(workspace):
    rows = workspace.ledger.query("SELECT n FROM pulse WHERE topic = 'scan'")
    return rows[0][0] if rows else 0


def stopped(pid):
    with open(f"/proc/{pid}/stat") as stream:
        return stream.read().rsplit(")", 1)[1].split()[0] == "T"


def ask_fifty(workspace, actor):
    """Requests of every kind: some with limits, some that need the typed token."""
    ids = []
    for number in range(PENDING):
        wanted = ApprovalRequest(
            task="t",
            title=f"request {number}",
            payload=CommandPayload(argv=["x", str(number)]),
            kind=approvals.KINDS[number % len(approvals.KINDS)],
            reversible=approvals.REVERSIBLE[number % len(approvals.REVERSIBLE)],
            expires_at=datetime.now(UTC) + timedelta(hours=1) if number % 2 else None,
        )
        ids.append(approvals.request(workspace.ledger, wanted, actor=actor).id)
    return ids


@pytest.mark.parametrize("times", [1, pytest.param(4, marks=pytest.mark.long)])
def test_killing_the_screen_and_the_collector_decides_none_of_fifty_requests(opened, actor, tmp_path, times):
    root, ids = opened.root, ask_fifty(opened, actor)
    argv = [sys.executable, "-m", "trainflow_tui", "--workspace", str(root)]
    for _ in range(times):
        with Terminal(argv, config_home=tmp_path / "config") as terminal:
            terminal.wait_for(f"!{PENDING} waiting")
            terminal.until(lambda: leases.holder(opened.ledger, LEASE), "the collector")
            terminal.send("a")
            terminal.wait_for("digest")
            for pid in processes_about(root):
                os.kill(pid, signal.SIGKILL)
            until(lambda: not processes_about(root), "their end")
        # The lease of the one that was killed is taken over only when it has run out.
        with opened.ledger.transaction() as transaction:
            transaction.execute("UPDATE lease SET expires_at = heartbeat_at WHERE name = ?", (LEASE,))
        found = approvals.listed(opened.ledger)
        assert {a.state for a in found} == {"pending"}
        assert sorted(a.id for a in found) == sorted(ids)
    assert opened.ledger.query("SELECT count(*) FROM event WHERE kind IN ('approval.decided', 'approval.closed')") == [
        (0,)
    ]
    assert opened.ledger.verify().first_bad_seq is None


@pytest.mark.skipif(sys.platform != "linux", reason="whether a process is stopped is read from /proc")
@pytest.mark.parametrize("stopped_s", [2, pytest.param(STOPPED_S, marks=pytest.mark.long)])
def test_a_collector_that_was_stopped_catches_up_with_one_scan(opened, stopped_s):
    path = opened.task_folder("t") / "GUIDANCE.md"
    before_s = time.time() - 60
    for name in ("GUIDANCE.md", "QUESTIONS.md"):  # files at rest, which nothing looks at sooner
        os.utime(opened.task_folder("t") / name, (before_s, before_s))
    with collector(opened.root, "--poll-seconds", "1") as running:
        until(lambda: scans(opened) >= 2, "two scans")
        running.send_signal(signal.SIGSTOP)
        until(lambda: stopped(running.pid), "it to stop")
        count, since = scans(opened), time.monotonic()
        path.write_text("## wish\n")
        time.sleep(stopped_s)
        assert scans(opened) == count
        running.send_signal(signal.SIGCONT)
        continued = time.monotonic()
        until(lambda: guidance.listed(opened.ledger), "the item")
        # Not one for each second that it stood: as many as have been due since, and the one that catches up.
        due = int(time.monotonic() - continued) + 2
        assert scans(opened) - count <= due < stopped_s + (time.monotonic() - since)
        assert len(guidance.listed(opened.ledger)) == 1
        assert running.poll() is None
    assert running.returncode == 0


def test_a_stopped_collector_whose_place_was_taken_writes_nothing_more_and_names_its_successor(opened, actor):
    path = opened.task_folder("t") / "GUIDANCE.md"
    with collector(opened.root, "--poll-seconds", "1") as running:
        until(lambda: scans(opened), "a scan")
        running.send_signal(signal.SIGSTOP)
        until(lambda: stopped(running.pid), "it to stop")
        with opened.ledger.transaction() as transaction:  # as if it stood for longer than its lease
            transaction.execute("UPDATE lease SET expires_at = heartbeat_at WHERE name = ?", (LEASE,))
        taken = leases.acquire(opened.ledger, LEASE, "elsewhere:1", ttl_s=LEASE_TTL_S * 100)
        assert taken is not None
        path.write_text("## wish\n")
        running.send_signal(signal.SIGCONT)
        assert running.wait(timeout=60) == 30
        said = running.stdout.read()
        assert b"elsewhere:1" in said
    assert leases.holder(opened.ledger, LEASE) == taken  # neither taken back nor given free
    assert leases.renew(opened.ledger, taken, ttl_s=LEASE_TTL_S)
