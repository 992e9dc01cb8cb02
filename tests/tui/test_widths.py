"""Columns stay aligned whatever stands in them: the grid of a terminal emulator beside the widths that the screens lay out with."""

from __future__ import annotations

import pyte
import pytest
from rich.text import Text
from textual.app import App

from tests.tui.recorded_terminal import recorded
from trainflow_tui.screens.slow_link import SlowLink
from trainflow_tui.screens.views.columns import figures
from trainflow_tui.screens.widgets.patched_table import Column, PatchedTable, Row
from trainflow_tui.screens.words import line, right
from trainflow_tui.text import cell_len, display

CLASSES = {
    "ascii": "plain text",
    "latin with marks, composed": "Ünïcödé naïve",
    "latin with marks, combining": "e\u0301a\u0300o\u0308",
    "cjk": "训练任务停止",
    "kana": "トレーニングの",
    "half-width kana": "ﾄﾚｰﾆﾝｸﾞ",
    "full-width latin": "ＡＢＣ１２３",
    "hangul syllables": "훈련 작업",
    "hangul jamo": "\u1112\u116e\u11ab",
    "cyrillic": "Обучение",
    "greek": "Εκπαίδευση",
    "arabic": "تدريب",
    "hebrew": "אימון",
    "devanagari": "प्रशिक्षण",
    "thai": "การฝึก",
    "tamil": "பயிற்சி",
    "emoji": "🚀🔥👍",
    "emoji with a skin tone": "👍🏽👋🏿",
    "emoji family": "👨‍👩‍👧‍👦",
    "flags": "🇩🇪🇨🇳",
    "keycaps": "1️⃣2️⃣",
    "text presentation": "⚠︎✔︎",
    "emoji presentation": "⚠️✔️",
    "box drawing": "│┤├─┼",
    "braille": "⠿⣿⡇⠈",
    "blocks": "█▌░▒▓",
    "arrows and marks": "→⇒✓✗●",
    "mathematics": "∑∫√≤≠",
    "zero widths and bidi": "a\u200bb\u200ec\u202ed",
    "controls": "a\x00b\x1bc\x07d\x9be",
    "tabs": "a\tb\tc",
    "supplementary ideographs": "𠀀𠮷",
}
WRONG_IN_PYTE = {
    # pyte 0.8 counts code points by wcwidth and drops what follows one of no width whose combining class is 0. Terminals
    # without grapheme clusters (mode 2027) count alike, so that after such a text each column is set anew.
    "devanagari": "vowel signs of combining class 0 end the text for pyte",
    "thai": "vowel signs of combining class 0 end the text for pyte",
    "tamil": "vowel signs of combining class 0 end the text for pyte",
    "emoji with a skin tone": "a skin tone is 2 cells of its own for pyte",
    "flags": "each half of a flag is 1 cell for us, 2 for pyte",
    "keycaps": "the emoji selector makes a digit 2 cells wide for us and ends the text for pyte",
    "text presentation": "the text selector ends the text for pyte",
    "emoji presentation": "the emoji selector makes a sign 2 cells wide for us and ends the text for pyte",
}
SIZES = (80, 120, 200)
COLUMNS = {
    "board": (Column("", 1), Column("Task", 15), Column("Stage", 19), Column("!", 3), Column("Latest word", None)),
    "waiting": (Column("", 1), Column("What waits", None), Column("Task", 10), Column("At", 8)),
    "cluster": (Column("", 1), Column("Node", 18), figures("Mem used", 9, "mem"), Column("Worst signal", None)),
    "hot-spots": (Column("Name", None), figures("Count", 8, "count"), figures("ms", 10, "ms"), Column("Kind", 14)),
    "questions": (Column("", 2), Column("Item", 8), Column("Title", None), Column("State", 10), Column("By", 12)),
    "live": (Column("", 1), Column("Run", 22), Column("State", 10), figures("Loss", 9, "loss"), Column("Last", None)),
}


class TableApp(SlowLink, App):
    def __init__(self) -> None:
        super().__init__()
        self.table = PatchedTable()

    def compose(self):
        yield self.table

    def _repaint(self):
        pass


def rows_of(columns):
    """A row for each class, its text in every column that takes words; a bar marks where the next column begins."""
    found = []
    for name, text in CLASSES.items():
        cells = []
        for column in columns:
            if column.width is not None and column.label.startswith(" "):
                cells.append(right("12.5"))
            elif column.width is not None and column.width < 4:
                cells.append(Text("●"))
            else:
                cells.append(line(text * 2))
        found.append(Row(name, tuple(cells)))
    return found


def cells_of(screen, y):
    return [screen.buffer[y][x].data for x in range(screen.columns)]


@pytest.mark.parametrize("table", COLUMNS)
async def test_every_class_of_characters_leaves_the_columns_where_they_are(table):
    columns = (*COLUMNS[table][:-1], COLUMNS[table][-1], Column("", 1))
    for width in SIZES:
        app = TableApp()
        async with recorded(app, (width, len(CLASSES) + 2)) as terminal:
            rows = [Row(r.key, (*r.cells, Text("│"))) for r in rows_of(COLUMNS[table])]
            app.table.show_rows(columns, rows)
            await terminal.settle()
            terminal._draw()
            bars = {}
            for y, name in enumerate(CLASSES, 1):
                places = [x for x, data in enumerate(cells_of(terminal._screen, y)) if data == "│"]
                bars[name] = places[-1] if places else None
            expected = bars["ascii"]
            assert expected is not None
            assert {n for n, at in bars.items() if at != expected} == set(), width


@pytest.mark.parametrize("name", CLASSES)
def test_the_emulator_counts_as_the_screens_do(name):
    text = display(CLASSES[name])
    screen = pyte.Screen(80, 1)
    pyte.Stream(screen).feed(text)
    if name in WRONG_IN_PYTE:
        assert screen.cursor.x != cell_len(text), f"pyte has learnt it: {WRONG_IN_PYTE[name]}"
    else:
        assert screen.cursor.x == cell_len(text)
