"""A trace, from a binary stream to Parquet parts: cut into pieces, parsed by DuckDB, every loss counted.

The failure ladder (spec/engine.md §3): a piece parses whole; else it is salvaged event by event; if its first or last
event is lost the cut itself is suspect and the file is read again, cut by bracket count; a file that breaks off gives
what was complete; only what is no trace at all is an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from trainflow_tui.analysis.traces.categories import DEVICE_CATEGORIES, LEGACY_CATEGORIES, is_known
from trainflow_tui.analysis.traces.columns import ALL_ROWS, KEPT_VERDICTS, RowSchema, TimeReading, likely_reading
from trainflow_tui.analysis.traces.envelope import not_a_trace
from trainflow_tui.analysis.traces.loading import PieceLoader, PieceOutcome, connect
from trainflow_tui.analysis.traces.pieces import EventArray
from trainflow_tui.analysis.traces.records import CategoryCount, IngestResult, TraceQuality
from trainflow_tui.analysis.traces.source import BinaryStream, TraceSource
from trainflow_tui.errors import TrainflowError

PIECE_BYTES = 32 << 20
MEMORY_LIMIT = "1GB"
CANCEL_POLL_S = 0.02

Progress = Callable[[int, int | None], None]
"""Called with the bytes of the source consumed so far and their total, None where that is unknown."""

_DEFECTS = (
    "unreadable_time",
    "negative_duration",
    "without_timestamp",
    "implausible_duration",
    "zero_duration",
)


class IngestCancelledError(TrainflowError):
    """The caller asked for an end; no part is left behind."""

    exit_code = 130

    def __init__(self) -> None:
        super().__init__("cancelled", "Reading the trace was cancelled.")


class _CutSuspectError(Exception):
    """A piece may have been cut inside an event."""


def ingest(
    stream: BinaryStream,
    destination: Path,
    *,
    schema: RowSchema = ALL_ROWS,
    piece_bytes: int = PIECE_BYTES,
    workers: int = 1,
    total_bytes: int | None = None,
    on_progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> IngestResult:
    """Read a trace from `stream` into Parquet parts `p00001.parquet` … in `destination`, an existing directory.

    Rows are the complete events of the kept categories, times in integer nanoseconds, exact on every supported DuckDB.
    Memory is bounded by the piece size, whatever the size of the file.

    Args:
        stream: JSON text, plain or gzip. Read forwards; only a file that misleads the quick cut is read twice, and a
            stream that cannot seek then keeps what the first reading saved.
        destination: where the parts go. The caller makes it visible (rename) when the call has returned.
        schema: which events become rows with which columns; `DEVICE_ROWS` for a single hot-spot table.
        piece_bytes: text that is parsed at a time.
        workers: threads that parse; DuckDB parses without Python's lock.
        total_bytes: size of the source, for `on_progress` only.
        on_progress: called between pieces with bytes consumed and total.
        cancelled: asked at every piece, and every 20 ms while pieces are awaited; true ends the call.

    Raises:
        DamagedError: the stream holds no trace; says why.
        IngestCancelledError: `cancelled` said so.
        TrainflowError: the parts could not be written.
    """
    job = _Ingest(destination, schema, piece_bytes, workers, total_bytes, on_progress, cancelled or (lambda: False))
    try:
        return _read_again_if_suspect(job, stream)
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise TrainflowError(
            "trace-not-stored",
            f"The trace could not be stored: {reason}",
            subject=str(destination),
            next_step="Check the free space and memory.",
        ) from error


def _read_again_if_suspect(job: _Ingest, stream: BinaryStream) -> IngestResult:
    seekable = getattr(stream, "seekable", lambda: False)()
    origin = stream.tell() if seekable else 0  # type: ignore[attr-defined]
    try:
        return job.read(TraceSource(stream), structural=False, keep_suspects=not seekable)
    except _CutSuspectError:
        stream.seek(origin)  # type: ignore[attr-defined]
        return job.read(TraceSource(stream), structural=True, keep_suspects=True)


@dataclass(slots=True)
class _Running:
    """Loaders at work and at rest, and what each piece gave so far."""

    idle: list[PieceLoader]
    busy: dict[Future[PieceOutcome], PieceLoader] = field(default_factory=dict)
    futures: list[Future[PieceOutcome]] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Called for each event that is salvaged."""
        if self.stop.is_set():
            raise IngestCancelledError


@dataclass(slots=True)
class _Ingest:
    destination: Path
    schema: RowSchema
    piece_bytes: int
    workers: int
    total_bytes: int | None
    on_progress: Progress | None
    cancelled: Callable[[], bool]

    def read(self, source: TraceSource, *, structural: bool, keep_suspects: bool) -> IngestResult:
        """One reading of the whole source."""
        array = EventArray(source, piece_bytes=self.piece_bytes, structural=structural)
        reading = likely_reading(array.head())
        with self._loaders(reading) as loaders:
            outcomes = self._load_all(array, source, loaders, keep_suspects)
        return _result(array, source, outcomes, structural)

    @contextmanager
    def _loaders(self, reading: TimeReading) -> Iterator[list[PieceLoader]]:
        connection = connect(self.destination, threads=self.workers, memory_limit=MEMORY_LIMIT)
        loaders: list[PieceLoader] = []
        try:
            for _ in range(self.workers):
                loaders.append(PieceLoader(connection, reading, self.schema))
            yield loaders
        finally:
            for loader in loaders:
                loader.close()
            connection.close()

    def _load_all(
        self, array: EventArray, source: TraceSource, loaders: list[PieceLoader], keep_suspects: bool
    ) -> list[PieceOutcome]:
        running = _Running(idle=list(loaders))
        with ThreadPoolExecutor(self.workers, thread_name_prefix="trace-piece") as pool:
            try:
                for piece in array.pieces():
                    loader = running.idle.pop()
                    loader.take(piece)
                    future = pool.submit(loader.load, self._part(len(running.futures)), on_event=running.check)
                    running.busy[future] = loader
                    running.futures.append(future)
                    self._report(source)
                    # Alone, a worker is awaited before the next piece is decompressed: two threads on the two halves
                    # of one core cost 40 % more CPU seconds and won no time.
                    self._settle(running, until=self.workers - 1, keep_suspects=keep_suspects)
                self._settle(running, until=0, keep_suspects=keep_suspects)
            except BaseException:
                self._abandon(running)
                raise
        self._report(source)
        return [future.result() for future in running.futures]

    def _settle(self, running: _Running, *, until: int, keep_suspects: bool) -> None:
        """Wait until at most `until` pieces are being parsed."""
        if self.cancelled():
            raise IngestCancelledError
        while len(running.busy) > until:
            done, _ = wait(running.busy, timeout=CANCEL_POLL_S, return_when=FIRST_COMPLETED)
            for future in done:
                running.idle.append(running.busy.pop(future))
                if future.result().cut_suspect and not keep_suspects:
                    raise _CutSuspectError
            if self.cancelled():
                raise IngestCancelledError

    def _abandon(self, running: _Running) -> None:
        running.stop.set()
        for loader in running.busy.values():
            loader.interrupt()
        wait(running.busy)
        for index in range(len(running.futures)):
            self._part(index).unlink(missing_ok=True)

    def _part(self, index: int) -> Path:
        return self.destination / f"p{index + 1:05d}.parquet"

    def _report(self, source: TraceSource) -> None:
        if self.on_progress:
            self.on_progress(source.bytes_read, self.total_bytes)


def _result(array: EventArray, source: TraceSource, outcomes: list[PieceOutcome], structural: bool) -> IngestResult:
    categories = _categories(outcomes)
    events = sum(count.events for count in categories.values())
    bad = sum(outcome.bad for outcome in outcomes)
    not_events = sum(outcome.not_events for outcome in outcomes)
    parts = tuple(str(outcome.part) for outcome in outcomes if outcome.part)
    if not events and (bad or not_events):
        raise not_a_trace("its array holds no events")
    quality = TraceQuality(
        rows=sum(outcome.rows for outcome in outcomes),
        truncated=array.truncated,
        tail_damaged=array.tail_damaged,
        header_damaged=array.header_damaged,
        cut_structurally=structural,
        damaged_pieces=sum(outcome.damaged for outcome in outcomes),
        repaired=sum(outcome.repaired for outcome in outcomes),
        bad=bad,
        not_events=not_events,
        notes=() if _has_device_events(categories) else ("no-device-events",),
        **_defects(outcomes),
    )
    return IngestResult(
        parts=parts,
        events=events,
        categories=categories,
        quality=quality,
        metadata=array.metadata,
        source_sha256=source.sha256,
        source_bytes=source.bytes_read,
    )


def _categories(outcomes: list[PieceOutcome]) -> dict[str, CategoryCount]:
    sums: dict[str, list[int]] = {}
    for outcome in outcomes:
        for (category, complete, verdict), (events, total_ns) in outcome.counts.items():
            entry = sums.setdefault(category, [0, 0, 0, 0])
            entry[0] += events
            if complete:
                entry[1] += events
                entry[2] += events if verdict in KEPT_VERDICTS else 0
                entry[3] += total_ns if verdict in (*KEPT_VERDICTS, "other") else 0
    return {
        category: CategoryCount(
            events=events, complete=complete, rows=rows, total_ns=total_ns, known=is_known(category)
        )
        for category, (events, complete, rows, total_ns) in sorted(sums.items())
    }


def _has_device_events(categories: dict[str, CategoryCount]) -> bool:
    return any(
        count.rows and LEGACY_CATEGORIES.get(category, category) in DEVICE_CATEGORIES
        for category, count in categories.items()
    )


def _defects(outcomes: list[PieceOutcome]) -> dict[str, Any]:
    defects: dict[str, Any] = dict.fromkeys(_DEFECTS, 0)
    for outcome in outcomes:
        for (_, _, verdict), (events, _) in outcome.counts.items():
            if verdict in defects:
                defects[verdict] += events
    return defects
