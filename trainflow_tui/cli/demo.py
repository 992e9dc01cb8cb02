"""`trainflow demo`: a simulated job and agent in a workspace of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from trainflow_tui.cli.frame import USAGE, Call, Reply, Verb, failure
from trainflow_tui.cli.given import given_path
from trainflow_tui.cli.streams import is_terminal


@click.command(cls=Verb, help="Open the screen on a simulated job and agent, or play their story without one.")
@click.argument("directory", default="trainflow-demo", metavar="[DIR]")
@click.option("--headless", is_flag=True, help="Play the whole story in simulated time and end.")
@click.pass_obj
def demo(call: Call, directory: str, headless: bool) -> Reply | int:
    """Play the demo."""
    root = given_path(directory)
    if not headless:
        return open_demo(call, root)
    from trainflow_tui.demo.story import set_up

    set_up(root, whole=True)
    return Reply(
        schema="demo/1",
        body={"workspace": str(root), "simulated": True},
        lines=[
            f"The simulated story is in {root}.",
            f"trainflow --workspace {root} --once",
            f"trainflow --workspace {root}",
        ],
    )


def open_demo(call: Call, root: Path) -> Reply | int:
    """Set the demo up where it is not yet, start its children, open the screen, end them."""
    if not is_terminal(sys.stdin, sys.stdout, sys.stderr):  # Textual draws on standard error
        return failure(
            "no-terminal",
            "The demo's screen needs a terminal.",
            next_step="`trainflow demo DIR --headless` plays without one.",
            exit_code=USAGE,
        )
    from trainflow_tui.cli.screen import open_screen
    from trainflow_tui.demo.story import Children, is_demo, set_up

    if not is_demo(root):
        click.echo("Setting the simulated job and agent up…")
        set_up(root, whole=False)
    call.directory = str(root)
    children = Children(root)
    try:
        return open_screen(call)
    finally:
        children.end()
