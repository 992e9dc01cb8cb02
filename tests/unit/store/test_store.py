"""Samples on disk: torn tails, sealing, each sample counted once, the newest attempt of a step."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger import manifest
from trainflow_tui.store.metrics import LiveTail
from trainflow_tui.store.query import Store


def sample(offset, step, loss, *, attempt=1, generation=1):
    return {
        "gen": generation,
        "off": offset,
        "at": "2026-01-01T00:00:00.000000Z",
        "attempt": attempt,
        "step": step,
        "loss": loss,
        "extra": {},
    }


@pytest.fixture
def state(tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "m").mkdir()
    return tmp_path


def test_a_torn_last_line_is_cut_and_read_again(state):
    path = state / "m/live.jsonl"
    LiveTail(path).append([sample(0, 1, 2.0), sample(10, 2, 1.9)])
    with open(path, "ab") as stream:
        stream.write(b'{"gen": 1, "off": 20, "st')
    tail = LiveTail(path)
    assert tail.last() == (1, 10)
    assert path.read_bytes().endswith(b"\n")


def test_a_doubled_sample_counts_once_before_and_after_sealing(state):
    LiveTail(state / "m/live.jsonl").append([sample(0, 1, 2.0), sample(10, 2, 1.9), sample(10, 2, 1.9)])
    store = Store(state)
    assert store.count(["m/live.jsonl"]) == 2
    rows, first, last = store.seal("m/live.jsonl", "m/a.parquet")
    assert (rows, first, last) == (2, "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000000Z")
    assert store.count(["m/a.parquet"]) == 2
    assert oct((state / "m/a.parquet").stat().st_mode)[-3:] == "600"
    store.close()


def test_the_newest_attempt_of_a_step_counts(state):
    LiveTail(state / "m/live.jsonl").append([sample(0, 1, 5.0), sample(10, 2, 4.0), sample(20, 2, 3.0, attempt=2)])
    store = Store(state)
    assert [(row[0], row[2]) for row in store.series(["m/live.jsonl"], "loss", buckets=10)] == [(1.0, 5.0), (2.0, 3.0)]
    store.close()


def test_the_newest_attempt_counts_also_where_an_older_one_stands_in_a_newer_file(state):
    LiveTail(state / "m/live.jsonl").append(
        [
            sample(0, 1, 5.0, attempt=2, generation=1),
            sample(0, 1, 4.0, attempt=1, generation=2),
            sample(1 << 40, 2, 3.0, attempt=1, generation=1),
            sample(0, 2, 2.0, attempt=1, generation=2),
        ]
    )
    store = Store(state)
    assert [(row[0], row[2]) for row in store.series(["m/live.jsonl"], "loss", buckets=10)] == [(1.0, 5.0), (2.0, 2.0)]
    store.close()


def test_non_finite_values_are_stored_as_such_and_left_out_of_charts(state):
    LiveTail(state / "m/live.jsonl").append(
        [sample(0, 1, math.nan), sample(10, 2, math.inf), sample(20, 3, 1.0), sample(30, 4, None)]
    )
    store = Store(state)
    for path in ("m/live.jsonl", "m/a.parquet"):
        if path.endswith("parquet"):
            store.seal("m/live.jsonl", path)
        assert store.series([path], "loss", buckets=10) == [(3.0, 1.0, 1.0, 1.0)]
        assert store.count([path]) == 4
    store.close()


def test_a_series_until_a_time_shows_what_was_known_then(state):
    def read_at(minute, *rows):
        return [s | {"at": f"2026-01-01T00:{minute:02}:00.000000Z"} for s in rows]

    LiveTail(state / "m/live.jsonl").append(
        read_at(1, sample(0, 1, 5.0), sample(10, 2, 4.0)) + read_at(2, sample(20, 2, 3.0, attempt=2))
    )
    store = Store(state)
    for path in ("m/live.jsonl", "m/a.parquet"):
        if path.endswith("parquet"):
            store.seal("m/live.jsonl", path)

        def means(path=path, **bounds):
            return [(row[0], row[2]) for row in store.series([path], "loss", buckets=10, **bounds)]

        assert means(until="2026-01-01T00:01:00Z") == [(1.0, 5.0), (2.0, 4.0)]
        assert means(until="2026-01-01T00:02:00.000000Z") == [(1.0, 5.0), (2.0, 3.0)]
        assert means(since="2026-01-01T01:01:00.000001+01:00") == [(2.0, 3.0)]
        assert means(since="2026-01-01T00:00:00Z", until="2026-01-01T00:00:59Z") == []
        with pytest.raises(ValueError, match="2026"):
            means(until="2026-01-01T00:01:00")
    store.close()


@given(st.lists(st.floats(0, 100, allow_nan=False), min_size=1, max_size=300), st.integers(1, 60))
@settings(max_examples=25, deadline=None)
def test_a_spike_survives_every_bucket_width(tmp_path_factory, losses, buckets):
    state = tmp_path_factory.mktemp("s")
    (state / "cache").mkdir()
    LiveTail(state / "m/live.jsonl").append([sample(i * 10, i, loss) for i, loss in enumerate(losses)])
    store = Store(state)
    found = store.series(["m/live.jsonl"], "loss", buckets=buckets)
    store.close()
    assert len(found) <= buckets
    assert min(row[1] for row in found) == min(losses)
    assert max(row[3] for row in found) == max(losses)


def test_the_manifest_names_every_sample_once_through_sealing(workspace):
    ledger = workspace.ledger
    with ledger.transaction() as transaction:
        manifest.start_live(transaction, ledger, "r", "metrics/r/live/a.jsonl")
    assert [s.path for s in manifest.readable(ledger, "r")] == ["metrics/r/live/a.jsonl"]
    seal = {
        "live_path": "metrics/r/live/a.jsonl",
        "parquet_path": "metrics/r/raw/a.parquet",
        "rows": 3,
        "first": "a",
        "last": "b",
    }
    with ledger.transaction() as transaction:
        manifest.seal(transaction, ledger, **seal)
    assert [s.path for s in manifest.readable(ledger, "r")] == ["metrics/r/raw/a.parquet"]
    with pytest.raises(RefusedError, match="sealed cannot be sealed"), ledger.transaction() as transaction:
        manifest.seal(transaction, ledger, **seal)


def test_a_path_with_a_quote_is_a_path(state):
    odd = state / "o'clock"
    (odd / "cache").mkdir(parents=True)
    LiveTail(odd / "m/live.jsonl").append([sample(0, 1, 2.0)])
    store = Store(odd)
    store.seal("m/live.jsonl", "m/a.parquet")
    assert store.count(["m/a.parquet"]) == 1
    store.close()


def test_a_line_that_is_no_sample_does_not_hide_the_others(state):
    path = state / "m/live.jsonl"
    LiveTail(path).append([sample(0, 1, 2.0)])
    with open(path, "a") as stream:
        stream.write("not json\n" + json.dumps(sample(10, 2, 1.0)) + "\n")
    store = Store(state)
    assert [row[0] for row in store.series(["m/live.jsonl"], "loss", buckets=5)] == [1.0, 2.0]
    store.close()
