"""Screens under an impatient hand: bursts of keys, wrong words, windows that shrink, filters that hide what is asked for."""

from __future__ import annotations

import asyncio
import time

import pytest
from textual import events

from tests.tui.conftest import screen_text
from tests.tui.test_approval_dialog import until
from trainflow_tui import language
from trainflow_tui.collaboration import questions, tasks
from trainflow_tui.errors import UsageError
from trainflow_tui.screens import keys, looks
from trainflow_tui.screens.commands import Command, find, the_one
from trainflow_tui.screens.pane_view import RowFilter, Sorting, row
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.patched_table import Column
from trainflow_tui.screens.words import line


@pytest.fixture(autouse=True)
def looks_of_the_start():
    yield
    looks.use("dark")
    looks.use_signs(glyphs="unicode", markers="braille")
    language.use("en")


def pane(app, id):
    return app.screen.query_one(f"#{id}", ListPane)


def text(app):
    return "\n".join(screen_text(app))


# The command line


async def test_tab_and_enter_right_after_the_letters_take_what_the_letters_mean(opened, story):
    async with opened() as (app, pilot):
        await pilot.press(*":them", "tab", *"light", "enter")
        await until(app, pilot, lambda: looks.current() == "light")


async def test_a_choice_made_before_more_was_typed_is_not_sent(opened, story):
    async with opened() as (app, pilot):
        await pilot.press(*":the")
        await until(app, pilot, lambda: app.screen.prompt._found_for == "the")
        await pilot.press("down")
        assert app.screen.prompt._choice == 0
        await pilot.press(*"me ansi", "enter")
        await until(app, pilot, lambda: looks.current() == "ansi")


@pytest.mark.parametrize("words", ["add   log  /a  b", " add log /a  b ", "add\tlog\t/a  b"])
def test_blanks_between_the_words_of_a_command_take_nothing_from_what_follows(words):
    found = find((Command("add log", "FILE", "", print),), words)
    assert found is not None
    assert found[1] == "/a  b"


def test_a_command_without_its_word_asks_for_it():
    with pytest.raises(UsageError) as caught:
        the_one("node", ["dcu-01", "dcu-02"], "")
    assert (caught.value.message, caught.value.next_step) == ("Which node?", "Known: dcu-01, dcu-02.")


async def test_the_home_of_nobody_ends_nothing(opened, story):
    async with opened() as (app, pilot):
        await pilot.press(*":add log ~no-such-user-here/x", "tab", "enter")
        await until(app, pilot, lambda: "Not done" in text(app))
        assert app.is_running


async def test_after_a_command_the_chart_that_had_the_focus_has_it_again(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("p", "c")
        chart = app.screen.query_one("#loss")
        assert app.focused is chart
        await pilot.press(*":theme light", "enter")
        await until(app, pilot, lambda: app.focused is chart)


async def test_a_window_that_was_too_small_for_a_moment_leaves_the_line_to_the_command(opened, story):
    async with opened(size=(80, 24)) as (app, pilot):
        await pilot.press(*":the")
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        assert "theme" not in text(app)
        await pilot.resize_terminal(80, 24)
        await until(app, pilot, lambda: app.focused is app.screen.prompt.field)
        await pilot.press(*"me light", "enter")
        await until(app, pilot, lambda: looks.current() == "light")


async def test_a_window_that_was_too_small_for_a_moment_leaves_the_list_its_cursor_keys(opened, story):
    async with opened(size=(80, 24)) as (app, pilot):
        await pilot.press("tab", "tab")
        focused = app.focused
        await pilot.resize_terminal(50, 10)
        await pilot.pause()
        await pilot.resize_terminal(80, 24)
        await until(app, pilot, lambda: app.focused is focused)


# Lists


async def test_going_to_a_row_clears_the_filter_that_hides_it(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("1", *"/adapt", "enter")
        await until(app, pilot, lambda: app.current_task == "adapt-7b")
        await pilot.press(*":task profile", "enter")
        await until(app, pilot, lambda: pane(app, "tasks").selected == "profile-moe")
        assert app.current_task == "profile-moe"


async def test_a_filter_that_is_given_up_leaves_the_current_task(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("1")
        app.choose_task("profile-moe")
        await until(app, pilot, lambda: pane(app, "tasks").selected == "profile-moe")
        await pilot.press(*"/adapt")
        await until(app, pilot, lambda: pane(app, "tasks").selected == "adapt-7b")
        await pilot.press("escape")
        await until(app, pilot, lambda: pane(app, "tasks").selected == "profile-moe")
        await until(app, pilot, lambda: app.current_task == "profile-moe")


async def test_what_is_taken_are_the_marked_rows_whatever_the_filter_shows(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("1")
        await until(app, pilot, lambda: app.current_mode == "board")
        tasks_pane = pane(app, "tasks")
        tasks_pane.table.move_to("adapt-7b")
        await pilot.press("space")
        tasks_pane.filter("profile")
        await pilot.pause()
        assert [r.key for r in tasks_pane.shown_rows()] == ["profile-moe"]
        assert [r.key for r in tasks_pane.taken_rows()] == ["adapt-7b"]


def test_an_order_by_a_column_that_is_left_out_is_the_order_that_rows_came_in():
    rows = tuple(row(k, line(k)) for k in "bca")
    assert Sorting("gone", reverse=True).sort((Column("", 1, "here"),), rows) == rows


def test_a_pattern_that_is_slow_in_every_row_stops_after_a_moment():
    from trainflow_tui.screens import pane_view

    class Slow:
        calls = 0

        def search(self, _text, timeout):
            Slow.calls += 1
            time.sleep(timeout / 2)

    found = RowFilter("x", is_regex=True)
    object.__setattr__(found, "_pattern", Slow())
    rows = tuple(row(str(n), line("y")) for n in range(1000))
    assert found.keep(rows) == rows
    assert found.problem == "too slow"
    assert Slow.calls <= 2 + 2 * pane_view.FILTER_ALL_S / pane_view.FILTER_TIMEOUT_S


# What runs beside the screen


async def test_a_key_that_is_held_down_runs_one_child_and_one_more_after_it(opened, story, monkeypatch):
    async with opened() as (app, pilot):
        started = []
        go = asyncio.Event()

        async def run(child, _progress):
            started.append(child.arguments)
            await go.wait()
            return {}

        monkeypatch.setattr(app.desk, "run_child", run)
        await pilot.press(*"rrrrrr")
        assert len(started) == 1
        go.set()
        await until(app, pilot, lambda: not app._children)
        assert len(started) == 2


async def test_a_reading_that_takes_longer_than_a_tick_is_waited_for(opened, story, workspace, actor, monkeypatch):
    async with opened() as (app, pilot):
        slow = asyncio.Event()
        real = app.desk.changed_since

        async def changed(version):
            await slow.wait()
            return await real(version)

        monkeypatch.setattr(app.desk, "changed_since", changed)
        tasks.create(workspace, title="Late", id="late", actor=actor)
        first = app._tick()
        await pilot.pause()
        app._tick()
        await pilot.pause()
        slow.set()
        await first.wait()
        assert "late" in [t.id for t in app.snapshot.tasks]


async def test_paused_charts_say_so_themselves_and_still_after_a_refresh(
    opened, story, workspace, tmp_path, monkeypatch
):
    async with opened() as (app, pilot):
        await pilot.press("5")
        await until(app, pilot, lambda: app.current_mode == "live")
        await pilot.press("space")
        app.say_notice("")
        await pilot.pause()
        assert "Charts paused" in text(app)
        await pilot.press("0")
        await until(app, pilot, lambda: app.current_mode == "overview")
        assert "Charts paused" not in text(app)


# The past


async def test_each_of_several_quick_presses_moves_the_time_cursor(opened, story, workspace, actor, clock):
    clock.advance(3600)
    tasks.create(workspace, title="Late", id="late", actor=actor)
    clock.advance(60)
    async with opened() as (app, pilot):
        app.run_command("at -10m")
        await until(app, pilot, lambda: bool(app.moment))
        before = app.moment
        for _press in range(5):
            app.step(-1)
        await until(app, pilot, lambda: app.moment != before and not app._aim)
        assert (before[:16], app.moment[:16]) == ("2026-03-04T12:51", "2026-03-04T12:46")


async def test_quick_leaps_pass_as_many_events(opened, workspace, actor, clock):
    for n in range(5):
        tasks.create(workspace, title=f"T{n}", id=f"t{n}", actor=actor)
        clock.advance(60)
    async with opened() as (app, pilot):
        for _press in range(3):
            app.leap(-1)
        await until(app, pilot, lambda: bool(app.moment) and not app._leaping)
        assert [t.id for t in app.snapshot.tasks] == ["t0", "t1", "t2"]


async def test_esc_gives_up_a_moment_that_is_still_being_read(opened, story, clock, monkeypatch):
    clock.advance(3600)
    async with opened() as (app, pilot):
        gate = asyncio.Event()
        real = app.desk.past

        async def past(moment):
            await gate.wait()
            return await real(moment)

        monkeypatch.setattr(app.desk, "past", past)
        app.run_command("at -10m")
        await pilot.pause()
        app.leave_past()
        gate.set()
        await pilot.pause()
        await pilot.pause()
        assert not app.moment


# Keys of one's own


@pytest.mark.parametrize(
    ("own", "both"),
    [
        ({"approval-approve": "d"}, "approval-approve and approval-deny"),
        ({"zoom": "q"}, "zoom and quit"),
        ({"zoom": "f6", "sort": "f6"}, "zoom and sort"),
        ({"help": "j"}, "table-down and help"),
        ({"mark": "v"}, None),
    ],
)
def test_a_key_of_ones_own_that_another_binding_has_is_refused(own, both):
    if both is None:
        assert keys.checked_keymap(own) == own
        return
    with pytest.raises(UsageError, match=f"is the key of both {both}"):
        keys.checked_keymap(own)


@pytest.mark.parametrize("own", [{"zoom": "s", "sort": "z"}, {"chart-pause": "b"}, {"mark": "m"}, {"quit": "Q"}])
def test_keys_may_change_places(own):
    assert keys.checked_keymap(own) == own


# Words that fit


async def test_the_dialog_before_leaving_shows_its_whole_sentence_on_sixty_columns(opened, story, monkeypatch):
    from trainflow_tui.screens.desk import Desk

    monkeypatch.setattr(Desk, "own_watch_runs", property(lambda _self: True))
    async with opened(size=(60, 16)) as (app, pilot):
        await pilot.press("q")
        await until(app, pilot, lambda: "runs the collector" in text(app))
        assert "collector stays." in text(app)


async def test_a_draft_at_risk_says_both_ways_out_on_sixty_columns(opened, story):
    async with opened(size=(60, 16)) as (app, pilot):
        await pilot.press("w", *"words", "escape")
        await until(app, pilot, lambda: "sends it" in text(app))


# Empty lists


async def test_no_key_in_an_empty_list_ends_the_screen(opened, workspace, actor):
    async with opened(size=(80, 24)) as (app, pilot):
        for key in ["end", "home", "G", "g", "pagedown", "pageup", "down", "up", "enter", "space", *"yYosSxz", "end"]:
            await pilot.press(key, "escape")
            assert app._exception is None, key
        tasks.create(workspace, title="First", id="first", actor=actor)
        app._tick()
        await until(app, pilot, lambda: pane(app, "tasks").selected == "first")


async def test_a_long_title_stands_whole_over_what_is_written(opened, workspace, actor):
    task = tasks.create(workspace, title="T", id="t", actor=actor)
    title = "降低学习率还是跳过这个批次" * 5
    questions.ask(workspace.ledger, task=task.id, title=title, body="", blocking=True, actor=actor)
    async with opened(size=(80, 24)) as (app, pilot):
        await pilot.press("2", "a")
        await until(app, pilot, lambda: len(app.screen_stack) > 1 and "ctrl+d" in text(app))
        assert text(app).count("降低学习率") == 5


async def test_the_same_refusal_stands_once(opened, story):
    async with opened(readonly=True) as (app, pilot):
        await pilot.press(*"rrr")
        await pilot.pause()
        assert len(app._notifications) == 1


async def test_what_help_calls_disabled_in_read_only_mode_opens_nothing(opened, story):
    async with opened(readonly=True) as (app, pilot):
        await pilot.press("5", "n")
        await until(app, pilot, lambda: "Read-only mode" in text(app))
        assert not app.screen.prompt.purpose


# Bursts, as they come over a line or are pasted


def burst(app, *names):
    for name in names:
        app.post_message(events.Key(name, name if len(name) == 1 else None))


async def test_what_is_typed_at_once_with_the_key_of_a_dialog_stands_in_it_whole(opened, story, workspace):
    async with opened(size=(80, 24)) as (app, pilot):
        burst(app, "0", "n", *"New", "enter")
        await until(app, pilot, lambda: any(t.title == "New" for t in app.snapshot.tasks))


async def test_guidance_sent_in_one_burst_is_sent_whole_and_the_next_key_is_for_the_screen(opened, story, workspace):
    async with opened(size=(80, 24)) as (app, pilot):
        burst(app, "w", *"keep", "ctrl+d", "2")
        await until(app, pilot, lambda: [g.text for g in app.snapshot.guidance] == ["keep"])
        await until(app, pilot, lambda: app.current_mode == "questions")


async def test_a_choice_and_the_key_after_it_in_one_burst_both_count(opened, story):
    async with opened(size=(80, 24)) as (app, pilot):
        burst(app, "1", "s", "1", "S")
        board = lambda: app.current_mode == "board" and len(app.screen_stack) == 1  # noqa: E731
        await until(app, pilot, lambda: board() and pane(app, "tasks").sorting == Sorting("task", True))


async def test_beside_a_zoomed_chart_no_hidden_list_is_filtered(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("p", "c", "z")
        await until(app, pilot, lambda: app.screen.zoomed_part() is app.screen.query_one("#loss"))
        await pilot.press("slash")
        assert "There is no list here." in [n.message for n in app._notifications]
        assert not app.screen.prompt.purpose
