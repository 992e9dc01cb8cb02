"""Every screen as text, at the sizes that operators have. `UPDATE_GOLDENS=1` writes them anew; look at the difference first."""

from __future__ import annotations

import difflib
import itertools
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color as TextualColor

from tests.tui.conftest import QuietDesk, screen_text
from tests.tui.example import fill
from trainflow_tui import language
from trainflow_tui.app import TrainflowApp
from trainflow_tui.clock import ManualClock
from trainflow_tui.screens import looks, strip_guard
from trainflow_tui.workspace import Workspace

HERE = Path(__file__).parent
SIZES = {"80x24": (80, 24), "120x40": (120, 40), "200x60": (200, 60)}
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


def plain_text_of(app):
    """What the terminal is sent, behind the last gate, without styles."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip_guard.as_drawn(strip).text.rstrip() for strip in strips) + "\n"


def styled_text_of(app):
    """The text, and where it is bold, reversed or underlined; a colour would show as its name: without colours none may."""
    lines = []
    for strip in app.screen._compositor.render_strips():
        pieces = [(_marks(app, segment.style or Style.null()), segment.text) for segment in strip]
        text = ""
        for marks, group in itertools.groupby(pieces, key=lambda piece: piece[0]):
            words = "".join(piece[1] for piece in group)
            text += f"{{{marks}:{words}}}" if marks else words
        lines.append(text.rstrip())
    return "\n".join(lines) + "\n"


def _marks(app, style):
    for filter in app._filters:
        style = filter.apply([Segment(" ", style)], TextualColor(0, 0, 0))[0].style or Style.null()
    attributes = (("b", style.bold), ("r", style.reverse), ("u", style.underline))
    colours = [f"<{c.name}>" for c in (style.color, style.bgcolor) if c is not None and not c.is_default]
    return "".join([*(sign for sign, on in attributes if on), *colours])


TEXTS = {"": text_of, "zh-cn": text_of, "ascii": plain_text_of, "no-colour": styled_text_of}


class Pictures:
    """Compares screens with their files; a busy machine may take its time, another picture never comes right."""

    def __init__(self, pilot, app, text=text_of) -> None:
        self.pilot, self.app, self.text = pilot, app, text
        self.problems: list[str] = []

    async def compare(self, name, *keys):
        """Press the keys and wait for the picture in the file."""
        path = HERE / f"{name}.txt"
        for key in keys:
            await self.pilot.press(key)
        if os.environ.get("UPDATE_GOLDENS"):
            await self.pilot.pause(0.3)
            path.write_text(self.text(self.app))
        expected = path.read_text() if path.exists() else ""
        patience = time.monotonic() + 5
        while (found := self.text(self.app)) != expected and time.monotonic() < patience:
            await self.pilot.pause(0.1)
        self.problems += difflib.unified_diff(expected.splitlines(), found.splitlines(), name, "found", lineterm="")

    def settle(self):
        """Fail with every difference."""
        assert not self.problems, "\n".join(self.problems)


async def compare(name, app, size, *keys, **named):
    """One picture of an application of its own."""
    opened = app(**named)
    async with opened.run_test(size=size) as pilot:
        await pilot.pause(0.1)
        pictures = Pictures(pilot, opened)
        await pictures.compare(name, *keys)
    pictures.settle()


@pytest.fixture(params=["", "no-colour", "ascii", "zh-cn"])
def variant(request, monkeypatch):
    """Dark as it comes; without colours; without signs beyond ASCII; in Chinese."""
    if request.param == "no-colour":
        monkeypatch.setenv("NO_COLOR", "1")
    if request.param == "ascii":
        monkeypatch.setenv("TRAINFLOW_GLYPHS", "ascii")
    language.use("zh-CN" if request.param == "zh-cn" else "en")
    yield request.param
    language.use("en")
    looks.use("dark")
    looks.use_signs(glyphs="unicode", markers="braille")


@pytest.mark.parametrize("size", SIZES)
async def test_the_screens_look_as_they_did(variant, app, size):
    opened = app()
    async with opened.run_test(size=SIZES[size]) as pilot:
        await pilot.pause(0.1)
        pictures = Pictures(pilot, opened, TEXTS[variant])
        ending = f"-{size}-{variant}" if variant else f"-{size}"
        for mode, key in MODES.items():
            await pictures.compare(f"{mode}{ending}", key)
        await pictures.compare(f"help{ending}", "1", "question_mark")
        await pictures.compare(f"approval{ending}", "escape", "a")
    pictures.settle()


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_workspace_says_what_fills_it(empty, size):
    await compare(f"empty-{size}", empty, SIZES[size], "0")


async def test_an_empty_live_screen_says_what_fills_it(empty):
    await compare("empty-live-80x24", empty, SIZES["80x24"], "5")


async def test_the_smallest_terminal_looks_as_it_did(app):
    await compare("overview-60x16", app, (60, 16), "0")


async def test_a_smaller_one_says_what_it_needs(app):
    await compare("too-small-59x15", app, (59, 15))


@pytest.mark.parametrize("theme", [name for name in looks.LOOKS if name != "dark"])
async def test_no_theme_changes_a_word(app, theme):
    await compare("overview-120x40", app, SIZES["120x40"], "0", theme=theme)


async def test_the_command_line_lists_what_could_be_meant(app):
    await compare("command-80x24", app, SIZES["80x24"], "1", "colon", "t")


async def test_a_list_shows_filter_order_and_marks(app):
    await compare("marked-120x40", app, SIZES["120x40"], "1", "tab", "s", "5", "space", "slash", "r", "e", "enter")
