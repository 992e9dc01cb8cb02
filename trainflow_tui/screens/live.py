"""Live: followed logs, loss and throughput of the chosen one, and what the log says besides."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens import keys
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.charts import loss_chart, throughput_chart
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import live
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import N_, _, say


class LiveScreen(ModeScreen):
    """Runs, two charts, events."""

    mode = "live"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("Add log")}
    BINDINGS: ClassVar[list[BindingType]] = list(keys.LIVE_KEYS)

    def __init__(self) -> None:
        super().__init__()
        self.chosen: str | None = None
        self.paused = False
        self._paused_at = ""

    def panes(self) -> ComposeResult:
        """List, charts, list."""
        yield ListPane(id="runs")
        with Container(id="charts"):
            yield LineChart(id="loss")
            yield LineChart(id="throughput")
        yield ListPane(id="events")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill the lists and the charts."""
        pane = self.query_one("#runs", ListPane)
        pane.show(live.runs(snapshot, self.app.freshness, compact=self.narrow))
        self.chosen = pane.selected or self.chosen
        self.show_run(snapshot)

    def show_run(self, snapshot: Snapshot) -> None:
        """The charts and events of the chosen run; a paused chart stays while data keeps arriving."""
        run = self._run(snapshot)
        self.query_one("#events", ListPane).show(live.run_events(run, self.app.freshness))
        if self.paused and self._paused_at != self.app.moment:
            self.paused = False  # a picture of now is none of the past
        if not self.paused:
            log, points = self.app.remembered.log_scale, self.app.history(run)
            self.query_one("#loss", LineChart).show(loss_chart(run, self.app.freshness, points, log=log))
            self.query_one("#throughput", LineChart).show(throughput_chart(run, points))

    def _run(self, snapshot: Snapshot) -> RunStatus | None:
        return next((r for r in snapshot.runs if r.id == self.chosen), None)

    def action_scale(self) -> None:
        """Switch the loss axis between linear and logarithmic."""
        self.app.remembered.log_scale = not self.app.remembered.log_scale
        self.app.remember()
        if self.shown is not None:
            self.show_run(self.shown)

    def action_pause(self) -> None:
        """Freeze or release the charts."""
        self.paused, self._paused_at = not self.paused, self.app.moment
        if self.paused:
            for chart in self.query(LineChart):
                if chart.view is not None:
                    chart.show(replace(chart.view, as_of=(say(_("Charts paused")),)))
        elif self.shown is not None:
            self.show_run(self.shown)

    def action_new(self) -> None:
        """Ask for a file."""
        if not self.app.refused():
            self.open_prompt("command", "add log ")

    def go_to(self, key: str) -> None:
        """Put the cursor on a run."""
        self.query_one("#runs", ListPane).go_to(key)

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        if event.pane.id == "runs":
            self.app.read_detail("runs", event.key)

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "runs" and self.shown is not None and event.key != self.chosen:
            self.chosen = event.key
            if event.key is not None:
                self.app.read_history([event.key])
            self.show_run(self.shown)
