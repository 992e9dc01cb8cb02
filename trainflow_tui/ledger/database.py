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

from trainflow_tui.clock import Clock, to_iso
from trainflow_tui.errors import DamagedError, RefusedError
from trainflow_tui.files import write_atomic
from trainflow_tui.ledger import schema, witness
from trainflow_tui.ledger.events import Actor, Event, canonical, decode_payload, event_hash, event_key
from trainflow_tui.ledger.failures import is_full, translated, unavailable
from trainflow_tui.ledger.projections import apply
from trainflow_tui.ledger.verification import EVENT_COLUMNS, Verification, event_of, replay, tables_match, walk
from trainflow_tui.ledger.witness import Loss

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


class Ledger:
    """One open ledger. Safe for many processes; one object belongs to one thread."""

    def __init__(self, connection: apsw.Connection, path: Path, clock: Clock, *, readonly: bool, newer: bool) -> None:
        self._connection = connection
        self.path = path
        self.clock = clock
        self.readonly = readonly
        self.newer = newer
        """The file is of a schema that this program does not know: open read-only, and what is shown may be incomplete."""
        self.loss: Loss | None = None
        """Events that were recorded once and are not in the file any more."""
        self._identity = _identity(path)
        self._is_still = readonly and not newer and _is_still(path)

    @classmethod
    def open(cls, path: Path, *, clock: Clock, local_filesystem: bool = True, readonly: bool = False) -> Ledger:
        """Open or create the file and bring its schema up to date, with a copy of what it was beside it.

        A file of a newer schema opens read-only; of an older one, where it is to be read only, the tables that it lacks are
        missing. On a network file system the journal is a rollback journal, since WAL
        needs memory shared by all writers.

        Raises:
            DamagedError: the file is not a ledger, or the system refuses it.
            BusyError: another process held the file for longer than 10 s.
        """
        with translated(path):
            connection = _connect(path, readonly=readonly)
            try:
                # In this order: a process that makes the ledger at this moment commits its tables and their version as one.
                has_tables = bool(connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall())
                version = _schema_version(connection)
                if version == 0 and (has_tables or readonly):
                    raise _not_a_ledger(path, has_tables=has_tables)
                if not readonly and version < schema.SCHEMA_VERSION:
                    mode = "WAL" if local_filesystem else "DELETE"
                    _retry(lambda: connection.execute(f"PRAGMA journal_mode = {mode}"))
                    version = _migrate(connection, path)
                newer = version > schema.SCHEMA_VERSION
                if newer:
                    connection.execute("PRAGMA query_only = ON")
                opened = cls(connection, path, clock, readonly=readonly or newer, newer=newer)
                opened.loss = witness.missing(path, opened.hash_at)
            except BaseException:
                connection.close()
                raise
        return opened

    def is_displaced(self) -> bool:
        """Whether another file, or none, stands at the path now: what is written here is not found there.

        Also where the file was read as one that nobody writes, and somebody does now.
        """
        return _identity(self.path) != self._identity or (self._is_still and _is_shared(self.path))

    def close(self) -> None:
        """Close the file; a further call does nothing."""
        self._connection.close()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT; the read transaction ends before this returns."""
        with translated(self.path):
            return self._connection.execute(sql, tuple(parameters)).fetchall()

    def head(self) -> int:
        """The sequence number of the newest event, 0 for none."""
        return int(self.query("SELECT seq FROM head")[0][0])

    def hash_at(self, seq: int) -> str | None:
        """The hash of one event; None where there is none of this number."""
        rows = self.query("SELECT hash FROM event WHERE seq = ?", (seq,))
        return str(rows[0][0]) if rows else None

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
            DamagedError: the disk is full or failed; nothing of this transaction is recorded.
        """
        if self.readonly:
            raise RefusedError(
                "ledger-readonly",
                "The ledger is open read-only.",
                subject=str(self.path),
                next_step="Use the program version that wrote it, or start without --readonly.",
            )
        cursor = self._connection.cursor()
        transaction = Transaction(cursor, self.clock)
        with translated(self.path):
            _retry(lambda: cursor.execute("BEGIN IMMEDIATE"))
            try:
                yield transaction
                _retry(lambda: cursor.execute("COMMIT"))
            except BaseException:
                if self._connection.in_transaction:
                    cursor.execute("ROLLBACK")
                raise
        if transaction.appended and self.loss is None:
            witness.write(self.path, transaction.appended[-1].seq, transaction.appended[-1].hash)

    def events(self, *, entity: str | None = None, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events in order, those after a sequence number, optionally of one entity."""
        where, parameters = ("AND entity = ?", [entity]) if entity is not None else ("", [])
        rows = self.query(
            f"SELECT {EVENT_COLUMNS} FROM event WHERE seq > ? {where} ORDER BY seq LIMIT ?",
            [after, *parameters, limit],
        )
        return [event_of(row) for row in rows]

    def verify(self) -> Verification:
        """Walk the chain, compare the tables with a replay, and let SQLite check the file.

        Raises:
            DamagedError: the file is too damaged to be walked.
        """
        loss = witness.missing(self.path, self.hash_at)
        with translated(self.path), self._one_view():
            count, bad, problem = walk(self._connection)
            if bad is None and loss is not None:
                bad, problem = min(count, loss.seq) + 1, f"event {loss.seq} was recorded and is not in the file"
            integrity = str(self._connection.execute("PRAGMA integrity_check(1)").fetchall()[0][0])
            match = bad is None and (self.newer or tables_match(self._connection))
        return Verification(
            events=count, first_bad_seq=bad, problem=problem, integrity=integrity, projections_match=match
        )

    @contextmanager
    def _one_view(self) -> Iterator[None]:
        # What others commit meanwhile would look like a head without its event.
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def rebuild(self) -> int:
        """Empty every table of current state and replay all events into them; returns the number of events."""
        with self.transaction() as transaction:
            for name in schema.PROJECTION_TABLES:
                transaction.execute(f"DELETE FROM {name}")
            count = replay(self._connection, self._connection.cursor())
            transaction.pulse("rebuild")
        return count


def _connect(path: Path, *, readonly: bool) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if readonly else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
    if not readonly:
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        except OSError as problem:
            raise unavailable(path, problem) from problem
    name = str(path)
    if readonly and _is_still(path):
        name, flags = read_only_uri(path, readonly=True), flags | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags)
    connection.set_busy_timeout(int(BUSY_TIMEOUT_S * 1000))
    connection.execute("PRAGMA mmap_size = 0; PRAGMA synchronous = FULL; PRAGMA foreign_keys = OFF")
    return connection


def read_only_uri(path: Path, *, readonly: bool) -> str:
    """The name by which SQLite opens the file without the right to write it; `readonly` says that nobody here has it."""
    from urllib.parse import quote

    return f"file:{quote(str(path))}?mode=ro{'&immutable=1' if readonly and _is_still(path) else ''}"


def _is_still(path: Path) -> bool:
    # SQLite would make its shared memory file beside it, which a read-only disk does not allow, nor a full one. Nobody writes there.
    no_place = not os.access(path.parent, os.W_OK) or (is_full(path) and not _is_shared(path))
    return no_place and not _has_log(path)


def _is_shared(path: Path) -> bool:
    # One in use has parts of 32 KiB (sqlite.org/walformat.html); three bytes stay where there was no room for the first.
    return _size_bytes(path.with_name(f"{path.name}-shm")) >= 32768


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _has_log(path: Path) -> bool:
    return _size_bytes(path.with_name(f"{path.name}-wal")) > 0


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _not_a_ledger(path: Path, *, has_tables: bool) -> DamagedError:
    what = "a database of another program" if has_tables else "empty"
    return DamagedError(
        "not-a-ledger",
        f"{path} is {what}.",
        subject=str(path),
        next_step="Name another directory; this file is left as it is.",
    )


def _schema_version(connection: apsw.Connection) -> int:
    rows: list[Any] = connection.execute("PRAGMA user_version").fetchall()
    return int(rows[0][0])


def _migrate(connection: apsw.Connection, path: Path) -> int:
    """All missing scripts and the version in one transaction; returns the version that the file has then."""
    _retry(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        version = _schema_version(connection)  # perhaps another process has done it meanwhile, or gone further
        if 0 < version < schema.SCHEMA_VERSION:
            _keep_copy(path, version)
        for script in schema.MIGRATIONS[version:]:
            connection.execute(script)
        version = max(version, schema.SCHEMA_VERSION)
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    return version


def _keep_copy(path: Path, version: int) -> None:
    """The ledger as it is, as a complete file beside it. The caller holds the write lock, so that nothing is added meanwhile."""
    copy = path.with_name(f"{path.name}.schema-{version}")
    source = _connect(path, readonly=True)
    try:
        write_atomic(copy, source.serialize("main"))
    except OSError as problem:
        raise unavailable(copy, problem) from problem
    finally:
        source.close()


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
