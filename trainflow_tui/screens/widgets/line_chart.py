"""A live line chart: draws with `chart_raster`, keeps its axes still and repaints only the lines that changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from trainflow_tui.screens import looks
from trainflow_tui.screens.widgets.chart_raster import Axes, Points, fit_axes, rasterise, tick_row
from trainflow_tui.screens.words import _
from trainflow_tui.text import Display, cell_len, clip, display

_COLOURS = 8


@dataclass(frozen=True)
class Series:
    """One line, tuples or lists of equal length: `None` or a non-finite y leaves a gap, and so does an x that falls."""

    name: Display
    x: Sequence[float]
    y: Sequence[float | None]


@dataclass(frozen=True)
class ChartView:
    """What a chart shows: the series, later ones drawn over earlier ones, and since when and from where that is known.

    `as_of` holds the words from long to short: the first that fits behind the legend is shown, else the last, cut.
    """

    title: Display
    series: tuple[Series, ...]
    as_of: tuple[Display, ...] = ()
    log: bool = False


@dataclass(frozen=True)
class _Line:
    """One line of cells: its characters, and for each the name of its style."""

    text: str
    styles: str


class LineChart(Widget, can_focus=True):
    """Shows a `ChartView`: a legend with the last values, the plot with its y axis, the limits of x.

    Draws by lines (rule R3): two charts and a table cost 429 B/s at 1 Hz where a full repaint costs 24,615.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "line-chart--title",
        "line-chart--axis",
        *(f"line-chart--series-{number}" for number in range(1, _COLOURS + 1)),
    }
    DEFAULT_CSS = """
    LineChart { height: 1fr; width: 1fr; min-height: 4; }
    LineChart > .line-chart--title { text-style: bold; }
    LineChart > .line-chart--axis { color: $text-muted; }
    LineChart > .line-chart--series-1 { color: $primary; }
    LineChart > .line-chart--series-2 { color: $warning; }
    LineChart > .line-chart--series-3 { color: $success; }
    LineChart > .line-chart--series-4 { color: $error; }
    LineChart > .line-chart--series-5 { color: $accent; }
    LineChart > .line-chart--series-6 { color: $secondary; }
    LineChart > .line-chart--series-7 { color: $foreground; }
    LineChart > .line-chart--series-8 { color: $text-disabled; }
    """

    def __init__(self, *, markers: str | None = None, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._own_markers = markers
        self._badge = ""
        self._view: ChartView | None = None
        self._axes: Axes | None = None
        self._lines: tuple[_Line, ...] = ()
        self._strips: dict[int, Strip] = {}
        self._kept_styles: dict[str, Style] = {}

    def show_badge(self, letter: str) -> None:
        """Show the letter by which this pane is jumped to; empty takes it away."""
        self._badge = letter
        self._draw()

    def show(self, view: ChartView) -> None:
        """Draw this from now on. An equal view, or one that looks the same, repaints nothing."""
        if view != self._view:
            self._view = view
            self._draw()

    @property
    def view(self) -> ChartView | None:
        """What was given to be shown."""
        return self._view

    def on_resize(self) -> None:
        """Draw anew for the new size."""
        self.draw_anew()

    def draw_anew(self) -> None:
        """Draw from nothing: another size, other signs."""
        self._axes, self._lines = None, ()
        self._strips.clear()
        self._kept_styles.clear()
        self._draw()

    @property
    def _markers(self) -> str:
        return self._own_markers or looks.markers()

    def notify_style_update(self) -> None:
        """Colours changed: what is drawn stays, how it looks does not."""
        self._strips.clear()
        self._kept_styles.clear()
        super().notify_style_update()

    def on_focus(self) -> None:
        """The title says which pane the keys are for."""
        self._redraw_title()

    def on_blur(self) -> None:
        """The keys are for another pane."""
        self._redraw_title()

    def _redraw_title(self) -> None:
        self._strips.pop(0, None)
        self._kept_styles.clear()
        self.refresh(Region(0, 0, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """One line of cells."""
        width = self.size.width
        if y >= len(self._lines):
            return Strip.blank(width, self.rich_style)
        if y not in self._strips:
            line = self._lines[y]
            position = 0
            segments: list[Segment] = []
            for name, group in groupby(line.styles):
                length = len(list(group))
                segments.append(Segment(line.text[position : position + length], self._style(name)))
                position += length
            self._strips[y] = Strip(segments).adjust_cell_length(width, self.rich_style)
        return self._strips[y]

    def _style(self, name: str) -> Style:
        # A tenth of a tick's work without being kept.
        if name not in self._kept_styles:
            self._kept_styles[name] = self._looked_up(name)
        return self._kept_styles[name]

    def _looked_up(self, name: str) -> Style:
        part = {"t": "title", "a": "axis"}.get(name) or f"series-{int(name) + 1}"
        style = self.rich_style + self.get_component_rich_style(f"line-chart--{part}", partial=True)
        return style + Style(reverse=True) if part == "title" and self.has_focus else style

    def _draw(self) -> None:
        """Compare with what is shown and repaint the lines that differ, each up to its last change."""
        if self._view is None or not self.size:
            return
        before, self._lines = self._lines, tuple(self._compose_lines(self._view))
        regions = []
        for y in range(max(len(before), len(self._lines))):
            old = before[y] if y < len(before) else _Line("", "")
            new = self._lines[y] if y < len(self._lines) else _Line("", "")
            if old != new:
                self._strips.pop(y, None)
                regions.append(Region(0, y, _changed_cells(old, new, self.size.width), 1))
        if regions:
            self.refresh(*regions)

    def _compose_lines(self, view: ChartView) -> list[_Line]:
        width, height = self.size
        lines = [_legend(view, width, self._markers, self._badge)]
        rows = height - 2
        points: list[Points] = [(series.x, series.y) for series in view.series]
        self._axes = fit_axes(points, log=view.log, rows=rows, before=self._axes) if rows > 0 else None
        axes = self._axes
        if axes is None:
            if view.log and fit_axes(points, log=False, rows=3) is not None:
                lines.append(_plain(_("No value above zero: nothing to draw on a logarithmic scale."), width))
            return lines
        labels = {tick_row(at, axes, rows): label for at, label in axes.y_ticks}
        margin = max(map(len, labels.values()), default=0)
        columns = width - margin - 1
        if columns < 2:
            return lines
        picture = rasterise(points, axes, columns=columns, rows=rows, markers=self._markers)
        bars = ("|", "+") if self._markers == "ascii" else ("│", "┤")
        for number, (text, owners) in enumerate(picture):
            label = labels.get(number, "")
            styles = _fill_blanks("a" * (margin + 1) + owners)
            lines.append(_Line(f"{label:>{margin}}{bars[bool(label)]}{text}", styles))
        low, high = f"{axes.x_low:.10g}", f"{axes.x_high:.10g}"
        lines.append(_plain(f"{'':{margin + 1}}{low}{high:>{max(1, columns - len(low))}}", width))
        return lines


def _plain(text: str, width: int) -> _Line:
    shown = clip(display(text), width)
    return _Line(shown, "a" * len(shown))


def _legend(view: ChartView, width: int, markers: str, badge: str) -> _Line:
    """Title, names with their last values, and since when; what does not fit is cut on the right."""
    parts: list[tuple[str, str]] = [(f"[{badge}]" if badge else "", "t"), (view.title, "t")]
    for number, series in enumerate(view.series):
        mark = "*+ox#@%&"[number % _COLOURS] if markers == "ascii" else "━"
        parts.append((f"{mark} {series.name} {_last_value(series)}", str(number % _COLOURS)))
    text, styles = "", ""
    for part, style in parts:
        if part:
            text += part + "  "
            styles += style * (len(part) + 2)
    room = width - cell_len(text)
    last = next((words for words in view.as_of if cell_len(words) <= room), view.as_of[-1] if view.as_of else "")
    text, styles = text + last, styles + "a" * len(last)
    shown = clip(display(text.rstrip()), width)
    return _Line(shown, styles[: len(shown)].ljust(len(shown), "a"))


def _fill_blanks(styles: str) -> str:
    """A blank takes the style before it, which looks the same and saves forty bytes of colour codes each time."""
    return "".join(accumulate(styles, lambda before, style: before if style == " " else style))


def _last_value(series: Series) -> str:
    """The newest number; a dash behind it where newer points have none."""
    for distance, y in enumerate(reversed(series.y)):
        if y is not None and math.isfinite(y):
            return f"{y:.6g}" + (" –" if distance else "")
    return "–"


def _changed_cells(old: _Line, new: _Line, width: int) -> int:
    """Cells from the left edge to the last that differs: Textual sends a line from its start in any case."""
    if not len(old.text) == len(new.text) == cell_len(old.text) == cell_len(new.text):
        return width
    for position in range(len(new.text) - 1, -1, -1):
        if old.text[position] != new.text[position] or old.styles[position] != new.styles[position]:
            return position + 1
    return width
