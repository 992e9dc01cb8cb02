"""Hot-spots: ingested traces with their split, and the rows that make 90 % of the chosen one."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views import hotspots
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import N_


class HotspotsScreen(ModeScreen):
    """Traces above, the split in one line, hot-spots below."""

    mode = "hotspots"
    HINTS: ClassVar[dict[str, str]] = {"new": N_("Add trace")}

    def __init__(self) -> None:
        super().__init__()
        self.split = SteadyText(id="split")
        self._chosen: str | None = None

    def panes(self) -> ComposeResult:
        """List, line, list."""
        yield ListPane(id="traces")
        yield self.split
        yield ListPane(id="spots")

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Fill both lists and the line."""
        pane = self.query_one("#traces", ListPane)
        pane.show(hotspots.traces(snapshot))
        if hotspots.find_device(snapshot, self._chosen) is None:
            self._chosen = pane.selected
        self._show_device(snapshot)

    def _show_device(self, snapshot: Snapshot) -> None:
        self.query_one("#spots", ListPane).show(hotspots.hotspots(snapshot, self._chosen))
        self.split.show(hotspots.split_line(snapshot, self._chosen))

    def action_new(self) -> None:
        """Ask for a file."""
        if not self.app.refused():
            self.open_prompt("command", "add trace ")

    def go_to(self, key: str) -> None:
        """Put the cursor on the first device of a trace."""
        self.query_one("#traces", ListPane).go_to(key)

    @on(ListPane.Opened)
    def _opened(self, event: ListPane.Opened) -> None:
        self.app.read_detail(str(event.pane.id), event.key)

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "traces" and self.shown is not None:
            self._chosen = event.key
            self._show_device(self.shown)
