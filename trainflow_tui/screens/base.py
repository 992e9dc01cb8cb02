"""What every mode's screen has: the header strip, the command and filter line, the footer, and how snapshots reach its panes."""

from __future__ import annotations

from typing import ClassVar, Final

from rich.text import Text
from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import DescendantFocus
from textual.screen import Screen
from textual.widget import Widget

from trainflow_tui import language
from trainflow_tui.clock import local_clock_time
from trainflow_tui.language import N_
from trainflow_tui.screens import keys, looks
from trainflow_tui.screens.commands import suggestions
from trainflow_tui.screens.host import Host
from trainflow_tui.screens.memory import ModeMemory, PaneMemory
from trainflow_tui.screens.pane_view import Sorting
from trainflow_tui.screens.prompt import PromptBar, Purpose
from trainflow_tui.screens.slow_link import badge
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.troubles import banner
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.widgets.list_pane import ListPane
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, WARN, _, joined, line, say

MODE_NAMES: Final = {
    "overview": ("0", N_("Overview")),
    "board": ("1", N_("Board")),
    "questions": ("2", N_("Questions")),
    "hotspots": ("3", N_("Hot-spots")),
    "cluster": ("4", N_("Cluster")),
    "live": ("5", N_("Live")),
}
SMALLEST: Final = (60, 16)
WIDE: Final = 110
JUMP_LETTERS: Final = "abcdefgh"

Part = ListPane | LineChart


class ModeScreen(Screen[None]):
    """Base of the six screens. A subclass composes panes in `panes` and fills them in `show_snapshot`."""

    mode: ClassVar[str] = ""
    HINTS: ClassVar[dict[str, str]] = {}
    """What a key does on this screen, by binding id, where that is more than the general word."""
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
        self.prompt = PromptBar()
        self.shown: Snapshot | None = None
        self.jumping = False
        self._was_narrow = False
        self._footer_shown_for: tuple[object, ...] = ()
        self._prompt_pane: ListPane | None = None
        self._filter_before = ("", False)
        self._focus_before: Widget | None = None
        self._cursor_before: str | None = None
        self._last_focused: Widget | None = None

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
        """Bring back how it looked last time and paint what is stored already."""
        self._was_narrow = self.narrow
        self._restore()
        self.tabs.show(self._tab_line())
        self.footer.show(self._footer_line())
        words = _("The screen needs {w}×{h} cells. Make the window larger, or q to quit.")
        self.notice.show(as_text(say(words, w=SMALLEST[0], h=SMALLEST[1]), WARN))
        self.refresh_from_app()

    def _restore(self) -> None:
        kept = self.app.remembered.mode_view(self.mode)
        for pane in self.query(ListPane):
            view = self.app.remembered.pane_view(f"{self.mode}.{pane.id}")
            pane.sort(Sorting(view.sort, view.reverse))
            pane.filter(view.filter, is_regex=view.is_regex)
        for part in self.parts():
            if part.id == kept.focused:
                (part.table if isinstance(part, ListPane) else part).focus()
            if part.id == kept.zoomed:
                self.call_after_refresh(self.zoom, part)

    def remembered_view(self) -> ModeMemory:
        """How this screen looks, for the next time."""
        part, zoomed = self.focused_part(), self.zoomed_part()
        return ModeMemory(part.id or "" if part else "", zoomed.id or "" if zoomed else "")

    def remembered_panes(self) -> dict[str, PaneMemory]:
        """How its lists look."""
        return {
            f"{self.mode}.{pane.id}": PaneMemory(
                pane.sorting.key, pane.sorting.reverse, pane.row_filter.text, pane.row_filter.is_regex
            )
            for pane in self.query(ListPane)
        }

    @property
    def narrow(self) -> bool:
        """Whether lists leave their least wanted columns out."""
        return self.app.size.width < WIDE

    def on_resize(self) -> None:
        """Fit what depends on the width; a window that was too small for anything took the focus from all."""
        self.footer.show(self._footer_line())
        if self.focused is None and self._last_focused is not None:
            self.call_after_refresh(self._focus_again)
        if self.narrow != self._was_narrow:
            self._was_narrow = self.narrow
            self.shown = None
            self.refresh_from_app()

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Remember it for when the window was too small."""
        self._last_focused = event.widget

    def _focus_again(self) -> None:
        last = self.prompt.field if self.prompt.purpose else self._last_focused
        if self.focused is None and last is not None and last.is_mounted:
            self.set_focus(last)

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
                self._show_footer()
                self.show_snapshot(snapshot)

    def refresh_header(self) -> None:
        """Show the header anew where it says something else."""
        if self.is_mounted and self.app.snapshot is not None:
            self.header.show(self._header_line(self.app.snapshot))

    def _header_line(self, snapshot: Snapshot) -> Text:
        collector = snapshot.collector
        mode = {"watching": _("watching"), "polling": _("polling")}.get(collector.mode, _("collector off"))
        collected = _("{mode}, collected {at}") if collector.scanned_at else _("{mode}, nothing collected yet")
        age = say(collected, mode=mode, at=local_clock_time(collector.scanned_at) if collector.scanned_at else "")
        edited = [f"{f.task}/{f.name}" for f in snapshot.files if f.state == "editing"]
        task = self.app.current_task
        now = self.app.latest or snapshot
        waits = len(now.pending) + len(now.asked)
        past = say(_(" AS OF {at} "), at=local_clock_time(self.app.moment, with_date=True)) if self.app.moment else None
        return joined(
            as_text(say(" trainflow"), "bold"),
            line(snapshot.name, ACCENT),
            as_text(past, "bold reverse") if past else Text(),
            line(f"▸ {task}") if task else Text(),
            as_text(say(_("!{n} waiting"), n=waits), BAD) if waits else Text(),
            as_text(trouble, WARN) if (trouble := banner(now.troubles)) else Text(),
            line(_("READ-ONLY"), "bold warn") if self.app.readonly else Text(),
            line(self.app.notice, WARN) if self.app.notice else Text(),
            as_text(badge(self.app) or say(""), WARN),
            as_text(say(_("✎ {file} edited, not yet collected"), file=edited[0]), WARN) if edited else Text(),
            as_text(age, MUTED if collector.running else WARN) if not past else Text(),
            gap="  ",
        )

    def _tab_line(self) -> Text:
        parts = []
        for name, (key, title) in MODE_NAMES.items():
            style = "bold reverse" if name == self.mode else MUTED
            # Narrow enough that all six fit the smallest screen.
            parts.append(as_text(say("{key} {title}", key=key, title=_(title)), style))
        return joined(*parts)

    def _show_footer(self) -> None:
        # A twentieth of a tick's work, and the same nearly always.
        depends_on = (self.app.size.width, self.app.moment, self.app.readonly, language.current(), looks.current())
        if depends_on != self._footer_shown_for:
            self._footer_shown_for = depends_on
            self.footer.show(self._footer_line())

    def _footer_line(self) -> Text:
        known = {b.id: b for b in [*keys.SCREEN_KEYS, *keys.APP_KEYS] if isinstance(b, Binding)}
        parts: dict[str, Text] = {}
        room = self.app.size.width
        for name in keys.FOOTER:
            if self.app.why_disabled(name) is not None:
                continue
            words = self.describe(known[name])
            part = joined(line(keys.shown_keys(known[name], self.app.own_keys)[0], ACCENT), line(words))
            # Whole words only, and none twice: `n` writes guidance on the screen of questions, as `w` does everywhere.
            if words not in parts and part.cell_len <= room - 2:
                parts[words] = part
                room -= part.cell_len + 2
        return joined(*parts.values(), gap="  ")

    def describe(self, binding: Binding) -> str:
        """What a key does here; screens say more than the general word."""
        return _(self.HINTS.get(binding.id or "", binding.description))

    # Panes

    def parts(self) -> list[Part]:
        """Lists and charts that are shown, in the order of focus."""
        return [w for w in self.query("ListPane, LineChart") if isinstance(w, ListPane | LineChart) and _is_shown(w)]

    def focused_part(self) -> Part | None:
        """The list or chart that has the focus, else the first one."""
        node: object = self.focused
        while isinstance(node, Widget):
            if isinstance(node, ListPane | LineChart):
                return node
            node = node.parent
        return next(iter(self.parts()), None)

    def focused_pane(self) -> ListPane | None:
        """The list that has the focus, else the first one that is shown; None beside a zoomed chart."""
        part = self.focused_part()
        return part if isinstance(part, ListPane) else next((p for p in self.parts() if isinstance(p, ListPane)), None)

    def zoom(self, part: Part | None) -> None:
        """Give the whole body to one part; None gives it back to all."""
        for other in self.query(".-zoom"):
            other.remove_class("-zoom")
        self.set_class(part is not None, "-zoomed")
        node: object = part
        while isinstance(node, Widget) and node.id != "body":
            node.add_class("-zoom")
            node = node.parent

    def zoomed_part(self) -> Part | None:
        """The part that has the whole body, if one has."""
        return next((p for p in self.parts() if p.has_class("-zoom")), None) if self.has_class("-zoomed") else None

    def on_key(self, event: object) -> None:
        """While a pane is being jumped to, the next key is its letter."""
        from textual.events import Key

        if not self.jumping or not isinstance(event, Key):
            return
        event.stop()
        event.prevent_default()
        self._show_letters(shown=False)
        position = JUMP_LETTERS.find(event.key) if len(event.key) == 1 else -1
        parts = self.parts()
        if 0 <= position < len(parts):
            part = parts[position]
            self.set_focus(part.table if isinstance(part, ListPane) else part)

    def _show_letters(self, *, shown: bool) -> None:
        self.jumping = shown
        for letter, part in zip(JUMP_LETTERS, self.parts(), strict=False):
            part.show_badge(letter if shown else "")

    # Prompt

    def open_prompt(self, purpose: Purpose, text: str = "") -> None:
        """Show the input line for a filter or a command."""
        pane = self.focused_pane()
        self._prompt_pane = pane
        self._focus_before = pane.table if purpose == "filter" and pane else self.focused
        self._cursor_before = pane.selected if pane else None
        kept = pane.row_filter if pane else None
        self._filter_before = (kept.text, kept.is_regex) if kept else ("", False)
        is_filter = purpose == "filter"
        self.prompt.open(
            purpose,
            text or (self._filter_before[0] if is_filter else ""),
            is_regex=is_filter and self._filter_before[1],
            past=self.app.remembered.history(purpose),
        )

    def close_prompt(self) -> None:
        """Hide it and give the focus back."""
        self.prompt.close()
        if self._focus_before is not None:
            self.set_focus(self._focus_before)
        self.app.release_keys()

    @on(PromptBar.Previewed)
    def _preview(self, event: PromptBar.Previewed) -> None:
        event.stop()
        if self._prompt_pane is not None:
            self._prompt_pane.filter(event.text, is_regex=event.is_regex)

    @on(PromptBar.Cancelled)
    def _given_up(self, event: PromptBar.Cancelled) -> None:
        event.stop()
        if self.prompt.purpose == "filter" and self._prompt_pane is not None:
            self._prompt_pane.filter(self._filter_before[0], is_regex=self._filter_before[1])
            if self._cursor_before is not None:
                self._prompt_pane.table.move_to(self._cursor_before)
        self.close_prompt()

    @on(PromptBar.Entered)
    def _entered(self, event: PromptBar.Entered) -> None:
        event.stop()
        self.close_prompt()
        self.app.remembered.add_history(event.purpose, event.text)
        if event.purpose == "command":
            self.app.run_command(event.text)
        self.app.remember()

    @on(PromptBar.Completed)
    def _completed(self, event: PromptBar.Completed) -> None:
        event.stop()
        self.app.release_keys()

    @on(PromptBar.Asked)
    def _asked(self, event: PromptBar.Asked) -> None:
        event.stop()
        self._suggest(event.text)

    @work(group="suggest", exclusive=True, exit_on_error=False)
    async def _suggest(self, text: str) -> None:
        found = await suggestions(self.app.commands(), text)
        if self.prompt.purpose == "command" and self.prompt.field.value == text:
            self.prompt.suggest(found, text)

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

    def action_edit(self, name: str) -> None:
        """Edit a human file of the current task."""
        self.app.edit_human_file(name)

    def action_step(self, direction: int) -> None:
        """The next or previous task; in the past a minute on or back."""
        self.app.step(direction)

    def action_leap(self, direction: int) -> None:
        """Go to the event after or before."""
        self.app.leap(direction)

    def action_at(self) -> None:
        """Ask for a moment of the past."""
        self.open_prompt("command", "at ")

    def action_jump(self) -> None:
        """Show a letter on each pane; the next key goes there."""
        self._show_letters(shown=True)

    def action_zoom(self) -> None:
        """Give the whole body to the focused part, or give it back."""
        self.zoom(None if self.has_class("-zoomed") else self.focused_part())
        self.app.remember()

    def action_sort(self) -> None:
        """Choose the column to sort by."""
        self.app.ask_sorting()

    def action_reverse(self) -> None:
        """Turn the order round."""
        pane = self.focused_pane()
        if pane is not None:
            pane.sort(Sorting(pane.sorting.key, not pane.sorting.reverse))
            self.app.remember()

    def action_mark(self) -> None:
        """Mark the row under the cursor."""
        pane = self.focused_pane()
        if pane is not None:
            pane.toggle_mark()

    def action_copy_cell(self) -> None:
        """Choose a cell of the row to copy."""
        self.app.ask_cell()

    def action_copy_rows(self) -> None:
        """Copy rows as Markdown."""
        self.app.copy_rows()

    def action_open_pager(self) -> None:
        """Open the row's whole text."""
        self.app.page_detail()

    def action_export(self) -> None:
        """Write the pane into a file."""
        self.app.ask_export()


def _is_shown(widget: Widget) -> bool:
    node: object = widget
    while isinstance(node, Widget):
        if not node.display:
            return False
        node = node.parent
    return True
