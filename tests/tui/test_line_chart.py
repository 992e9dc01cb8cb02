"""The chart on a terminal: only changed lines are sent, and what stands there is what a full repaint would draw."""

from __future__ import annotations

import math
import random

import pytest
from textual.app import App
from textual.containers import Vertical

from tests.tui.recorded_terminal import recorded
from trainflow_tui.screens.widgets.line_chart import ChartView, LineChart, Series
from trainflow_tui.text import display


def view(ys, *, title="Loss of r-1", name="loss", as_of="as of 12:00:00", log=False, xs=None):
    series = Series(name=display(name), x=tuple(xs or range(len(ys))), y=tuple(ys))
    return ChartView(title=display(title), series=(series,), as_of=(display(as_of),), log=log)


def decay(count):
    return [5 * math.exp(-n / 200) + 1 for n in range(count)]


class ChartApp(App):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def compose(self):
        with Vertical():
            yield LineChart(**self.options)

    @property
    def chart(self):
        return self.query_one(LineChart)


async def test_the_legend_stands_outside_the_plot_with_the_last_value():
    app = ChartApp()
    async with recorded(app) as terminal:
        app.chart.show(view([3.0, 2.0, 1.25]))
        await terminal.settle()
        assert "Loss of r-1" in terminal.rows[0]
        assert "loss 1.25" in terminal.rows[0]
        assert "as of 12:00:00" in terminal.rows[0]
        assert all(not 0x2800 < ord(c) < 0x2900 for c in terminal.rows[0] + terminal.rows[23])
        assert terminal.rows[23].split() == ["0", "2"]
        assert any(0x2800 < ord(c) < 0x2900 for row in terminal.rows[1:23] for c in row)


@pytest.mark.parametrize(("ys", "said"), [([1.0, math.nan], "loss 1 –"), ([None, math.nan], "loss –"), ([], "loss –")])
async def test_a_newest_point_without_a_value_is_said(ys, said):
    app = ChartApp()
    async with recorded(app) as terminal:
        app.chart.show(view(ys))
        await terminal.settle()
        assert said + "  as of" in terminal.rows[0]


async def test_an_equal_view_sends_nothing_and_a_new_point_only_its_lines():
    app = ChartApp()
    async with recorded(app) as terminal:
        ys = decay(1000)
        app.chart.show(view(ys[:900]))
        app.chart.show(view(ys[:901]))
        await terminal.settle()
        terminal.forget()
        app.chart.show(view(ys[:901]))
        await terminal.settle()
        assert terminal.written == ""
        before = terminal.rows
        app.chart.show(view(ys[:930]))
        await terminal.settle()
        changed = [n for n, (old, new) in enumerate(zip(before, terminal.rows, strict=True)) if old != new]
        assert 0 in changed
        assert len(changed) <= 3
        for n in set(range(24)) - set(changed):
            assert f"\x1b[{n + 1};1H\x1b[" not in terminal.written


@pytest.mark.parametrize("seed", range(4))
async def test_after_any_history_the_terminal_shows_what_a_full_repaint_shows(seed):
    chance = random.Random(seed)
    app = ChartApp(markers="ascii" if seed == 3 else None)
    async with recorded(app, (chance.choice([40, 80]), 14)) as terminal:
        ys: list[float | None] = []
        log = False
        for _ in range(8):
            ys += [
                chance.choice([chance.random() * 10, chance.random(), None, math.inf])
                for _ in range(chance.randrange(60))
            ]
            log = log != (chance.random() < 0.3)
            if chance.random() < 0.2:
                ys = ys[: len(ys) // 4]
            app.chart.show(view(ys, log=log, title=chance.choice(["Loss", "训练损失"])))
            await terminal.settle()
            patched = terminal.picture
            app.chart.notify_style_update()
            app.refresh(layout=True)
            await terminal.settle()
            assert terminal.picture == patched


async def test_a_logarithmic_axis_without_a_positive_value_says_so():
    app = ChartApp()
    async with recorded(app) as terminal:
        app.chart.show(view([-1.0, 0.0], log=True))
        await terminal.settle()
        assert "logarithmic" in terminal.rows[1]


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (8, 3), (20, 4), (300, 80)])
async def test_no_size_is_too_small_or_too_large(size):
    app = ChartApp()
    async with recorded(app, size) as terminal:
        app.chart.show(view(decay(50)))
        await terminal.pilot.resize_terminal(*reversed(size))
        await terminal.settle()
        await terminal.pilot.resize_terminal(*size)
        await terminal.settle()
        assert len(terminal.rows) == size[1]


async def test_ascii_only_sends_no_braille():
    app = ChartApp(markers="ascii")
    async with recorded(app) as terminal:
        app.chart.show(view(decay(50)))
        await terminal.settle()
        assert "".join(terminal.rows).isascii()
        assert any("*" in row for row in terminal.rows[1:])
