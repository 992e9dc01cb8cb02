"""Text of fixed size: nothing is sent for nothing new, and no layout for what is new."""

from __future__ import annotations

import pytest
from textual.app import App
from textual.content import Content
from textual.widgets import Static

from tests.tui.recorded_terminal import recorded
from trainflow_tui.screens.widgets.cells import as_content, as_text
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.text import display


class TextApp(App):
    def __init__(self):
        super().__init__()
        self.text = SteadyText()

    def compose(self):
        yield self.text
        yield Static("below")


async def test_an_equal_text_sends_nothing_and_a_new_one_only_itself():
    app = TextApp()
    async with recorded(app) as terminal:
        app.text.show(as_text(display("loss 1.0")))
        await terminal.settle()
        assert terminal.rows[:2] == ["loss 1.0".ljust(80), "below".ljust(80)]
        terminal.forget()
        app.text.show(as_text(display("loss 1.0")))
        await terminal.settle()
        assert terminal.written == ""
        app.text.show(as_text(display("loss 0.9")))
        await terminal.settle()
        assert "loss 0.9" in terminal.written
        assert "below" not in terminal.written
        assert len(terminal.written.encode()) <= 206  # interface §2.3, R1


async def test_a_longer_text_lays_nothing_out():
    app = TextApp()
    async with recorded(app) as terminal:
        app.text.show(as_text(display("short")))
        await terminal.settle()
        layouts = app.text._layout_updates
        app.text.show(as_text(display("line " * 60)))
        await terminal.settle()
        assert app.text._layout_updates == layouts
        assert terminal.rows[1].rstrip() == "below"


async def test_another_style_is_another_text():
    app = TextApp()
    async with recorded(app) as terminal:
        app.text.show(as_content(display("state"), "bold"))
        await terminal.settle()
        before = terminal.picture[0][0]
        app.text.show(as_content(display("state"), "reverse"))
        await terminal.settle()
        assert terminal.picture[0][0] != before


@pytest.mark.parametrize("bare", ["[red]x[/]", display("x"), None])
def test_a_bare_string_is_refused(bare):
    with pytest.raises(TypeError, match="SteadyText"):
        SteadyText().show(bare)
    SteadyText().show(Content(""))
