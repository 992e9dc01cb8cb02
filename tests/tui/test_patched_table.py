"""The table patches itself: the terminal shows what a table drawn anew would show, for a fraction of the bytes."""

from __future__ import annotations

import random

import pytest
from textual.app import App
from textual.widgets import DataTable

from tests.tui.recorded_terminal import recorded
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.patched_table import MAX_ROWS, Column, PatchedTable, Row
from trainflow_tui.text import display

COLUMNS = (Column("", 2), Column("Node", 9), Column("Loss", 8), Column("Words", None), Column("At", 8))


def cell(raw, style=""):
    return as_text(display(str(raw)), style)


def row(key, *, loss="1.00", words="全部正常", style=""):
    return Row(key, (cell("●", style), cell(key), cell(loss), cell(words), cell("12:00:00")))


class TableApp(App):
    CSS = "PatchedTable { scrollbar-size-vertical: 1; }"

    def __init__(self):
        super().__init__()
        self.highlighted: list[str | None] = []

    def compose(self):
        yield PatchedTable()

    @property
    def table(self):
        return self.query_one(PatchedTable)

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted):
        self.highlighted.append(event.row_key.value)


async def test_equal_rows_send_nothing():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row(f"n{n}") for n in range(50)])
        await terminal.settle()
        terminal.forget()
        app.table.show_rows(COLUMNS, [row(f"n{n}") for n in range(50)])
        await terminal.settle()
        assert terminal.written == ""


async def test_a_changed_cell_sends_its_own_line_and_no_other():
    app = TableApp()
    async with recorded(app) as terminal:
        rows = [row(f"n{n}") for n in range(50)]
        app.table.show_rows(COLUMNS, rows)
        await terminal.settle()
        before = terminal.rows
        terminal.forget()
        rows[7] = row("n7", loss="0.73")
        app.table.show_rows(COLUMNS, rows)
        await terminal.settle()
        assert "0.73" in terminal.written
        assert len(terminal.written.encode()) <= 222  # interface §2.3, R2
        assert "n6" not in terminal.written
        assert [n for n, (old, new) in enumerate(zip(before, terminal.rows, strict=True)) if old != new] == [8]


async def test_a_changed_style_alone_is_repainted():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row("a"), row("b")])
        await terminal.settle()
        terminal.forget()
        app.table.show_rows(COLUMNS, [row("a"), row("b", style="red")])
        await terminal.settle()
        assert "●" in terminal.written


async def test_a_change_outside_the_view_sends_nothing():
    app = TableApp()
    async with recorded(app) as terminal:
        rows = [row(f"n{n}") for n in range(50)]
        app.table.show_rows(COLUMNS, rows)
        await terminal.settle()
        terminal.forget()
        rows[45] = row("n45", loss="0.73")
        app.table.show_rows(COLUMNS, rows)
        await terminal.settle()
        assert terminal.written == ""
        await terminal.pilot.press("G")
        await terminal.settle()
        assert any("0.73" in line for line in terminal.rows)


@pytest.mark.parametrize("seed", range(5))
async def test_after_any_history_the_terminal_shows_what_a_full_repaint_shows(seed):
    chance = random.Random(seed)
    app = TableApp()
    size = (chance.choice([50, 80, 120]), 16)
    async with recorded(app, size) as terminal:
        rows: list[Row] = []
        for _ in range(8):
            for _ in range(chance.randrange(5)):
                rows.insert(
                    chance.randrange(len(rows) + 1),
                    row(f"k{chance.randrange(10**6)}", words="训练 " * chance.randrange(9)),
                )
            for _ in range(chance.randrange(3)):
                if rows:
                    del rows[chance.randrange(len(rows))]
            for _ in range(chance.randrange(3)):
                if rows:
                    at = chance.randrange(len(rows))
                    rows[at] = row(rows[at].key, loss=str(chance.random())[:6])
            if chance.random() < 0.3:
                chance.shuffle(rows)
            key = app.table.cursor_key
            app.table.show_rows(COLUMNS, rows)
            assert app.table.cursor_key == key or key not in {r.key for r in rows}
            if chance.random() < 0.4:
                await terminal.pilot.press(chance.choice("jkgG"))
            await terminal.settle()
            patched = terminal.picture
            app.table.notify_style_update()
            app.refresh(layout=True)
            await terminal.settle()
            assert terminal.picture == patched
            for index, shown in enumerate(rows):
                assert app.table.get_row_at(index) == list(shown.cells)


async def test_cursor_and_view_stay_where_they_are_when_rows_come_above():
    app = TableApp()
    async with recorded(app) as terminal:
        rows = [row(f"n{n}") for n in range(60)]
        app.table.show_rows(COLUMNS, rows)
        await terminal.settle()
        await terminal.pilot.press(*"j" * 40)
        await terminal.settle()
        top = app.table.scroll_offset.y
        assert top > 0
        assert app.table.cursor_key == "n40"
        app.highlighted.clear()
        app.table.show_rows(COLUMNS, [row("new"), *rows])
        await terminal.settle()
        assert app.table.cursor_key == "n40"
        assert app.table.scroll_offset.y == top
        assert app.highlighted == []


async def test_when_the_row_under_the_cursor_goes_the_place_stays_and_the_new_row_is_announced():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row(key) for key in "abc"])
        await terminal.settle()
        await terminal.pilot.press("j")
        await terminal.settle()
        app.highlighted.clear()
        app.table.show_rows(COLUMNS, [row(key) for key in "ac"])
        await terminal.settle()
        assert app.table.cursor_key == "c"
        assert app.highlighted == ["c"]
        app.table.show_rows(COLUMNS, [])
        await terminal.settle()
        assert app.table.cursor_key is None
        app.table.show_rows(COLUMNS, [row("z")])
        await terminal.settle()
        assert app.highlighted[-1] == "z"


async def test_vim_keys_move_and_have_ids():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row(f"n{n}") for n in range(30)])
        await terminal.settle()
        for key, expected in [("j", "n1"), ("j", "n2"), ("k", "n1"), ("G", "n29"), ("g", "n0")]:
            await terminal.pilot.press(key)
            assert app.table.cursor_key == expected
    ids = {binding.id for binding in PatchedTable.BINDINGS}
    assert {"table-down", "table-up", "table-top", "table-bottom"} <= ids


async def test_the_flexible_column_takes_what_the_others_leave_at_every_width():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row(f"n{n}", words="x" * 200) for n in range(60)])
        for width in (60, 200, 80):
            await terminal.pilot.resize_terminal(width, 24)
            await terminal.settle()
            assert app.table.virtual_size.width == width - 1  # one cell for the scroll bar
            assert not app.table.show_horizontal_scrollbar
        app.table.show_rows(COLUMNS, [row("a")])
        await terminal.settle()
        assert app.table.virtual_size.width == 80
        assert not app.table.show_vertical_scrollbar


async def test_columns_may_change_and_rows_with_them():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row("a")])
        await terminal.settle()
        app.table.show_rows((Column("Other", 10),), [Row("b", (cell("only"),))])
        await terminal.settle()
        assert "Other" in terminal.rows[0]
        assert "only" in terminal.rows[1]
        assert "Loss" not in "".join(terminal.rows)
        app.table.show_rows(COLUMNS, [])
        await terminal.settle()
        assert terminal.rows[0].rstrip().endswith("At")
        assert terminal.rows[0].index("At") == 80 - 9


async def test_rows_beyond_the_limit_are_counted_not_drawn():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row(f"n{n}") for n in range(MAX_ROWS + 3)])
        await terminal.settle()
        assert app.table.row_count == MAX_ROWS
        assert app.table.left_out == 3


async def test_rows_that_cannot_be_told_apart_or_do_not_fit_are_refused_and_nothing_changes():
    app = TableApp()
    async with recorded(app) as terminal:
        app.table.show_rows(COLUMNS, [row("a")])
        for wrong in ([row("b"), row("b")], [Row("b", (cell("x"),))]):
            with pytest.raises(ValueError, match="b"):
                app.table.show_rows(COLUMNS, wrong)
        with pytest.raises(ValueError, match="flexible"):
            app.table.show_rows((Column("", None), Column("", None)), [])
        await terminal.settle()
        assert [r.key for r in app.table._shown_rows] == ["a"]
        assert app.table.row_count == 1
