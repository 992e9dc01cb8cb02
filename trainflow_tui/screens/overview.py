"""Overview: board, what waits, hot-spots, cluster and live together; on a small terminal the first two, and where the rest is."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.charts import loss_chart, throughput_chart
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import board, cluster, hotspots
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import MUTED, N_, _, line


class OverviewScreen(ModeScreen):
    """Six panes from 120×40; two at 80×24."""

    mode = "overview"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("New task")}

    def panes(self) -> ComposeResult:
        """Left: tasks and what waits. Right: live, hot-spots, cluster."""
        with Container(id="left"):
            yield ListPane(id="tasks")
            yield ListPane(id="waiting")
            yield SteadyText(id="hidden")
        with Container(id="right"):
            yield LineChart(id="loss")
            yield LineChart(id="throughput")
            yield ListPane(id="traces")
            yield ListPane(id="nodes")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill every pane."""
        self.query_one("#tasks", ListPane).show(board.tasks(snapshot, compact=True))
        self.query_one("#waiting", ListPane).show(board.waiting(snapshot))
        self.query_one("#traces", ListPane).show(hotspots.traces(snapshot, compact=True))
        self.query_one("#nodes", ListPane).show(cluster.nodes(snapshot, self.app.freshness, compact=True))
        self.query_one("#hidden", SteadyText).show(
            line(_("+4 panes hidden: 3 hot-spots, 4 cluster, 5 live; or a wider window"), MUTED)
        )
        run = snapshot.runs[0] if snapshot.runs else None
        log = self.app.remembered.log_scale
        self.query_one("#loss", LineChart).show(loss_chart(run, self.app.freshness, self.app.history(run), log=log))
        self.query_one("#throughput", LineChart).show(throughput_chart(run, self.app.history(run)))

    def action_new(self) -> None:
        """Make a task."""
        self.app.ask_new_task()

    def action_decide(self) -> None:
        """Open what is under the cursor, else what waits first."""
        pane = self.query_one("#waiting", ListPane)
        if pane.selected is not None:
            self._open(pane.selected)

    def _open(self, key: str) -> None:
        if "/" in key:
            self.app.ask_answer(key)
        else:
            self.app.ask_decision(key)

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        if event.pane.id == "waiting":
            self._open(event.key)
        elif event.pane.id == "tasks":
            self.app.choose_task(event.key)
        else:
            self.app.action_show_mode({"traces": "hotspots", "nodes": "cluster"}[str(event.pane.id)])
