import io
import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.errors import DamagedError, UsageError
from trainflow_tui.monitoring.logs.parser import LogParser
from trainflow_tui.monitoring.logs.read import read_log
from trainflow_tui.monitoring.logs.records import MetricRecord, RejectedLine, log_read_json

MEGATRON = b" iteration %8d/ 100 | consumed samples: 8 | lm loss: 1.5E+00 | loss scale: 1.0 |\n"
GENERIC = b"iteration %d loss 1.0\n"
JSONL = b'{"step": %d, "loss": 1.0}\n'


def log(*parts):
    return b"".join(parts)


MIXED = log(
    b"starting\n",
    *(MEGATRON % step for step in (1, 2, 3)),
    b"  successfully saved checkpoint from iteration     3 to /ckpt\n",
    b"unrelated loss talk\n",
    MEGATRON % 4,
    *((MEGATRON % step).replace(b"1.5E", b"1.6E") for step in (2, 3)),
)


def test_nothing_is_given_out_before_the_format_is_known():
    parser = LogParser()
    assert parser.feed(b"hello\nSending process 7 closing signal SIGTERM\n") == []
    assert parser.adapter is None
    items = parser.feed(MEGATRON % 1)
    assert parser.adapter.name == "megatron"
    assert [(item.line, type(item).__name__) for item in items] == [(2, "LogEvent"), (3, "MetricRecord")]
    assert parser.next_line == 4


def test_with_two_formats_in_one_log_the_one_with_more_records_wins():
    read = read_log(io.BytesIO(log(GENERIC % 1, *(JSONL % step for step in range(5)))))
    assert [record.line for record in read.records] == [2, 3, 4, 5, 6]


def test_lines_that_speak_of_a_loss_and_give_nothing_are_counted():
    assert read_log(io.BytesIO(MIXED)).unparsed_suspicious == 1


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=len(MIXED)), max_size=6))
def test_fed_in_pieces_the_items_are_the_same(cuts):
    whole = LogParser(adapter="megatron").feed(MIXED)
    starts = sorted({0, *(MIXED.rfind(b"\n", 0, cut) + 1 for cut in cuts), len(MIXED)})
    parser = LogParser(adapter="megatron")
    pieces = [item for a, b in pairwise(starts) for item in parser.feed(MIXED[a:b])]
    assert pieces == whole
    assert parser.next_line == MIXED.count(b"\n") + 1


def test_stored_adapter_and_attempts_take_up_where_another_parser_stopped():
    parts = MIXED.splitlines(keepends=True)
    whole = LogParser().feed(MIXED)
    first = LogParser()
    head = first.feed(b"".join(parts[:7]))
    second = LogParser(adapter=first.adapter.name, attempts=first.attempt_state, first_line=first.next_line)
    assert head + second.feed(b"".join(parts[7:])) == whole


def test_lines_with_offsets_are_placed_by_their_line_number():
    parser = LogParser()
    lines = [(0, b"hello"), (6, (MEGATRON % 1)[:-1])]
    first = parser.next_line
    (record,) = parser.feed_lines(lines)
    assert lines[record.line - first][0] == 6


def test_a_complete_last_object_needs_no_newline_and_a_cut_line_waits():
    assert read_log(io.BytesIO((JSONL % 1)[:-1])).pending_tail is None
    read = read_log(io.BytesIO(MEGATRON % 1 + (MEGATRON % 2)[:-1]))
    assert len(read.records) == 1
    assert read.pending_tail.line == 2
    assert read.pending_tail.offset == len(MEGATRON % 1)
    assert read.pending_tail.size_bytes == len(MEGATRON % 2) - 1


def test_a_line_over_one_mebibyte_is_read_from_its_start_and_told():
    read = read_log(io.BytesIO(MEGATRON % 1 + b"loss " + b"x" * (1 << 20) + b"\n" + MEGATRON % 2))
    assert [record.step for record in read.records] == [1, 2]
    assert [entry.line for entry in read.rejected] == [2]
    assert read.records[1].line == 3


def test_a_log_that_only_tells_of_a_failure_is_an_answer():
    read = read_log(io.BytesIO(b"starting\nFatal Python error: Segmentation fault\n"))
    assert (read.framework, read.records) == ("unknown", ())
    assert [(event.line, event.type) for event in read.events] == [(2, "fatal_error")]


def test_a_forced_adapter_is_used_and_an_unknown_one_refused():
    assert read_log(io.BytesIO(GENERIC % 1), adapter="generic-text").records[0].step == 1
    assert read_log(io.BytesIO(GENERIC % 1), adapter="jsonl").records == ()
    with pytest.raises(UsageError):
        read_log(io.BytesIO(b""), adapter="nope")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(content):
    try:
        read = read_log(io.BytesIO(content + b"\n" + MEGATRON % 1 + content))
    except DamagedError:
        return
    log_read_json(read)
    assert read.lines >= 2


def test_an_empty_file_is_refused_by_name(tmp_path):
    (tmp_path / "empty.log").write_bytes(b"")
    with pytest.raises(DamagedError) as refusal:
        read_log(tmp_path / "empty.log")
    assert refusal.value.subject == "empty.log"


def test_a_missing_file_and_a_pipe_are_refused_and_a_link_is_followed(tmp_path):
    with pytest.raises(UsageError):
        read_log(tmp_path / "none.log")
    os.mkfifo(tmp_path / "pipe.log")
    with pytest.raises(DamagedError) as refusal:
        read_log(tmp_path / "pipe.log")
    assert refusal.value.code == "not-a-regular-file"
    (tmp_path / "real.log").write_bytes(MEGATRON % 1)
    (tmp_path / "link.log").symlink_to("real.log")
    assert isinstance(read_log(tmp_path / "link.log").records[0], MetricRecord)


def test_rejected_lines_carry_the_start_of_their_text():
    read = read_log(io.BytesIO(MEGATRON % 1 + b" iteration 2/ 100 | consumed samples: 8 | lm loss: 1.\xff5 |\n"))
    (entry,) = read.rejected
    assert isinstance(entry, RejectedLine)
    assert entry.text.startswith(" iteration 2/ 100")
