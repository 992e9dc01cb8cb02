"""A titled list: the patched table with filter, sorting and marks; its title says how many, since when, and from where."""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import DataTable

from trainflow_tui.clock import local_clock_time
from trainflow_tui.screens.pane_view import AsOf, PaneView, RowFilter, Sorting
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.patched_table import Column, PatchedTable, Row
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, WARN, _, joined, line, mark, say
from trainflow_tui.text import Display

_UP, _DOWN = "▲", "▼"


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
        self.sorting = Sorting()
        self.marks: frozenset[str] = frozenset()
        self.badge = ""
        """The letter by which this pane is jumped to, while that is asked."""
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
        """Show these rows through filter and sorting; an equal view repaints nothing."""
        self._view = view
        self._draw()

    def filter(self, text: str, *, is_regex: bool = False) -> None:
        """Keep only rows that match; the empty text keeps all."""
        self.row_filter = RowFilter(text, is_regex)
        self._draw()

    def sort(self, sorting: Sorting) -> None:
        """Show the rows in this order from now on."""
        self.sorting = sorting
        self._draw()

    def toggle_mark(self) -> None:
        """Mark the row under the cursor, or take its mark away, and go to the next."""
        key = self.selected
        if key is not None:
            self.marks ^= {key}
            self._draw()
            self.table.action_cursor_down()

    def clear_marks(self) -> None:
        """Take every mark away."""
        self.marks = frozenset()
        self._draw()

    def show_badge(self, letter: str) -> None:
        """Show the letter by which this pane is jumped to; empty takes it away."""
        self.badge = letter
        self._draw()

    @property
    def view(self) -> PaneView | None:
        """What was given to be shown."""
        return self._view

    @property
    def selected(self) -> str | None:
        """The key of the row under the cursor."""
        return self.table.cursor_key

    def shown_rows(self) -> tuple[Row, ...]:
        """The rows in the order and number in which they stand, without the column of marks."""
        return self.sorting.sort(self._view.columns, self.row_filter.keep(self._view.rows)) if self._view else ()

    def taken_rows(self) -> tuple[Row, ...]:
        """What copying and exporting take: every marked row, also one that the filter hides; else all that are shown."""
        if not self.marks or self._view is None:
            return self.shown_rows()
        return tuple(r for r in self.sorting.sort(self._view.columns, self._view.rows) if r.key in self.marks)

    def go_to(self, name: str) -> None:
        """Put the cursor on the row, or the first row below, of that name. A filter that hides it is cleared."""
        rows = self._view.rows if self._view else ()
        key = next((r.key for r in rows if r.key == name or r.key.startswith(f"{name}/")), None)
        if key is not None:
            if all(row.key != key for row in self.shown_rows()):
                self.filter("")
            self.table.move_to(key)

    def selected_row(self) -> Row | None:
        """The row under the cursor."""
        return next((r for r in self.shown_rows() if r.key == self.selected), None)

    def on_resize(self) -> None:
        """Set the title's end to the right edge again."""
        self._draw()

    def _draw(self) -> None:
        view = self._view
        if view is None or not self.is_mounted:
            return
        rows = self.shown_rows()
        self.marks &= {r.key for r in view.rows}
        self.set_class(not rows, "-empty")
        columns = tuple(_headed(column, self.sorting) for column in view.columns)
        if self.marks:
            columns = (Column("", 1), *columns)
            sign, none = mark("✚", ACCENT), Text()
            rows = tuple(Row(r.key, (sign if r.key in self.marks else none, *r.cells), r.values) for r in rows)
        self.table.show_rows(columns, rows)
        self._title.show(self._title_line(view, len(rows)))
        if not rows:
            nothing = bool(self.row_filter.text and view.rows)
            self._empty.show(line(f"/{self.row_filter.text}: 0", MUTED) if nothing else as_text(view.empty, MUTED))

    def _title_line(self, view: PaneView, count: int) -> Text:
        kept = self.row_filter
        number = f"· {count}/{len(view.rows)}" if kept.text else f"· {len(view.rows)}"
        if view.total > len(view.rows):
            number = say(_("{number} of {total}"), number=number, total=view.total)
        parts = [
            line(f"[{self.badge}]", "bold reverse") if self.badge else Text(),
            as_text(view.title, "bold"),
            line(number, MUTED),
            line(f"{'~' if kept.is_regex else '/'}{kept.text}" if kept.text else "", ACCENT),
            as_text(say(_("pattern: {problem}"), problem=kept.problem), BAD) if kept.problem else Text(),
            as_text(say(_("{n} marked"), n=len(self.marks)), ACCENT) if self.marks else Text(),
            as_text(say("· {note}", note=view.note)) if view.note else Text(),
        ]
        return pushed_apart(joined(*parts), as_of_line(view.as_of), self.size.width)

    @on(DataTable.RowHighlighted)
    def _moved(self, event: DataTable.RowHighlighted) -> None:
        event.stop()
        # In an empty table `end` goes to a row that has no key.
        self.post_message(self.Highlighted(self, event.row_key.value if event.row_key else None))

    @on(DataTable.RowSelected)
    def _chosen(self, event: DataTable.RowSelected) -> None:
        event.stop()
        if event.row_key and event.row_key.value is not None:
            self.post_message(self.Opened(self, event.row_key.value))


def as_of_words(as_of: AsOf | None) -> Display:
    """Since when, from where, and whether it is still good, in words."""
    if as_of is None:
        return say("")
    state = {"ok": _("ok"), "stale": _("stale"), "lost": _("lost")}.get(as_of.state, as_of.state)
    moment = say(_("as of {at}"), at=local_clock_time(as_of.at)) if as_of.at else say("")
    return say("{moment} {source} {state}", moment=moment, source=as_of.source, state=state)


def as_of_line(as_of: AsOf | None) -> Text:
    """The same, with the sign and colour of its state."""
    if as_of is None:
        return Text()
    sign, style = {"ok": ("", MUTED), "stale": ("◌", WARN), "lost": ("✗", BAD)}.get(as_of.state, ("?", WARN))
    return joined(mark(sign, style), as_text(say("{words}", words=as_of_words(as_of).strip()), style))


def pushed_apart(left: Text, right: Text, width: int) -> Text:
    """Two texts at the two edges of a line; where both do not fit, the right one goes."""
    room = width - left.cell_len - right.cell_len
    if not right.plain or room < 2:
        return left
    text = Text(" " * room).join([left, right])
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _headed(column: Column, sorting: Sorting) -> Column:
    """The heading with the sign of its order; one over numbers gives a blank for it."""
    if not column.key or column.key != sorting.key:
        return column
    sign = _DOWN if sorting.reverse else _UP
    name = column.label.lstrip(" ")
    blanks = len(column.label) - len(name)
    return column._replace(label=f"{' ' * (blanks - 1)}{sign}{name}" if blanks else f"{name}{sign}")
