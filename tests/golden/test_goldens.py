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


def text_of(app):
    return "\n".join(screen_text(app)) + "\n"


async def compare(name, app, size, *keys, **named):
    """Press the keys and wait for the picture in the file; a busy machine may take its time, another picture never comes right."""
    path = HERE / f"{name}.txt"
    opened = app(**named)
    async with opened.run_test(size=size) as pilot:
        await pilot.pause(0.1)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.15)
        if os.environ.get("UPDATE_GOLDENS"):
            await pilot.pause(1.0)
            path.write_text(text_of(opened))
        expected = path.read_text() if path.exists() else ""
        patience = time.monotonic() + 5
        while (found := text_of(opened)) != expected and time.monotonic() < patience:
            await pilot.pause(0.1)
    difference = difflib.unified_diff(expected.splitlines(), found.splitlines(), "expected", "found", lineterm="")
    assert found == expected, "\n".join(difference)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("mode", MODES)
async def test_a_screen_looks_as_it_did(app, mode, size):
    await compare(f"{mode}-{size}", app, SIZES[size], MODES[mode])


@pytest.mark.parametrize("size", SIZES)
async def test_the_approval_dialog_looks_as_it_did(app, size):
    await compare(f"approval-{size}", app, SIZES[size], "1", "a")


@pytest.mark.parametrize("size", SIZES)
async def test_help_looks_as_it_did(app, size):
    await compare(f"help-{size}", app, SIZES[size], "question_mark")


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_workspace_says_what_fills_it(empty, size):
    await compare(f"empty-{size}", empty, SIZES[size], "0")


async def test_an_empty_live_screen_says_what_fills_it(empty):
    await compare("empty-live-80x24", empty, SIZES["80x24"], "5")


async def test_the_smallest_terminal_looks_as_it_did(app):
    await compare("overview-60x16", app, (60, 16), "0")


async def test_a_smaller_one_says_what_it_needs(app):
    await compare("too-small-59x15", app, (59, 15))


async def test_the_terminals_own_colours_change_no_word(app):
    await compare("overview-120x40", app, SIZES["120x40"], "0", theme="ansi")


async def test_an_overview_on_a_wide_screen_looks_as_it_did(app):
    await compare("overview-200x60", app, (200, 60), "0")
