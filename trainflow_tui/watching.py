"""The loop of `trainflow watch`: who runs it, when a round is due, and what wakes it early.

Its own scan is the truth. watchfiles only shortens the wait, and its failure only lengthens it.
"""

from __future__ import annotations

import logging
import os
import queue
import select
import signal
import socket
import threading
from pathlib import Path
from types import FrameType
from typing import Final

from trainflow_tui.collaboration import collector, generated_files, spooled
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.errors import BusyError
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.leases import Lease
from trainflow_tui.monitoring import leftovers
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.refresh import run_round
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
LEASE: Final = "watch"
LEASE_TTL_S: Final = 15.0
HEARTBEAT_S: Final = 5.0
TICK_S: Final = 1.0
FOLLOW_S: Final = 2.0
"""How long one turn reads logs; a long one is read on in the next, so that the heartbeat and the scan are never late."""
RETRY_S: Final = 5.0
SETTLE_RETRIES_S: Final = (1.0, 2.0, 5.0, 10.0)


def run_watch(workspace: Workspace, *, with_parent: bool) -> Lease | None:
    """Run until a signal, or until standard input closes; returns the holder where somebody else runs the loop or took it."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    lease = leases.acquire(workspace.ledger, LEASE, owner, ttl_s=LEASE_TTL_S)
    if lease is None:
        return leases.holder(workspace.ledger, LEASE)
    loop = _Loop(workspace, lease, with_parent=with_parent)
    try:
        loop.run()
    finally:
        loop.end()
        leases.release(workspace.ledger, lease)
        with workspace.ledger.transaction() as transaction:
            transaction.pulse("watch")
    return leases.holder(workspace.ledger, LEASE) if loop.lost_the_lease else None


class _Loop:
    def __init__(self, workspace: Workspace, lease: Lease, *, with_parent: bool) -> None:
        self._workspace = workspace
        self._lease = lease
        self._with_parent = with_parent
        self._stopping = False
        self.lost_the_lease = False
        self._actor = current_actor("watch")
        self._follower = Follower(seals_by_age=True, round_s=FOLLOW_S)
        self._reader = SettledReader(clock=workspace.clock)
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._watcher = _Watcher(self._wakes) if workspace.filesystem.watchable else None
        self._not_before = 0.0
        self._next_scan = 0.0
        self._next_heartbeat = 0.0
        self._next_node_check = 0.0
        self._retries = list(SETTLE_RETRIES_S)

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        with self._workspace.ledger.transaction() as transaction:
            transaction.pulse("watch")
        while not self._stopping:
            try:
                self._turn()
            except BusyError:
                _log.warning("the ledger was busy; the round is tried again")
            except Exception:
                # A full disk or a damaged file is a reason to say so and to go on, not to leave the rest unwatched.
                _log.exception("a round failed; it is tried again")
                self._not_before = self._workspace.clock.monotonic() + RETRY_S
            self._wait()

    def end(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _turn(self) -> None:
        now = self._workspace.clock.monotonic()
        if now < self._not_before or not self._holds_lease(now):
            return
        if self._watcher is not None:
            self._watcher.watch(collector.watched_directories(self._workspace))
        if now >= self._next_scan:
            self._scan(now)
        else:
            if self._drain_wakes():
                self._woken(now)
            self._follow(now)

    def _holds_lease(self, now: float) -> bool:
        if now >= self._next_heartbeat:
            if not leases.renew(self._workspace.ledger, self._lease, ttl_s=LEASE_TTL_S):
                _log.warning("another process has taken the lease")
                self._stopping = self.lost_the_lease = True
                return False
            self._next_heartbeat = now + HEARTBEAT_S
        return True

    def _scan(self, now: float) -> None:
        self._drain_wakes()
        check = now >= self._next_node_check
        if check:
            self._next_node_check = now + self._workspace.settings.node_seconds
        done = run_round(
            self._workspace, actor=self._actor, follower=self._follower, reader=self._reader, check_nodes=check
        )
        leftovers.drop(self._workspace)
        for trouble in done.troubles:
            _log.warning("%s: %s", trouble.code, trouble.text)
        self._next_scan = self._workspace.clock.monotonic() + self._workspace.settings.poll_seconds
        if done.scan.editing or done.scan.provisional:
            # Being edited, or taken while it was: look again soon, until it has come to rest.
            self._next_scan = min(
                self._next_scan, now + (self._retries.pop(0) if self._retries else SETTLE_RETRIES_S[-1])
            )
        else:
            self._retries = list(SETTLE_RETRIES_S)

    def _woken(self, now: float) -> None:
        # A hint shows "edited, not yet collected" at once, and wakes the scan that settles and collects.
        if spooled.ingest(self._workspace):
            generated_files.render_all(self._workspace)
        if collector.mark_edited(self._workspace):
            self._next_scan = min(self._next_scan, now + SETTLE_RETRIES_S[0])

    def _follow(self, now: float) -> None:
        followed = self._follower.follow_all(self._workspace)
        for run, text in followed.troubles:
            _log.warning("%s: %s", run, text)
        if now >= self._next_node_check:
            from trainflow_tui.monitoring import node_checks

            self._next_node_check = now + self._workspace.settings.node_seconds
            node_checks.check_due(self._workspace)

    def _drain_wakes(self) -> bool:
        woken = False
        while True:
            try:
                self._wakes.get_nowait()
                woken = True
            except queue.Empty:
                return woken

    def _wait(self) -> None:
        if not self._with_parent:
            if not self._stopping:
                threading.Event().wait(TICK_S)
            return
        try:
            ready, _, _ = select.select([0], [], [], TICK_S)
            if ready and not os.read(0, 4096):
                self._stopping = True
        except (OSError, ValueError):
            self._stopping = True


class _Watcher:
    """A supervised thread around watchfiles: it may die of a badly named file or a full inotify table, and is started again."""

    def __init__(self, wakes: queue.SimpleQueue[None]) -> None:
        self._wakes = wakes
        self._directories: tuple[Path, ...] = ()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, directories: tuple[Path, ...]) -> None:
        if directories == self._directories and self._thread is not None and self._thread.is_alive():
            return
        self.stop()
        self._directories = directories
        if directories:
            self._stop = threading.Event()
            self._thread = threading.Thread(
                target=self._run, args=(directories, self._stop), name="watcher", daemon=True
            )
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
            self._thread = None

    def _run(self, directories: tuple[Path, ...], stop: threading.Event) -> None:
        import watchfiles

        while not stop.is_set():
            try:
                changes = watchfiles.watch(
                    *directories,
                    stop_event=stop,
                    recursive=False,
                    watch_filter=None,
                    raise_interrupt=False,
                    rust_timeout=1000,
                )
                for found in changes:
                    if any(_is_news(Path(name)) for _, name in found):
                        self._wakes.put(None)
            except Exception:
                _log.exception("the watcher ended; it starts again")
                stop.wait(5)


def _is_news(path: Path) -> bool:
    return path.name in collector.WATCHED_NAMES or path.parent.name == "spool"
