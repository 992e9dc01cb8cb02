"""A table that is told what to show and repaints only what differs: a cell a second costs 200 bytes, not 12,000."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Literal, NamedTuple

from rich.text import Text
from textual._two_way_dict import TwoWayDict
from textual.binding import BindingType
from textual.coordinate import Coordinate
from textual.geometry import Region, Size
from textual.widget import Widget
from textual.widgets import DataTable
from textual.widgets.data_table import ColumnKey, RowKey
from textual.widgets.data_table import Row as TableRow

from trainflow_tui.screens import keys
from trainflow_tui.screens.widgets.cells import as_text, same_drawing
from trainflow_tui.text import display

MAX_ROWS: Final = 1000
"""More is paged by the query: 10,000 rows cost 1.2 CPU-seconds to open."""

_SMALLEST_FLEXIBLE: Final = 8


Value = str | int | float | None
"""What a cell stands for: sorted by, copied and exported instead of its text."""


class Column(NamedTuple):
    """A heading of our own words and a width in cells; `None` takes what the others leave.

    `key` names the values below it in exports and in remembered sorting, with their unit; a column of signs has none.
    """

    label: str
    width: int | None
    key: str = ""


class Row(NamedTuple):
    """A key that stays the row's when others come and go; one text and one value for each column."""

    key: str
    cells: tuple[Text, ...]
    values: tuple[Value, ...] = ()


class PatchedTable(DataTable[Text]):
    """Rows by key. The cursor stays on its key and the view on its place, whatever comes above.

    Textual's `update_cell` refreshes the whole widget; this one compares and refreshes regions (rule R2). It sets
    `DataTable`'s own stores directly, as textual 8.2.8 lays them out; `tests/tui/test_patched_table.py` holds that.
    """

    DEFAULT_CSS = """
    PatchedTable { height: 1fr; width: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = list(keys.TABLE_KEYS)

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(
            cursor_type="row", show_row_labels=False, cursor_foreground_priority="renderable", id=id, classes=classes
        )
        self._shown_columns: tuple[Column, ...] = ()
        self._shown_rows: tuple[Row, ...] = ()
        self.left_out = 0
        """Rows beyond `MAX_ROWS` that were given and are not shown."""

    @property
    def cursor_key(self) -> str | None:
        """The key of the row under the cursor; None in an empty table."""
        index = self.cursor_coordinate.row
        return self._shown_rows[index].key if 0 <= index < len(self._shown_rows) else None

    def move_to(self, key: str) -> None:
        """Put the cursor on a row; one that is not there is ignored."""
        index = next((n for n, row in enumerate(self._shown_rows) if row.key == key), None)
        if index is not None:
            self.move_cursor(row=index)

    def show_rows(self, columns: Sequence[Column], rows: Sequence[Row]) -> None:
        """Show exactly these rows in this order. Equal rows repaint nothing.

        Raises:
            ValueError: two rows with one key, a row with too many or too few cells, two flexible columns.
        """
        self.left_out = max(0, len(rows) - MAX_ROWS)
        rows = tuple(rows[:MAX_ROWS])
        _check(columns, rows)
        rebuilt = tuple(columns) != self._shown_columns
        if rebuilt:
            self._set_columns(tuple(columns))
        before, self._shown_rows = self._shown_rows, rows
        dirty = _differences(before, rows)
        moved = [row.key for row in rows] != [row.key for row in before]
        if moved:
            self._store_rows(rows)
        for index in dirty:
            if index < len(rows):
                self._data[RowKey(rows[index].key)] = self._cells_of(rows[index])
        if moved or dirty:
            self._update_count += 1  # part of every cache key of DataTable
        if rebuilt or len(rows) != len(before):
            self._fit()
        if moved:
            self._follow_cursor(before, dirty)
        self._refresh_stretches(dirty)

    def on_focus(self) -> None:
        """The row under the cursor in the colours of the cursor."""
        self._colour_cursor("css")

    def on_blur(self) -> None:
        """The row under the cursor keeps the colours of its states: another list's keys are meant."""
        self._colour_cursor("renderable")

    def _colour_cursor(self, priority: Literal["css", "renderable"]) -> None:
        self.cursor_foreground_priority = priority
        self._update_count += 1  # part of every cache key of DataTable

    def on_resize(self) -> None:
        """Give the flexible column what is left."""
        self._fit()

    def _set_columns(self, columns: tuple[Column, ...]) -> None:
        self.clear(columns=True)
        self._shown_columns, self._shown_rows = columns, ()
        for number, column in enumerate(columns):
            width = _SMALLEST_FLEXIBLE if column.width is None else column.width
            self.add_column(as_text(display(column.label)), width=width, key=str(number))

    def _cells_of(self, row: Row) -> dict[ColumnKey, Text]:
        return dict(zip((column.key for column in self.ordered_columns), row.cells, strict=True))

    def _store_rows(self, rows: tuple[Row, ...]) -> None:
        kept = {key.value: key for key in self.rows}
        keys = [kept.get(row.key) or RowKey(row.key) for row in rows]
        self.rows = {key: TableRow(key, 1) for key in keys}
        self._data = {key: self._cells_of(row) for key, row in zip(keys, rows, strict=True)}
        self._row_locations = TwoWayDict({key: index for index, key in enumerate(keys)})

    def _fit(self) -> None:
        """Set the flexible column and the scroll bars by the space there is and the rows there are.

        Lays the screen out only where the widget's height follows its rows, or a bar comes or goes.
        """
        space = self.container_size
        height = len(self._shown_rows) + self.header_height
        tall = height > space.height and not self.styles.is_auto_height
        columns = self.ordered_columns
        for column, (_, width, _key) in zip(columns, self._shown_columns, strict=True):
            if width is None:
                others = sum(other.get_render_width(self) for other in columns if other is not column)
                bar = self.styles.scrollbar_size_vertical if tall else 0
                rest = max(_SMALLEST_FLEXIBLE, space.width - bar - others - 2 * self.cell_padding)
                if rest != column.width:
                    column.width = rest
                    self._update_count += 1
                    self.refresh()
        size = Size(sum(column.get_render_width(self) for column in columns), height)
        if self.styles.is_auto_height or (size.width > space.width, tall) != (
            self.show_horizontal_scrollbar,
            self.show_vertical_scrollbar,
        ):
            self.virtual_size = size
        elif size != self.virtual_size:
            self.set_reactive(Widget.virtual_size, size)
            self._scroll_update(size)

    def _follow_cursor(self, before: tuple[Row, ...], dirty: dict[int, tuple[int, int]]) -> None:
        """Move the cursor with its row; where the row is gone it keeps its place and says what is under it now."""
        old, column = self.cursor_coordinate
        key = before[old].key if 0 <= old < len(before) else None
        rows = self._shown_rows
        index = next((n for n, row in enumerate(rows) if row.key == key), max(0, min(old, len(rows) - 1)))
        self.set_reactive(DataTable.cursor_coordinate, Coordinate(index, column))
        hover = self.hover_coordinate
        self.set_reactive(DataTable.hover_coordinate, Coordinate(min(hover.row, max(0, len(rows) - 1)), hover.column))
        if index != old:
            dirty[old] = dirty[index] = (0, len(self._shown_columns) - 1)
        if rows and rows[index].key != key:
            self._highlight_row(index)

    def _refresh_stretches(self, dirty: dict[int, tuple[int, int]]) -> None:
        """Repaint some lines in part: from each row index to its first and last changed column."""
        edges = [0]
        for column in self.ordered_columns:
            edges.append(edges[-1] + column.get_render_width(self))
        edges[-1] = max(edges[-1], self.size.width)
        left, top = self.scroll_offset
        regions = [
            Region(edges[first] - left, index - top + self.header_height, edges[last + 1] - edges[first], 1)
            for index, (first, last) in dirty.items()
            if 0 <= index - top < self.size.height
        ]
        if regions:
            self.refresh(*regions)


def _differences(before: tuple[Row, ...], after: tuple[Row, ...]) -> dict[int, tuple[int, int]]:
    """Row positions that look different, each with its first and last changed column.

    By position, since that is what the screen holds; one stretch a row, since Textual sends a line from its start.
    """
    dirty: dict[int, tuple[int, int]] = {}
    for index, (old, new) in enumerate(zip(before, after, strict=False)):
        if old.cells is not new.cells:
            pairs = zip(old.cells, new.cells, strict=True)
            changed = [n for n, (one, other) in enumerate(pairs) if not same_drawing(one, other)]
            if changed:
                dirty[index] = changed[0], changed[-1]
    for index in range(min(len(before), len(after)), max(len(before), len(after))):
        dirty[index] = 0, len((before + after)[0].cells) - 1
    return dirty


def _check(columns: Sequence[Column], rows: tuple[Row, ...]) -> None:
    if sum(column.width is None for column in columns) > 1:
        raise ValueError("a table has one flexible column at most")
    seen: set[str] = set()
    for row in rows:
        if row.key in seen:
            raise ValueError(f"two rows with the key {row.key!r}")
        if len(row.cells) != len(columns):
            raise ValueError(f"row {row.key!r} has {len(row.cells)} cells for {len(columns)} columns")
        seen.add(row.key)
