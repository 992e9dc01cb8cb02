"""Where the screen's work is done off its loop: one thread that owns the workspace, and the child processes.

The screen awaits it and never reads a file itself. The collector is a child process, never a thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from trainflow_tui.clock import Clock
from trainflow_tui.collaboration import health
from trainflow_tui.collaboration.health import Trouble
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.config import Settings
from trainflow_tui.errors import TrainflowError
from trainflow_tui.ledger import leases
from trainflow_tui.screens import snapshot as snapshots
from trainflow_tui.screens import view_state
from trainflow_tui.screens.host import History
from trainflow_tui.screens.memory import Memory
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.text import Display
from trainflow_tui.workspace import Workspace

if TYPE_CHECKING:
    from trainflow_tui.ledger.past import Past

T = TypeVar("T")
HISTORY_BUCKETS = 400


@dataclass(frozen=True)
class Child:
    """A verb to run as a child process, and its words on screen."""

    arguments: tuple[str, ...]
    title: Display


class Desk:
    """The screen's hands. Created before the screen, so that first paint has what is stored."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="desk")
        self.first: Snapshot | None = snapshots.load(workspace)
        self._last = self.first
        self._watch: subprocess.Popen[bytes] | None = None
        self._past: Past | None = None
        self._memory_path = view_state.path_for(workspace.root)
        self._saved, self.memory_note = view_state.load(self._memory_path)
        self.remembered = Memory.of(self._saved)

    @property
    def root(self) -> Path:
        """The workspace's directory."""
        return self._workspace.root

    @property
    def settings(self) -> Settings:
        """What is set."""
        return self._workspace.settings

    @property
    def clock(self) -> Clock:
        """The time that everything here goes by."""
        return self._workspace.clock

    def save_memory(self) -> None:
        """Keep `remembered` for the next start, in the desk's thread."""
        state = self.remembered.state()
        if state != self._saved:
            self._saved = state
            self._thread.submit(view_state.save, self._memory_path, state)

    async def paths(self, start: str) -> list[str]:
        """Files and directories that a typed path could become, directories with a slash; at most 50."""

        def look(_workspace: Workspace) -> list[str]:
            try:
                typed = Path(start).expanduser()
            except RuntimeError:  # the home of nobody
                return []
            folder = typed if start.endswith("/") else typed.parent
            shown = start[: start.rfind("/") + 1]
            try:
                found = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except (OSError, ValueError):
                return []
            names = [f"{shown}{e.name}{'/' if e.is_dir() else ''}" for e in found if not e.name.startswith(".")]
            return [name for name in names if name.startswith(start)][:50]

        return await self.run(look)

    def close(self) -> None:
        """End the thread and the own collector; the children end with their standard input."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.stdin.close()
            try:
                self._watch.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._watch.terminate()
            self._watch = None
        self._thread.submit(self._close_ledgers)
        self._thread.shutdown(wait=True)

    async def run(self, change: Callable[[Workspace], T]) -> T:
        """Do something with the workspace in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, change, self._workspace)

    async def changed_since(self, version: tuple[int, int] | None) -> Snapshot | None:
        """A new snapshot, or None when nothing has changed since that version.

        What cannot be read leaves the last one, with the trouble in it; a workspace that is back at its path is opened again.
        """

        def look(workspace: Workspace) -> Snapshot | None:
            try:
                back = workspace.is_displaced() and workspace.reopen()
                if not back and workspace.ledger.version() == version and self._stands_as_before(workspace):
                    return None
                fresh = snapshots.load(workspace)
            except TrainflowError as problem:
                trouble = Trouble(code="unreadable", detail=problem.message, text=str(problem))
                if self._last is None or self._last.troubles[:1] == [trouble]:
                    return None
                fresh = msgspec.structs.replace(self._last, troubles=[trouble])
            self._last = fresh
            return fresh

        return await self.run(look)

    def _stands_as_before(self, workspace: Workspace) -> bool:
        before = [t for t in self._last.troubles if t.code in health.STANDING] if self._last else []
        return before == health.standing(workspace)

    async def history(self, run: str, until: str | None = None) -> History:
        """A run's loss and throughput from the store, bucketed, as of a time where one is given; DuckDB is loaded by the first."""

        def read(workspace: Workspace) -> History:
            from trainflow_tui.monitoring.history import series  # not needed for first paint

            points: dict[float, list[float | None]] = {}
            for index, column in enumerate(("loss", "throughput")):
                for row in series(workspace, run, column, buckets=HISTORY_BUCKETS, until=until):
                    points.setdefault(row[0], [None, None])[index] = row[2]
            return tuple((step, *values) for step, values in sorted(points.items()))  # type: ignore[misc]

        return await self.run(read)

    # The past

    async def past(self, moment: str) -> Snapshot:
        """Everything as it was at a moment (an ISO time with its zone). Nothing is written.

        Raises:
            DamagedError: the ledger or the samples cannot be read.
        """
        return await self.run(lambda w: snapshots.load_at(w, self._past_of(w), moment))

    async def bounds(self) -> tuple[str, str]:
        """The times of the first and the last thing that is recorded; empty without any."""

        def look(workspace: Workspace) -> tuple[str, str]:
            from trainflow_tui.monitoring import replay

            return replay.bounds(workspace, self._past_of(workspace))

        return await self.run(look)

    async def step(self, moment: str, direction: int) -> str:
        """The time of the nearest event after (1) or before (-1) a moment; empty where there is none."""

        def look(workspace: Workspace) -> str:
            from trainflow_tui.monitoring import replay

            return replay.step(workspace, self._past_of(workspace), moment, direction)

        return await self.run(look)

    def _past_of(self, workspace: Workspace) -> Past:
        """The one that stands where it was left, from where a step is short; another where the workspace was opened again."""
        from trainflow_tui.ledger.past import Past

        if self._past is None or not self._past.is_of(workspace.ledger):
            if self._past is not None:
                self._past.close()
            self._past = Past(workspace.ledger)
        return self._past

    def _close_ledgers(self) -> None:
        if self._past is not None:
            self._past.close()
        self._workspace.close()

    def guide(self, workspace: Workspace, task: str, text: str) -> None:
        """Put guidance into the spool and collect it."""
        from trainflow_tui import refresh  # not needed for first paint: 50 ms of imports

        refresh.add_guidance(workspace, task=task, text=text, actor=current_actor("tui"))

    # The collector

    @property
    def own_watch_runs(self) -> bool:
        """Whether this screen's own child collects."""
        return self._watch is not None and self._watch.poll() is None

    async def ensure_watch(self) -> None:
        """Start a collector as a child unless one is alive already."""
        if self.own_watch_runs or await self.run(lambda w: leases.holder(w.ledger, "watch")) is not None:
            return
        self._watch = self._start_watch("--with-parent", subprocess.PIPE)

    async def leave_watch(self) -> None:
        """End the own collector and start one that outlives this screen."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.stdin.close()
            await asyncio.to_thread(self._watch.wait, 5)
            self._watch = None
        self._start_watch(None, subprocess.DEVNULL)

    def _start_watch(self, flag: str | None, stdin: int) -> subprocess.Popen[bytes]:
        target = os.open(
            self._workspace.logs / "watch.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        try:
            return subprocess.Popen(
                [*_own_command(self._workspace.root), "watch", *([flag] if flag else [])],
                stdin=stdin,
                stdout=target,
                stderr=target,
                start_new_session=True,
            )
        finally:
            os.close(target)

    # Verbs

    async def run_child(self, child: Child, progress: Callable[[str], None]) -> dict[str, Any]:
        """Run a verb, pass on its progress, return its answer.

        Raises:
            TrainflowError: the verb failed; carries its own code and sentence.
        """
        extra = ("--progress", "json") if child.arguments[:2] == ("trace", "add") else ()
        arguments = (*child.arguments[:2], *extra, *child.arguments[2:])
        process = await asyncio.create_subprocess_exec(
            *_own_command(self._workspace.root),
            "--json",
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            answer = await self._answer(process, progress)
        except asyncio.CancelledError:
            process.terminate()
            raise
        await process.wait()
        error = answer.get("error")
        if error:
            raise TrainflowError(
                error["code"], error["message"], subject=error["subject"], next_step=error["next_step"]
            )
        return answer

    @staticmethod
    async def _answer(process: asyncio.subprocess.Process, progress: Callable[[str], None]) -> dict[str, Any]:
        assert process.stderr is not None
        assert process.stdout is not None

        async def follow(stream: asyncio.StreamReader) -> None:
            async for raw in stream:
                try:
                    step = json.loads(raw)
                    progress(f"{100 * step['done'] // max(1, step['total'])} %")
                except (ValueError, KeyError, TypeError):
                    continue

        following = asyncio.create_task(follow(process.stderr))
        output = await process.stdout.read()
        await following
        try:
            found: dict[str, Any] = json.loads(output)
        except ValueError as problem:
            raise TrainflowError(
                "child-failed", "The command ended without an answer.", next_step="`trainflow logs` may say why."
            ) from problem
        return found


def _own_command(root: Path) -> list[str]:
    return [sys.executable, "-m", "trainflow_tui", "--workspace", str(root)]
