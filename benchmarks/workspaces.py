"""Workspaces to measure on."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.measure import TRAINFLOW


def demo(root: Path) -> Path:
    """The demo's whole story, played at once."""
    subprocess.run([*TRAINFLOW, "demo", str(root), "--headless"], stdout=subprocess.DEVNULL, check=True)
    return root


def thousand_nodes(root: Path) -> Path:
    """A cluster of 1,000 nodes of which each was looked at."""
    from trainflow_tui.clock import SystemClock
    from trainflow_tui.ledger.events import Actor
    from trainflow_tui.monitoring import status
    from trainflow_tui.workspace import Workspace

    root.mkdir(mode=0o700)
    workspace = Workspace.open(root, create=True, clock=SystemClock())
    signal = {"check": "memory", "state": "ok", "value": 61.0, "unit": "%", "text": "61.0 % of the memory is available"}
    seen = {
        "mem_total_bytes": 1 << 40,
        "mem_available_bytes": 671 << 30,
        "load": {"one_minute": 42.1},
        "signals": [signal],
    }
    with workspace.ledger.transaction() as transaction:
        for number in range(1000):
            name = f"node-{number:04}"
            transaction.append("node.added", name, {"target": "elsewhere"}, actor=Actor(door="cli"))
            status.store_node(transaction, workspace.ledger, name, seen)
    workspace.close()
    return root
