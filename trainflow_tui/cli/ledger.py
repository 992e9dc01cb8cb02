"""`trainflow ledger`: verify the chain, rebuild the tables of current state."""

from __future__ import annotations

import click

from trainflow_tui.cli.frame import ATTENTION, Call, Noun, Reason, Reply


@click.group(cls=Noun, help="The chain of decided facts.")
def ledger() -> None:
    """The ledger."""


@ledger.command(help="Walk the chain, compare the tables with a replay, check the file.")
@click.pass_obj
def verify(call: Call) -> Reply:
    """Verify the ledger."""
    found = call.open().ledger.verify()
    reasons = []
    if found.first_bad_seq is not None:
        reasons.append(
            Reason(
                "chain-broken",
                f"The chain is broken at {found.first_bad_seq}: {found.problem}.",
                str(found.first_bad_seq),
                ATTENTION,
            )
        )
    elif not found.projections_match:
        reasons.append(
            Reason(
                "tables-differ",
                "The tables differ from the events. `trainflow ledger rebuild` mends them.",
                "",
                ATTENTION,
            )
        )
    if found.integrity != "ok":
        reasons.append(Reason("file-damaged", f"SQLite finds damage: {found.integrity}.", "", ATTENTION))
    lines = [f"{found.events} events, the chain holds." if not reasons else f"{found.events} events."]
    return Reply(schema="ledger-verify/1", body={"verification": found}, reasons=reasons, lines=lines)


@ledger.command(help="Empty the tables of current state and replay every event.")
@click.pass_obj
def rebuild(call: Call) -> Reply:
    """Rebuild the tables."""
    count = call.open().ledger.rebuild()
    return Reply(schema="ledger-rebuild/1", body={"events": count}, lines=[f"{count} events replayed."])
