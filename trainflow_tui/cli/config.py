"""`trainflow config`: each setting, its value and where it came from; where files are looked for; whether a file is good."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from typing import Any, Final

import click

from trainflow_tui import config as settings_module
from trainflow_tui.cli.frame import Call, Noun, Reason, Reply
from trainflow_tui.cli.given import given_path
from trainflow_tui.errors import UsageError
from trainflow_tui.workspace import is_workspace

PREFIX: Final = "TRAINFLOW_"
OTHER_VARIABLES: Final = {
    "TRAINFLOW_WORKSPACE": "The workspace's directory, where --workspace is not given.",
    "TRAINFLOW_AGENT": "The name of the agent that calls. Such a call may not decide, answer for a person, or write guidance.",
}
"""Variables of this program that are no setting."""


@click.group(cls=Noun, invoke_without_command=True, help="Each setting, its value and where it came from.")
@click.pass_context
def config(context: click.Context) -> Reply | None:
    """Show the settings."""
    call: Call = context.obj
    if context.invoked_subcommand is not None:
        return None
    root = call.root
    _, found = settings_module.load(workspace=root, flags=call.flags)
    width = max(len(_plain(s.value)) for s in found)
    lines = [f"{s.key:14} {_plain(s.value):{width}}  {s.origin}" for s in found]
    lines += [f"{'workspace':14} {root}{'' if is_workspace(root) else ' (none yet)'}"]
    files = {place: path for place, path, _ in _files(call)}
    body = {"settings": found, "workspace": str(root), "files": files}
    return Reply(schema="config/1", body=body, reasons=strangers(os.environ), lines=lines)


def _plain(value: object) -> str:
    """A value as a person writes it in a file."""
    if isinstance(value, dict):
        return "; ".join(f"{name} = {keys}" for name, keys in value.items()) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def strangers(environment: Mapping[str, str]) -> list[Reason]:
    """A reason for each variable that has our prefix and sets nothing, with the one that was perhaps meant."""
    known = [*OTHER_VARIABLES, *(PREFIX + field.key.upper() for field in settings_module.FIELDS)]
    reasons = []
    for name in sorted(environment):
        if name.startswith(PREFIX) and name.upper() not in known:
            near = difflib.get_close_matches(name.upper(), known, 1)
            hint = f" {near[0]} is one." if near else ""
            reasons.append(Reason("variable-unknown", f"{name} is no setting and does nothing.{hint}", name, 0))
    return reasons


def _files(call: Call) -> list[tuple[str, str | None, bool]]:
    """Where settings are looked for, the weakest first: place, path, whether it is there."""
    user = settings_module.user_file()
    workspace = call.root / settings_module.FILE_NAME
    return [
        ("user", str(user) if user else None, bool(user and user.exists())),
        ("workspace", str(workspace), workspace.exists()),
    ]


@config.command(help="Where files of settings are looked for. The workspace's file wins over the user's.")
@click.pass_obj
def path(call: Call) -> Reply:
    """Name the files."""
    found = [{"place": place, "path": where, "exists": there} for place, where, there in _files(call)]
    lines = [f"{f['place']:10} {f['path'] or 'no home directory'}{'' if f['exists'] else '  (none)'}" for f in found]
    return Reply(schema="config-path/1", body={"files": found}, lines=lines)


@config.command(help="Read one file of settings and say what is wrong with it. Changes nothing.")
@click.argument("file")
@click.pass_obj
def check(call: Call, file: str) -> Reply:
    """Check a file."""
    where = given_path(file)
    if not where.exists():
        raise UsageError("settings-missing", f"There is no file {where}.", subject=str(where))
    found: dict[str, Any] = {
        key: settings_module.checked(key, value, str(where)) for key, value in settings_module.read_file(where).items()
    }
    if found.get("keys"):
        from trainflow_tui.screens.keys import checked_keymap  # the one rule about keys; it loads Textual's bindings

        try:
            checked_keymap(found["keys"])
        except UsageError as problem:
            text = f"{where}: {problem.message}"
            raise UsageError(problem.code, text, subject=problem.subject, next_step=problem.next_step) from problem
    lines = [f"{key} = {_plain(value)}" for key, value in found.items()]
    count = f"{len(found)} setting{'' if len(found) == 1 else 's'}"
    body = {"file": str(where), "settings": found}
    return Reply(schema="config-check/1", body=body, lines=[*lines, f"{where} is good: {count}."])
