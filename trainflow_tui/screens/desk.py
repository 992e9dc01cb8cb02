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
from typing import Any, TypeVar

from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.errors import TrainflowError
from trainflow_tui.ledger import leases, manifest
from trainflow_tui.screens import snapshot as snapshots
from trainflow_tui.screens.host import History
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.text import Display
from trainflow_tui.workspace import Workspace

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
        self._watch: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        """End the thread and the own collector; the children end with their standard input."""
        if self._watch is not None and self._watch.stdin is not None:
            self._watch.stdin.close()
            try:
                self._watch.wait(timeout=3)
            except subprocess.TimeoutExpired:
                self._watch.terminate()
            self._watch = None
        self._thread.submit(self._workspace.close)
        self._thread.shutdown(wait=True)

    async def run(self, change: Callable[[Workspace], T]) -> T:
        """Do something with the workspace in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, change, self._workspace)

    async def changed_since(self, version: tuple[int, int] | None) -> Snapshot | None:
        """A new snapshot, or None when nothing has changed since that version."""

        def look(workspace: Workspace) -> Snapshot | None:
            return None if workspace.ledger.version() == version else snapshots.load(workspace)

        return await self.run(look)

    async def history(self, run: str) -> History:
        """A run's loss and throughput from the store, bucketed; DuckDB is loaded by the first call."""

        def read(workspace: Workspace) -> History:
            paths = [segment.path for segment in manifest.readable(workspace.ledger, run)]
            loss = workspace.store.series(paths, "loss", buckets=HISTORY_BUCKETS)
            points: dict[float, list[float | None]] = {row[0]: [row[2], None] for row in loss}
            for row in workspace.store.series(paths, "throughput", buckets=HISTORY_BUCKETS):
                points.setdefault(row[0], [None, None])[1] = row[2]
            return tuple((step, *values) for step, values in sorted(points.items()))  # type: ignore[misc]

        return await self.run(read)

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
