"""Opening the application on a workspace without a terminal and without a collector."""

from __future__ import annotations

from contextlib import asynccontextmanager

import pytest

from trainflow_tui.app import TrainflowApp
from trainflow_tui.collaboration import approvals, questions, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.screens.desk import Desk
from trainflow_tui.workspace import Workspace


class QuietDesk(Desk):
    """A desk that starts no collector."""

    async def ensure_watch(self):
        return None


def screen_text(app):
    """What is on the screen, a string a line."""
    return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]


@pytest.fixture
def opened(workspace, clock):
    """An async context: the application with a pilot, on a second connection to the fixture's workspace."""

    @asynccontextmanager
    async def run(*, size=(120, 40), theme="dark", readonly=False):
        other = Workspace.open(workspace.root, clock=clock, flags={"readonly": True} if readonly else None)
        app = TrainflowApp(QuietDesk(other), theme=theme, readonly=readonly)
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            yield app, pilot

    return run


PAYLOAD = CommandPayload(argv=["torchrun", "--lr", "1.5e-4"], hosts=["dcu-01", "dcu-02"])


@pytest.fixture
def story(workspace, actor):
    """Two tasks, a blocking question, an approval."""
    one = tasks.create(
        workspace, title="Adapt the 7B model", id="adapt-7b", objective="A trusted baseline on 16 cards", actor=actor
    )
    tasks.create(workspace, title="Profile", id="profile-moe", objective="Find [bold]slow[/] steps", actor=actor)
    asked = questions.ask(
        workspace.ledger,
        task=one.id,
        title="Lower the rate, or skip the batch?",
        body="Steps 130 to 139.",
        blocking=True,
        actor=actor,
    )
    wanted = ApprovalRequest(
        task=one.id, title="Restart from step 150", payload=PAYLOAD, why="The loss jumped", reversible="yes"
    )
    return {"question": asked, "approval": approvals.request(workspace.ledger, wanted, actor=actor)}
