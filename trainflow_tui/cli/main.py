"""The command `trainflow`: the table of nouns; without one, the screen or the headless refresh."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, NoReturn

import click

import trainflow_tui
from trainflow_tui.cli.frame import ATTENTION, Call, LazyNouns, Reply, run
from trainflow_tui.cli.streams import emit, hold_descriptors

NOUNS: Final = {
    "task": ("trainflow_tui.cli.task:task", "Create and list tasks, move them through their stages."),
    "guidance": ("trainflow_tui.cli.guidance:guidance", "What a human wants, item by item."),
    "receipt": ("trainflow_tui.cli.receipt:receipt", "What became of a guidance item."),
    "question": ("trainflow_tui.cli.question:question", "Questions in both directions."),
    "report": ("trainflow_tui.cli.report:report", "Reports with their evidence."),
    "approval": ("trainflow_tui.cli.approval:approval", "Ask for a decision, decide, use an approval once."),
    "trace": ("trainflow_tui.cli.trace:trace", "Profiler traces and their hot-spots."),
    "log": ("trainflow_tui.cli.log:log", "Training logs: read one, follow one."),
    "metrics": ("trainflow_tui.cli.metrics:metrics", "What is kept of the followed logs; merge it, drop what is old."),
    "node": ("trainflow_tui.cli.node:node", "Check this machine, parse a tool's output."),
    "watch": ("trainflow_tui.cli.watch:watch", "Collect, follow and check on schedule."),
    "serve": ("trainflow_tui.cli.serve:serve", "Show the screen in a browser."),
    "demo": ("trainflow_tui.cli.demo:demo", "A simulated job and agent to look at."),
    "replay": ("trainflow_tui.cli.replay:replay", "What was known at an earlier moment; changes nothing."),
    "ledger": ("trainflow_tui.cli.ledger:ledger", "Verify the chain of decisions, rebuild its tables."),
    "config": ("trainflow_tui.cli.config:config", "Each setting and where it came from; check a file."),
    "logs": ("trainflow_tui.cli.logs:logs", "The program's own log."),
    "doctor": ("trainflow_tui.cli.doctor:doctor", "Versions, file systems, optional parts."),
    "help": ("trainflow_tui.cli.help:help_", "Pages to read: a topic, or a command."),
    "completion": ("trainflow_tui.cli.completion:completion", "A script that completes words in your shell."),
}


@click.group(
    cls=LazyNouns,
    nouns=NOUNS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="The screen from which people run large-model training. Without a command it opens full-screen.",
)
@click.option("--version", is_flag=True, help="Print name and version; with --json also those of what it stands on.")
@click.option("--once", is_flag=True, help="Collect, refresh and report once, without a screen.")
@click.option("--theme", metavar="NAME", default=None, help="dark, light, ansi, high-contrast or colour-blind.")
@click.option("--glyphs", metavar="NAME", default=None, help="unicode, or ascii for fonts that lack the signs.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal.")
@click.pass_context
def root(
    context: click.Context, version: bool, once: bool, theme: str | None, glyphs: str | None, no_mouse: bool
) -> Reply | int | None:
    """Open the screen, or refresh once."""
    call: Call = context.ensure_object(Call)
    call.flags |= {"theme": theme, "glyphs": glyphs, "mouse": False if no_mouse else None}
    if context.invoked_subcommand is not None:
        if once or version:
            raise click.UsageError(f"--{'once' if once else 'version'} stands alone, without a command.")
        return None
    if version:
        return print_version(call)
    if once:
        from trainflow_tui.cli.once import once as refresh_once

        return refresh_once(call)
    from trainflow_tui.cli.screen import open_screen

    return open_screen(call)


def print_version(call: Call) -> Reply | int:
    """Name and version as a line, to a pipe too; with --json an object with the versions that matter in a report of a fault."""
    if not call.json:
        return 0 if emit(f"trainflow {trainflow_tui.__version__}\n", "") else ATTENTION
    import platform
    from importlib.metadata import version

    from trainflow_tui.ledger.sqlite_version import SQLITE_VERSION

    body = {"name": "trainflow", "version": trainflow_tui.__version__, "python": platform.python_version()}
    body |= {"sqlite": SQLITE_VERSION, "textual": version("textual"), "duckdb": version("duckdb")}
    return Reply(schema="version/1", body=body)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one call and end the process with its exit code."""
    hold_descriptors()
    sys.exit(run(root, sys.argv[1:] if arguments is None else arguments))
