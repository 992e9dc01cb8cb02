"""The spool: every record arrives, those of one writer in order."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from trainflow_tui.collaboration.spool import MAX_RECORD_BYTES, archive, pending, strangers, write_record
from trainflow_tui.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]

WRITER = """
import sys
from pathlib import Path
from trainflow_tui.collaboration.spool import write_record
for number in range(int(sys.argv[3])):
    write_record(Path(sys.argv[1]), f"{sys.argv[2]} {number}".encode())
"""


def contents(spool: Path) -> list[str]:
    return [path.read_text() for path in pending(spool)]


def in_order(records: list[str], writers: range, count: int) -> bool:
    found: dict[int, list[int]] = {}
    for record in records:
        writer, number = map(int, record.split())
        found.setdefault(writer, []).append(number)
    return found == {writer: list(range(count)) for writer in writers}


def test_50_processes_write_4_records_each_and_all_arrive_in_their_order(tmp_path):
    processes = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(writer), "4"], cwd=ROOT)
        for writer in range(50)
    ]
    assert [process.wait() for process in processes] == [0] * 50
    records = contents(tmp_path)
    assert len(records) == 200
    assert in_order(records, range(50), 4)
    assert strangers(tmp_path) == []


def test_threads_of_one_process_do_not_take_each_other_s_place(tmp_path):
    def write(writer: int) -> None:
        for number in range(25):
            write_record(tmp_path, f"{writer} {number}".encode(), now_ns=lambda: 5)

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert in_order(contents(tmp_path), range(8), 25)


def test_a_clock_that_goes_back_does_not_turn_the_order(tmp_path):
    times = iter([10**18, 10**18, 10**17, 10**18 + 1, 1])
    for number in range(5):
        write_record(tmp_path, f"0 {number}".encode(), now_ns=lambda: next(times))
    assert in_order(contents(tmp_path), range(1), 5)


def test_a_record_of_the_same_name_from_another_machine_is_not_overwritten(tmp_path):
    first = write_record(tmp_path, b"there", now_ns=lambda: 2 * 10**18)
    # What the other machine's next record is called, as this one is about to call its own.
    moment, process, _ = first.name.split("-")
    (tmp_path / f"{int(moment) + 1:020d}-{process}-000000.record").write_bytes(b"theirs")
    mine = write_record(tmp_path, b"mine", now_ns=lambda: 0)
    assert mine.name.endswith("-000001.record")
    assert contents(tmp_path) == ["there", "theirs", "mine"]


def test_records_are_private(tmp_path):
    before = os.umask(0)
    try:
        path = write_record(tmp_path, b"x")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("size", [0, MAX_RECORD_BYTES + 1])
def test_a_record_without_content_or_end_is_refused(tmp_path, size):
    with pytest.raises(UsageError) as raised:
        write_record(tmp_path, b"x" * size)
    assert raised.value.code == "record-size"
    assert os.listdir(tmp_path) == []


def test_what_is_not_ours_is_told_and_left_alone(tmp_path):
    name = write_record(tmp_path, b"x").name
    (tmp_path / "notes.txt").write_bytes(b"mine")
    (tmp_path / name.replace("000000.record", "000007.record")).symlink_to("/etc/passwd")
    (tmp_path / name.replace("000000.record", "000008.record")).mkdir()
    os.mkfifo(tmp_path / name.replace("000000.record", "000009.record"))
    (tmp_path / (name + ".bak")).write_bytes(b"")
    (tmp_path / os.fsdecode(b"caf\xe9")).write_bytes(b"")
    (tmp_path / ".trainflow-0123456789abcdef.tmp").write_bytes(b"unfinished")
    before = sorted(os.listdir(tmp_path))
    assert [path.name for path in pending(tmp_path)] == [name]
    assert len(strangers(tmp_path)) == 6
    assert "notes.txt" in strangers(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before


def test_no_spool_has_no_records(tmp_path):
    assert pending(tmp_path / "nothing") == strangers(tmp_path / "nothing") == []


def test_an_archived_record_is_gone_and_may_be_archived_again(tmp_path):
    path = write_record(tmp_path, b"x")
    archive(path)
    archive(path)
    assert pending(tmp_path) == []


def test_a_record_that_vanishes_while_the_spool_is_read_is_passed_over(tmp_path, monkeypatch):
    kept, gone = write_record(tmp_path, b"a"), write_record(tmp_path, b"b")
    real = os.scandir

    def scandir(path):
        entries = real(path)
        gone.unlink(missing_ok=True)
        return entries

    monkeypatch.setattr(os, "scandir", scandir)
    assert pending(tmp_path) in ([kept], [kept, gone])
