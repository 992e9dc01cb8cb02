"""The byte tailer against real files: whatever happens between two looks, each complete line comes once."""

import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.logs.tail import TailState, read_new


class Writer:
    """A program that appends to a log, and what is done to its file."""

    def __init__(self, path, *, start=0, append=True):
        self.path = path
        self.written: list[bytes] = []
        self.partial = b""
        self._flags = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if append else 0)
        self._next = start
        self.descriptor = os.open(path, self._flags, 0o600)

    def write(self, data):
        os.write(self.descriptor, data)

    def line(self, *, size=20):
        text = f"line {self._next} ".encode().ljust(size, b"x")
        self._next += 1
        self.write(text[len(self.partial) :] + b"\n" if self.partial else text + b"\n")
        self.written.append(text)
        self.partial = b""

    def begin_line(self):
        if not self.partial:
            self.partial = f"line {self._next} ".encode()
            self.write(self.partial)

    def rotate(self):
        """Rename the file and its predecessors, as logrotate does; the writer goes on in the renamed file."""
        for number in range(8, 0, -1):
            if os.path.exists(f"{self.path}.{number}"):
                os.rename(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        os.rename(self.path, f"{self.path}.1")

    def create(self):
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))

    def reopen(self):
        os.close(self.descriptor)
        self.descriptor = os.open(self.path, self._flags, 0o600)
        self.partial = b""

    def close(self):
        os.close(self.descriptor)


class Reader:
    """Polls, and checks what holds for every single answer."""

    def __init__(self, path):
        self.path = path
        self.state = TailState()
        self.lines: list[bytes] = []
        self.places: list[tuple[int, int]] = []
        self.findings: list[str] = []

    def poll(self, **limits):
        lines, state, findings = read_new(self.path, self.state, **limits)
        assert state.generation >= self.state.generation
        self.places += [(state.generation, offset) for offset, _ in lines]
        self.lines += [line for _, line in lines]
        self.findings += [finding.code for finding in findings]
        # The state survives its storage.
        moved = state != self.state
        self.state = msgspec.json.decode(msgspec.json.encode(state), type=TailState)
        return bool(lines) or moved

    def drain(self, **limits):
        while self.poll(**limits):
            pass


@pytest.fixture
def writer(tmp_path):
    made = Writer(str(tmp_path / "train.log"))
    yield made
    made.close()


STEPS = st.lists(
    st.sampled_from(["line", "line", "long line", "begin", "rotate", "rotate and create", "poll", "short poll"]),
    max_size=40,
)


@settings(max_examples=150, deadline=None)
@given(STEPS, st.integers(min_value=1, max_value=60))
def test_any_schedule_of_writes_and_rotations_gives_each_complete_line_once(tmp_path_factory, steps, poll_bytes):
    path = str(tmp_path_factory.mktemp("tail") / "train.log")
    writer, reader = Writer(path), Reader(path)
    rotated = False
    rotations = 0
    limits = {"max_bytes": poll_bytes, "max_line_bytes": 100}
    for step in steps:
        if step == "line":
            writer.line()
        elif step == "long line":
            writer.line(size=100)
        elif step == "begin":
            writer.begin_line()
        elif step in ("poll", "short poll"):
            reader.poll(**(limits if step == "short poll" else {"max_line_bytes": 100}))
        elif rotated:
            writer.line()  # the unfinished line is ended in the old file, then the new one is begun
            writer.reopen()
            rotated = False
        elif rotations < 8 and reader.state.generation:
            writer.rotate()
            rotations += 1
            if step == "rotate and create":
                writer.create()
            rotated = True
    if writer.partial:
        writer.line()
    reader.drain(**limits)
    writer.close()
    assert reader.lines == writer.written
    assert len(set(reader.places)) == len(reader.places)
    assert reader.places == sorted(reader.places)
    assert "rotated-file-gone" not in reader.findings


def test_an_offset_is_where_the_line_begins(writer):
    for _ in range(5):
        writer.line()
    content = Path(writer.path).read_bytes()
    lines, state, _ = read_new(writer.path, TailState())
    assert [content[offset : offset + len(line) + 1] for offset, line in lines] == content.splitlines(keepends=True)
    assert (state.offset, state.lines, state.generation) == (len(content), 5, 1)


def test_an_unfinished_line_waits_for_its_newline(writer):
    reader = Reader(writer.path)
    writer.begin_line()
    reader.drain()
    assert reader.lines == []
    assert reader.state.size_bytes > reader.state.offset
    writer.line()
    reader.drain()
    assert reader.lines == writer.written


def test_a_poll_reads_no_more_than_it_may(writer):
    for _ in range(100):
        writer.line()
    lines, state, _ = read_new(writer.path, TailState(), max_bytes=1000, max_line_bytes=50)
    assert 0 < sum(len(line) + 1 for _, line in lines) <= 1000
    assert state.offset <= 1000


@pytest.mark.parametrize("whole", [True, False], ids=["ended", "still growing"])
def test_a_line_over_the_cap_is_delivered_cut_and_once(writer, whole):
    reader = Reader(writer.path)
    writer.write(b"y" * 500)
    if not whole:
        reader.drain(max_line_bytes=100)
    writer.write(b"y" * 500 + b"\n")
    writer.line()
    reader.drain(max_line_bytes=100)
    assert reader.lines == [b"y" * 100, writer.written[0]]
    assert reader.findings == ["line-too-long"]
    assert reader.state.lines == 2


def test_a_truncated_file_is_read_from_its_start(writer):
    reader = Reader(writer.path)
    for _ in range(5):
        writer.line()
    reader.drain()
    os.truncate(writer.path, 0)
    writer.line()
    reader.drain()
    assert reader.lines == writer.written
    assert reader.findings == ["truncated"]
    assert reader.state.generation == 2
    assert reader.places[-1] == (2, 0)


def test_a_truncated_file_that_grew_past_the_offset_again_is_noticed(writer):
    reader = Reader(writer.path)
    for _ in range(5):
        writer.line()
    reader.drain()
    os.truncate(writer.path, 0)
    for _ in range(9):
        writer.line()
    reader.drain()
    assert reader.lines == writer.written
    assert reader.findings == ["truncated"]


def test_a_banner_repeated_after_the_truncation_does_not_hide_it(tmp_path):
    path = str(tmp_path / "train.log")
    banner = b"the same words at every start\n" * 20
    writer, reader = Writer(path), Reader(path)
    writer.write(banner)
    for _ in range(20):
        writer.line(size=50)
    reader.drain()
    before = len(reader.lines)
    os.truncate(path, 0)
    writer.write(banner)
    for _ in range(60):
        writer.line(size=50)
    reader.drain()
    writer.close()
    assert reader.lines[before:] == banner.splitlines() + writer.written[20:]


def test_a_new_beginning_is_noticed_where_the_bytes_before_the_offset_are_the_same(tmp_path):
    path, same = tmp_path / "train.log", b"z" * 99 + b"\n"
    path.write_bytes(b"first".ljust(99) + b"\n" + same * 9)
    reader = Reader(str(path))
    reader.drain()
    os.truncate(path, 0)
    path.write_bytes(b"second".ljust(99) + b"\n" + same * 9)
    reader.drain()
    assert len(reader.lines) == 20
    assert reader.findings == ["truncated"]


def test_the_hole_of_a_writer_without_append_is_skipped_and_its_first_line_is_whole(tmp_path):
    path = str(tmp_path / "train.log")
    writer, reader = Writer(path, append=False), Reader(path)
    for _ in range(20):
        writer.line()
    reader.drain()
    os.truncate(path, 0)
    for _ in range(3):
        writer.line()
    writer.close()
    assert Path(path).read_bytes().startswith(b"\0" * 400)
    reader.drain(max_bytes=64, max_line_bytes=64)
    assert reader.lines == writer.written
    assert reader.places[20] == (2, 20 * 21)


def test_a_huge_hole_is_passed_without_a_line(tmp_path):
    path = str(tmp_path / "train.log")
    with open(path, "wb") as stream:
        stream.seek(1 << 32)
        stream.write(b"iteration 18 loss 1.0\n")
    reader = Reader(path)
    reader.drain()
    assert reader.lines == [b"iteration 18 loss 1.0"]
    assert reader.places == [(1, 1 << 32)]


def test_nul_bytes_at_the_end_wait_for_what_may_still_fill_them(writer):
    reader = Reader(writer.path)
    writer.line()
    writer.write(b"\0" * 50)
    reader.drain()
    assert reader.state.offset == len(writer.written[0]) + 1


def test_what_copytruncate_copied_before_it_was_read_is_read_from_the_copy(writer):
    reader = Reader(writer.path)
    for _ in range(30):
        writer.line()
    reader.drain()
    for _ in range(5):
        writer.line()
    Path(f"{writer.path}.1").write_bytes(Path(writer.path).read_bytes())
    os.truncate(writer.path, 0)
    for _ in range(3):
        writer.line()
    reader.drain()
    assert reader.lines == writer.written
    assert reader.findings == ["rotated"]


def test_an_old_file_that_is_gone_is_told_and_the_new_one_is_read(writer):
    reader = Reader(writer.path)
    for _ in range(5):
        writer.line()
    reader.drain()
    other = Path(f"{writer.path}.new")
    other.write_bytes(b"fresh\n")
    os.replace(other, writer.path)
    reader.drain()
    assert reader.lines[5:] == [b"fresh"]
    assert reader.findings == ["rotated-file-gone"]
    assert reader.state.generation == 2


def test_a_line_that_was_never_ended_in_a_rotated_file_is_told(writer):
    reader = Reader(writer.path)
    writer.line()
    reader.drain()
    writer.write(b"never ended")
    writer.rotate()
    writer.reopen()
    writer.line()
    reader.drain()
    assert reader.lines == writer.written
    assert reader.findings == ["partial-line-dropped", "rotated"]


def test_an_empty_new_file_does_not_end_the_old_one(writer):
    reader = Reader(writer.path)
    writer.line()
    reader.drain()
    writer.rotate()
    writer.create()
    reader.drain()
    writer.line()
    reader.drain()
    assert reader.lines == writer.written
    assert reader.state.generation == 1


def test_an_older_rotated_file_is_no_part_of_a_source_that_begins(writer):
    writer.line()
    writer.rotate()
    reader = Reader(writer.path)
    reader.drain()
    assert (reader.lines, reader.findings[:1], reader.state) == ([], ["file-missing"], TailState())
    writer.reopen()
    writer.line()
    reader.drain()
    assert reader.lines == writer.written[1:]


def test_nothing_but_a_regular_file_is_opened(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_bytes(b"line\n")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "link", "folder"):
        lines, state, findings = read_new(tmp_path / name, TailState())
        assert (lines, state) == ([], TailState())
        assert [finding.code for finding in findings] == ["not-a-regular-file"]


def test_a_poll_leaves_no_descriptor_open(writer):
    for _ in range(3):
        writer.line()
        writer.rotate()
        writer.reopen()
    before = len(os.listdir("/dev/fd"))
    Reader(writer.path).drain()
    assert len(os.listdir("/dev/fd")) == before
