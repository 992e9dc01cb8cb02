"""The ledger under a full disk, damage, other writers, clocks that go back and versions that are not its own."""

from __future__ import annotations

import json
import os
import random
import socket
import subprocess
import sys
import threading
from datetime import timedelta

import apsw
import pytest

from trainflow_tui.errors import BusyError, DamagedError, RefusedError, UsageError
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.workspace import Workspace


@pytest.fixture
def ledger(tmp_path, clock):
    opened = Ledger.open(tmp_path / "ledger.db", clock=clock)
    yield opened
    opened.close()


def add(ledger, n, actor, **payload):
    with ledger.transaction() as transaction:
        transaction.append("task.created", f"t{n}", {"title": f"T{n}", "mode": "full"} | payload, actor=actor)


def test_a_full_disk_records_nothing_and_says_so(ledger, actor):
    add(ledger, 1, actor)
    ledger._connection.execute("PRAGMA max_page_count = 1")  # SQLite's own way to meet SQLITE_FULL
    with pytest.raises(DamagedError) as refused:
        add(ledger, 2, actor, objective="x" * 200_000)
    assert refused.value.code == "disk-full"
    assert refused.value.exit_code == 20
    ledger._connection.execute("PRAGMA max_page_count = 1000000")
    add(ledger, 3, actor)
    found = ledger.verify()
    assert (found.events, found.first_bad_seq, found.projections_match) == (2, None, True)


def test_a_text_that_is_no_unicode_is_the_callers_fault(ledger, actor):
    with pytest.raises(UsageError):
        add(ledger, 1, actor, objective="a\udcff")
    with pytest.raises(UsageError):
        ledger.query("SELECT 1 FROM task WHERE id = ?", ("a\udcff",))
    assert ledger.head() == 0


def test_the_walk_is_not_disturbed_by_those_who_write_meanwhile(ledger, tmp_path, clock, actor):
    for n in range(300):
        add(ledger, n, actor)
    stop = threading.Event()

    def write():
        other = Ledger.open(tmp_path / "ledger.db", clock=clock)
        n = 1000
        while not stop.is_set():
            n += 1
            add(other, n, actor)
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = [ledger.verify() for _ in range(15)]
    finally:
        stop.set()
        writer.join()
    assert {(f.first_bad_seq, f.projections_match, f.integrity) for f in found} == {(None, True, "ok")}
    assert found[-1].events > found[0].events


def test_a_ledger_that_another_process_is_making_at_this_moment_is_not_taken_for_foreign(tmp_path, clock, monkeypatch):
    from trainflow_tui.ledger import database

    path, real = tmp_path / "ledger.db", database._schema_version
    first = []

    def made_meanwhile(connection):
        found = real(connection)
        if not first:
            first.append(True)
            Ledger.open(path, clock=clock).close()
        return found

    monkeypatch.setattr(database, "_schema_version", made_meanwhile)
    opened = Ledger.open(path, clock=clock)
    assert opened.head() == 0
    opened.close()


def test_no_damage_is_an_internal_error_and_none_goes_unnoticed(tmp_path, clock, actor):
    path = tmp_path / "ledger.db"
    opened = Ledger.open(path, clock=clock)
    for n in range(60):
        add(opened, n, actor, objective="word " * 40)
    opened.close()
    whole, dice, noticed = path.read_bytes(), random.Random(8), 0
    for _ in range(60):
        damaged = bytearray(whole)
        if dice.random() < 0.5:
            place = dice.randrange(len(whole) - 4096)
            damaged[place : place + 4096] = bytes(4096)
        else:
            del damaged[dice.randrange(1, len(whole)) :]
        for name in ("ledger.db-wal", "ledger.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            again = Ledger.open(path, clock=clock)
        except DamagedError:
            noticed += 1
            continue
        try:
            found = again.verify()
            clean = found.first_bad_seq is None and found.projections_match and found.integrity == "ok"
            noticed += not clean
            assert not clean or found.events == 60
        except DamagedError:
            noticed += 1
        finally:
            again.close()
    assert noticed > 40


def test_a_ledger_of_a_newer_version_is_read_and_never_written(command, actor):
    workspace = Workspace.open(command.root, create=True)
    add(workspace.ledger, 1, actor)
    workspace.close()
    connection = apsw.Connection(str(command.root / ".trainflow/ledger.db"))
    for table in ("task", "event", "guidance", "report", "question", "approval", "run", "node", "trace"):
        connection.execute(f"ALTER TABLE {table} ADD COLUMN of_a_later_version TEXT")
    connection.execute("PRAGMA user_version = 9")
    connection.close()
    calls = [("task", "show", "t1"), ("--once",), ("guidance", "list"), ("ledger", "verify"), ("report", "list", "t1")]
    for words in calls:
        code, found = command.json(*words)
        assert (code, [r["code"] for r in found["reasons"]]) == (20, ["ledger-newer"]), words
    code, found = command.json("task", "create", "x")
    assert (code, found["error"]["code"]) == (20, "ledger-readonly")


def test_a_read_only_disk_is_read(tmp_path, clock, actor, monkeypatch):
    path = tmp_path / "ledger.db"
    opened = Ledger.open(path, clock=clock)
    add(opened, 1, actor)
    opened.close()
    real = os.access
    monkeypatch.setattr(os, "access", lambda p, mode: False if p == tmp_path else real(p, mode))
    read = Ledger.open(path, clock=clock, readonly=True)
    assert read.head() == 1
    assert not (tmp_path / "ledger.db-shm").exists()
    with pytest.raises(RefusedError):
        add(read, 2, actor)
    read.close()


def test_a_busy_ledger_is_busy_and_not_an_error(tmp_path, clock, actor, monkeypatch):
    from trainflow_tui.ledger import database

    path = tmp_path / "ledger.db"
    holder = Ledger.open(path, clock=clock)
    monkeypatch.setattr(database, "BUSY_TIMEOUT_S", 0.05)
    other = Ledger.open(path, clock=clock)
    with holder.transaction() as transaction:
        transaction.pulse("x")
        with pytest.raises(BusyError) as refused:
            add(other, 1, actor)
    assert refused.value.exit_code == 30
    add(other, 1, actor)
    holder.close()
    other.close()


def ended_process():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return f"{socket.gethostname()}:{child.pid}"


def test_after_a_clock_went_back_a_holder_that_has_ended_blocks_nobody(ledger, clock):
    leases.acquire(ledger, "watch", ended_process(), ttl_s=15)
    clock.set_wall(clock.now() - timedelta(days=400))
    assert leases.holder(ledger, "watch") is None
    assert leases.acquire(ledger, "watch", "b", ttl_s=15) is not None


def test_after_a_clock_went_back_a_holder_that_lives_keeps_its_lease(ledger, clock):
    mine = leases.acquire(ledger, "watch", f"{socket.gethostname()}:{os.getpid()}", ttl_s=15)
    clock.set_wall(clock.now() - timedelta(days=400))
    assert leases.acquire(ledger, "watch", "b", ttl_s=15) is None
    assert leases.renew(ledger, mine, ttl_s=15)
    assert leases.holder(ledger, "watch").expires_at.startswith("2025")


def test_while_the_clock_is_right_only_the_expiry_frees_a_lease(ledger, clock):
    leases.acquire(ledger, "watch", ended_process(), ttl_s=15)
    assert leases.acquire(ledger, "watch", "b", ttl_s=15) is None


def test_a_rebuild_gives_the_very_tables(command, tmp_path):
    demo = tmp_path / "demo"
    assert command.run("demo", str(demo), "--headless", timeout=120).returncode == 0

    def tables():
        from trainflow_tui.ledger import schema

        connection = apsw.Connection(str(demo / ".trainflow/ledger.db"))
        found = {n: list(connection.execute(f"SELECT rowid, * FROM {n} ORDER BY 1")) for n in schema.PROJECTION_TABLES}
        connection.close()
        return found

    before = tables()
    names = ("task", "report", "guidance", "receipt", "question", "approval", "run", "trace")
    assert all(before[name] for name in names)
    done = command.run("--workspace", str(demo), "--json", "ledger", "rebuild")
    assert json.loads(done.stdout)["events"] > 10
    assert tables() == before
