"""Every screen as text, at the sizes that operators have. `UPDATE_GOLDENS=1` writes them anew; look at the difference first."""

from __future__ import annotations

import difflib
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.tui.conftest import QuietDesk, screen_text
from tests.tui.example import fill
from trainflow_tui.app import TrainflowApp
from trainflow_tui.clock import ManualClock
from trainflow_tui.workspace import Workspace

HERE = Path(__file__).parent
SIZES = {"80x24": (80, 24), "120x40": (120, 40)}
MODES = {"overview": "0", "board": "1", "questions": "2", "hotspots": "3", "cluster": "4", "live": "5"}


@pytest.fixture
def app(tmp_path, monkeypatch):
    """The application on a workspace whose content is the same on every machine."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    root = tmp_path / "cluster-a"
    root.mkdir(mode=0o700)
    clock = ManualClock(datetime(2026, 3, 4, 2, 58, 0, tzinfo=UTC))
    workspace = Workspace.open(root, create=True, clock=clock)
    fill(workspace, clock, monkeypatch)
    yield lambda **named: TrainflowApp(QuietDesk(workspace), **named)
    monkeypatch.undo()
    time.tzset()


def compare(name, lines):
    path = HERE / f"{name}.txt"
    found = "\n".join(lines) + "\n"
    if os.environ.get("UPDATE_GOLDENS"):
        path.write_text(found)
    expected = path.read_text() if path.exists() else ""
    difference = "\n".join(
        difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", lineterm="")
    )
    assert found == expected, difference


async def shown(app, size, *keys, **named):
    opened = app(**named)
    async with opened.run_test(size=size) as pilot:
        await pilot.pause(0.1)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.15)
        return screen_text(opened)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", MODES)
async def test_a_screen_looks_as_it_did(app, mode, size):
    compare(f"{mode}-{size}", await shown(app, SIZES[size], MODES[mode]))


@pytest.mark.parametrize("size", SIZES)
async def test_the_approval_dialog_looks_as_it_did(app, size):
    compare(f"approval-{size}", await shown(app, SIZES[size], "1", "a"))


async def test_help_looks_as_it_did(app):
    compare("help-120x40", await shown(app, SIZES["120x40"], "question_mark"))


async def test_the_terminals_own_colours_change_no_word(app):
    compare("overview-120x40", await shown(app, SIZES["120x40"], "0", theme="ansi"))


async def test_an_overview_on_a_wide_screen_looks_as_it_did(app):
    compare("overview-200x60", await shown(app, (200, 60), "0"))
