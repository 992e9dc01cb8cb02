"""`trainflow --once`: one round, then one object or a page to read."""

from __future__ import annotations

from trainflow_tui.cli import page
from trainflow_tui.cli.approval import pending
from trainflow_tui.cli.frame import NEW_INPUT, Call, Reason, Reply
from trainflow_tui.cli.question import waiting
from trainflow_tui.collaboration import approvals, questions
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.refresh import once_document, run_round


def once(call: Call) -> Reply:
    """Collect, follow, check, render; then say what is and what waits."""
    workspace = call.open(create=True)
    done = run_round(workspace, actor=current_actor("once"))
    reasons = call.created_reason()
    if done.scan.new or done.scan.revised:
        text = f"Collected {done.scan.new} new and {done.scan.revised} revised items."
        reasons.append(Reason("new-input", text, "", NEW_INPUT))
    reasons += [Reason(t.code, t.text, t.subject, t.exit) for t in done.troubles]
    reasons += [
        Reason("editing", f"{name} is being edited and is collected when it has settled.", name, 0)
        for name in done.scan.editing
    ]
    reasons += [Reason("hint", text, "", 0) for text in done.scan.hints]
    reasons += pending(approvals.listed(workspace.ledger, pending_only=True))
    reasons += waiting(questions.blocking_open(workspace.ledger))
    body = once_document(workspace, done)
    lines = [] if call.wants_json else page.lines(workspace, body)
    return Reply(schema="once/1", body=body, reasons=reasons, lines=lines)
