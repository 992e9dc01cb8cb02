"""Where the time of each device went: rows by kind and name, largest first, until 90 % of the window is named.

The denominator is the window (last end minus first start), not the busy time, so idle time is a row among the others.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from trainflow_tui.analysis.traces.attribution import Attribution, attribute
from trainflow_tui.analysis.traces.categories import (
    COMMUNICATION_PATTERN,
    DEVICE_CATEGORIES,
    KERNEL,
    MEMCPY,
)
from trainflow_tui.analysis.traces.loading import connect
from trainflow_tui.analysis.traces.records import DeviceHotspots, Hotspot, HotspotKind, TraceHotspots, TraceQuality
from trainflow_tui.analysis.traces.timeline import KINDS, DeviceEvents, idle_gaps, split, sweep
from trainflow_tui.errors import DamagedError, UsageError

MEMORY_LIMIT = "512MB"
DEFAULT_TARGET = 0.9

_CATEGORIES = ", ".join(f"'{category}'" for category in DEVICE_CATEGORIES)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one device by number: what and how they are called, and their events."""

    kinds: list[int]
    names: list[str]
    events: DeviceEvents


def hotspots(
    parts: Sequence[str],
    *,
    file: str = "",
    quality: TraceQuality | None = None,
    target: float = DEFAULT_TARGET,
    all_rows: bool = False,
) -> TraceHotspots:
    """The time split and the hot-spots of every device in the Parquet parts of one trace.

    A row is in the list while the rows before it cover less than `target` of the window, so the row that crosses is
    included; comparisons are of exact fractions. Ties are ordered by name, then kind.

    Args:
        parts: what `ingest` returned.
        file: the name to put on the result.
        quality: of the ingest, handed through.
        target: share of the window to be named, above 0 and at most 1.
        all_rows: list every row, whatever the target.

    Raises:
        UsageError: the target is no such share.
        DamagedError: a part is missing or is no Parquet file.
    """
    if not 0 < target <= 1:
        raise UsageError("target-out-of-range", f"The target {target} is not above 0 and at most 1.", subject="target")
    goal = Fraction(str(target))
    devices = [_device_hotspots(device, rows, goal, all_rows) for device, rows in _read(parts)]
    return TraceHotspots(file=file, devices=tuple(devices), quality=quality or TraceQuality())


@dataclass(frozen=True, slots=True)
class _Line:
    """A row before it is listed, with its exact attributed time over a denominator that all rows share."""

    kind: HotspotKind
    name: str
    count: int
    total_ns: int
    attributed_ns: int
    numerator: int


def _device_hotspots(device: int | str, rows: _Rows, goal: Fraction, all_rows: bool) -> DeviceHotspots:
    swept = sweep(rows.events)
    parts = split(rows.events, swept)
    shares = attribute(rows.events, swept, len(rows.names))
    lines = _lines(rows, shares)
    if parts.idle_ns:
        numerator = parts.idle_ns * shares.denominator
        gaps = idle_gaps(swept)
        lines.append(_Line(HotspotKind.IDLE, "idle", gaps, parts.idle_ns, parts.idle_ns, numerator))
    enough = None if all_rows else goal * parts.total_ns * shares.denominator
    return DeviceHotspots(
        device=device,
        window_ns=parts.total_ns,
        hotspots=tuple(_listed(lines, parts.total_ns, enough)),
        **{field: getattr(parts, field) for field in parts.__struct_fields__},
    )


def _lines(rows: _Rows, shares: Attribution) -> list[_Line]:
    """One line per kind and name, largest first."""
    kinds = [KINDS[kind] for kind in rows.kinds]
    counts = np.bincount(rows.events.row, minlength=len(kinds)).tolist()
    durations = np.zeros(len(kinds), dtype=np.int64)
    np.add.at(durations, rows.events.row, rows.events.end_ns - rows.events.start_ns)
    order = sorted(range(len(kinds)), key=lambda row: (-shares.numerators[row], rows.names[row], kinds[row]))
    attributed = shares.rounded(order)
    return [
        _Line(kinds[row], rows.names[row], counts[row], int(durations[row]), attributed[row], shares.numerators[row])
        for row in order
    ]


def _listed(lines: list[_Line], window_ns: int, enough: Fraction | None) -> Iterator[Hotspot]:
    """The lines in order of exact attributed time, up to and with the one at which the sum reaches `enough`."""
    covered = cumulative_ns = 0
    for line in sorted(lines, key=lambda line: (-line.numerator, line.name, line.kind)):
        if enough is not None and covered >= enough:
            break
        covered += line.numerator
        cumulative_ns += line.attributed_ns
        yield Hotspot(
            kind=line.kind,
            name=line.name,
            count=line.count,
            total_ns=line.total_ns,
            attributed_ns=line.attributed_ns,
            share=line.attributed_ns / window_ns if window_ns else 0.0,
            cumulative_share=cumulative_ns / window_ns if window_ns else 0.0,
        )


def _read(parts: Sequence[str]) -> list[tuple[int | str, _Rows]]:
    """The device events of the parts, by device: numbers first, in order, then names."""
    if not parts:
        return []
    with tempfile.TemporaryDirectory(prefix="trainflow-") as spill:
        connection = connect(Path(spill), threads=1, memory_limit=MEMORY_LIMIT)
        try:
            return _query(connection, parts)
        except duckdb.Error as error:
            raise DamagedError(
                "trace-parts-unreadable",
                f"The stored rows of the trace cannot be read: {str(error).partition(chr(10))[0]}",
                subject=parts[0],
                next_step="Read the trace again from its source.",
            ) from error
        finally:
            connection.close()


def _query(connection: duckdb.DuckDBPyConnection, parts: Sequence[str]) -> list[tuple[int | str, _Rows]]:
    files = ", ".join("'" + part.replace("'", "''") + "'" for part in parts)
    connection.execute(f"""
        CREATE TEMP TABLE event AS
        SELECT coalesce(CAST(dev AS VARCHAR), pid, '') AS device, cat, name, ts_ns, dur_ns
        FROM read_parquet([{files}]) WHERE cat IN ({_CATEGORIES})""")
    connection.execute(f"""
        CREATE TEMP TABLE label AS
        SELECT row_number() OVER (ORDER BY device, cat, name) - 1 AS id, *,
            CASE WHEN cat = '{MEMCPY}' THEN 3 WHEN cat <> '{KERNEL}' THEN 1
                WHEN regexp_matches(name, '{COMMUNICATION_PATTERN}', 'i') THEN 2 ELSE 0 END AS kind
        FROM (SELECT DISTINCT device, cat, name FROM event)""")
    labels = connection.execute("SELECT device, name, kind FROM label ORDER BY id").fetchall()
    columns = connection.execute("""
        SELECT CAST(label.id AS INTEGER) AS id, ts_ns AS start_ns, ts_ns + dur_ns AS end_ns
        FROM event JOIN label USING (device, cat, name)""").fetchnumpy()
    found = [(_device_id(device), rows) for device, rows in _by_device(labels, columns)]
    return sorted(found, key=lambda pair: (isinstance(pair[0], str), pair[0]))


def _by_device(labels: list[tuple[str, str, int]], columns: dict[str, Any]) -> list[tuple[str, _Rows]]:
    if not labels:
        return []
    kind_of = np.array([kind for _, _, kind in labels], dtype=np.int8)
    starts = [at for at in range(len(labels)) if not at or labels[at][0] != labels[at - 1][0]]
    ids, start_ns, end_ns = (np.asarray(columns[name]) for name in ("id", "start_ns", "end_ns"))
    result = []
    for low, high in zip(starts, [*starts[1:], len(labels)], strict=True):
        own = slice(None) if len(starts) == 1 else (ids >= low) & (ids < high)
        events = DeviceEvents(
            start_ns=start_ns[own], end_ns=end_ns[own], kind=kind_of[ids[own]], row=(ids[own] - low).astype(np.int32)
        )
        names = [name for _, name, _ in labels[low:high]]
        result.append((labels[low][0], _Rows([kind for _, _, kind in labels[low:high]], names, events)))
    return result


def _device_id(text: str) -> int | str:
    try:
        return int(text)
    except ValueError:
        return text
