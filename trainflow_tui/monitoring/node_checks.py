"""Checks of nodes as rows of the ledger: which nodes there are, when each was looked at, what was seen."""

from __future__ import annotations

import socket
from datetime import datetime, timedelta

from trainflow_tui.clock import from_iso
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.nodes.check import check_this_node
from trainflow_tui.monitoring.nodes.records import NodeStatus
from trainflow_tui.workspace import Workspace

THIS_MACHINE = "local"


def check(workspace: Workspace, *, actor: Actor) -> NodeStatus:
    """Look at this machine and keep what was seen; the first look registers it."""
    found = check_this_node(clock=workspace.clock)
    name = found.name or socket.gethostname()
    with workspace.ledger.transaction() as transaction:
        if not transaction.query("SELECT 1 FROM node WHERE name = ?", (name,)):
            transaction.append("node.added", name, {"target": THIS_MACHINE}, actor=actor)
        status.store_node(transaction, workspace.ledger, name, found, keep_days=workspace.settings.metrics_days)
    return found


def check_due(workspace: Workspace) -> int:
    """Look again at every registered node whose last look is older than the setting; returns how many."""
    count = 0
    oldest = workspace.clock.now() - timedelta(seconds=workspace.settings.node_seconds)
    for node in status.nodes(workspace.ledger):
        if node.target == THIS_MACHINE and _is_due(node.checked_at, workspace.clock.now(), oldest):
            found = check_this_node(clock=workspace.clock)
            # Percentages move with every look; a screen is told when a verdict has changed, so that it is still while none has.
            before = {s["check"]: s["state"] for s in node.status.get("signals", [])}
            tell = before != {s.check: s.state for s in found.signals}
            with workspace.ledger.transaction() as transaction:
                days = workspace.settings.metrics_days
                status.store_node(transaction, workspace.ledger, node.name, found, tell=tell, keep_days=days)
            count += 1
    return count


def _is_due(checked_at: str, now: datetime, oldest: datetime) -> bool:
    # A look in the future: the clock was set back, and waiting for that time may take years.
    return not checked_at or not oldest < from_iso(checked_at) <= now
