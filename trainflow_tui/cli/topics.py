"""The pages of `trainflow help`: which there are, in which language, and as what they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui import language

FOLDER: Final = Path(__file__).resolve().parents[1] / "help"
TOPICS: Final = (
    "start",
    "keys",
    "configuration",
    "files",
    "approvals",
    "traces",
    "logs",
    "nodes",
    "time-cursor",
    "slow-lines",
    "serve",
    "storage",
    "agents",
    "exit-codes",
    "troubleshooting",
)
"""In the order in which they are listed."""

_KEYS: Final = "<!-- keys -->"
_SETTINGS: Final = "<!-- settings -->"
"""Lines of a page in the place of which a generated table stands."""
MARGIN: Final = "    "


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page, ready to be printed."""

    topic: str
    title: str
    text: str


def title(topic: str, *, folder: Path = FOLDER) -> str:
    """What a page is about, from its first section."""
    return _title(_source(topic, folder)[0])


def page(topic: str, *, own_keys: Mapping[str, str], folder: Path = FOLDER) -> Page:
    """A page in the current language; in English, with a line that says so, where it is not translated.

    `own_keys` are the user's keys by binding id.
    """
    source, is_translated = _source(topic, folder)
    name = _title(source)
    if not is_translated:
        source = f"{language._('This page is not translated yet.')}\n\n{source}"
    if _KEYS in source or _SETTINGS in source:
        from trainflow_tui.cli import reference

        source = source.replace(_KEYS, reference.keys_text(own_keys) if _KEYS in source else "")
        source = source.replace(_SETTINGS, reference.settings_text())
    return Page(topic=topic, title=name, text=_shown(source))


def _source(topic: str, folder: Path) -> tuple[str, bool]:
    tag = language.current()
    translated = folder / f"{topic}.{tag}.md"
    if tag != "en" and translated.exists():
        return translated.read_text(encoding="utf-8"), True
    return (folder / f"{topic}.md").read_text(encoding="utf-8"), tag == "en"


def _title(source: str) -> str:
    """The words behind the name: a page begins with its heading, a blank line, `name - words`."""
    return source.split("\n", 3)[2].partition(" - ")[2]


def _shown(source: str) -> str:
    """Headings at the margin and close above their text, the rest indented, as manual pages are."""
    lines: list[str] = []
    for line in source.rstrip("\n").split("\n"):
        if line or not lines or not lines[-1] or lines[-1].startswith(MARGIN):
            lines.append(line[3:] if line.startswith("## ") else f"{MARGIN}{line}" if line else "")
    return "\n".join(lines) + "\n"
