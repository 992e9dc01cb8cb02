"""The view models of a list pane: a title, columns, rows; filtering is done here, without a widget."""

from __future__ import annotations

from dataclasses import dataclass, field

from trainflow_tui.screens.widgets.patched_table import Column, Row
from trainflow_tui.text import Display


@dataclass(frozen=True)
class PaneView:
    """What a list pane shows. `empty` says what fills the pane; `as_of` where the rows come from and when."""

    title: Display
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: Display
    as_of: Display | None = None


@dataclass(frozen=True)
class RowFilter:
    """Keeps rows in whose cells the words occur, case-insensitively; a leading `!` keeps the others."""

    text: str = ""
    needle: str = field(init=False)
    inverse: bool = field(init=False)

    def __post_init__(self) -> None:
        """Split the mark from the words."""
        object.__setattr__(self, "inverse", self.text.startswith("!"))
        object.__setattr__(self, "needle", self.text.removeprefix("!").strip().casefold())

    def keep(self, rows: tuple[Row, ...]) -> tuple[Row, ...]:
        """The rows that stay."""
        if not self.needle:
            return rows
        return tuple(row for row in rows if self._matches(row) != self.inverse)

    def _matches(self, row: Row) -> bool:
        return any(self.needle in cell.plain.casefold() for cell in row.cells)
