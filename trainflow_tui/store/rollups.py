"""Roll-ups in SQL: what each metric did in 60 s and in 600 s, made from samples, merged, and drawn as a series.

A row stands for the samples of one time bucket, rank, generation, attempt and block of 1,024 steps. Rows of one such key in
several files are parts of one: least, greatest, sums and newest of the parts are those of the whole, so that a bucket may be
cut by a seal, and a sample that is late because the clock was set back finds its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

from trainflow_tui.store.metrics import COLUMNS

METRICS: Final = tuple(name for name, kind in COLUMNS.items() if kind == "DOUBLE")
SECONDS: Final = {"roll60": 60, "roll600": 600}
"""The levels by the name of their folder, and how much time a bucket spans."""
STEPS_PER_ROW: Final = 1024
"""A log that is read in one go has all its steps in one bucket of time; its chart still needs them apart."""
_RANK: Final = "try_cast(json_extract_string(extra, '$.rank') AS INTEGER)"
_KEY: Final = "bucket, rank, gen, attempt, block"
# Stored times sort as text and have one form, so that a bucket is what stands before its seconds, or its last minute digit.
_MINUTE: Final = "left(\"at\", 16) || ':00.000000Z'"
_TEN_MINUTES: Final = "left(bucket, 15) || '0:00.000000Z'"


def is_rollup(path: str) -> bool:
    """Whether a segment's path names a roll-up rather than samples."""
    return PurePath(path).parent.name in SECONDS


def rolled(samples: str, *, after: tuple[int, int]) -> str:
    """A SELECT of the 60 s roll-up of samples, each there once, that stand after a generation and offset."""
    finite = ", ".join(f"CASE WHEN isfinite({name}) THEN {name} END AS {name}" for name in METRICS)
    figures = ", ".join(
        f"min({m}) AS {m}_min, max({m}) AS {m}_max, avg({m}) AS {m}_avg, count({m}) AS {m}_count, "
        f"arg_max({m}, off) AS {m}_last"
        for m in METRICS
    )
    return f"""
    SELECT {_KEY}, min("at") AS first_at, max("at") AS last_at, min(step) AS first_step, max(step) AS last_step,
      max(off) AS last_off, count(*) AS samples, {figures}
    FROM (
      SELECT gen, off, "at", attempt, step, {_MINUTE} AS bucket, {_RANK} AS rank, step // {STEPS_PER_ROW} AS block, {finite}
      FROM {samples} WHERE gen > {after[0]:d} OR (gen = {after[0]:d} AND off > {after[1]:d})
    ) GROUP BY {_KEY} ORDER BY {_KEY}"""


def widened(rollups: str) -> str:
    """A SELECT of the 600 s roll-up of a 60 s one."""
    return merged(f"(SELECT * REPLACE ({_TEN_MINUTES} AS bucket) FROM {rollups})")


def merged(rollups: str) -> str:
    """A SELECT that makes one row of all parts of a key."""
    figures = ", ".join(
        f"min({m}_min) AS {m}_min, max({m}_max) AS {m}_max, "
        f"sum({m}_avg * {m}_count) / nullif(sum({m}_count), 0) AS {m}_avg, "
        f"CAST(sum({m}_count) AS BIGINT) AS {m}_count, arg_max({m}_last, last_off) AS {m}_last"
        for m in METRICS
    )
    return f"""
    SELECT {_KEY}, min(first_at) AS first_at, max(last_at) AS last_at, min(first_step) AS first_step,
      max(last_step) AS last_step, max(last_off) AS last_off, CAST(sum(samples) AS BIGINT) AS samples, {figures}
    FROM {rollups} GROUP BY {_KEY} ORDER BY {_KEY}"""


def drawable(rollups: str, column: str) -> str:
    """A SELECT of what a chart needs of roll-ups: steps from `low` to `high` and the figures of one column."""
    return (
        f"SELECT attempt, gen, first_step AS low, last_step AS high, {column}_min AS least, {column}_max AS greatest, "
        f"{column}_avg AS mean, {column}_count AS n FROM {rollups}"
    )


def drawable_samples(samples: str, column: str) -> str:
    """The same of samples that are in no roll-up yet."""
    value = f"CASE WHEN isfinite({column}) THEN {column} END"
    return (
        f"SELECT attempt, gen, step AS low, step AS high, {value} AS least, {value} AS greatest, {value} AS mean, "
        f"CAST({value} IS NOT NULL AS BIGINT) AS n FROM {samples} WHERE step IS NOT NULL"
    )


def drawn(parts: str, *, start: int, width: int, covers: Sequence[tuple[int, int, int, int]]) -> str:
    """A SELECT of step, least, mean and greatest value for each `width` steps from `start`.

    `covers` are the attempts (attempt, generation, first and last step) that may have gone over steps of an earlier one: what
    such a one did is left out where all its steps were done again, and stays whole where a part of them was.
    """
    again = "".join(
        f" AND NOT ((attempt < {attempt:d} OR (attempt = {attempt:d} AND gen < {gen:d})) AND low >= {low:d} AND high <= {high:d})"
        for attempt, gen, low, high in covers
    )
    return f"""
    SELECT sum((low + high) // 2 * n) / sum(n), min(least), sum(mean * n) / sum(n), max(greatest)
    FROM {parts} WHERE n > 0 AND low IS NOT NULL{again} GROUP BY ((low + high) // 2 - {start:d}) // {width:d} ORDER BY 1"""
