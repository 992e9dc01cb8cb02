"""The bridge from display text to widgets."""

from __future__ import annotations

import pytest
from rich.text import Text
from textual.content import Content

from trainflow_tui.screens.widgets.cells import as_content, as_text, same_drawing
from trainflow_tui.text import display


@pytest.mark.parametrize("bridge", [as_text, as_content])
def test_only_display_text_crosses(bridge):
    with pytest.raises(TypeError, match="str"):
        bridge("bare")
    with pytest.raises(TypeError, match="Text"):
        bridge(Text("rich"))
    assert bridge(display("[/b [@click=app.quit]x[/]")).plain == "[/b [@click=app.quit]x[/]"


@pytest.mark.parametrize("bridge", [as_text, as_content])
def test_the_result_holds_plain_strings_and_no_tags(bridge):
    made = bridge(display("[red]x[/]"))
    assert made.spans == []
    assert type(made.plain) is str


def test_texts_are_the_same_only_when_they_look_the_same():
    one = display("x")
    assert same_drawing(as_text(one, "red"), as_text(one, "red"))
    assert not same_drawing(as_text(one, "red"), as_text(one, "green"))
    assert not same_drawing(as_text(one), as_text(display("y")))
    assert same_drawing(as_content(one, "bold"), as_content(one, "bold"))
    assert not same_drawing(as_content(one, "bold"), as_content(one))
    assert not same_drawing(Text("x"), Content("x"))
    styled = Text("x")
    styled.stylize("red", 0, 1)
    assert not same_drawing(styled, Text("x"))
