"""`trainflow node`: check this machine, parse a tool's saved output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from trainflow_tui.cli.frame import ATTENTION, Call, Noun, Reason, Reply
from trainflow_tui.cli.given import read_bytes
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.monitoring import status


@click.group(cls=Noun, help="Nodes: what they are and how they are.")
def node() -> None:
    """Nodes."""


@node.command(help="Look at this machine and keep what was seen. No accelerator is a normal answer.")
@click.pass_obj
def check(call: Call) -> Reply:
    """Check this machine."""
    from trainflow_tui.monitoring import node_checks

    workspace = call.open(create=True)
    found = node_checks.check(workspace, actor=current_actor("cli"))
    reasons = call.created_reason()
    for signal in found.signals:
        if signal.state in ("warning", "critical"):
            reasons.append(
                Reason(
                    f"node-{signal.check}",
                    f"{found.name}: {signal.check} {signal.state}: {signal.text}",
                    found.name or "",
                    ATTENTION,
                )
            )
    lines = [f"{found.name}"] + [f"  {s.check:22} {s.state:9} {s.text}" for s in found.signals]
    return Reply(schema="node-check/1", body=msgspec.to_builtins(found), reasons=reasons, lines=lines)


@node.command(help="Print what the parsers make of one tool's saved output. Keeps nothing.")
@click.argument("file")
@click.pass_obj
def parse(call: Call, file: str) -> Reply:
    """Parse a tool's output."""
    from trainflow_tui.monitoring.nodes.parse import node_parse_json, parse_tool_output

    document: dict[str, Any] = node_parse_json(
        parse_tool_output(read_bytes(file, limit=64 * 1024 * 1024), Path(file).name)
    )
    reasons = [
        Reason(str(w.get("code", "warning")), f"device {w.get('device')}: {w.get('code')}", file, ATTENTION)
        for w in document["warnings"]
    ]
    reasons += [
        Reason(str(e.get("code", "error")), f"{e.get('code')}: {e.get('bus_id') or ''}", file, ATTENTION)
        for e in document.get("errors", [])
    ]
    lines = [f"{document['tool']}: {len(document['devices'])} devices"]
    lines += ["  " + "  ".join(f"{k} {v}" for k, v in device.items()) for device in document["devices"]]
    return Reply(schema=str(document.pop("schema", "node-parse/1")), body=document, reasons=reasons, lines=lines)


@node.command("list", help="Registered nodes with their worst signal.")
@click.pass_obj
def list_(call: Call) -> Reply:
    """List nodes."""
    rows = status.nodes(call.open().ledger)
    lines = [f"{n.name:24} {n.checked_at[:19] or 'not checked yet'}" for n in rows] or ["No node: trainflow node check"]
    return Reply(schema="node-list/1", body={"nodes": rows}, lines=lines)
