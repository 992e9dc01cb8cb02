"""`trainflow guidance`: add and list what a human wants."""

from __future__ import annotations

import click

from trainflow_tui.cli.frame import Call, Noun, Reply
from trainflow_tui.cli.given import read_text
from trainflow_tui.collaboration import guidance as rules
from trainflow_tui.collaboration import tasks
from trainflow_tui.collaboration.identity import agent_behind, current_actor
from trainflow_tui.errors import RefusedError


@click.group(cls=Noun, help="Guidance: what a human wants, item by item.")
def guidance() -> None:
    """Guidance."""


@guidance.command(help="Add an item, as a line in GUIDANCE.md would. Refused for agents: guidance is a human's word.")
@click.argument("task")
@click.option("--text", default=None, metavar="TEXT")
@click.option("--file", default=None, metavar="FILE")
@click.pass_obj
def add(call: Call, task: str, text: str | None, file: str | None) -> Reply:
    """Add guidance."""
    words = read_text(text, file, what="the guidance").strip()
    if not words:
        raise click.UsageError("The guidance is empty.")
    agent = agent_behind()
    if agent:
        raise RefusedError(
            "human-only",
            f"Guidance is a human's word: {agent}.",
            subject=task,
            next_step="Ask with `trainflow question ask`.",
        )
    from trainflow_tui import refresh

    workspace = call.open()
    item = refresh.add_guidance(workspace, task=task, text=words, actor=current_actor("cli"))
    return Reply(
        schema="guidance-add/1", body={"task": task, "item": item, "state": "recorded"}, lines=[f"{item} is recorded."]
    )


@guidance.command("list", help="Items with their state and receipts. An agent reads this before each step.")
@click.argument("task", required=False)
@click.pass_obj
def list_(call: Call, task: str | None) -> Reply:
    """List guidance."""
    ledger = call.open().ledger
    if task is not None:
        tasks.get(ledger, task)
    found = rules.listed(ledger, task=task)
    lines = [
        f"{i.id:12} v{i.version:<3} {'removed' if i.removed_at else i.state:10} {i.heading or i.text}" for i in found
    ] or ["No guidance."]
    return Reply(schema="guidance-list/1", body={"items": found}, lines=lines)
