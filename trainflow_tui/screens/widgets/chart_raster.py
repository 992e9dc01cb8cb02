"""Points to characters: stable axes and a braille picture with the extremes of each half-column. No widget."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

Points = tuple[Sequence[Any], Sequence[Any]]
"""The x and the y of one series, equally long: floats, or None where one is missing.

A missing or non-finite value breaks the line, and so does an x that falls (a run that was restarted).
"""

RasterRow = tuple[str, str]
"""The characters of one line of cells, and for each cell the number of the series that drew it (a space: none)."""

ASCII_MARKERS: Final = "*+ox#@%&"
_HUGE: Final = 1e300
"""Axes end here, so that the difference of two limits is still a number."""
_TINY: Final = 1e-280
"""Below this a value or a range counts as none, so that dividing by it is still a number."""
_DOTS: Final = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
"""Bits of the braille block for a cell's left and right dots, top to bottom (Unicode §21.1)."""
_RUNS: Final = tuple(
    tuple(tuple(sum(side[top : bottom + 1]) for bottom in range(4)) for top in range(4)) for side in _DOTS
)
"""The bits of the dots from one height to another on one side of a cell."""

_BRAILLE: Final = "".join(chr(0x2800 + mask) for mask in range(256))
_QUADRANTS: Final = " ▘▝▀▖▌▞▛▗▚▐▜▄▙▟█"
"""Block elements (Unicode §22.7) by the bits upper left, upper right, lower left, lower right."""
_BLOCKS: Final = "".join(
    _QUADRANTS[sum(bit for bit, dots in ((1, 0x03), (2, 0x18), (4, 0x44), (8, 0xA0)) if mask & dots)]
    for mask in range(256)
)


@dataclass(frozen=True)
class Axes:
    """The rectangle that is drawn. On a logarithmic scale its y and the ticks' heights are decimal logarithms."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float
    y_ticks: tuple[tuple[float, str], ...]
    log: bool


def fit_axes(series: Sequence[Points], *, log: bool, rows: int, before: Axes | None = None) -> Axes | None:
    """Axes for these points; None where no point can be drawn (on a logarithmic scale: none is positive).

    Axes that still serve are kept, so that a new point moves nothing that is drawn. When x is full its range grows by a
    quarter; y limits and ticks stay as long as the points fill two fifths of them.
    """
    extent = _extent(series, log)
    if extent is None:
        return None
    x_min, x_max, y_min, y_max = extent
    if before is not None and before.log != log:
        before = None
    x_low, x_high = _x_limits(x_min, x_max, before)
    if before is not None and _serves(before, y_min, y_max):
        return Axes(x_low, x_high, before.y_low, before.y_high, before.y_ticks, log)
    y_low, y_high, ticks = (_log_limits if log else _linear_limits)(y_min, y_max, max(2, min(6, rows // 3)))
    return Axes(x_low, x_high, y_low, y_high, ticks, log)


def rasterise(
    series: Sequence[Points], axes: Axes, *, columns: int, rows: int, markers: str = "braille"
) -> list[RasterRow]:
    """Draw the series into cells, later over earlier ones. Each half-column spans all its values: spikes survive.

    `markers` is braille (2×4 dots a cell), blocks (2×2) or ascii (one mark a cell, each series its own).
    """
    if columns <= 0 or rows <= 0:
        return []
    characters = [[" "] * columns for _ in range(rows)]
    owners = [[" "] * columns for _ in range(rows)]
    for number, points in enumerate(series):
        glyph = ASCII_MARKERS[number % len(ASCII_MARKERS)] if markers == "ascii" else ""
        alphabet = _BLOCKS if markers == "blocks" else _BRAILLE
        owner = str(number % 8)
        for (row, column), mask in _masks(points, axes, columns, rows).items():
            characters[row][column] = glyph or alphabet[mask]
            owners[row][column] = owner
    return [("".join(line), "".join(by)) for line, by in zip(characters, owners, strict=True)]


def tick_row(height: float, axes: Axes, rows: int) -> int:
    """The line of cells that a tick's height falls on."""
    return int((axes.y_high - height) / (axes.y_high - axes.y_low) * (rows * 4 - 1) + 0.5) // 4


def _runs(points: Points, log: bool) -> list[tuple[int, int]]:
    """Stretches, from index to index, that are one line: finite, positive where that is asked, x not falling."""
    xs, ys = points
    if len(xs) != len(ys):
        raise ValueError(f"{len(xs)} x for {len(ys)} y")
    with contextlib.suppress(TypeError):  # a None among them
        whole = math.isfinite(sum(xs)) and math.isfinite(sum(ys)) and (not log or not ys or min(ys) > 0)
        if whole and all(map(operator.le, xs, itertools.islice(xs, 1, None))):
            return [(0, len(xs))] if xs else []
    runs: list[tuple[int, int]] = []
    start = -1
    for index, (x, y) in enumerate(zip(xs, ys, strict=True)):
        # A number minus itself is 0; infinity or NaN minus itself is not.
        drawn = x is not None and y is not None and x - x == 0 and y - y == 0 and (y > 0 or not log)
        if start >= 0 and (not drawn or x < xs[index - 1]):
            runs.append((start, index))
            start = -1
        if drawn and start < 0:
            start = index
    if start >= 0:
        runs.append((start, len(xs)))
    return runs


def _extent(series: Sequence[Points], log: bool) -> tuple[float, float, float, float] | None:
    x_limits: list[float] = []
    y_limits: list[float] = []
    for xs, ys in series:
        for start, stop in _runs((xs, ys), log):
            values = ys[start:stop]
            x_limits += xs[start], xs[stop - 1]
            y_limits += min(values), max(values)
    if not x_limits:
        return None
    limits = [max(-_HUGE, min(_HUGE, f(values))) for values in (x_limits, y_limits) for f in (min, max)]
    if log:
        limits[2:] = (math.log10(max(_TINY, limit)) for limit in limits[2:])
    return limits[0], limits[1], limits[2], limits[3]


def _x_limits(x_min: float, x_max: float, before: Axes | None) -> tuple[float, float]:
    if before is None:
        return x_min, x_max
    capacity = before.x_high - before.x_low
    if before.x_low <= x_min and x_max <= before.x_high and x_max - x_min >= capacity / 2:
        return before.x_low, before.x_high
    grew = x_max > before.x_high and x_min >= before.x_low and x_max - x_min <= 2 * capacity
    room = x_min + (x_max - x_min) * 1.25
    # Steps are whole numbers, and so is the end of their axis.
    return x_min, ((math.ceil(room) if room < 2**53 else room) if grew else x_max)


def _serves(axes: Axes, y_min: float, y_max: float) -> bool:
    if not axes.y_low <= y_min <= y_max <= axes.y_high:
        return False
    # One tick stands for a constant, whose limits are a margin around it.
    return len(axes.y_ticks) == 1 or y_max - y_min >= 0.4 * (axes.y_high - axes.y_low)


def _linear_limits(low: float, high: float, wanted: int) -> tuple[float, float, tuple[tuple[float, str], ...]]:
    if high - low <= max(abs(low), abs(high), _TINY) * 1e-12:
        margin = abs(high) * 0.1 if abs(high) > _TINY else 1.0
        return low - margin, high + margin, ((high, f"{high:.6g}"),)
    rough = (high - low) / wanted
    magnitude = 10.0 ** math.floor(math.log10(rough))
    step = next((magnitude * nice for nice in (1, 2, 2.5, 5) if magnitude * nice >= rough), magnitude * 10)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = tuple((number * step, _label(number * step, step)) for number in range(first, last + 1))
    return first * step, last * step, ticks


def _label(value: float, step: float) -> str:
    """Enough digits to tell two neighbours apart, and no more."""
    exponent = math.floor(math.log10(step) + 1e-9)
    digits = -exponent + (round(step / 10.0**exponent, 6) == 2.5)
    if value == 0:
        return "0"
    if abs(value) < 1e6 and digits <= 5:
        return f"{value:.{max(0, digits)}f}"
    return f"{value:.{max(0, min(12, math.floor(math.log10(abs(value))) + digits))}e}"


def _log_limits(low: float, high: float, wanted: int) -> tuple[float, float, tuple[tuple[float, str], ...]]:
    decades = high - low
    if decades > wanted:
        stride = math.ceil(decades / wanted)
        ticks = [n for n in range(math.ceil(low), math.floor(high) + 1) if n % stride == 0]
        return math.floor(low), math.ceil(high), tuple((float(n), f"1e{n}") for n in ticks)
    marks = (1, 2, 5) if decades > 0.3 else range(1, 10)
    every = [n + math.log10(mark) for n in range(math.floor(low), math.ceil(high) + 1) for mark in marks]
    below = max((height for height in every if height <= low + 1e-12), default=low)
    above = min((height for height in every if height >= high - 1e-12), default=high)
    heights = [height for height in every if below <= height <= above]
    if len(heights) < 2:
        return low - 0.1, high + 0.1, ((high, f"{10.0**high:.4g}"),)
    return heights[0], heights[-1], tuple((height, f"{10.0**height:.4g}") for height in heights)


def _masks(points: Points, axes: Axes, columns: int, rows: int) -> dict[tuple[int, int], int]:
    """Braille bits by cell, for one series."""
    masks: dict[tuple[int, int], int] = {}
    for half, high, low in _spans(points, axes, columns * 2, rows * 4):
        column, runs = half >> 1, _RUNS[half & 1]
        first, last = high >> 2, low >> 2
        for row in range(first, last + 1):
            run = runs[high & 3 if row == first else 0][low & 3 if row == last else 3]
            masks[row, column] = masks.get((row, column), 0) | run
    return masks


def _spans(points: Points, axes: Axes, halves: int, heights: int) -> Iterator[tuple[int, int, int]]:
    """Upright strokes: the half-column, its highest and its lowest dot; lines from point to point are made of them."""
    width = axes.x_high - axes.x_low
    x_scale = (halves - 1) / width if width > _TINY else 0.0
    y_scale = (heights - 1) / (axes.y_high - axes.y_low)
    y_high = axes.y_high

    def dot(y: float) -> int:
        return _clamped((y_high - (math.log10(y) if axes.log else y)) * y_scale, heights)

    xs, ys = points
    for start, stop in _runs(points, axes.log):
        index = start
        before_half = before_dot = -1
        while index < stop:
            half = _clamped((xs[index] - axes.x_low) * x_scale, halves)
            edge = axes.x_low + (half + 0.5) / x_scale if x_scale else math.inf
            behind = bisect.bisect_left(xs, edge, index + 1, stop)
            first = low = high = last = dot(ys[index])
            if behind > index + 1:
                values = ys[index:behind]
                low, high, last = dot(min(values)), dot(max(values)), dot(values[-1])
            if 0 <= before_half < half:
                yield from _join(before_half, before_dot, half, first)
            yield half, high, low
            before_half, before_dot, index = half, last, behind


def _clamped(position: float, count: int) -> int:
    """The nearest of `count` places; a position may be infinite, where a value lies far outside the axes."""
    return 0 if position < 0.5 else count - 1 if position >= count - 1 else int(position + 0.5)


def _join(from_half: int, from_dot: int, to_half: int, to_dot: int) -> Iterator[tuple[int, int, int]]:
    """A straight line from one dot to the next, without holes and without thickening flat stretches."""
    slope = (to_dot - from_dot) / (to_half - from_half)
    here = from_dot
    for half in range(from_half + 1, to_half + 1):
        there = to_dot if half == to_half else int(from_dot + slope * (half - from_half) + 0.5)
        yield half, min(there, here + 1), max(there, here - 1)
        here = there
