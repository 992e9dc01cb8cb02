"""The wall clock is set while things wait (T-44): nothing expires early, nothing holds longer, order and cadence stay."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.places import PATIENCE_S, ROOT
from trainflow_tui import clock as clocks
from trainflow_tui import refresh, watching
from trainflow_tui.clock import ManualClock, SystemClock, boot_id, from_iso, to_iso
from trainflow_tui.collaboration import approvals, deadlines, questions, spool, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.collector import Scan, collect
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger import leases
from trainflow_tui.screens import freshness, snapshot
from trainflow_tui.workspace import Workspace

PAYLOAD = CommandPayload(argv=["x"])
JUMPS_S = (1, -1, 3600, -3600, 86_400, -86_400, -5 * 365 * 86_400)


@pytest.fixture
def task(workspace, actor):
    return tasks.create(workspace, title="t", actor=actor).id


def ask(workspace, clock, actor, *, expires_s=None, start_s=None):
    def after(seconds):
        return None if seconds is None else clock.now() + timedelta(seconds=seconds)

    wanted = ApprovalRequest(
        task="t", title="x", payload=PAYLOAD, expires_at=after(expires_s), start_before=after(start_s)
    )
    return approvals.request(workspace.ledger, wanted, actor=actor).id


def jump(clock, seconds):
    clock.set_wall(clock.now() + timedelta(seconds=seconds))


def state(workspace, id):
    return approvals.get(workspace.ledger, id).state


# Deadlines


@pytest.mark.parametrize("seconds", JUMPS_S)
def test_no_request_expires_before_its_time_is_over(workspace, task, clock, actor, seconds):
    id = ask(workspace, clock, actor, expires_s=1800)
    clock.advance(600)
    jump(clock, seconds)
    clock.advance(1190)
    assert state(workspace, id) == "pending"
    assert approvals.close_overdue(workspace.ledger, actor=actor) == 0
    assert approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None).state == "approved"


@pytest.mark.parametrize("seconds", JUMPS_S)
def test_no_approval_holds_longer_than_it_was_given(workspace, task, clock, actor, seconds):
    id = ask(workspace, clock, actor, start_s=1800)
    approvals.decide(workspace.ledger, id, "approve", by=actor, agent=None)
    clock.advance(600)
    jump(clock, seconds)
    clock.advance(1201)
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, id, PAYLOAD, actor=actor)
    assert refused.value.code == "lapsed"
    assert state(workspace, id) == "lapsed"


def test_without_a_jump_the_deadline_is_the_deadline(workspace, task, clock, actor):
    id = ask(workspace, clock, actor, expires_s=1800)
    clock.advance(1799)
    assert state(workspace, id) == "pending"
    clock.advance(1)
    assert state(workspace, id) == "expired"
    assert approvals.close_overdue(workspace.ledger, actor=actor) == 1


def test_after_a_restart_of_the_machine_the_wall_clock_decides(workspace, task, clock, actor, monkeypatch):
    id = ask(workspace, clock, actor, expires_s=1800)
    monkeypatch.setattr(deadlines, "boot_id", lambda: "another start")
    jump(clock, 1801)
    assert state(workspace, id) == "expired"


def test_a_request_of_an_older_version_has_the_wall_clock_only(workspace, task, clock, actor, monkeypatch):
    monkeypatch.setattr(approvals, "moment", lambda _: None)
    id = ask(workspace, clock, actor, expires_s=1800)
    jump(clock, 1801)
    assert state(workspace, id) == "expired"


steps = st.lists(st.tuples(st.sampled_from(["wait", "jump"]), st.integers(-200_000, 200_000)), min_size=1, max_size=12)


@given(steps, st.integers(1, 100_000))
@settings(max_examples=200, deadline=None)
def test_under_any_history_of_jumps_nothing_gains(history, limit_s):
    clock = ManualClock(datetime(2026, 3, 4, tzinfo=UTC))
    asked_at, deadline = to_iso(clock.now()), to_iso(clock.now() + timedelta(seconds=limit_s))
    import msgspec

    request = msgspec.json.encode({"asked": deadlines.moment(clock)}).decode()
    row = {"request": request, "requested_at": asked_at, "expires_at": deadline, "start_before": deadline}
    waited = 0
    for kind, seconds in history:
        if kind == "wait":
            clock.advance(abs(seconds))
            waited += abs(seconds)
        else:
            jump(clock, seconds)
        if deadlines.has_passed(row | {"state": "pending"}, clock):
            assert waited >= limit_s
        if waited >= limit_s:
            assert deadlines.has_passed(row | {"state": "approved"}, clock)
        assert not deadlines.has_passed(row | {"state": "denied"}, clock)


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Shanghai"])
def test_a_change_to_summer_time_and_back_is_no_jump(workspace, task, actor, clock, monkeypatch, zone):
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for start in (datetime(2026, 3, 29, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)):
            clock.set_wall(start)
            id = ask(workspace, clock, actor, expires_s=3600)
            clock.advance(3599)
            assert state(workspace, id) == "pending"
            clock.advance(1)
            assert state(workspace, id) == "expired"
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


# Order and identity


@pytest.mark.parametrize("seconds", JUMPS_S)
def test_what_is_recorded_stays_unique_and_in_order(workspace, clock, actor, seconds):
    made, asked, approved = [], [], []
    for number in range(6):
        made.append(tasks.create(workspace, title=f"t{number}", actor=actor).id)
        asked.append(
            questions.ask(workspace.ledger, task=made[-1], title=f"q{number}", body="", blocking=True, actor=actor).id
        )
        wanted = ApprovalRequest(task=made[-1], title="x", payload=PAYLOAD)
        approved.append(approvals.request(workspace.ledger, wanted, actor=actor).id)
        jump(clock, seconds)
    assert [t.id for t in tasks.all_tasks(workspace.ledger)] == made
    assert [q.id for q in questions.listed(workspace.ledger)] == asked
    assert [q.id for q in questions.blocking_open(workspace.ledger)] == asked
    assert [a.id for a in approvals.listed(workspace.ledger)] == approved
    events = workspace.ledger.events()
    assert [e.seq for e in events] == list(range(1, len(events) + 1))
    assert len({e.key for e in events}) == len({e.hash for e in events}) == len(events)
    verified = workspace.ledger.verify()
    assert (verified.first_bad_seq, verified.projections_match) == (None, True)


@pytest.mark.parametrize("seconds", JUMPS_S)
def test_spooled_records_keep_the_order_in_which_they_were_written(tmp_path, seconds):
    now_ns = [1_790_000_000_000_000_000]

    def reading():
        now_ns[0] += seconds * 1_000_000_000
        return now_ns[0]

    written = [spool.write_record(tmp_path, b"x", now_ns=reading) for _ in range(5)]
    assert spool.pending(tmp_path) == written


# What is shown


@pytest.mark.parametrize("seconds", JUMPS_S)
def test_no_age_is_negative(workspace, task, clock, actor, seconds):
    collect(workspace, actor=actor)
    seen = snapshot.load(workspace)
    jump(clock, seconds)
    assert freshness._age_s(seen.collector.scanned_at, clock.now()) >= 0
    judged = freshness.judge(seen, workspace.settings, clock.now())
    assert judged.collector in (freshness.OK, freshness.STALE, freshness.LOST)


# The loop


@pytest.fixture
def loop(workspace, clock, actor, monkeypatch):
    """Run the loop on the virtual clock, its pauses as long as it asks for; returns when each scan began (monotonic)."""
    import signal

    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    tasks.create(workspace, title="t", actor=actor)
    monkeypatch.setattr(watching, "_Watcher", lambda *_: None)
    monkeypatch.setattr("trainflow_tui.refresh.node_checks.check_due", lambda *_: 0)
    monkeypatch.setattr("trainflow_tui.monitoring.node_checks.check_due", lambda *_: 0)
    begun = []

    def run(*, until_s, scan_takes_s=0.0, meanwhile=lambda elapsed: None):
        start = clock.monotonic()
        real = watching.run_round

        def round_(*arguments, **named):
            begun.append(clock.monotonic() - start)
            clock.advance(scan_takes_s)
            return real(*arguments, **named)

        def wait(self):
            clock.advance(self._pause_s())
            meanwhile(clock.monotonic() - start)
            self._stopping = clock.monotonic() - start >= until_s

        monkeypatch.setattr(watching, "run_round", round_)
        monkeypatch.setattr(watching._Loop, "_wait", wait)
        watching.run_watch(workspace, with_parent=False)
        return begun

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.parametrize(
    "seconds",
    [0, 3600, JUMPS_S[-1], *(pytest.param(s, marks=pytest.mark.long) for s in (1, -1, -3600, 86_400, -86_400))],
)
def test_a_scan_comes_every_five_minutes_whatever_the_wall_clock_does(loop, clock, monkeypatch, seconds):
    # Files at rest: those that are being edited are looked at sooner.
    nothing = refresh.Round(scan=Scan(), samples=0, changed_files=[], troubles=[])
    monkeypatch.setattr(watching, "run_round", lambda *_, **__: nothing)

    def meanwhile(elapsed):
        if 100 < elapsed % 400 < 101.5:
            jump(clock, seconds)

    begun = loop(until_s=3 * 300 + 10, scan_takes_s=2.5, meanwhile=meanwhile)
    assert len(begun) == 4
    assert max(abs(at - 300 * number) for number, at in enumerate(begun)) <= 1.0


def test_after_eight_hours_of_standing_still_there_is_one_scan_and_no_burst(loop, clock):
    stood = []

    def meanwhile(elapsed):
        if elapsed > 310 and not stood:
            stood.append(elapsed)
            clock.advance(8 * 3600)

    begun = loop(until_s=8 * 3600 + 620, meanwhile=meanwhile)
    after = [at - stood[0] - 8 * 3600 for at in begun if at > stood[0]]
    assert len(after) == 2
    assert after[0] <= 1.0
    assert after[1] - after[0] == pytest.approx(300, abs=1.0)


@pytest.mark.parametrize("seconds", [-3600, -86_400, -5 * 365 * 86_400, 1])
def test_a_jump_gives_nobody_a_lease_that_is_held(workspace, clock, seconds):
    held = leases.acquire(workspace.ledger, "watch", "elsewhere:1", ttl_s=15)
    jump(clock, seconds)
    assert leases.acquire(workspace.ledger, "watch", "other:2", ttl_s=15) is None
    assert leases.renew(workspace.ledger, held, ttl_s=15)


def test_a_jump_forward_lets_the_lease_be_taken_and_the_old_holder_is_fenced(workspace, clock):
    held = leases.acquire(workspace.ledger, "watch", "elsewhere:1", ttl_s=15)
    jump(clock, 3600)
    taken = leases.acquire(workspace.ledger, "watch", "other:2", ttl_s=15)
    assert taken.token > held.token
    assert not leases.renew(workspace.ledger, held, ttl_s=15)


# The machine's own clocks, and programs under a clock that was set


def test_monotonic_seconds_are_of_this_start_of_the_machine():
    assert boot_id() == boot_id()
    first, second = SystemClock().monotonic(), SystemClock().monotonic()
    assert second >= first
    if sys.platform == "linux":
        with open("/proc/uptime") as stream:
            assert abs(float(stream.read().split()[0]) - second) < 60


def test_a_system_that_does_not_tell_its_start_is_believed_by_the_wall_clock(monkeypatch):
    monkeypatch.setattr(clocks.Path, "read_text", lambda *_, **__: (_ for _ in ()).throw(FileNotFoundError()))
    assert clocks.boot_id.__wrapped__() == ""


_SHIFTED = """
import sys
from datetime import timedelta
from trainflow_tui import clock
real = clock.SystemClock.now
clock.SystemClock.now = lambda self: real(self) + timedelta(seconds=SHIFT)
from trainflow_tui.cli.main import main
sys.exit(main())
"""


def shifted(seconds, root, *words):
    """A call of the command line at another time of day: under faketime(1), or with the program's own clock replaced."""
    import json

    arguments = ["--workspace", str(root), "--json", *words]
    # Only the wall clock: a machine's monotonic one is never set.
    env = os.environ | {"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    if shutil.which("faketime"):
        argv = ["faketime", "-f", f"{seconds:+d}s", sys.executable, "-m", "trainflow_tui", *arguments]
    else:
        argv = [sys.executable, "-c", _SHIFTED.replace("SHIFT", str(seconds)), *arguments]
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_programs_under_clocks_that_were_set_agree(tmp_path, actor):
    root = tmp_path / "ws"
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    payload = tmp_path / "payload"
    payload.write_text('{"argv": ["x"]}')
    words = ("approval", "request", "t", "--title", "x", "--payload", str(payload), "--expires-in", "600")
    ids = []
    for seconds in (86_400, -86_400):
        code, said = shifted(seconds, root, *words)
        assert code == 11
        ids.append(said["approval"]["id"])
        assert abs((from_iso(said["approval"]["requested_at"]) - datetime.now(UTC)).total_seconds() - seconds) < 60
    for seconds in (2 * 86_400, -5 * 365 * 86_400):
        code, said = shifted(seconds, root, "--once")
        assert code == 11
        assert [a["id"] for a in said["approvals"]] == ids  # none has expired, and their order is that of the requests
    assert shifted(86_400, root, "approval", "decide", ids[0], "approve")[0] == 0
    assert shifted(-86_400, root, "approval", "consume", ids[0], "--payload", str(payload))[0] == 0
    assert [e.seq for e in workspace.ledger.events()] == list(range(1, workspace.ledger.head() + 1))
    verified = workspace.ledger.verify()
    assert (verified.first_bad_seq, verified.projections_match) == (None, True)
    workspace.close()
