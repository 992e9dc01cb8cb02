"""One round over one log, under its lease: new lines become stored samples and a fresh summary, each once."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.ledger import leases, manifest
from trainflow_tui.ledger.database import Transaction
from trainflow_tui.ledger.leases import Lease
from trainflow_tui.monitoring import samples, signs, status
from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.parser import LogParser
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine
from trainflow_tui.monitoring.logs.tail import TailFinding, TailState, read_new
from trainflow_tui.monitoring.status import RunEvent, RunStatus, RunSummary
from trainflow_tui.store.metrics import LiveTail
from trainflow_tui.workspace import Workspace

LEASE_TTL_S: Final = 30.0
UNDECIDED_BYTES: Final = 4 << 20
"""A log in whose first 4 MiB no adapter finds a record is not read on."""
POLL_BYTES: Final = 5 << 20
"""What is read before the position is stored and the lease kept: a second's work. More than `UNDECIDED_BYTES`."""
SEAL_AFTER_S: Final = 60.0
SEAL_BYTES: Final = 4 << 20
_TROUBLES: Final = ("file-missing", "not-a-regular-file", "unreadable")
Parsers = dict[str, tuple[TailState, LogParser]]


class LeaseLostError(Exception):
    """Another process has taken the log over since; what was read here is read there."""


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """How far a log was read and what its adapter has to know to go on."""

    tail: TailState = TailState()
    adapter: str | None = None
    attempts: AttemptState | None = None
    live: str = ""
    """The open tail of samples, relative to the state directory."""


def aged(workspace: Workspace, summary: RunSummary) -> RunSummary:
    """The summary with its state by the age of the newest sample; only a change of state is news."""
    if summary.state not in ("following", "stale") or not summary.last_sample_at:
        return summary
    now = workspace.clock.now()
    quiet = (now - from_iso(summary.last_sample_at)).total_seconds()
    if quiet < 0:
        # The clock was set back: what is known is that it came before now.
        return msgspec.structs.replace(summary, last_sample_at=to_iso(now))
    state, detail = state_at(summary, now)
    if state == summary.state:
        return summary
    events = list(summary.events)
    if state == "stale":
        events.append(RunEvent(type="stalled", step=summary.step, text=detail, at=to_iso(now)))
    return msgspec.structs.replace(summary, state=state, detail=detail, events=events[-samples.EVENTS_KEPT :])


def state_at(summary: RunSummary, now: datetime) -> tuple[str, str]:
    """Whether a log that was read is followed or stale by the age of its newest sample, and the words for it."""
    quiet = (now - from_iso(summary.last_sample_at)).total_seconds()
    finished = summary.total_steps is not None and summary.step is not None and summary.step >= summary.total_steps
    if not finished and signs.is_stale(quiet, summary.step_time_s):
        return "stale", "nothing new"
    return "following", ""


class Reading:
    """One round over one log by the holder of its lease."""

    def __init__(
        self, workspace: Workspace, run: RunStatus, lease: Lease, parsers: Parsers, *, seals_by_age: bool
    ) -> None:
        self._workspace = workspace
        self._run = run
        self._lease = lease
        self._parsers = parsers
        self._seals_by_age = seals_by_age
        self._position = msgspec.convert(run.tail, Position) if run.tail else Position()
        self._summary = run.summary
        self._live: LiveTail | None = None
        self.troubles: list[tuple[str, str]] = []
        self.count = 0
        """Samples that were read."""

    def run(self, *, go_on: Callable[[], bool]) -> bool:
        """Read until nothing is new, or until `go_on` says no; returns whether there was more.

        Raises:
            LeaseLostError: nothing that was read after that is recorded.
        """
        more = True
        while more := self._poll():
            if sealable(self._workspace, self._position, by_age=False):
                self._seal()
            if not go_on():
                break
        self._summary = aged(self._workspace, self._summary)
        if self._summary != self._run.summary or msgspec.to_builtins(self._position) != self._run.tail:
            self._store()
        if sealable(self._workspace, self._position, by_age=self._seals_by_age):
            self._seal()
        return more

    def _store(self) -> None:
        with self._workspace.ledger.transaction() as transaction:
            self._store_in(transaction)

    def _store_in(self, transaction: Transaction) -> None:
        ledger = self._workspace.ledger
        if not leases.keep(transaction, ledger.clock, self._lease, ttl_s=LEASE_TTL_S):
            raise LeaseLostError(self._lease.name)
        status.store_run(transaction, ledger, self._run.id, tail=self._position, summary=self._summary)

    def _open_live(self) -> LiveTail:
        if self._live is None:
            if not self._position.live:
                made = to_iso(self._workspace.clock.now()).replace(":", "")
                name = f"metrics/{self._run.id}/live/{made}-{secrets.token_hex(3)}.jsonl"
                self._position = msgspec.structs.replace(self._position, live=name)
                with self._workspace.ledger.transaction() as transaction:
                    manifest.start_live(transaction, self._workspace.ledger, self._run.id, name)
                    self._store_in(transaction)
            self._live = LiveTail(self._workspace.state / self._position.live)
        return self._live

    def _poll(self) -> bool:
        before = self._position.tail
        lines, tail, findings = read_new(self._run.path, before, max_bytes=POLL_BYTES)
        self._met_trouble(findings)
        if not lines:
            self._passed(tail, findings)
            return (tail.generation, tail.offset) != (before.generation, before.offset)
        parser = self._parser(tail)
        first = parser.next_line
        offsets = {first + i: offset for i, (offset, _) in enumerate(lines)}
        items = parser.feed_lines(lines)
        if parser.adapter is None:
            self._undecided(tail, findings)
            return False
        self._take(items, offsets, tail)
        self._passed(tail, findings)
        attempts = getattr(parser.adapter, "attempt_state", None)
        self._position = msgspec.structs.replace(self._position, adapter=parser.adapter.name, attempts=attempts)
        self._summary = msgspec.structs.replace(
            self._summary,
            framework=parser.adapter.framework,
            state="following" if self._summary.samples else "waiting",
            detail="",
        )
        self._store()
        self._parsers[self._run.id] = (tail, parser)
        return True

    def _parser(self, tail: TailState) -> LogParser:
        kept = self._parsers.pop(self._run.id, None)
        if kept is not None and kept[0] == self._position.tail and kept[0].generation == tail.generation:
            return kept[1]
        lines_before = self._position.tail.lines if tail.generation == self._position.tail.generation else 0
        return LogParser(adapter=self._position.adapter, attempts=self._position.attempts, first_line=lines_before + 1)

    def _undecided(self, tail: TailState, findings: Sequence[TailFinding]) -> None:
        # The position stays: the next round reads the head again, with more behind it.
        if tail.offset > UNDECIDED_BYTES:
            self._summary = msgspec.structs.replace(
                self._summary, state="damaged", detail="no adapter recognises its lines"
            )
            self._passed(tail, findings)
        else:
            self._summary = msgspec.structs.replace(self._summary, state="waiting", detail="no metric line yet")

    def _take(self, items: list[Item], offsets: dict[int, int], tail: TailState) -> None:
        live = self._open_live()
        at, last = to_iso(self._workspace.clock.now()), live.last()
        rows: list[dict[str, Any]] = []
        met: Counter[int] = Counter()
        for item in items:
            if isinstance(item, MetricRecord):
                # Several records of one line, which a progress bar rewrites, are told apart by their place in it.
                offset = offsets.get(item.line or 0, -1) + met[item.line]
                met[item.line] += 1
                self._summary = samples.add_record(self._summary, item, at=at)
                # After a crash between the samples and the position these lines are read once more.
                if last is None or (tail.generation, offset) > last:
                    rows.append(samples.sample(item, generation=tail.generation, offset=offset, at=at))
                self.count += 1
            elif isinstance(item, LogEvent):
                self._summary = samples.add_event(self._summary, item, at=at)
            elif isinstance(item, RejectedLine):
                self._summary = msgspec.structs.replace(self._summary, rejected=self._summary.rejected + 1)
        live.append(rows)

    def _met_trouble(self, findings: Sequence[TailFinding]) -> None:
        found = [finding for finding in findings if finding.code in _TROUBLES]
        for finding in found:
            self.troubles.append((self._run.id, f"{self._run.path}: {finding.text}"))
            self._summary = msgspec.structs.replace(self._summary, state="missing", detail=finding.text)
        if not found and self._summary.state == "missing":
            state = "following" if self._summary.samples else "waiting"
            self._summary = msgspec.structs.replace(self._summary, state=state, detail="")

    def _passed(self, tail: TailState, findings: Sequence[TailFinding]) -> None:
        """Move the position, and note what was met on the way: once, since this way is not gone again."""
        at = to_iso(self._workspace.clock.now())
        notes = [RunEvent(type=f.code, text=f.text, at=at) for f in findings if f.code not in _TROUBLES]
        if notes:
            events = [*self._summary.events, *notes][-samples.EVENTS_KEPT :]
            self._summary = msgspec.structs.replace(self._summary, events=events)
        self._position = msgspec.structs.replace(self._position, tail=tail)

    def _seal(self) -> None:
        live = self._position.live
        # A name of this seal's own: a reader that was stopped for long must not write over what its successor recorded.
        stem = live.replace("/live/", "/raw/").removesuffix(".jsonl")
        parquet = f"{stem}-{secrets.token_hex(4)}.parquet"
        count, first, last = self._workspace.store.seal(live, parquet)
        ledger = self._workspace.ledger
        with ledger.transaction() as transaction:
            if not (self._workspace.state / parquet).exists():
                raise LeaseLostError(parquet)  # after a long stop it was swept as a leftover
            self._position = msgspec.structs.replace(self._position, live="")
            self._store_in(transaction)
            manifest.seal(transaction, ledger, live_path=live, parquet_path=parquet, rows=count, first=first, last=last)
        self._live = None


def sealable(workspace: Workspace, position: Position, *, by_age: bool) -> bool:
    """Whether the open tail of samples is to become a Parquet segment: by its size, or by its age where that is asked."""
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
