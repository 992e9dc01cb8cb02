"""A titled list: the patched table, its count and filter in the title, and one line that says what fills it when it is empty."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable

from trainflow_tui.screens.pane_view import PaneView, RowFilter
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.patched_table import PatchedTable
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, MUTED, joined, line, say


class ListPane(Vertical):
    """Shows a `PaneView`; says `Highlighted` when the cursor moves and `Opened` on enter."""

    DEFAULT_CSS = """
    ListPane { height: 1fr; width: 1fr; }
    ListPane > .pane-title { height: 1; width: 1fr; }
    ListPane > .pane-empty { height: 1fr; width: 1fr; display: none; padding: 0 1; }
    ListPane > PatchedTable { height: 1fr; width: 1fr; }
    ListPane.-empty > .pane-empty { display: block; }
    ListPane.-empty > PatchedTable { height: 1; }
    """

    @dataclass
    class Highlighted(Message):
        """The cursor is on another row."""

        pane: ListPane
        key: str | None

    @dataclass
    class Opened(Message):
        """A row was chosen."""

        pane: ListPane
        key: str

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.row_filter = RowFilter()
        self._view: PaneView | None = None
        self._title = SteadyText(classes="pane-title")
        self._empty = SteadyText(classes="pane-empty")
        self.table = PatchedTable()

    def compose(self) -> ComposeResult:
        """Title, table, and the line for an empty list."""
        yield self._title
        yield self.table
        yield self._empty

    def show(self, view: PaneView) -> None:
        """Show these rows through the filter; an equal view repaints nothing."""
        self._view = view
        self._draw()

    def filter(self, text: str) -> None:
        """Keep only rows that match; the empty text keeps all."""
        self.row_filter = RowFilter(text)
        self._draw()

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        return self.table.cursor_key

    def _draw(self) -> None:
        view = self._view
        if view is None or not self.is_mounted:
            return
        rows = self.row_filter.keep(view.rows)
        self.set_class(not rows, "-empty")
        self.table.show_rows(view.columns, rows)
        filtered = bool(self.row_filter.text)
        count = f"· {len(rows)}/{len(view.rows)}" if filtered else f"· {len(view.rows)}"
        title = joined(
            as_text(view.title, "bold"),
            line(count, MUTED),
            line(f"/{self.row_filter.text}" if filtered else "", ACCENT),
            as_text(say("· {note}", note=view.note)) if view.note else Text(),
        )
        self._title.show(title)
        if not rows:
            self._empty.show(
                line(f"/{self.row_filter.text}: 0", MUTED) if filtered and view.rows else as_text(view.empty, MUTED)
            )

    @on(DataTable.RowHighlighted)
    def _moved(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        self.post_message(self.Highlighted(self, event.row_key.value))

    @on(DataTable.RowSelected)
    def _chosen(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.row_key.value is not None:
            self.post_message(self.Opened(self, event.row_key.value))
