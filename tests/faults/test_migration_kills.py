"""A ledger of schema 1, and processes that are killed while they bring it up to date: it is old or new, never a mixture."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from trainflow_tui.clock import ManualClock
from trainflow_tui.errors import DamagedError
from trainflow_tui.ledger import database, schema
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.ledger.events import Actor

ROOT = Path(__file__).resolve().parents[2]
SCHEMA_1 = Path(__file__).resolve().parents[1] / "data" / "ledger-schema-1.sql"
START = datetime(2026, 1, 1, tzinfo=UTC)
ACTOR = Actor(door="cli", user="operator")
EVENTS = 40


def make_old(path, *, journal="WAL"):
    """A ledger as the first released schema had it, with events and with rows that are none."""
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {journal}").fetchall()
    connection.execute(SCHEMA_1.read_text())
    clock = ManualClock(START)
    connection.execute("BEGIN IMMEDIATE")
    transaction = Transaction(connection.cursor(), clock)
    for number in range(EVENTS // 4):
        task = f"t{number}"
        clock.advance(1)
        transaction.append("task.created", task, {"title": task}, actor=ACTOR)
        transaction.append("task.moved", task, {"to": "prepared", "reason": f"r{number}"}, actor=ACTOR)
        item = {"task": task, "id": "g", "text": "wanted", "version": number}
        transaction.append("guidance.collected", f"{task}/g", item, actor=ACTOR)
        transaction.append("node.added", f"n{number}", {"target": "local"}, actor=ACTOR)
    transaction.execute("INSERT INTO node_status VALUES ('n1', '{}', '2026-01-01T00:00:00.000000Z')")
    transaction.execute("INSERT INTO segment (run, path, state, created_at) VALUES ('r', 'p', 'live', 'x')")
    transaction.pulse("node")
    connection.execute("COMMIT")
    connection.close()


def definitions(connection):
    return sorted(connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall())


def contents(connection):
    names = [n for (n,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return {n: connection.execute(f"SELECT * FROM {n}").fetchall() for n in names if n != "sqlite_sequence"}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    path = tmp_path_factory.mktemp("old") / "ledger.db"
    make_old(path)
    return path


@pytest.fixture(scope="module")
def expected(old, tmp_path_factory):
    """The definitions and contents of the old file, and of one that was brought up to date without trouble."""
    path = tmp_path_factory.mktemp("new") / "ledger.db"
    found = {}
    shutil.copy(old, path)
    connection = apsw.Connection(str(path))
    found["old"] = definitions(connection), contents(connection)
    connection.close()
    Ledger.open(path, clock=ManualClock(START)).close()
    connection = apsw.Connection(str(path))
    found["new"] = definitions(connection), contents(connection)
    connection.close()
    return found


def run_kills(*words):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.migration_kills", *map(str, words)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [int(word) for word in done.stdout.split()]


def test_the_file_of_schema_1_is_that_of_a_new_ledger_without_what_came_later(expected, tmp_path):
    Ledger.open(tmp_path / "ledger.db", clock=ManualClock(START)).close()
    connection = apsw.Connection(str(tmp_path / "ledger.db"))
    assert definitions(connection) == expected["new"][0]
    names = {name for _, name, _ in expected["new"][0]} - {name for _, name, _ in expected["old"][0]}
    assert names == {"node_history", "node_history_name"}
    assert all(item in expected["new"][0] for item in expected["old"][0])


def test_a_ledger_of_schema_1_keeps_all_that_it_holds_and_a_copy_of_what_it_was(old, expected, tmp_path):
    path = tmp_path / "ledger.db"
    shutil.copy(old, path)
    opened = Ledger.open(path, clock=ManualClock(START))
    assert opened.query("PRAGMA user_version") == [(schema.SCHEMA_VERSION,)]
    found = opened.verify()
    assert (found.events, found.first_bad_seq, found.integrity, found.projections_match) == (EVENTS, None, "ok", True)
    state = {name: opened.query(f"SELECT * FROM {name} ORDER BY rowid") for name in schema.PROJECTION_TABLES}
    opened.rebuild()
    assert {n: opened.query(f"SELECT * FROM {n} ORDER BY rowid") for n in schema.PROJECTION_TABLES} == state
    opened.close()
    new = expected["new"][1]
    assert {name: rows for name, rows in new.items() if name != "node_history"} == expected["old"][1]
    copy = tmp_path / "ledger.db.schema-1"
    assert copy.stat().st_mode & 0o777 == 0o600
    kept = apsw.Connection(str(copy))
    assert kept.execute("PRAGMA user_version").fetchall() == [(1,)]
    assert (definitions(kept), contents(kept)) == expected["old"]


def test_a_process_killed_at_any_statement_leaves_the_old_ledger_or_the_new_one(old, expected, tmp_path):
    codes = run_kills(old, tmp_path)
    states, copies = [], []
    for number in range(1, len(codes) + 1):
        path = tmp_path / str(number) / "ledger.db"
        connection = apsw.Connection(str(path))
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        states.append("old" if version == 1 else "new")
        assert (definitions(connection), contents(connection)) == expected[states[-1]], number
        connection.close()
        copy = path.with_name("ledger.db.schema-1")
        copies.append(copy.exists())
        if copy.exists():
            kept = apsw.Connection(str(copy))
            assert (definitions(kept), contents(kept)) == expected["old"], number
            kept.close()
        again = Ledger.open(path, clock=ManualClock(START))
        found = again.verify()
        assert (found.events, found.first_bad_seq, found.integrity, found.projections_match) == (
            EVENTS,
            None,
            "ok",
            True,
        )
        assert definitions(again._connection) == expected["new"][0]
        again.close()
    assert codes == [-signal.SIGKILL] * (len(codes) - 1) + [0]
    assert len(codes) > 15
    assert states == sorted(states, reverse=True)
    assert set(states) == {"old", "new"}
    # The copy is whole before the first statement that changes the file, and absent while it is not.
    assert copies == sorted(copies)
    assert copies.index(True) < states.index("new") - 3


def test_six_processes_that_bring_it_up_to_date_at_once_do_it_once(old, expected, tmp_path):
    path = tmp_path / "ledger.db"
    shutil.copy(old, path)
    assert run_kills(path, "--together", 6) == [6]
    connection = apsw.Connection(str(path))
    assert (definitions(connection), contents(connection)) == expected["new"]


def test_without_a_copy_nothing_is_changed(old, expected, tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    shutil.copy(old, path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(database, "write_atomic", full)
    with pytest.raises(DamagedError) as refused:
        Ledger.open(path, clock=ManualClock(START))
    assert refused.value.code == "ledger-unavailable"
    assert "No space left" in refused.value.message
    connection = apsw.Connection(str(path))
    assert (definitions(connection), contents(connection)) == expected["old"]


def test_on_a_network_file_system_it_is_brought_up_to_date_as_well(tmp_path):
    path = tmp_path / "ledger.db"
    make_old(path, journal="DELETE")
    opened = Ledger.open(path, clock=ManualClock(START), local_filesystem=False)
    assert opened.query("PRAGMA journal_mode") == [("delete",)]
    assert opened.verify().projections_match
    opened.close()
    assert (tmp_path / "ledger.db.schema-1").exists()


def test_a_ledger_of_schema_1_that_is_only_read_stays_so(old, expected, tmp_path):
    path = tmp_path / "ledger.db"
    shutil.copy(old, path)
    opened = Ledger.open(path, clock=ManualClock(START), readonly=True)
    assert opened.verify().projections_match
    opened.close()
    assert not (tmp_path / "ledger.db.schema-1").exists()
    connection = apsw.Connection(str(path))
    assert (definitions(connection), contents(connection)) == expected["old"]
