"""The row schema of a trace's Parquet parts and the SQL that fills it from JSON text (spec/engine.md §3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainflow_tui.analysis.traces.categories import DEVICE_CATEGORIES, KEPT_CATEGORIES, LEGACY_CATEGORIES

LONGEST_PLAUSIBLE_NS = 86_400 * 10**9
"""One day. Broken counters of profilers give 236 years."""

DOUBLE_EXACT_BELOW_US = 2**43
"""Below this a double holds microseconds with three decimals exactly: half its spacing is under half a nanosecond."""

_ARGUMENTS = {  # column: (key in args, type)
    "ext": ("External id", "BIGINT"),
    "corr": ("correlation", "BIGINT"),
    "stream": ("stream", "BIGINT"),
    "dev": ("device", "BIGINT"),
    "nbytes": ("bytes", "BIGINT"),
    "grid": ("grid", "VARCHAR"),
    "block": ("block", "VARCHAR"),
    "coll": ("Collective name", "VARCHAR"),
    "dtype": ("dtype", "VARCHAR"),
    "nelems": ("In msg nelems", "BIGINT"),
    "gsize": ("Group size", "BIGINT"),
    "pg": ("Process Group Name", "VARCHAR"),
    "dims": ("Input Dims", "VARCHAR"),
    "types": ("Input type", "VARCHAR"),
}


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(_quoted(name) for name in names)


@dataclass(frozen=True, slots=True)
class TimeReading:
    """One way to get times out of a piece without losing a nanosecond, and the check that it was enough.

    DuckDB's JSON reader passes every number through a double, also on its way to text (2.0.1 and 1.5.6). That is
    harmless below 2^43 µs and for whole numbers; a fraction on epoch microseconds has to become a string first.
    """

    name: str
    column_type: str
    nanoseconds: str
    """SQL over `{0}`, a column; NULL where it is no 64-bit number of nanoseconds."""
    enough: str
    """SQL over the loaded rows: true if every time came through exactly."""
    quotes_numbers: bool = False


_EXACT_TEXT = "TRY_CAST(TRY_CAST({0} AS DECIMAL(24, 3)) * 1000 AS BIGINT)"

DOUBLES = TimeReading(
    name="doubles",
    column_type="DOUBLE",
    nanoseconds="(CAST(floor({0}) AS BIGINT) * 1000 + CAST(round(({0} - floor({0})) * 1000) AS BIGINT))",
    enough=f"coalesce(greatest(max(abs(ts)), max(abs(dur))), 0) < {DOUBLE_EXACT_BELOW_US}",
)
WHOLE_OR_TEXT = TimeReading(
    name="whole or text",
    column_type="VARCHAR",
    nanoseconds=f"CASE WHEN {{0}} SIMILAR TO '[0-9]{{{{1,18}}}}' THEN TRY_CAST({{0}} AS BIGINT) * 1000 ELSE {_EXACT_TEXT} END",
    enough="NOT coalesce(bool_or(strpos(ts, '.') > 13), false)",
)
QUOTED = TimeReading(name="quoted", column_type="VARCHAR", nanoseconds=_EXACT_TEXT, enough="true", quotes_numbers=True)
TIME_READINGS = (DOUBLES, WHOLE_OR_TEXT, QUOTED)
"""From fast to sure."""

_TIME_NUMBER = re.compile(rb'("(?:ts|dur)"\s*:\s*)(-?\d[\d.eE+-]*)')
_TIME_SAMPLE = re.compile(rb'"ts"\s*:\s*("?)(\d+)(\.?)')


def quote_times(text: bytes | memoryview) -> bytes:
    """The same JSON with every bare number under `ts` and `dur` turned into a string of its digits."""
    return _TIME_NUMBER.sub(rb'\1"\2"', text)


def likely_reading(head: bytes | memoryview) -> TimeReading:
    """The reading that the first events suggest; `enough` decides later."""
    reading = DOUBLES
    for quote, whole, point in _TIME_SAMPLE.findall(head)[:64]:
        if quote:
            return WHOLE_OR_TEXT
        if int(whole[:32]) >= DOUBLE_EXACT_BELOW_US:
            if point:
                return QUOTED
            reading = WHOLE_OR_TEXT
    return reading


def source_table(path: str, reading: TimeReading, size_bytes: int) -> str:
    """The FROM clause over a JSON array of events in a file."""
    arguments = ", ".join(f'"{key}" VARCHAR' for key, _ in _ARGUMENTS.values())
    columns = {
        **dict.fromkeys(("ph", "cat", "name", "pid", "tid"), "VARCHAR"),
        **dict.fromkeys(("ts", "dur"), reading.column_type),
        "args": f"STRUCT({arguments})",
    }
    listed = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in columns.items())
    largest = max(size_bytes, 1 << 20)
    return (
        f"read_json({_quoted(path)}, columns = {{{listed}}}, format = 'array', maximum_object_size = {largest},"
        " compression = 'none')"
    )


def judged_rows(table: str, reading: TimeReading) -> str:
    """A subquery over loaded events that adds `ts_ns`, `dur_ns`, the stored category and a `verdict`.

    The verdict is `row` or `zero_duration` for what is kept, `other` for what is not wanted, else the defect.
    """
    legacy = " ".join(f"WHEN {_quoted(old)} THEN {_quoted(new)}" for old, new in LEGACY_CATEGORIES.items())
    times = f"{reading.nanoseconds.format('ts')} AS ts_ns, {reading.nanoseconds.format('dur')} AS dur_ns"
    return f"""(
        SELECT *, CASE
            WHEN stored IS NULL OR ph IS DISTINCT FROM 'X' OR stored NOT IN ({_listed(KEPT_CATEGORIES)}) THEN 'other'
            WHEN ts_ns IS NULL OR dur_ns IS NULL THEN 'unreadable_time'
            WHEN dur_ns < 0 THEN 'negative_duration'
            WHEN dur_ns > {LONGEST_PLAUSIBLE_NS} THEN 'implausible_duration'
            WHEN dur_ns > 0 THEN 'row'
            WHEN ts_ns = 0 THEN 'without_timestamp'
            WHEN stored IN ({_listed(DEVICE_CATEGORIES)}) THEN 'zero_duration'
            ELSE 'row' END AS verdict
        FROM (SELECT *, {times}, CASE cat {legacy} ELSE cat END AS stored FROM {table})
    )"""


def category_counts(table: str, reading: TimeReading) -> str:
    """Events by category as spelled, phase X or not, and verdict, with the sum of their durations."""
    return f"""
        SELECT coalesce(cat, ''), coalesce(ph = 'X', false), verdict, count(*), coalesce(sum(dur_ns), 0),
            count(*) FILTER (ph IS NULL AND cat IS NULL AND name IS NULL AND ts IS NULL)
        FROM {judged_rows(table, reading)} GROUP BY ALL"""


def copy_rows(table: str, reading: TimeReading, part: str) -> str:
    """The statement that writes the kept rows to a Parquet file."""
    arguments = ", ".join(
        f'TRY_CAST(args."{key}" AS BIGINT) AS {column}' if kind == "BIGINT" else f'args."{key}" AS {column}'
        for column, (key, kind) in _ARGUMENTS.items()
    )
    return f"""
        COPY (
            SELECT stored AS cat, coalesce(name, '') AS name, pid, tid, ts_ns, dur_ns, {arguments}
            FROM {judged_rows(table, reading)} WHERE verdict IN ('row', 'zero_duration')
        ) TO {_quoted(part)} (FORMAT parquet, COMPRESSION zstd)"""
