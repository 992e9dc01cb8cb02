"""Each instant of device time, shared equally among the events that are active in it, summed per row without rounding.

spec/execution.md §3.4: attributed time of row g is the sum over its events i of ∫ dt / n(t). It is kept as T[g][n],
the event time of g at depth n, an integer; the attributed time is the rational Σ T[g][n] / n, over all g the busy time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainflow_tui.analysis.traces.timeline import DeviceEvents, Sweep

BLOCK_PAIRS = 1 << 20
"""Pairs of event and stretch that are expanded at a time."""
TABLE_CELLS = 1 << 22
"""Cells of T that are held at a time."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """Attributed time per row as exact fractions of nanoseconds: `numerators[row]` over the common `denominator`."""

    numerators: list[int]
    denominator: int

    def rounded(self, order: list[int]) -> list[int]:
        """Whole nanoseconds per row that add up to the exact sum: the largest remainders are rounded up.

        Rows with equal remainders are rounded up in the sequence of `order`, a permutation of the rows.
        """
        floors = [numerator // self.denominator for numerator in self.numerators]
        missing = sum(self.numerators) // self.denominator - sum(floors)
        for row in sorted(order, key=lambda row: -(self.numerators[row] % self.denominator))[:missing]:
            floors[row] += 1
        return floors


def attribute(events: DeviceEvents, swept: Sweep, rows: int) -> Attribution:
    """Share the time of every stretch among its events. Exact for any number of rows and any depth."""
    depths, code = np.unique(swept.depth, return_inverse=True)
    denominator = math.lcm(*(int(depth) for depth in depths if depth))
    weights = [denominator // int(depth) if depth else 0 for depth in depths]
    by_row = np.argsort(events.row, kind="stable")
    rows_at_a_time = max(1, TABLE_CELLS // len(depths)) if len(depths) else rows
    numerators: list[int] = []
    for low in range(0, rows, rows_at_a_time):
        high = min(low + rows_at_a_time, rows)
        lower, upper = np.searchsorted(events.row, (low, high), sorter=by_row)
        table = np.zeros((high - low) * len(depths), dtype=np.int64)
        _add_event_times(table, by_row[lower:upper], events.row - low, code.astype(np.int32), len(depths), swept)
        for times in table.reshape(high - low, len(depths)):
            present = np.flatnonzero(times)
            numerators.append(sum(int(times[at]) * weights[at] for at in present))
    return Attribution(numerators, denominator)


def _add_event_times(
    table: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.intp],
    row: npt.NDArray[np.int32],
    code: npt.NDArray[np.int32],
    codes: int,
    swept: Sweep,
) -> None:
    """Add every stretch of the chosen events to the cell of its row and depth."""
    stretches = (swept.stop[chosen] - swept.first[chosen]).astype(np.int64)
    reached = np.cumsum(stretches)
    begin = 0
    while begin < len(chosen):
        before = int(reached[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(reached, before + BLOCK_PAIRS, side="right")))
        counts = stretches[begin:end]
        block = chosen[begin:end]
        offset = swept.first[block] - (reached[begin:end] - counts - before)
        stretch = np.repeat(offset, counts) + np.arange(int(counts.sum()))
        cell = np.repeat(row[block].astype(np.int64) * codes, counts) + code[stretch]
        np.add.at(table, cell, swept.length_ns[stretch])
        begin = end
