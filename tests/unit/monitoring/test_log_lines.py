import io

from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.logs import lines
from trainflow_tui.monitoring.logs.lines import MAX_LINE_BYTES, BlockReader, candidate_lines, clean_segments

line_bytes = st.lists(st.sampled_from([b"loss", b"iteration", b"x", b" ", b"los", b"s"]), max_size=5).map(b"".join)


@settings(deadline=None)
@given(st.lists(line_bytes, max_size=30), st.booleans())
def test_the_search_finds_exactly_the_lines_with_a_marker(texts, ends_with_newline):
    block = b"\n".join(texts) + (b"\n" if ends_with_newline else b"")
    markers = (b"loss", b"iteration", b"xx")
    naive = [(i, text) for i, text in enumerate(block.split(b"\n")) if any(marker in text for marker in markers)]
    assert candidate_lines(block, markers) == naive


@settings(deadline=None)
@given(st.binary(max_size=200), st.integers(min_value=1, max_value=20))
def test_blocks_and_tail_together_are_the_stream_without_its_leading_hole(content, block_bytes):
    before, lines.BLOCK_BYTES = lines.BLOCK_BYTES, block_bytes
    try:
        reader = BlockReader(io.BytesIO(content))
        blocks = list(reader)
    finally:
        lines.BLOCK_BYTES = before
    text = content.lstrip(b"\0")
    assert all(block.endswith(b"\n") for block in blocks)
    assert b"".join(blocks) + reader.tail == text
    assert b"\n" not in reader.tail
    assert reader.leading_nul_bytes == len(content) - len(text)
    assert reader.tail_offset == len(content) - len(reader.tail)


def test_a_line_over_the_cap_is_cut_and_the_next_one_is_whole():
    content = b"a\n" + b"y" * (3 * MAX_LINE_BYTES + 7) + b"\nnext\nrest"
    reader = BlockReader(io.BytesIO(content))
    parts = b"".join(reader).split(b"\n")
    assert [len(part) for part in parts] == [1, MAX_LINE_BYTES + 1, 4, 0]
    assert reader.tail == b"rest"
    assert reader.tail_offset == len(content) - 4


def test_escapes_and_nul_bytes_go_and_the_rewritten_segments_stay():
    assert clean_segments(b"\x1b[32mgreen\x1b[0m\x00 and\x1b]0;title\x07 more") == ["green and more"]
    assert clean_segments(b" 10%\r 20%\r\rloss 1.0\r") == [" 10%", " 20%", "loss 1.0"]
    assert clean_segments(b"caf\xe9 loss") == ["caf\ufffd loss"]
    assert clean_segments(b" \t\r\n") == []


@settings(deadline=None)
@given(st.binary(max_size=100))
def test_any_bytes_become_text_without_escape_and_nul(raw):
    for segment in clean_segments(raw):
        assert "\0" not in segment
        assert "\r" not in segment
        assert segment.strip()


def test_unfinished_escapes_cost_no_more_than_their_length():
    assert clean_segments(b"\x1b]" * 500_000) == []
