"""Dialogs over the screens: one at a time, however many keys asked for it."""

from __future__ import annotations

import pytest
from textual.screen import ModalScreen

from tests.tui.test_approval_dialog import until
from trainflow_tui.collaboration import approvals
from trainflow_tui.text import display

OPENERS = {
    "an approval": lambda app, story: app.ask_decision(story["approval"].id),
    "an answer": lambda app, story: app.ask_answer(f"adapt-7b/{story['question'].id}"),
    "guidance": lambda app, _story: app.ask_guidance(),
    "a task": lambda app, _story: app.ask_new_task(),
    "a text": lambda app, _story: app.read(display("Title"), display("Words")),
    "help": lambda app, _story: app.action_help(),
}


@pytest.mark.parametrize("waits", [0, 1])
@pytest.mark.parametrize("second", OPENERS)
@pytest.mark.parametrize("first", ["an approval", "guidance"])
async def test_two_keys_in_a_row_open_one_dialog(opened, workspace, story, first, second, waits):
    async with opened(size=(80, 24)) as (app, pilot):
        OPENERS[first](app, story)
        for _ in range(waits):
            await pilot.pause()
        OPENERS[second](app, story)
        await until(app, pilot, lambda: isinstance(app.screen, ModalScreen))
        await pilot.pause(0.1)
        assert len(app.screen_stack) == 2
        await pilot.press("escape")
        await until(app, pilot, lambda: len(app.screen_stack) == 1)
        await pilot.pause(0.1)
        assert len(app.screen_stack) == 1
        OPENERS[first](app, story)
        await until(app, pilot, lambda: isinstance(app.screen, ModalScreen))
    assert approvals.get(workspace.ledger, story["approval"].id).state == "pending"
