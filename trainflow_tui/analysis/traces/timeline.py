r"""The time of one device taken apart: a sweep over the bounds of its events, in integer nanoseconds.

Definitions: spec/execution.md §3.4, corpus/traces/README.md. With K, C, M the unions of compute (kernels that are no
communication, and memsets), communication and copies: busy = |K ∪ C ∪ M|, exposed communication = |C \ K|, exposed
memcpy = |M \ (K ∪ C)|, idle = total - busy; hence compute + exposed communication + exposed memcpy + idle = total.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainflow_tui.analysis.traces.records import HotspotKind, TimeSplit

Nanoseconds = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
KINDS = (HotspotKind.KERNEL, HotspotKind.MEMSET, HotspotKind.COMMUNICATION, HotspotKind.MEMCPY)
"""What the codes 0 to 3 of `DeviceEvents.kind` mean; the first two are compute."""


@dataclass(frozen=True, slots=True)
class DeviceEvents:
    """The events of one device as columns of equal length."""

    start_ns: Nanoseconds
    end_ns: Nanoseconds
    kind: npt.NDArray[np.int8]
    row: Places
    """The hot-spot row an event counts towards, from 0."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """The stretches between neighbouring bounds, and where each event begins and ends among them."""

    length_ns: Nanoseconds
    depth: Places
    """How many events are active in each stretch."""
    first: Places
    """Per event: its first stretch."""
    stop: Places
    """Per event: the stretch behind its last; equal to `first` for an event of zero length."""


def sweep(events: DeviceEvents) -> Sweep:
    """Order the bounds of all events and count how many events each stretch between them lies in."""
    count = len(events.start_ns)
    bounds, place = np.unique(np.concatenate((events.start_ns, events.end_ns)), return_inverse=True)
    first: Places = place[:count].astype(np.int32)
    stop: Places = place[count:].astype(np.int32)
    return Sweep(np.diff(bounds), _depth(first, stop, len(bounds)), first, stop)


def split(events: DeviceEvents, swept: Sweep) -> TimeSplit:
    """The split of a device with at least one event."""
    bounds = len(swept.length_ns) + 1

    def active(chosen: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        return _depth(swept.first[chosen], swept.stop[chosen], bounds) > 0

    def duration(stretches: npt.NDArray[np.bool_]) -> int:
        return int(swept.length_ns[stretches].sum())

    compute = active(events.kind <= 1)
    communication = active(events.kind == 2)
    memcpy = active(events.kind == 3)
    total_ns = int(swept.length_ns.sum())
    busy_ns = duration(swept.depth > 0)
    return TimeSplit(
        total_ns=total_ns,
        busy_ns=busy_ns,
        idle_ns=total_ns - busy_ns,
        compute_ns=duration(compute),
        communication_ns=duration(communication),
        exposed_communication_ns=duration(communication & ~compute),
        memcpy_ns=duration(memcpy),
        exposed_memcpy_ns=duration(memcpy & ~compute & ~communication),
    )


def idle_gaps(swept: Sweep) -> int:
    """How many gaps the idle time consists of."""
    idle = swept.depth == 0
    return int(np.count_nonzero(idle[1:] & ~idle[:-1]) + (len(idle) > 0 and bool(idle[0])))


def _depth(first: Places, stop: Places, bounds: int) -> Places:
    change = np.bincount(first, minlength=bounds) - np.bincount(stop, minlength=bounds)
    return np.cumsum(change[:-1], dtype=np.int32)
