"""Looks: the five themes, and what our words for meaning (ok, warn, bad …) look like in each. A state is always a sign too."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from textual.theme import Theme


@dataclass(frozen=True)
class Look:
    """One theme: Textual's name for it, and rich's style for each of our meanings."""

    theme: str
    ok: str
    warn: str
    bad: str
    muted: str
    accent: str


HIGH_CONTRAST: Final = Theme(
    name="trainflow-high-contrast",
    primary="#00e5ff",
    secondary="#ffffff",
    accent="#ffff00",
    foreground="#ffffff",
    background="#000000",
    surface="#000000",
    panel="#303030",
    boost="#404040",
    success="#00ff66",
    warning="#ffff00",
    error="#ff6b6b",
    dark=True,
)
COLOUR_BLIND: Final = Theme(
    name="trainflow-colour-blind",
    primary="#56b4e9",
    secondary="#009e73",
    accent="#cc79a7",
    foreground="#e8e8e8",
    background="#121212",
    surface="#1e1e1e",
    panel="#2a2a2a",
    success="#56b4e9",
    warning="#f0e442",
    error="#e69f00",
    dark=True,
)
"""Colours that stay apart for every common kind of colour blindness (Okabe and Ito, Color Universal Design, 2008)."""
OWN_THEMES: Final = (HIGH_CONTRAST, COLOUR_BLIND)

LOOKS: Final = {
    "dark": Look("textual-dark", "green", "yellow", "bold red", "#949494", "cyan"),
    "light": Look("textual-light", "#00691c", "#7a4b00", "bold #b3001b", "#5c5c5c", "#005a8c"),
    # Of the terminal's own sixteen; a muted one of them is unreadable in many schemes, so that muted is plain.
    "ansi": Look("ansi-dark", "green", "yellow", "bold red", "", "cyan"),
    "high-contrast": Look(
        HIGH_CONTRAST.name, "bold #00ff66", "bold #ffff00", "bold #ff6b6b", "#d8d8d8", "bold #00e5ff"
    ),
    "colour-blind": Look(COLOUR_BLIND.name, "#56b4e9", "#f0e442", "bold #e69f00", "#a0a0a0", "#cc79a7"),
}
_MEANINGS: Final = ("ok", "warn", "bad", "muted", "accent")

_look = "dark"
_glyphs = "unicode"
_markers = "braille"


def use(name: str) -> Look:
    """Style texts for this theme from now on."""
    global _look
    _look = name
    return LOOKS[name]


def use_signs(*, glyphs: str, markers: str) -> None:
    """Draw signs and charts with these characters from now on; without more than ASCII, charts have none either."""
    global _glyphs, _markers
    _glyphs = glyphs
    _markers = "ascii" if glyphs == "ascii" else markers


def glyphs() -> str:
    """Unicode or ascii."""
    return _glyphs


def markers() -> str:
    """braille, blocks or ascii."""
    return _markers


def current() -> str:
    """The name of the theme in use."""
    return _look


def rich_style(style: str) -> str:
    """Rich's style for one of ours: meanings are looked up in the theme, everything else (bold, reverse …) stays."""
    return _resolved(_look, style) if style else ""


@lru_cache(maxsize=256)
def _resolved(name: str, style: str) -> str:
    look = LOOKS[name]
    return " ".join(getattr(look, word) if word in _MEANINGS else word for word in style.split()).strip()
