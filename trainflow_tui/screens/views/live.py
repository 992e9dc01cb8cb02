"""The lists of the live screen: followed logs with their last numbers, and what a log says besides."""

from __future__ import annotations

import math
from typing import Final

from trainflow_tui.language import N_
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.freshness import Freshness, from_log, from_logs
from trainflow_tui.screens.pane_view import PaneView, row
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.columns import figures, moment, muted, number, words
from trainflow_tui.screens.widgets.patched_table import Column, Row
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, mark, say

RUN_MARKS: Final = {
    "waiting": ("◐", MUTED),
    "following": ("●", OK),
    "stale": ("◌", WARN),
    "missing": ("✗", BAD),
    "damaged": ("✗", BAD),
    "unknown": ("?", MUTED),
}
STATES: Final = {
    "waiting": N_("waiting"),
    "following": N_("following"),
    "stale": N_("stale"),
    "missing": N_("missing"),
    "damaged": N_("damaged"),
    "unknown": N_("unknown"),
}
EVENTS: Final = {
    "non_finite": N_("non finite"),
    "worker_failed": N_("worker failed"),
    "signal": N_("signal"),
    "loss_spike": N_("loss spike"),
    "stalled": N_("stalled"),
    "checkpoint_saved": N_("checkpoint saved"),
    "resume": N_("resume"),
}
_EVENT_STYLES: Final = {
    "non_finite": BAD,
    "worker_failed": BAD,
    "signal": BAD,
    "loss_spike": WARN,
    "stalled": BAD,
    "checkpoint_saved": OK,
    "resume": ACCENT,
}


def runs(snapshot: Snapshot, freshness: Freshness, *, compact: bool = False) -> PaneView:
    """Followed logs with their last numbers. Compact leaves the time to the charts below."""
    columns = (
        Column("", 1),
        Column(_("Run"), 12 if compact else 20, "run"),
        figures(_("Step"), 11, "step"),
        figures(_("Loss"), 8, "loss"),
        figures(_("Throughput"), 17, "throughput"),
        Column(_("State"), None, "state"),
        Column(_("At"), 8, "last_sample_at"),
    )
    rows = tuple(_run_row(run) for run in snapshot.runs)
    empty = say(_("No log yet.  n  or  trainflow log add FILE"))
    view = PaneView(say(_("Runs")), columns, rows, empty, as_of=from_logs(snapshot, freshness))
    return view.only(0, 1, 2, 3, 4, 5) if compact else view


def _run_row(run: RunStatus) -> Row:
    s = run.summary
    step = "—" if s.step is None else f"{s.step}/{s.total_steps}" if s.total_steps else str(s.step)
    tput = "—" if s.throughput is None else f"{s.throughput:,.1f} {s.throughput_unit}"
    state = _(STATES.get(s.state, s.state)) + (f": {s.detail}" if s.detail else "")
    if s.attempt > 1:
        state += say(_(" · attempt {n}"), n=s.attempt)
    finite = s.loss is None or math.isfinite(s.loss)
    return row(
        run.id,
        mark(*RUN_MARKS.get(s.state, ("●", MUTED))),
        words(run.id),
        number(step, s.step),
        number("—" if s.loss is None else f"{s.loss:.5g}", s.loss, "" if finite else BAD),
        number(tput, s.throughput),
        words(state, RUN_MARKS.get(s.state, ("", MUTED))[1], s.state),
        moment(s.last_sample_at),
    )


def run_events(run: RunStatus | None, freshness: Freshness) -> PaneView:
    """What a log says besides its numbers, newest first."""
    columns = (
        figures(_("Step"), 9, "step"),
        Column(_("Event"), 18, "event"),
        Column(_("What"), None, "text"),
        Column(_("At"), 8, "at"),
    )
    rows = tuple(
        row(
            f"{e.line}/{e.type}/{i}",
            number("—" if e.step is None else str(e.step), e.step),
            words(_(EVENTS.get(e.type, e.type.replace("_", " "))), _EVENT_STYLES.get(e.type, ""), e.type),
            muted(e.text),
            moment(e.at),
        )
        for i, e in enumerate(reversed(run.summary.events if run else []))
    )
    source = from_log(run, freshness, timed=False)
    return PaneView(say(_("Events")), columns, rows, say(_("The log reports no event.")), as_of=source)
