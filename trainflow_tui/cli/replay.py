"""`trainflow replay`: the page of `--once` as it was at an earlier moment."""

from __future__ import annotations

import click

from trainflow_tui.cli import page
from trainflow_tui.cli.frame import Call, Reason, Reply, Verb
from trainflow_tui.clock import moment_of, to_iso
from trainflow_tui.ledger.past import Past
from trainflow_tui.monitoring import replay as replaying
from trainflow_tui.refresh import state_document


@click.command(
    cls=Verb,
    help="What was known at an earlier moment, as `--once` prints it: decisions from the ledger, numbers from the store. "
    "Changes nothing; what nobody recorded is unknown.",
)
@click.option(
    "--at",
    "moment",
    required=True,
    metavar="MOMENT",
    help="14:05, '2026-03-04 14:05', a time with its zone, -10m, -2h, -1d.",
)
@click.pass_obj
def replay(call: Call, moment: str) -> Reply:
    """Show the past."""
    call.flags["readonly"] = True
    workspace = call.open()
    at = moment_of(moment, workspace.clock.now())
    past = Past(workspace.ledger)
    try:
        replaying.go_to(workspace, past, at)
        first, last = replaying.bounds(workspace, past)
        shown = replaying.view(workspace, past)
        body = {"as_of": to_iso(at), "first_at": first or None, "last_at": last or None} | state_document(shown)
        lines = [] if call.wants_json else page.lines(shown, body)
    finally:
        past.close()
    reasons = []
    if not first or to_iso(at) < first:
        text = (
            f"Nothing was recorded by then; the first record is of {first}." if first else "Nothing is recorded here."
        )
        reasons.append(Reason("before-records", text, str(workspace.root), 0))
    return Reply(schema="replay/1", body=body, reasons=reasons, lines=lines)
