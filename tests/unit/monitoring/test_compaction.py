"""Roll-ups, merging and retention: each sample in them once, whatever is interleaved, whoever else does it."""

from __future__ import annotations

import math
import os
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.monitoring.segments import SECONDS, Run, assert_same, rolled_by_hand
from trainflow_tui import refresh
from trainflow_tui.clock import ManualClock, to_iso
from trainflow_tui.errors import DamagedError, RefusedError
from trainflow_tui.ledger import manifest
from trainflow_tui.monitoring import compaction, history, leftovers
from trainflow_tui.monitoring.compaction import Upkeep
from trainflow_tui.store import rollups
from trainflow_tui.workspace import Workspace

START = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)


@pytest.fixture
def run(workspace):
    return Run(workspace)


def step(workspace, kind):
    """The next thing of a kind that is due, however little."""
    return next(s for s in compaction.due(workspace, eager=True) if s.kind == kind)


def roll(workspace):
    assert compaction.do(workspace, step(workspace, "roll"))


def every_rollup_is_right(run, samples):
    for level in SECONDS:
        assert_same(run.rollups(level), rolled_by_hand(samples, level))


def test_a_bucket_that_a_seal_cuts_is_put_together_from_its_parts(workspace, run, clock):
    for number in range(4):
        run.append({"step": number, "loss": 4.0 - number}, {"step": number, "loss": 9.0, "throughput": 7.0})
        run.seal()
        roll(workspace)
        clock.advance(20)
    assert [s.level for s in manifest.segments(workspace.ledger, "r")].count("roll60") == 4
    every_rollup_is_right(run, run.samples)
    assert sorted(run.rollups("roll60")) == [
        ("2026-03-04T12:00:00.000000Z", None, 1, 1, 0),
        ("2026-03-04T12:01:00.000000Z", None, 1, 1, 0),
    ]
    clock.advance(2 * 86400)
    assert compaction.do(workspace, step(workspace, "compact"))
    every_rollup_is_right(run, run.samples)


def test_ranks_attempts_and_generations_are_rolled_apart(workspace, run):
    run.append(*({"step": 1, "loss": float(rank), "extra": {"rank": rank}} for rank in range(3)))
    run.append({"step": 1, "loss": 8.0, "attempt": 2}, {"step": None, "loss": None, "lr": 1.0})
    run.generation, run.offset = 2, 0
    run.append({"step": 5000, "loss": math.nan}, {"step": 5001, "loss": math.inf}, {"step": 5002, "loss": -1.0})
    run.seal()
    roll(workspace)
    every_rollup_is_right(run, run.samples)
    assert len(run.rollups("roll600")) == 6


def test_a_sample_that_came_twice_is_rolled_once(workspace, run):
    run.append({"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0})
    run.seal()
    roll(workspace)
    run.offset -= 10
    again = run.append({"step": 2, "loss": 2.0})
    run.append({"step": 3, "loss": 3.0})
    run.seal()
    roll(workspace)
    every_rollup_is_right(run, [s for s in run.samples if s is not again[0]])
    assert history.count(workspace, "r") == 3


def test_a_sample_that_came_twice_is_rolled_and_merged_once_also_where_both_are_new(workspace, run, clock):
    run.append({"step": 1, "loss": 1.0}, {"step": 2, "loss": 2.0})
    run.seal()
    run.offset -= 10
    again = run.append({"step": 2, "loss": 2.0})
    run.append({"step": 3, "loss": 4.0})
    run.seal()
    roll(workspace)
    single = [s for s in run.samples if s is not again[0]]
    every_rollup_is_right(run, single)
    clock.advance(3600)
    assert compaction.do(workspace, step(workspace, "compact"))
    assert run.stored("rolled") == [(s["gen"], s["off"]) for s in single]


def test_parts_of_different_weight_are_weighted_and_the_newest_value_that_is_a_number_is_the_last(
    workspace, run, clock
):
    for losses in ([1.0], [5.0, 6.0, 10.0], [2.0, math.nan]):
        run.append(*({"step": 1, "loss": loss} for loss in losses))
        run.seal()
        roll(workspace)
        clock.advance(25)
    every_rollup_is_right(run, run.samples)
    clock.advance(2 * 86_400)
    while [s for s in compaction.due(workspace, eager=True) if s.kind == "compact"]:
        assert compaction.do(workspace, step(workspace, "compact"))
    every_rollup_is_right(run, run.samples)
    assert [whole["loss"] for whole in run.rollups("roll600").values()] == [(1.0, 10.0, 24.0, 5, 2.0)]


def test_samples_after_a_clock_that_was_set_back_find_their_bucket(workspace, run, clock):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    roll(workspace)
    clock.set_wall(START - timedelta(minutes=30))
    run.append({"step": 2, "loss": 2.0})
    clock.set_wall(START)
    run.append({"step": 3, "loss": 3.0})
    run.seal()
    roll(workspace)
    every_rollup_is_right(run, run.samples)


def test_rolling_waits_for_ten_segments_or_ten_minutes(workspace, run, clock):
    for number in range(9):
        run.append({"step": number, "loss": 1.0})
        run.seal()
    assert compaction.due(workspace) == []
    clock.advance(599)
    assert compaction.due(workspace) == []
    clock.advance(1)
    assert [(s.kind, len(s.segments)) for s in compaction.due(workspace)] == [("roll", 9)]
    clock.advance(-1)
    run.append({"step": 9, "loss": 1.0})
    run.seal()
    assert [(s.kind, len(s.segments)) for s in compaction.due(workspace)] == [("roll", 10)]


def test_many_segments_become_hours_and_then_days_and_few_stay_as_they_are(workspace, run, clock, monkeypatch):
    monkeypatch.setattr(compaction, "COMPACT_ABOVE", {"raw": 5, "roll60": 5, "roll600": 5})
    upkeep = Upkeep()
    for hour in range(14):
        for _ in range(2):
            run.append({"step": hour, "loss": float(hour)})
            run.seal()
            clock.advance(1800)
        while upkeep.step(workspace):
            pass
        assert len(run.level("raw")) <= 5 + 1 + 12  # a day's hours are merged when the day is over
    assert history.count(workspace, "r") == 28
    every_rollup_is_right(run, run.samples)
    rows = {s.rows for s in manifest.segments(workspace.ledger, "r") if s.level == "raw"}
    assert 24 in rows  # 4 March from noon


def test_a_step_writes_no_more_than_its_share(workspace, run, clock, monkeypatch):
    monkeypatch.setattr(compaction, "STEP_ROWS", 6)
    for number in range(7):
        run.append(*({"step": 10 * number + i, "loss": 1.0} for i in range(2)))
        run.seal()
    clock.advance(7200)
    sizes = []
    while found := compaction.due(workspace, eager=True):
        sizes.append((found[0].kind, found[0].level, [s.rows for s in found[0].segments]))
        compaction.do(workspace, found[0])
    assert [s for s in sizes if s[0] == "roll"] == [("roll", "raw", [2, 2, 2])] * 2 + [("roll", "raw", [2])]
    assert [s for s in sizes if s[1] == "raw" and s[0] == "compact"] == [("compact", "raw", [2, 2, 2])] * 2
    assert history.count(workspace, "r") == 14


def test_a_dropped_file_is_unlinked_after_ten_minutes_and_not_before(workspace, run, clock):
    for number in range(3):
        run.append({"step": number, "loss": 1.0})
        run.seal()
    tails = [workspace.state / f"metrics/r/live/{n}.jsonl" for n in (1, 2, 3)]
    roll(workspace)
    clock.advance(3600)
    refresh.drop_sealed(workspace)
    assert not any(path.exists() for path in tails)
    old = [workspace.state / path for path in run.level("raw")]
    assert compaction.do(workspace, step(workspace, "compact"))
    clock.advance(600)
    refresh.drop_sealed(workspace)
    assert all(path.exists() for path in old)
    clock.advance(1)
    refresh.drop_sealed(workspace)
    assert not any(path.exists() for path in old)
    # Nothing of them is left in the manifest, and what took their place is.
    assert manifest.paths(workspace.ledger) == set(run.paths("rolled", "rollup"))


def test_of_two_that_do_the_same_step_one_does_it(workspace, run, clock):
    for number in range(3):
        run.append({"step": number, "loss": 1.0})
        run.seal()
    clock.advance(7200)
    other = Workspace.open(workspace.root, clock=clock)
    for kind in ("roll", "compact"):
        planned = step(workspace, kind)
        assert compaction.do(other, planned)
        files = sorted(workspace.state.glob("metrics/*/*/*"))
        assert not compaction.do(workspace, planned)
        assert sorted(workspace.state.glob("metrics/*/*/*")) == files
    other.close()
    assert history.count(workspace, "r") == 3
    every_rollup_is_right(run, run.samples)


def test_old_samples_go_once_they_are_rolled_up_and_roll_ups_stay(workspace, run, clock):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    clock.advance(8 * 86400)
    run.append({"step": 2, "loss": 2.0})
    run.seal()
    assert compaction.too_old(workspace) == []
    old = manifest.segments(workspace.ledger, "r")[0]
    with pytest.raises(manifest.OvertakenError), workspace.ledger.transaction() as transaction:
        manifest.drop(transaction, workspace.ledger, [old])
    roll(workspace)
    (found,) = compaction.too_old(workspace)
    assert [s.rows for s in found.segments] == [1]
    assert compaction.do(workspace, found)
    assert history.count(workspace, "r") == 1
    every_rollup_is_right(run, run.samples)
    assert [row[0] for row in history.series(workspace, "r", "loss", buckets=50)] == [1.0, 2.0]


def test_samples_whose_roll_up_was_deleted_are_not_dropped(workspace, run, clock):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    roll(workspace)
    clock.advance(8 * 86400)
    (workspace.state / run.level("roll60")[0]).unlink()
    with pytest.raises(DamagedError, match="roll60"):
        compaction.do(workspace, compaction.too_old(workspace)[0])
    assert len(run.level("raw")) == 1


def test_one_damaged_run_holds_up_no_other(workspace, clock):
    bad, good = Run(workspace, "bad"), Run(workspace, "good")
    for one in (bad, good):
        one.append({"step": 1, "loss": 1.0})
        path = one.seal()
        if one is bad:
            (workspace.state / path).write_bytes(b"PAR1 no more")
    clock.advance(600)
    upkeep = Upkeep()
    while upkeep.step(workspace):
        pass
    assert (len(good.level("roll60")), len(bad.level("roll60"))) == (1, 0)
    assert bad.paths("parquet") != []
    assert not upkeep.step(workspace)
    assert list((workspace.state / "metrics/bad").glob("*/.*.tmp")) == []


def test_a_step_that_fails_leaves_nothing_behind(workspace, run, monkeypatch):
    run.append({"step": 1, "loss": 1.0})
    run.seal()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(workspace.store, "widen", full)
    with pytest.raises(OSError, match="No space"):
        roll(workspace)
    assert list(workspace.state.glob("metrics/r/roll*/*")) == []
    assert run.paths("rolled", "rollup") == []


def test_a_read_only_workspace_stays_as_it_is(workspace, run):
    run.append({"step": 1, "loss": 1.0})
    run.seal()
    files = sorted(workspace.state.glob("metrics/*/*/*"))
    reader = Workspace.open(workspace.root, flags={"readonly": True})
    with pytest.raises(RefusedError, match="read-only"):
        compaction.do(reader, step(reader, "roll"))
    reader.close()
    assert sorted(workspace.state.glob("metrics/*/*/*")) == files


def test_a_file_that_no_row_names_is_swept_after_an_hour_and_cannot_be_recorded_then(workspace, run, monkeypatch):
    run.append({"step": 1, "loss": 1.0})
    named = workspace.state / run.seal()
    orphan = named.with_name("orphan.parquet")
    orphan.write_bytes(b"x")
    for path in (named, orphan):
        os.utime(path, (1, 1))
    fresh = named.with_name("fresh.parquet")
    fresh.write_bytes(b"x")
    assert leftovers.drop(workspace) == 1
    assert (named.exists(), orphan.exists(), fresh.exists()) == (True, False, True)

    real = workspace.store.roll

    def roll_and_lose(*arguments, **named_arguments):
        written = real(*arguments, **named_arguments)
        (workspace.state / arguments[1]).unlink()
        return written

    monkeypatch.setattr(workspace.store, "roll", roll_and_lose)
    assert not compaction.do(workspace, step(workspace, "roll"))
    assert run.paths("rollup", "rolled") == []


VALUES = st.one_of(st.none(), st.floats(-1e6, 1e6), st.just(math.nan), st.just(math.inf))
ROWS = st.builds(
    lambda step, loss, speed, rank: {
        "step": step,
        "loss": loss,
        "throughput": speed,
        "extra": {} if rank is None else {"rank": rank},
    },
    st.sampled_from([None, 1, 2, 3, 1023, 1024]),
    VALUES,
    VALUES,
    st.sampled_from([None, None, None, 0, 1]),
)
DEEDS = st.one_of(
    st.tuples(st.just("append"), st.lists(ROWS, min_size=1, max_size=6)),
    st.tuples(st.just("advance"), st.sampled_from([1, 30, 61, 3700, 90_000, 8 * 86_400])),
    st.tuples(st.sampled_from(["seal", "seal", "roll", "compact", "retain", "unlink", "restart", "rotate"]), st.none()),
)


@given(st.lists(DEEDS, min_size=4, max_size=24))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_interleaving_keeps_every_sample_once(tmp_path_factory, deeds):
    root = tmp_path_factory.mktemp("w")
    root.chmod(0o700)
    clock = ManualClock(START)
    workspace = Workspace.open(root, create=True, clock=clock)
    run, attempt, cut = Run(workspace), 1, ""
    for deed, given_ in deeds:
        if deed == "append":
            run.append(*(row | {"attempt": attempt} for row in given_))
        elif deed == "advance":
            clock.advance(given_)
        elif deed == "restart":
            attempt += 1
        elif deed == "rotate":
            run.generation, run.offset = run.generation + 1, 0
        elif deed == "seal" and run.live:
            run.seal()
        elif deed == "retain":
            cut = to_iso(clock.now() - timedelta(days=7))
            for one in compaction.too_old(workspace):
                assert compaction.do(workspace, one)
        elif deed == "unlink":
            refresh.drop_sealed(workspace)
        elif deed in ("roll", "compact"):
            for one in [s for s in compaction.due(workspace, eager=True) if s.kind == deed]:
                assert compaction.do(workspace, one)
    kept = run.stored("live", "parquet", "rolled")
    by_identity = {(s["gen"], s["off"]): s for s in run.samples}
    assert len(kept) == len(set(kept)) == history.count(workspace, "r")
    gone = by_identity.keys() - set(kept)
    assert set(kept) <= by_identity.keys()
    assert all(by_identity[identity]["at"] < cut for identity in gone)
    waiting = set(run.stored("live", "parquet"))
    every_rollup_is_right(run, [s for identity, s in by_identity.items() if identity not in waiting])
    newest = {}
    for identity in sorted(kept, key=lambda identity: (by_identity[identity]["attempt"], identity)):
        sample = by_identity[identity]
        if sample["step"] is not None and sample["loss"] is not None:
            newest[sample["step"]] = sample["loss"]
    expected = [(float(step), v, v, v) for step, v in sorted(newest.items()) if math.isfinite(v)]
    samples = [s.path for s in manifest.readable(workspace.ledger, "r")]
    assert workspace.store.series(samples, "loss", buckets=4000) == expected
    workspace.close()


def test_the_metrics_of_a_roll_up_are_the_number_columns_of_a_sample():
    assert set(rollups.METRICS) == {
        "loss",
        "grad_norm",
        "lr",
        "step_time_s",
        "tokens_per_s_per_gpu",
        "tflops_per_gpu",
        "samples_per_s",
        "throughput",
    }
