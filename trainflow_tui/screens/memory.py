"""What the screens look like, kept while they run: focus, zoom, sorting and filter of each pane, earlier input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from trainflow_tui.screens import view_state
from trainflow_tui.screens.view_state import ModeState, PaneState, ViewState


@dataclass
class ModeMemory:
    """One screen: the ids of the focused and of the zoomed part."""

    focused: str = ""
    zoomed: str = ""


@dataclass
class PaneMemory:
    """One list: its order and its filter."""

    sort: str = ""
    reverse: bool = False
    filter: str = ""
    is_regex: bool = False


@dataclass
class Memory:
    """Everything that comes back at the next start."""

    mode: str = "overview"
    task: str = ""
    log_scale: bool = False
    modes: dict[str, ModeMemory] = field(default_factory=dict)
    panes: dict[str, PaneMemory] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, state: ViewState) -> Self:
        """What was stored."""
        modes = {name: ModeMemory(m.focused, m.zoomed) for name, m in state.modes.items()}
        panes = {
            f"{name}.{id}": PaneMemory(p.sort_key, p.reverse, p.filter, p.filter_is_regex)
            for name, m in state.modes.items()
            for id, p in m.panes.items()
        }
        newest_first = list(reversed(state.filters)), list(reversed(state.commands))
        return cls(state.mode, state.task, state.chart == "log", modes, panes, *newest_first)

    def state(self) -> ViewState:
        """What is stored."""
        panes: dict[str, dict[str, PaneState]] = {}
        for name, p in self.panes.items():
            mode, _dot, id = name.partition(".")
            kept = PaneState(sort_key=p.sort, reverse=p.reverse, filter=p.filter, filter_is_regex=p.is_regex)
            if kept != PaneState():
                panes.setdefault(mode, {})[id] = kept
        modes = {
            name: ModeState(focused=m.focused, zoomed=m.zoomed, panes=panes.get(name, {}))
            for name, m in self.modes.items()
        }
        state = ViewState(mode=self.mode, task=self.task, chart="log" if self.log_scale else "linear", modes=modes)
        for words in reversed(self.filters):
            state = state.with_filter(words)
        for words in reversed(self.commands):
            state = state.with_command(words)
        return state

    def mode_view(self, mode: str) -> ModeMemory:
        """How a screen looked."""
        return self.modes.get(mode, ModeMemory())

    def pane_view(self, pane: str) -> PaneMemory:
        """How a list looked; `pane` is `mode.id`."""
        return self.panes.get(pane, PaneMemory())

    def take(self, mode: str, view: ModeMemory, panes: dict[str, PaneMemory]) -> None:
        """Remember a screen and its lists."""
        self.modes[mode] = view
        self.panes |= panes

    def history(self, purpose: str) -> Sequence[str]:
        """Earlier input of a kind, the newest first."""
        return list(self.commands if purpose == "command" else self.filters)

    def add_history(self, purpose: str, text: str) -> None:
        """Remember a line that was sent; one that was there already becomes the newest."""
        lines = self.commands if purpose == "command" else self.filters
        if text.strip():
            if text in lines:
                lines.remove(text)
            lines.insert(0, text)
            del lines[view_state.MAX_COMMANDS :]
