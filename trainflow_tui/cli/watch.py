"""`trainflow watch`: the loop that collects, follows and checks on schedule, under the lease."""

from __future__ import annotations

import re
import shlex
import sys

import click

from trainflow_tui.cli.frame import BUSY, Call, Reason, Reply, Verb
from trainflow_tui.errors import UsageError


@click.command(
    cls=Verb, help="Collect, follow and check on schedule until it is ended. One process a workspace runs it."
)
@click.option("--with-parent", is_flag=True, hidden=True, help="End when standard input closes.")
@click.option("--unit", is_flag=True, help="Print a systemd user unit and a cron line, and do nothing.")
@click.option(
    "--poll-seconds", type=int, default=None, metavar="N", help="Between two scans of the human files, 1 to 3600."
)
@click.pass_obj
def watch(call: Call, with_parent: bool, unit: bool, poll_seconds: int | None) -> Reply:
    """Run the loop."""
    if unit:
        return Reply(
            schema="watch-unit/1",
            body={"unit": _unit(call), "cron": _cron(call)},
            lines=[*_unit(call).splitlines(), "", _cron(call)],
        )
    call.flags["poll_seconds"] = poll_seconds
    workspace = call.open(create=True)
    from trainflow_tui.watching import run_watch

    holder = run_watch(workspace, with_parent=with_parent)
    if holder is not None:
        return Reply(
            schema="watch/1",
            body={"holder": holder.owner, "since": holder.heartbeat_at},
            reasons=[Reason("watch-runs", f"A collector runs already: {holder.owner}.", holder.owner, BUSY)],
        )
    return Reply(schema="watch/1", lines=["The collector has ended."])


def _words(call: Call) -> list[str]:
    root = str(call.root)
    if not root.isprintable():
        raise UsageError(
            "workspace-name",
            "A unit or a cron line cannot hold this directory's name.",
            subject=root,
            next_step="Rename it.",
        )
    return [sys.executable, "-m", "trainflow_tui", "--workspace", root]


def _unit(call: Call) -> str:
    command = " ".join(_quoted(word) for word in [*_words(call), "watch"])
    return "\n".join(
        [
            "# ~/.config/systemd/user/trainflow.service   then: systemctl --user enable --now trainflow",
            "[Unit]",
            f"Description=trainflow collector of {str(call.root).replace('%', '%%')}",
            "[Service]",
            f"ExecStart={command}",
            "Restart=on-failure",
            "RestartSec=10",
            "[Install]",
            "WantedBy=default.target",
        ]
    )


def _quoted(word: str) -> str:
    """One word of ExecStart (systemd.service(5)): specifiers and variables are expanded inside quotes too."""
    if re.fullmatch(r"[A-Za-z0-9_./+=:@,-]+", word):
        return word
    return '"' + word.translate({ord("\\"): r"\\", ord('"'): r"\"", ord("%"): "%%", ord("$"): "$$"}) + '"'


def _cron(call: Call) -> str:
    command = shlex.join(_words(call)).replace("%", "\\%")  # crontab(5): a bare % ends the command
    return f"*/5 * * * * {command} --once --json >/dev/null   # where there is no systemd"
