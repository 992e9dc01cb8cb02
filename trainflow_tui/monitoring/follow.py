"""Following logs: new lines become stored samples and a fresh summary. One reader a log at a time, each line once."""

from __future__ import annotations

import itertools
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.errors import BusyError, UsageError
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.reading import (
    LEASE_TTL_S,
    LeaseLostError,
    Parsers,
    Position,
    Reading,
    aged,
    sealable,
)
from trainflow_tui.monitoring.source_file import open_source, real_path
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)


class Followed(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of following gave."""

    samples: int = 0
    troubles: list[tuple[str, str]] = []


NOTHING: Final = Followed()


def add_run(workspace: Workspace, path: Path, *, task: str, id: str | None, actor: Actor) -> tuple[str, bool]:
    """Register a log to follow; returns the run's id, and False where this file is followed already.

    Raises:
        UsageError: no such file or task, or the id is taken or not well formed.
        DamagedError: it is no regular file.
    """
    path = real_path(path)  # the reader of a log follows no link
    open_source(path).close()
    chosen = id if id is not None else re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:40] or "run"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", chosen):
        raise UsageError("run-id", f"The id {chosen[:80]!r} is not usable.", subject="id")
    with workspace.ledger.transaction() as transaction:
        if task and not transaction.query("SELECT 1 FROM task WHERE id = ?", (task,)):
            raise UsageError("no-task", f"There is no task {task[:120]!r}.", subject=task[:120])
        rows = transaction.query("SELECT id FROM run WHERE path = ?", (str(path),))
        if rows:
            return str(rows[0][0]), False
        if transaction.query("SELECT 1 FROM run WHERE lower(id) = lower(?)", (chosen,)):
            if id:
                raise UsageError(
                    "run-exists", f"There is a run {id} already.", subject=id, next_step="Give another with --id."
                )
            chosen = f"{chosen}-{secrets.token_hex(3)}"
        transaction.append("run.added", chosen, {"task": task, "path": str(path)}, actor=actor)
    return chosen, True


class Follower:
    """Reads logs on. Keeps each log's parser between rounds, so that a line copied by a second rank is still known as one.

    With `round_s` a round ends after so many seconds, however much there is to read; the next one goes on, beginning with
    the logs that were visited longest ago.
    """

    def __init__(self, *, seals_by_age: bool = False, round_s: float | None = None) -> None:
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._parsers: Parsers = {}
        self._looks: dict[str, tuple[int, ...]] = {}
        self._unfinished: set[str] = set()
        self._visits: dict[str, int] = {}
        self._visit = itertools.count(1)
        self._seals_by_age = seals_by_age
        self._round_s = round_s

    def follow_all(self, workspace: Workspace) -> Followed:
        """One round over all logs. One that cannot be read is a trouble of its own.

        Raises:
            BusyError: the ledger was not to be had.
        """
        end = None if self._round_s is None else workspace.clock.monotonic() + self._round_s

        def go_on() -> bool:
            return end is None or workspace.clock.monotonic() < end

        count, troubles = 0, []
        for run in sorted(status.runs(workspace.ledger), key=lambda run: self._visits.get(run.id, 0)):
            if not go_on():
                break
            self._visits[run.id] = next(self._visit)
            try:
                one = self._follow(workspace, run, go_on)
            except BusyError:
                raise
            except Exception as problem:
                _log.exception("the log of run %s is not read", run.id)
                one = Followed(troubles=[(run.id, f"{run.path}: {problem}")])
            count += one.samples
            troubles += one.troubles
        return Followed(samples=count, troubles=troubles)

    def follow(self, workspace: Workspace, run: str) -> Followed:
        """One round over one log, to its end."""
        found = next(r for r in status.runs(workspace.ledger) if r.id == run)
        return self._follow(workspace, found, lambda: True)

    def _follow(self, workspace: Workspace, run: RunStatus, go_on: Callable[[], bool]) -> Followed:
        position = msgspec.convert(run.tail, Position) if run.tail else Position()
        is_due = sealable(workspace, position, by_age=self._seals_by_age) or run.id in self._unfinished
        if not self._may_be_new(run, position) and not is_due:
            self._look_at_age(workspace, run)
            return NOTHING
        lease = leases.acquire(workspace.ledger, f"tail:{run.id}", self._owner, ttl_s=LEASE_TTL_S)
        if lease is None:
            self._looks.pop(run.id, None)
            return NOTHING  # another process is reading it right now; whether to its end is not known
        try:
            run = next(r for r in status.runs(workspace.ledger) if r.id == run.id)
            reading = Reading(workspace, run, lease, self._parsers, seals_by_age=self._seals_by_age)
            self._unfinished.discard(run.id)
            if reading.run(go_on=go_on):
                self._unfinished.add(run.id)
            return Followed(samples=reading.count, troubles=reading.troubles)
        except BaseException as problem:
            self._looks.pop(run.id, None)  # the next round looks again
            if not isinstance(problem, LeaseLostError):
                raise
            _log.warning("another process reads the log of run %s on", run.id)
            return NOTHING
        finally:
            leases.release(workspace.ledger, lease)

    def _may_be_new(self, run: RunStatus, position: Position) -> bool:
        try:
            found = os.stat(run.path, follow_symlinks=False)
        except OSError:
            return run.summary.state != "missing"
        look = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        if self._looks.get(run.id) == look:
            return False
        self._looks[run.id] = look
        known, first_look = position.tail.file, run.id not in self._parsers
        same = known is not None and look[:2] == (known.device, known.inode) and look[2] == position.tail.size_bytes
        was_read = same and position.tail.offset >= look[2] and run.summary.state != "missing"
        return not (first_look and was_read)

    def _look_at_age(self, workspace: Workspace, run: RunStatus) -> None:
        fresh = aged(workspace, run.summary)
        if fresh == run.summary:
            return
        with workspace.ledger.transaction() as transaction:
            # Without the lease: only where nobody has read on since.
            stored = transaction.query("SELECT updated_at FROM run_status WHERE run = ?", (run.id,))
            if stored == [(run.updated_at,)]:
                status.store_run(transaction, workspace.ledger, run.id, tail=run.tail, summary=fresh)
