"""The ledger as it was: which events are there at a moment, the tables that they give, and that nothing is written."""

from __future__ import annotations

import random
from datetime import timedelta

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.clock import ManualClock, from_iso, to_iso
from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger import past as past_module
from trainflow_tui.ledger import schema
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.ledger.events import Actor
from trainflow_tui.ledger.past import Past

ACTOR = Actor(door="cli", user="operator")


@pytest.fixture
def ledger(tmp_path, clock):
    opened = Ledger.open(tmp_path / "ledger.db", clock=clock)
    yield opened
    opened.close()


def task(ledger, id, kind="task.created", **payload):
    with ledger.transaction() as transaction:
        return transaction.append(kind, id, {"title": id} | payload, actor=ACTOR)


def tables(ledger):
    return {name: ledger.query(f"SELECT rowid, * FROM {name} ORDER BY rowid") for name in schema.PROJECTION_TABLES}


def ids(ledger):
    return [row[0] for row in ledger.query("SELECT id FROM task ORDER BY rowid")]


def test_the_state_at_a_moment_has_the_events_up_to_it_the_one_at_it_included(ledger, clock):
    begin = clock.now()
    for number in range(5):
        task(ledger, f"t{number}")
        clock.advance(10)
    past = Past(ledger)
    for seconds, count in ((-1, 0), (0, 1), (9.999999, 1), (10, 2), (39, 4), (40, 5), (1e6, 5), (20, 3)):
        past.go_to(begin + timedelta(seconds=seconds))
        assert ids(past) == [f"t{n}" for n in range(count)], seconds
    past.close()


def test_where_the_clock_was_set_back_what_had_been_recorded_is_there(ledger, clock):
    begin = clock.now()
    task(ledger, "at-0")
    clock.set_wall(begin + timedelta(hours=5))
    task(ledger, "at-5h")
    clock.set_wall(begin + timedelta(seconds=60))
    task(ledger, "at-60s")
    past = Past(ledger)
    assert past.go_to(begin + timedelta(seconds=59)) == 1
    assert past.go_to(begin + timedelta(seconds=60)) == 3
    assert ids(past) == ["at-0", "at-5h", "at-60s"]
    assert past.next_time(to_iso(begin)) == to_iso(begin + timedelta(seconds=60))
    assert past.next_time(to_iso(begin + timedelta(seconds=60))) is None
    assert past.previous_time(to_iso(begin + timedelta(hours=9))) == to_iso(begin + timedelta(seconds=60))
    assert past.previous_time(to_iso(begin + timedelta(seconds=60))) == to_iso(begin)
    assert past.previous_time(to_iso(begin)) is None
    past.close()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-50, 100), min_size=1, max_size=25))
def test_each_step_goes_to_the_next_time_at_which_the_state_differs(tmp_path_factory, jumps):
    clock = ManualClock()
    ledger = Ledger.open(tmp_path_factory.mktemp("l") / "ledger.db", clock=clock)
    begin = clock.now()
    times = []
    for number, jump in enumerate(jumps):
        clock.set_wall(clock.now() + timedelta(seconds=jump))
        task(ledger, f"t{number}")
        times.append(int((clock.now() - begin).total_seconds()))
    # By the definition: at t the state is that after the last event whose time is not later than t.
    state = {
        t: max((n + 1 for n, at in enumerate(times) if at <= t), default=0)
        for t in range(min(times) - 1, max(times) + 2)
    }
    changes = [t for t in sorted(state)[1:] if state[t] != state[t - 1]]
    past = Past(ledger)
    for t in state:
        here = to_iso(begin + timedelta(seconds=t))
        after, before = past.next_time(here), past.previous_time(here)
        seconds = [None if at is None else int((from_iso(at) - begin).total_seconds()) for at in (after, before)]
        assert seconds == [
            min((c for c in changes if c > t), default=None),
            max((c for c in changes if c < t), default=None),
        ]
        assert past.seq_at(here) == state[t]
    past.close()
    ledger.close()


def test_going_anywhere_in_any_order_gives_what_was_there(ledger, clock, monkeypatch):
    monkeypatch.setattr(past_module, "SPACINGS", (4, 16))
    monkeypatch.setattr(past_module, "CHUNK", 7)
    monkeypatch.setattr(past_module, "CHECKPOINTS_BYTES", 5 * 160_000)
    seen = [tables(ledger)]
    chance = random.Random(4)
    for number in range(120):
        clock.advance(1)
        known = ids(ledger)
        if known and chance.random() < 0.4:
            task(ledger, chance.choice(known), "task.moved", to="prepared", reason=f"r{number}")
        else:
            task(ledger, f"t{number}")
        seen.append(tables(ledger))
    past = Past(ledger)
    for _ in range(150):
        seq = chance.randint(0, 121)
        assert past.go_to_seq(seq) == min(seq, 120)
        assert tables(past) == seen[min(seq, 120)]
        assert past.head() == min(seq, 120)
        assert past.hash_at(120) == (ledger.hash_at(120) if seq >= 120 else None)
    assert 1 < len(past._checkpoints) <= 6
    past.close()


def test_an_event_that_comes_meanwhile_is_there_when_its_time_is_gone_to(ledger, clock):
    past = Past(ledger)
    assert past.go_to(clock.now()) == 0
    task(ledger, "t")
    assert past.go_to(clock.now()) == 1
    assert ids(past) == ["t"]
    past.close()


def test_the_past_is_not_written_and_its_file_neither(ledger, clock):
    task(ledger, "t")
    past = Past(ledger)
    past.go_to(clock.now())
    with pytest.raises(RefusedError), past.transaction():
        pass
    with pytest.raises(apsw.ReadOnlyError):
        past._connection.execute("DELETE FROM file.event")
    past.close()
    assert ledger.head() == 1


def test_no_table_of_the_past_holds_what_is_true_today(ledger, clock):
    task(ledger, "t")
    plain = [name for (name,) in ledger.query("SELECT name FROM sqlite_master WHERE type = 'table'")]
    plain = [n for n in plain if n not in (*schema.PROJECTION_TABLES, "event", "head", "segment", "sqlite_sequence")]
    assert {"human_file", "lease", "run_status", "node_status", "pulse", "node_history"} <= set(plain)
    with ledger.transaction() as transaction:
        for name in plain:
            columns = len(transaction.query(f"PRAGMA table_info({name})"))
            transaction.execute(f"INSERT INTO {name} VALUES ({', '.join(['1'] * columns)})")
    past = Past(ledger)
    past.go_to(clock.now())
    assert {name: past.query(f"SELECT count(*) FROM {name}") for name in plain} == {name: [(0,)] for name in plain}
    past.close()


def test_what_was_put_is_gone_when_the_past_stands_elsewhere(ledger, clock):
    task(ledger, "t")
    past = Past(ledger)
    past.go_to(clock.now())
    past.put("node_status", [("n1", "{}", "x"), ("n2", "{}", "y")])
    assert past.query("SELECT name FROM node_status ORDER BY name") == [("n1",), ("n2",)]
    past.put("node_status", [("n3", "{}", "x")])
    assert past.query("SELECT name FROM node_status") == [("n3",)]
    past.go_to(clock.now() + timedelta(seconds=1))
    assert past.query("SELECT name FROM node_status") == []
    past.close()


def test_a_ledger_that_is_only_read_has_its_past_too(tmp_path, clock):
    path = tmp_path / "it's a?ledger#.db"
    opened = Ledger.open(path, clock=clock)
    task(opened, "t")
    opened.close()
    read = Ledger.open(path, clock=clock, readonly=True)
    past = Past(read)
    past.go_to(clock.now())
    assert ids(past) == ["t"]
    assert past.is_of(read)
    past.close()
    read.close()
