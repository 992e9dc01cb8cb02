"""The view models of a list pane: a title, columns, rows; filtering is done here, without a widget."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from trainflow_tui.screens.widgets.patched_table import Column, Row
from trainflow_tui.text import Display


@dataclass(frozen=True)
class PaneView:
    """What a list pane shows. `empty` says what fills the pane; `note` is the one thing to know about the rows."""

    title: Display
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    empty: Display
    note: Display | None = None

    def only(self, *positions: int) -> PaneView:
        """The same rows with some of the columns, for a place that is too narrow for all."""
        columns = tuple(self.columns[n] for n in positions)
        return replace(
            self,
            columns=columns,
            rows=tuple(Row(row.key, tuple(row.cells[n] for n in positions)) for row in self.rows),
        )


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
