"""Real profiler traces against reference numbers that were computed independently, and the tools that make synthetic ones."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
import zlib
from decimal import Decimal
from pathlib import Path

import pytest

from trainflow_tui.analysis.traces import pieces
from trainflow_tui.analysis.traces.columns import DEVICE_ROWS
from trainflow_tui.analysis.traces.hotspots import hotspots
from trainflow_tui.analysis.traces.reader import ingest
from trainflow_tui.errors import TrainflowError

SHARED = Path(__file__).resolve().parents[2] / "../shared"
CORPUS = SHARED / "corpus/traces"
TOOLS = SHARED / "tools"
EXPECTED = CORPUS / "expected_timeline.csv"

pytestmark = pytest.mark.skipif(not EXPECTED.exists(), reason="the corpus ../shared/corpus/traces is absent")

REFERENCE = list(csv.DictReader(EXPECTED.open())) if EXPECTED.exists() else []
SPLIT = {
    "total_ns": "total_ms",
    "busy_ns": "busy_ms",
    "idle_ns": "idle_ms",
    "compute_ns": "compute_ms",
    "communication_ns": "comm_ms",
    "exposed_communication_ns": "exposed_comm_ms",
    "memcpy_ns": "memcpy_ms",
    "exposed_memcpy_ns": "exposed_memcpy_ms",
}


def read(path, directory, **options):
    with path.open("rb") as stream:
        result = ingest(stream, directory, **options)
    return result, hotspots(result.parts, all_rows=True).devices


def with_files(reference):
    return pytest.mark.parametrize("reference", reference, ids=[row["file"] for row in reference])


@with_files([row for row in REFERENCE if int(row["gpu_events"])])
def test_the_split_of_a_real_trace_equals_the_reference_to_the_nanosecond(tmp_path, reference):
    result, (device,) = read(CORPUS / reference["file"], tmp_path)
    found = {field: getattr(device, field) for field in SPLIT}
    assert found == {field: int(Decimal(reference[column]) * 10**6) for field, column in SPLIT.items()}
    busy = [row for row in device.hotspots if row.kind != "idle"]
    assert sum(row.attributed_ns for row in busy) == device.busy_ns
    assert sum(row.count for row in busy) == int(reference["gpu_events"])
    assert result.events == int(reference["events"])
    assert result.quality.zero_duration == int(reference["zero_dur"])
    assert result.source_bytes == int(reference["gz_bytes"])
    top = max((row for row in busy if row.kind in ("kernel", "communication")), key=lambda row: row.total_ns)
    assert (top.name[:80], top.count) == (reference["top_kernel"][:80], int(reference["top_kernel_n"]))
    assert [name for name, count in result.categories.items() if not count.known] == []


@with_files([row for row in REFERENCE if not int(row["gpu_events"])])
def test_a_real_trace_without_device_events_has_no_devices_and_says_so(tmp_path, reference):
    result, devices = read(CORPUS / reference["file"], tmp_path)
    assert (devices, result.events) == ((), int(reference["events"]))
    assert result.quality.notes == ("no-device-events",)


@pytest.mark.parametrize(
    "name", ["amd_mi300x_resnet_ddp_actckpt_rank0of8", "nv_v100_resnet_ns_resolution", "nv_h100_qwen1.5-0.5b_infer"]
)
@pytest.mark.parametrize("piece_bytes", [200_000, 1_300_000])
def test_the_piece_size_changes_nothing_in_a_real_trace(tmp_path, monkeypatch, name, piece_bytes):
    path = CORPUS / f"{name}.json.gz"
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole, devices = read(path, tmp_path / "whole")
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100_000)
    cut, cut_devices = read(path, tmp_path / "cut", piece_bytes=piece_bytes, workers=2)
    assert len(cut.parts) > len(whole.parts)
    assert (cut_devices, cut.categories, cut.quality) == (devices, whole.categories, whole.quality)
    assert cut.metadata == whole.metadata


def test_device_rows_alone_give_the_same_table(tmp_path):
    path = CORPUS / "nv_a100_ddp_nccl_rank0of2.json.gz"
    (tmp_path / "all").mkdir()
    (tmp_path / "device").mkdir()
    everything, devices = read(path, tmp_path / "all")
    short, short_devices = read(path, tmp_path / "device", schema=DEVICE_ROWS)
    assert short_devices == devices
    assert short.quality.rows == sum(row.count for row in devices[0].hotspots if row.kind != "idle")
    assert short.events == everything.events


def test_keys_before_and_after_the_events_of_real_traces_are_metadata(tmp_path):
    for name in ("nv_h100_bert-small_infer", "amd_mi300x_vllm_decode_hipgraph_full", "nv_v100_resnet_ns_resolution"):
        path = CORPUS / f"{name}.json.gz"
        document = json.loads(gzip.decompress(path.read_bytes()))
        del document["traceEvents"]
        assert read(path, tmp_path)[0].metadata == document


@pytest.mark.parametrize("rank", [0, 1])
def test_an_ascend_trace_is_read_and_its_unknown_work_is_reported(tmp_path, rank):
    path = CORPUS / f"ascend_ddp_level1/rank{rank}/trace_view.json.gz"
    events = json.loads(gzip.decompress(path.read_bytes()))
    result, devices = read(path, tmp_path)
    assert devices == ()
    assert result.events == len(events)
    unknown = {name: count.total_ns for name, count in result.categories.items() if not count.known}
    for name in ("enqueue", "dequeue"):
        spent = sum(Decimal(str(e["dur"])) for e in events if e.get("cat") == name)
        assert unknown[name] == int(spent * 1000)


# -- damaged variants


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    directory = tmp_path_factory.mktemp("damaged")
    tool = [sys.executable, str(TOOLS / "damaged_traces.py"), str(CORPUS / "amd_mi250_minitoy_train.json.gz")]
    subprocess.run([*tool, str(directory)], check=True, capture_output=True)
    return directory


OWED = """same 00-undamaged.json|fewer 01-truncated.json|fewer 02-truncated.json.gz|same 03-nan-infinity.json
same 04-lower-case-inf.json|same 05-invalid-utf8.json|same 06-control-character.json|same 07-bare-backslash.json
same 08-unescaped-quote.json|same 09-lone-surrogate.json|same 10-duplicate-key.json|same 11-timestamps-as-strings.json
same 12-two-gzip-members.json.gz|same 13-gzip-named-json.json|same 14-byte-order-mark.json|same 15-trailing-comma.json
same 16-top-level-array.json|same 17-null-event.json|empty 18-no-events.json|same 19-cpu-op-without-args.json
same 20-no-flow-events.json|same 21-old-categories.json|same 22-unknown-metadata.json|same 23-event-without-cat.json
same 24-event-without-dur.json|minus 25-negative-duration.json|minus 26-zero-timestamp.json
minus 27-kernel-of-236-years.json|same 28-integer-beyond-64-bits.json|two 29-two-devices.json"""


def owed():
    return [tuple(entry.split(" ", 1)) for line in OWED.splitlines() for entry in line.split("|")]


def test_every_damaged_variant_is_looked_at(damaged):
    expected = json.loads((damaged / "expected.json").read_text())
    assert {name: entry["owes"] for name, entry in expected.items()} == {name: owes for owes, name in owed()}


@pytest.mark.parametrize(("owes", "name"), owed(), ids=[name for _, name in owed()])
@pytest.mark.parametrize("piece_bytes", [4_000, 1 << 20])
def test_a_damaged_trace_gives_what_it_owes(tmp_path, monkeypatch, damaged, owes, name, piece_bytes):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 20_000)
    (tmp_path / "base").mkdir()
    _, (base,) = read(damaged / "00-undamaged.json", tmp_path / "base")
    result, devices = read(damaged / name, tmp_path, piece_bytes=piece_bytes)
    if owes == "same":
        assert devices == (base,)
    elif owes == "empty":
        assert devices == ()
        assert not result.quality.truncated
    elif owes == "two":
        assert [device.device for device in devices] == [2, 3]
        assert all(getattr(devices[0], f) == getattr(devices[1], f) == getattr(base, f) for f in SPLIT)
    elif owes == "minus":
        assert devices[0] == base_without(damaged, name, tmp_path)
    else:
        assert result.quality.truncated
        assert result.events == complete_events(damaged / name)


def base_without(damaged, name, directory):
    """The undamaged trace without the event that the variant damaged."""
    document = json.loads((damaged / "00-undamaged.json").read_text())
    variant = json.loads((damaged / name).read_text())
    pairs = zip(document["traceEvents"], variant["traceEvents"], strict=True)
    document["traceEvents"] = [event for event, other in pairs if event == other]
    assert len(document["traceEvents"]) == len(variant["traceEvents"]) - 1
    (directory / "without").mkdir()
    path = directory / "without.json"
    path.write_text(json.dumps(document))
    return read(path, directory / "without")[1][0]


def complete_events(path):
    """How many events stand whole in a text that breaks off, by decoding one after the other."""
    raw = path.read_bytes()
    if path.suffix == ".gz":
        raw = zlib.decompressobj(wbits=31).decompress(raw)
    text, count = raw.decode(), 0
    at = text.index("[", text.index('"traceEvents"')) + 1
    decoder = json.JSONDecoder()
    while True:
        try:
            _, at = decoder.raw_decode(text, at)
        except ValueError:
            return count
        count += 1
        at += len(text[at:]) - len(text[at:].lstrip(", \n"))


# -- synthetic traces with the truth beside them


def generated(directory, *options):
    path = directory / "trace.json"
    command = [sys.executable, str(TOOLS / "gen_trace.py"), str(path), "--mb", "1.5", "--layers", "8", *options]
    subprocess.run(command, check=True, capture_output=True)
    truth = json.loads((directory / "trace.truth.json").read_text())
    return (path if path.exists() else directory / "trace.json.gz"), truth


SHAPES = [
    *(
        ("--defect", defect)
        for defect in ("none", "truncated", "inf", "badutf8", "strpid", "quotes", "ctrl", "backslash")
    ),
    *(("--style", style) for style in ("compact", "indent", "sorted")),
    ("--vendor", "amd"),
    ("--gz", "6", "--rank", "3"),
]


@pytest.mark.parametrize("options", SHAPES, ids=" ".join)
def test_a_generated_trace_gives_its_truth_in_every_shape_and_with_every_defect(tmp_path, monkeypatch, options):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 50_000)
    path, truth = generated(tmp_path, *options)
    result, (device,) = read(path, tmp_path, piece_bytes=300_000)
    found = {row.name: {"count": row.count, "total_ns": row.total_ns} for row in device.hotspots if row.kind != "idle"}
    assert found == truth["kernels"]
    counts = {name: count.events for name, count in result.categories.items() if name}
    owed_counts = {name: count for name, count in truth["counts"].items() if not name.startswith("ph_")}
    if "truncated" in options:
        del owed_counts["Trace"]
        assert result.quality.truncated
    assert counts == owed_counts
    assert result.quality.bad == 0
    if "strpid" not in options:  # its odd kernel belongs to no step
        assert device.busy_ns == sum(step["busy_ns"] for step in truth["steps"])
        assert device.communication_ns == sum(step["comm_ns"] for step in truth["steps"])


def test_a_table_of_numbers_is_refused_with_a_reason(tmp_path):
    with pytest.raises(TrainflowError, match="not a profiler trace"):
        read(EXPECTED, tmp_path)
