"""What one scan of all human files costs the disk, and what it leaves where two processes scan at once."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from trainflow_tui.collaboration import file_rows, guidance, tasks
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.settled_read import HASH_EVERY_SCANS, SettledReader
from trainflow_tui.workspace import Workspace

TASKS = 8


@pytest.fixture
def many(workspace, actor):
    """Tasks whose files rest: the clock is an hour ahead of the time at which they were made."""
    workspace.clock.set_wall(datetime.now(UTC) + timedelta(hours=1))
    for number in range(TASKS):
        tasks.create(workspace, title=f"t{number}", actor=actor)
    return workspace


@pytest.fixture
def scan(actor):
    readers = {}

    def run(workspace):
        # One reader a process; it has watched the files for longer than a save takes.
        reader = readers.setdefault(id(workspace), SettledReader(clock=workspace.clock, sleep=lambda _: None))
        workspace.clock.advance(300)
        return collect(workspace, actor=actor, reader=reader)

    return run


def commits_of(workspace, monkeypatch, work):
    count = 0
    real = workspace.ledger.transaction

    @contextlib.contextmanager
    def counted():
        nonlocal count
        count += 1
        with real() as transaction:
            yield transaction

    monkeypatch.setattr(workspace.ledger, "transaction", counted)
    work()
    monkeypatch.setattr(workspace.ledger, "transaction", real)
    return count


def settle(workspace, scan):
    for _ in range(3):
        scan(workspace)
    rows = workspace.ledger.query("SELECT DISTINCT state FROM human_file")
    assert rows == [("collected",)]


def test_a_scan_of_files_that_are_as_they_were_is_one_commit_however_many_tasks_there_are(many, scan, monkeypatch):
    settle(many, scan)
    before = dict(many.ledger.query("SELECT task || name, scanned_at FROM human_file"))
    assert commits_of(many, monkeypatch, lambda: scan(many)) == 1
    after = dict(many.ledger.query("SELECT task || name, scanned_at FROM human_file"))
    assert all(after[key] > before[key] for key in before)


def test_every_twelfth_scan_reads_all_of_them_again_at_the_same_price(many, scan, monkeypatch):
    settle(many, scan)
    assert [commits_of(many, monkeypatch, lambda: scan(many)) for _ in range(HASH_EVERY_SCANS + 1)] == [1] * 13


def test_how_a_file_was_decoded_is_still_said_after_it_was_read_again(many, scan):
    settle(many, scan)
    (many.task_folder("t0") / "GUIDANCE.md").write_bytes("## 学习率降低一半\n".encode("gb18030"))
    for _ in range(HASH_EVERY_SCANS + 2):
        scan(many)
        row = file_rows.load(many, "t0", "GUIDANCE.md")
        assert (row.state, row.detail) == ("collected", "decoded as GB18030")


def test_one_changed_file_costs_one_more(many, scan, monkeypatch):
    settle(many, scan)
    (many.task_folder("t3") / "GUIDANCE.md").write_text("## wish\n")
    assert commits_of(many, monkeypatch, lambda: scan(many)) == 2
    assert [i.task for i in guidance.listed(many.ledger)] == ["t3"]


def test_what_another_process_has_taken_meanwhile_is_not_put_back(many, scan, clock, monkeypatch):
    settle(many, scan)
    other = Workspace.open(many.root, clock=clock)
    path = many.task_folder("t0") / "GUIDANCE.md"
    real, met = file_rows.keep, []

    def overtaken(transaction, workspace, task, name, row):
        met.append((task, name))
        real(transaction, workspace, task, name, row)

    def find(workspace):
        # Between the look at the files and the commit: a person saves, and another process collects it.
        path.write_text("## wish\n")
        scan(other)
        return []

    monkeypatch.setattr(file_rows, "keep", overtaken)
    with monkeypatch.context() as patched:
        patched.setattr("trainflow_tui.collaboration.odd_entries.find", _once(find))
        scan(many)
    assert ("t0", "GUIDANCE.md") in met
    assert file_rows.load(many, "t0", "GUIDANCE.md") == file_rows.load(other, "t0", "GUIDANCE.md")
    assert file_rows.load(many, "t0", "GUIDANCE.md").last.fingerprint.size_bytes == len("## wish\n")
    assert [i.heading for i in guidance.listed(many.ledger)] == ["wish"]
    other.close()


def _once(work):
    calls = []

    def run(workspace):
        calls.append(1)
        return work(workspace) if len(calls) == 1 else []

    return run
