"""The view models of a list pane: title, columns, rows, source; and filtering and sorting without a widget."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from trainflow_tui.language import _
from trainflow_tui.screens.widgets.patched_table import Column, Row, Value
from trainflow_tui.text import Display

if TYPE_CHECKING:
    import regex

FILTER_TIMEOUT_S: Final = 0.05
"""A pattern that backtracks without end is stopped here: the screen never waits."""
FILTER_ALL_S: Final = 0.2
"""The same for one that is slow in every cell: 8,000 cells of 49 ms each would be minutes."""


class Cell(NamedTuple):
    """What a cell shows, and what it stands for."""

    text: Text
    value: Value = None


def row(key: str, *cells: Cell | Text) -> Row:
    """A row of cells; a bare text is a sign that stands for nothing more."""
    whole = [cell if isinstance(cell, Cell) else Cell(cell) for cell in cells]
    return Row(key, tuple(cell.text for cell in whole), tuple(cell.value for cell in whole))


@dataclass(frozen=True)
class AsOf:
    """Since when something is known, from which source, and whether that is still good: ok, stale or lost."""

    at: str
    source: Display
    state: str = "ok"


@dataclass(frozen=True)
class PaneView:
    """What a list pane shows. `empty` says what fills the pane; `note` is the one thing to know about the rows."""

    title: Display
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: Display
    note: Display | None = None
    as_of: AsOf | None = None
    total: int = 0
    """How many there are, where not all of them are rows; 0 where all are."""

    def only(self, *positions: int) -> PaneView:
        """The same rows with some of the columns, for a place that is too narrow for all."""
        columns = tuple(self.columns[n] for n in positions)
        rows = tuple(
            Row(r.key, tuple(r.cells[n] for n in positions), tuple(r.values[n] for n in positions if r.values))
            for r in self.rows
        )
        return replace(self, columns=columns, rows=rows)

    def known(self, as_of: AsOf | None) -> PaneView:
        """The same, with its source."""
        return replace(self, as_of=as_of)


@dataclass(frozen=True)
class Sorting:
    """By which column, and from which end. Without a column rows keep the order that they came in."""

    key: str = ""
    reverse: bool = False

    def sort(self, columns: tuple[Column, ...], rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows in this order; equal ones keep theirs, rows without a value come last either way."""
        position = next((n for n, column in enumerate(columns) if column.key == self.key), None)
        if not self.key:
            return rows[::-1] if self.reverse else rows
        if position is None:  # a narrow layout leaves that column out, and its order with it
            return rows
        known = [r for r in rows if r.values and r.values[position] is not None and not _is_nan(r.values[position])]
        rest = [r for r in rows if not r.values or r.values[position] is None or _is_nan(r.values[position])]
        return (*sorted(known, key=lambda r: _rank(r.values[position]), reverse=self.reverse), *rest)


def _is_nan(value: Value) -> bool:
    return isinstance(value, float) and value != value


def _rank(value: Value) -> tuple[int, float, str]:
    if isinstance(value, int | float):
        return (0, value, "")
    return (1, 0.0, str(value).casefold())


@dataclass(frozen=True)
class RowFilter:
    """Keeps rows in whose cells the words occur, case-insensitively; a leading `!` keeps the others.

    As a regular expression it is searched for in each cell; one that is wrong or too slow keeps every row and says so.
    """

    text: str = ""
    is_regex: bool = False
    inverse: bool = field(init=False)
    problem: str = field(init=False, default="")
    _needle: str = field(init=False, repr=False)
    _pattern: regex.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        """Split the mark from the words, and read the pattern."""
        words = self.text.removeprefix("!")
        object.__setattr__(self, "inverse", self.text.startswith("!"))
        object.__setattr__(self, "_needle", words.strip().casefold())
        if self.is_regex and words.strip():
            import regex

            try:
                object.__setattr__(self, "_pattern", regex.compile(words.strip(), regex.IGNORECASE))
            except (regex.error, RecursionError, OverflowError) as problem:
                object.__setattr__(self, "problem", str(problem))

    def keep(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows that stay."""
        if not self._needle or self.problem:
            return rows
        until = time.monotonic() + FILTER_ALL_S
        try:
            return tuple(
                row for row in rows if self._matches((cell.plain for cell in row.cells), until) != self.inverse
            )
        except TimeoutError:
            object.__setattr__(self, "problem", _("too slow"))
            return rows

    def _matches(self, texts: Iterable[str], until: float) -> bool:
        if self._pattern is None:
            return any(self._needle in text.casefold() for text in texts)
        if time.monotonic() > until:
            raise TimeoutError
        return any(self._pattern.search(text, timeout=FILTER_TIMEOUT_S) for text in texts)
