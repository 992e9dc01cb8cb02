"""A chart as plain text, for printed output and reports: the one place that touches plotext. Live panes have their own.

plotext 6.1 never returns on a NaN and aborts the process on a leading one, raises on infinity, and keeps one global
figure. It is therefore given numbers between 0 and 1 alone, at most two for a column, by one thread at a time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from trainflow_tui.text import display

NamedSeries = tuple[str, Sequence[Any], Sequence[Any]]
"""A name, the x and the y, equally long: floats, or None where one is missing."""

_MARKERS: Final = "*+ox#@%&"
_TICKS: Final = 5
_ONE_FIGURE: Final = threading.Lock()
_Point = tuple[float, float, bool]
"""x and y between 0 and 1, and whether a line leads here from the point before."""


def plot_series(series: Sequence[NamedSeries], *, width: int, height: int, title: str, log: bool = False) -> str:
    """Draw series over each other into `height` lines of `width` cells, without escape sequences.

    The first line holds title, names and last values. Missing and non-finite values, and on a logarithmic scale those
    that are not positive, break the line. Where nothing can be drawn, a sentence says why.

    Raises:
        ValueError: the x and the y of a series differ in length.
    """
    many = len(series) > 1
    heading = "  ".join([display(title), *(_named(number, one, many) for number, one in enumerate(series))])
    heading = display(heading, max_cells=max(1, width))
    runs = [list(_runs(one, log)) for one in series]
    points = [point for of_series in runs for run in of_series for point in run]
    if not points:
        above = (
            " above zero, so there is no logarithmic plot" if log and any(list(_runs(s, False)) for s in series) else ""
        )
        return f"{heading}\nThere is no value to draw{above}."
    x_axis = _Axis([x for x, _ in points], log=False)
    y_axis = _Axis([y for _, y in points], log=log)
    columns = max(1, width)
    lines = [list(_thinned(of_series, x_axis, y_axis, columns)) for of_series in runs]
    drawn = _draw(lines, x_axis.ticks(3), y_axis.ticks(_TICKS), columns, max(1, height - 1))
    return "\n".join([heading, *(line.rstrip() for line in drawn.splitlines())])


class _Axis:
    """From values to 0 … 1. Halves are subtracted, since two finite numbers may be an infinity apart."""

    def __init__(self, values: list[float], *, log: bool) -> None:
        self._log = log
        self._low, self._high = self._scaled(min(values)), self._scaled(max(values))
        self._half_span = self._high / 2 - self._low / 2
        self._flat = self._half_span <= max(1e-290, abs(self._high) * 1e-13)

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self._log else float(value)

    def place(self, value: float) -> float:
        """A constant stands in the middle."""
        if self._flat:
            return 0.5
        return min(1.0, max(0.0, (self._scaled(value) / 2 - self._low / 2) / self._half_span))

    def ticks(self, count: int) -> tuple[list[float], list[str]]:
        """Evenly spaced positions, with the fewest digits that tell the labels apart."""
        if self._flat:
            return [0.5], [f"{self._unscaled(self._high):.6g}"]
        positions = [number / (count - 1) for number in range(count)]
        values = [self._unscaled(self._low * (1 - at) + self._high * at) for at in positions]
        for digits in range(3, 18):
            labels = [f"{value:.{digits}g}" for value in values]
            if len(set(labels)) == count:
                break
        return positions, labels

    def _unscaled(self, value: float) -> float:
        return float(10.0 ** min(value, 308.0)) if self._log else value


def _runs(series: NamedSeries, log: bool) -> Iterator[list[tuple[float, float]]]:
    """Stretches of neighbouring points that can be drawn."""
    run: list[tuple[float, float]] = []
    for x, y in zip(series[1], series[2], strict=True):
        if x is not None and y is not None and math.isfinite(x) and math.isfinite(y) and (y > 0 or not log):
            run.append((x, y))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _thinned(runs: list[list[tuple[float, float]]], x_axis: _Axis, y_axis: _Axis, columns: int) -> Iterator[_Point]:
    """Of the points in one column the lowest and the highest, in their order: spikes survive."""
    for run in runs:
        connected = False
        column: list[tuple[float, float]] = []
        at = -1
        for x, y in [*((x_axis.place(x), y_axis.place(y)) for x, y in run), (2.0, 0.0)]:
            here = int(x * columns)
            if here != at and column:
                low = min(range(len(column)), key=lambda n: column[n][1])
                high = max(range(len(column)), key=lambda n: column[n][1])
                for index in sorted({low, high}):
                    yield *column[index], connected
                    connected = True
                column = []
            at = here
            column.append((x, y))


def _draw(
    lines: list[list[_Point]],
    x_ticks: tuple[list[float], list[str]],
    y_ticks: tuple[list[float], list[str]],
    width: int,
    height: int,
) -> str:
    import plotext  # a quarter of a second, and only where something is drawn

    with _ONE_FIGURE:
        plotext.terminal.limit(False, False)
        figure = plotext.figure.clear()
        figure.plot_size(width, height)
        figure.theme("colorless")
        figure.legend(False)
        for axis, (positions, labels) in enumerate((x_ticks, y_ticks)):
            figure.ruler(axis, 0).lim(0.0, 1.0)
            figure.ruler(axis, 0).ticks(positions, labels)
        for number, points in enumerate(lines):
            if points:
                marker = "braille" if len(lines) == 1 else _MARKERS[number % len(_MARKERS)]
                signal = figure.signal([x for x, _, _ in points], [y for _, y, _ in points], marker=marker)
                for index, (_, _, connected) in enumerate(points):
                    signal.line(index, connected)
                figure.draw(signal)
        text = str(figure.build().string(colorless=True))
        figure.clear.data()
        return text


def _named(number: int, series: NamedSeries, many: bool) -> str:
    name, _, values = series
    last = next((y for y in reversed(values) if y is not None and math.isfinite(y)), None)
    mark = f"{_MARKERS[number % len(_MARKERS)]} " if many else ""
    return f"{mark}{display(name)} {'–' if last is None else f'{last:.6g}'}"
