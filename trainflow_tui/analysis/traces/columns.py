"""The row schema of a trace's Parquet parts and the SQL that fills it from JSON text (spec/engine.md §3)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import ROUND_HALF_EVEN, Decimal

from trainflow_tui.analysis.traces.categories import DEVICE_CATEGORIES, KEPT_CATEGORIES, LEGACY_CATEGORIES

LONGEST_PLAUSIBLE_NS = 86_400 * 10**9
"""One day. Broken counters of profilers give 236 years."""

FARTHEST_NS = 2**62
"""Start times reach to the year 2116, so that neither an end nor the distance of two times leaves 64 bits."""

DOUBLE_EXACT_BELOW_US = 2**43
"""Below this a double holds microseconds with three decimals exactly: half its spacing is under half a nanosecond."""

KEPT_VERDICTS = ("row", "zero_duration")

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


@dataclass(frozen=True, slots=True)
class RowSchema:
    """Which complete events become rows, and which of their arguments become columns beside name, ids and times."""

    categories: tuple[str, ...]
    arguments: dict[str, tuple[str, str]]


ALL_ROWS = RowSchema(KEPT_CATEGORIES, _ARGUMENTS)
DEVICE_ROWS = RowSchema(DEVICE_CATEGORIES, {"dev": _ARGUMENTS["dev"]})
"""Only what time accounting reads: a third less work where a file is read for one table."""


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(_quoted(name) for name in names)


@dataclass(frozen=True, slots=True)
class TimeReading:
    """One way to get times out of a piece without losing a nanosecond, and the check that it was enough.

    DuckDB's JSON reader passes every number through a double, also on its way to text (seen on 2.0.1 and 1.5.6). That
    is harmless below 2^43 µs and for whole numbers; epoch microseconds with a fraction must be rewritten beforehand.
    DECIMAL is no way out: 1.5.6 takes it through a double too, and parses it from text at 30 µs a value.
    """

    column_type: str
    nanoseconds: str
    """SQL over `{0}`, a column; NULL where it is no 64-bit number of nanoseconds."""
    enough: str
    """SQL over the loaded rows: true if every time came through exactly."""
    rewrites: bool = False
    """The text must have gone through `with_nanoseconds`."""


DOUBLES = TimeReading(
    column_type="DOUBLE",
    nanoseconds="(CAST(floor({0}) AS BIGINT) * 1000 + CAST(round(({0} - floor({0})) * 1000) AS BIGINT))",
    enough=f"coalesce(greatest(max(abs(ts)), max(abs(dur))), 0) < {DOUBLE_EXACT_BELOW_US}",
)
WHOLE_NUMBERS = TimeReading(
    column_type="VARCHAR",
    nanoseconds=(
        "TRY(CASE WHEN contains({0}, '.') OR {0} ILIKE '%e%' THEN CAST(round(TRY_CAST({0} AS DOUBLE) * 1000) AS BIGINT)"
        " ELSE TRY_CAST({0} AS BIGINT) * 1000 END)"
    ),
    enough="NOT coalesce(bool_or(strpos(ts, '.') > 13), false)",  # twelve digits and a fraction are exact in a double
)
REWRITTEN = TimeReading(
    column_type="VARCHAR",
    nanoseconds="CASE WHEN suffix({0}, 'ns') THEN TRY_CAST(left({0}, -2) AS BIGINT) END",
    enough="true",
    rewrites=True,
)
TIME_READINGS = (DOUBLES, WHOLE_NUMBERS, REWRITTEN)
"""From fast to sure."""

_TIME = re.compile(rb'("(?:ts|dur)"\s*:\s*)("?)(-?\d+)(?:\.(\d*))?([eE][+-]?\d{1,2})?\2(?=\s*[,}])')
_TIME_SAMPLE = re.compile(rb'"ts"\s*:\s*("?)(\d+)(\.?)')


def with_nanoseconds(text: bytes | memoryview) -> bytes:
    """The same JSON with every number of microseconds under `ts` and `dur` as a string: "1712195495583123ns"."""
    return _TIME.sub(_in_nanoseconds, text)


def _in_nanoseconds(match: re.Match[bytes]) -> bytes:
    key, _, whole, fraction, exponent = match.groups()
    fraction = fraction or b""
    if exponent or len(fraction) > 3:
        value = Decimal((whole + b"." + fraction + (exponent or b"")).decode()) * 1000
        return b'%b"%dns"' % (key, value.to_integral_value(ROUND_HALF_EVEN))
    return b'%b"%b%bns"' % (key, whole, fraction.ljust(3, b"0"))


def likely_reading(head: bytes | memoryview) -> TimeReading:
    """The reading that the first events suggest; `enough` decides later."""
    reading = DOUBLES
    for quote, whole, point in _TIME_SAMPLE.findall(head)[:64]:
        if quote:
            return WHOLE_NUMBERS
        if int(whole[:32]) >= DOUBLE_EXACT_BELOW_US:
            if point:
                return REWRITTEN
            reading = WHOLE_NUMBERS
    return reading


def source_table(path: str, reading: TimeReading, schema: RowSchema, size_bytes: int) -> str:
    """The FROM clause over a JSON array of events in a file of `size_bytes`."""
    arguments = ", ".join(f'"{key}" VARCHAR' for key, _ in schema.arguments.values())
    columns = {
        **dict.fromkeys(("ph", "cat", "name", "pid", "tid"), "VARCHAR"),
        **dict.fromkeys(("ts", "dur"), reading.column_type),
        "args": f"STRUCT({arguments})",
    }
    listed = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in columns.items())
    largest = max(size_bytes, 1 << 20)
    return f"read_json({_quoted(path)}, columns = {{{listed}}}, format = 'array', maximum_object_size = {largest})"


def wanted(schema: RowSchema) -> str:
    """The condition for an event that becomes a row, if nothing is wrong with it. Never NULL."""
    spellings = (*schema.categories, *(old for old, new in LEGACY_CATEGORIES.items() if new in schema.categories))
    return f"coalesce(ph = 'X' AND cat IN ({_listed(spellings)}), false)"


def typed_rows(table: str, reading: TimeReading, schema: RowSchema) -> str:
    """The wanted events with the columns of a part and two more: `spelled`, the category as the file has it, and `verdict`.

    The verdict is `row` or `zero_duration` for what is kept, else the defect.
    """
    legacy = " ".join(f"WHEN {_quoted(old)} THEN {_quoted(new)}" for old, new in LEGACY_CATEGORIES.items())
    arguments = ", ".join(
        f'TRY_CAST(args."{key}" AS BIGINT) AS {column}' if kind == "BIGINT" else f'args."{key}" AS {column}'
        for column, (key, kind) in schema.arguments.items()
    )
    return f"""
        SELECT *, CASE
            WHEN ts_ns IS NULL OR dur_ns IS NULL OR ts_ns NOT BETWEEN -{FARTHEST_NS} AND {FARTHEST_NS}
                THEN 'unreadable_time'
            WHEN dur_ns < 0 THEN 'negative_duration'
            WHEN dur_ns > {LONGEST_PLAUSIBLE_NS} THEN 'implausible_duration'
            WHEN dur_ns > 0 THEN 'row'
            WHEN ts_ns = 0 THEN 'without_timestamp'
            WHEN cat IN ({_listed(DEVICE_CATEGORIES)}) THEN 'zero_duration'
            ELSE 'row' END AS verdict
        FROM (
            SELECT CASE cat {legacy} ELSE cat END AS cat, coalesce(name, '') AS name, pid, tid,
                {reading.nanoseconds.format("ts")} AS ts_ns, {reading.nanoseconds.format("dur")} AS dur_ns,
                {arguments}, cat AS spelled
            FROM {table} WHERE wanted
        )"""


def count_rows(rows: str) -> str:
    """Typed rows by category as spelled and verdict, with the sum of their durations."""
    return f"SELECT spelled, verdict, count(*), coalesce(sum(dur_ns), 0) FROM {rows} GROUP BY ALL"


def count_others(table: str, reading: TimeReading) -> str:
    """Unwanted events by category and phase X or not, the sum of their durations, and how many are no events.

    No event is what has no phase of one letter, such as null, a number, an object of another kind.
    """
    return f"""
        SELECT coalesce(cat, ''), coalesce(ph = 'X', false) AS complete, count(*),
            coalesce(sum(CASE WHEN ph = 'X' THEN {reading.nanoseconds.format("dur")} END), 0),
            count(*) FILTER (ph IS NULL OR length(ph) <> 1)
        FROM {table} WHERE NOT wanted GROUP BY ALL"""


def copy_rows(rows: str, part: str) -> str:
    """The statement that writes the kept rows to a Parquet file and returns their number.

    Giving a column's dictionary up at 1,000 entries made the file smaller and a sixth faster than the default.
    """
    return f"""
        COPY (SELECT * EXCLUDE (spelled, verdict) FROM {rows} WHERE verdict IN ({_listed(KEPT_VERDICTS)}))
        TO {_quoted(part)} (FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, DICTIONARY_SIZE_LIMIT 1000)"""
