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
from types import FrameType
from typing import Final

from trainflow_tui.collaboration import collector, generated_files, spooled
from trainflow_tui.collaboration.change_events import RETRY_S
from trainflow_tui.collaboration.change_events import ChangeWatcher as _Watcher
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.errors import BusyError, TrainflowError
from trainflow_tui.files import shortage
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.leases import Lease
from trainflow_tui.monitoring import leftovers
from trainflow_tui.monitoring.compaction import Upkeep
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.refresh import run_round
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
LEASE: Final = "watch"
LEASE_TTL_S: Final = 15.0
HEARTBEAT_S: Final = 5.0
TICK_S: Final = 1.0
SHORTEST_PAUSE_S: Final = 0.05
FOLLOW_S: Final = 2.0
"""How long one turn reads logs; a long one is read on in the next, so that the heartbeat and the scan are never late."""
UPKEEP_S: Final = 30.0
"""How often the loop asks whether segments are to be rolled up, merged or dropped; while there is such work, one step a turn."""
SETTLE_RETRIES_S: Final = (1.0, 2.0, 5.0, 10.0)
_SOON_AGAIN: Final = frozenset({"collect-failed", "disk-full", "disk-short", "ledger-busy", "ledger-unavailable"})
"""What a disk or another process refused: not left until the next round is due."""


def run_watch(workspace: Workspace, *, with_parent: bool) -> Lease | None:
    """Run until a signal, or until standard input closes; returns the holder where somebody else runs the loop or took it."""
    owner = f"{socket.gethostname()}:{os.getpid()}"
    while True:
        lease = leases.acquire(workspace.ledger, LEASE, owner, ttl_s=LEASE_TTL_S)
        if lease is None:
            return leases.holder(workspace.ledger, LEASE)
        loop = _Loop(workspace, lease, with_parent=with_parent)
        try:
            loop.run()
        finally:
            loop.end()
            _give_back(workspace, lease)
        if loop.lost_the_lease:
            return leases.holder(workspace.ledger, LEASE)
        if not loop.displaced or not loop.wait_for_place():
            return None


def _give_back(workspace: Workspace, lease: Lease) -> None:
    try:
        leases.release(workspace.ledger, lease)
        with workspace.ledger.transaction() as transaction:
            transaction.pulse("watch")
    except TrainflowError as problem:
        # A full disk, say: the lease runs out by itself.
        _log.warning("the lease is not given back: %s", problem)


class _Loop:
    def __init__(self, workspace: Workspace, lease: Lease, *, with_parent: bool) -> None:
        self._workspace = workspace
        self._lease = lease
        self._with_parent = with_parent
        self._stopping = False
        self.lost_the_lease = False
        self.displaced = False
        """The workspace is not at its path any more: what is written here is not found there."""
        self._said = ""
        self._actor = current_actor("watch")
        self._follower = Follower(seals_by_age=True, round_s=FOLLOW_S)
        self._reader = SettledReader(clock=workspace.clock)
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._watcher = _Watcher(self._wakes) if workspace.filesystem.watchable else None
        self._not_before = 0.0
        self._next_scan = 0.0
        self._next_heartbeat = 0.0
        self._next_node_check = 0.0
        self._upkeep = Upkeep()
        self._next_upkeep = 0.0
        self._retries = list(SETTLE_RETRIES_S)

    def run(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        with self._workspace.ledger.transaction() as transaction:
            transaction.pulse("watch")
        while not self._stopping and not self.displaced:
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

    def wait_for_place(self) -> bool:
        """Wait until something stands at the workspace's path again, and open it; False where it is told to end before."""
        _log.warning("%s is not where it was: nothing is collected until it is back", self._workspace.root)
        while not self._stopping:
            try:
                if self._workspace.reopen():
                    return True
            except (TrainflowError, OSError) as problem:
                _log.warning("what stands there now cannot be opened: %s", problem)
                self._not_before = self._workspace.clock.monotonic() + RETRY_S
            self._wait()
        return False

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True

    def _turn(self) -> None:
        now = self._workspace.clock.monotonic()
        self.displaced = self._workspace.is_displaced()
        if self.displaced or now < self._not_before or not self._holds_lease(now):
            return
        self._watch_directories()
        if now >= self._next_scan:
            self._scan(now)
        else:
            if self._drain_wakes():
                self._woken(now)
            self._follow(now)
        if now >= self._next_upkeep and (shortage(self._workspace.state) or not self._upkeep.step(self._workspace)):
            self._next_upkeep = now + UPKEEP_S

    def _watch_directories(self) -> None:
        if self._watcher is None:
            return
        self._watcher.watch(collector.watched_directories(self._workspace))
        if self._watcher.trouble != self._said:
            said = self._watcher.trouble
            with self._workspace.ledger.transaction() as transaction:
                transaction.pulse("watch", _without_events(said) if said else "")
            self._said = said

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
        # From when it was due, so that the rounds do not drift; after a pause (a suspended machine) one round, not all that were missed.
        due, poll_s = self._next_scan, self._workspace.settings.poll_seconds
        self._next_scan = due + poll_s if now - due < TICK_S else now + poll_s
        if any(trouble.code in _SOON_AGAIN for trouble in done.troubles):
            self._next_scan = min(self._next_scan, now + SETTLE_RETRIES_S[-1])
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
        if not shortage(self._workspace.state):
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

    def _pause_s(self) -> float:
        """Until the next turn: a second, less where a scan is due before."""
        left_s = max(self._next_scan, self._not_before) - self._workspace.clock.monotonic()
        return min(TICK_S, max(left_s, SHORTEST_PAUSE_S))

    def _wait(self) -> None:
        if not self._with_parent:
            if not self._stopping:
                threading.Event().wait(self._pause_s())
            return
        try:
            ready, _, _ = select.select([0], [], [], self._pause_s())
            if ready and not os.read(0, 4096):
                self._stopping = True
        except (OSError, ValueError):
            self._stopping = True


def _without_events(reason: str) -> str:
    return f"Changes to files are not reported ({reason}): the files are looked at every {RETRY_S:.0f} s instead."
