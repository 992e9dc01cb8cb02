"""The bare command: check that there is a terminal and a workspace, then open the screen."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading

import click

from trainflow_tui.cli.frame import USAGE, Call, Reply, failure
from trainflow_tui.cli.streams import is_terminal, let_go_of_streams
from trainflow_tui.web import WEB_DRIVER
from trainflow_tui.workspace import is_workspace


def open_screen(call: Call) -> Reply | int:
    """Run the full-screen application; returns its exit code."""
    if call.json:
        return failure(
            "no-screen-in-json",
            "The screen does not print JSON.",
            next_step="`trainflow --once --json` does.",
            exit_code=USAGE,
        )
    in_browser = os.environ.get("TEXTUAL_DRIVER") == WEB_DRIVER
    if not in_browser and not is_terminal(sys.stdin, sys.stdout, sys.stderr):  # Textual draws on standard error
        return failure(
            "no-terminal",
            "The screen needs a terminal.",
            next_step="`trainflow --once` reports without one.",
            exit_code=USAGE,
        )
    if in_browser:
        _hang_up_with_the_server()
    elif not is_workspace(call.root):
        chosen = _first_steps(call)
        if chosen is not None:
            return chosen
    workspace = call.open(create=not in_browser)
    from trainflow_tui.screens import keys
    from trainflow_tui.screens.desk import Desk

    keys.checked_keymap(workspace.settings.keys)  # before the screen opens: a wrong key is told at the prompt
    desk = Desk(workspace)
    from trainflow_tui.app import TrainflowApp

    app = TrainflowApp(desk, theme=workspace.settings.theme, readonly=workspace.settings.readonly)
    code = app.run(mouse=workspace.settings.mouse)
    code = app.return_code or code or 0
    if code > 128:
        let_go_of_streams()  # the terminal may be gone; Python would make 120 of the exit code for what it cannot flush
    return code


def _hang_up_with_the_server() -> None:
    """Take the end of `trainflow serve`, however it came, for what it is: the line has been cut."""

    def wait() -> None:
        line = select.poll()
        line.register(0, 0)  # a hang-up is told unasked; what is typed stays for the driver to read
        line.poll()
        os.kill(os.getpid(), signal.SIGHUP)

    threading.Thread(target=wait, name="hang-up", daemon=True).start()


def _first_steps(call: Call) -> Reply | int | None:
    """A new directory: make a workspace here, open another, or look at the demo. None goes on here."""
    click.echo(f"There is no workspace in {click.format_filename(str(call.root))}.")
    click.echo("  c  make one here\n  o  open another directory\n  d  look at the demo, in ./.demo\n  q  leave")
    while True:
        key = click.getchar().lower()
        if key == "c":
            return None
        if key == "o":
            call.directory = str(click.prompt("Directory", type=click.Path(exists=True, file_okay=False)))
            if is_workspace(call.root):
                return None
            click.echo("There is none either. c makes one there, q leaves.")
        elif key == "d":
            from trainflow_tui.cli.demo import open_demo

            return open_demo(call, call.root / ".demo")
        elif key in ("q", "\x1b", "\x03", "\x04"):
            return 0
