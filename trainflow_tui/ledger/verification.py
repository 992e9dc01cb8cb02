"""Whether the ledger is what it was: the walk over the chain, the replay of all events, the comparison of the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from trainflow_tui.ledger import schema
from trainflow_tui.ledger.events import Actor, Event, decode_payload, event_hash
from trainflow_tui.ledger.projections import apply

EVENT_COLUMNS = "seq, key, kind, entity, at, actor, payload, prev, hash"


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What a walk over the whole chain found. `first_bad_seq` is None when every link holds."""

    events: int
    first_bad_seq: int | None
    problem: str
    integrity: str
    projections_match: bool


def event_of(row: Sequence[Any]) -> Event:
    """One row of `EVENT_COLUMNS` as a record."""
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


def walk(connection: apsw.Connection) -> tuple[int, int | None, str]:
    """Check every link: how many events there are, the first that does not hold or None, and what is wrong with it."""
    expected_prev, count = "", 0
    for seq, key, kind, entity, at, actor, payload, prev, digest in connection.execute(
        f"SELECT {EVENT_COLUMNS} FROM event ORDER BY seq"
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
    head_seq, head_hash = heads[0] if heads and isinstance(heads[0][0], int) else (0, "")
    if head_seq != count or head_hash != expected_prev:
        return count, min(head_seq, count) + 1, f"the chain ends at event {count}, the head says {head_seq}"
    return count, None, ""


def replay(source: apsw.Connection, target: apsw.Cursor) -> int:
    """Apply every event to the tables behind `target`; returns how many."""
    count = 0
    for row in source.execute(f"SELECT {EVENT_COLUMNS} FROM event ORDER BY seq").fetchall():
        apply(target, event_of(row))
        count += 1
    return count


def tables_match(connection: apsw.Connection) -> bool:
    """Whether the tables of current state are what all events together give."""
    memory = apsw.Connection(":memory:")
    memory.execute(schema.PROJECTIONS)
    replay(connection, memory.cursor())
    return all(_table(memory, name) == _table(connection, name) for name in schema.PROJECTION_TABLES)


def _table(connection: apsw.Connection, name: str) -> list[tuple[Any, ...]]:
    return sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr)
