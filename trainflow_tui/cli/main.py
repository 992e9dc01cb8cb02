"""The command `trainflow`: the table of nouns; without one, the screen or the headless refresh."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click

import trainflow_tui
from trainflow_tui.cli.frame import Call, LazyNouns, Reply, run
from trainflow_tui.cli.streams import hold_descriptors

NOUNS: Final = {
    "task": ("trainflow_tui.cli.task:task", "Create and list tasks, move them through their stages."),
    "guidance": ("trainflow_tui.cli.guidance:guidance", "What a human wants, item by item."),
    "receipt": ("trainflow_tui.cli.receipt:receipt", "What became of a guidance item."),
    "question": ("trainflow_tui.cli.question:question", "Questions in both directions."),
    "report": ("trainflow_tui.cli.report:report", "Reports with their evidence."),
    "approval": ("trainflow_tui.cli.approval:approval", "Ask for a decision, decide, use an approval once."),
    "trace": ("trainflow_tui.cli.trace:trace", "Profiler traces and their hot-spots."),
    "log": ("trainflow_tui.cli.log:log", "Training logs: read one, follow one."),
    "node": ("trainflow_tui.cli.node:node", "Check this machine, parse a tool's output."),
    "watch": ("trainflow_tui.cli.watch:watch", "Collect, follow and check on schedule."),
    "demo": ("trainflow_tui.cli.demo:demo", "A simulated job and agent to look at."),
    "ledger": ("trainflow_tui.cli.ledger:ledger", "Verify the chain of decisions, rebuild its tables."),
    "config": ("trainflow_tui.cli.config:config", "Each setting and where it came from."),
    "logs": ("trainflow_tui.cli.logs:logs", "The program's own log."),
    "doctor": ("trainflow_tui.cli.doctor:doctor", "Versions, file systems, optional parts."),
}


@click.group(
    cls=LazyNouns,
    nouns=NOUNS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The screen from which people run large-model training. Without a command it opens full-screen.",
)
@click.version_option(trainflow_tui.__version__, prog_name="trainflow")
@click.option("--once", is_flag=True, help="Collect, refresh and report once, without a screen.")
@click.option("--theme", metavar="NAME", default=None, help="dark, or ansi for the terminal's own colours.")
@click.pass_context
def root(context: click.Context, once: bool, theme: str | None) -> Reply | int | None:
    """Open the screen, or refresh once."""
    call: Call = context.ensure_object(Call)
    if theme is not None:
        call.flags["theme"] = theme
    if context.invoked_subcommand is not None:
        if once:
            raise click.UsageError("--once stands alone, without a command.")
        return None
    if once:
        from trainflow_tui.cli.once import once as refresh_once

        return refresh_once(call)
    from trainflow_tui.cli.screen import open_screen

    return open_screen(call)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one call and end the process with its exit code."""
    hold_descriptors()
    sys.exit(run(root, sys.argv[1:] if arguments is None else arguments))
