"""Hot-spots: ingested traces with their split, and the rows that make 90 % of the chosen one."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult

from trainflow_tui.screens import views
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, BAD, OK, WARN, _, joined, line, say


class HotspotsScreen(ModeScreen):
    """Traces above, the split in one line, hot-spots below."""

    mode = "hotspots"
    HINTS: ClassVar[dict[str, str]] = {"new": _("Add trace")}

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
        pane.show(views.traces(snapshot))
        if views.find_device(snapshot, self._chosen) is None:
            self._chosen = pane.selected
        self._show_device(snapshot)

    def _show_device(self, snapshot: Snapshot) -> None:
        self.query_one("#spots", ListPane).show(views.hotspots(snapshot, self._chosen))
        self.split.show(split_line(snapshot, self._chosen))

    def action_new(self) -> None:
        """Ask for a file."""
        self.open_prompt("command", "add trace ")

    @on(ListPane.Highlighted)
    def _highlighted(self, event: ListPane.Highlighted) -> None:
        if event.pane.id == "traces" and self.shown is not None:
            self._chosen = event.key
            self._show_device(self.shown)


def split_line(snapshot: Snapshot, key: str | None) -> Text:
    """Compute + exposed communication + exposed copy + idle = window, in percent of the window."""
    device = views.find_device(snapshot, key)
    if device is None:
        return line("")
    split = device["split"]
    window = max(1, int(split["total_ns"]))
    shares = {name: views.share(int(value), window) for name, value in split.items()}
    parts = (
        (_("compute {compute_ns}"), OK),
        (_("exposed comm {exposed_communication_ns} of {communication_ns}"), WARN),
        (_("exposed copy {exposed_memcpy_ns}"), ACCENT),
        (_("idle {idle_ns}"), BAD),
    )
    return joined(*(as_text(say(words, **shares), style) for words, style in parts), gap="  ")
