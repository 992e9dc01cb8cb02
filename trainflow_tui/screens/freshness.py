"""Whether what is shown is still good: ok, stale or lost, by source. Judged once a second; only a change of judgement repaints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from trainflow_tui.clock import from_iso
from trainflow_tui.config import Settings
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.pane_view import AsOf
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.words import _, say

OK, STALE, LOST = "ok", "stale", "lost"


@dataclass(frozen=True)
class Freshness:
    """The state of each source."""

    collector: str = OK
    nodes: str = OK
    runs: tuple[tuple[str, str], ...] = ()

    def of_run(self, run: str) -> str:
        """The state of one run's log."""
        return dict(self.runs).get(run, OK)


def judge(snapshot: Snapshot, settings: Settings, now: datetime) -> Freshness:
    """Judge every source.

    The collector: ok while one runs and scanned within two intervals, lost without a scan for ten. Nodes: stale after three
    intervals without a check, lost after thirty. A log: as its reader said, and never better than the collector that reads it.
    """
    scan_age = _age_s(snapshot.collector.scanned_at, now)
    late = 2 * settings.poll_seconds + 60
    collector = LOST if scan_age > 10 * settings.poll_seconds + 60 else STALE
    if snapshot.collector.running and scan_age <= late:
        collector = OK
    check_age = min((_age_s(n.checked_at, now) for n in snapshot.nodes), default=0.0)
    nodes = OK if check_age <= 3 * settings.node_seconds else STALE if check_age <= 30 * settings.node_seconds else LOST
    return Freshness(collector, nodes, tuple((r.id, _of_run(r, collector)) for r in snapshot.runs))


def _of_run(run: RunStatus, collector: str) -> str:
    if run.summary.state in ("missing", "damaged"):
        return LOST
    return STALE if run.summary.state == "stale" or collector != OK else OK


def _age_s(iso: str, now: datetime) -> float:
    return max(0.0, (now - from_iso(iso)).total_seconds()) if iso else float("inf")


def from_ledger() -> AsOf:
    """What is decided here: true whenever it is read."""
    return AsOf("", say(_("ledger")))


def from_collector(snapshot: Snapshot, freshness: Freshness) -> AsOf:
    """What was taken in from the human files."""
    return AsOf(snapshot.collector.scanned_at, say(_("collector")), freshness.collector)


def from_nodes(snapshot: Snapshot, freshness: Freshness) -> AsOf | None:
    """What the nodes said when they were last checked."""
    newest = max((n.checked_at for n in snapshot.nodes), default="")
    return AsOf(newest, say(_("node check")), freshness.nodes) if snapshot.nodes else None


def from_traces(snapshot: Snapshot) -> AsOf | None:
    """What was measured once and does not change."""
    newest = max((t.added_at for t in snapshot.traces), default="")
    return AsOf(newest, say(_("trace files"))) if newest else None


def from_log(run: RunStatus | None, freshness: Freshness, *, timed: bool = True) -> AsOf | None:
    """What a run's log said last. Rows that carry their own time leave it out."""
    if run is None:
        return None
    name = run.path.rsplit("/", 1)[-1]
    return AsOf(run.summary.last_sample_at if timed else "", say("{name}", name=name), freshness.of_run(run.id))


def from_logs(snapshot: Snapshot, freshness: Freshness) -> AsOf | None:
    """The worst of all followed logs."""
    if not snapshot.runs:
        return None
    states = {freshness.of_run(r.id) for r in snapshot.runs}
    return AsOf("", say(_("logs")), LOST if LOST in states else STALE if STALE in states else OK)
