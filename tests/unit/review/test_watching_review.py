"""The loop: it outlives a failing round, keeps its heartbeat, and ends when another has taken its place."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from trainflow_tui import watching
from trainflow_tui.collaboration import tasks
from trainflow_tui.collaboration.change_events import is_news
from trainflow_tui.ledger import leases


@pytest.fixture
def turns(workspace, clock, actor, monkeypatch):
    """Run the loop; between its turns the given steps are taken, each a second apart, and then it is told to end."""
    tasks.create(workspace, title="t", actor=actor)
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    monkeypatch.setattr(watching, "_Watcher", lambda *_: None)
    monkeypatch.setattr("trainflow_tui.refresh.node_checks.check_due", lambda *_: 0)
    monkeypatch.setattr("trainflow_tui.monitoring.node_checks.check_due", lambda *_: 0)

    def run(*steps):
        todo = list(steps)

        def wait(loop):
            if todo:
                todo.pop(0)()
                clock.advance(1)
            else:
                loop._stopping = True

        monkeypatch.setattr(watching._Loop, "_wait", wait)
        return watching.run_watch(workspace, with_parent=False)

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def nothing():
    pass


def test_a_round_that_fails_is_tried_again_after_a_pause(workspace, turns, clock, monkeypatch):
    calls = []
    real = watching.run_round

    def failing(*arguments, **named):
        calls.append(clock.monotonic())
        if len(calls) == 1:
            raise OSError(28, "No space left on device")
        return real(*arguments, **named)

    monkeypatch.setattr(watching, "run_round", failing)
    assert turns(*[nothing] * 8) is None
    assert calls[1] - calls[0] == watching.RETRY_S


def test_a_loop_whose_lease_was_taken_ends_and_names_the_holder(workspace, turns, clock, monkeypatch):
    rounds = []
    monkeypatch.setattr(watching._Loop, "_scan", lambda self, now: rounds.append(now))

    def stopped_for_long():
        clock.advance(watching.LEASE_TTL_S + 1)
        assert leases.acquire(workspace.ledger, watching.LEASE, "other:1", ttl_s=60) is not None

    holder = turns(nothing, stopped_for_long, nothing, nothing)
    assert holder.owner == "other:1"
    assert len(rounds) == 2
    assert leases.holder(workspace.ledger, watching.LEASE).owner == "other:1"


def test_a_loop_that_was_stopped_and_not_replaced_goes_on(workspace, turns, clock, monkeypatch):
    rounds = []
    monkeypatch.setattr(watching._Loop, "_scan", lambda self, now: rounds.append(now))
    assert turns(nothing, lambda: clock.advance(1000), nothing) is None
    assert len(rounds) == 4


def test_only_a_record_in_the_spool_itself_wakes_it():
    assert is_news(Path("/w/.trainflow/spool/1.record"))
    assert is_news(Path("/w/collaboration/t/GUIDANCE.md"))
    assert not is_news(Path("/home/spool-tests/w/collaboration/t/BOARD.md"))
