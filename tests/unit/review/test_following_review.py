"""Following logs and reading traces: holders that were stopped, processes that were killed, names that lead elsewhere."""

from __future__ import annotations

import os
import random
import time
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from trainflow_tui.demo import job
from trainflow_tui.errors import BusyError, UsageError
from trainflow_tui.ledger import leases, manifest
from trainflow_tui.monitoring import follow, node_checks, reading, status, traces
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.monitoring.status import RunSummary

START = datetime(2026, 1, 1, tzinfo=UTC)


def metric(step):
    return job.line(step, START, random.Random(step))


@pytest.fixture
def log(workspace, actor):
    path = workspace.root / "train.log"
    path.write_text("[simulated]\n")
    run, _ = follow.add_run(workspace, path, task="", id=None, actor=actor)
    return path, run


def add(path, *lines):
    with open(path, "a") as stream:
        stream.write("".join(f"{line}\n" for line in lines))


def stored(workspace, run):
    return workspace.store.count([s.path for s in manifest.readable(workspace.ledger, run)])


def summary(workspace, run="train"):
    return next(r for r in status.runs(workspace.ledger) if r.id == run).summary


# Holders and kills


def test_a_reader_that_was_stopped_while_another_sealed_the_tail_loses_and_doubles_nothing(
    workspace, log, clock, monkeypatch
):
    path, run = log
    add(path, *(metric(step) for step in range(1, 11)))
    Follower().follow_all(workspace)
    add(path, *(metric(step) for step in range(11, 21)))
    real = reading.read_new

    def stopped_for_long(*arguments, **named):
        found = real(*arguments, **named)
        monkeypatch.setattr(reading, "read_new", real)
        clock.advance(reading.LEASE_TTL_S + 1)
        assert Follower().follow_all(workspace).samples == 10
        clock.advance(reading.SEAL_AFTER_S + 1)
        Follower(seals_by_age=True).follow_all(workspace)
        return found

    monkeypatch.setattr(reading, "read_new", stopped_for_long)
    late = Follower()
    assert late.follow_all(workspace).samples == 0
    add(path, *(metric(step) for step in range(21, 26)))
    assert late.follow_all(workspace).samples == 5
    assert (summary(workspace).samples, stored(workspace, run)) == (25, 25)
    assert leases.holder(workspace.ledger, f"tail:{run}") is None


def test_a_long_log_is_read_on_by_the_next_process_though_it_does_not_grow(workspace, log, clock, monkeypatch):
    path, run = log
    add(path, *(metric(step) for step in range(1, 101)))
    real = reading.read_new

    def slow(path, state, **_):
        clock.advance(1)
        return real(path, state, max_bytes=4096, max_line_bytes=4096)

    monkeypatch.setattr(reading, "read_new", slow)
    Follower(round_s=2.5).follow_all(workspace)  # and then it is killed
    assert 0 < summary(workspace).samples < 50
    monkeypatch.setattr(reading, "read_new", real)
    Follower().follow_all(workspace)
    assert (summary(workspace).samples, stored(workspace, run)) == (100, 100)


def test_a_round_ends_in_time_and_the_next_one_begins_with_those_that_waited(workspace, actor, clock, monkeypatch):
    for name in ("a", "b", "c"):
        path = workspace.root / f"{name}.log"
        path.write_text("".join(metric(step) + "\n" for step in range(1, 6)))
        follow.add_run(workspace, path, task="", id=None, actor=actor)
    real = reading.read_new

    def slow(*arguments, **named):
        clock.advance(1.5)
        return real(*arguments, **named)

    monkeypatch.setattr(reading, "read_new", slow)
    follower, seen = Follower(round_s=2.0), []
    for _ in range(4):
        follower.follow_all(workspace)
        seen.append(sum(r.summary.samples == 5 for r in status.runs(workspace.ledger)))
    assert seen[0] < 3
    assert seen[-1] == 3


def test_a_row_that_another_has_moved_since_is_not_put_back_by_a_look_at_its_age(workspace, log, clock):
    path, run = log
    add(path, metric(1))
    follower = Follower()
    follower.follow_all(workspace)
    before = status.runs(workspace.ledger)[0]
    add(path, metric(2))
    clock.advance(1)
    Follower().follow_all(workspace)
    clock.advance(1000)
    follower._look_at_age(workspace, before)
    assert status.runs(workspace.ledger)[0].tail["tail"]["lines"] == 3
    assert stored(workspace, run) == 2


def test_one_log_that_fails_stops_no_other(workspace, log, actor):
    _, run = log
    other = workspace.root / "other.log"
    other.write_text(metric(1) + "\n")
    follow.add_run(workspace, other, task="", id=None, actor=actor)
    with workspace.ledger.transaction() as transaction:
        status.store_run(
            transaction, workspace.ledger, run, tail={"tail": {"offset": "no number"}}, summary=RunSummary()
        )
    found = Follower().follow_all(workspace)
    assert [name for name, _ in found.troubles] == [run]
    assert summary(workspace, "other").samples == 1


def test_a_busy_ledger_lets_the_log_be_looked_at_again(workspace, log, monkeypatch):
    path, _ = log
    add(path, metric(1))
    follower, real = Follower(), status.store_run

    def busy(*_, **__):
        raise BusyError("ledger-busy", "Busy.")

    monkeypatch.setattr(status, "store_run", busy)
    with pytest.raises(BusyError):
        follower.follow_all(workspace)
    monkeypatch.setattr(status, "store_run", real)
    assert follower.follow_all(workspace).samples == 1


# Lines, names, clocks


def test_the_records_of_one_line_that_a_progress_bar_rewrites_are_several_samples(workspace, log):
    path, run = log
    add(path, "\r".join(metric(step) for step in range(1, 11)), metric(11))
    Follower().follow_all(workspace)
    assert (summary(workspace).samples, stored(workspace, run)) == (11, 11)


def test_a_line_of_many_megabytes_is_passed_over(workspace, log):
    path, run = log
    add(path, metric(1), "x" * 7_000_000, metric(2))
    Follower().follow_all(workspace)
    assert stored(workspace, run) == 2


def test_a_log_that_another_process_adds_at_this_moment_is_one_run(workspace, actor, monkeypatch):
    path = workspace.root / "train.log"
    path.write_text(metric(1) + "\n")
    real = follow.open_source

    def meanwhile(found):
        monkeypatch.setattr(follow, "open_source", real)
        follow.add_run(workspace, path, task="", id=None, actor=actor)
        return real(found)

    monkeypatch.setattr(follow, "open_source", meanwhile)
    assert follow.add_run(workspace, path, task="", id=None, actor=actor) == ("train", False)
    assert len(status.runs(workspace.ledger)) == 1


def test_a_link_that_is_named_is_the_log_behind_it(workspace, log, actor):
    path, run = log
    (workspace.root / "latest.log").symlink_to(path)
    assert follow.add_run(workspace, workspace.root / "latest.log", task="", id=None, actor=actor) == (run, False)


def test_links_that_lead_in_a_circle_lead_nowhere(workspace, actor):
    (workspace.root / "a").symlink_to(workspace.root / "b")
    (workspace.root / "b").symlink_to(workspace.root / "a")
    with pytest.raises(UsageError):
        follow.add_run(workspace, workspace.root / "a", task="", id=None, actor=actor)


@pytest.mark.parametrize("id", ["", "..", "a/b", ".x", "-x", "a" * 101, "é"])
def test_a_runs_id_leads_to_no_other_place(workspace, actor, id):
    path = workspace.root / "train.log"
    path.write_text(metric(1) + "\n")
    with pytest.raises(UsageError):
        follow.add_run(workspace, path, task="", id=id, actor=actor)


def test_a_missing_log_that_comes_back_unchanged_is_followed_again(workspace, log):
    path, _ = log
    add(path, metric(1))
    Follower().follow_all(workspace)
    path.rename(path.with_suffix(".away"))
    Follower().follow_all(workspace)
    assert summary(workspace).state == "missing"
    path.with_suffix(".away").rename(path)
    Follower().follow_all(workspace)
    assert summary(workspace).state == "following"


def test_after_a_clock_went_back_a_quiet_log_becomes_stale_in_its_time(workspace, log, clock):
    path, _ = log
    add(path, metric(1))
    follower = Follower()
    follower.follow_all(workspace)
    clock.set_wall(clock.now() - timedelta(days=400))
    follower.follow_all(workspace)
    assert summary(workspace).state == "following"
    clock.advance(1000)
    follower.follow_all(workspace)
    assert summary(workspace).state == "stale"


def test_after_a_clock_went_back_a_node_is_looked_at_again(workspace, actor, clock):
    node_checks.check(workspace, actor=actor)
    clock.set_wall(clock.now() - timedelta(days=400))
    assert node_checks.check_due(workspace) == 1
    assert node_checks.check_due(workspace) == 0


def test_a_long_summary_costs_a_record_no_more_than_a_short_one():
    from trainflow_tui.monitoring import samples
    from trainflow_tui.monitoring.logs.records import MetricRecord

    record = MetricRecord(line=1, step=1000, attempt=1, loss=9.0, values={})
    calm = [(step, 2.0 if step % 2 else None, None) for step in range(1, 300)]
    found = samples.add_record(RunSummary(recent=calm, samples=299, step=299), record, at="")
    assert [e.type for e in found.events] == ["loss_spike"]
    assert len(found.recent) == 300


# Traces


@pytest.fixture
def trace(tmp_path):
    from trainflow_tui.analysis.traces.generator import write_synthetic_trace

    path = tmp_path / "rank0.json"
    with open(path, "wb") as stream:
        write_synthetic_trace(stream, rank=0, world_size=1, steps=2, seed=3)
    return path


def test_a_trace_that_another_process_puts_in_place_at_this_moment_is_one(workspace, trace, actor, monkeypatch):
    real = traces._put_in_place

    def meanwhile(building, target):
        monkeypatch.setattr(traces, "_put_in_place", real)
        assert traces.add_trace(workspace, trace, task="", actor=actor)[1]
        real(building, target)

    monkeypatch.setattr(traces, "_put_in_place", meanwhile)
    row, new = traces.add_trace(workspace, trace, task="", actor=actor)
    assert not new
    assert [p.name for p in (workspace.state / "traces").iterdir()] == [row.id]


def test_a_trace_whose_reader_was_killed_before_its_event_is_added_by_the_next(workspace, trace, actor):
    row, _ = traces.add_trace(workspace, trace, task="", actor=actor)
    with workspace.ledger.transaction() as transaction:
        transaction.execute("DELETE FROM trace")
    again, new = traces.add_trace(workspace, trace, task="", actor=actor)
    assert (again.id, new) == (row.id, True)
    assert traces.hotspots_of_id(workspace, row.id, target=0.9, all_rows=False).devices


def test_a_half_read_trace_is_removed_when_its_reader_is_gone(workspace, trace, actor):
    folder = workspace.state / "traces"
    dead, alive, young = (folder / f".building-{name}" for name in ("dead", "alive", "young"))
    for path in (dead, alive, young):
        path.mkdir()
        (path / "part-0.parquet").write_bytes(b"half")
    for path in (dead, alive):
        os.utime(path, (time.time() - 120,) * 2)
    held = traces._hold(alive)
    assert traces.drop_unfinished(workspace) == 1
    assert sorted(p.name for p in folder.iterdir()) == [".building-alive", ".building-young"]
    os.close(held)
    assert traces.drop_unfinished(workspace) == 1


def test_a_trace_that_is_being_read_is_held(workspace):
    with traces._building(workspace) as folder:
        os.utime(folder, (time.time() - 120,) * 2)
        assert traces.drop_unfinished(workspace) == 0
    assert not folder.exists()


# The stored form


def test_a_samples_stored_form_has_strict_numbers_and_all_its_values():
    from trainflow_tui.monitoring import samples
    from trainflow_tui.monitoring.logs.records import MetricRecord

    values = {"lr": 1e-4, "mtp": float("inf"), "name": "x", "flags": [1, float("nan")], "on": True, "none": None}
    record = MetricRecord(line=1, step=1, attempt=1, loss=1.0, values=values)
    extra = samples.sample(record, generation=1, offset=5, at="t")["extra"]
    assert extra == {"mtp": "Infinity", "name": "x", "flags": [1, "NaN"], "on": True, "none": None}
    assert msgspec.json.decode(msgspec.json.encode(extra)) == extra
