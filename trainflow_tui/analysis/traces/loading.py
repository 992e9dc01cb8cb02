"""One piece of JSON text into one Parquet part through DuckDB, with the first two rungs of the failure ladder."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from trainflow_tui.analysis.traces import columns
from trainflow_tui.analysis.traces.columns import REWRITTEN, TIME_READINGS, RowSchema, TimeReading
from trainflow_tui.analysis.traces.pieces import Piece
from trainflow_tui.analysis.traces.salvage import Salvage, fragments, salvage

GROUP_BYTES = 256 << 10
"""In a damaged piece, stretches of this size are tried whole before they are taken apart."""

_EVENTS = "event"
_ROWS = "typed_row"
_UNREADABLE = (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.OutOfRangeException)
"""What DuckDB raises for text that is no JSON, or no array of objects of the expected shape."""


class JsonSlot:
    """A reusable file for one JSON array: memory where the system can name it by a path, else a temporary file."""

    def __init__(self) -> None:
        self.size_bytes = 0
        if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
            self._descriptor = os.memfd_create("trainflow-trace")
            self.path = f"/proc/self/fd/{self._descriptor}"
            self._temporary = False
        else:
            self._descriptor, self.path = tempfile.mkstemp(prefix="trainflow-trace-", suffix=".json")
            self._temporary = True

    def write(self, *texts: bytes | memoryview) -> None:
        """Replace the content."""
        at = 0
        for text in texts:
            view = memoryview(text)
            while view:
                written = os.pwrite(self._descriptor, view, at)
                view, at = view[written:], at + written
        os.ftruncate(self._descriptor, at)
        self.size_bytes = at

    def read(self) -> bytes:
        """The content."""
        return os.pread(self._descriptor, self.size_bytes, 0)

    def close(self) -> None:
        """Give the memory or the file back."""
        os.close(self._descriptor)
        if self._temporary:
            os.unlink(self.path)


@dataclass(slots=True)
class PieceOutcome:
    """What one piece contributed. Counts are (category, is complete, verdict) → (events, sum of ns)."""

    part: str | None = None
    rows: int = 0
    counts: dict[tuple[str, bool, str], tuple[int, int]] = field(default_factory=dict)
    repaired: int = 0
    bad: int = 0
    not_events: int = 0
    damaged: bool = False
    cut_suspect: bool = False
    """The piece begins or ends within something that could not be read: perhaps it was cut inside an event."""


class PieceLoader:
    """A slot, a DuckDB cursor and what is needed to turn the slot's text into a part. Used by one thread at a time."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, reading: TimeReading, schema: RowSchema) -> None:
        self._slot = JsonSlot()
        self._final = False
        self._rest: bytes | None = None
        self._cursor = connection.cursor()
        self._reading = reading
        self._schema = schema
        self._spare: JsonSlot | None = None

    def interrupt(self) -> None:
        """Stop the running query, from another thread."""
        self._cursor.interrupt()

    def close(self) -> None:
        """Release slot and cursor."""
        self._slot.close()
        if self._spare:
            self._spare.close()
        self._cursor.close()

    def take(self, piece: Piece) -> None:
        """Copy a piece into the slot; the piece may go then."""
        self._final = piece.final
        self._rest = None if piece.rest is None else bytes(piece.rest)
        self._slot.write(b"[", piece.body, b"]")

    def load(self, part: Path, *, on_event: Callable[[], None]) -> PieceOutcome:
        """Turn the piece that was taken into `part`, a Parquet file that is not left there if it has no row.

        `on_event` is called for each event of a damaged piece; what it raises ends the call.
        """
        outcome = PieceOutcome()
        reading = self._load_whole()
        if reading is None:
            reading = REWRITTEN
            outcome.damaged = True
            text = self._slot.read()[1:-1] if self._rest is None else self._rest
            self._load_salvaged(memoryview(text), outcome, on_event)
        self._count_others(reading, outcome)
        self._cursor.execute(
            f"CREATE OR REPLACE TEMP TABLE {_ROWS} AS {columns.typed_rows(_EVENTS, reading, self._schema)}"
        )
        for category, verdict, events, total_ns in self._all(columns.count_rows(_ROWS)):
            outcome.counts[category, True, verdict] = (events, int(total_ns))
        outcome.rows = self._all(columns.copy_rows(_ROWS, str(part)))[0][0]
        if outcome.rows:
            outcome.part = str(part)
        else:
            part.unlink()
        return outcome

    def _count_others(self, reading: TimeReading, outcome: PieceOutcome) -> None:
        for category, complete, found, total_ns, strays in self._all(columns.count_others(_EVENTS, reading)):
            outcome.not_events += strays
            if found > strays:
                outcome.counts[category, complete, "other"] = (found - strays, int(total_ns))

    def _load_whole(self) -> TimeReading | None:
        """Load the slot with the fastest reading that is exact; None if its text is no JSON array of events."""
        first = TIME_READINGS.index(self._reading)
        for reading in TIME_READINGS[first:]:
            slot = self._rewritten(self._slot.read()) if reading.rewrites else self._slot
            try:
                self._create(slot, reading)
            except _UNREADABLE:
                continue
            if self._all(f"SELECT {reading.enough} FROM {_EVENTS}")[0][0]:
                self._reading = reading
                return reading
        return None

    def _load_salvaged(self, text: memoryview, outcome: PieceOutcome, on_event: Callable[[], None]) -> None:
        """Load what can be had of a damaged piece: stretches that parse as they are, the others event by event."""
        empty = self._rewritten(b"[]")
        self._create(empty, REWRITTEN)
        marks = fragments(text)
        index, last = 0, len(marks) - 1
        while index < last:
            stop = index + 1
            while stop < last and marks[stop + 1] - marks[index] <= GROUP_BYTES:
                stop += 1
            stretch = bytes(text[marks[index] : marks[stop]]).strip(b" \t\r\n,")
            if self._insert(b"[" + stretch + b"]"):
                index = stop
                continue
            saved = salvage(text, marks, index, stop, on_event=on_event)
            if saved.events and not self._insert(saved.rows()):
                saved = Salvage(bad=len(saved.events) + saved.bad, end=saved.end)
            outcome.repaired += saved.repaired
            outcome.bad += saved.bad
            outcome.not_events += saved.not_events
            lost_first = saved.first_bad and index == 0
            lost_last = saved.last_bad and saved.end == last and not self._final
            outcome.cut_suspect |= lost_first or lost_last or saved.array_ended
            index = saved.end
            if saved.array_ended and self._final:
                break

    def _insert(self, array: bytes) -> bool:
        slot = self._rewritten(array)
        try:
            self._cursor.execute(f"INSERT INTO {_EVENTS} {self._selected(slot, REWRITTEN)}")
        except _UNREADABLE:
            return False
        return True

    def _create(self, slot: JsonSlot, reading: TimeReading) -> None:
        self._cursor.execute(f"CREATE OR REPLACE TEMP TABLE {_EVENTS} AS {self._selected(slot, reading)}")

    def _selected(self, slot: JsonSlot, reading: TimeReading) -> str:
        source = columns.source_table(slot.path, reading, self._schema, slot.size_bytes)
        return f"SELECT *, {columns.wanted(self._schema)} AS wanted FROM {source}"

    def _rewritten(self, array: bytes) -> JsonSlot:
        self._spare = self._spare or JsonSlot()
        self._spare.write(columns.with_nanoseconds(array))
        return self._spare

    def _all(self, sql: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._cursor.execute(sql).fetchall()
        return rows


def connect(spill_directory: Path, *, threads: int, memory_limit: str) -> duckdb.DuckDBPyConnection:
    """An in-memory DuckDB that touches no network and spills only where it is told (spec/engine.md §6.4)."""
    return duckdb.connect(
        ":memory:",
        config={
            "threads": threads,
            "memory_limit": memory_limit,
            "temp_directory": str(spill_directory),
            "preserve_insertion_order": False,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "enable_external_file_cache": False,  # slots keep their path and change their content
        },
    )
