"""The loop of `trainflow watch` keeps segments in order beside its other work, a step a turn."""

from __future__ import annotations

import signal

import pytest

from tests.unit.monitoring.segments import Run
from trainflow_tui import watching
from trainflow_tui.errors import BusyError
from trainflow_tui.monitoring import compaction


@pytest.fixture
def loop(workspace, clock, monkeypatch):
    """Run the loop for so many turns, a second apart; returns the kinds of step that each turn did."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    monkeypatch.setattr(watching, "_Watcher", lambda *_: None)
    monkeypatch.setattr("trainflow_tui.refresh.node_checks.check_due", lambda *_: 0)
    monkeypatch.setattr("trainflow_tui.monitoring.node_checks.check_due", lambda *_: 0)
    real = compaction.do

    def run(turns):
        done = [[]]

        def do(opened, step):
            done[-1].append(step.kind)
            return real(opened, step)

        def wait(self):
            clock.advance(1)
            self._stopping = len(done) == turns
            done.append([])

        monkeypatch.setattr(compaction, "do", do)
        monkeypatch.setattr(watching._Loop, "_wait", wait)
        watching.run_watch(workspace, with_parent=False)
        return done[:turns]

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_due_steps_are_done_one_a_turn_and_then_nothing_for_half_a_minute(workspace, loop, clock):
    run = Run(workspace)
    for number in range(3):
        run.append({"step": number, "loss": 1.0})
        run.seal()
    clock.advance(8 * 86_400)
    done = loop(4)
    assert done == [["roll"], ["retain"], [], []]
    assert run.level("raw") == []
    run.append({"step": 4, "loss": 1.0})
    run.seal()
    clock.advance(601)
    assert loop(1) == [["roll"]]


def test_the_loop_goes_on_when_the_ledger_is_busy(workspace, loop, monkeypatch):
    calls = []

    def busy(_):
        calls.append(1)
        raise BusyError("busy", "The ledger is busy.")

    monkeypatch.setattr(watching.Upkeep, "step", lambda self, workspace: busy(workspace))
    loop(3)
    assert len(calls) == 3
