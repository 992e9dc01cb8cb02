"""What every mode's screen has: the header strip, the command and filter line, the footer, and how snapshots reach its panes."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input

from trainflow_tui.clock import local_clock_time
from trainflow_tui.screens import keys
from trainflow_tui.screens.host import Host
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, WARN, _, joined, line, say

MODE_NAMES = {
    "overview": ("0", _("Overview")),
    "board": ("1", _("Board")),
    "questions": ("2", _("Questions")),
    "hotspots": ("3", _("Hot-spots")),
    "cluster": ("4", _("Cluster")),
    "live": ("5", _("Live")),
}
SMALLEST = (60, 16)
WIDE = 110


class PromptLine(Input):
    """The one input line: a filter with live preview, or a command."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "cancel", _("Cancel"), id="prompt-cancel")]

    def __init__(self) -> None:
        super().__init__(id="prompt", compact=True, select_on_focus=False)
        self.cursor_blink = False
        self.purpose = ""
        self.before = ""

    def action_cancel(self) -> None:
        """Close it and restore what was before."""
        screen = self.screen
        if isinstance(screen, ModeScreen):
            screen.close_prompt(restore=True)


class ModeScreen(Screen[None]):
    """Base of the six screens. A subclass composes panes in `panes` and fills them in `show_snapshot`."""

    mode: ClassVar[str] = ""
    BINDINGS: ClassVar[list[BindingType]] = list(keys.SCREEN_KEYS)
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (SMALLEST[0], "-narrow"), (WIDE, "-wide"), (160, "-broad")]  # noqa: RUF012  Textual's own form
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (SMALLEST[1], "-short"), (34, "-tall")]  # noqa: RUF012

    app: Host

    def __init__(self) -> None:
        super().__init__()
        self.header = SteadyText(id="header")
        self.tabs = SteadyText(id="tabs")
        self.footer = SteadyText(id="footer")
        self.notice = SteadyText(id="too-small")
        self.prompt = PromptLine()
        self.shown: Snapshot | None = None
        self._was_narrow = False

    def panes(self) -> ComposeResult:
        """The widgets between header and footer."""
        yield from ()

    def show_snapshot(self, snapshot: Snapshot) -> None:
        """Bring every pane up to date."""

    def compose(self) -> ComposeResult:
        """Header, tabs, panes, prompt, footer; and the notice that takes their place on a terminal that is too small."""
        yield self.header
        yield self.tabs
        with Container(id="body"):
            yield from self.panes()
        yield self.prompt
        yield self.footer
        yield self.notice

    def on_mount(self) -> None:
        """Paint what is stored already."""
        self._was_narrow = self.narrow
        self.prompt.display = False
        self.tabs.show(self._tab_line())
        self.footer.show(self._footer_line())
        self.notice.show(
            as_text(
                say(
                    _("The screen needs {w}×{h} cells. Make the window larger, or q to quit."),
                    w=SMALLEST[0],
                    h=SMALLEST[1],
                ),
                WARN,
            )
        )
        self.refresh_from_app()

    @property
    def narrow(self) -> bool:
        """Whether lists leave their least wanted columns out."""
        return self.app.size.width < WIDE

    def on_resize(self) -> None:
        """Fit what depends on the width."""
        self.footer.show(self._footer_line())
        if self.narrow != self._was_narrow:
            self._was_narrow = self.narrow
            self.shown = None
            self.refresh_from_app()

    def on_screen_resume(self) -> None:
        """Catch up on what changed while another screen was shown."""
        self.refresh_from_app()

    def refresh_from_app(self) -> None:
        """Show the newest snapshot if it is not shown yet."""
        snapshot = self.app.snapshot
        if self.is_mounted and snapshot is not None and snapshot is not self.shown:
            self.shown = snapshot
            with self.app.batch_update():
                self.header.show(self._header_line(snapshot))
                self.tabs.show(self._tab_line())
                self.show_snapshot(snapshot)

    def _header_line(self, snapshot: Snapshot) -> Text:
        collector = snapshot.collector
        mode = {"watching": _("watching"), "polling": _("polling")}.get(collector.mode, _("collector off"))
        collected = _("{mode}, collected {at}") if collector.scanned_at else _("{mode}, nothing collected yet")
        age = say(collected, mode=mode, at=local_clock_time(collector.scanned_at) if collector.scanned_at else "")
        edited = [f"{f.task}/{f.name}" for f in snapshot.files if f.state == "editing"]
        task = self.app.current_task
        waits = len(snapshot.pending) + len(snapshot.asked)
        return joined(
            as_text(say(" trainflow"), "bold"),
            line(snapshot.name, ACCENT),
            line(f"▸ {task}") if task else Text(),
            as_text(say(_("!{n} waiting"), n=waits), BAD) if waits else Text(),
            line(_("READ-ONLY"), "bold yellow") if self.app.readonly else Text(),
            line(self.app.notice, WARN) if self.app.notice else Text(),
            as_text(say(_("✎ {file} edited, not yet collected"), file=edited[0]), WARN) if edited else Text(),
            as_text(age, MUTED if collector.running else WARN),
            gap="  ",
        )

    def _tab_line(self) -> Text:
        parts = []
        for name, (key, title) in MODE_NAMES.items():
            style = "bold reverse" if name == self.mode else MUTED
            # Narrow enough that all six fit the smallest screen.
            parts.append(as_text(say("{key} {title}", key=key, title=title), style))
        return joined(*parts)

    def _footer_line(self) -> Text:
        known = {b.id: b for b in [*keys.SCREEN_KEYS, *keys.APP_KEYS] if isinstance(b, Binding)}
        shown = [known[name] for name in keys.FOOTER]
        parts: dict[str, Text] = {}
        room = self.app.size.width
        for binding in shown:
            words = self.describe(binding)
            part = joined(line(binding.key_display or binding.key, ACCENT), line(words))
            # Whole words only, and none twice: `n` writes guidance on the screen of questions, as `w` does everywhere.
            if words not in parts and part.cell_len <= room - 2:
                parts[words] = part
                room -= part.cell_len + 2
        return joined(*parts.values(), gap="  ")

    def describe(self, binding: Binding) -> str:
        """What a key does here; screens say more than the general word."""
        return self.HINTS.get(binding.id or "", binding.description)

    HINTS: ClassVar[dict[str, str]] = {}

    def focused_pane(self) -> ListPane | None:
        """The list that has the focus, else the first one."""
        node = self.focused
        while node is not None:
            if isinstance(node, ListPane):
                return node
            node = node.parent  # type: ignore[assignment]
        return next(iter(self.query(ListPane)), None)

    # Prompt

    def open_prompt(self, purpose: str, text: str = "") -> None:
        """Show the input line for a filter or a command."""
        pane = self.focused_pane()
        self.prompt.purpose = purpose
        self.prompt.before = pane.row_filter.text if pane and purpose == "filter" else ""
        self._prompt_pane = pane
        self.prompt.placeholder = (
            "/" if purpose == "filter" else _("add trace FILE · add log FILE · add node · task TITLE · 1…5")
        )
        self.prompt.value = text or self.prompt.before
        self.prompt.display = True
        self.prompt.focus()
        self.prompt.cursor_position = len(self.prompt.value)

    def close_prompt(self, *, restore: bool = False) -> None:
        """Hide it and give the focus back."""
        pane = self._prompt_pane
        if restore and pane is not None and self.prompt.purpose == "filter":
            pane.filter(self.prompt.before)
        self.prompt.purpose = ""
        self.prompt.display = False
        if pane is not None:
            pane.table.focus()

    _prompt_pane: ListPane | None = None

    @on(Input.Changed, "#prompt")
    def _preview(self, event: Input.Changed) -> None:
        event.stop()
        if self.prompt.purpose == "filter" and self._prompt_pane is not None:
            self._prompt_pane.filter(event.value)

    @on(Input.Submitted, "#prompt")
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        purpose, words = self.prompt.purpose, event.value
        self.close_prompt()
        if purpose == "command":
            self.app.run_command(words)

    # Actions that screens share

    def action_new(self) -> None:
        """Fill this screen: screens say with what."""

    def action_decide(self) -> None:
        """Open the selected approval, or answer the selected question."""
        pending = self.shown.pending if self.shown else []
        if pending:
            self.app.ask_decision(pending[0].id)

    def action_guide(self) -> None:
        """Write guidance for the current task."""
        self.app.ask_guidance()

    def action_task(self, step: int) -> None:
        """Make the next or previous task the current one."""
        self.app.step_task(step)

    def action_zoom(self) -> None:
        """Give the whole body to the focused pane, or give it back."""
        pane = self.focused_pane()
        if pane is None:
            return
        if self.has_class("-zoomed"):
            self.remove_class("-zoomed")
            for other in self.query(".-zoom"):
                other.remove_class("-zoom")
        else:
            self.add_class("-zoomed")
            node = pane
            while node is not None and node.id != "body":
                node.add_class("-zoom")
                node = node.parent  # type: ignore[assignment]
