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
def utc(monkeypatch):
    """Times on screen are the same wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def new_workspace(tmp_path):
    root = tmp_path / "cluster-a"
    root.mkdir(mode=0o700)
    clock = ManualClock(datetime(2026, 3, 4, 2, 58, 0, tzinfo=UTC))
    return Workspace.open(root, create=True, clock=clock), clock


@pytest.fixture
def app(utc, tmp_path, monkeypatch):
    """The application on a workspace whose content is the same on every machine."""
    workspace, clock = new_workspace(tmp_path)
    fill(workspace, clock, monkeypatch)
    return lambda **named: TrainflowApp(QuietDesk(workspace), **named)


@pytest.fixture
def empty(utc, tmp_path):
    """The application on a workspace in which nothing has been done yet."""
    workspace, _clock = new_workspace(tmp_path)
    return lambda **named: TrainflowApp(QuietDesk(workspace), **named)


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


@pytest.mark.parametrize("size", SIZES)
async def test_help_looks_as_it_did(app, size):
    compare(f"help-{size}", await shown(app, SIZES[size], "question_mark"))


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_workspace_says_what_fills_it(empty, size):
    compare(f"empty-{size}", await shown(empty, SIZES[size], "0"))


async def test_an_empty_live_screen_says_what_fills_it(empty):
    compare("empty-live-80x24", await shown(empty, SIZES["80x24"], "5"))


async def test_the_smallest_terminal_looks_as_it_did(app):
    compare("overview-60x16", await shown(app, (60, 16), "0"))


async def test_a_smaller_one_says_what_it_needs(app):
    compare("too-small-59x15", await shown(app, (59, 15)))


async def test_the_terminals_own_colours_change_no_word(app):
    compare("overview-120x40", await shown(app, SIZES["120x40"], "0", theme="ansi"))


async def test_an_overview_on_a_wide_screen_looks_as_it_did(app):
    compare("overview-200x60", await shown(app, (200, 60), "0"))
