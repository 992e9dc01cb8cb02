"""The screen under load: a hundred requests cleared by keys (T-30), and a machine of which others take every core (T-79).

Figures are printed (`-s`); what is asserted is what was decided and what was collected.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime

import msgspec
import pytest

from tests.faults.places import ROOT, collector
from tests.tui.conftest import QuietDesk
from tests.tui.test_approval_dialog import until
from trainflow_tui.app import TrainflowApp
from trainflow_tui.clock import from_iso
from trainflow_tui.collaboration import approvals, guidance, questions, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.screens.dialogs.approval import ApprovalDialog
from trainflow_tui.workspace import Workspace

VERDICTS = ("approve", "deny", "changes", "approve")
STATES = {"approve": "approved", "deny": "denied", "changes": "changes_requested"}
MODES = ("board", "questions", "hotspots", "cluster", "live", "overview")


def request_of(number):
    """Every kind, reversible or not, on one host or on many: some of high impact."""
    return ApprovalRequest(
        task="t",
        title=f"request {number}",
        kind=approvals.KINDS[number % len(approvals.KINDS)],
        reversible=approvals.REVERSIBLE[number % len(approvals.REVERSIBLE)],
        payload=CommandPayload(
            argv=["torchrun", *(f"--option-{i}" for i in range(number % 40))],
            hosts=[f"dcu-{i:02d}" for i in range(number % 12)],
        ),
    )


async def decide_by_keys(app, pilot, plan):
    """Open what waits, read it to its end, decide as planned, as a person would; returns its id."""
    before = len(app.snapshot.pending)
    await pilot.press("a")
    await until(app, pilot, lambda: isinstance(app.screen, ApprovalDialog) and app.screen.armed_at < 1e9, 60)
    dialog = app.screen
    found = dialog._approval
    await until(app, pilot, lambda: time.monotonic() > dialog.armed_at)
    while not dialog._all_seen:
        await pilot.press("space")
    verdict = plan[found.id]
    await pilot.press({"approve": "a", "deny": "d", "changes": "c"}[verdict])
    if verdict != "approve" or found.high_impact:
        words = found.token if verdict == "approve" else "no"
        await pilot.press(*words, "enter")
    await until(app, pilot, lambda: not isinstance(app.screen, ApprovalDialog), 60)
    await until(app, pilot, lambda: len(app.snapshot.pending) == before - 1, 60)
    return found.id


@pytest.mark.parametrize("count", [5, pytest.param(100, marks=pytest.mark.long)])
async def test_mixed_requests_are_cleared_by_keys_each_as_it_was_meant(workspace, opened, actor, count):
    tasks.create(workspace, title="t", actor=actor)
    made = [approvals.request(workspace.ledger, request_of(number), actor=actor) for number in range(count)]
    plan = {approval.id: VERDICTS[number % len(VERDICTS)] for number, approval in enumerate(made)}
    async with opened() as (app, pilot):
        since, order = time.monotonic(), []
        while app.snapshot.pending:
            order.append(await decide_by_keys(app, pilot, plan))
        took = time.monotonic() - since
        switches = []
        for number, mode in enumerate(MODES, 1):
            began = time.monotonic()
            await pilot.press(str(number % len(MODES)))
            await until(app, pilot, lambda mode=mode: app.current_mode == mode)
            switches.append(1000 * (time.monotonic() - began))
    print(
        f"\n{count} requests in {took:.1f} s; a switch {statistics.median(switches):.0f} ms, at most {max(switches):.0f}"
    )
    found = {a.id: a for a in approvals.listed(workspace.ledger)}
    assert {id: a.state for id, a in found.items()} == {id: STATES[verdict] for id, verdict in plan.items()}
    impact = [found[id].high_impact for id in order]
    assert impact == sorted(impact, reverse=True)  # what weighs most was asked first
    for id, approval in found.items():
        decision = approval.decision
        assert decision.shown_digest == approval.digest
        assert decision.input == ("typed-token" if approval.high_impact and plan[id] == "approve" else "key")
    decided = workspace.ledger.query("SELECT entity, count(*) FROM event WHERE kind = 'approval.decided' GROUP BY 1")
    assert Counter(dict(decided)) == Counter(plan.keys())


async def open_first(app, pilot):
    """The dialog of what waits first, when it may be decided."""
    await pilot.press("a")
    await until(app, pilot, lambda: isinstance(app.screen, ApprovalDialog) and app.screen.armed_at < 1e9)
    await until(app, pilot, lambda: time.monotonic() > app.screen.armed_at)
    return app.screen.query_one("#approval-body")


async def test_a_request_whose_end_the_input_line_hides_can_still_be_decided(workspace, opened, actor):
    tasks.create(workspace, title="t", actor=actor)
    wanted = msgspec.structs.replace(request_of(2), payload=CommandPayload(argv=["x"]))
    assert wanted.reversible == "no"
    first = approvals.request(workspace.ledger, wanted, actor=actor).id
    async with opened() as (app, pilot):
        body = await open_first(app, pilot)
        room = body.size.height - sum(line.size.height for line in body.children)
        await pilot.press("d", *"no", "enter")
        await until(app, pilot, lambda: not app.snapshot.pending)
        # One that fills the body to its last line.
        full = msgspec.structs.replace(wanted, payload=CommandPayload(argv=["x"] * (1 + room)))
        second = approvals.request(workspace.ledger, full, actor=actor).id
        await until(app, pilot, lambda: app.snapshot.pending)
        body = await open_first(app, pilot)
        assert body.max_scroll_y == 0
        await pilot.press("d")
        await until(app, pilot, lambda: body.max_scroll_y == 1)
        await pilot.press(*"no", "enter")
        await until(app, pilot, lambda: not isinstance(app.screen, ApprovalDialog))
        await until(app, pilot, lambda: not app.snapshot.pending)
    assert [approvals.get(workspace.ledger, id).state for id in (first, second)] == ["denied", "denied"]


_BURN = "import os\nwhile os.getppid() == int(__import__('sys').argv[1]): sum(range(100_000))"
POLL_S = 5
WATCHED_S = 60
LOG_BYTES = 200 << 20


def write_log(path):
    """A log as long as weeks of training write it."""
    from trainflow_tui.demo import job

    job.write_story(path, steps=400, start=datetime.now(UTC))
    text = path.read_bytes()
    with open(path, "ab") as stream:
        while stream.tell() < LOG_BYTES:
            stream.write(text)


async def stalls_of(app, seconds):
    """How late the loop was, in ms, measured every 10 ms."""
    late, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        before = time.monotonic()
        await asyncio.sleep(0.01)
        late.append(1000 * (time.monotonic() - before - 0.01))
    return late


def burning():
    """A process for each core that does nothing but take it; each ends with this one."""
    return [subprocess.Popen([sys.executable, "-c", _BURN, str(os.getpid())]) for _ in range(os.cpu_count() or 1)]


def import_log(root, path):
    """The verb that reads it, as a process."""
    argv = [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "log", "add", str(path)]
    return subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.mark.long
async def test_while_others_take_every_core_collecting_goes_on_and_the_screen_lives(tmp_path, actor):
    root = tmp_path / "ws"
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    for number in range(1000):
        if number % 2:
            approvals.request(workspace.ledger, request_of(number), actor=actor)
        else:
            questions.ask(workspace.ledger, task="t", title=f"q{number}", body="", blocking=True, actor=actor)
    write_log(tmp_path / "train.log")
    burners = burning()
    seen: list[str] = []
    app = TrainflowApp(QuietDesk(Workspace.open(root)))
    try:
        with collector(root, "--poll-seconds", str(POLL_S)) as running:
            async with app.run_test(size=(120, 40), notifications=True) as pilot:
                await pilot.pause()
                importing = import_log(root, tmp_path / "train.log")
                measuring = asyncio.create_task(stalls_of(app, WATCHED_S))
                while not measuring.done():
                    at = workspace.ledger.query("SELECT at FROM pulse WHERE topic = 'scan'")
                    seen += [at[0][0]] if at and at[0][0] not in seen else []
                    await asyncio.sleep(0.2)
                late = sorted(measuring.result())
                assert app.is_running
                assert len(app.snapshot.pending) == 500
                assert len(app._notifications) == 0
            importing.send_signal(signal.SIGKILL)
            importing.wait()
            (workspace.task_folder("t") / "GUIDANCE.md").write_text("## wish\n")
            end = time.monotonic() + 120
            while not guidance.listed(workspace.ledger):
                assert time.monotonic() < end
                await asyncio.sleep(0.2)
            assert running.poll() is None
        assert running.returncode == 0
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    moments = [from_iso(at).timestamp() for at in seen]
    gaps = [after - before for before, after in itertools.pairwise(moments)]
    print(
        f"\n{len(seen)} scans in {WATCHED_S} s, due every {POLL_S} s: {max(gaps) - POLL_S:+.2f} s at worst; loop late by "
        f"{statistics.median(late):.1f} ms, p99 {late[int(0.99 * len(late))]:.1f}, at most {late[-1]:.1f} ({len(late)} looks)"
    )
    assert len(seen) >= 3
    # One collector all the time: it kept its lease.
    assert workspace.ledger.query("SELECT token FROM lease WHERE name = 'watch'") == [(1,)]
    workspace.close()
