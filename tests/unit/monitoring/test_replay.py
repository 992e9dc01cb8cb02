"""Runs, nodes and human files as they were: rebuilt rows are the rows that were shown."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from tests.unit.monitoring.segments import Run
from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.ledger.events import Actor
from trainflow_tui.ledger.past import Past
from trainflow_tui.monitoring import compaction, follow, replay, samples, status
from trainflow_tui.monitoring.logs.records import MetricRecord
from trainflow_tui.monitoring.status import RunEvent, RunSummary
from trainflow_tui.store.metrics import LiveTail

LOGS = Path(__file__).resolve().parents[3] / "../shared/corpus/logs"
NOT_RECORDED = {"rejected": 0}


def names():
    found = sorted(
        p.name for p in LOGS.glob("*") if p.suffix in (".txt", ".log", ".jsonl") and p.stat().st_size < 60_000
    )
    return found or [pytest.param("", marks=pytest.mark.skip(reason=f"{LOGS} is not there"))]


def upkeep(workspace):
    while step := next(iter(compaction.due(workspace, eager=True)), None):
        assert compaction.do(workspace, step)


def shown(run):
    found = {name: getattr(run.summary, name) for name in RunSummary.__struct_fields__}
    return (run.id, run.task, run.path, run.added_at), found | NOT_RECORDED


def runs_at(workspace, past, moment):
    replay.go_to(workspace, past, moment)
    return [shown(run) for run in status.runs(past)]


@pytest.mark.parametrize("name", names())
def test_a_run_of_the_corpus_is_shown_as_it_was_however_its_segments_were_kept_since(workspace, clock, actor, name):
    lines = (LOGS / name).read_bytes().splitlines(keepends=True)
    chance = random.Random(name)
    log = workspace.root / "train.log"
    log.write_bytes(b"")
    follow.add_run(workspace, log, task="", id="r", actor=actor)
    follower = follow.Follower(seals_by_age=True)
    seen = []
    while lines:
        count = chance.randint(1, max(1, len(lines) // 3))
        with open(log, "ab") as stream:
            stream.write(b"".join(lines[:count]))
        lines = lines[count:]
        for pause_s in (0, chance.choice([1, 20, 61, 700])):
            clock.advance(pause_s)
            assert follower.follow_all(workspace).troubles == []
            seen.append((clock.now(), shown(status.runs(workspace.ledger)[0])))
        clock.advance(1)
    upkeep(workspace)
    past = Past(workspace.ledger)
    chance.shuffle(seen)
    for moment, expected in seen:
        (found,) = runs_at(workspace, past, moment)
        if not expected[1]["samples"]:
            # Why a log that gave nothing yet gave nothing, nobody recorded.
            for key in ("state", "detail", "framework"):
                expected[1][key] = found[1][key]
        assert found == expected, moment
    past.close()


def bare(workspace, name="r"):
    """A run whose samples are given, known to the ledger by its event."""
    run = Run(workspace, name)
    with workspace.ledger.transaction() as transaction:
        transaction.execute("DELETE FROM run")
        transaction.append("run.added", name, {"path": f"/{name}"}, actor=Actor(door="cli"))
    return run


def test_a_long_run_shows_its_last_points_and_counts_all_of_its_samples(workspace, clock):
    run, begin = bare(workspace), clock.now()
    for segment in range(6):
        rows = []
        for step in range(segment * 500, segment * 500 + 500):
            speed = {"throughput": float(step), "samples_per_s": float(step)}
            rows.append({"step": step, "loss": 5000.0 - step, "at": to_iso(clock.now())} | speed)
            clock.advance(1)
        run.append(*rows)
        run.seal()
        if segment in (1, 4):
            upkeep(workspace)
    past = Past(workspace.ledger)
    for step in (0, 299, 300, 499, 500, 1700, 2999):
        ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=step))
        expected = [(s, 5000.0 - s, float(s)) for s in range(max(0, step - 299), step + 1)]
        assert summary["recent"] == expected
        assert (summary["step"], summary["samples"], summary["state"]) == (step, step + 1, "following")
        assert (summary["loss"], summary["throughput"], summary["throughput_unit"]) == (
            5000.0 - step,
            step,
            "samples/s",
        )
        assert summary["last_sample_at"] == to_iso(begin + timedelta(seconds=step))
    ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=2999 + 61))
    assert (summary["state"], summary["detail"]) == ("stale", "nothing new")
    past.close()


def test_before_its_first_sample_a_run_waits_and_before_it_was_added_it_is_not_there(workspace, clock):
    begin = clock.now()
    clock.advance(10)
    run = bare(workspace)
    clock.advance(10)
    run.append({"step": 1, "loss": 1.0})
    past = Past(workspace.ledger)
    assert runs_at(workspace, past, begin) == []
    ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=19))
    assert (summary["state"], summary["recent"], summary["samples"]) == ("waiting", [], 0)
    ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=20))
    assert (summary["state"], summary["recent"]) == ("following", [(1, 1.0, None)])
    past.close()


def test_samples_that_were_read_twice_after_a_crash_are_one(workspace, clock):
    run = bare(workspace)
    made = run.append(*({"step": step, "loss": 1.0} for step in range(1000)))
    LiveTail(workspace.state / run.live).append(made)
    past = Past(workspace.ledger)
    ((_, summary),) = runs_at(workspace, past, clock.now())
    assert (summary["samples"], summary["step"]) == (1000, 999)
    assert [point[0] for point in summary["recent"]] == list(range(700, 1000))
    past.close()


def test_where_the_samples_are_dropped_the_rollups_are_drawn_and_said(workspace, clock):
    run = bare(workspace)
    clock.advance(60)
    begin = clock.now()
    rows = []
    for step in range(600):
        rows.append({"step": step, "loss": 1000.0 - step, "throughput": 7.0, "at": to_iso(clock.now())})
        clock.advance(1)
    run.append(*rows)
    run.seal()
    upkeep(workspace)
    clock.advance(8 * 86400)
    for step in compaction.too_old(workspace):
        assert compaction.do(workspace, step)
    past = Past(workspace.ledger)
    ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=300))
    # Rows of 60 s whose last sample was read by then: those of steps 0 to 299.
    assert (summary["state"], summary["detail"]) == ("unknown", replay.DROPPED_WORDS)
    assert (summary["samples"], summary["step"]) == (300, 299)
    assert summary["last_sample_at"] == to_iso(begin + timedelta(seconds=299))
    assert len(summary["recent"]) == 5
    assert all(abs(loss - (1000 - step)) <= 1 and speed == 7.0 for step, loss, speed in summary["recent"])
    ((_, summary),) = runs_at(workspace, past, begin + timedelta(seconds=30))
    assert (summary["state"], summary["recent"]) == ("unknown", [])
    ((_, summary),) = runs_at(workspace, past, begin - timedelta(seconds=0.5))
    assert (summary["state"], summary["recent"]) == ("waiting", [])
    past.close()


def test_events_that_todays_row_has_no_room_for_are_those_that_follow_from_the_samples(workspace, clock):
    run, begin = bare(workspace), clock.now()
    summary = RunSummary()
    for step in range(1, 901):
        loss = 9.0 if step % 10 == 0 else 1.0
        row = run.append({"step": step, "loss": loss, "throughput": None})[0]
        summary = samples.add_record(summary, MetricRecord(line=0, step=step, loss=loss, values={}), at=row["at"])
        clock.advance(1)
    with workspace.ledger.transaction() as transaction:
        status.store_run(transaction, workspace.ledger, "r", tail={}, summary=summary)
    assert len(summary.events) == samples.EVENTS_KEPT
    past = Past(workspace.ledger)
    ((_, found),) = runs_at(workspace, past, begin + timedelta(seconds=250))
    assert [event.step for event in found["events"]] == list(range(10, 252, 10))
    past.close()


def test_the_steps_of_the_cursor_are_the_events_of_the_ledger_and_of_the_logs(workspace, clock, actor):
    begin = clock.now()
    past = Past(workspace.ledger)
    assert replay.bounds(workspace, past) == ("", "")
    assert replay.step(workspace, past, to_iso(begin), 1) == ""
    run = bare(workspace)
    clock.advance(60)
    met = to_iso(clock.now())
    summary = RunSummary(events=[RunEvent(type="loss_spike", at=met)], last_sample_at=met)
    with workspace.ledger.transaction() as transaction:
        status.store_run(transaction, workspace.ledger, "r", tail={}, summary=summary)
    run.append({"step": 1})
    clock.advance(60)
    with workspace.ledger.transaction() as transaction:
        transaction.append("task.created", "t", {}, actor=actor)
    times = [to_iso(begin), met, to_iso(clock.now())]
    assert [replay.step(workspace, past, at, 1) for at in times] == [*times[1:], ""]
    assert [replay.step(workspace, past, at, -1) for at in times] == ["", *times[:-1]]
    assert replay.bounds(workspace, past) == (times[0], times[2])
    clock.advance(5)
    run.append({"step": 2})
    run.seal()
    summary = RunSummary(last_sample_at=to_iso(clock.now()))
    with workspace.ledger.transaction() as transaction:
        status.store_run(transaction, workspace.ledger, "r", tail={}, summary=summary)
    assert replay.bounds(workspace, past) == (times[0], to_iso(clock.now()))
    past.close()


def test_a_node_is_shown_as_it_was_last_looked_at(workspace, clock, actor):
    with workspace.ledger.transaction() as transaction:
        transaction.append("node.added", "n", {"target": "local"}, actor=actor)
    begin = clock.now()
    looks = {60: "ok", 120: "warning", 180: "ok"}
    for seconds, state in looks.items():
        clock.set_wall(begin + timedelta(seconds=seconds))
        with workspace.ledger.transaction() as transaction:
            seen = {"signals": [{"check": "disk", "state": state, "text": "x"}]}
            status.store_node(transaction, workspace.ledger, "n", seen)
    past = Past(workspace.ledger)
    found = {}
    for seconds in (59, 60, 119, 120, 179, 180, 10_000):
        replay.go_to(workspace, past, begin + timedelta(seconds=seconds))
        (node,) = status.nodes(past)
        at = node.checked_at and (from_iso(node.checked_at) - begin).total_seconds()
        found[seconds] = (at, [s["state"] for s in node.status.get("signals", [])])
    ok, warning, again = (60, ["ok"]), (120, ["warning"]), (180, ["ok"])
    assert found == {59: ("", []), 60: ok, 119: ok, 120: warning, 179: warning, 180: again, 10_000: again}
    past.close()


def test_an_old_ledger_that_is_only_read_has_runs_and_the_last_look_at_its_nodes(workspace, clock, actor):
    with workspace.ledger.transaction() as transaction:
        transaction.append("node.added", "n", {"target": "local"}, actor=actor)
        status.store_node(transaction, workspace.ledger, "n", {"name": "n"})
        transaction.execute("DROP TABLE node_history")
    past = Past(workspace.ledger)
    replay.go_to(workspace, past, clock.now())
    assert [node.status for node in status.nodes(past)] == [{"name": "n"}]
    assert replay.bounds(workspace, past) == (to_iso(clock.now()), to_iso(clock.now()))
    past.close()
