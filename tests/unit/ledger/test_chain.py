"""The chain: identity, order, verification and rebuilding."""

from __future__ import annotations

import random

import apsw
import pytest

from trainflow_tui.errors import DamagedError, RefusedError
from trainflow_tui.ledger.database import Ledger

PAYLOADS = [{"title": "A", "mode": "full"}, {"title": "B", "mode": "full"}]


@pytest.fixture
def ledger(tmp_path, clock):
    opened = Ledger.open(tmp_path / "ledger.db", clock=clock)
    yield opened
    opened.close()


def add(ledger, kind, entity, payload, actor, **named):
    with ledger.transaction() as transaction:
        return transaction.append(kind, entity, payload, actor=actor, **named)


def test_going_there_and_back_again_is_three_events(ledger, actor):
    for payload in ({"v": "A"}, {"v": "B"}, {"v": "A"}):
        assert add(ledger, "note", "x", payload, actor) is not None
    assert ledger.head() == 3


def test_one_step_written_by_two_processes_is_one_event(ledger, actor, tmp_path, clock):
    other = Ledger.open(tmp_path / "ledger.db", clock=clock)
    assert add(ledger, "note", "x", {"v": 1}, actor, idempotency="step-7") is not None
    assert add(other, "note", "x", {"v": 1}, actor, idempotency="step-7") is None
    assert ledger.head() == 1


def test_an_exception_inside_a_transaction_leaves_nothing(ledger, actor):
    def half() -> None:
        with ledger.transaction() as transaction:
            transaction.append("task.created", "t", PAYLOADS[0], actor=actor)
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        half()
    assert ledger.head() == 0
    assert ledger.query("SELECT count(*) FROM task") == [(0,)]


def fill(ledger, actor, n=12):
    for i in range(n):
        add(ledger, "task.created", f"t{i}", {"title": f"T{i}", "mode": "full"}, actor)


def test_an_untouched_ledger_verifies(ledger, actor):
    fill(ledger, actor)
    found = ledger.verify()
    assert (found.events, found.first_bad_seq, found.integrity, found.projections_match) == (12, None, "ok", True)


@pytest.mark.parametrize("column", ["key", "kind", "entity", "at", "actor", "payload", "prev", "hash"])
def test_an_edited_column_is_found_at_its_event(ledger, actor, tmp_path, column):
    fill(ledger, actor)
    raw = apsw.Connection(str(tmp_path / "ledger.db"))
    raw.execute(f"UPDATE event SET {column} = {column} || ' ' WHERE seq = 5")
    # A changed hash shows at the event itself: its own link no longer fits.
    assert ledger.verify().first_bad_seq == 5


def test_a_deleted_event_is_found(ledger, actor, tmp_path):
    fill(ledger, actor)
    apsw.Connection(str(tmp_path / "ledger.db")).execute("DELETE FROM event WHERE seq = 4")
    assert ledger.verify().first_bad_seq == 4


def test_swapped_events_are_found(ledger, actor, tmp_path):
    fill(ledger, actor)
    raw = apsw.Connection(str(tmp_path / "ledger.db"))
    raw.execute(
        "UPDATE event SET seq = -1 WHERE seq = 3; UPDATE event SET seq = 3 WHERE seq = 7; UPDATE event SET seq = 7 WHERE seq = -1"
    )
    assert ledger.verify().first_bad_seq == 3


def test_a_cut_end_is_found(ledger, actor, tmp_path):
    fill(ledger, actor)
    apsw.Connection(str(tmp_path / "ledger.db")).execute("DELETE FROM event WHERE seq > 9")
    assert ledger.verify().first_bad_seq == 10


def test_random_damage_to_any_event_is_always_found_first(ledger, actor, tmp_path):
    fill(ledger, actor, 20)
    raw = apsw.Connection(str(tmp_path / "ledger.db"))
    dice = random.Random(4)
    for _ in range(60):
        seq = dice.randint(1, 20)
        ((payload,),) = raw.execute("SELECT payload FROM event WHERE seq = ?", (seq,)).fetchall()
        place = dice.randrange(len(payload))
        changed = payload[:place] + chr((ord(payload[place]) + 1) % 128 or 65) + payload[place + 1 :]
        raw.execute("UPDATE event SET payload = ? WHERE seq = ?", (changed, seq))
        assert ledger.verify().first_bad_seq == seq
        raw.execute("UPDATE event SET payload = ? WHERE seq = ?", (payload, seq))
    assert ledger.verify().first_bad_seq is None


def test_a_changed_table_is_found_and_rebuilt(ledger, actor, tmp_path):
    fill(ledger, actor)
    apsw.Connection(str(tmp_path / "ledger.db")).execute("UPDATE task SET title = 'other' WHERE id = 't3'")
    assert not ledger.verify().projections_match
    assert ledger.rebuild() == 12
    assert ledger.verify().projections_match
    assert ledger.query("SELECT title FROM task WHERE id = 't3'") == [("T3",)]


def test_a_newer_file_opens_read_only(ledger, actor, tmp_path, clock):
    fill(ledger, actor)
    apsw.Connection(str(tmp_path / "ledger.db")).execute("PRAGMA user_version = 999")
    newer = Ledger.open(tmp_path / "ledger.db", clock=clock)
    assert newer.readonly
    assert newer.head() == 12
    with pytest.raises(RefusedError), newer.transaction():
        pass


def test_a_foreign_database_is_refused_and_left_as_it_is(tmp_path, clock):
    path = tmp_path / "other.db"
    apsw.Connection(str(path)).execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    before = path.read_bytes()
    with pytest.raises(DamagedError, match="another program"):
        Ledger.open(path, clock=clock)
    assert path.read_bytes() == before


def test_bytes_that_are_no_database_are_refused_and_left_as_they_are(tmp_path, clock):
    path = tmp_path / "ledger.db"
    path.write_bytes(b"these are notes of mine\n" * 200)
    with pytest.raises(DamagedError, match="not a ledger"):
        Ledger.open(path, clock=clock)
    assert path.read_bytes() == b"these are notes of mine\n" * 200


def test_the_version_moves_with_events_and_with_pulses(ledger, actor):
    start = ledger.version()
    fill(ledger, actor, 1)
    after = ledger.version()
    assert after != start
    with ledger.transaction() as transaction:
        transaction.pulse("run")
    assert ledger.version() != after
