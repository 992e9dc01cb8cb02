"""The list of hot-spots: which rows, in which order, until where; and the summary that is kept of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.analysis.traces.hotspots import hotspots
from trainflow_tui.analysis.traces.records import CategoryCount, IngestResult, TraceHotspots, TraceQuality, TraceSummary
from trainflow_tui.analysis.traces.summary import summarise
from trainflow_tui.errors import DamagedError, UsageError

ROOT = Path(__file__).resolve().parents[3]


def part(directory, events, name="p00001.parquet"):
    """Events as (name, start, end), or with category, device and process id behind."""
    path = directory / name
    quoted = str(path).replace("'", "''")
    rows = [(*event, *("kernel", 0, "0")[len(event) - 3 :]) for event in events]
    values = ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(rows))
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE event (name TEXT, s BIGINT, e BIGINT, cat TEXT, dev BIGINT, pid TEXT)")
        connection.execute(f"INSERT INTO event VALUES {values}", [cell for row in rows for cell in row])
        connection.execute(
            f"COPY (SELECT cat, name, pid, dev, s AS ts_ns, e - s AS dur_ns FROM event) TO '{quoted}' (FORMAT parquet)"
        )
    return str(path)


def listed(device):
    return [(row.kind.value, row.name, row.count, row.total_ns, row.attributed_ns) for row in device.hotspots]


def test_rows_carry_count_raw_sum_and_equal_share(tmp_path):
    parts = [part(tmp_path, [("a", 0, 80), ("b", 20, 100), ("a", 100, 110)])]
    (device,) = hotspots(parts, all_rows=True).devices
    assert listed(device) == [("kernel", "a", 2, 90, 60), ("kernel", "b", 1, 80, 50)]


def test_the_list_includes_the_row_that_crosses_the_target(tmp_path):
    events = [("a", 0, 60), ("b", 60, 85), ("c", 85, 95), ("d", 95, 100)]
    (device,) = hotspots([part(tmp_path, events)], target=0.9).devices
    assert [row.name for row in device.hotspots] == ["a", "b", "c"]
    assert [row.cumulative_share for row in device.hotspots] == [0.6, 0.85, 0.95]


def test_the_list_ends_where_the_target_is_met_exactly(tmp_path):
    """0.3 + 0.6 is below 0.9 in binary floating point, and is 0.9."""
    events = [("a", 0, 60), ("b", 60, 90), ("c", 90, 100)]
    (device,) = hotspots([part(tmp_path, events)], target=0.9).devices
    assert [row.name for row in device.hotspots] == ["a", "b"]


def test_idle_time_is_a_row_ranked_among_the_others(tmp_path):
    events = [("a", 0, 30), ("b", 50, 60), ("a", 90, 100)]
    (device,) = hotspots([part(tmp_path, events)], all_rows=True).devices
    assert listed(device) == [("idle", "idle", 2, 50, 50), ("kernel", "a", 2, 40, 40), ("kernel", "b", 1, 10, 10)]
    assert device.hotspots[-1].cumulative_share == 1.0
    assert (device.window_ns, device.busy_ns, device.idle_ns) == (100, 50, 50)


def test_equal_rows_are_ordered_by_name(tmp_path):
    parts = [part(tmp_path, [("b", 0, 10), ("a", 10, 20), ("c", 20, 30)])]
    assert [row.name for row in hotspots(parts, all_rows=True).devices[0].hotspots] == ["a", "b", "c"]


def test_rows_are_ranked_by_the_exact_share_not_the_rounded_one(tmp_path):
    """Two have half a nanosecond and three a third; whole nanoseconds would leave it to the names."""
    events = [("z", 0, 1), ("x", 0, 1), ("c", 1, 2), ("b", 1, 2), ("a", 1, 2)]
    (device,) = hotspots([part(tmp_path, events)], all_rows=True).devices
    assert [(row.name, row.attributed_ns) for row in device.hotspots] == [
        ("x", 1),
        ("z", 1),
        ("a", 0),
        ("b", 0),
        ("c", 0),
    ]


def test_kinds_follow_category_and_name(tmp_path):
    events = [
        ("ncclDevKernel_AllReduce", 0, 10),
        ("RCCL_generic", 10, 19),
        ("void Cross_Device_Reduce_1stage", 20, 28),
        ("gemm", 30, 37),
        ("nccl staging", 40, 46, "gpu_memcpy"),
        ("nccl zero", 50, 55, "gpu_memset"),
        ("nccl:all_reduce", 0, 500, "user_annotation"),
    ]
    (device,) = hotspots([part(tmp_path, events)], all_rows=True).devices
    assert [(row.kind.value, row.attributed_ns) for row in device.hotspots if row.kind != "idle"] == [
        ("communication", 10),
        ("communication", 9),
        ("communication", 8),
        ("kernel", 7),
        ("memcpy", 6),
        ("memset", 5),
    ]
    assert (device.compute_ns, device.communication_ns, device.memcpy_ns, device.window_ns) == (12, 27, 6, 55)


def test_one_name_of_two_kinds_makes_two_rows(tmp_path):
    events = [("fill", 0, 10), ("fill", 10, 15, "gpu_memset")]
    (device,) = hotspots([part(tmp_path, events)], all_rows=True).devices
    assert listed(device) == [("kernel", "fill", 1, 10, 10), ("memset", "fill", 1, 5, 5)]


def test_every_device_has_its_own_window_numbers_before_names(tmp_path):
    events = [
        ("a", 0, 10, "kernel", 10, "x"),
        ("a", 1000, 1004, "kernel", 2, "x"),
        ("a", 50, 57, "kernel", None, "gpu zero"),
        ("a", 60, 68, "kernel", None, "3"),
    ]
    devices = hotspots([part(tmp_path, events)]).devices
    assert [(device.device, device.window_ns) for device in devices] == [(2, 4), (3, 8), (10, 10), ("gpu zero", 7)]


def test_the_parts_of_a_trace_are_one_timeline(tmp_path):
    parts = [part(tmp_path, [("a", 50, 60)], "p1.parquet"), part(tmp_path, [("a", 0, 55)], "it's p2.parquet")]
    (device,) = hotspots(parts).devices
    assert (device.window_ns, device.busy_ns) == (60, 60)


def test_a_trace_without_device_events_has_no_devices(tmp_path):
    assert hotspots([]).devices == ()
    assert hotspots([part(tmp_path, [("aten::mm", 0, 5, "cpu_op")])]).devices == ()


def test_a_device_with_one_instant_has_shares_of_zero(tmp_path):
    (device,) = hotspots([part(tmp_path, [("a", 5, 5)])], all_rows=True).devices
    assert (device.window_ns, device.hotspots[0].share, device.hotspots[0].count) == (0, 0.0, 1)


def test_a_part_that_is_gone_or_broken_is_named(tmp_path):
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"not parquet")
    for path in (broken, tmp_path / "gone.parquet"):
        with pytest.raises(DamagedError, match="cannot be read") as caught:
            hotspots([str(path)])
        assert caught.value.subject == str(path)


@pytest.mark.parametrize("target", [0, -0.1, 1.01, float("nan")])
def test_a_target_that_is_no_share_is_refused(target):
    with pytest.raises(UsageError, match="target"):
        hotspots([], target=target)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "nccl c", "d"]), st.integers(0, 40), st.integers(0, 20)),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from([0.1, 0.5, 0.9, 1.0]),
)
def test_the_list_is_the_shortest_head_that_reaches_the_target(tmp_path_factory, events, target):
    parts = [part(tmp_path_factory.mktemp("t"), [(name, start, start + length) for name, start, length in events])]
    (whole,) = hotspots(parts, all_rows=True).devices
    (short,) = hotspots(parts, target=target).devices
    size = len(short.hotspots)
    assert short.hotspots == whole.hotspots[:size]
    assert sum(row.attributed_ns for row in whole.hotspots if row.kind != "idle") == whole.busy_ns
    assert sum(row.attributed_ns for row in whole.hotspots) == whole.window_ns
    reached = sum(row.attributed_ns for row in short.hotspots)
    assert reached >= target * whole.window_ns - len(whole.hotspots)  # rounding moves a row by less than one ns
    if size:
        assert reached - short.hotspots[-1].attributed_ns < target * whole.window_ns + len(whole.hotspots)


def test_the_document_has_the_promised_keys(tmp_path):
    result = hotspots([part(tmp_path, [("a", 0, 10)])], file="t.json", quality=TraceQuality(repaired=3))
    document = json.loads(msgspec.json.encode(result))
    assert list(document) == ["file", "devices", "quality"]
    assert list(document["devices"][0]) == [
        "device",
        "window_ns",
        "total_ns",
        "busy_ns",
        "idle_ns",
        "compute_ns",
        "communication_ns",
        "exposed_communication_ns",
        "memcpy_ns",
        "exposed_memcpy_ns",
        "hotspots",
    ]
    assert document["devices"][0]["hotspots"] == [
        {
            "kind": "kernel",
            "name": "a",
            "count": 1,
            "total_ns": 10,
            "attributed_ns": 10,
            "share": 1.0,
            "cumulative_share": 1.0,
        },
    ]
    assert document["quality"]["repaired"] == 3
    assert msgspec.json.decode(msgspec.json.encode(result), type=TraceHotspots) == result


def test_the_summary_keeps_the_split_the_first_twenty_rows_and_the_unknown_categories(tmp_path):
    events = [(f"k{i:02d}", 100 * i, 100 * i + 50 - i) for i in range(30)]
    found = hotspots([part(tmp_path, events)], file="t.json", all_rows=True)
    known = CategoryCount(events=30, complete=30, rows=30, total_ns=1, known=True)
    unknown = CategoryCount(events=2, complete=2, rows=0, total_ns=7, known=False)
    ingested = IngestResult(
        parts=(),
        events=32,
        categories={"kernel": known, "npu": unknown},
        quality=TraceQuality(),
        metadata={},
        source_sha256="ab",
        source_bytes=9,
    )
    summary = summarise(ingested, found)
    (device,) = summary.devices
    assert device.hotspots == found.devices[0].hotspots[:20]
    assert device.hotspot_rows == 31
    assert device.split.total_ns == found.devices[0].total_ns
    assert device.split.exposed_memcpy_ns == found.devices[0].exposed_memcpy_ns
    assert summary.unknown_categories == {"npu": unknown}
    assert msgspec.json.decode(msgspec.json.encode(summary), type=TraceSummary) == summary


def test_records_and_summary_import_neither_duckdb_nor_numpy():
    code = (
        "import sys, trainflow_tui.analysis.traces.summary, trainflow_tui.analysis.traces.generator;"
        "print([m for m in ('duckdb', 'numpy') if m in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
