"""What an operator does with the screens besides deciding: order, filter, looks, copies, exports, and finding it all again."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import sys
from xml.etree import ElementTree

import pytest

from tests.tui.conftest import QuietDesk, screen_text
from tests.tui.terminal import Terminal
from tests.tui.test_approval_dialog import until
from trainflow_tui import language
from trainflow_tui.app import TrainflowApp
from trainflow_tui.collaboration import approvals, guidance
from trainflow_tui.errors import TrainflowError
from trainflow_tui.ledger import leases
from trainflow_tui.monitoring import status
from trainflow_tui.screens import looks, strip_guard, view_state
from trainflow_tui.screens.dialogs.writing import WritingDialog
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.workspace import Workspace


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


async def command(app, pilot, words):
    app.run_command(words)
    await pilot.pause()


async def test_order_filter_zoom_screen_and_task_come_back_at_the_next_start(opened, workspace, story):
    async with opened() as (app, pilot):
        await pilot.press("1")
        await until(app, pilot, lambda: app.current_mode == "board")
        await command(app, pilot, "task profile")
        await command(app, pilot, "sort task")
        await pilot.press("S")
        await pilot.press("tab")
        await command(app, pilot, "filter ~restart|none")
        await pilot.press("z")
        await pilot.pause()
        assert pane(app, "approvals").row_filter.is_regex
    async with opened() as (app, pilot):
        await until(app, pilot, lambda: app.current_mode == "board" and app.screen.zoomed_part() is not None)
        assert app.screen.zoomed_part() is pane(app, "approvals")
        assert pane(app, "approvals").row_filter.text == "restart|none"
        assert pane(app, "approvals").row_filter.is_regex
        assert (pane(app, "tasks").sorting.key, pane(app, "tasks").sorting.reverse) == ("task", True)
        assert app.current_task == "profile-moe"
        assert list(app.remembered.commands) == []


async def test_a_damaged_memory_is_told_and_the_screen_starts_as_new(opened, workspace, story):
    path = view_state.path_for(workspace.root)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text('{"mode": "live", "task": ')
    async with opened() as (app, pilot):
        await until(app, pilot, lambda: "is damaged" in text(app))
        assert app.current_mode == "overview"


async def test_nothing_is_lost_where_the_home_cannot_be_written(opened, workspace, story, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/proc/none")
    async with opened() as (app, pilot):
        await command(app, pilot, "sort task")
        assert pane(app, "tasks").sorting.key == "task"


async def test_earlier_commands_and_filters_are_found_again(opened, workspace, story):
    async with opened() as (app, pilot):
        await pilot.press("colon", *"show", "space", *"live", "enter")
        await until(app, pilot, lambda: app.current_mode == "live")
    async with opened() as (app, pilot):
        await until(app, pilot, lambda: app.current_mode == "live")
        await pilot.press("colon", "up")
        assert app.screen.prompt.field.value == "show live"


async def test_a_wrong_pattern_is_said_in_the_title_and_hides_nothing(opened, workspace, story):
    async with opened() as (app, pilot):
        await pilot.press("slash", "tab", "left_parenthesis")
        await until(app, pilot, lambda: "pattern: missing )" in text(app))
        assert len(pane(app, "tasks").shown_rows()) == 2
        await pilot.press("escape")
        assert pane(app, "tasks").row_filter.text == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("tusk 7", "Near: task"),
        ("task none-such", "There is no task none-such"),
        ("node x", "There is no node x"),
        ("add trace", "which file?"),
        ("theme pink", "There is no theme pink"),
        ("at yesterdayish", "names no moment"),
    ],
)
async def test_a_command_that_cannot_be_says_why(opened, workspace, story, words, said):
    async with opened() as (app, pilot):
        await command(app, pilot, words)
        await until(
            app,
            pilot,
            lambda: said in text(app).replace("\n", " ") or any(said in n.message for n in app._notifications),
        )


async def test_an_export_names_source_time_and_filter_and_holds_raw_values(opened, workspace, story):
    async with opened() as (app, pilot):
        await command(app, pilot, "filter adapt")
        for kind in ("csv", "json", "md", "svg"):
            await command(app, pilot, f"export {kind}")
        folder = workspace.root / "exports"
        await until(app, pilot, lambda: folder.is_dir() and len(list(folder.iterdir())) == 4)
    files = {p.suffix: p for p in folder.iterdir()}
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in files.values())
    found = json.loads(files[".json"].read_text())
    assert (found["source"], found["filter"], found["total_rows"]) == ("ledger", "adapt", 2)
    assert found["exported_at"] == "2026-03-04T12:00:00.000000Z"
    assert [row["task"] for row in found["rows"]] == ["adapt-7b"]
    assert found["rows"][0]["stage"] == "draft"
    rows = [row for row in csv.reader(io.StringIO(files[".csv"].read_text())) if not row[0].startswith("#")]
    assert rows[0] == ["task", "stage", "waiting", "latest_word"]
    assert rows[1][:3] == ["adapt-7b", "draft", "2"]
    assert "| adapt-7b |" in files[".md"].read_text()
    ElementTree.fromstring(files[".svg"].read_text())


async def test_marked_rows_alone_are_exported(opened, workspace, story):
    async with opened() as (app, pilot):
        pane(app, "tasks").table.move_to("profile-moe")
        await pilot.press("space")
        await command(app, pilot, "export json")
        folder = workspace.root / "exports"
        await until(app, pilot, lambda: folder.is_dir() and any(folder.iterdir()))
    found = json.loads(next(folder.iterdir()).read_text())
    assert [row["task"] for row in found["rows"]] == ["profile-moe"]


@pytest.mark.parametrize("where", ["osc52", "file"])
async def test_a_copy_goes_to_the_terminal_or_says_in_which_file_it_is(workspace, story, clock, monkeypatch, where):
    monkeypatch.setenv("TRAINFLOW_CLIPBOARD", where)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("TMUX", "STY"):
        monkeypatch.delenv(name, raising=False)
    app = TrainflowApp(QuietDesk(Workspace.open(workspace.root, clock=clock)))
    async with app.run_test(size=(120, 40), notifications=True) as pilot:
        sent = []
        monkeypatch.setattr(app._driver, "write", sent.append)
        monkeypatch.setattr(TrainflowApp, "is_headless", False)
        pane(app, "tasks").table.move_to("adapt-7b")
        await pilot.press("Y")
        await until(app, pilot, lambda: "Copied" in text(app))
        folder = workspace.root / "copies"
        if where == "file":
            path = next(folder.iterdir())
            assert "**Task**: adapt-7b" in path.read_text()
            assert path.stat().st_mode & 0o777 == 0o600
        else:
            sequence = next(s for s in sent if s.startswith("\x1b]52;c;"))
            words = base64.b64decode(sequence.removeprefix("\x1b]52;c;").rstrip("\x07\x1b\\")).decode()
            assert "**Task**: adapt-7b" in words
            assert not folder.exists()


@pytest.mark.parametrize("name", looks.LOOKS)
async def test_a_theme_changes_colours_and_no_word(opened, workspace, story, name):
    async with opened() as (app, pilot):
        before = text(app)
        await command(app, pilot, f"theme {name}")
        await pilot.pause()
        assert text(app) == before
        assert app.theme == looks.LOOKS[name].theme


async def test_ascii_sends_no_sign_beyond_ascii_and_leaves_peoples_words(opened, workspace, story, actor):
    from trainflow_tui.collaboration import tasks

    tasks.create(workspace, title="训练", id="zh", objective="检查点 ● done", actor=actor)
    async with opened() as (app, pilot):
        await command(app, pilot, "glyphs ascii")
        await pilot.pause()
        drawn = "\n".join(strip_guard.as_drawn(s).text for s in app.screen._compositor.render_strips())
        assert {c for c in drawn if ord(c) > 127} <= set("检查点训练")
        assert "检查点 * done" in drawn
        assert looks.markers() == "ascii"


async def test_the_language_changes_while_the_screen_runs(opened, workspace, story):
    async with opened() as (app, pilot):
        await command(app, pilot, "language zh-CN")
        await pilot.pause()
        assert "0 总览" in text(app)
        await pilot.press("1")
        await until(app, pilot, lambda: "审批" in text(app))
        await command(app, pilot, "language en")
        await until(app, pilot, lambda: "Approvals" in text(app))


async def test_the_font_screen_shows_every_alphabet(opened, workspace, story):
    async with opened() as (app, pilot):
        await command(app, pilot, "fonts")
        await until(app, pilot, lambda: "braille" in text(app))
        assert "▟█" in text(app)
        assert "训练检查|" in text(app)


async def test_read_only_disables_what_changes_with_the_reason_in_help(opened, workspace, story):
    async with opened(readonly=True, size=(120, 60)) as (app, pilot):
        await pilot.press("e")
        await pilot.press("w")
        await pilot.pause()
        assert len(app.screen_stack) == 1
        await pilot.press("question_mark")
        await until(app, pilot, lambda: "Edit GUIDANCE.md" in text(app))
        disabled = {
            line.split("(not in")[0].split("│")[-1][19:].strip() for line in screen_text(app) if "(not in" in line
        }
        assert {"Edit GUIDANCE.md", "Edit QUESTIONS.md", "Write guidance"} <= disabled
        assert not {"Zoom", "Help", "Filter"} & disabled


async def test_the_users_own_key_works_and_help_shows_it(workspace, story, clock):
    (workspace.root / "trainflow.toml").write_text('[keys]\nzoom = "Z"\nshow-live = "l"\n')
    app = TrainflowApp(QuietDesk(Workspace.open(workspace.root, clock=clock)))
    async with app.run_test(size=(120, 60)) as pilot:
        await pilot.press("Z")
        assert app.screen.zoomed_part() is not None
        await pilot.press("z")
        assert app.screen.zoomed_part() is not None
        await pilot.press("l")
        await until(app, pilot, lambda: app.current_mode == "live")
        await pilot.press("question_mark")
        await until(
            app,
            pilot,
            lambda: any(
                line.split("│")[-2:][0].split()[:2] == ["Z", "Zoom"] for line in screen_text(app) if "Zoom" in line
            ),
        )


async def test_a_source_that_nobody_reads_any_more_says_stale_and_then_lost_and_only_then_repaints(
    opened, workspace, story, clock
):
    assert leases.acquire(workspace.ledger, "watch", "other", ttl_s=10**6)
    with workspace.ledger.transaction() as transaction:
        transaction.pulse("scan")
    async with opened() as (app, pilot):
        await pilot.press("2")
        await until(app, pilot, lambda: "collector ok" in text(app))
        drawn = []
        original = app.screen.refresh_from_app
        app.screen.refresh_from_app = lambda: (drawn.append(1), original())
        for _ in range(3):
            clock.advance(60)
            app._tick()
            await app.workers.wait_for_complete()
        assert not drawn
        clock.advance(800)
        app._tick()
        await until(app, pilot, lambda: "collector stale" in text(app))
        clock.advance(4000)
        app._tick()
        await until(app, pilot, lambda: "collector lost" in text(app))
        assert "as of 12:00:00" in text(app)


async def test_a_run_that_is_gone_is_lost_and_its_last_values_stay(opened, workspace, story, actor):
    from trainflow_tui.monitoring.follow import add_run
    from trainflow_tui.monitoring.status import RunSummary

    log = workspace.root / "train.log"
    log.write_text("")
    run, _new = add_run(workspace, log, task="adapt-7b", id=None, actor=actor)
    summary = RunSummary(state="missing", step=7, loss=1.5, last_sample_at="2026-03-04T11:59:00.000000Z")
    with workspace.ledger.transaction() as transaction:
        status.store_run(transaction, workspace.ledger, run, tail={}, summary=summary)
    async with opened() as (app, pilot):
        await pilot.press("5")
        await until(app, pilot, lambda: "lost" in text(app) and "1.5" in text(app))


def test_keys_that_come_in_one_burst_are_done_one_after_the_other(workspace, story, tmp_path):
    argv = [sys.executable, "-m", "tests.tui.stalled_screen", str(workspace.root), str(tmp_path / "told"), "0"]
    (tmp_path / "told").touch()
    with Terminal(argv, config_home=tmp_path / "config") as terminal:
        terminal.wait_for("Needs you")
        terminal.send(":task profile-moe\r")
        terminal.wait_for("Approvals")
        terminal.wait_for("▸ profile-moe")
        terminal.send("\x1b[27u" + "0s1")
        terminal.wait_for("Task▲")
        terminal.send("/adapt\r:show live\r")
        terminal.wait_for("No log yet")
        terminal.send("1?")
        terminal.wait_for("Every screen")
        terminal.send("q" + "5q")
        assert terminal.exit_code() == 0
    assert approvals.get(workspace.ledger, story["approval"].id).state == "pending"


def test_a_fault_of_ours_gives_the_terminal_back_and_tells_no_local_variable(workspace, story, tmp_path):
    argv = [sys.executable, "-m", "tests.tui.broken_screen", str(workspace.root)]
    with Terminal(argv, config_home=tmp_path / "config", env={"DB_WORDS": "hunter2-is-no-secret-here"}) as terminal:
        terminal.wait_for("Needs you")
        terminal.send("z")
        assert terminal.exit_code() == 1
        words = re.sub("\x1b\\[[0-9;]*m", "", terminal.raw.decode("utf-8", "replace"))
    assert "a fault of ours, 25 letters" in words.partition("\x1b[?1049l")[2]
    assert "hunter2" not in words
    told = "".join(p.read_text() for p in (workspace.state / "logs").glob("*") if p.is_file())
    assert "hunter2" not in told


async def test_words_that_could_not_be_recorded_are_given_back(opened, workspace, story, monkeypatch):
    async with opened() as (app, pilot):
        refusals = [TrainflowError("disk-full", "The disk is full.", next_step="Make room.")]
        genuine = app.desk.guide

        def guide(w, task, words):
            if refusals:
                raise refusals.pop()
            return genuine(w, task, words)

        monkeypatch.setattr(app.desk, "guide", guide)
        await pilot.press("w")
        await until(app, pilot, lambda: isinstance(app.screen, WritingDialog))
        await pilot.press(*"Hold", "ctrl+d")
        await until(app, pilot, lambda: not refusals and isinstance(app.screen, WritingDialog))
        assert app.screen.draft.text == "Hold"
        await pilot.press("ctrl+d")
        await until(app, pilot, lambda: any(i.text == "Hold" for i in guidance.listed(workspace.ledger)))


async def test_the_time_cursor_shows_what_was_changes_nothing_and_still_tells_what_waits_now(
    opened, workspace, story, actor, clock
):
    from trainflow_tui.collaboration import questions, tasks

    clock.advance(600)
    tasks.move(workspace.ledger, "adapt-7b", "prepared", actor=actor)
    clock.advance(600)
    async with opened() as (app, pilot):
        assert "prepared" in text(app)
        await command(app, pilot, "at -15m")
        await until(app, pilot, lambda: "AS OF 2026-03-04 12:05:00" in text(app) and "prepared" not in text(app))
        await pilot.press("w")
        await until(app, pilot, lambda: "This is the past" in text(app))
        assert len(app.screen_stack) == 1
        questions.ask(workspace.ledger, task="adapt-7b", title="New", body="", blocking=False, actor=actor)
        app._tick()
        await until(app, pilot, lambda: "!3 waiting" in text(app))
        assert "AS OF" in text(app)
        await pilot.press("right_curly_bracket")
        await until(app, pilot, lambda: "AS OF 2026-03-04 12:10:00" in text(app) and "prepared" in text(app))
        await pilot.press("left_square_bracket")
        await until(app, pilot, lambda: "AS OF 2026-03-04 12:09:00" in text(app))
        await pilot.press("question_mark")
        await until(app, pilot, lambda: "not in the past" in text(app))
        await pilot.press("escape")
        await pilot.pause()
        await pilot.press("escape")
        await until(app, pilot, lambda: "AS OF" not in text(app) and "prepared" in text(app))


async def test_a_request_of_the_past_is_shown_as_it_stood_and_cannot_be_decided(opened, workspace, story, clock, actor):
    clock.advance(600)
    id = story["approval"].id
    approvals.decide(
        workspace.ledger,
        id,
        "deny",
        by=actor,
        agent=None,
        comment="no",
        shown_digest=story["approval"].digest,
        shown_for_ms=1,
        input="cli",
    )
    clock.advance(60)
    async with opened() as (app, pilot):
        await command(app, pilot, "at -5m")
        await until(app, pilot, lambda: "AS OF" in text(app))
        await command(app, pilot, f"approval {id}")
        await until(app, pilot, lambda: "not in the past" in text(app))
        app.screen.armed_at = 0.0
        await pilot.press("a")
        await pilot.pause()
        assert not app.screen._field.display
    assert approvals.get(workspace.ledger, id).state == "denied"
