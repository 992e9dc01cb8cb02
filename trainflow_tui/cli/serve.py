"""`trainflow serve`: the screen in a browser on this machine, or on another through an SSH port forward."""

from __future__ import annotations

import asyncio
import os
import shlex
import socket
import sys
from types import ModuleType

import click

from trainflow_tui.cli.frame import ATTENTION, Call, Reply, Verb, print_reply
from trainflow_tui.errors import UsageError


@click.command(cls=Verb, help="Show the screen in a browser, read-only, until ctrl+c. Needs the extra `web`.")
@click.option("--port", type=int, default=0, metavar="N", help="1024 to 65535; without it a free one is taken.")
@click.option("--read-write", is_flag=True, help="Let the browser write and decide, as the screen in a terminal does.")
@click.pass_obj
def serve(call: Call, port: int, read_write: bool) -> int:
    """Run the server."""
    if port and not 1024 <= port <= 65535:
        raise UsageError("port", f"--port {port}: expected 0, or 1024 to 65535.", subject=str(port))
    if read_write and call.flags.get("readonly"):
        raise UsageError("read-write", "--read-write and --readonly exclude each other.", next_step="Leave one out.")
    if not read_write:
        call.flags["readonly"] = True
    server = _server()
    workspace = call.open()
    root, readonly = workspace.root, workspace.settings.readonly
    call.close()  # each screen opens it for itself

    def announce(url: str, port: int) -> bool:
        body = {"url": url, "port": port, "pid": os.getpid(), "readonly": readonly}
        reply = Reply(schema="serve/1", body=body, lines=_lines(url, port, readonly=readonly))
        return print_reply(reply, as_json=call.wants_json) == 0

    own = [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), *(["--readonly"] if readonly else [])]
    announced = asyncio.run(server.serve(own, title=f"trainflow {root.name}", port=port, announce=announce))
    return 0 if announced else ATTENTION


def _server() -> ModuleType:
    try:
        from trainflow_tui.web import server
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] not in ("textual_serve", "aiohttp"):
            raise
        raise UsageError(
            "web-extra-missing",
            "The screen in a browser needs the extra `web`.",
            subject=problem.name or "",
            next_step="Install it: pip install 'trainflow-tui[web]'",
        ) from problem
    return server


def _lines(url: str, port: int, *, readonly: bool) -> list[str]:
    forward = f"ssh -L {port}:127.0.0.1:{port} {shlex.quote(socket.gethostname())}"
    rights = "It is read-only." if readonly else "Whoever holds this address can write and decide as you."
    return [
        "Open this address in a browser. It opens once:",
        f"  {url}",
        "From another machine, first type there:",
        f"  {forward}",
        f"{rights} ctrl+c ends it, with every screen that it opened.",
    ]
