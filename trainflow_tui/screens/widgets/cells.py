"""The one bridge from display text to widgets: Text for table cells and logs, Content for everything else."""

from __future__ import annotations

from rich.text import Text
from textual.content import Content

from trainflow_tui.screens.looks import rich_style
from trainflow_tui.text import Display


def as_text(display: Display, style: str = "") -> Text:
    """One line for a table cell or a log, literally; what does not fit ends in `…`. `style` may name our meanings (`looks`).

    Raises:
        TypeError: the text did not pass `text.display()`.
    """
    return Text(_checked(display), rich_style(style), no_wrap=True, overflow="ellipsis", end="")


def as_content(display: Display, style: str = "") -> Content:
    """Text for a Static, Label, Button, title or tooltip, literally. `style` is Textual's and may name theme colours.

    Raises:
        TypeError: the text did not pass `text.display()`.
    """
    return Content.styled(_checked(display), style)


def same_drawing(one: Text | Content, other: Text | Content) -> bool:
    """Whether two texts look alike, styles included: rich's own equality leaves out a Text's style, Textual's all."""
    if one is other:
        return True
    if isinstance(one, Text) and isinstance(other, Text):
        return one.plain == other.plain and one.style == other.style and one.spans == other.spans
    if isinstance(one, Content) and isinstance(other, Content):
        return one.plain == other.plain and one.spans == other.spans
    return False


def _checked(display: Display) -> str:
    if not isinstance(display, Display):
        raise TypeError(f"a widget takes text that passed text.display(), not {type(display).__name__}")
    return str(display)
