"""A run's course over time, read from whichever files answer it best: samples for what is near, roll-ups for what is long."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from trainflow_tui.clock import from_iso
from trainflow_tui.errors import DamagedError
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.manifest import Segment
from trainflow_tui.store.metrics import SegmentGoneError, stored_form
from trainflow_tui.workspace import Workspace

T = TypeVar("T")
_log = logging.getLogger(__name__)
SAMPLES_SPAN_S: Final = 7200.0
SAMPLES_RANKS: Final = 64
"""A chart over more than two hours, or of more ranks, reads roll-ups."""


def series(
    workspace: Workspace,
    run: str,
    column: str,
    *,
    buckets: int,
    since: str | None = None,
    until: str | None = None,
    ranks: int = 1,
) -> list[tuple[float, float, float, float]]:
    """Step, minimum, mean and maximum of a column in at most `buckets` rows, as `Store.series` describes them.

    Raises:
        ValueError: no such column, or a bound is no ISO time with a zone.
    """
    now = workspace.clock.now()

    def ask(found: Sequence[Segment]) -> list[tuple[float, float, float, float]]:
        chosen = choose(found, now=now, buckets=buckets, since=since, until=until, ranks=ranks)
        return workspace.store.series([s.path for s in chosen], column, buckets=buckets, since=since, until=until)

    return read(workspace, run, ask)


def count(workspace: Workspace, run: str) -> int:
    """How many samples of a run are kept, each counted once."""
    return read(workspace, run, lambda found: workspace.store.count([s.path for s in found if s.state != "rollup"]))


def choose(
    segments: Sequence[Segment],
    *,
    now: datetime,
    buckets: int,
    since: str | None = None,
    until: str | None = None,
    ranks: int = 1,
) -> list[Segment]:
    """The files that a chart between two times is read from: samples alone, or one level of roll-ups and what is not in it yet."""
    begin, end = (from_iso(stored_form(bound)) if bound is not None else None for bound in (since, until))
    samples = [s for s in segments if s.state != "rollup"]
    rollups = [s for s in segments if s.state == "rollup"]
    start = begin or min(map(_first, segments), default=now)
    span_s = ((end or now) - start).total_seconds()
    is_whole = not rollups or min(map(_first, samples), default=now) <= max(start, min(map(_first, rollups)))
    if span_s <= SAMPLES_SPAN_S and ranks <= SAMPLES_RANKS and is_whole:
        chosen = samples
    else:
        level = "roll600" if span_s / 600 >= buckets else "roll60"
        chosen = [s for s in segments if s.level == level or s.state in ("live", "parquet")]
    return [s for s in chosen if _overlaps(s, begin, end)]


def _first(segment: Segment) -> datetime:
    return from_iso(segment.first_at or segment.created_at)


def _overlaps(segment: Segment, begin: datetime | None, end: datetime | None) -> bool:
    if segment.state == "live" or not segment.first_at:
        return True
    return (end is None or from_iso(segment.first_at) <= end) and (begin is None or from_iso(segment.last_at) >= begin)


def read(workspace: Workspace, run: str, ask: Callable[[Sequence[Segment]], T]) -> T:
    """Ask with the manifest's list; where a file went meanwhile, once more with a new list, then with what is there."""
    for _ in range(2):
        found = manifest.segments(workspace.ledger, run)
        try:
            answer = ask(found)
        except (SegmentGoneError, DamagedError):
            continue
        if not _sealed_and_gone(workspace, run, found):
            return answer
    lost = workspace.store.unreadable([s.path for s in found])
    _log.warning("%d segments of run %s are missing or damaged: %s", len(lost), run, ", ".join(lost[:3]))
    return ask([s for s in found if s.path not in lost])


def _sealed_and_gone(workspace: Workspace, run: str, found: Sequence[Segment]) -> bool:
    """Whether a tail of the list was unlinked before it was read. One that is still live was only not written to yet."""
    absent = {s.id for s in found if s.state == "live" and not (workspace.state / s.path).exists()}
    return bool(absent) and not absent.issubset(s.id for s in manifest.segments(workspace.ledger, run))
