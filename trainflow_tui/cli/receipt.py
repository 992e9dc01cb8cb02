"""`trainflow receipt`: what became of each version of a guidance item."""

from __future__ import annotations

import click

from trainflow_tui.cli.frame import ATTENTION, Call, Noun, Reason, Reply
from trainflow_tui.collaboration import guidance, tasks
from trainflow_tui.collaboration.identity import agent_behind, current_actor

STATES = ("seen", "applied", "declined", "deferred", "accepted")


@click.group(cls=Noun, help="Receipts: seen, applied, declined, deferred; accepted is the human's word.")
def receipt() -> None:
    """Receipts."""


@receipt.command(help="State what became of a guidance item. Handling it needs a note.")
@click.argument("task")
@click.argument("item")
@click.argument("state", type=click.Choice(STATES))
@click.option("--note", default="", metavar="TEXT")
@click.option(
    "--version", type=int, default=None, metavar="N", help="The version that was read; refused if a newer one exists."
)
@click.pass_obj
def add(call: Call, task: str, item: str, state: str, note: str, version: int | None) -> Reply:
    """Add a receipt."""
    workspace = call.open()
    updated = guidance.add_receipt(
        workspace.ledger,
        task=task,
        item=item,
        state=state,
        note=note,
        actor=current_actor("cli"),
        agent=agent_behind(),
        version=version,
    )
    from trainflow_tui.collaboration.generated_files import render_task

    reasons = []
    try:
        render_task(workspace, task)
    except OSError as problem:
        # The receipt is recorded all the same; saying that the call failed would let it be given twice.
        reasons.append(Reason("render-failed", f"RECEIPTS.md is not up to date: {problem}.", task, ATTENTION))
    lines = [f"{item} is {updated.state}."]
    return Reply(schema="receipt-add/1", body={"item": updated}, reasons=reasons, lines=lines)


@receipt.command("list", help="All receipts of a task.")
@click.argument("task")
@click.pass_obj
def list_(call: Call, task: str) -> Reply:
    """List receipts."""
    ledger = call.open().ledger
    tasks.get(ledger, task)
    found = [r for item in guidance.listed(ledger, task=task) for r in item.receipts]
    lines = [f"{r.at[:19]}  {r.item:12} v{r.version}  {r.state:9} {r.note}" for r in found] or ["No receipt yet."]
    return Reply(schema="receipt-list/1", body={"receipts": found}, lines=lines)
