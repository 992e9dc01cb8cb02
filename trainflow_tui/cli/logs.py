"""`trainflow logs`: the program's own log."""

from __future__ import annotations

import click

from trainflow_tui import log
from trainflow_tui.cli.frame import Call, Reply, Verb
from trainflow_tui.workspace import log_directory


@click.command(cls=Verb, help="The program's own log, newest last.")
@click.option("--lines", "limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option(
    "--level",
    default=None,
    type=click.Choice(["info", "warning", "error", "critical"]),
    help="Only entries of this level.",
)
@click.pass_obj
def logs(call: Call, limit: int, level: str | None) -> Reply:
    """Show the log."""
    # Without opening the workspace: why that fails may stand here.
    entries = log.read(log_directory(call.root), limit=limit)
    kept = [e for e in entries if level is None or e.get("level") == level]
    lines = [
        f"{e.get('at', '')}  {e.get('level', ''):8} {e.get('part', '')}: {e.get('text', '')} {e.get('error', '')}"
        for e in kept
    ]
    return Reply(schema="logs/1", body={"entries": kept}, lines=lines or ["Nothing logged."])
