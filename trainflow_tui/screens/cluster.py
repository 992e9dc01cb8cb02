"""Cluster: nodes with their worst signal, and every signal of the chosen one."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens import views
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import _


class ClusterScreen(ModeScreen):
    """Nodes above, signals below."""

    mode = "cluster"
    HINTS: ClassVar[dict[str, str]] = {"new": _("Check this node")}

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
        pane.show(views.nodes(snapshot))
        self._chosen = pane.selected or self._chosen
        self.query_one("#signals", ListPane).show(views.node_detail(snapshot, self._chosen))

    def action_new(self) -> None:
        """Check the machine that this runs on."""
        self.app.run_command("add node")

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "nodes" and self.shown is not None:
            self._chosen = event.key
            self.query_one("#signals", ListPane).show(views.node_detail(self.shown, event.key))
