"""Cluster: nodes with their worst signal, and every signal of the chosen one."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import cluster
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import N_


class ClusterScreen(ModeScreen):
    """Nodes above, signals below."""

    mode = "cluster"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("Check this node")}

    def __init__(self) -> None:
        super().__init__()
        self._chosen: str | None = None

    def panes(self) -> ComposeResult:
        """Two lists."""
        yield ListPane(id="nodes")
        yield ListPane(id="signals")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill both lists."""
        pane = self.query_one("#nodes", ListPane)
        pane.show(cluster.nodes(snapshot, self.app.freshness))
        self._chosen = pane.selected or self._chosen
        self._show_signals(snapshot)

    def _show_signals(self, snapshot: Snapshot) -> None:
        view = cluster.node_detail(snapshot, self._chosen, self.app.freshness)
        self.query_one("#signals", ListPane).show(view)

    def action_new(self) -> None:
        """Check the machine that this runs on."""
        self.app.run_command("add node")

    def go_to(self, node: str) -> None:
        """Put the cursor on a node."""
        self.query_one("#nodes", ListPane).go_to(node)

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        if self._chosen is not None:
            self.app.read_detail("nodes", self._chosen)

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "nodes" and self.shown is not None:
            self._chosen = event.key
            self._show_signals(self.shown)
