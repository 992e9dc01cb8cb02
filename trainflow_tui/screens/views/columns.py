"""Columns and cells that several panes have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec

from trainflow_tui import language
from trainflow_tui.screens import looks
from trainflow_tui.screens.pane_view import Cell
from trainflow_tui.screens.widgets.patched_table import MAX_ROWS, Column, Row
from trainflow_tui.screens.words import MUTED, at, line, right
from trainflow_tui.text import cell_len

P = ParamSpec("P")


def cached(build: Callable[Concatenate[str, P], Row]) -> Callable[Concatenate[str, P], Row]:
    """Keep the last row that a function of plain values has built for each key, in the theme and the language in use.

    A thousand rows cost 100 ms to build and a snapshot comes every second; the same row object is also never compared.
    """
    kept: dict[str, tuple[object, Row]] = {}

    def found(key: str, *values: P.args, **named: P.kwargs) -> Row:
        about = (looks.current(), language.current(), values, named)
        last = kept.get(key)
        if last is None or last[0] != about:
            if len(kept) > 2 * MAX_ROWS:
                kept.clear()
            last = kept[key] = (about, build(key, *values, **named))
        return last[1]

    return found


def figures(label: str, width: int, key: str) -> Column:
    """A column of numbers, with its heading to the right as they are."""
    return Column(" " * (width - cell_len(label)) + label, width, key)


def words(raw: str, style: str = "", value: str | None = None) -> Cell:
    """Foreign text; it stands for itself unless told otherwise."""
    return Cell(line(raw, style), raw if value is None else value)


def muted(raw: str) -> Cell:
    """Foreign text that matters less."""
    return words(raw, MUTED)


def moment(iso: str) -> Cell:
    """A stored time, shown by the local clock."""
    return Cell(at(iso), iso or None)


def number(raw: str, value: float | None, style: str = "") -> Cell:
    """A number to the right, and what it was before it was rounded."""
    return Cell(right(raw, style), value)


def share_of(part: int, whole: int, style: str = "") -> Cell:
    """A part in percent of a window; stands for the fraction."""
    return number(f"{100 * part / whole:.1f}%", part / whole, style)


def milliseconds(ns: int) -> str:
    """Nanoseconds as milliseconds with three decimals, by integer arithmetic."""
    return f"{ns // 1_000_000:,}.{ns % 1_000_000 // 1000:03d}"


def share(part: int, whole: int) -> str:
    """A part in percent of a window."""
    return f"{100 * part / whole:.1f}%"
