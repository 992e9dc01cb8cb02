"""More rows than a list holds: the first are built, and how many there are is said."""

from __future__ import annotations

from tests.tui.conftest import PAYLOAD
from trainflow_tui.collaboration import approvals, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.screens import snapshot
from trainflow_tui.screens.views import board
from trainflow_tui.screens.widgets.patched_table import MAX_ROWS


def test_a_long_queue_is_cut_after_what_a_list_holds_and_its_rows_are_built_once(workspace, actor):
    tasks.create(workspace, title="t", id="t", actor=actor)
    for number in range(MAX_ROWS + 20):
        wanted = ApprovalRequest(task="t", title=f"Restart {number}", payload=PAYLOAD, why="so", reversible="yes")
        approvals.request(workspace.ledger, wanted, actor=actor)
    shown = snapshot.load(workspace)
    first, again = board.approvals(shown), board.approvals(snapshot.load(workspace))
    assert (len(first.rows), first.total) == (MAX_ROWS, MAX_ROWS + 20)
    assert all(one is other for one, other in zip(first.rows, again.rows, strict=True))
    assert len(board.waiting(shown).rows) == MAX_ROWS
