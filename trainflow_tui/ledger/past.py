"""The ledger as it was: the events up to one of them, applied to the same tables in memory. The file is only read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import apsw

from trainflow_tui.clock import to_iso
from trainflow_tui.ledger import schema
from trainflow_tui.ledger.database import BUSY_TIMEOUT_S, Ledger, read_only_uri
from trainflow_tui.ledger.failures import translated
from trainflow_tui.ledger.projections import apply
from trainflow_tui.ledger.verification import EVENT_COLUMNS, event_of

CHUNK: Final = 1000
"""Events that are read at a time: a read transaction that lasts keeps the writers' log from being emptied."""
SPACINGS: Final = (128, 1024, 8192)
"""A checkpoint is kept so many events before the one that is gone to, so that steps back from there replay few."""
CHECKPOINTS_BYTES: Final = 64 << 20


class PastClock:
    """The wall clock at the moment that is shown. Nobody has recorded what the monotonic one said: it is not a number."""

    def __init__(self) -> None:
        self.moment = datetime.fromisoformat("0001-01-01T00:00:00+00:00")

    def now(self) -> datetime:
        """The moment that is shown."""
        return self.moment

    def monotonic(self) -> float:
        """Not known, so that a deadline of that time is judged by the wall clock alone."""
        return math.nan


class Past(Ledger):
    """A read-only ledger that stands at a moment. What reads a `Ledger` reads this one; nothing can be written to it.

    The state at a moment is that after the last event whose time is not later than the moment, with all events before that
    one. Where the wall clock was set back, events that stand before it in the chain carry later times and are there as well:
    they had been recorded.

    Tables that are no events (`run_status`, `node_status`, `human_file`, …) are empty until `put` fills them: none of them
    ever holds what is true today. The manifest of segments is today's, since samples carry their own time.
    """

    clock: PastClock

    def __init__(self, source: Ledger) -> None:
        """Open the file of `source` a second time, standing before the first event.

        Raises:
            DamagedError: the file cannot be read.
        """
        with translated(source.path):
            connection = _in_memory(source)
        super().__init__(connection, source.path, PastClock(), readonly=True, newer=source.newer)
        self.loss = source.loss
        self.seq = 0
        """The newest event that is there."""
        self._filled: set[str] = set()
        self._checkpoints: dict[int, bytes] = {0: connection.serialize("main")}

    def is_of(self, ledger: Ledger) -> bool:
        """Whether this is the past of the file that the ledger has open."""
        return self.path == ledger.path and self._identity == ledger._identity

    def go_to(self, moment: datetime) -> int:
        """Stand at a moment; returns the number of the newest event that is there.

        Raises:
            DamagedError: an event cannot be read.
        """
        self.clock.moment = moment
        return self.go_to_seq(self.seq_at(to_iso(moment)))

    def go_to_seq(self, seq: int) -> int:
        """Stand after one event, or the newest where there are fewer. The clock stays where it was put."""
        with translated(self.path):
            newest: list[Any] = self._connection.execute("SELECT seq FROM file.head").fetchall()
            seq = min(seq, int(newest[0][0]))
            self._empty()
            known = max(number for number in self._checkpoints if number <= seq)
            if not known <= self.seq <= seq:
                self._connection.deserialize("main", self._checkpoints[known])
                self.seq = known
            self._replay_to(seq)
        return self.seq

    def seq_at(self, moment: str) -> int:
        """The last event whose time (UTC, as stored) is not later than the moment; 0 before the first."""
        rows = self.query("SELECT seq FROM file.event WHERE at <= ? ORDER BY seq DESC LIMIT 1", (moment,))
        return int(rows[0][0]) if rows else 0

    def next_time(self, moment: str) -> str | None:
        """The next time at which the state changes by an event, None where none comes.

        An event whose time lies behind others that were recorded after it is there with those.
        """
        return self._time("SELECT min(at) FROM file.event WHERE seq > ?", self.seq_at(moment))

    def previous_time(self, moment: str) -> str | None:
        """The last time before the moment at which the state changed by an event, None where there is none."""
        return self._time("SELECT at FROM file.event WHERE at < ? ORDER BY seq DESC LIMIT 1", moment)

    def first_time(self) -> str | None:
        """The earliest time at which an event is there; None without events."""
        return self._time("SELECT min(at) FROM file.event WHERE seq > ?", 0)

    def put(self, table: str, rows: Sequence[Sequence[Any]]) -> None:
        """Let a plain table hold these rows, all of its columns in their order, until the past stands elsewhere."""
        with translated(self.path), self._connection:
            self._connection.execute(f"DELETE FROM main.{table}")
            self._filled.add(table)
            if rows:
                marks = ", ".join("?" * len(rows[0]))
                self._connection.executemany(f"INSERT INTO main.{table} VALUES ({marks})", [tuple(r) for r in rows])

    def _empty(self) -> None:
        while self._filled:
            self._connection.execute(f"DELETE FROM main.{self._filled.pop()}")

    def _time(self, sql: str, value: str | int) -> str | None:
        rows = self.query(sql, (value,))
        return str(rows[0][0]) if rows and rows[0][0] is not None else None

    def _replay_to(self, seq: int) -> None:
        for stop in (*sorted(seq - spacing for spacing in SPACINGS), seq):
            while self.seq < stop:
                self._replay_chunk(stop)
                if self.seq == stop != seq:
                    self._keep_checkpoint(seq)

    def _replay_chunk(self, end: int) -> None:
        rows: list[Any] = self._connection.execute(
            f"SELECT {EVENT_COLUMNS} FROM file.event WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (self.seq, end, CHUNK),
        ).fetchall()
        with self._connection:
            cursor = self._connection.cursor()
            for row in rows:
                apply(cursor, event_of(row))
            # A chain with a gap is damaged, and this is not where it is told.
            last, digest = (rows[-1][0], rows[-1][-1]) if rows else (end, "")
            cursor.execute("UPDATE main.head SET seq = ?, hash = ?", (last, digest))
        self.seq = int(last)

    def _keep_checkpoint(self, seq: int) -> None:
        """Keep the state of here; where they are too many, that one goes which is missed least near `seq`."""
        self._checkpoints[self.seq] = self._connection.serialize("main")
        while len(self._checkpoints) > 2 and sum(map(len, self._checkpoints.values())) > CHECKPOINTS_BYTES:
            kept = sorted(self._checkpoints)
            gaps = {
                here: (after - before) / (abs(seq - here) + SPACINGS[0])
                for before, here, after in zip(kept, kept[1:], [*kept[2:], max(seq, kept[-1])], strict=False)
            }
            del self._checkpoints[min(gaps, key=gaps.__getitem__)]


def _in_memory(source: Ledger) -> apsw.Connection:
    connection = apsw.Connection(
        ":memory:", flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    )
    try:
        connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
        connection.execute("ATTACH ? AS file", (read_only_uri(source.path, readonly=source.readonly),))
        connection.execute(schema.PAST)
        connection.execute(
            "DROP TABLE main.segment; CREATE TABLE main.head (seq INTEGER NOT NULL, hash TEXT NOT NULL); "
            "INSERT INTO main.head VALUES (0, ''); "
            "CREATE TEMP VIEW event AS SELECT * FROM file.event WHERE seq <= (SELECT seq FROM main.head); "
            "CREATE TEMP VIEW segment AS SELECT * FROM file.segment"
        )
    except BaseException:
        connection.close()
        raise
    return connection
