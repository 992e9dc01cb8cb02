"""Hostile text through every kind of widget, onto a terminal: nothing it contains is obeyed, hidden, pressed or fatal.

Held three ways: through `text.display` alone, through the strip guard alone, and with neither, where it must leak, or
the test could not fail.
"""

from __future__ import annotations

import os
import pty
import random
import re
import select
import subprocess
import sys
from pathlib import Path

import pytest
from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.strip import Strip
from textual.widgets import (
    Button,
    Checkbox,
    DataTable,
    Header,
    Input,
    Label,
    Log,
    OptionList,
    RadioButton,
    RichLog,
    Static,
    TextArea,
    Tree,
)
from textual.widgets.option_list import Option

from tests.tui.recorded_terminal import recorded
from trainflow_tui.screens import strip_guard
from trainflow_tui.screens.link_policy import LinkPolicy, allowed_from_link
from trainflow_tui.screens.widgets.cells import as_content, as_text
from trainflow_tui.text import clip, display

CORPUS = Path(__file__).resolve().parents[2] / "../shared/corpus"

# What Textual itself sends for a screen: colours, cursor positions in a screen of this size, line ends.
OWN = re.compile(r"\x1b\[(?:\d{1,3}(?:;\d{1,3})*)?m|\x1b\[\d{1,3};\d{1,3}H|\n")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Reorder text on some terminals; `display` shows them, the guard replaces only what a terminal obeys."""
CONTROL = re.compile(f"[\x00-\x1f\x7f-\x9f{BIDI}]")
MARK = "7357"
"""In every sequence of the payloads, and in none that Textual sends."""


def payloads(count, seed=0):
    """Escape sequences of every kind, nested, cut, in eight bits, split by text; each carries the mark."""
    chance = random.Random(seed)
    st = ["\x1b\\", "\x07", "\x9c"]
    whole = [
        lambda: f"\x1b[{MARK}{chance.choice('ABCDHJKmhlnsucqr')}",
        lambda: f"\x9b{MARK};1{chance.choice('mHJ')}",
        lambda: f"\x1b[?{MARK}{chance.choice('hl')}",
        lambda: f"\x1b]{chance.choice([0, 4, 7, 8, 9, 10, 52, 133, 777, 1337])};{MARK}{chance.choice(st)}",
        lambda: f"\x1b]8;;http://{MARK}\x1b\\x\x1b]8;;\x1b\\",
        lambda: f"\x9d0;{MARK}\x9c",
        lambda: f"\x1b{chance.choice('P_^X')}{MARK}{chance.choice(st)}",
        lambda: f"\x1b{chance.choice('78cDEMNOZ=>')}{MARK}",
        lambda: f"\x1bPtmux;\x1b\x1b]52;c;{MARK}\x07\x1b\\",
        lambda: (
            chance.choice("\x00\x01\x05\x07\x08\x0b\x0c\x0e\x1a\x7f\x84\x85\x8d\x90\x98\x9a\x9b\x9d\u202e\u2066") + MARK
        ),
    ]

    def one():
        text = chance.choice(whole)()
        if chance.random() < 0.4:
            text = text[: chance.randrange(1, len(text))] + chance.choice(["", "text", "\x1b", chance.choice(whole)()])
        return f"a{text}b"

    return ["".join(one() for _ in range(chance.randrange(1, 4))) for _ in range(count)]


def brackets(count, seed=1):
    """Random bracket text, and tags that mean something to Textual or Rich."""
    chance = random.Random(seed)
    parts = [
        "[",
        "]",
        "[/",
        "[/]",
        "\\",
        "\\[",
        "'",
        '"',
        "=",
        " ",
        "(",
        ")",
        "rank3",
        "red",
        "link=x",
        "bias",
        "@click=app.quit",
    ]
    known = [
        "[/foo]",
        "[@click=app.simulate_key('y')]x[/]",
        "[link=http://x]y[/link]",
        "[x=1 y='2']",
        "[/b",
        "[bold red]z[/]",
    ]
    return [
        chance.choice(known)
        if chance.random() < 0.1
        else "".join(chance.choice(parts) for _ in range(chance.randrange(1, 9)))
        for _ in range(count)
    ]


def log_lines(limit):
    folder = CORPUS / "logs"
    if not folder.is_dir():
        pytest.skip(f"no log corpus at {folder}")
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and p.suffix not in (".json", ".md", ".gz")):
        found += [line for line in path.read_bytes()[:20_000].splitlines()[:12] if line.strip()]
    return found[:limit]


class Sinks(App):
    """One widget of each kind."""

    TOOLTIP_DELAY = 0.001
    CSS = """
    Horizontal { height: 1fr; } Vertical { width: 1fr; } #single { width: 60; }
    Static, Label, Button, Checkbox, RadioButton, Input, TextArea { height: 3; width: 1fr; }
    DataTable, RichLog, Log, OptionList, Tree { height: 1fr; width: 1fr; border: none; }
    #framed { border: round white; }
    """
    SINGLE = ("static", "label", "button", "checkbox", "radio", "input", "placeholder", "area", "framed")
    MANY = (DataTable, RichLog, Log, OptionList, Tree)

    def compose(self):
        yield Header()
        with Horizontal():
            with Vertical(id="single"):
                yield Static(id="static", markup=False)
                yield Label(id="label", markup=False)
                yield Static(id="framed")
                yield Button(id="button")
                yield Checkbox(id="checkbox")
                yield RadioButton(id="radio")
                yield Input(id="input")
                yield Input(id="placeholder")
                yield TextArea(id="area")
            yield DataTable(cursor_type="row")
            yield RichLog(markup=False)
            yield Log()
            yield OptionList(markup=False)
            yield Tree("")

    def feed_one(self, content, plain):
        """Give the widgets that hold one text this one."""
        self.query_one("#static", Static).update(content)
        self.query_one("#label", Label).update(content)
        self.query_one("#button", Button).label = content
        self.query_one("#checkbox", Checkbox).label = content
        self.query_one("#radio", RadioButton).label = content
        self.query_one("#input", Input).value = plain
        self.query_one("#placeholder", Input).placeholder = plain
        self.query_one("#area", TextArea).text = plain
        framed = self.query_one("#framed")
        framed.border_title = framed.border_subtitle = framed.tooltip = content

    def feed_many(self, texts, plains):
        """Give the widgets that hold many texts these."""
        table = self.query_one(DataTable)
        table.clear(columns=True)
        table.add_column(texts[0], width=50)
        for text in texts:
            table.add_row(text, label=text)
        rich_log, log = self.query_one(RichLog).clear(), self.query_one(Log).clear()
        options, tree = self.query_one(OptionList), self.query_one(Tree)
        options.clear_options().add_options([Option(text) for text in texts])
        tree.clear().root.expand()
        tree.root.label = texts[0]
        for text, plain in zip(texts, plains, strict=True):
            rich_log.write(text)
            log.write_line(plain)
            tree.root.add_leaf(text)

    def feed_the_rest(self, plain):
        """Title, subtitle, notice."""
        self.title = self.sub_title = plain
        self.clear_notifications()
        self.notify(plain, title=plain, markup=False)


def strips_of(widget):
    """The lines of a widget as they go to the renderer, frame included."""
    widget._styles_cache.clear()
    return widget.render_lines(widget.outer_size.region)


@pytest.fixture
def unguarded(monkeypatch):
    """Textual's renderer as it comes; whatever a test installs goes with it."""
    original = Strip.render
    while hasattr(original, strip_guard._MARK):
        original = original.__wrapped__
    monkeypatch.setattr(Strip, "render", original)


def leftovers(written):
    """Everything in the output that is neither a sequence of Textual's own nor text."""
    return CONTROL.findall(OWN.sub("", written))


def sound(text):
    return as_content(display(text)), as_text(display(text)), display(text)


def raw(text):
    return Content(text), Text(text), text


async def sent_by_each(texts, make):
    """What each kind of widget would send for each text."""
    app = Sinks()
    sent = {}
    async with app.run_test(size=(300, 60)) as pilot:
        for start in range(0, len(texts), 50):
            made = [make(text) for text in texts[start : start + 50]]
            app.feed_many([text for _, text, _ in made], [plain for _, _, plain in made])
            await pilot.pause()
            for content, _, plain in made:
                app.feed_one(content, plain)
                for name in app.SINGLE:
                    sent.setdefault(name, []).extend(
                        strip.render(app.console) for strip in strips_of(app.query_one(f"#{name}"))
                    )
            for widget in app.MANY:
                lines = strips_of(app.query_one(widget))
                sent.setdefault(widget.__name__, []).extend(strip.render(app.console) for strip in lines)
    return sent


async def sent_to_the_terminal(texts, make):
    """What the whole application sends, with title, notice and tooltip."""
    app = Sinks()
    output = []
    async with recorded(app, (150, 40), tooltips=True, notifications=True) as terminal:
        terminal.forget()
        for start in range(0, len(texts), 10):
            made = [make(text) for text in texts[start : start + 10]]
            app.feed_many([text for _, text, _ in made], [plain for _, _, plain in made])
            app.feed_one(made[0][0], made[0][2])
            app.feed_the_rest(made[0][2])
            await terminal.settle()
            await terminal.pilot.hover("#framed", offset=(5, 1))
            await terminal.settle()
            output.append(terminal.written)
            terminal.forget()
    return "".join(output)


async def test_what_textual_itself_sends_is_what_this_test_takes_it_to_be(unguarded):
    written = await sent_to_the_terminal(["plain", "text"], sound)
    assert written.count("plain") >= len(Sinks.SINGLE) + len(Sinks.MANY) + 3
    assert leftovers(written) == []


async def test_no_widget_sends_a_control_of_text_that_passed_display_even_without_the_guard(unguarded):
    for name, lines in (await sent_by_each(payloads(300), sound)).items():
        assert [line for line in lines if leftovers(line)] == [], name
        assert any(MARK in line for line in lines), name


async def test_no_widget_sends_a_control_of_raw_text_through_the_guard(unguarded):
    strip_guard.install()
    for name, lines in (await sent_by_each(payloads(300, seed=2), raw)).items():
        assert [line for line in lines if set(leftovers(line)) - set(BIDI)] == [], name
        assert any("\ufffd" in line for line in lines), name


async def test_the_application_with_title_notice_and_tooltip_sends_none_either(unguarded):
    assert leftovers(await sent_to_the_terminal(payloads(40, seed=3), sound)) == []
    strip_guard.install()
    assert set(leftovers(await sent_to_the_terminal(payloads(40, seed=4), raw))) <= set(BIDI)


async def test_without_either_defence_every_widget_leaks(unguarded):
    for name, lines in (await sent_by_each([f"a\x1b[{MARK}mb"], raw)).items():
        assert [line for line in lines if f"\x1b[{MARK}m" in line], name
    assert f"\x1b]52;c;{MARK}" in await sent_to_the_terminal([f"\x1b]52;c;{MARK}\x1b\\"], raw)


async def test_the_guard_covers_text_without_a_style_and_the_target_of_a_link(unguarded):
    from rich.console import Console
    from rich.segment import Segment

    strip_guard.install()
    console = Console(force_terminal=True, color_system="truecolor")
    assert Strip([Segment("a\x1b[2Jb")]).render(console) == "a\ufffd[2J"
    linked = Strip([Segment("x", Style(link="http://y\x1b\\\x1b[2J"))]).render(console)
    assert linked == "x"
    assert "http://y" in Strip([Segment("x", Style(link="http://y"))]).render(console)
    clean = Strip([Segment("训练 é", Style(bold=True))])
    assert clean.render(console) == "\x1b[1m训练 é\x1b[0m"


def test_a_guarded_line_keeps_its_cells(unguarded):
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text as RichText

    strip_guard.install()
    console = Console(force_terminal=True, color_system="truecolor")
    strip = Strip([Segment("ab\x1b\x00\x9bcd"), Segment("训练")])
    assert RichText(strip.render(console)).cell_len == strip.cell_length


def test_installing_twice_wraps_once(unguarded):
    strip_guard.install()
    first = Strip.render
    strip_guard.install()
    assert Strip.render is first


SCRIPT = """
import sys
from textual.app import App
from textual.widgets import Header, Static
from trainflow_tui.screens import strip_guard
from trainflow_tui.screens.widgets.cells import as_content
from trainflow_tui.text import display

class Shown(App):
    def compose(self):
        yield Header()
        yield Static(as_content(display(sys.argv[2])) if sys.argv[1] == "display" else sys.argv[2], markup=False)
    def on_mount(self):
        self.title = display(sys.argv[2]) if sys.argv[1] == "display" else sys.argv[2]
        self.call_after_refresh(self.call_later, self.exit)

if sys.argv[1] == "guard":
    strip_guard.install()
Shown().run()
"""


@pytest.mark.parametrize(("way", "leaks"), [("display", False), ("guard", False), ("neither", True)])
def test_a_real_pseudo_terminal_receives_no_sequence_from_the_text(way, leaks):
    master, slave = pty.openpty()
    text = f"a\x1b]52;c;{MARK}\x07b\x1b[{MARK}mc\x1b[?{MARK}hd"
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, way, text],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=Path(__file__).resolve().parents[2],
        env=os.environ | {"TERM": "xterm-256color", "TEXTUAL_ANIMATIONS": "none"},
    )
    os.close(slave)
    received = b""
    try:
        while select.select([master], [], [], 30)[0]:
            try:
                data = os.read(master, 65536)
            except OSError:  # Linux says end of file so
                break
            if not data:
                break
            received += data
        child.wait(timeout=30)
    finally:
        child.kill()
        os.close(master)
    assert b"\x1b[?1049h" in received
    assert bool(re.search(rb"\x1b[\]\[][?0-9;a-z]*7357", received)) is leaks


# Markup (T-61)


def assert_nothing_can_be_clicked(strip):
    for segment in strip:
        assert segment.style is None or ("@click" not in segment.style.meta and segment.style.link is None)


@pytest.mark.parametrize("part", range(5))
async def test_bracket_text_and_log_lines_stand_literally_everywhere_and_nothing_can_be_clicked(part):
    texts = log_lines(100) if part == 4 else brackets(1000)[part::4]
    shorts = [clip(display(text), 40) for text in texts if display(text).strip()]
    app = Sinks()
    async with app.run_test(size=(300, 60), notifications=True) as pilot:
        for start in range(0, len(shorts), 50):
            batch = shorts[start : start + 50]
            app.feed_many([as_text(short) for short in batch], batch)
            app.feed_the_rest(batch[0])
            await pilot.pause()
            assert [note.message for note in app._notifications] == [batch[0]]
            for strip in app.screen._compositor.render_strips():
                assert_nothing_can_be_clicked(strip)
            for widget in app.MANY:
                lines = "\n".join(strip.text for strip in strips_of(app.query_one(widget)))
                for short in batch:
                    assert short.rstrip() in lines, (widget.__name__, short)
            for short in batch:
                app.feed_one(as_content(short), short)
                for name in app.SINGLE:
                    strips = strips_of(app.query_one(f"#{name}"))
                    # Labels are trimmed at both ends.
                    assert any(short.strip() in strip.text for strip in strips), (name, short)
                    for strip in strips:
                        assert_nothing_can_be_clicked(strip)


# Links (T-66)

DECIDING = [
    "app.simulate_key('y')",
    "app.approve",
    "approve",
    "app.quit",
    "app.screenshot('x.svg', '/tmp')",
    "screen.dismiss(True)",
    "app.push_screen('x')",
    "app.notify('x')",
    "simulate_key('y')",
    "app.link('http://x')",
]


class Clicked(App):
    BINDINGS = [Binding("y", "approve", "Approve")]

    def __init__(self, action, event="click"):
        super().__init__()
        self.line = Static(Text("press here", Style.from_meta({f"@{event}": action})))
        self.ran: list[str] = []

    def compose(self):
        yield self.line

    def action_approve(self):
        self.ran.append("approve")

    async def run_action(self, action, default_namespace=None, namespaces=None):
        self.ran.append(action if isinstance(action, str) else action[1])
        return await super().run_action(action, default_namespace, namespaces) if "approve" in str(action) else True


class Guarded(LinkPolicy, Clicked):
    pass


@pytest.mark.parametrize("event", ["click", "mouse.down", "mouse.up"])
@pytest.mark.parametrize("action", DECIDING)
async def test_a_click_on_text_runs_no_action_that_is_not_listed(action, event):
    app = Guarded(action, event)
    async with app.run_test() as pilot:
        await pilot.click(app.line, offset=(2, 0))
        assert app.ran == []


@pytest.mark.parametrize("action", DECIDING[:4])
async def test_without_the_policy_the_same_click_runs_it(action):
    app = Clicked(action)
    async with app.run_test() as pilot:
        await pilot.click(app.line, offset=(2, 0))
        assert app.ran


async def test_a_key_still_runs_its_own_action():
    app = Guarded("approve")
    async with app.run_test() as pilot:
        await pilot.press("y")
        assert "approve" in app.ran


async def test_scroll_bars_still_answer_to_the_mouse():
    class Scrolling(LinkPolicy, App):
        CSS = "Static { height: 200; }"

        def compose(self):
            yield Static("tall")

    app = Scrolling()
    async with app.run_test(size=(40, 10)) as pilot:
        await pilot.click(offset=(39, 9))
        await pilot.pause()
        await pilot.wait_for_scheduled_animations()
        assert app.screen.scroll_offset.y > 0


@pytest.mark.parametrize("action", [*DECIDING, "", "(", "link(", "app.scroll_up", "a.b.c", "link\x1b", "quit()"])
def test_only_listed_bare_names_pass(action):
    assert not allowed_from_link(action)
    assert allowed_from_link("link('http://x')")
