"""The screens: what they show, where keys lead, what an empty pane says, what a small terminal shows."""

from __future__ import annotations

import pytest

from tests.tui.conftest import screen_text
from tests.tui.test_approval_dialog import until
from trainflow_tui.collaboration import guidance, questions, tasks
from trainflow_tui.screens import keys

MODES = ["overview", "board", "questions", "hotspots", "cluster", "live"]


@pytest.mark.parametrize(("key", "mode"), list(zip("012345", MODES, strict=True)))
async def test_a_digit_leads_to_its_screen(opened, story, key, mode):
    async with opened() as (app, pilot):
        await pilot.press("3" if key != "3" else "4")
        await pilot.press(key)
        await pilot.pause(0.1)
        assert app.current_mode == mode


async def test_escape_goes_back_and_never_quits(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("2")
        for _ in range(5):
            await pilot.press("escape")
        await pilot.pause(0.1)
        assert app.current_mode == "overview"
        assert app.is_running


async def test_the_worst_task_stands_first(opened, workspace, story, actor):
    tasks.move(workspace.ledger, "profile-moe", "failed", actor=actor, reason="no cards")
    async with opened() as (app, _pilot):
        lines = [line for line in screen_text(app) if "profile-moe" in line or "adapt-7b" in line]
        assert "profile-moe" in lines[1]  # below the header, which names the current task


async def test_markup_in_foreign_text_is_shown_literally(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("1")
        await pilot.pause(0.1)
        assert any("[bold]slow[/]" in line for line in screen_text(app))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("1", "trainflow task create"),
        ("3", "trainflow trace add"),
        ("4", "trainflow node check"),
        ("5", "trainflow log add"),
    ],
)
async def test_an_empty_pane_names_the_key_and_the_command(opened, key, words):
    async with opened() as (app, pilot):
        await pilot.press(key)
        await pilot.pause(0.1)
        assert any(words in line and " n " in line for line in screen_text(app)), screen_text(app)


async def test_below_sixty_by_sixteen_only_the_needed_size_is_shown(opened, story):
    async with opened(size=(59, 15)) as (app, pilot):
        text = "\n".join(screen_text(app))
        assert "60×16" in text
        assert "adapt-7b" not in text
        await pilot.press("q")
        await pilot.pause(0.1)
        assert not app.is_running


async def test_a_filter_previews_counts_and_is_restored_by_escape(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("1", "slash", *"moe")
        await pilot.pause(0.1)
        assert any("Tasks" in line and "1/2" in line for line in screen_text(app))
        await pilot.press("escape")
        await pilot.pause(0.1)
        assert not any("1/2" in line for line in screen_text(app))
        await pilot.press("slash", *"!moe", "enter")
        await pilot.pause(0.1)
        rows = [line for line in screen_text(app) if " ● " in line]
        assert rows
        assert not any("profile-moe" in line for line in rows)


async def test_a_task_is_made_from_the_board(opened, workspace):
    async with opened() as (app, pilot):
        await pilot.press("1", "n")
        await pilot.pause(0.1)
        await pilot.press(*"New one", "enter")
        await until(app, pilot, lambda: bool(tasks.all_tasks(workspace.ledger)))
    assert tasks.all_tasks(workspace.ledger)[0].title == "New one"


async def test_guidance_written_here_is_collected_and_the_file_stays(opened, workspace, story):
    path = workspace.task_folder("adapt-7b") / "GUIDANCE.md"
    before = path.read_bytes()
    async with opened() as (app, pilot):
        await pilot.press("w")
        await pilot.pause(0.1)
        await pilot.press(*"Keep it", "ctrl+d")
        await until(app, pilot, lambda: bool(guidance.listed(workspace.ledger)))
    assert guidance.listed(workspace.ledger)[0].text == "Keep it"
    assert guidance.listed(workspace.ledger)[0].source == "tui"
    assert path.read_bytes() == before
    assert "Keep it" in (workspace.task_folder("adapt-7b") / "RECEIPTS.md").read_text()


async def test_a_draft_is_not_given_up_by_one_key(opened, workspace, story):
    async with opened() as (app, pilot):
        await pilot.press("w")
        await pilot.pause(0.1)
        await pilot.press(*"draft", "escape")
        await pilot.pause(0.1)
        assert "esc again" in "\n".join(screen_text(app))
        await pilot.press("escape")
        await pilot.pause(0.1)
    assert guidance.listed(workspace.ledger) == []


async def test_an_agents_question_is_answered(opened, workspace, story):
    async with opened() as (app, pilot):
        await pilot.press("2", "a")
        await pilot.pause(0.2)
        await pilot.press(*"skip it", "ctrl+d")
        await until(app, pilot, lambda: questions.get(workspace.ledger, story["question"].id).state == "answered")
    assert questions.get(workspace.ledger, story["question"].id).answer == "skip it"


async def test_help_lists_every_binding_and_says_why_one_is_off(opened, story):
    async with opened(size=(120, 80), readonly=True) as (app, pilot):
        await pilot.press("question_mark")
        await pilot.pause(0.2)
        text = "\n".join(screen_text(app))
    for binding in (*keys.APP_KEYS, *keys.SCREEN_KEYS):
        assert binding.description in text or binding.id in ("new", "decide"), binding
    assert "not in read-only mode" in text


async def test_read_only_mode_writes_nothing(opened, workspace, story):
    head = workspace.ledger.head()
    async with opened(readonly=True) as (app, pilot):
        assert any("READ-ONLY" in line for line in screen_text(app))
        for key in ("n", "w", "r", "2", "n", "1", "n"):
            await pilot.press(key)
            await pilot.pause(0.05)
            await pilot.press("escape")
    assert workspace.ledger.head() == head


async def test_an_unknown_command_is_named(opened, story):
    async with opened() as (app, pilot):
        await pilot.press("colon", *"frobnicate", "enter")
        await pilot.pause(0.2)
        assert any("frobnicate" in line for line in screen_text(app))


async def test_nothing_repaints_while_nothing_changes(opened, story):
    async with opened() as (app, pilot):
        await pilot.pause(0.3)
        painted = []
        original = app._display
        app._display = lambda *a, **k: (painted.append(a), original(*a, **k))
        await pilot.pause(2.2)
        assert painted == []


async def test_every_binding_has_an_id_and_each_id_is_one_key():
    found = [b.id for b in (*keys.APP_KEYS, *keys.SCREEN_KEYS)]
    assert None not in found
    assert len(found) == len(set(found))
    assert set(keys.FOOTER) <= set(found)
