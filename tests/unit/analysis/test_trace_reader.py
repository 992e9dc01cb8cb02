"""Reading: every legal shape of the file, cuts at any place, exact times, and what is reported beside the rows."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
from decimal import Decimal

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.analysis.traces import pieces, reader
from trainflow_tui.analysis.traces.columns import DEVICE_ROWS, DOUBLES, REWRITTEN, WHOLE_NUMBERS, likely_reading
from trainflow_tui.analysis.traces.loading import JsonSlot
from trainflow_tui.analysis.traces.reader import IngestCancelledError, ingest
from trainflow_tui.errors import DamagedError

KEPT = ("kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime", "user_annotation")


def kernel(name="k", ts=10.0, dur=1.0, **changes):
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur}
    return event | {"args": {"device": 0, "stream": 7, "correlation": 5}} | changes


def read(text, directory, **options):
    raw = text if isinstance(text, bytes) else json.dumps(text).encode()
    return ingest(io.BytesIO(raw), directory, **options)


def rows(result, columns="name, ts_ns, dur_ns"):
    if not result.parts:
        return []
    with duckdb.connect() as connection:
        return connection.execute(
            f"SELECT {columns} FROM read_parquet(?) ORDER BY ALL", [list(result.parts)]
        ).fetchall()


# -- the shape of the file


def test_a_row_has_the_columns_of_the_schema(tmp_path):
    args = {
        "External id": 3, "correlation": 5, "stream": 7, "device": 1, "bytes": 4096, "grid": [1, 2, 3],
        "block": [64, 1, 1], "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 8, "Group size": 2,
        "Process Group Name": "0", "Input Dims": [[2, 3], []], "Input type": ["float", ""],
    }  # fmt: skip
    result = read({"traceEvents": [kernel(args=args, tid="stream 7", ts=1.5, dur=0.25)]}, tmp_path)
    columns = "cat, name, pid, tid, ts_ns, dur_ns, ext, corr, stream, dev, nbytes, grid, block, coll, dtype, nelems"
    assert rows(result, columns + ", gsize, pg, dims, types") == [
        ("kernel", "k", "0", "stream 7", 1500, 250, 3, 5, 7, 1, 4096, "[1,2,3]", "[64,1,1]", "allreduce", "BFloat16", 8,
         2, "0", "[[2,3],[]]", '["float",""]'),
    ]  # fmt: skip


def test_keys_before_and_after_the_events_are_metadata(tmp_path):
    before = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": '}, {"ph": "'}],
        "distributedInfo": {"rank": 3},
    }
    after = {"traceName": "]}", "baseTimeNanoseconds": 1767189312000000000, "more": [{"id": 1}, {"id": 2}]}
    result = read({**before, "traceEvents": [kernel()], **after}, tmp_path)
    assert result.metadata == before | after
    assert len(rows(result)) == 1


@pytest.mark.parametrize("layout", [{}, {"indent": 1}, {"indent": 4}, {"separators": (",", ":")}, {"sort_keys": True}])
def test_every_layout_gives_the_same_rows(tmp_path, layout):
    events = [kernel(str(i), ts=i + 0.123, dur=0.456) for i in range(9)]
    result = read(json.dumps({"a": 1, "traceEvents": events, "z": 2}, **layout).encode(), tmp_path)
    assert rows(result) == [(str(i), i * 1000 + 123, 456) for i in range(9)]


@pytest.mark.parametrize(
    "wrap",
    [
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: b" \n\t" + body + b"\n\n",
        gzip.compress,
        lambda body: gzip.compress(body[:40]) + gzip.compress(body[40:]) + b"\0" * 512,
        lambda body: gzip.compress(b"") + gzip.compress(body),
    ],
    ids=["byte order mark", "white space", "gzip", "two gzip members and padding", "empty first member"],
)
def test_the_wrapping_of_the_text_does_not_matter(tmp_path, wrap):
    body = wrap(json.dumps({"traceEvents": [kernel("a"), kernel("b")]}).encode())
    result = read(body, tmp_path)
    assert [name for name, *_ in rows(result)] == ["a", "b"]
    assert not result.quality.truncated
    assert result.source_bytes == len(body)
    assert result.source_sha256 == hashlib.sha256(body).hexdigest()


def test_a_top_level_array_is_a_trace(tmp_path):
    result = read([kernel("a"), kernel("b")], tmp_path)
    assert [name for name, *_ in rows(result)] == ["a", "b"]
    assert result.metadata == {}


@pytest.mark.parametrize("text", [b'{"traceEvents": []}', b"[]", b' {"traceEvents":[ ], "x": 1} ', b"[\n]\n"])
def test_a_trace_without_events_is_empty_and_no_error(tmp_path, text):
    result = read(text, tmp_path)
    assert (result.parts, result.events, result.quality.truncated) == ((), 0, False)
    assert result.quality.notes == ("no-device-events",)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "empty"),
        (b"hello", "does not begin"),
        (b"\x80\x02binary", "does not begin"),
        (b'{"a": 1}', "no traceEvents"),
        (b'{"traceEvents": {"ph": "X"}}', "not an array"),
        (b'{"traceEvents": null}', "not an array"),
        (b"[1, 2, 3]", "no events"),
        (b'[{"loss": 1.0}, {"loss": 0.9}]', "no events"),
        (b"\x28\xb5\x2f\xfd\x00\x00", "zstd"),
        (b"PK\x03\x04\x00\x00", "zip"),
        (
            gzip.compress(b'{"schemaVersion": 1, "deviceProperties": [' + bytes(range(48, 58)) * 20, mtime=0)[:40],
            "no traceEvents",
        ),
    ],
)
def test_what_is_no_trace_is_refused_with_the_reason(tmp_path, text, reason):
    with pytest.raises(DamagedError, match=reason):
        read(text, tmp_path)
    assert list(tmp_path.iterdir()) == []


class Pipe:
    """A stream that can only read, and gives few bytes at a time."""

    def __init__(self, body, size):
        self._body, self._size = io.BytesIO(body), size

    def read(self, size=-1):
        return self._body.read(min(self._size, size) if size >= 0 else self._size)


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize("wrap", [bytes, gzip.compress])
def test_a_pipe_that_gives_a_few_bytes_at_a_time_will_do(tmp_path, size, wrap):
    body = wrap(json.dumps({"traceEvents": [kernel("a"), kernel("b")]}).encode())
    result = ingest(Pipe(body, size), tmp_path)
    assert [name for name, *_ in rows(result)] == ["a", "b"]


# -- categories


def test_old_spellings_are_stored_under_the_names_of_today(tmp_path):
    spelled = ["Kernel", "Memcpy", "Memset", "Operator", "Runtime"]
    result = read({"traceEvents": [kernel(cat=name) for name in spelled]}, tmp_path)
    assert {cat for (cat,) in rows(result, "cat")} == {"kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "cuda_runtime"}
    assert all(result.categories[name].known and result.categories[name].rows == 1 for name in spelled)


def test_every_event_is_counted_and_unknown_categories_are_named_with_their_time(tmp_path):
    events = [
        kernel(),
        kernel(cat="npu_task", dur=2.5),
        kernel(cat="npu_task", dur=0.5),
        kernel(cat="python_function", dur=4),
        {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 1},
        kernel(ph="i", dur=None),
    ]
    result = read({"traceEvents": events}, tmp_path)
    counts = {name: (c.events, c.complete, c.rows, c.total_ns, c.known) for name, c in result.categories.items()}
    assert counts == {
        "": (1, 0, 0, 0, True),
        "ac2g": (1, 0, 0, 0, True),
        "kernel": (2, 1, 1, 1000, True),
        "npu_task": (2, 2, 0, 3000, False),
        "python_function": (1, 1, 0, 4000, True),
    }
    assert result.events == 7
    assert result.quality.rows == 1


def test_only_device_events_are_rows_where_only_they_are_asked_for(tmp_path):
    result = read({"traceEvents": [kernel(), kernel(cat="cpu_op"), kernel(cat="Memset")]}, tmp_path, schema=DEVICE_ROWS)
    assert rows(result, "cat, dev") == [("gpu_memset", 0), ("kernel", 0)]
    assert result.categories["cpu_op"].events == 1


# -- time


TIMES = [
    "0.001", "1", "12.5", "12.050", "6869181218039.954", "8796093022207.999", "8796093022208.001", "1669783687389324",
    "1712195495505583.123", "1712195495505583.0", "1712195495505583.999", "4611686018427387.904", "1.5e3", "15E-1",
]  # fmt: skip


@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("time", TIMES)
def test_a_time_is_read_to_the_nanosecond(tmp_path, time, quote):
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s%s%s,"dur":%s0.001%s}'
    text = '{"traceEvents":[' + event % (quote, time, quote, quote, quote) + "]}"
    assert rows(read(text.encode(), tmp_path)) == [("k", int(Decimal(time) * 1000), 1)]


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 4 * 10**18), min_size=1, max_size=30), st.booleans())
def test_times_of_any_size_in_one_file_are_all_exact(tmp_path_factory, starts, spaced):
    colon = ": " if spaced else ":"
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts"%s%d.%03d,"dur"%s0.5}'
    texts = [event % (colon, *divmod(start, 1000), colon) for start in starts]
    result = read(f'{{"traceEvents":[{",".join(texts)}]}}'.encode(), tmp_path_factory.mktemp("t"))
    assert [ts for _, ts, _ in rows(result)] == sorted(starts)


def test_the_reading_of_times_is_chosen_by_how_they_are_written():
    assert likely_reading(b'"ts": 6869181218039.954, "ts": 5') is DOUBLES
    assert likely_reading(b'"ts": 1669783687389324,') is WHOLE_NUMBERS
    assert likely_reading(b'"ts":"1694128201428006.5"') is WHOLE_NUMBERS
    assert likely_reading(b'"ts": 1712195495505583.123,') is REWRITTEN
    assert likely_reading(b"") is DOUBLES


def test_a_wrong_first_impression_of_the_times_costs_no_exactness(tmp_path):
    """The head shows small relative times; epoch times with fractions come 64 KB later."""
    events = [kernel("small", ts=i + 0.5) for i in range(900)]
    text = json.dumps({"traceEvents": events})[:-2] + ', {"ph":"X","cat":"kernel","name":"big",'
    text += '"ts":1712195495505583.123,"dur":2.001}]}'
    result = read(text.encode(), tmp_path)
    assert ("big", 1712195495505583123, 2001) in rows(result)
    assert ("small", 899500, 1000) in rows(result)


@pytest.mark.parametrize(
    ("times", "defect"),
    [
        ('"ts": 5, "dur": -1.0', "negative_duration"),
        ('"ts": 0, "dur": 0', "without_timestamp"),
        ('"ts": 5, "dur": 7.4e15', "implausible_duration"),
        ('"ts": 5, "dur": 1180591620717411303424', "unreadable_time"),
        ('"ts": 5', "unreadable_time"),
        ('"dur": 5', "unreadable_time"),
        ('"ts": 5, "dur": "soon"', "unreadable_time"),
        ('"ts": 5, "dur": null', "unreadable_time"),
        ('"ts": NaN, "dur": 1', "unreadable_time"),
        ('"ts": 5, "dur": inf', "unreadable_time"),
        ('"ts": [5], "dur": {"us": 1}', "unreadable_time"),
        ('"ts": 1e300, "dur": 1', "unreadable_time"),
        ('"ts": 4611686018427387.905, "dur": 1', "unreadable_time"),
        ('"ts": -9223372036854775.808, "dur": 1', "unreadable_time"),
    ],
)
def test_an_event_with_impossible_times_is_left_out_and_counted(tmp_path, times, defect):
    events = f'{{"ph":"X","cat":"kernel","name":"odd",{times}}}, {json.dumps(kernel("good", ts=3.5))}'
    result = read(f'{{"traceEvents": [{events}]}}'.encode(), tmp_path)
    assert rows(result) == [("good", 3500, 1000)]
    assert getattr(result.quality, defect) == 1
    assert result.categories["kernel"].complete == 2


def test_a_device_event_of_zero_length_is_kept_and_counted(tmp_path):
    result = read({"traceEvents": [kernel(dur=0), kernel(cat="cpu_op", dur=0)]}, tmp_path)
    assert (result.quality.zero_duration, result.quality.rows) == (1, 2)


# -- cutting


AWKWARD = [
    '}, {"ph": "X", "cat": "kernel"', "}]}", '],"x":[', '"quoted"', "back\\slash", "{[", "é中", '}\n,\n{"name": ', '\\"',
    'a\\\\"', "\\", "}},{{", '"}, {"ts": 5', "lambda()#1}::operator()", '}, {\\"ph\\": ',
]  # fmt: skip


def awkward_event(chance, index):
    event = kernel(chance.choice(AWKWARD) + str(index % 5), round(chance.uniform(1, 1e6), 3), round(chance.random(), 3))
    event["cat"] = chance.choice([*KEPT, "python_function", "elsewhere"])
    event["ph"] = chance.choice("XXXXiM")
    if chance.random() < 0.15:
        nested = [{"name": "a", "ts": 1}, {"ph": "X", "cat": "kernel", "name": "inner", "ts": 5, "dur": 3}, {"pid": 4}]
        event["args"]["nested"] = nested[: chance.randrange(1, 4)]
    if chance.random() < 0.05:
        event["args"]["deep"] = {"a": [{"args": {"name": 1}}, {"name": 2}]}
    keys = list(event)
    if chance.random() < 0.3:
        chance.shuffle(keys)
    return {key: event[key] for key in keys}


def expected_rows(events):
    wanted = [event for event in events if event["ph"] == "X" and event["cat"] in KEPT]
    return sorted((e["cat"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in wanted)


@pytest.mark.parametrize("seed", range(24))
def test_pieces_of_any_size_give_the_same_rows(tmp_path, monkeypatch, seed):
    """Names and nested arguments contain the text that marks a cut; many pieces begin or end inside an event."""
    chance = random.Random(seed)
    events = [awkward_event(chance, index) for index in range(chance.randrange(20, 90))]
    tail = {"traceName": "x}]", "devices": [{"id": 0, "name": "a"}, {"id": 1}] * chance.randrange(3)}
    trace = events if chance.random() < 0.15 else {"schemaVersion": 1, "traceEvents": events, **tail}
    layout = chance.choice([{}, {"indent": 1}, {"separators": (",", ":")}, {"sort_keys": True}])
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", chance.choice([200, 400, 1000, 5000]))
    text = json.dumps(trace, **layout).encode()
    size = chance.choice([300, 1000, 3000, 10000])
    result = read(text, tmp_path, piece_bytes=size, workers=chance.choice([1, 2]))
    assert rows(result, "cat, name, ts_ns, dur_ns") == expected_rows(events)
    assert result.events == len(events)
    assert (result.quality.bad, result.quality.truncated, result.quality.tail_damaged) == (0, False, False)
    assert result.metadata == ({} if trace is events else {k: v for k, v in trace.items() if k != "traceEvents"})


def test_pieces_cut_inside_nested_arguments_are_noticed_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    inner = [{"name": str(i), "ts": i} for i in range(100)]
    events = [kernel(str(i), args={"list": inner}) for i in range(20)]
    result = read({"traceEvents": events}, tmp_path, piece_bytes=3000)
    assert sorted(name for name, *_ in rows(result)) == sorted(str(i) for i in range(20))
    assert result.quality.cut_structurally
    assert result.events == 20


def test_a_pipe_keeps_what_one_reading_gave_where_the_cut_was_unsafe(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    inner = [{"name": str(i), "ts": i} for i in range(100)]
    events = [kernel("plain") for _ in range(30)] + [kernel("nested", args={"list": inner})] + [kernel("z")] * 3
    body = json.dumps({"traceEvents": events}).encode()
    result = ingest(Pipe(body, 4096), tmp_path, piece_bytes=2000)
    names = [name for name, *_ in rows(result)]
    assert names.count("plain") == 30
    assert not result.quality.cut_structurally
    assert names.count("nested") == 1 or result.quality.bad > 0


def test_an_event_larger_than_a_piece_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    events = [kernel("a"), kernel("long " + "x" * 50_000), kernel("z")]
    result = read({"traceEvents": events}, tmp_path, piece_bytes=500)
    assert [len(name) for name, *_ in rows(result)] == [1, 50_005, 1]


def test_events_that_begin_with_an_unknown_key_are_cut_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    events = [{"hw": i, **kernel(str(i))} for i in range(40)]
    result = read({"traceEvents": events, "traceName": "t"}, tmp_path, piece_bytes=700)
    assert len(rows(result)) == 40
    assert len(result.parts) > 3


def test_a_header_and_a_tail_larger_than_a_piece_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    long = [{"id": i, "name": "device"} for i in range(300)]
    result = read({"before": long, "traceEvents": [kernel()], "after": long}, tmp_path, piece_bytes=500)
    assert result.metadata == {"before": long, "after": long}
    assert len(rows(result)) == 1


# -- damage


def test_a_file_that_breaks_off_gives_every_complete_event(tmp_path):
    text = json.dumps({"a": 1, "traceEvents": [kernel(f"k{i}") for i in range(5)], "z": 2})
    ends = [text.index("}}", text.index(f'"k{i}"')) + 2 for i in range(5)]
    for cut in range(text.index("[") + 1, len(text) - 1, 23):
        whole = sum(end <= cut for end in ends)
        directory = tmp_path / str(cut)
        directory.mkdir()
        result = read(text[:cut].encode(), directory)
        assert [name for name, *_ in rows(result)] == [f"k{i}" for i in range(whole)]
        assert result.quality.truncated


def test_a_gzip_stream_that_breaks_off_gives_every_complete_event(tmp_path):
    chance = random.Random(1)
    events = [kernel(f"k{i:03d}-{chance.random()}") for i in range(200)]
    body = gzip.compress(json.dumps({"traceEvents": events}).encode())
    result = read(body[: len(body) // 2], tmp_path)
    names = [name for name, *_ in rows(result)]
    assert 50 < len(names) < 150
    assert names == [event["name"] for event in events[: len(names)]]
    assert result.quality.truncated


def test_a_gzip_stream_with_a_flipped_byte_gives_what_comes_before(tmp_path):
    chance = random.Random(2)
    events = [kernel(f"k{i:04d}-{chance.random()}") for i in range(3000)]
    body = bytearray(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    body[len(body) // 2] ^= 0xFF
    result = read(bytes(body), tmp_path)
    good = {event["name"] for event in events}
    assert result.quality.truncated
    assert len([name for name, *_ in rows(result) if name in good]) > 1000
    assert result.source_bytes == len(body)


def test_damage_in_the_keys_around_the_events_is_said_and_costs_no_event(tmp_path):
    text = json.dumps({"before": "?", "traceEvents": [kernel("a"), kernel("b")], "after": "?"})
    result = read(text.replace('"?"', '"a"b"').encode(), tmp_path)
    assert [name for name, *_ in rows(result)] == ["a", "b"]
    assert (result.quality.header_damaged, result.quality.tail_damaged) == (True, True)
    assert not result.quality.truncated


def test_trailing_commas_are_accepted(tmp_path):
    text = json.dumps({"before": [1], "traceEvents": [kernel()], "after": [2]})
    text = text.replace("[1]", "[1,]").replace('}}], "after": [2]', '}}, ], "after": [2,],')
    result = read(text.encode(), tmp_path)
    assert len(rows(result)) == 1
    assert result.metadata == {"before": [1], "after": [2]}


def test_elements_that_are_no_events_are_passed_over_and_counted(tmp_path):
    text = f'{{"traceEvents": [null, {json.dumps(kernel("a"))}, 7, {json.dumps(kernel("b"))}, null]}}'
    result = read(text.encode(), tmp_path)
    assert [name for name, *_ in rows(result)] == ["a", "b"]
    assert (result.quality.not_events, result.events) == (3, 2)


# -- progress and cancelling


def test_progress_is_bytes_of_the_source_and_ends_with_all_of_them(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    body = json.dumps({"traceEvents": [kernel(str(i)) for i in range(100)]}).encode()
    seen = []
    read(
        body,
        tmp_path,
        piece_bytes=2000,
        total_bytes=len(body),
        on_progress=lambda done, all_: seen.append((done, all_)),
    )
    assert len(seen) > 3
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(body), len(body))


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_a_cancelled_reading_leaves_no_part_behind(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 100)
    answers = iter([False] * asked)
    with pytest.raises(IngestCancelledError):
        read({"traceEvents": [kernel(str(i)) for i in range(100)]}, tmp_path, piece_bytes=2000,
             cancelled=lambda: next(answers, True))  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_an_error_with_a_next_step(tmp_path):
    with pytest.raises(reader.TrainflowError, match="could not be stored") as caught:
        read({"traceEvents": [kernel()]}, tmp_path / "missing")
    assert caught.value.next_step


# -- the slot


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_slot_is_a_file_with_exactly_the_last_content(monkeypatch, tmp_path, in_memory):
    if not in_memory:
        monkeypatch.delattr("os.memfd_create", raising=False)
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    slot = JsonSlot()
    slot.write(b"[", memoryview(b"a longer content"), b"]")
    slot.write(b"[", b"short", b"]")
    with open(slot.path, "rb") as file:
        assert file.read() == slot.read() == b"[short]"
    slot.close()
    assert list(tmp_path.iterdir()) == []
