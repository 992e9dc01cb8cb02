"""Synthetic traces are valid, repeatable, and read back exactly as they were meant."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from trainflow_tui.analysis.traces.generator import write_synthetic_trace
from trainflow_tui.analysis.traces.hotspots import hotspots
from trainflow_tui.analysis.traces.reader import ingest


@pytest.mark.parametrize(("rank", "steps", "seed"), [(0, 1, 1), (0, 4, 7), (1, 4, 7)])
def test_the_reader_finds_what_the_generator_knows(tmp_path, rank, steps, seed):
    path = tmp_path / "trace.json.gz"
    truth = write_synthetic_trace(path, rank=rank, world_size=2, steps=steps, seed=seed)
    with path.open("rb") as stream:
        result = ingest(stream, tmp_path)
    (device,) = hotspots(result.parts, all_rows=True).devices
    assert device.device == rank
    for field in truth.split.__struct_fields__:
        assert getattr(device, field) == getattr(truth.split, field), field
    assert {row.name: (row.count, row.total_ns) for row in device.hotspots if row.kind != "idle"} == truth.names
    assert result.events == truth.events
    assert result.metadata["distributedInfo"]["rank"] == rank


def test_a_demo_trace_has_something_to_show():
    truth = write_synthetic_trace(io.BytesIO(), rank=0, world_size=2, steps=3, seed=1)
    split = truth.split
    assert 0 < split.exposed_communication_ns < split.communication_ns
    assert 0 < split.exposed_memcpy_ns < split.memcpy_ns
    assert split.idle_ns > split.total_ns // 50
    assert split.compute_ns > split.total_ns // 2


def test_the_same_arguments_give_the_same_bytes_and_another_seed_does_not(tmp_path):
    def body(**changes):
        stream = io.BytesIO()
        write_synthetic_trace(stream, **({"rank": 0, "world_size": 2, "steps": 2, "seed": 5} | changes))
        return stream.getvalue()

    assert body() == body()
    assert len({body(), body(seed=6), body(rank=1), body(steps=3)}) == 4
    path = tmp_path / "t.json.gz"
    write_synthetic_trace(path, rank=0, world_size=2, steps=2, seed=5)
    assert gzip.decompress(path.read_bytes()) == body()


def test_a_collective_ends_on_all_ranks_at_the_same_moment():
    ends = []
    for rank in range(3):
        stream = io.BytesIO()
        write_synthetic_trace(stream, rank=rank, world_size=3, steps=2, seed=2)
        events = json.loads(stream.getvalue())["traceEvents"]
        reduced = [e for e in events if e["name"].startswith("ncclDevKernel")]
        ends.append([round((e["ts"] + e["dur"]) * 1000) for e in reduced])
    assert ends[0] == ends[1] == ends[2]
    assert len(ends[0]) == 8
