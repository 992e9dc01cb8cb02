"""`trainflow doctor`: versions, file systems and optional parts of this installation."""

from __future__ import annotations

import importlib.util
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

import click

import trainflow_tui
from trainflow_tui.cli.frame import ATTENTION, Call, Reason, Reply, Verb
from trainflow_tui.cli.streams import is_terminal
from trainflow_tui.files import filesystem_kind
from trainflow_tui.ledger.schema import SCHEMA_VERSION
from trainflow_tui.ledger.sqlite_version import SQLITE_VERSION, is_safe
from trainflow_tui.workspace import is_workspace

_PARTS = ("textual", "rich", "asyncssh", "watchfiles", "duckdb", "apsw", "plotext", "numpy", "msgspec", "click")
_OPTIONAL = {"mcp": "agents", "apprise": "notify", "textual_serve": "web", "distributed": "dask"}


@click.command(cls=Verb, help="Versions, file systems, optional parts.")
@click.pass_obj
def doctor(call: Call) -> Reply:
    """Look at the installation."""
    reasons = []
    if not is_safe():
        reasons.append(
            Reason(
                "sqlite-old",
                f"SQLite {SQLITE_VERSION} can corrupt a shared WAL file; 3.51.3 or newer is needed.",
                "apsw",
                ATTENTION,
            )
        )
    found = filesystem_kind(call.root)
    body = {
        "trainflow": trainflow_tui.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()}",
        "sqlite": SQLITE_VERSION,
        "ledger_schema": SCHEMA_VERSION,
        "parts": {name: _version(name) for name in _PARTS},
        "optional": {extra: importlib.util.find_spec(name) is not None for name, extra in _OPTIONAL.items()},
        "workspace": {
            "path": str(call.root),
            "exists": is_workspace(call.root),
            "filesystem": found.name,
            "local": found.local,
        },
        "terminal": {"stdin": is_terminal(sys.stdin), "stdout": is_terminal(sys.stdout)},
    }
    lines = [f"{name}: {value}" for name, value in body.items()]
    if platform.system() == "Windows":
        reasons.append(Reason("windows", "Windows is supported through WSL.", "platform", ATTENTION))
    return Reply(schema="doctor/1", body=body, reasons=reasons, lines=lines)


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
