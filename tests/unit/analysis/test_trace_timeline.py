"""The sweep and the attribution against a reference that looks at every single nanosecond."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui.analysis.traces import attribution
from trainflow_tui.analysis.traces.attribution import Attribution, attribute
from trainflow_tui.analysis.traces.timeline import DeviceEvents, idle_gaps, split, sweep

COMPUTE, MEMSET, COMMUNICATION, MEMCPY = 0, 1, 2, 3

# (start, duration, kind, row)
EVENT = st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 3), st.integers(0, 4))
EVENTS = st.lists(EVENT, min_size=1, max_size=14)


def device_events(events):
    start, duration, kind, row = (np.array(column, dtype=np.int64) for column in zip(*events, strict=True))
    return DeviceEvents(start_ns=start, end_ns=start + duration, kind=kind.astype(np.int8), row=row.astype(np.int32))


def nanosecond_by_nanosecond(events):
    """Per nanosecond of the window: the events that are active in it."""
    first = min(start for start, *_ in events)
    last = max(start + duration for start, duration, *_ in events)
    return [[e for e in events if e[0] <= t < e[0] + e[1]] for t in range(first, last)]


@given(EVENTS)
def test_the_split_is_what_counting_single_nanoseconds_gives(events):
    instants = nanosecond_by_nanosecond(events)
    kinds = [{e[2] for e in active} for active in instants]
    compute = [bool(k & {COMPUTE, MEMSET}) for k in kinds]
    parts = split(device_events(events), sweep(device_events(events)))
    assert parts.total_ns == len(instants)
    assert parts.busy_ns == sum(bool(k) for k in kinds)
    assert parts.idle_ns == sum(not k for k in kinds)
    assert parts.compute_ns == sum(compute)
    assert parts.communication_ns == sum(COMMUNICATION in k for k in kinds)
    assert parts.exposed_communication_ns == sum(
        COMMUNICATION in k and not c for k, c in zip(kinds, compute, strict=True)
    )
    assert parts.memcpy_ns == sum(MEMCPY in k for k in kinds)
    assert parts.exposed_memcpy_ns == sum(k == {MEMCPY} for k in kinds)


@given(EVENTS)
def test_the_four_exclusive_parts_make_the_window(events):
    parts = split(device_events(events), sweep(device_events(events)))
    exclusive = parts.compute_ns + parts.exposed_communication_ns + parts.exposed_memcpy_ns + parts.idle_ns
    assert exclusive == parts.total_ns


@given(EVENTS, st.sampled_from([1, 3, 1 << 20]), st.sampled_from([1, 4, 1 << 22]))
def test_attributed_time_is_the_equal_share_of_every_nanosecond(events, pairs, cells):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attribution, "BLOCK_PAIRS", pairs)
        patch.setattr(attribution, "TABLE_CELLS", cells)
        shares = attribute(device_events(events), sweep(device_events(events)), 5)
    expected = [Fraction(0)] * 5
    for active in nanosecond_by_nanosecond(events):
        for event in active:
            expected[event[3]] += Fraction(1, len(active))
    assert [Fraction(numerator, shares.denominator) for numerator in shares.numerators] == expected


@given(EVENTS, st.permutations(range(5)))
def test_rounded_attributed_times_add_up_to_the_busy_time(events, order):
    swept = sweep(device_events(events))
    shares = attribute(device_events(events), swept, 5)
    rounded = shares.rounded(list(order))
    assert sum(rounded) == split(device_events(events), swept).busy_ns
    for whole, numerator in zip(rounded, shares.numerators, strict=True):
        assert abs(whole - Fraction(numerator, shares.denominator)) < 1


def test_equal_remainders_are_rounded_up_in_the_given_order():
    thirds = Attribution([4, 4, 4], 3)
    assert thirds.rounded([2, 0, 1]) == [1, 1, 2]
    assert thirds.rounded([1, 0, 2]) == [1, 2, 1]


@given(EVENTS)
def test_idle_gaps_are_the_maximal_runs_of_idle_nanoseconds(events):
    idle = [not active for active in nanosecond_by_nanosecond(events)]
    runs = sum(now and not before for before, now in zip([False, *idle], idle, strict=False))
    assert idle_gaps(sweep(device_events(events))) == runs


def test_a_zero_length_event_widens_the_window_and_takes_no_time():
    events = [(10, 5, COMPUTE, 0), (40, 0, MEMCPY, 1)]
    parts = split(device_events(events), sweep(device_events(events)))
    assert (parts.total_ns, parts.busy_ns, parts.memcpy_ns) == (30, 5, 0)


def test_two_kernels_of_80_offset_by_20_share_the_hundred_equally():
    """The worked example of spec/execution.md §3.4: B=100, O=60, A=50/50, R=80/80."""
    events = [(0, 80, COMPUTE, 0), (20, 80, COMPUTE, 1)]
    swept = sweep(device_events(events))
    shares = attribute(device_events(events), swept, 2)
    assert split(device_events(events), swept).busy_ns == 100
    assert int(swept.length_ns[swept.depth >= 2].sum()) == 60
    assert [Fraction(n, shares.denominator) for n in shares.numerators] == [50, 50]


def test_sums_stay_exact_beyond_the_reach_of_a_double():
    far = 2**62
    events = DeviceEvents(
        start_ns=np.array([far, far + 1]),
        end_ns=np.array([far + 3, far + 2**60 + 1]),
        kind=np.array([0, 2], dtype=np.int8),
        row=np.array([0, 1], dtype=np.int32),
    )
    parts = split(events, sweep(events))
    assert parts.busy_ns == 2**60 + 1
    assert parts.exposed_communication_ns == 2**60 - 2
