"""A job of thousands of steps, an agent and a collector under the screen: what it holds does not grow with the time that went by."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.soak import WALK, soaked
from trainflow_tui.clock import SystemClock
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.monitoring.samples import EVENTS_KEPT
from trainflow_tui.monitoring.status import RECENT_POINTS

CYCLE_S = len(WALK)
"""A key a second: every screen and dialog was opened once, and the screen is where it was."""
CYCLES = 2
PACE = 60
"""So that more steps and events come than a run keeps: 60 steps a second are 3,840, with 76 checkpoints."""


def soak(folder, cycles):
    root = folder / "soak"
    root.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        patch.setenv("XDG_STATE_HOME", str(folder))
        found = asyncio.run(
            soaked(root, cycles * CYCLE_S, warm_up_s=CYCLE_S, sample_every_s=CYCLE_S, key_every_s=1, pace=PACE)
        )
    return root, found


@pytest.fixture(scope="module")
def soaked_world(tmp_path_factory):
    return soak(tmp_path_factory.mktemp("soak"), CYCLES)


@pytest.fixture
def found(soaked_world):
    return soaked_world[1]


def test_every_cycle_of_screens_and_dialogs_leaves_as_many_widgets_and_tasks_as_the_one_before(found):
    first, *later = found.moments
    assert len(later) == CYCLES - 1
    assert {m.widgets for m in later} == {first.widgets}
    assert max(m.tasks for m in later) <= first.tasks + 3  # a notice that is still up


def test_a_run_keeps_its_newest_points_and_events_and_no_more(found):
    assert found.rows[-1]["recent points"] == RECENT_POINTS
    assert found.rows[-1]["events"] == EVENTS_KEPT


def test_objects_of_ours_are_more_only_by_what_people_and_agents_wrote(found):
    begin, end = found.rows
    written = sum(end[name] - begin[name] for name in ("approvals", "questions", "guidance"))
    assert written >= 10
    ours = {name: n for name, n in found.grown.items() if name.startswith("trainflow_tui.")}
    # A record may be held by two snapshots and by its row on two screens.
    assert {name: n for name, n in ours.items() if n > 4 * written} == {}


def test_a_dialog_that_was_left_leaves_nothing_behind(found):
    grown = {name: n for name, n in found.grown.items() if name.endswith((".StylesCache", ".TextArea"))}
    # A list that became longer than its pane has a scroll bar more, which stays.
    assert grown.pop("textual._styles_cache.StylesCache", 0) <= 6
    assert grown == {}


def test_the_ledger_grows_by_decisions_and_not_by_steps(soaked_world):
    root, _ = soaked_world
    ledger = Ledger.open(root / ".trainflow/ledger.db", clock=SystemClock())
    try:
        counts = {
            table: ledger.query(f"SELECT count(*) FROM {table}")[0][0] for table in ("event", "pulse", "run_status")
        }
    finally:
        ledger.close()
    assert CYCLES * CYCLE_S * PACE > 3000
    assert counts["event"] < 300
    assert counts["pulse"] < 10
    assert counts["run_status"] == 1


@pytest.mark.long
def test_after_ten_minutes_too(tmp_path):
    _, found = soak(tmp_path, 600 // CYCLE_S + 1)
    first, *later = found.moments
    assert {m.widgets for m in later} == {first.widgets}
    assert max(m.tasks for m in later) <= first.tasks + 3
    assert found.rows[-1]["recent points"] == RECENT_POINTS
