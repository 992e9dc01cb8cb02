"""A run's history: which files answer it, and readers whose files go away under them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.monitoring.segments import Run
from trainflow_tui import refresh
from trainflow_tui.clock import to_iso
from trainflow_tui.ledger import manifest
from trainflow_tui.monitoring import compaction, history

START = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def run(workspace):
    return Run(workspace)


def upkeep(workspace, kind):
    for step in [s for s in compaction.due(workspace, eager=True) if s.kind == kind]:
        assert compaction.do(workspace, step)


def long_run(workspace, run, clock, hours):
    """A step every ten seconds, sealed every ten minutes, rolled up but for the last two segments and the tail."""
    for segment in range(hours * 6):
        rows = []
        for step in range(segment * 60, segment * 60 + 60):
            at = to_iso(clock.now())
            rows.append({"step": step, "loss": 10.0 - step % 7, "throughput": 100.0 + step % 5, "at": at})
            clock.advance(10)
        run.append(*rows)
        if segment < hours * 6 - 1:
            run.seal()
        if segment == hours * 6 - 4:
            upkeep(workspace, "roll")


def levels(workspace, **named):
    found = manifest.segments(workspace.ledger, "r")
    chosen = history.choose(found, now=workspace.clock.now(), buckets=named.pop("buckets", 200), **named)
    return sorted({(s.level, s.state) for s in chosen})


SAMPLES = [("live", "live"), ("raw", "parquet"), ("raw", "rolled")]


def test_a_chart_of_up_to_two_hours_and_64_ranks_reads_samples(workspace, run, clock):
    long_run(workspace, run, clock, 2)
    assert levels(workspace) == SAMPLES
    assert levels(workspace, ranks=64) == SAMPLES
    assert levels(workspace, ranks=65) == [("live", "live"), ("raw", "parquet"), ("roll60", "rollup")]
    clock.advance(1)
    assert levels(workspace) == [("live", "live"), ("raw", "parquet"), ("roll60", "rollup")]
    assert levels(workspace, since=to_iso(clock.now() - timedelta(hours=1))) == SAMPLES


def test_a_chart_of_days_reads_ten_minute_buckets_where_they_are_as_many_as_its_columns(workspace, run, clock):
    long_run(workspace, run, clock, 1)
    clock.advance(100 * 600 - 3600 - 1)
    assert ("roll60", "rollup") in levels(workspace, buckets=100)
    clock.advance(1)
    assert ("roll600", "rollup") in levels(workspace, buckets=100)


def test_a_short_chart_of_a_time_whose_samples_are_dropped_reads_roll_ups(workspace, run, clock):
    long_run(workspace, run, clock, 1)
    bounds = {"since": to_iso(START), "until": to_iso(START + timedelta(minutes=25))}
    before = history.series(workspace, "r", "loss", buckets=20, **bounds)
    clock.advance(8 * 86400)
    for step in compaction.too_old(workspace):
        compaction.do(workspace, step)
    assert levels(workspace, **bounds) == [("live", "live"), ("roll60", "rollup")]
    after = history.series(workspace, "r", "loss", buckets=20, **bounds)
    assert min(row[1] for row in after) == min(row[1] for row in before) == 4.0
    assert max(row[3] for row in after) == max(row[3] for row in before) == 10.0


def test_a_chart_from_roll_ups_has_the_extremes_and_the_mean_of_all_samples(workspace, run, clock):
    long_run(workspace, run, clock, 3)
    assert ("roll60", "rollup") in levels(workspace)
    for column in ("loss", "throughput"):
        found = history.series(workspace, "r", column, buckets=40)
        values = [sample[column] for sample in run.samples]
        assert len(found) <= 40
        assert [row[0] for row in found] == sorted(row[0] for row in found)
        assert min(row[1] for row in found) == min(values)
        assert max(row[3] for row in found) == max(values)
        assert all(row[1] <= row[2] <= row[3] for row in found)
    whole = history.series(workspace, "r", "loss", buckets=1)
    assert whole[0][2] == pytest.approx(sum(s["loss"] for s in run.samples) / len(run.samples))


def test_nothing_is_shown_before_it_was_known(workspace, run, clock):
    long_run(workspace, run, clock, 3)
    for seconds in (7200, 7205, 7259, 9000):
        until = to_iso(START + timedelta(seconds=seconds))
        known = [s["step"] for s in run.samples if s["at"] <= until]
        found = history.series(workspace, "r", "loss", buckets=2000, until=until, since=to_iso(START))
        assert max(row[0] for row in found) <= max(known)
        assert max(row[0] for row in found) >= max(known) - 6  # a bucket of 60 s that reaches over the bound


def test_steps_that_a_later_attempt_did_again_are_shown_as_it_did_them(workspace, run, clock):
    for attempt, first in ((1, 0), (2, 300)):
        rows = []
        for step in range(first, 600):
            rows.append({"step": step, "loss": float(attempt), "attempt": attempt, "at": to_iso(clock.now())})
            clock.advance(20)
        run.append(*rows)
    run.seal()
    upkeep(workspace, "roll")
    assert levels(workspace) == [("roll60", "rollup")]
    found = history.series(workspace, "r", "loss", buckets=600)
    assert {row[2] for row in found if row[0] < 298} == {1.0}
    assert {row[2] for row in found if row[0] > 302} == {2.0}


def test_a_log_that_was_read_in_one_go_keeps_its_course(workspace, run, clock):
    run.append(*({"step": step, "loss": 10000.0 - step} for step in range(10_000)))
    run.seal()
    upkeep(workspace, "roll")
    clock.advance(3 * 3600)
    run.append({"step": 10_000, "loss": 0.0})
    found = history.series(workspace, "r", "loss", buckets=200)
    assert ("roll60", "rollup") in levels(workspace)
    assert len(found) >= 10
    assert [row[2] for row in found] == sorted((row[2] for row in found), reverse=True)


def test_a_reader_whose_files_are_merged_and_unlinked_reads_the_manifest_once_more(workspace, run, clock, monkeypatch):
    for number in range(4):
        run.append({"step": number, "loss": float(number)})
        run.seal()
    upkeep(workspace, "roll")
    clock.advance(3600)
    real, lists = manifest.segments, []

    def listed_and_overtaken(ledger, name=None):
        found = real(ledger, name)
        if name == "r" and not lists:
            lists.append(found)
            # Between the list and the query the files are merged, and the reader sleeps for eleven minutes.
            monkeypatch.setattr(manifest, "segments", real)
            upkeep(workspace, "compact")
            clock.advance(660)
            refresh.drop_sealed(workspace)
            monkeypatch.setattr(manifest, "segments", listed_and_overtaken)
        elif name == "r":
            lists.append(found)
        return found

    monkeypatch.setattr(manifest, "segments", listed_and_overtaken)
    found = history.series(workspace, "r", "loss", buckets=10)
    assert found == [(float(n), float(n), float(n), float(n)) for n in range(4)]
    assert len(lists) == 2
    assert not any((workspace.state / s.path).exists() for s in lists[0] if s.level == "raw")


def test_a_reader_whose_tail_is_sealed_and_unlinked_misses_no_sample(workspace, run, clock, monkeypatch):
    run.append({"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0})
    real, calls = manifest.segments, []

    def listed_and_sealed(ledger, name=None):
        found = real(ledger, name)
        calls.append(found)
        if len(calls) == 1:
            run.seal()
            clock.advance(660)
            refresh.drop_sealed(workspace)
        return found

    monkeypatch.setattr(manifest, "segments", listed_and_sealed)
    assert history.count(workspace, "r") == 2


def test_a_reader_that_holds_a_list_through_a_seal_and_a_merge_reads_what_it_held(workspace, run, clock):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    run.append({"step": 2, "loss": 2.0})
    held = [s.path for s in manifest.readable(workspace.ledger, "r")]
    run.seal()
    upkeep(workspace, "roll")
    clock.advance(7200)
    upkeep(workspace, "compact")
    assert workspace.store.count(held) == 2
    assert [row[0] for row in workspace.store.series(held, "loss", buckets=10)] == [1.0, 2.0]


def test_a_tail_that_nothing_was_written_to_yet_is_no_reason_to_read_twice(workspace, run, monkeypatch):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    with workspace.ledger.transaction() as transaction:
        manifest.start_live(transaction, workspace.ledger, "r", "metrics/r/live/next.jsonl")
    asked = []
    real = workspace.store.count
    monkeypatch.setattr(workspace.store, "count", lambda paths: asked.append(paths) or real(paths))
    assert history.count(workspace, "r") == 1
    assert len(asked) == 1


@pytest.mark.parametrize("harm", ["missing", "garbage"])
def test_a_damaged_segment_hides_no_other(workspace, run, harm, caplog):
    for number in range(3):
        run.append({"step": number, "loss": 1.0})
        path = workspace.state / run.seal()
    if harm == "missing":
        path.unlink()
    else:
        path.write_bytes(b"nothing of the kind")
    assert [row[0] for row in history.series(workspace, "r", "loss", buckets=10)] == [0.0, 1.0]
    assert history.count(workspace, "r") == 2
    assert "missing or damaged" in caplog.text


def test_a_bound_without_a_zone_and_an_unknown_column_are_refused(workspace, run):
    run.append({"step": 1, "loss": 1.0})
    with pytest.raises(ValueError, match="zone"):
        history.series(workspace, "r", "loss", buckets=10, until="2026-03-04T12:00:00")
    with pytest.raises(ValueError, match="extra"):
        history.series(workspace, "r", "extra", buckets=10)


def test_a_run_without_samples_has_no_course(workspace, run):
    assert history.series(workspace, "r", "loss", buckets=10) == []
    assert history.count(workspace, "r") == 0
