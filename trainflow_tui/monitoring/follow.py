"""Following logs: new lines become stored samples and a fresh summary. One reader a log at a time, each line once."""

from __future__ import annotations

import os
import re
import secrets
import socket
from pathlib import Path
from typing import Any, Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.errors import UsageError
from trainflow_tui.ledger import leases, manifest
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import samples, signs, status
from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.parser import LogParser
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine
from trainflow_tui.monitoring.logs.tail import TailState, read_new
from trainflow_tui.monitoring.source_file import open_source
from trainflow_tui.monitoring.status import RunEvent, RunStatus, RunSummary
from trainflow_tui.store.metrics import LiveTail
from trainflow_tui.workspace import Workspace

LEASE_TTL_S: Final = 30.0
UNDECIDED_BYTES: Final = 4 << 20
"""A log in whose first 4 MiB no adapter finds a record is not read on."""
SEAL_AFTER_S: Final = 60.0
SEAL_BYTES: Final = 4 << 20


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far a log was read and what its adapter has to know to go on."""

    tail: TailState = TailState()
    adapter: str | None = None
    attempts: AttemptState | None = None
    live: str = ""
    """The open tail of samples, relative to the state directory."""


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
    open_source(path).close()
    if task and not workspace.ledger.query("SELECT 1 FROM task WHERE id = ?", (task,)):
        raise UsageError("no-task", f"There is no task {task[:120]!r}.", subject=task[:120])
    rows = workspace.ledger.query("SELECT id FROM run WHERE path = ?", (str(path),))
    if rows:
        return str(rows[0][0]), False
    chosen = id or re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-.")[:40] or "run"
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", chosen):
        raise UsageError("run-id", f"The id {chosen[:80]!r} is not usable.", subject="id")
    with workspace.ledger.transaction() as transaction:
        if transaction.query("SELECT 1 FROM run WHERE id = ?", (chosen,)):
            if id:
                raise UsageError(
                    "run-exists", f"There is a run {id} already.", subject=id, next_step="Give another with --id."
                )
            chosen = f"{chosen}-{secrets.token_hex(3)}"
        transaction.append("run.added", chosen, {"task": task, "path": str(path)}, actor=actor)
    return chosen, True


class Follower:
    """Reads logs on. Keeps each log's parser between rounds, so that a line copied by a second rank is still known as one."""

    def __init__(self, *, seals_by_age: bool = False) -> None:
        self._owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._parsers: dict[str, tuple[TailState, LogParser]] = {}
        self._looks: dict[str, tuple[int, ...]] = {}
        self._seals_by_age = seals_by_age

    def follow_all(self, workspace: Workspace) -> Followed:
        """One round over all logs."""
        count, troubles = 0, []
        for run in status.runs(workspace.ledger):
            one = self._follow(workspace, run)
            count += one.samples
            troubles += one.troubles
        return Followed(samples=count, troubles=troubles)

    def follow(self, workspace: Workspace, run: str) -> Followed:
        """One round over one log."""
        return self._follow(workspace, next(r for r in status.runs(workspace.ledger) if r.id == run))

    def _follow(self, workspace: Workspace, run: RunStatus) -> Followed:
        position = msgspec.convert(run.tail, Position) if run.tail else Position()
        sealable = _sealable(workspace, position, by_age=self._seals_by_age)
        if not self._may_be_new(run, position) and not sealable:
            return self._look_at_age(workspace, run, position)
        lease = leases.acquire(workspace.ledger, f"tail:{run.id}", self._owner, ttl_s=LEASE_TTL_S)
        if lease is None:
            return NOTHING  # another process is reading it right now
        try:
            run = next(r for r in status.runs(workspace.ledger) if r.id == run.id)
            return _Reading(workspace, run, self._parsers, seals_by_age=self._seals_by_age).run()
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
        return not (first_look and same)

    def _look_at_age(self, workspace: Workspace, run: RunStatus, position: Position) -> Followed:
        fresh = aged(workspace, run.summary)
        if fresh != run.summary:
            _store(workspace, run.id, position, fresh)
        return NOTHING


def aged(workspace: Workspace, summary: RunSummary) -> RunSummary:
    """The summary with its state by the age of the newest sample; only a change of state is news."""
    if summary.state not in ("following", "stale") or not summary.last_sample_at:
        return summary
    now = workspace.clock.now()
    quiet = (now - from_iso(summary.last_sample_at)).total_seconds()
    finished = summary.total_steps is not None and summary.step is not None and summary.step >= summary.total_steps
    stale = not finished and signs.is_stale(quiet, summary.step_time_s)
    state = "stale" if stale else "following"
    if state == summary.state:
        return summary
    events = list(summary.events)
    if stale:
        events.append(RunEvent(type="stalled", step=summary.step, text="nothing new", at=to_iso(now)))
    detail = "nothing new" if stale else ""
    return msgspec.structs.replace(summary, state=state, detail=detail, events=events[-samples.EVENTS_KEPT :])


class _Reading:
    """One round over one log, under its lease."""

    def __init__(
        self,
        workspace: Workspace,
        run: RunStatus,
        parsers: dict[str, tuple[TailState, LogParser]],
        *,
        seals_by_age: bool,
    ) -> None:
        self._workspace = workspace
        self._run = run
        self._parsers = parsers
        self._seals_by_age = seals_by_age
        self._position = msgspec.convert(run.tail, Position) if run.tail else Position()
        self._summary = run.summary
        self._troubles: list[tuple[str, str]] = []
        self._count = 0
        self._live: LiveTail | None = None

    def run(self) -> Followed:
        self._open_live()
        while self._poll():
            pass
        self._summary = aged(self._workspace, self._summary)
        if self._summary != self._run.summary or msgspec.to_builtins(self._position) != self._run.tail:
            _store(self._workspace, self._run.id, self._position, self._summary)
        if _sealable(self._workspace, self._position, by_age=self._seals_by_age):
            self._seal()
        return Followed(samples=self._count, troubles=self._troubles)

    def _open_live(self) -> None:
        if not self._position.live:
            self._position = msgspec.structs.replace(self._position, live=self._new_live())
        self._live = LiveTail(self._workspace.state / self._position.live)

    def _new_live(self) -> str:
        name = f"metrics/{self._run.id}/live/{to_iso(self._workspace.clock.now()).replace(':', '')}-{secrets.token_hex(3)}.jsonl"
        with self._workspace.ledger.transaction() as transaction:
            manifest.start_live(transaction, self._workspace.ledger, self._run.id, name)
        return name

    def _poll(self) -> bool:
        lines, tail, findings = read_new(self._run.path, self._position.tail)
        for finding in findings:
            self._found(finding.code, finding.text)
        if not lines:
            if tail != self._position.tail:
                self._position = msgspec.structs.replace(self._position, tail=tail)
            return False
        parser = self._parser(tail)
        first = parser.next_line
        offsets = {first + i: offset for i, (offset, _) in enumerate(lines)}
        items = parser.feed_lines(lines)
        if parser.adapter is None:
            return self._undecided(tail)
        self._take(items, offsets, tail)
        attempts = getattr(parser.adapter, "attempt_state", None)
        self._position = msgspec.structs.replace(
            self._position, tail=tail, adapter=parser.adapter.name, attempts=attempts
        )
        self._summary = msgspec.structs.replace(
            self._summary,
            framework=parser.adapter.framework,
            state="following" if self._summary.samples else "waiting",
            detail="",
        )
        self._parsers[self._run.id] = (tail, parser)
        _store(self._workspace, self._run.id, self._position, self._summary)
        return True

    def _parser(self, tail: TailState) -> LogParser:
        kept = self._parsers.pop(self._run.id, None)
        if kept is not None and kept[0] == self._position.tail and kept[0].generation == tail.generation:
            return kept[1]
        lines_before = self._position.tail.lines if tail.generation == self._position.tail.generation else 0
        return LogParser(adapter=self._position.adapter, attempts=self._position.attempts, first_line=lines_before + 1)

    def _undecided(self, tail: TailState) -> bool:
        # The position stays: the next round reads the head again, with more behind it.
        if tail.offset > UNDECIDED_BYTES:
            self._summary = msgspec.structs.replace(
                self._summary, state="damaged", detail="no adapter recognises its lines"
            )
            self._position = msgspec.structs.replace(self._position, tail=tail)
        else:
            self._summary = msgspec.structs.replace(self._summary, state="waiting", detail="no metric line yet")
        return False

    def _take(self, items: list[Item], offsets: dict[int, int], tail: TailState) -> None:
        assert self._live is not None
        at, last = to_iso(self._workspace.clock.now()), self._live.last()
        rows: list[dict[str, Any]] = []
        for item in items:
            identity = (tail.generation, offsets.get(item.line or 0, -1))
            if isinstance(item, MetricRecord):
                self._summary = samples.add_record(self._summary, item, at=at)
                # After a crash between the samples and the position these lines are read once more.
                if last is None or identity > last:
                    rows.append(samples.sample(item, generation=identity[0], offset=identity[1], at=at))
                self._count += 1
            elif isinstance(item, LogEvent):
                self._summary = samples.add_event(self._summary, item, at=at)
            elif isinstance(item, RejectedLine):
                self._summary = msgspec.structs.replace(self._summary, rejected=self._summary.rejected + 1)
        self._live.append(rows)

    def _found(self, code: str, text: str) -> None:
        at = to_iso(self._workspace.clock.now())
        if code in ("file-missing", "not-a-regular-file", "unreadable"):
            self._troubles.append((self._run.id, f"{self._run.path}: {text}"))
            self._summary = msgspec.structs.replace(self._summary, state="missing", detail=text)
            return
        events = [*self._summary.events, RunEvent(type=code, text=text, at=at)]
        self._summary = msgspec.structs.replace(self._summary, events=events[-samples.EVENTS_KEPT :])

    def _seal(self) -> None:
        live = self._position.live
        parquet = live.replace("/live/", "/raw/").replace(".jsonl", ".parquet")
        (self._workspace.state / parquet).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        count, first, last = self._workspace.store.seal(live, parquet)
        ledger = self._workspace.ledger
        with ledger.transaction() as transaction:
            manifest.seal(transaction, ledger, live_path=live, parquet_path=parquet, rows=count, first=first, last=last)
            self._position = msgspec.structs.replace(self._position, live="")
            status.store_run(transaction, ledger, self._run.id, tail=self._position, summary=self._summary)


def _sealable(workspace: Workspace, position: Position, *, by_age: bool) -> bool:
    if not position.live:
        return False
    path = workspace.state / position.live
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    if found.st_size == 0:
        return False
    name = path.name.split("Z", 1)[0]
    made = from_iso(f"{name[:13]}:{name[13:15]}:{name[15:]}+00:00")
    age = (workspace.clock.now() - made).total_seconds()
    # A headless refresh does not load DuckDB for a tail of a few lines.
    return found.st_size > SEAL_BYTES or (by_age and age > SEAL_AFTER_S)


def _store(workspace: Workspace, run: str, position: Position, summary: RunSummary) -> None:
    with workspace.ledger.transaction() as transaction:
        status.store_run(transaction, workspace.ledger, run, tail=position, summary=summary)
