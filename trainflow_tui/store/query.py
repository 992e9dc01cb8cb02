"""Each process's own in-memory DuckDB over the files of the store. Nothing is shared but the files."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

from trainflow_tui.errors import DamagedError
from trainflow_tui.files import ensure_private_directory, sync_directory
from trainflow_tui.store import rollups
from trainflow_tui.store.metrics import COLUMNS, SegmentGoneError, stored_form


def connect(*, threads: int = 2, memory_limit: str = "512MB", spill: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that never reaches for the network and keeps to its memory limit."""
    options: dict[str, Any] = {
        "threads": threads,
        "memory_limit": memory_limit,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if spill is not None:
        options["temp_directory"] = str(spill)
    return duckdb.connect(":memory:", config=options)


class Written(NamedTuple):
    """What a new segment holds: its rows, and the first and last time of a sample, empty where there is none."""

    rows: int
    first: str
    last: str


class Store:
    """Queries over metric segments, and the making of new ones. One object belongs to one thread.

    Paths are the manifest's, relative to the state directory. A query raises `SegmentGoneError` where a Parquet file of its
    list is not there, and `DamagedError` where one cannot be read; a tail that is not there has not been written to yet.
    """

    def __init__(self, state: Path) -> None:
        self._state = state
        self._connection = connect(spill=state / "cache")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def seal(self, live: str, parquet: str) -> Written:
        """Write the tail's samples, each once, as a Parquet file, complete and durable when this returns.

        Raises:
            OSError: the file is not durable.
        """
        rows = f"SELECT DISTINCT ON (gen, off) * FROM read_json([{_literal(self._state / live)}], {_READ})"
        return self._write(f"{rows} ORDER BY gen, off", parquet, times="at")

    def merge(self, segments: Sequence[str], parquet: str) -> Written:
        """Write the rows of several segments of one level as one: each sample once, each part of a roll-up into its whole."""
        source = self._parquet(segments)
        if rollups.is_rollup(parquet):
            return self._write(rollups.merged(source), parquet, segments)
        return self._write(f"SELECT * FROM {self._singly(segments)}", parquet, segments, times="at")

    def roll(self, segments: Sequence[str], parquet: str, *, after: tuple[int, int]) -> Written:
        """Write the 60 s roll-up of sealed samples that stand after a generation and offset."""
        return self._write(rollups.rolled(self._singly(segments), after=after), parquet, segments)

    def widen(self, rollup: str, parquet: str) -> Written:
        """Write the 600 s roll-up of a 60 s one."""
        return self._write(rollups.widened(self._parquet([rollup])), parquet, [rollup])

    def rolled_up_to(self, segments: Sequence[str]) -> tuple[int, int]:
        """Generation and offset of the newest sample that is in these roll-ups; before every sample where there are none."""
        if not segments:
            return -1, -1
        sql = f"SELECT gen, max(last_off) FROM {self._parquet(segments)} GROUP BY gen ORDER BY gen DESC LIMIT 1"
        found = self._answer(sql, segments)
        return (int(found[0][0]), int(found[0][1])) if found else (-1, -1)

    def series(
        self, segments: Sequence[str], column: str, *, buckets: int, until: str | None = None, since: str | None = None
    ) -> list[tuple[float, float, float, float]]:
        """Step, minimum, mean and maximum of a column over the newest attempt of each step, at most `buckets` rows.

        Non-finite values are left out. `since` and `until` are UTC ISO times, both inclusive: only what was read between
        them is there, so that a step shows the attempt that was its newest at that time. Where roll-ups are among the
        segments, the others are samples that are not in them yet; a roll-up's row that reaches over a bound is left out, so
        that nothing is shown before it was known.

        Raises:
            ValueError: no such column, or a bound is no ISO time with a zone.
            SegmentGoneError: a file was replaced and unlinked since the list was made.
        """
        if column not in rollups.METRICS:
            raise ValueError(column)
        rolled = [name for name in segments if rollups.is_rollup(name)]
        if rolled:
            samples = [name for name in segments if not rollups.is_rollup(name)]
            return self._drawn(rolled, samples, column, buckets, since, until)
        source = self._source(segments)
        if source is None:
            return []
        bounds, parameters = _bounds(since, until, "at", "at")
        return [tuple(row) for row in self._answer(_newest(source, bounds, column, buckets), segments, parameters)]

    def recent(self, segments: Sequence[str], *, until: str, limit: int) -> list[dict[str, Any]]:
        """The last samples that were read at `until` (UTC, ISO) or before, each once, in the order of the log, by column.

        `extra` is JSON text. Non-finite values stay.

        Raises:
            ValueError: the bound is no ISO time with a zone.
            SegmentGoneError: a file was replaced and unlinked since the list was made.
        """
        source = self._source(segments)
        if source is None:
            return []
        # Twice as many before each is taken once: to sort out all of a day's samples takes twice as long.
        newest = f'SELECT * FROM {source} WHERE "at" <= ? ORDER BY gen DESC, off DESC LIMIT {2 * limit:d}'
        sql = f"SELECT DISTINCT ON (gen, off) * FROM ({newest}) ORDER BY gen DESC, off DESC LIMIT {limit:d}"
        rows = self._answer(sql, segments, [stored_form(until)])
        return [dict(zip(COLUMNS, row, strict=True)) for row in reversed(rows)]

    def rolled_until(self, segments: Sequence[str], *, until: str) -> tuple[int, str, int, int] | None:
        """What roll-ups say of the time up to `until`: samples, time, attempt and step of the last; None where nothing is.

        Raises:
            ValueError: the bound is no ISO time with a zone.
            SegmentGoneError: a file was replaced and unlinked since the list was made.
        """
        if not segments:
            return None
        newest = ", ".join(f"arg_max({name}, (gen, last_off))" for name in ("attempt", "last_step"))
        sql = (
            f"SELECT CAST(sum(samples) AS BIGINT), max(last_at), {newest} FROM {self._parquet(segments)} "
            "WHERE last_at <= ?"
        )
        rows = self._answer(sql, segments, [stored_form(until)])
        return rows[0] if rows[0][0] else None

    def count(self, segments: Sequence[str], *, until: str | None = None) -> int:
        """How many samples there are, each counted once; with `until` (UTC, ISO) those that were read by then.

        Raises:
            SegmentGoneError: a file was replaced and unlinked since the list was made.
        """
        source = self._source(segments)
        if source is None:
            return 0
        bounds, parameters = _bounds(None, until, "at", "at")
        sql = f"SELECT count(*) FROM (SELECT DISTINCT gen, off FROM {source} WHERE true{bounds})"
        return int(self._answer(sql, segments, parameters)[0][0])

    def _drawn(
        self, rolled: list[str], samples: list[str], column: str, buckets: int, since: str | None, until: str | None
    ) -> list[tuple[float, float, float, float]]:
        segments = [*rolled, *samples]
        bounds, parameters = _bounds(since, until, "first_at", "last_at")
        sources = [rollups.drawable(f"{self._parquet(rolled)} WHERE true{bounds}", column)]
        rest = self._source(samples)
        if rest:
            # Once, since each question below would parse the tail again.
            inner, given = _bounds(since, until, "at", "at")
            rows = rollups.drawable_samples(f"(SELECT * FROM {rest} WHERE true{inner})", column)
            self._answer(f"CREATE OR REPLACE TEMP TABLE rest AS {rows}", segments, given)
            sources.append("SELECT * FROM rest")
        parts = f"({' UNION ALL '.join(sources)})"

        def ask(sql: str) -> list[tuple[Any, ...]]:
            return self._answer(sql, segments, parameters)

        # Minima and maxima stand in the footers: 1 ms, where to group half a million rows by attempt takes 6.
        found = ask(f"SELECT min(attempt), max(attempt), min(gen), max(gen), min(low), max(high) FROM {parts}")[0]
        if found[4] is None:
            return []
        covers: list[tuple[Any, ...]] = []
        if found[0] != found[1] or found[2] != found[3]:
            covers = ask(
                f"SELECT attempt, gen, min(low), max(high) FROM {parts} WHERE low IS NOT NULL GROUP BY attempt, gen "
                "ORDER BY attempt, gen"
            )[1:]  # the first went over nothing again
        width = max(1, (found[5] - found[4] + buckets) // buckets)
        sql = rollups.drawn(parts, start=found[4], width=width, covers=covers)
        return [tuple(row) for row in ask(sql)]

    def _singly(self, segments: Sequence[str]) -> str:
        """The samples of several segments, each once. Doubles are rare, and to look for them is far cheaper than to drop them."""
        source = self._parquet(segments)
        doubles = f"SELECT count(*) - (SELECT count(*) FROM (SELECT DISTINCT gen, off FROM {source})) FROM {source}"
        if self._answer(doubles, segments)[0][0]:
            return f"(SELECT DISTINCT ON (gen, off) {_NAMES} FROM {source} ORDER BY gen, off)"
        return f"(SELECT {_NAMES} FROM {source})"  # in the order of the files, each of which is sorted

    def unreadable(self, segments: Sequence[str]) -> list[str]:
        """Which of these Parquet files are missing or are none by their footer."""
        found = []
        for name in segments:
            try:
                if name.endswith(".parquet"):
                    self._answer(f"SELECT count(*) FROM {self._parquet([name])}", [name])
            except (SegmentGoneError, DamagedError):
                found.append(name)
        return found

    def _write(self, select: str, parquet: str, inputs: Sequence[str] = (), *, times: str = "") -> Written:
        target = self._state / parquet
        ensure_private_directory(target.parent)
        part = target.with_name(f".trainflow-{secrets.token_hex(8)}.tmp")
        try:
            # V2 is 4.4 B a row where V1 is 6.2: it writes offsets and steps as differences.
            self._answer(
                f"COPY ({select}) TO {_literal(part)} (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd)", inputs
            )
            first, last = (times, times) if times else ("first_at", "last_at")
            found = self._connection.execute(
                f'SELECT count(*), min("{first}"), max("{last}") FROM read_parquet([{_literal(part)}])'
            ).fetchall()
            os.chmod(part, 0o600)
            with open(part, "rb") as stream:
                os.fsync(stream.fileno())
            os.replace(part, target)
        finally:
            part.unlink(missing_ok=True)
        sync_directory(target.parent)
        return Written(int(found[0][0]), found[0][1] or "", found[0][2] or "")

    def _answer(self, sql: str, segments: Sequence[str], parameters: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(sql, list(parameters)).fetchall()
        except duckdb.Error as problem:
            gone = [name for name in segments if name.endswith(".parquet") and not (self._state / name).exists()]
            if gone:
                raise SegmentGoneError(gone[0]) from problem
            if isinstance(problem, duckdb.IOException | duckdb.InvalidInputException):
                text = str(problem).splitlines()[0][:300]
                raise DamagedError("segment-unreadable", f"Samples cannot be read or written: {text}") from problem
            raise

    def _parquet(self, segments: Sequence[str]) -> str:
        return f"read_parquet([{', '.join(_literal(self._state / name) for name in segments)}])"

    def _source(self, segments: Sequence[str]) -> str | None:
        parquet = [name for name in segments if name.endswith(".parquet")]
        tails = [self._state / name for name in segments if name.endswith(".jsonl")]
        live = [_literal(path) for path in tails if path.exists() and path.stat().st_size]
        parts = [f"SELECT {_NAMES} FROM {self._parquet(parquet)}"] if parquet else []
        if live:
            parts.append(f"SELECT {_NAMES} FROM read_json([{', '.join(live)}], {_READ})")
        return f"({' UNION ALL '.join(parts)})" if parts else None


_NAMES = ", ".join(f'"{name}"' for name in COLUMNS)  # `at` is a word of the language
_TYPES = ", ".join(f"\"{name}\": '{kind}'" for name, kind in COLUMNS.items())
_READ = f"format='newline_delimited', ignore_errors=true, columns={{{_TYPES}}}"

# As one number: twice as fast as by a structure of three.
_AGE = "(CAST(coalesce(attempt, 0) AS HUGEINT) << 96) + (CAST(gen AS HUGEINT) << 64) + off"


def _newest(source: str, bounds: str, column: str, buckets: int) -> str:
    return f"""
    WITH newest AS (
      SELECT step, arg_max({column}, {_AGE}) AS v FROM {source}
      WHERE step IS NOT NULL{bounds} GROUP BY step
    ), kept AS (SELECT step, v FROM newest WHERE v IS NOT NULL AND isfinite(v)),
    span AS (SELECT min(step) AS low, greatest(1, (max(step) - min(step) + {buckets}) // {buckets}) AS width FROM kept)
    SELECT avg(step), min(v), avg(v), max(v) FROM kept, span GROUP BY (step - low) // width ORDER BY 1
    """


def _bounds(since: str | None, until: str | None, first: str, last: str) -> tuple[str, list[str]]:
    # Stored times sort as text, so that a bound only has to be of their form.
    given = [(f'"{first}" >=', since), (f'"{last}" <=', until)]
    kept = [(test, stored_form(bound)) for test, bound in given if bound is not None]
    return "".join(f" AND {test} ?" for test, _ in kept), [bound for _, bound in kept]


def _literal(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"
