"""`trainflow config`: each setting, its value and where it came from."""

from __future__ import annotations

import click

from trainflow_tui import config as settings_module
from trainflow_tui.cli.frame import Call, Reply, Verb
from trainflow_tui.workspace import is_workspace


@click.command(cls=Verb, help="Each setting, its value and where it came from.")
@click.pass_obj
def config(call: Call) -> Reply:
    """Show the settings."""
    root = call.root
    _, found = settings_module.load(workspace=root, flags=call.flags)
    user_file = settings_module.user_file()
    files = {"user": str(user_file) if user_file else None, "workspace": str(root / settings_module.FILE_NAME)}
    lines = [f"{s.key:14} {s.value!s:10} {s.origin}" for s in found]
    lines += [f"workspace      {root}{'' if is_workspace(root) else ' (none yet)'}"]
    return Reply(schema="config/1", body={"settings": found, "workspace": str(root), "files": files}, lines=lines)
