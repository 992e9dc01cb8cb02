"""Live: followed logs, loss and throughput of the chosen one, and what the log says besides."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container

from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens import keys, views
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.charts import loss_chart, throughput_chart
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.words import _


class LiveScreen(ModeScreen):
    """Runs, two charts, events."""

    mode = "live"
    HINTS: ClassVar[dict[str, str]] = {"new": _("Add log")}
    BINDINGS: ClassVar[list[BindingType]] = [
        *keys.SCREEN_KEYS,
        Binding("v", "scale", _("Linear or log"), id="chart-scale"),
        Binding("space", "pause", _("Pause the charts"), id="chart-pause"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.chosen: str | None = None
        self.log_scale = False
        self.paused = False

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
        pane.show(views.runs(snapshot, compact=self.narrow))
        self.chosen = pane.selected or self.chosen
        self.show_run(snapshot)

    def show_run(self, snapshot: Snapshot) -> None:
        """The charts and events of the chosen run; a paused chart stays while data keeps arriving."""
        run = self._run(snapshot)
        self.query_one("#events", ListPane).show(views.run_events(run))
        if not self.paused:
            self.query_one("#loss", LineChart).show(loss_chart(run, self.app.history(run), log=self.log_scale))
            self.query_one("#throughput", LineChart).show(throughput_chart(run, self.app.history(run)))

    def _run(self, snapshot: Snapshot) -> RunStatus | None:
        return next((r for r in snapshot.runs if r.id == self.chosen), None)

    def action_scale(self) -> None:
        """Switch the loss axis between linear and logarithmic."""
        self.log_scale = not self.log_scale
        if self.shown is not None:
            self.show_run(self.shown)

    def action_pause(self) -> None:
        """Freeze or release the charts."""
        self.paused = not self.paused
        self.app.say_notice(_("Charts paused") if self.paused else "")
        if self.shown is not None:
            self.show_run(self.shown)

    def action_new(self) -> None:
        """Ask for a file."""
        self.open_prompt("command", "add log ")

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "runs" and self.shown is not None and event.key != self.chosen:
            self.chosen = event.key
            if event.key is not None:
                self.app.read_history([event.key])
            self.show_run(self.shown)
