"""The application: modes, keys, theme, signals. It wires screens to a workspace and decides nothing itself."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from textual import events, work
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.worker import Worker, WorkerState

from trainflow_tui.collaboration import approvals, questions, tasks
from trainflow_tui.collaboration.identity import agent_behind, current_actor
from trainflow_tui.errors import TrainflowError
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens import keys, strip_guard
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.board import BoardScreen
from trainflow_tui.screens.cluster import ClusterScreen
from trainflow_tui.screens.desk import Child, Desk
from trainflow_tui.screens.host import History, Host
from trainflow_tui.screens.hotspots import HotspotsScreen
from trainflow_tui.screens.link_policy import LinkPolicy
from trainflow_tui.screens.live import LiveScreen
from trainflow_tui.screens.overview import OverviewScreen
from trainflow_tui.screens.questions import QuestionsScreen
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import display

if TYPE_CHECKING:
    from trainflow_tui.screens.dialogs.approval import Verdict

_log = logging.getLogger(__name__)
T = TypeVar("T")
TICK_S = 1.0
COLLECTOR_CHECK_TICKS = 10
THEMES = {"dark": "textual-dark", "ansi": "ansi-dark"}


class TrainflowApp(LinkPolicy, Host):
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
        colourless = bool(os.environ.get("NO_COLOR"))
        super().__init__(ansi_color=True if colourless or theme == "ansi" else None)
        self.theme = THEMES["ansi" if colourless else theme]
        self.animation_level = "none"
        self.desk = desk
        self.readonly = readonly
        self.snapshot: Snapshot | None = desk.first
        self.notice = ""
        self._ticks = 0
        self._asking = False
        self.current_task = ""
        self._choose_first_task()
        self._histories: dict[str, History] = {}

    # Life

    def on_mount(self) -> None:
        """Start the one clock and the handlers that end the program cleanly."""
        self.set_interval(TICK_S, self._tick)
        self._handle_signals()
        if not self.readonly:
            self.call_later(self._ensure_collector)
        if self.snapshot and self.snapshot.runs:
            self.read_history([self.snapshot.runs[0].id])

    def _handle_signals(self) -> None:
        import asyncio

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            # Not on every platform's loop, and not when another thread runs the app (tests).
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.add_signal_handler(number, self.exit, 128 + number)

    async def _ensure_collector(self) -> None:
        try:
            await self.desk.ensure_watch()
        except TrainflowError as problem:
            self.tell(problem)

    def on_unmount(self) -> None:
        """Give back what was opened."""
        self.desk.close()

    async def on_event(self, event: events.Event) -> None:
        """Drop keys and clicks that are older than the moment from which an open dialog may be decided."""
        if isinstance(event, events.Key | events.MouseEvent) and self.screen_stack:
            armed_at = getattr(self.screen, "armed_at", 0.0)
            if event.time < armed_at and not (isinstance(event, events.Key) and event.key == "escape"):
                return
        await super().on_event(event)

    @work(group="tick", exclusive=True, exit_on_error=False)
    async def _tick(self) -> None:
        if not self._terminal_is_there():
            self.exit(129)
            return
        self._ticks += 1
        if self._ticks % COLLECTOR_CHECK_TICKS == 0 and not self.readonly:
            # A collector that was killed leaves its lease behind for some seconds.
            await self._ensure_collector()
        seen = self.snapshot.version if self.snapshot else None
        fresh = await self.desk.changed_since(seen)
        if fresh is not None:
            self.take(fresh)

    def _terminal_is_there(self) -> bool:
        # A terminal that went away without a signal re-parents or ends the session; reading it then fails at once.
        if self.is_headless:
            return True
        try:
            return os.isatty(0) or os.isatty(2)
        except OSError:
            return False

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A worker that failed says so, on the screen and in the log; the application goes on."""
        if event.state is WorkerState.ERROR and event.worker.error is not None:
            problem = event.worker.error
            _log.error("worker %s failed", event.worker.group, exc_info=problem)
            if not isinstance(problem, TrainflowError):
                words = f"{event.worker.group}: {type(problem).__name__}: {problem}"
                problem = TrainflowError("worker-failed", words, next_step="`trainflow logs` holds the details.")
            self.tell(problem)

    def take(self, snapshot: Snapshot) -> None:
        """Show a newer reading of the workspace."""
        self.snapshot = snapshot
        self._choose_first_task()
        self._repaint()

    def _choose_first_task(self) -> None:
        # What waits for a person comes first, else the newest.
        found = self.snapshot.tasks if self.snapshot else []
        if not self.current_task and found:
            waiting = [t.id for t in found if self.snapshot and self.snapshot.waiting(t.id)]
            self.current_task = waiting[0] if waiting else found[-1].id

    def _repaint(self) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, ModeScreen):
                screen.refresh_from_app()

    def history(self, run: RunStatus | None) -> History:
        """The run's stored points before its recent ones; empty until they were read."""
        return self._histories.get(run.id, ()) if run is not None else ()

    def read_history(self, runs: Sequence[str]) -> None:
        """Read runs from the store that were not read yet, off the screen's loop."""
        missing = [run for run in runs if run not in self._histories]
        if missing:
            self._load_histories(missing)

    @work(group="history", exclusive=True, exit_on_error=False)
    async def _load_histories(self, runs: list[str]) -> None:
        for run in runs:
            self._histories[run] = await self.desk.history(run)
        self._redraw()

    def _redraw(self) -> None:
        if isinstance(self.screen, ModeScreen) and self.snapshot is not None:
            self.screen.shown = None
            self.screen.refresh_from_app()

    # Telling

    def say_notice(self, words: str) -> None:
        """A standing word in the header; empty removes it."""
        self.notice = words
        self._redraw()

    def tell(self, problem: TrainflowError) -> None:
        """Show what went wrong, with what to do."""
        words = say("{message} {next}", message=problem.message, next=problem.next_step)
        self.notify(words, title=_("Not done"), severity="error", timeout=10, markup=False)

    def _done(self, words: str) -> None:
        self.notify(display(words), timeout=4, markup=False)

    @work(group="write", exit_on_error=False)
    async def _write(self, change: Callable[[Any], object], done: str) -> None:
        try:
            await self.desk.run(change)
        except TrainflowError as problem:
            self.tell(problem)
            return
        fresh = await self.desk.changed_since(None)
        if fresh is not None:
            self.take(fresh)
        self._done(done)

    def refused_readonly(self) -> bool:
        """Whether this is read-only mode, saying so."""
        if self.readonly:
            self.notify(_("Read-only mode: nothing is changed."), severity="warning", markup=False)
        return self.readonly

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
            self.screen.open_prompt("filter")

    async def action_back(self) -> None:
        """Clear the filter, leave the zoom, then go to the overview; never quit."""
        screen = self.screen
        if not isinstance(screen, ModeScreen):
            return
        pane = screen.focused_pane()
        if pane is not None and pane.row_filter.text:
            pane.filter("")
        elif screen.has_class("-zoomed"):
            screen.action_zoom()
        elif self.current_mode != "overview":
            self.switch_mode("overview")

    def action_help(self) -> None:
        """Show every key of this screen."""
        from trainflow_tui.screens.dialogs.help import help_text
        from trainflow_tui.screens.dialogs.writing import ReadingDialog

        if isinstance(self.screen, ModeScreen):
            self.push_screen(ReadingDialog(say(_("Keys")), help_text(self.screen, readonly=self.readonly)))

    def action_leave_hint(self) -> None:
        """Say how to quit."""
        self.notify(_("q quits."), timeout=3, markup=False)

    @work(group="leave", exit_on_error=False)
    async def action_leave(self) -> None:
        """Quit; while this screen's own collector runs, say so and offer to leave one running."""
        from trainflow_tui.screens.dialogs.choice import Choice, ChoiceDialog

        if self.desk.own_watch_runs:
            about = say(_("Nothing is collected after you quit, unless a collector stays."))
            choices = (
                Choice("q", say(_("Quit, the collector ends with this screen")), "quit"),
                Choice("w", say(_("Quit and leave `trainflow watch` running")), "leave"),
                Choice("b", say(_("Back")), "back"),
            )
            answer = await self._answer_of(ChoiceDialog(say(_("This screen runs the collector")), about, choices))
            if answer not in ("quit", "leave"):
                return
            if answer == "leave":
                await self.desk.leave_watch()
        self.exit(0)

    @work(group="refresh", exclusive=True, exit_on_error=False)
    async def action_refresh_now(self) -> None:
        """Run one round of everything, by the same verb as `--once`."""
        if self.refused_readonly():
            return
        await self._run_child(Child(("--once",), say(_("Refreshing"))))

    # Commands

    def run_command(self, words: str) -> None:
        """Do what stands after ':'."""
        verb, _space, rest = words.strip().partition(" ")
        rest = rest.strip()
        if verb.isdigit() and verb in "012345":
            self.action_show_mode(list(self.MODES)[int(verb)])
        elif verb == "add":
            self._add(rest)
        elif verb == "task" and rest:
            self._open_or_make_task(rest)
        elif verb in ("guide", "guidance"):
            self._write_guidance()
        elif verb in ("q", "quit"):
            self.action_leave()
        elif verb:
            self.notify(
                say(_("There is no command {verb}. ? shows them."), verb=verb), severity="warning", markup=False
            )

    def _add(self, rest: str) -> None:
        if self.refused_readonly():
            return
        kind, _space, name = rest.partition(" ")
        name = str(Path(name.strip()).expanduser()) if name.strip() else ""
        task = ("--task", self.current_task) if self.current_task else ()
        if kind in ("trace", "log") and name:
            verb = Child((kind, "add", *task, "--", name), say(_("Reading {name}"), name=Path(name).name))
            self._run_child_worker(verb)
        elif kind == "node":
            self._run_child_worker(Child(("node", "check"), say(_("Checking this node"))))
        else:
            self.notify(_("add trace FILE · add log FILE · add node"), severity="warning", markup=False)

    @work(group="child", exit_on_error=False)
    async def _run_child_worker(self, child: Child) -> None:
        await self._run_child(child)

    async def _run_child(self, child: Child) -> None:
        def progress(words: str) -> None:
            self.say_notice(f"{child.title} {words}".strip())

        progress("")
        try:
            await self.desk.run_child(child, progress)
        except TrainflowError as problem:
            self.tell(problem)
        finally:
            self.say_notice("")
        fresh = await self.desk.changed_since(None)
        if fresh is not None:
            self.take(fresh)

    def choose_task(self, id: str) -> None:
        """Make a task the current one."""
        if id != self.current_task:
            self.current_task = id
            self._redraw()

    def step_task(self, step: int) -> None:
        """The next or previous task."""
        ids = [t.id for t in self.snapshot.tasks] if self.snapshot else []
        if ids:
            here = ids.index(self.current_task) if self.current_task in ids else 0
            self.choose_task(ids[(here + step) % len(ids)])

    def _open_or_make_task(self, words: str) -> None:
        if self.snapshot and any(t.id == words for t in self.snapshot.tasks):
            self.choose_task(words)
            self.action_show_mode("board")
        elif not self.refused_readonly():
            self._write(lambda w: tasks.create(w, title=words, actor=current_actor("tui")), _("Task created"))

    # What a person writes and decides

    async def _answer_of(self, dialog: ModalScreen[T]) -> T | None:
        """Show a dialog and wait for its answer. None where one stands already: two quick keys open one dialog, not a pile."""
        if self._asking or not isinstance(self.screen, ModeScreen):
            return None
        self._asking = True
        try:
            return await self.push_screen_wait(dialog)
        finally:
            self._asking = False

    def ask_new_task(self) -> None:
        """Ask for a title and make a task."""
        self._new_task()

    def ask_guidance(self) -> None:
        """Let guidance be written for the current task; it is collected at once."""
        self._write_guidance()

    def ask_answer(self, key: str) -> None:
        """Let an agent's question be answered; an answered one is shown."""
        self._answer_question(key)

    def ask_decision(self, id: str) -> None:
        """Open a request and record the verdict."""
        self._open_approval(id)

    @work(group="dialog", exit_on_error=False)
    async def _new_task(self) -> None:
        from trainflow_tui.screens.dialogs.writing import LineDialog

        if self.refused_readonly():
            return
        title = await self._answer_of(LineDialog(say(_("New task")), say(_("A title; enter makes it, esc goes back"))))
        if title:
            self._write(lambda w: tasks.create(w, title=title, actor=current_actor("tui")), _("Task created"))

    @work(group="dialog", exit_on_error=False)
    async def _write_guidance(self) -> None:
        from trainflow_tui.screens.dialogs.writing import WritingDialog

        if self.refused_readonly():
            return
        task = self.current_task
        if not task:
            self.notify(_("Make a task first: n on the board."), severity="warning", markup=False)
            return
        about = say(_("The agent must answer each item. Your GUIDANCE.md stays as it is."))
        text = await self._answer_of(WritingDialog(say(_("Guidance for {task}"), task=task), about))
        if text:
            self._write(lambda w: self.desk.guide(w, task, text), _("Recorded and collected"))

    @work(group="dialog", exit_on_error=False)
    async def _answer_question(self, key: str) -> None:
        from trainflow_tui.screens.dialogs.writing import WritingDialog

        task, _slash, id = key.partition("/")
        found = (
            next((q for q in self.snapshot.questions if q.task == task and q.id == id), None) if self.snapshot else None
        )
        if found is None:
            return
        if found.state != "open" or self.readonly:
            self._read(found.title, f"{found.body}\n\n{found.answer or ''}")
            return
        text = await self._answer_of(
            WritingDialog(say("? {title}", title=found.title), display(found.body, multiline=True, max_cells=2000))
        )
        if text:
            by = current_actor("tui")
            self._write(
                lambda w: questions.answer(w.ledger, id, text, actor=by, agent=agent_behind(), task=task), _("Answered")
            )

    def read_guidance(self, key: str) -> None:
        """Show a guidance item with its receipts."""
        task, _slash, id = key.partition("/")
        for item in self.snapshot.guidance if self.snapshot else []:
            if item.task == task and item.id == id:
                receipts = "\n".join(f"v{r.version} {r.state} {r.by}: {r.note}" for r in item.receipts)
                self._read(f"{item.id} v{item.version} {item.state}", f"{item.text}\n\n{receipts}")

    def read_question(self, key: str) -> None:
        """Show a question of one's own with its answer."""
        task, _slash, id = key.partition("/")
        for q in self.snapshot.questions if self.snapshot else []:
            if q.task == task and q.id == id:
                self._read(q.title, f"{q.body}\n\n{q.answer or _('No answer yet.')}")

    def _read(self, title: str, text: str) -> None:
        from trainflow_tui.screens.dialogs.writing import ReadingDialog

        if isinstance(self.screen, ModeScreen):
            self.push_screen(ReadingDialog(display(title), display(text, multiline=True, max_cells=100_000)))

    @work(group="dialog", exit_on_error=False)
    async def _open_approval(self, id: str) -> None:
        from trainflow_tui.screens.dialogs.approval import ApprovalDialog

        try:
            found = await self.desk.run(lambda w: approvals.get(w.ledger, id))
        except TrainflowError as problem:
            self.tell(problem)
            return
        answer = await self._answer_of(ApprovalDialog(found, readonly=self.readonly))
        if answer is not None:
            self._decide(answer)

    def _decide(self, answer: Verdict) -> None:
        by, agent = current_actor("tui"), agent_behind()
        self._write(
            lambda w: approvals.decide(
                w.ledger,
                answer.approval,
                answer.verdict,
                by=by,
                agent=agent,
                comment=answer.comment,
                shown_digest=answer.shown_digest,
                shown_for_ms=answer.shown_for_ms,
                input=answer.input,
            ),
            _("Decision recorded"),
        )
