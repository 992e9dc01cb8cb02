"""Damaged events: what profilers have really written, recovered event by event and counted."""

from __future__ import annotations

import io
import json
import random

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui.analysis.traces import loading, pieces, structure
from trainflow_tui.analysis.traces.reader import ingest
from trainflow_tui.analysis.traces.structure import scan
from trainflow_tui.errors import TrainflowError


def kernel(name, ts):
    event = {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": 1.5}
    return event | {"args": {"device": 0, "stream": 7}}


def damaged_trace(damaged, *, count=60, layout=None):
    """A trace of good events with one in the middle whose text is replaced by `damaged`."""
    events = [kernel(f"good {i}", i + 0.125) for i in range(count)]
    events[count // 2] = "here"
    return json.dumps({"traceEvents": events, "traceName": "t"}, **(layout or {})).encode().replace(b'"here"', damaged)


def read(raw, directory, **options):
    result = ingest(io.BytesIO(raw), directory, **options)
    with duckdb.connect() as connection:
        query = "SELECT name, ts_ns, dur_ns FROM read_parquet(?) ORDER BY ts_ns"
        return result, connection.execute(query, [list(result.parts)]).fetchall()


GOOD_REST = b'"pid": 0, "tid": 7, "ts": 30.5, "dur": 1.25, "args": {"stream": 7, "device": 0}}'

REPAIRED = {
    "a raw control character": (b"a\x01b\ttab\nline", "a\x01b\ttab\nline"),
    "a byte that is no UTF-8": (b"a\xffb", "a\ufffdb"),
    "a lone surrogate": (b"a\\ud800b", "a\ufffdb"),
    "a bare quote": (b'aten::"transpose"', 'aten::"transpose"'),
    "quotes and braces of a dict in the name": (
        b'{"device": "cpu", "dtype": "float32"}(12): run',
        '{"device": "cpu", "dtype": "float32"}(12): run',
    ),
    "quotes around brackets": (b'"}]"', '"}]"'),
    "a quoted end of the array": (b'foo[]"]}, {', 'foo[]"]}, {'),
    "a Windows path": (b"C:\\cuda\\bin\\x(219): f", "C:\\cuda\\bin\\x(219): f"),
    "a bad escape beside an escaped quote": (b'\\q \\" end', '\\q " end'),
}


@pytest.mark.parametrize("layout", [{}, {"indent": 2}])
@pytest.mark.parametrize("damage", REPAIRED)
def test_a_damaged_name_is_repaired_and_counted(tmp_path, damage, layout):
    written, meant = REPAIRED[damage]
    text = b'{"ph": "X", "cat": "kernel", "name": "' + written + b'", ' + GOOD_REST
    result, rows = read(damaged_trace(text, layout=layout), tmp_path)
    assert rows[30] == (meant, 30500, 1250)
    assert len(rows) == 60
    assert (result.quality.repaired, result.quality.bad, result.quality.damaged_pieces) == (1, 0, 1)
    assert result.metadata == {"traceName": "t"}


@pytest.mark.parametrize(
    "text",
    [
        b'{"ph": "X", "cat": "kernel", "name": "twice", "name": "n", ' + GOOD_REST,
        b'{"ph": "X", "cat": "kernel", "name": "n", "x": [null, {"a": [{}]}], ' + GOOD_REST,
        b'{"ph": "X", "cat": "kernel", "name": "n", "args": "text", "pid": 0, "ts": 30.5, "dur": 1.25}',
        b'{"ph": "X", "cat": "kernel", "name": "n", "args": [1], "pid": 0, "ts": 30.5, "dur": 1.25}',
        b'{"ph": "X", "cat": "kernel", "name": "n", "args": {"stream": 1, "stream": 7}, "ts": 30.5, "dur": 1.25}',
        b'{"ph": "X", "cat": "kernel", "name": "n", "ts": "30.5", "dur": 1.25, "args": {"a": inf, "b": -Infinity, "c": nan}}',
    ],
    ids=["a key twice", "other keys", "args is text", "args is an array", "an argument twice", "bare constants"],
)
def test_an_unusual_event_is_read_and_is_no_damage(tmp_path, text):
    result, rows = read(damaged_trace(text), tmp_path)
    assert rows[30] == ("n", 30500, 1250)
    assert (len(rows), result.quality.repaired, result.quality.bad) == (60, 0, 0)


@pytest.mark.parametrize(
    "text",
    [
        b'{"ph": "X", "cat": "kernel" "name": "n", ' + GOOD_REST,
        b'{"ph": "X", "cat": "kernel", "name": "n", "ts": 30.5, "dur": ',
        b'{"ph": "X", "cat": "kernel", "name": "n", "ts": 3 0.5, "dur": 1}',
        b'{"ph": "X", "cat": "kernel", "deep": ' + b"[" * 9000 + b"}",
        b'{"ph": "X", "cat": "kernel", "name": "n", "long": ' + b"9" * 5000 + b", " + GOOD_REST,
    ],
    ids=["a missing comma", "cut short", "a split number", "endless nesting", "a number of 5000 digits"],
)
def test_an_event_that_cannot_be_read_costs_itself_only(tmp_path, text):
    result, rows = read(damaged_trace(text), tmp_path)
    names = [name for name, *_ in rows if name != "n"]
    assert names == [f"good {i}" for i in range(60) if i != 30]
    assert len(rows) - len(names) + result.quality.bad == 1


def test_damage_in_many_places_is_repaired_in_every_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 200)
    monkeypatch.setattr(loading, "GROUP_BYTES", 1000)
    chance = random.Random(3)
    events, meant = [], []
    for i in range(300):
        written, name = chance.choice(list(REPAIRED.values())) if chance.random() < 0.2 else (b"plain", "plain")
        meant.append((name, i * 1000 + 125, 1500))
        head = b'{"ph": "X", "cat": "kernel", "name": "' + written + b'", "pid": 0, "tid": 7, '
        events.append(head + b'"ts": %d.125, "dur": 1.5, "args": {"device": 0}}' % i)
    raw = b'{"traceEvents": [\n' + b",\n".join(events) + b'\n], "traceName": "t"}'
    result, rows = read(raw, tmp_path, piece_bytes=4000, workers=2)
    assert rows == meant
    assert result.quality.repaired == sum(name != "plain" for name, *_ in meant)
    assert (result.quality.bad, result.metadata) == (0, {"traceName": "t"})


def test_damage_beside_nested_arguments_loses_neither(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "GROUP_BYTES", 500)
    nested = {"list": [{"name": str(i), "ts": i} for i in range(12)]}
    events = [kernel(f"k{i}", i + 0.125) | ({"args": nested} if i % 3 == 0 else {}) for i in range(40)]
    raw = json.dumps({"traceEvents": events}).encode().replace(b"k20", b'k"20')
    result, rows = read(raw, tmp_path)
    assert [name for name, *_ in rows] == [f"k{i}" if i != 20 else 'k"20' for i in range(40)]
    assert (result.quality.repaired, result.quality.bad) == (1, 0)


def test_a_damaged_name_and_nested_arguments_in_one_event_are_both_read(tmp_path):
    args = b'"args": {"list": [{"name": "a", "ts": 1}, {"name": "b", "ts": 2}], "stream": 7}}'
    text = b'{"ph": "X", "cat": "kernel", "name": "C:\\x", "pid": 0, "tid": 7, "ts": 30.5, "dur": 1.25, ' + args
    result, rows = read(damaged_trace(text), tmp_path)
    assert rows[30] == ("C:\\x", 30500, 1250)
    assert (len(rows), result.quality.repaired, result.quality.bad) == (60, 1, 0)


def test_stray_quotes_in_a_file_that_must_be_cut_by_brackets_cost_little(tmp_path, monkeypatch):
    """The worst mixture: nested arguments mislead the quick cut, and stray quotes mislead the bracket count."""
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", 200)
    nested = {"list": [{"name": str(i), "ts": i} for i in range(30)]}
    events = [kernel(f"k{i}", i) | ({"args": nested} if i % 10 == 0 else {}) for i in range(300)]
    raw = json.dumps({"traceEvents": events, "traceName": "t"}).encode().replace(b'"k55"', b'"k"55"')
    result, rows = read(raw.replace(b'"k155"', b'"k"155"'), tmp_path, piece_bytes=2000)
    assert len(rows) >= 300 - result.quality.bad
    assert result.quality.bad <= 10
    assert result.metadata == {"traceName": "t"}


def test_a_damaged_event_at_a_broken_end_costs_no_other(tmp_path):
    raw = damaged_trace(b'{"ph": "X", "cat": "kernel", "name": "a"b", ' + GOOD_REST)
    cut = raw.index(b"good 50")
    result, rows = read(raw[:cut], tmp_path)
    assert [name for name, *_ in rows] == [f"good {i}" if i != 30 else 'a"b' for i in range(50)]
    assert result.quality.truncated


JUNK = [b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\x00", b"\xff", b"null", b"}]", b'},{"ph":', b"nan", b"1e999"]


@pytest.mark.parametrize("seed", range(30))
def test_random_damage_is_an_answer_or_a_typed_error(tmp_path, monkeypatch, seed):
    chance = random.Random(seed)
    raw = bytearray(damaged_trace(b"null"))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(raw))
        action = chance.randrange(4)
        if action == 0:
            raw[at] = chance.randrange(256)
        elif action == 1:
            del raw[at : at + chance.choice([1, 3, 50, 800])]
        elif action == 2:
            raw[at:at] = chance.choice(JUNK)
        else:
            raw[at:at] = raw[at // 2 : at // 2 + 150]
    monkeypatch.setattr(pieces, "LOOKAHEAD_BYTES", chance.choice([300, 1 << 20]))
    try:
        result = ingest(io.BytesIO(bytes(raw)), tmp_path, piece_bytes=chance.choice([1000, 1 << 20]))
    except TrainflowError:
        return
    assert result.events > 0 or result.quality.truncated or result.quality.bad


# -- bracket counting


def naive_structure(text):
    """Character by character: ends of objects at depth 0 and of the array."""
    depth, in_string, escaped, ends = 0, False, False, []
    for at, character in enumerate(text):
        if in_string:
            in_string = escaped or character != ord('"')
            escaped = character == ord("\\") and not escaped
        elif character == ord('"'):
            in_string = True
        elif character in b"[{":
            depth += 1
        elif character in b"]}":
            depth -= 1
            if depth < 0:
                return ends, at + 1
            if depth == 0 and character == ord("}"):
                ends.append(at + 1)
    return ends, None


JSON_VALUE = st.recursive(
    st.none() | st.integers() | st.text(st.sampled_from('a"\\{}[],é\n')),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('k"\\{]')), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON_VALUE, max_size=6), st.integers(1, 40), st.integers(0, 200))
def test_the_bracket_count_equals_a_walk_over_every_character(values, block, cut):
    text = (json.dumps(values)[1:] + ', "tail": [{}]}').encode()[: cut or None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(structure, "BLOCK_BYTES", block)
        found = scan(memoryview(text))
    assert (found.event_ends.tolist(), found.array_end) == naive_structure(text)
