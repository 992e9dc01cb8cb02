"""The ledger file: opening it safely, transactions, the chain, verification and rebuilding.

SQLite comes with apsw, so that every process has a version without the WAL defect of releases before 3.51.3.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec

from trainflow_tui.clock import Clock, to_iso
from trainflow_tui.errors import BusyError, DamagedError, RefusedError
from trainflow_tui.ledger import schema
from trainflow_tui.ledger.events import Actor, Event, canonical, decode_payload, event_hash, event_key
from trainflow_tui.ledger.projections import apply

BUSY_TIMEOUT_S = 10.0


class Transaction:
    """Writes of one `BEGIN IMMEDIATE`. Nothing is accepted before `Ledger.transaction` has returned."""

    def __init__(self, cursor: apsw.Cursor, clock: Clock) -> None:
        self._cursor = cursor
        self._clock = clock
        self.appended: list[Event] = []

    def append(
        self, kind: str, entity: str, payload: dict[str, Any], *, actor: Actor, idempotency: str | None = None
    ) -> Event | None:
        """Add one event and bring the tables up to date; None when this very step is recorded already.

        The predecessor in the identity is the entity's last event as seen inside this transaction, or the idempotency key.
        """
        payload_json = canonical(payload)
        predecessor = idempotency if idempotency is not None else self._last_hash(entity)
        key = event_key(kind, entity, predecessor, payload_json)
        if self.query("SELECT 1 FROM event WHERE key = ?", (key,)):
            return None
        ((last, prev),) = self.query("SELECT seq, hash FROM head")
        seq, at, actor_json = last + 1, to_iso(self._clock.now()), canonical(actor)
        digest = event_hash(prev, seq, key, kind, entity, at, actor_json, payload_json)
        self.execute(
            "INSERT INTO event (seq, key, kind, entity, at, actor, payload, prev, hash) VALUES (?,?,?,?,?,?,?,?,?)",
            (seq, key, kind, entity, at, actor_json, payload_json, prev, digest),
        )
        self.execute("UPDATE head SET seq = ?, hash = ?", (seq, digest))
        event = Event(
            seq=seq,
            key=key,
            kind=kind,
            entity=entity,
            at=at,
            actor=actor,
            payload=decode_payload(payload_json),
            prev=prev,
            hash=digest,
        )
        apply(self._cursor, event)
        self.appended.append(event)
        return event

    def _last_hash(self, entity: str) -> str:
        rows = self.query("SELECT hash FROM event WHERE entity = ? ORDER BY seq DESC LIMIT 1", (entity,))
        return rows[0][0] if rows else ""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT, read inside this transaction."""
        return list(self._cursor.execute(sql, tuple(parameters)))

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """One statement on a plain table (heartbeats, cursors, the segment manifest)."""
        self._cursor.execute(sql, tuple(parameters))

    def pulse(self, topic: str, detail: str = "") -> None:
        """Tell watching processes that measured facts of this topic changed, which no event says."""
        self.execute(
            "INSERT INTO pulse VALUES (?, 1, ?, ?) ON CONFLICT (topic) DO UPDATE SET n = n + 1, at = excluded.at, "
            "detail = excluded.detail",
            (topic, to_iso(self._clock.now()), detail),
        )


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk over the whole chain found. `first_bad_seq` is None when every link holds."""

    events: int
    first_bad_seq: int | None
    problem: str
    integrity: str
    projections_match: bool


class Ledger:
    """One open ledger. Safe for many processes; one object belongs to one thread."""

    def __init__(self, connection: apsw.Connection, path: Path, clock: Clock, *, readonly: bool) -> None:
        self._connection = connection
        self.path = path
        self.clock = clock
        self.readonly = readonly

    @classmethod
    def open(cls, path: Path, *, clock: Clock, local_filesystem: bool = True, readonly: bool = False) -> Ledger:
        """Open or create the file and bring its schema up to date.

        A file of a newer schema opens read-only. On a network file system the journal is a rollback journal, since WAL
        needs memory shared by all writers.

        Raises:
            DamagedError: the file is not a ledger.
            BusyError: another process held the file for longer than 10 s.
        """
        flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            if not readonly:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
            connection = apsw.Connection(str(path), flags=flags)
            connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
            connection.execute("PRAGMA mmap_size = 0; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF")
            version = _schema_version(connection)
            if version == 0 and connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall():
                raise DamagedError(
                    "not-a-ledger",
                    f"{path} is a database of another program.",
                    subject=str(path),
                    next_step="Name another directory; this file is left as it is.",
                )
            if not readonly and version < schema.SCHEMA_VERSION:
                _retry(lambda: connection.execute(f"PRAGMA journal_mode = {'WAL' if local_filesystem else 'DELETE'}"))
                _migrate(connection)
        except (apsw.NotADBError, apsw.CorruptError) as problem:
            raise DamagedError(
                "not-a-ledger",
                f"{path} is not a ledger that this program can read ({problem}).",
                subject=str(path),
                next_step="Move the file aside; keep it, it may hold decisions.",
            ) from problem
        except apsw.BusyError as problem:
            raise _busy(path) from problem
        except (apsw.CantOpenError, OSError) as problem:
            raise DamagedError(
                "ledger-unavailable", f"{path} cannot be opened: {problem}.", subject=str(path), next_step=""
            ) from problem
        newer = version > schema.SCHEMA_VERSION
        if newer:
            connection.execute("PRAGMA query_only = ON")
        return cls(connection, path, clock, readonly=readonly or newer)

    def close(self) -> None:
        """Close the file; a further call does nothing."""
        self._connection.close()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT; the read transaction ends before this returns."""
        try:
            return self._connection.execute(sql, tuple(parameters)).fetchall()
        except apsw.BusyError as problem:
            raise _busy(self.path) from problem

    def head(self) -> int:
        """The sequence number of the newest event, 0 for none."""
        return int(self.query("SELECT seq FROM head")[0][0])

    def version(self) -> tuple[int, int]:
        """A pair that changes exactly when something a screen shows has changed: events, and pulses of measured facts."""
        rows = self.query("SELECT (SELECT seq FROM head), (SELECT coalesce(sum(n), 0) FROM pulse)")
        return int(rows[0][0]), int(rows[0][1])

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One `BEGIN IMMEDIATE … COMMIT`; an exception inside rolls everything back.

        Raises:
            RefusedError: the ledger is open read-only.
            BusyError: the write lock was not to be had in 10 s.
        """
        if self.readonly:
            raise RefusedError(
                "ledger-readonly",
                "The ledger is open read-only.",
                subject=str(self.path),
                next_step="Use the program version that wrote it, or start without --readonly.",
            )
        cursor = self._connection.cursor()
        try:
            _retry(lambda: cursor.execute("BEGIN IMMEDIATE"))
        except apsw.BusyError as problem:
            raise _busy(self.path) from problem
        try:
            yield Transaction(cursor, self.clock)
        except BaseException:
            if self._connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        try:
            _retry(lambda: cursor.execute("COMMIT"))
        except apsw.BusyError as problem:
            cursor.execute("ROLLBACK")
            raise _busy(self.path) from problem

    def events(self, *, entity: str | None = None, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events in order, those after a sequence number, optionally of one entity."""
        where, parameters = ("AND entity = ?", [entity]) if entity is not None else ("", [])
        rows = self.query(
            f"SELECT * FROM event WHERE seq > ? {where} ORDER BY seq LIMIT ?", [after, *parameters, limit]
        )
        return [_event(row) for row in rows]

    def verify(self) -> Verification:
        """Walk the chain, compare the tables with a replay, and let SQLite check the file."""
        count, bad, problem = _walk(self._connection)
        integrity = str(self.query("PRAGMA integrity_check(1)")[0][0])
        return Verification(
            events=count,
            first_bad_seq=bad,
            problem=problem,
            integrity=integrity,
            projections_match=bad is None and self._projections_match(),
        )

    def _projections_match(self) -> bool:
        memory = apsw.Connection(":memory:")
        memory.execute(schema.PROJECTIONS)
        _replay(self._connection, memory.cursor())
        return all(_table(memory, name) == _table(self._connection, name) for name in schema.PROJECTION_TABLES)

    def rebuild(self) -> int:
        """Empty every table of current state and replay all events into them; returns the number of events."""
        with self.transaction() as transaction:
            for name in schema.PROJECTION_TABLES:
                transaction.execute(f"DELETE FROM {name}")
            count = _replay(self._connection, self._connection.cursor())
            transaction.pulse("rebuild")
        return count


def _event(row: Sequence[Any]) -> Event:
    seq, key, kind, entity, at, actor, payload, prev, digest = row
    return Event(
        seq=seq,
        key=key,
        kind=kind,
        entity=entity,
        at=at,
        actor=msgspec.json.decode(actor, type=Actor),
        payload=decode_payload(payload),
        prev=prev,
        hash=digest,
    )


def _walk(connection: apsw.Connection) -> tuple[int, int | None, str]:
    expected_prev, count = "", 0
    for seq, key, kind, entity, at, actor, payload, prev, digest in connection.execute(
        "SELECT * FROM event ORDER BY seq"
    ):
        count += 1
        if seq != count:
            return count, count, f"event {count} is missing; the next one kept is {seq}"
        if prev != expected_prev:
            return count, seq, f"event {seq} does not follow the event before it"
        if digest != event_hash(prev, seq, key, kind, entity, at, actor, payload):
            return count, seq, f"event {seq} is not what was recorded: its hash differs"
        expected_prev = digest
    heads: list[Any] = connection.execute("SELECT seq, hash FROM head").fetchall()
    head_seq, head_hash = heads[0] if heads else (0, "")
    if head_seq != count or head_hash != expected_prev:
        return count, min(head_seq, count) + 1, f"the chain ends at event {count}, the head says {head_seq}"
    return count, None, ""


def _replay(source: apsw.Connection, target: apsw.Cursor) -> int:
    count = 0
    for row in source.execute("SELECT * FROM event ORDER BY seq").fetchall():
        apply(target, _event(row))
        count += 1
    return count


def _table(connection: apsw.Connection, name: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)


def _schema_version(connection: apsw.Connection) -> int:
    rows: list[Any] = connection.execute("PRAGMA user_version").fetchall()
    return int(rows[0][0])


def _migrate(connection: apsw.Connection) -> None:
    _retry(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        version = _schema_version(connection)
        for script in schema.MIGRATIONS[version:]:
            connection.execute(script)
        connection.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _retry(action: Any) -> None:
    """SQLite's own waiting is unfair under many writers: one waited 1.6 s where the rest took 0.3 ms."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            action()
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(random.uniform(0.001, 0.02))


def _busy(path: Path) -> BusyError:
    return BusyError(
        "ledger-busy", "Another process is writing the ledger.", subject=str(path), next_step="Try again in a moment."
    )
