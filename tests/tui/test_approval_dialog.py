"""The dialog: it takes no focus, decides only what is shown, and nothing that was typed before it."""

from __future__ import annotations

import asyncio
import time

import msgspec
import pytest
from textual import events

from tests.tui.conftest import PAYLOAD, screen_text
from trainflow_tui.collaboration import approvals
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.screens.dialogs.approval import ApprovalDialog


async def until(app, pilot, condition, seconds=10.0):
    """Let the application work until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, screen_text(app)
        await pilot.pause(0.02)


async def open_dialog(app, pilot, *, armed=True):
    await pilot.press("a")
    await until(app, pilot, lambda: isinstance(app.screen, ApprovalDialog) and app.screen.armed_at < 1e9)
    if armed:
        await until(app, pilot, lambda: time.monotonic() > app.screen.armed_at)


def state(workspace, story):
    return approvals.get(workspace.ledger, story["approval"].id).state


async def test_a_new_request_takes_no_focus(opened, workspace, story, actor):
    async with opened() as (app, pilot):
        focused, screen = app.focused, app.screen
        approvals.request(
            workspace.ledger, ApprovalRequest(task="adapt-7b", title="Another", payload=PAYLOAD), actor=actor
        )
        await until(app, pilot, lambda: any("Another" in line for line in screen_text(app)))
        assert app.focused is focused
        assert app.screen is screen


async def test_the_key_inside_approves_what_was_shown(opened, workspace, story):
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        text = "\n".join(screen_text(app))
        assert "torchrun" in text
        assert "1.5e-4" in text
        assert "dcu-01, dcu-02 (2)" in text
        await pilot.press("a")
        await until(app, pilot, lambda: state(workspace, story) == "approved")
    decision = approvals.get(workspace.ledger, story["approval"].id).decision
    assert decision.shown_digest == story["approval"].digest
    assert decision.shown_for_ms >= 400
    assert decision.input == "key"


@pytest.mark.parametrize("key", ["y", "enter", "space", "x", "b"])
async def test_no_other_key_decides(opened, workspace, story, key):
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        await pilot.press(key)
        await pilot.pause(0.1)
        assert state(workspace, story) == "pending"


async def test_keys_from_before_the_dialog_was_armed_decide_nothing(opened, workspace, story):
    # The keys are created while the loop is busy and are handled long after the dialog stands.
    async with opened() as (app, pilot):
        for key in ("a", "d", "c", "y", "enter", "space") * 8:
            app.screen_stack  # noqa: B018
            early = events.Key(key, key if len(key) == 1 else None)
            await open_dialog(app, pilot, armed=False)
            dialog = app.screen
            await until(app, pilot, lambda dialog=dialog: time.monotonic() > dialog.armed_at)
            app.post_message(early)
            just_before = events.Key(key, key if len(key) == 1 else None)
            just_before.time = dialog.armed_at - 0.001
            app.post_message(just_before)
            await pilot.pause(0.02)
            assert app.screen is dialog
            assert not dialog._field.display
            assert state(workspace, story) == "pending"
            await pilot.press("escape")
            await until(app, pilot, lambda: not isinstance(app.screen, ApprovalDialog))


async def test_a_refusal_asks_for_its_reason(opened, workspace, story):
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        await pilot.press("d")
        await pilot.press("enter")
        await pilot.pause(0.1)
        assert state(workspace, story) == "pending"
        await pilot.press(*"too early", "enter")
        await until(app, pilot, lambda: state(workspace, story) == "denied")
    assert approvals.get(workspace.ledger, story["approval"].id).decision.comment == "too early"


async def test_high_impact_needs_the_typed_token(opened, workspace, story, actor):
    wanted = ApprovalRequest(
        task="adapt-7b", title="Remove the old checkpoints", payload=PAYLOAD, kind="cleanup", reversible="no"
    )
    made = approvals.request(workspace.ledger, wanted, actor=actor)
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        assert "HIGH IMPACT" in "\n".join(screen_text(app))
        await pilot.press("a")
        await pilot.press(*"nope", "enter")
        await pilot.pause(0.1)
        assert approvals.get(workspace.ledger, made.id).state == "pending"
        for _ in range(4):
            await pilot.press("backspace")
        await pilot.press(*made.token, "enter")
        await until(app, pilot, lambda: approvals.get(workspace.ledger, made.id).state == "approved")
    assert approvals.get(workspace.ledger, made.id).decision.input == "typed-token"


async def test_the_irreversible_is_decided_only_after_its_last_line_was_shown(opened, workspace, story, actor):
    long = msgspec.structs.replace(PAYLOAD, argv=["rm", *(f"/data/old/{i}" for i in range(80))])
    made = approvals.request(
        workspace.ledger, ApprovalRequest(task="adapt-7b", title="Remove", payload=long, reversible="no"), actor=actor
    )
    async with opened(size=(80, 24)) as (app, pilot):
        await open_dialog(app, pilot)
        await pilot.press("a")
        assert not app.screen._field.display
        for _ in range(15):
            await pilot.press("space")
        await pilot.press("a")
        assert app.screen._field.display
    assert approvals.get(workspace.ledger, made.id).state == "pending"


async def test_an_argument_can_draw_nothing(opened, workspace, story, actor):
    evil = msgspec.structs.replace(PAYLOAD, argv=["echo", "\x1b[2J\x1b]52;c;aGk=\x07", "[@click=app.quit]x[/]", "a\nb"])
    approvals.request(
        workspace.ledger, ApprovalRequest(task="adapt-7b", title="E", payload=evil, kind="publish"), actor=actor
    )
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        text = "\n".join(screen_text(app))
        assert "\x1b" not in text
        assert "[@click=app.quit]x[/]" in text


async def test_read_only_shows_and_decides_nothing(opened, workspace, story):
    async with opened(readonly=True) as (app, pilot):
        await open_dialog(app, pilot)
        await pilot.press("a")
        await asyncio.sleep(0)
        assert state(workspace, story) == "pending"
        assert "read-only mode" in "\n".join(screen_text(app))


async def test_the_loser_of_a_race_is_told_who_decided(opened, workspace, story, actor):
    async with opened() as (app, pilot):
        await open_dialog(app, pilot)
        approvals.decide(workspace.ledger, story["approval"].id, "deny", by=actor, agent=None)
        await pilot.press("a")
        await until(app, pilot, lambda: any("already decided" in line for line in screen_text(app)))
    assert state(workspace, story) == "denied"
