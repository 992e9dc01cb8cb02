"""What the trace reader and the time arithmetic hand over: frozen records, importable without duckdb or numpy."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class HotspotKind(StrEnum):
    """What a device did, or that it did nothing."""

    KERNEL = "kernel"
    COMMUNICATION = "communication"
    MEMCPY = "memcpy"
    MEMSET = "memset"
    IDLE = "idle"


class CategoryCount(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One category as the file spells it; events without a category are under the empty name."""

    events: int
    complete: int
    """Events with a beginning and a duration (`ph` X)."""
    rows: int
    """Complete events that became rows."""
    total_ns: int
    """Sum of the readable durations of the complete events; overlapping ones count twice."""
    known: bool
    """False: the reader has never heard of this category, so its time is in no figure."""


class TraceQuality(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stood between the file and an undamaged trace. All zero and false for a clean one."""

    rows: int = 0
    truncated: bool = False
    """The file ends before its JSON does; everything up to the last complete event is in."""
    tail_damaged: bool = False
    """The keys after the events could not be read."""
    header_damaged: bool = False
    """The keys before the events could not be read."""
    cut_structurally: bool = False
    """The quick cut between events was not safe in this file, so every bracket was counted."""
    damaged_pieces: int = 0
    repaired: int = 0
    """Events that were not valid JSON and whose meaning was recovered."""
    bad: int = 0
    """Fragments that could not be recovered."""
    not_events: int = 0
    """Elements of the array that are not objects, such as null."""
    unreadable_time: int = 0
    """Complete events without a start or a duration, or with one that is no number, or beyond 2^62 ns."""
    negative_duration: int = 0
    without_timestamp: int = 0
    """Complete events at time zero with duration zero: the profiler never learned when they ran."""
    implausible_duration: int = 0
    """Complete events that claim to have lasted more than a day."""
    zero_duration: int = 0
    """Device events of zero length; kept, they count and take no time."""
    notes: tuple[str, ...] = ()
    """Further facts as kebab-case words, such as `no-device-events`."""


class IngestResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One trace, read: the Parquet parts that hold its rows and everything that is known beside them."""

    parts: tuple[str, ...]
    """Paths, in file order. Empty when no event was kept."""
    events: int
    """All events of the file, of every phase and category."""
    categories: dict[str, CategoryCount]
    quality: TraceQuality
    metadata: dict[str, Any]
    """The keys before and after the events: deviceProperties, distributedInfo, baseTimeNanoseconds and so on."""
    source_sha256: str
    source_bytes: int
    """Hash and size of the source as it is stored, compressed if it is."""


class TimeSplit(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The window of one device, taken apart, in integer nanoseconds.

    compute + exposed communication + exposed memcpy + idle = total, exactly. The terms and formulas are those of
    spec/execution.md §3.4 and corpus/traces/README.md: memsets are compute, `communication` and `memcpy` are the whole
    unions, exposed is what no compute (and for copies no communication either) hides.
    """

    total_ns: int
    """Last end minus first start of the device's events."""
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int


class Hotspot(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One name on one device, or its idle time."""

    kind: HotspotKind
    name: str
    count: int
    """Events, or gaps when idle."""
    total_ns: int
    """Sum of durations, overlaps counted twice."""
    attributed_ns: int
    """Equal share of every instant at which n events ran; over all rows but idle the sum is the busy time, exactly."""
    share: float
    """attributed_ns over the window."""
    cumulative_share: float


class DeviceHotspots(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One device of one file: its split, and where the window went, largest first."""

    device: int | str
    """`args.device`, else the process id; text only where neither is a number."""
    window_ns: int
    """The denominator of every share: the total of the split."""
    total_ns: int
    busy_ns: int
    idle_ns: int
    compute_ns: int
    communication_ns: int
    exposed_communication_ns: int
    memcpy_ns: int
    exposed_memcpy_ns: int
    hotspots: tuple[Hotspot, ...]


class TraceHotspots(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `trace-hotspots/1` document, without the envelope that a door puts around it."""

    file: str
    devices: tuple[DeviceHotspots, ...]
    quality: TraceQuality


class DeviceSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A device for the first paint: the split and the head of its list."""

    device: int | str
    split: TimeSplit
    hotspots: tuple[Hotspot, ...]
    hotspot_rows: int
    """Rows of the list that `hotspots` is the head of."""


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a ledger row keeps of a trace, so that a screen can show it before duckdb is imported."""

    file: str
    source_sha256: str
    source_bytes: int
    events: int
    devices: tuple[DeviceSummary, ...]
    unknown_categories: dict[str, CategoryCount]
    quality: TraceQuality
