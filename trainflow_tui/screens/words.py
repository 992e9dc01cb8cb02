"""Words on screen: gettext for ours, `display` for everybody else's."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from trainflow_tui.clock import local_clock_time
from trainflow_tui.language import N_, _
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.text import Display, display

__all__ = [
    "ACCENT",
    "BAD",
    "MUTED",
    "N_",
    "OK",
    "WARN",
    "_",
    "at",
    "joined",
    "key_hints",
    "line",
    "mark",
    "right",
    "say",
]

OK: Final = "ok"
WARN: Final = "warn"
BAD: Final = "bad"
MUTED: Final = "muted"
ACCENT: Final = "accent"


def say(template: str, **values: object) -> Display:
    """One of our sentences with foreign values in it; each value is made harmless before it is filled in."""
    return display(template.format(**{name: display(str(value)) for name, value in values.items()}))


def line(raw: str, style: str = "", *, cells: int = 400) -> Text:
    """Foreign text as one styled line."""
    return as_text(display(raw.strip().split("\n", 1)[0], max_cells=cells), style)


def at(iso: str) -> Text:
    """A stored time as the local clock shows it, or a dash."""
    return as_text(display(local_clock_time(iso) if iso else "—"), MUTED)


def right(raw: str, style: str = "") -> Text:
    """A number, set to the right."""
    text = line(raw, style)
    text.justify = "right"
    return text


def mark(glyph: str, style: str) -> Text:
    """A state's glyph; the colour only repeats what the glyph says."""
    return as_text(display(glyph), style)


def key_hints(*pairs: tuple[str, str]) -> Text:
    """What keys do, for the last line of a dialog."""
    return joined(*(joined(line(key, ACCENT), line(words)) for key, words in pairs), gap="   ")


def joined(*parts: Text, gap: str = " ") -> Text:
    """Several texts in a row."""
    text = Text(gap).join([part for part in parts if part.plain])
    text.no_wrap, text.overflow = True, "ellipsis"
    return text
