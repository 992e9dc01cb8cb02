"""The manifest of metric segments: which files hold a run's samples and roll-ups. Plain rows; readers take the list in one SELECT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.errors import RefusedError
from trainflow_tui.ledger.database import Ledger, Transaction

SEGMENT_TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "live": frozenset({"sealed"}),
    "sealed": frozenset(),
    "parquet": frozenset({"rolled"}),
    "rolled": frozenset({"dropped"}),
    "rollup": frozenset({"dropped"}),
    "dropped": frozenset(),
}
"""live: a JSONL tail being written · sealed: its rows stand in a Parquet segment · parquet: samples that are in no roll-up yet ·
rolled: samples whose roll-ups exist, which may be merged and may grow too old · rollup: a roll-up · dropped: its rows stand
elsewhere, or are too old. The file of what is sealed or dropped stays for ten minutes, then its row goes with it."""
_READABLE: Final = "('live', 'parquet', 'rolled', 'rollup')"


class Segment(msgspec.Struct, frozen=True, kw_only=True):
    """One file of samples or roll-ups; `path` is `metrics/<run>/<level>/<name>`, relative to the state directory."""

    id: int
    run: str
    path: str
    state: str
    rows: int | None
    created_at: str
    first_at: str = ""
    last_at: str = ""
    """First and last time of a sample in it (UTC, ISO); empty for a live tail, and where it holds none."""

    @property
    def level(self) -> str:
        """live, raw, roll60 or roll600: the folder that it is in."""
        return self.path.split("/")[-2]


class NewSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A finished file that is to take its place in the manifest."""

    path: str
    rows: int
    first_at: str
    last_at: str


class OvertakenError(Exception):
    """Another process did this, or something else with one of the files, since the plan was made. Nothing was recorded."""


def segments(ledger: Ledger, run: str | None = None) -> list[Segment]:
    """All files that readers may be given, samples and roll-ups of every level, of one run or of all, oldest first."""
    rows = ledger.query(
        "SELECT id, run, path, state, rows, created_at, coalesce(first_at, ''), coalesce(last_at, '') FROM segment "
        f"WHERE (?1 IS NULL OR run = ?1) AND state IN {_READABLE} ORDER BY id",
        (run,),
    )
    return [Segment(**dict(zip(Segment.__struct_fields__, row, strict=True))) for row in rows]


def readable(ledger: Ledger, run: str) -> list[Segment]:
    """The files that together hold every sample of the run that is kept exactly once, oldest first."""
    return [segment for segment in segments(ledger, run) if segment.state != "rollup"]


def start_live(transaction: Transaction, ledger: Ledger, run: str, path: str) -> None:
    """Record a new JSONL tail before its first line is written."""
    transaction.execute(
        "INSERT OR IGNORE INTO segment (run, path, state, created_at) VALUES (?, ?, 'live', ?)",
        (run, path, to_iso(ledger.clock.now())),
    )


def seal(
    transaction: Transaction, ledger: Ledger, *, live_path: str, parquet_path: str, rows: int, first: str, last: str
) -> None:
    """Let the Parquet file take the place of the tail, in the caller's transaction.

    Raises:
        RefusedError: the tail is not live.
    """
    found = transaction.query("SELECT run, state FROM segment WHERE path = ?", (live_path,))
    state = found[0][1] if found else "unknown"
    if "sealed" not in SEGMENT_TRANSITIONS.get(state, frozenset()):
        raise RefusedError("segment-transition", f"A segment that is {state} cannot be sealed.", subject=live_path)
    now = to_iso(ledger.clock.now())
    transaction.execute("UPDATE segment SET state = 'sealed', dropped_at = ? WHERE path = ?", (now, live_path))
    new = NewSegment(path=parquet_path, rows=rows, first_at=first, last_at=last)
    _insert(transaction, ledger, found[0][0], new, "parquet")


def roll(transaction: Transaction, ledger: Ledger, samples: Sequence[Segment], made: Sequence[NewSegment]) -> None:
    """Record that these samples are in these roll-ups, in the caller's transaction. Samples are rolled once.

    Raises:
        OvertakenError: one of them is rolled already, or replaced.
    """
    _move(transaction, samples, "rolled")
    for new in made:
        _insert(transaction, ledger, samples[0].run, new, "rollup")


def replace(transaction: Transaction, ledger: Ledger, old: Sequence[Segment], new: NewSegment) -> None:
    """Let one segment take the place of several of its level, in the caller's transaction.

    Raises:
        OvertakenError: one of them is replaced or dropped already.
    """
    drop(transaction, ledger, old)
    _insert(transaction, ledger, old[0].run, new, old[0].state)


def drop(transaction: Transaction, ledger: Ledger, old: Sequence[Segment]) -> None:
    """Give these segments to no reader any more, in the caller's transaction.

    Raises:
        OvertakenError: one of them is dropped already, or holds samples that are in no roll-up.
    """
    _move(transaction, old, "dropped")
    now = to_iso(ledger.clock.now())
    for segment in old:
        transaction.execute("UPDATE segment SET dropped_at = ? WHERE id = ?", (now, segment.id))


def _move(transaction: Transaction, old: Sequence[Segment], state: str) -> None:
    for segment in old:
        found = transaction.query("SELECT state FROM segment WHERE id = ?", (segment.id,))
        if found != [(segment.state,)] or state not in SEGMENT_TRANSITIONS[segment.state]:
            raise OvertakenError(segment.path)
        transaction.execute("UPDATE segment SET state = ? WHERE id = ?", (state, segment.id))


def _insert(transaction: Transaction, ledger: Ledger, run: str, new: NewSegment, state: str) -> None:
    transaction.execute(
        "INSERT INTO segment (run, path, state, rows, first_at, last_at, created_at) VALUES (?,?,?,?,?,?,?)",
        (run, new.path, state, new.rows, new.first_at, new.last_at, to_iso(ledger.clock.now())),
    )


def droppable(ledger: Ledger, *, before: str) -> list[str]:
    """Paths of which no reader can still be asked for: sealed or dropped before the given time."""
    rows = ledger.query(
        "SELECT path FROM segment WHERE state IN ('sealed', 'dropped') AND dropped_at < ? ORDER BY id", (before,)
    )
    return [str(row[0]) for row in rows]


def mark_dropped(ledger: Ledger, paths: list[str]) -> None:
    """Record that the files are unlinked: their rows go, since a run makes 1,440 of them a day."""
    with ledger.transaction() as transaction:
        for path in paths:
            transaction.execute("DELETE FROM segment WHERE path = ? AND state IN ('sealed', 'dropped')", (path,))


def waiting(ledger: Ledger) -> dict[str, int]:
    """How many files of each run are out of use and not unlinked yet."""
    rows = ledger.query("SELECT run, count(*) FROM segment WHERE state IN ('sealed', 'dropped') GROUP BY run")
    return {str(run): int(count) for run, count in rows}


def paths(ledger: Ledger) -> set[str]:
    """Every file that the manifest names, in whatever state."""
    return {str(row[0]) for row in ledger.query("SELECT path FROM segment")}
