"""The line to the terminal: what is sent, when, and that the picture is the right one at the end."""

from __future__ import annotations

import inspect
import random
from contextlib import asynccontextmanager

import msgspec
import pyte
import pytest
import textual
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual._compositor import ChopsUpdate
from textual.app import App
from textual.driver import Driver
from textual.drivers import linux_driver
from textual.drivers._writer_thread import WriterThread
from textual.screen import Screen
from textual.strip import Strip

from tests.tui import example
from tests.tui.conftest import QuietDesk, screen_text
from tests.tui.recorded_terminal import RecordingDriver, recorded
from trainflow_tui.app import TrainflowApp
from trainflow_tui.screens import frugal_frames
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.frugal_frames import Picture, with_few_codes
from trainflow_tui.screens.line_pace import DataPace, LinePace
from trainflow_tui.screens.paced_driver import OutputLine, PacedDriver
from trainflow_tui.screens.slow_link import Owed, SlowLink
from trainflow_tui.screens.widgets.patched_table import Column, PatchedTable, Row
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.workspace import Workspace

SIZE = (60, 12)


# How quick the line is


def told(pace, size, sent_at, answered_at):
    pace.sent(size, sent_at)
    pace.answered(answered_at)


def test_a_terminal_that_never_answered_holds_nothing_back_and_is_asked_three_times():
    pace = LinePace()
    for n in range(3):
        pace.sent(500, 100.0 * n)
        assert not pace.holds(100.0 * n + 0.01)
        assert not pace.holds(100.0 * n + 90)
    assert not pace.asks
    assert pace.portion_bytes is None


def test_the_rate_of_a_slow_line_is_measured_and_frames_are_cut_to_a_tenth_of_a_second():
    pace = LinePace()
    told(pace, 20, 0.0, 0.05)
    for n in range(1, 8):
        told(pace, 4000, n * 10.0, n * 10.0 + 1.05)  # 4000 B/s and 50 ms to there and back
    assert pace.bytes_per_s == pytest.approx(4000, rel=0.01)
    assert pace.portion_bytes == pytest.approx(4000 * 0.15, rel=0.02)


def test_on_a_slow_line_a_frame_waits_for_the_answer_to_the_one_before():
    pace = LinePace()
    told(pace, 20, 0.0, 0.01)
    told(pace, 1000, 1.0, 1.26)
    pace.sent(400, 2.0)
    assert pace.holds(2.0)
    assert pace.under_way
    pace.answered(2.1)
    assert not pace.holds(2.1)
    assert not pace.under_way


def test_a_long_way_is_not_a_slow_line():
    # 300 ms to the other side of the world, and megabytes a second: no key waits for an answer.
    pace = LinePace()
    told(pace, 20, 0.0, 0.3)
    for n in range(1, 6):
        told(pace, 2000, float(n), n + 0.301)
    assert pace.portion_bytes is None
    pace.sent(2000, 10.0)
    assert not pace.holds(10.2)
    assert pace.holds(10.6)  # now it is overdue


def test_a_lost_answer_frees_the_line_after_a_while_and_later_each_time():
    pace = LinePace()
    told(pace, 20, 0.0, 0.01)
    told(pace, 1000, 1.0, 1.26)
    waits = []
    now = 10.0
    for _ in range(5):
        pace.sent(400, now)
        begin = now
        while pace.holds(now):
            now += 0.1
        waits.append(now - begin)
    assert waits[0] < 3
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]


def test_an_answer_that_comes_after_it_was_given_up_measures_nothing():
    pace = LinePace()
    told(pace, 20, 0.0, 0.01)
    told(pace, 1000, 1.0, 1.26)
    before = pace.bytes_per_s
    pace.sent(400, 10.0)
    assert not pace.holds(100.0)
    pace.sent(400, 100.0)
    pace.answered(100.001)  # to the question of 10.0
    assert pace.bytes_per_s == before


# When data is painted


def play(pace, now, took_s):
    """A tick's frame that took so long, with the ticks that fall into it."""
    pace.painted(now)
    pace.began(now)
    for n in range(1, int(took_s) + 1):
        pace.tick(now + n + 1e-3 if n < took_s else now + n)
    pace.drawn(now + took_s)
    return now + max(5.0 if pace.slow else 1.0, took_s)


def test_three_late_ticks_of_five_make_the_line_slow_and_six_quick_ones_end_it():
    pace, now = DataPace(1.0), 0.0
    for took_s in (0.2, 1.2, 0.3, 1.2):
        now = play(pace, now, took_s)
    assert not pace.slow
    now = play(pace, now, 1.4)
    assert pace.slow
    for _ in range(5):
        now = play(pace, now, 0.2)
        assert pace.slow
    now = play(pace, now, 0.7)  # not late, not quick: the count begins again
    for _ in range(6):
        assert pace.slow
        now = play(pace, now, 0.2)
    assert not pace.slow


def test_a_frame_of_three_seconds_makes_the_line_slow_before_it_ends():
    pace = DataPace(1.0)
    pace.began(0.0)
    for n in (1.01, 2.01, 3.01):
        pace.tick(n)
    assert pace.slow


@pytest.mark.parametrize(("slow", "focused", "every_s"), [(False, True, 1), (True, True, 5), (False, False, 5)])
def test_data_is_painted_each_second_or_every_five(slow, focused, every_s):
    pace = DataPace(1.0)
    pace.slow = slow
    painted = []
    for second in range(21):
        if pace.may_paint(second * 1.001, focused=focused):
            pace.painted(second * 1.001)
            painted.append(second)
    assert painted == list(range(0, 21, every_s))


spans = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30), st.integers(1, 20), st.booleans()))


@given(spans, st.integers(1, 7))
def test_what_is_owed_comes_whole_and_what_a_person_waits_for_comes_first(wanted, lines):
    owed = Owed()
    for y, x, width, first in wanted:
        owed.add([(y, x, x + width)], first=first)
    cells, order = set(), []
    while owed:
        taken, first = owed.take(lines)
        assert 1 <= len(taken) <= lines
        order.append(first)
        cells |= {(y, x) for y, x1, x2 in taken for x in range(x1, x2)}
    assert cells >= {(y, x + n) for y, x, width, _ in wanted for n in range(width)}
    assert order == sorted(order, reverse=True)


# How a frame is said

STYLES = [
    Style.null(),
    *map(
        Style.parse,
        (
            "red",
            "#00ff00 on #102030",
            "bold #00ff00 on #102030",
            "bold",
            "reverse",
            "underline blue",
            "on blue",
            "italic strike",
            "white on color(200)",
            "dim cyan",
        ),
    ),
]
words = st.sampled_from(
    ["a", "xyz", " ", "    ", "─│", "训练", "中", "⠿⣿", "e\u0301x", "…", "👍", "12.5", "-", "カ", "ä"]
)
segments = st.lists(st.tuples(words, st.sampled_from(STYLES)), min_size=1, max_size=9)


def a_line(parts, width):
    return Strip([Segment(text, style) for text, style in parts]).adjust_cell_length(width, Style.null())


def grid(frames, size):
    """What a terminal shows; of a blank only what can be seen on it."""
    screen = pyte.Screen(*size)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[?7l")  # as Textual does: nothing goes on in the next line
    for frame in frames:
        stream.feed(frame)

    def seen(char):
        blank = not char.data.strip() and not (char.reverse or char.underscore or char.strikethrough)
        return (" ", char.bg) if blank else tuple(char)

    return [[seen(screen.buffer[y][x]) for x in range(size[0])] for y in range(size[1])]


@given(st.lists(segments, min_size=1, max_size=5))
def test_fewer_codes_draw_the_same(lines):
    console = Console(color_system="truecolor")
    frame = "".join(f"\x1b[{y};3H" + a_line(parts, 30).render(console) for y, parts in enumerate(lines, 1))
    short = with_few_codes(frame)
    assert grid([short], (40, 6)) == grid([frame], (40, 6))
    assert len(short) <= len(frame) + 9  # the last style lasts to the end, and may be longer to end
    assert with_few_codes("") == ""


def test_a_neighbour_of_the_same_style_costs_its_text_alone():
    bold_red = "\x1b[1;31;44m{}\x1b[0m"
    assert with_few_codes(bold_red.format("a") + bold_red.format("b")) == "\x1b[1;31;44mab\x1b[0m"
    assert with_few_codes("\x1b[31;44ma\x1b[0m\x1b[32;44mb\x1b[0m") == "\x1b[31;44ma\x1b[32mb\x1b[0m"
    assert with_few_codes("\x1b[31;44ma\x1b[0m\x1b[5;7H\x1b[31;44mb\x1b[0m") == "\x1b[31;44ma\x1b[5;7Hb\x1b[0m"
    assert with_few_codes("\x1b[31;44ma\x1b[0m b") == "\x1b[31;44ma\x1b[0m b"


WIDTH = 24
COLUMNS = st.integers(1, WIDTH - 1)
plain_segments = st.lists(
    st.tuples(
        st.sampled_from(["a", "xyz", " ", "    ", "─│", "训练", "中", "⠿⣿", "…", "12.5", "カ"]), st.sampled_from(STYLES)
    ),
    min_size=1,
    max_size=9,
)


class Played:
    """Three lines of two widgets that meet at a column; what was sent for them, and what a whole repaint would send."""

    def __init__(self, cut):
        frugal_frames.install()
        self.cut = cut
        self.halves = [[Strip.blank(cut), Strip.blank(WIDTH - cut)] for _ in range(3)]
        self.picture, self.frames = Picture(), []
        self.console = Console(color_system="truecolor")
        self.send([(y, 0, WIDTH) for y in range(3)])

    def update(self, spans):
        chops = [{0: left, self.cut: right} for left, right in self.halves]
        return ChopsUpdate(chops, spans, [[self.cut, WIDTH]] * 3)

    def send(self, spans):
        update = self.update(spans)
        found = self.picture.differing(update, ColorSystem.TRUECOLOR)
        self.picture.drawn(found)
        narrow = ChopsUpdate(update.chops, [(y, a, b) for y, a, b, _ in found], update.chop_ends)
        self.frames.append(narrow.render_segments(self.console))

    def check(self):
        whole = self.update([(y, 0, WIDTH) for y in range(3)]).render_segments(self.console)
        assert grid(self.frames, (WIDTH, 3)) == grid([whole], (WIDTH, 3))


@settings(max_examples=60)
@given(COLUMNS, st.lists(st.tuples(st.integers(0, 2), st.booleans(), segments), min_size=1, max_size=8))
def test_after_any_texts_the_terminal_shows_what_a_whole_repaint_would(cut, changes):
    played = Played(cut)
    for y, right, parts in changes:
        played.halves[y][right] = a_line(parts, WIDTH - cut if right else cut)
        played.send([(y, cut if right else 0, WIDTH if right else cut)])
        played.check()


@settings(max_examples=60)
@given(COLUMNS, st.lists(st.tuples(st.integers(0, 2), plain_segments, COLUMNS, COLUMNS), min_size=1, max_size=8))
def test_a_stretch_that_changed_in_the_middle_of_a_line_is_drawn_as_a_whole_repaint_would(cut, changes):
    # What is told as changed holds every cell that changed, and may cut a wide character that did not.
    played = Played(cut)
    for y, parts, one, other in changes:
        start, end = sorted((one, other))
        line = Strip.join(played.halves[y])
        line = Strip.join([line.crop(0, start), a_line(parts, WIDTH).crop(start, end), line.crop(end, WIDTH)])
        played.halves[y] = list(line.divide([cut, WIDTH]))
        played.send([(y, max(0, start - 1), min(WIDTH, end + 1))])
        played.check()


def test_what_is_shown_already_costs_nothing():
    picture = Picture()
    line = a_line([("loss ", STYLES[1]), ("4.385", STYLES[2]), ("  训练", STYLES[3])], 40)
    update = ChopsUpdate([{0: line}], [(0, 0, 40)], [[40]])
    picture.drawn(picture.differing(update, ColorSystem.TRUECOLOR))
    assert picture.differing(update, ColorSystem.TRUECOLOR) == []
    other = a_line([("loss ", STYLES[1]), ("4.386", STYLES[2]), ("  训练", STYLES[3])], 40)
    (change,) = picture.differing(ChopsUpdate([{0: other}], [(0, 0, 40)], [[40]]), ColorSystem.TRUECOLOR)
    assert change[:3] == (0, 9, 10)
    picture.forget()
    (change,) = picture.differing(update, ColorSystem.TRUECOLOR)
    assert change[:3] == (0, 0, 40)


# The application on a line that takes frames when the test says so


class HandDriver(PacedDriver):
    """A driver without a terminal: `free` tells that everything was drawn."""

    is_headless = False

    def __init__(self, app, **options):
        Driver.__init__(self, app, **options)
        self._line = None
        self.pace = LinePace()
        self.pace.answers = True
        self.written = []
        self.frames = []
        self.held = False

    def write(self, data):
        self.written.append(data)

    def end_frame(self):
        self.frames.append("".join(self.written))
        self.written.clear()
        self.held = True

    @property
    def holds(self):
        return self.held

    @property
    def is_drawn(self):
        return not self.held

    start_application_mode = RecordingDriver.start_application_mode
    stop_application_mode = close = disable_input = lambda self: None

    def free(self):
        self.held = False
        self._app.post_message(self.Written())


class Board(SlowLink, App):
    """A head, a table, and data that can be painted."""

    CSS = "PatchedTable { height: 8; } SteadyText { height: 1; }"
    BINDINGS = [("b", "person('pressed')", "")]

    def __init__(self):
        super().__init__()
        self.head, self.table = SteadyText(), PatchedTable()
        self.newest = 0
        self.painted = []

    def compose(self):
        yield self.head
        yield self.table

    def _repaint(self):
        self.painted.append(self.newest)
        self.show_numbers([self.newest])

    def show_numbers(self, numbers):
        rows = [Row(str(n), (Text(f"row {n}"), Text(f"{value} 训"))) for n, value in enumerate(numbers)]
        self.table.show_rows([Column("a", 9), Column("b", None)], rows)

    def action_person(self, words):
        self.head.show(Text(words))


@asynccontextmanager
async def on_a_line():
    app = Board()
    app.driver_class = HandDriver
    async with app.run_test(headless=False, size=SIZE) as pilot:
        driver = app._driver
        for _ in range(20):
            await pilot.pause()
            driver.free()
        await pilot.pause()
        driver.free()
        await pilot.pause()
        assert not app._owed
        yield app, pilot, driver


async def drawn(pilot, times=4):
    for _ in range(times):
        await pilot.pause(0.02)


def shown(driver):
    screen = pyte.Screen(*SIZE)
    stream = pyte.Stream(screen)
    stream.feed("\x1b[?7l")
    for frame in driver.frames:
        stream.feed(frame)
    # pyte's `display` gives a wide character the blank of its second cell too.
    cells = [[screen.buffer[y][x].data for x in range(SIZE[0])] for y in range(SIZE[1])]
    return ["".join(row).rstrip() for row in cells]


def wanted(app):
    rows = [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]
    return rows[: SIZE[1]]


async def test_while_a_frame_is_not_drawn_none_is_sent_and_then_one_with_the_last_state():
    async with on_a_line() as (app, pilot, driver):
        app.action_person("first")
        await drawn(pilot)
        count = len(driver.frames)
        for n in range(5):
            app.action_person(f"word {n}")
            app.show_numbers(range(n, n + 3))
            await drawn(pilot, 2)
        assert len(driver.frames) == count
        driver.free()
        await drawn(pilot)
        assert len(driver.frames) == count + 1
        assert "word 4" in driver.frames[-1]
        assert "word 3" not in driver.frames[-1]
        assert shown(driver) == wanted(app)


async def test_data_waits_behind_what_a_person_did_and_only_the_newest_is_painted():
    async with on_a_line() as (app, pilot, driver):
        app.action_person("busy")
        await drawn(pilot)
        for n in range(1, 4):
            app.newest = n
            app.paint_data()
        await pilot.press("b")
        await drawn(pilot)
        assert app.painted == []
        driver.free()
        await drawn(pilot)
        assert "pressed" in driver.frames[-1]
        assert app.painted == []
        driver.free()
        await drawn(pilot)
        assert app.painted == [3]
        assert "3 训" in shown(driver)[2]


async def test_a_screen_is_painted_in_portions_and_a_key_between_them_goes_first():
    async with on_a_line() as (app, pilot, driver):
        told(driver.pace, 20, 0.0, 0.01)
        told(driver.pace, 1000, 1.0, 1.26)
        app._picture.forget()
        count = len(driver.frames)
        app.screen.refresh()
        await drawn(pilot)
        assert len(driver.frames) == count + 1
        assert app._owed
        await pilot.press("b")
        await drawn(pilot)
        driver.free()
        await drawn(pilot)
        assert "pressed" in driver.frames[-1]
        assert app._owed
        for _ in range(30):
            driver.free()
            await drawn(pilot, 1)
        assert not app._owed
        assert shown(driver) == wanted(app)
        assert max(len(frame) for frame in driver.frames[count:]) < 900


async def test_without_the_focus_data_is_painted_seldom_and_at_once_when_it_comes_back():
    async with on_a_line() as (app, pilot, driver):
        app.post_message(events.AppBlur())
        await drawn(pilot)
        driver.free()
        await drawn(pilot)
        app.newest = 1
        app.paint_data()
        assert app.painted == [1]  # nothing was painted for five seconds
        for _ in range(3):
            driver.free()
            await drawn(pilot)
        app.newest = 2
        app.paint_data()
        app.line_tick()
        assert app.painted == [1]
        app.post_message(events.AppFocus())
        await drawn(pilot)
        for _ in range(3):
            driver.free()
            await drawn(pilot)
        assert app.painted == [1, 2]
        assert "2 训" in shown(driver)[2]


async def test_a_whole_repaint_of_the_same_screen_sends_nothing_until_the_terminal_is_not_known():
    async with on_a_line() as (app, pilot, driver):
        app.action_person("hello")
        await drawn(pilot)
        driver.free()
        await drawn(pilot)
        count = len(driver.frames)
        app.screen.refresh()
        await drawn(pilot)
        assert len(driver.frames) == count
        app.draw_anew()
        for _ in range(5):
            await drawn(pilot)
            driver.free()
        assert "hello" in "".join(driver.frames[count:])


async def test_another_screen_is_drawn_whole_where_the_line_is_quick():
    async with on_a_line() as (app, pilot, driver):
        told(driver.pace, 10_000, 0.0, 0.01)
        assert driver.pace.portion_bytes is None
        app.action_person("hello")
        await drawn(pilot)
        driver.free()
        await app.push_screen(Screen())
        await drawn(pilot)
        driver.free()
        await drawn(pilot)
        count = len(driver.frames)
        app.pop_screen()
        for _ in range(3):
            await drawn(pilot)
            driver.free()
        assert "hello" in "".join(driver.frames[count:])


async def test_the_header_says_that_the_line_is_slow_and_when_it_no_longer_is(opened, story):
    async with opened() as (app, pilot):
        words = "slow line, every 5 s"
        assert words not in screen_text(app)[0]
        app.data_pace.began(0.0)
        for second in (1.1, 2.1, 3.1):
            app.data_pace.tick(second)
        assert app.data_pace.slow
        app.show_badge()
        await pilot.pause(0.1)
        assert words in screen_text(app)[0]
        app.data_pace.drawn(3.5)
        for n in range(6):
            app.data_pace.began(10.0 + n)
            app._data_begins = False
            app.data_pace.drawn(10.1 + n)
        app.show_badge()
        await pilot.pause(0.1)
        assert words not in screen_text(app)[0]


async def test_a_screen_that_is_not_shown_is_given_nothing(opened, story, monkeypatch):
    async with opened() as (app, pilot):
        await pilot.press("1")
        await pilot.press("0")
        await pilot.pause(0.1)
        told = []
        monkeypatch.setattr(ModeScreen, "refresh_from_app", lambda self: told.append(self.mode))
        app.snapshot = app.latest = msgspec.structs.replace(app.latest) if app.latest else None
        app.take(app.latest, by_itself=True)
        assert told == ["overview"]


async def test_the_terminal_shows_what_the_screens_say_after_any_keys(workspace, clock, monkeypatch):
    example.fill(workspace, clock, monkeypatch)
    other = Workspace.open(workspace.root, clock=clock)
    monkeypatch.setattr(TrainflowApp, "_terminal_is_there", lambda _app: True)
    app = TrainflowApp(QuietDesk(other))
    chance = random.Random(8)
    async with recorded(app, (120, 40)) as terminal:
        for step in range(24):
            keys = chance.choice(["0", "1", "2", "3", "4", "5", "j", "k", "tab", "z", "?", "escape", "s", "space", "v"])
            await terminal.pilot.press(keys)
            if step % 5 == 4:
                app.post_message(chance.choice([events.AppBlur(), events.AppFocus()]))
            for _ in range(30):  # a screen that is opened for the first time takes a while on a busy machine
                await terminal.settle()
                terminal._draw()
                cells = terminal._screen.buffer
                found = ["".join(cells[y][x].data for x in range(120)).rstrip() for y in range(40)]
                if found == screen_text(app):
                    break
            assert found == screen_text(app), (step, keys)


# The hooks into Textual


def test_textual_still_is_as_the_hooks_expect_it():
    # Looked through for 8.2.8. Another one: read `LinuxDriver`, `App._display`, `ChopsUpdate` and `Screen` again.
    assert textual.__version__ == "8.2.8"
    assert "_display" in vars(App)
    assert linux_driver.WriterThread is WriterThread
    assert list(inspect.signature(ChopsUpdate).parameters) == ["chops", "spans", "chop_ends"]
    assert "self._writer_thread = WriterThread(self._file)" in inspect.getsource(linux_driver.LinuxDriver)
    assert {"write", "flush", "isatty", "fileno", "run", "stop"} <= set(vars(OutputLine))
    assert set(vars(WriterThread)) - {"__module__", "__doc__", "__init__"} <= set(vars(OutputLine))
