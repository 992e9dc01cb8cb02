"""From a run to the two charts: which points, which title, which unit."""

from __future__ import annotations

import math
from dataclasses import replace

from trainflow_tui.clock import local_clock_time
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.freshness import Freshness, from_log
from trainflow_tui.screens.host import History
from trainflow_tui.screens.widgets.line_chart import ChartView, Series
from trainflow_tui.screens.widgets.list_pane import as_of_words
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display


def loss_chart(run: RunStatus | None, freshness: Freshness, history: History = (), *, log: bool = False) -> ChartView:
    """Loss over steps."""
    title = say(_("Loss of {run}"), run=run.id) if run else say(_("Loss"))
    view = _chart(title, run, history, 1, _("loss"), log=log)
    has_points = run is not None and bool(run.summary.last_sample_at)
    if run is None or not has_points:
        return replace(view, as_of=(say(_("no data yet")),))
    long, short = from_log(run, freshness), say(_("as of {at}"), at=local_clock_time(run.summary.last_sample_at))
    return replace(view, as_of=(as_of_words(long), short))


def throughput_chart(run: RunStatus | None, history: History = ()) -> ChartView:
    """Throughput over steps, in the unit that the log prints. The loss beside it says as of when: 55 B/s less on the line."""
    unit = run.summary.throughput_unit if run else ""
    return _chart(say(_("Throughput")), run, history, 2, unit or _("unknown unit"), log=False)


def _chart(title: Display, run: RunStatus | None, history: History, column: int, name: str, *, log: bool) -> ChartView:
    recent = tuple(run.summary.recent) if run else ()
    first = recent[0][0] if recent else math.inf
    points = [p for p in history if p[0] < first] + list(recent)
    xs = tuple(float(p[0]) for p in points)
    ys = tuple(math.nan if p[column] is None else float(p[column]) for p in points)  # type: ignore[arg-type]
    series = (Series(name=say("{n}", n=name), x=xs, y=ys),) if points else ()
    return ChartView(title=title, series=series, log=log)
