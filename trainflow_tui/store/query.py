"""Each process's own in-memory DuckDB over the files of the store. Nothing is shared but the files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from trainflow_tui.store.metrics import COLUMNS


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


class Store:
    """Queries over metric segments. One object belongs to one thread."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._connection = connect(spill=state / "cache")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def seal(self, live: str, parquet: str) -> tuple[int, str, str]:
        """Write the tail's samples, each once, as a Parquet file; returns rows, first and last time.

        Both paths are relative to the state directory. The file is complete and durable when this returns.
        """
        target = self._state / parquet
        part = target.with_suffix(".part")
        rows = f"(SELECT DISTINCT ON (gen, off) * FROM {_live_rows(1)} ORDER BY gen, off)"
        self._connection.execute(
            f"COPY {rows} TO '{_quoted(part)}' (FORMAT parquet, COMPRESSION zstd)", [[str(self._state / live)]]
        )
        with open(part, "rb") as stream:
            os.fsync(stream.fileno())
        os.chmod(part, 0o600)
        os.replace(part, target)
        found = self._connection.execute(
            'SELECT count(*), min("at"), max("at") FROM read_parquet($1)', [[str(target)]]
        ).fetchall()
        return int(found[0][0]), found[0][1] or "", found[0][2] or ""

    def series(self, segments: Sequence[str], column: str, *, buckets: int) -> list[tuple[float, float, float, float]]:
        """Step, minimum, mean and maximum of a column over the newest attempt of each step, at most `buckets` rows.

        Non-finite values are left out. Segments are the manifest's readable paths, relative to the state directory.
        """
        if column not in COLUMNS:
            raise ValueError(column)
        source = self._source(segments)
        if source is None:
            return []
        sql = f"""
        WITH newest AS (
          SELECT step, arg_max({column}, (attempt, gen, off)) AS v FROM {source} WHERE step IS NOT NULL GROUP BY step
        ), kept AS (SELECT step, v FROM newest WHERE v IS NOT NULL AND isfinite(v)),
        span AS (SELECT min(step) AS low, greatest(1, (max(step) - min(step) + {buckets}) // {buckets}) AS width FROM kept)
        SELECT avg(step), min(v), avg(v), max(v) FROM kept, span GROUP BY (step - low) // width ORDER BY 1
        """
        return [tuple(row) for row in self._connection.execute(sql).fetchall()]

    def count(self, segments: Sequence[str]) -> int:
        """How many samples there are, each counted once."""
        source = self._source(segments)
        if source is None:
            return 0
        return int(
            self._connection.execute(f"SELECT count(*) FROM (SELECT DISTINCT gen, off FROM {source})").fetchall()[0][0]
        )

    def _source(self, segments: Sequence[str]) -> str | None:
        names = ", ".join(f'"{name}"' for name in COLUMNS)  # `at` is a word of the language
        paths = [self._state / name for name in segments]
        parquet = [f"'{_quoted(p)}'" for p in paths if p.suffix == ".parquet"]
        live = [f"'{_quoted(p)}'" for p in paths if p.suffix == ".jsonl" and p.exists() and p.stat().st_size]
        parts = [f"SELECT {names} FROM read_parquet([{', '.join(parquet)}])"] if parquet else []
        if live:
            parts.append(f"SELECT {names} FROM read_json([{', '.join(live)}], {_READ})")
        return f"({' UNION ALL '.join(parts)})" if parts else None


_TYPES = ", ".join(f"\"{name}\": '{kind}'" for name, kind in COLUMNS.items())
_READ = f"format='newline_delimited', ignore_errors=true, columns={{{_TYPES}}}"


def _live_rows(parameter: int) -> str:
    return f"read_json(${parameter}, {_READ})"


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")
