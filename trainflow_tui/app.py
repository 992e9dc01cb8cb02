"""The application: modes, keys, theme, signals. It wires screens to a workspace and decides nothing itself."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events, work
from textual.binding import BindingType
from textual.worker import Worker, WorkerState

from trainflow_tui.errors import TrainflowError
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens import keys, looks, strip_guard
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.board import BoardScreen
from trainflow_tui.screens.cluster import ClusterScreen
from trainflow_tui.screens.command_table import CommandTable
from trainflow_tui.screens.desk import Child, Desk
from trainflow_tui.screens.freshness import judge
from trainflow_tui.screens.host import History, Host
from trainflow_tui.screens.hotspots import HotspotsScreen
from trainflow_tui.screens.link_policy import LinkPolicy
from trainflow_tui.screens.live import LiveScreen
from trainflow_tui.screens.overview import OverviewScreen
from trainflow_tui.screens.questions import QuestionsScreen
from trainflow_tui.screens.slow_link import TICK_S
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.terminal_life import TerminalLife
from trainflow_tui.screens.widgets.line_chart import LineChart
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display, display

_log = logging.getLogger(__name__)
COLLECTOR_CHECK_TICKS = 10


class TrainflowApp(TerminalLife, LinkPolicy, CommandTable, Host):
    """Six modes over one workspace. Its exit value is the process status."""

    TITLE = "trainflow"
    CSS_PATH = "screens/styles/trainflow.tcss"
    ENABLE_COMMAND_PALETTE = False
    MODES: ClassVar[dict[str, Any]] = {
        "overview": OverviewScreen,
        "board": BoardScreen,
        "questions": QuestionsScreen,
        "hotspots": HotspotsScreen,
        "cluster": ClusterScreen,
        "live": LiveScreen,
    }
    DEFAULT_MODE = "overview"
    BINDINGS: ClassVar[list[BindingType]] = list(keys.APP_KEYS)

    def __init__(self, desk: Desk, *, theme: str = "dark", readonly: bool = False) -> None:
        strip_guard.install()
        self._colourless = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if self._colourless or theme == "ansi" else None)
        for own in looks.OWN_THEMES:
            self.register_theme(own)
        looks.use_signs(glyphs=desk.settings.glyphs, markers=desk.settings.markers)
        self.theme = looks.use("ansi" if self._colourless else theme).theme
        self.animation_level = "none"
        self.desk = desk
        self.readonly = readonly
        self.own_keys = keys.checked_keymap(desk.settings.keys)
        self.set_keymap(self.own_keys)
        self.remembered = desk.remembered
        if self.remembered.mode in self.MODES:
            # Textual 8.2.8 begins with this mode; a switch after the start would paint two screens.
            self._screen_stacks, self._current_mode = {self.remembered.mode: []}, self.remembered.mode
        self.snapshot = self.latest = desk.first
        self.notice = ""
        self.moment = ""
        self._ticks = 0
        self._reading = False
        self._children: dict[tuple[str, ...], bool] = {}
        """Verbs that run as children, and whether each was asked for again meanwhile."""
        self.current_task = ""
        self._choose_first_task()
        self._histories: dict[str, History] = {}
        if self.latest is not None:
            self.freshness = judge(self.latest, desk.settings, desk.clock.now())

    # Life

    def on_mount(self) -> None:
        """Start the one clock and the handlers that end the program cleanly."""
        self.set_interval(TICK_S, self._tick)
        self._handle_signals()
        if not self.readonly:
            self.call_later(self._ensure_collector)
        if self.snapshot and self.snapshot.runs:
            self.read_history([self.snapshot.runs[0].id])
        if self.desk.memory_note:
            self.notify(display(self.desk.memory_note), severity="warning", timeout=8, markup=False)

    def _handle_signals(self) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Not on every platform's loop, and not when another thread runs the app (tests).
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, 128 + number)

    def _fatal_error(self) -> None:
        """What ended the program goes to the terminal and the log, without local variables: those may hold secrets."""
        from rich.segment import Segments
        from rich.traceback import Traceback

        _log.critical("the screen ended", exc_info=True)
        self._exit_renderables.append(Segments(self.console.render(Traceback(show_locals=False, max_frames=20))))
        self._close_messages_no_wait()

    async def _ensure_collector(self) -> None:
        try:
            await self.desk.ensure_watch()
        except TrainflowError as problem:
            self.tell(problem)

    def on_unmount(self) -> None:
        """Keep how it looked, and give back what was opened."""
        self.remember()
        self.desk.close()

    async def on_event(self, event: events.Event) -> None:
        """Drop keys and clicks that are older than the moment from which an open dialog may be decided."""
        if isinstance(event, events.Key | events.MouseEvent) and self.screen_stack:
            armed_at = max(self.armed_after, getattr(self.screen, "armed_at", 0.0))
            if event.time < armed_at and not (isinstance(event, events.Key) and event.key == "escape"):
                return
        await super().on_event(event)

    @work(group="tick", exit_on_error=False)
    async def _tick(self) -> None:
        if not self._terminal_is_there():
            self.exit(129)
            return
        self.line_tick()
        if self._reading:
            return  # a reading that takes longer than a tick is waited for: given up each time, nothing would ever come
        self._reading = True
        try:
            await self._read_newest()
        finally:
            self._reading = False

    async def _read_newest(self) -> None:
        self._ticks += 1
        if self._ticks % COLLECTOR_CHECK_TICKS == 0 and not self.readonly:
            # A collector that was killed leaves its lease behind for some seconds.
            await self._ensure_collector()
        seen = self.latest.version if self.latest else None
        fresh = await self.desk.changed_since(seen)
        if fresh is None and self._judged() != self.freshness and not self.moment:
            # What seems stale may have been checked without news: look again before saying so.
            fresh = await self.desk.changed_since(None)
        if fresh is not None:
            self.take(fresh, by_itself=True)

    def _terminal_is_there(self) -> bool:
        # A terminal that went away without a signal re-parents or ends the session; reading it then fails at once.
        if self.is_headless or self.is_web:
            return True
        try:
            return os.isatty(0) or os.isatty(2)
        except OSError:
            return False

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that failed says so, on the screen and in the log; the application goes on."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            problem = event.worker.error
            if not isinstance(problem, TrainflowError):
                _log.error("worker %s failed", event.worker.group, exc_info=problem)
                words = f"{event.worker.group}: {type(problem).__name__}: {problem}"
                problem = TrainflowError("worker-failed", words, next_step="`trainflow logs` holds the details.")
            self.tell(problem)

    # What is shown

    def take(self, snapshot: Snapshot, *, by_itself: bool = False) -> None:
        """Show a newer reading of the workspace; at the time cursor only what waits now is told.

        What nobody asked for waits for the line, and for somebody to look.
        """
        self.latest = snapshot
        if self.moment:
            if isinstance(self.screen, ModeScreen):
                self.screen.refresh_header()
            return
        self.snapshot = snapshot
        self.judge_sources()
        self._choose_first_task()
        if by_itself:
            self.paint_data()
        else:
            self._repaint()

    def _judged(self) -> object:
        return judge(self.latest, self.desk.settings, self.desk.clock.now()) if self.latest else self.freshness

    def judge_sources(self) -> None:
        """Judge again what is stale."""
        if self.latest is not None:
            self.freshness = judge(self.latest, self.desk.settings, self.desk.clock.now())

    def _choose_first_task(self) -> None:
        # The one of last time; else what waits for a person, else the newest.
        found = self.snapshot.tasks if self.snapshot else []
        if not self.current_task and found:
            waiting = [t.id for t in found if self.snapshot and self.snapshot.waiting(t.id)]
            last = [t.id for t in found if t.id == self.remembered.task]
            self.current_task = [*last, *waiting, found[-1].id][0]

    def _repaint(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ModeScreen):
                screen.refresh_from_app()

    def show_badge(self) -> None:
        """The header says that the line is slow, or no longer."""
        if self.screen_stack and isinstance(self.screen, ModeScreen):
            self.screen.refresh_header()

    def redraw(self) -> None:
        """Draw the screen from the snapshot again."""
        if self.screen_stack and isinstance(self.screen, ModeScreen) and self.snapshot is not None:
            self.screen.shown = None
            self.screen.refresh_from_app()

    def history(self, run: RunStatus | None) -> History:
        """The run's stored points before its recent ones; empty until they were read."""
        return self._histories.get(run.id, ()) if run is not None else ()

    def read_history(self, runs: Sequence[str]) -> None:
        """Read runs from the store that were not read yet, off the screen's loop."""
        missing = [run for run in runs if run not in self._histories]
        if missing:
            self._load_histories(missing)

    def forget_histories(self) -> None:
        """What was read of runs belongs to another time."""
        self._histories.clear()

    @work(group="history", exclusive=True, exit_on_error=False)
    async def _load_histories(self, runs: list[str]) -> None:
        moment = self.moment
        for run in runs:
            points = await self.desk.history(run, until=moment or None)
            if moment == self.moment:
                self._histories[run] = points
        self.redraw()

    def say_notice(self, words: str) -> None:
        """A standing word in the header; empty removes it."""
        self.notice = words
        if self.screen_stack and isinstance(self.screen, ModeScreen):
            self.screen.refresh_header()

    def use_look(self, theme: str | None = None) -> None:
        """Draw everything in this theme, language and alphabet; without colours every theme looks alike."""
        if theme is not None:
            self.theme = looks.use("ansi" if self._colourless else theme).theme
        for stack in self._screen_stacks.values():
            for screen in stack:
                screen.refresh(repaint=True, layout=True)
                if isinstance(screen, ModeScreen):
                    screen.shown = None
                    for chart in screen.query(LineChart):
                        chart.draw_anew()
        self.redraw()

    def remember(self) -> None:
        """Keep what the screens look like for the next time."""
        memory = self.remembered
        memory.mode, memory.task = self.current_mode, self.current_task
        for stack in self._screen_stacks.values():
            for screen in stack:
                if isinstance(screen, ModeScreen) and screen.is_mounted:
                    memory.take(screen.mode, screen.remembered_view(), screen.remembered_panes())
        self.desk.save_memory()

    # What may not be done

    def why_disabled(self, binding: str) -> Display | None:
        """Why a binding does nothing now, or None where it works."""
        if binding not in keys.MUTATING:
            return None
        if self.readonly:
            return say(_("not in read-only mode"))
        return say(_("not in the past")) if self.moment else None

    def refused(self, *, quiet: bool = False) -> bool:
        """Whether nothing may be changed now, saying why."""
        if self.readonly:
            words = _("Read-only mode: nothing is changed.")
        elif self.moment:
            words = _("This is the past: nothing is changed. esc returns to now.")
        else:
            return False
        if not quiet:
            self.notify(words, severity="warning", markup=False)
        return True

    # Actions

    def action_show_mode(self, mode: str) -> None:
        """Go to one of the six screens."""
        if isinstance(self.screen, ModeScreen) and self.current_mode != mode:
            self.switch_mode(mode)

    def action_command(self) -> None:
        """Open the command line."""
        if isinstance(self.screen, ModeScreen):
            self.screen.open_prompt("command")

    def action_filter(self) -> None:
        """Filter the focused list."""
        if isinstance(self.screen, ModeScreen):
            if self.screen.focused_pane() is None:
                self.notify(_("There is no list here."), timeout=3, markup=False)
            else:
                self.screen.open_prompt("filter")

    async def action_back(self) -> None:
        """Clear the filter, the marks, the zoom, the time cursor; then go to the overview; never quit."""
        screen = self.screen
        if not isinstance(screen, ModeScreen):
            return
        pane = screen.focused_pane()
        if pane is not None and pane.row_filter.text:
            pane.filter("")
        elif pane is not None and pane.marks:
            pane.clear_marks()
        elif screen.has_class("-zoomed"):
            screen.action_zoom()
        elif self.moment:
            self.leave_past()
        elif self.current_mode != "overview":
            self.switch_mode("overview")

    def action_help(self) -> None:
        """Show every key of this screen."""
        from trainflow_tui.screens.dialogs.help import help_text

        if isinstance(self.screen, ModeScreen):
            self.read(say(_("Keys")), help_text(self.screen))

    def action_leave(self) -> None:
        """Quit; while this screen's own collector runs, say so and offer to leave one running."""
        self.hold_keys()
        self._leave()

    @work(group="leave", exit_on_error=False)
    async def _leave(self) -> None:
        from trainflow_tui.screens.dialogs.choice import Choice, ChoiceDialog

        if self.desk.own_watch_runs:
            about = say(_("Nothing is collected after you quit, unless a collector stays."))
            choices = (
                Choice("q", say(_("Quit, the collector ends with this screen")), "quit"),
                Choice("w", say(_("Quit and leave `trainflow watch` running")), "leave"),
                Choice("b", say(_("Back")), "back"),
            )
            answer = await self.answer_of(ChoiceDialog(say(_("This screen runs the collector")), about, choices))
            if answer not in ("quit", "leave"):
                return
            if answer == "leave":
                await self.desk.leave_watch()
        self.exit(0)

    def action_refresh_now(self) -> None:
        """Run one round of everything, by the same verb as `--once`."""
        if not self.refused():
            self.run_child(Child(("--once",), say(_("Refreshing"))))

    @work(group="child", exit_on_error=False)
    async def run_child(self, child: Child) -> None:
        """Run a verb as a child process, with its progress in the header.

        One that runs already is run once more after it, not beside it: a key that is held down starts no crowd.
        """
        if child.arguments in self._children:
            self._children[child.arguments] = True
            return

        def progress(words: str) -> None:
            self.say_notice(f"{child.title} {words}".strip())

        again = True
        try:
            while again:
                self._children[child.arguments] = False
                progress("")
                await self.desk.run_child(child, progress)
                again = self._children[child.arguments]
        except TrainflowError as problem:
            self.tell(problem)
        finally:
            del self._children[child.arguments]
            self.say_notice("")
        fresh = await self.desk.changed_since(None)
        if fresh is not None:
            self.take(fresh)

    def choose_task(self, id: str) -> None:
        """Make a task the current one."""
        if id != self.current_task:
            self.current_task = id
            self.redraw()

    def step_task(self, step: int) -> None:
        """The next or previous task."""
        ids = [t.id for t in self.snapshot.tasks] if self.snapshot else []
        if ids:
            here = ids.index(self.current_task) if self.current_task in ids else 0
            self.choose_task(ids[(here + step) % len(ids)])
