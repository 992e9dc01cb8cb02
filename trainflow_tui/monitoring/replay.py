"""What was measured, as it was at a moment: the tables that are no events, filled from samples and from what was kept of nodes.

What nobody recorded is unknown there: whether a log was missing, who collected, what a human file was that had not been collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.collaboration import tasks
from trainflow_tui.collaboration.generated_files import HUMAN_FILES
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.manifest import Segment
from trainflow_tui.ledger.past import Past
from trainflow_tui.monitoring import history, node_history, samples, status
from trainflow_tui.monitoring.logs.records import MetricRecord
from trainflow_tui.monitoring.reading import state_at
from trainflow_tui.monitoring.status import RECENT_POINTS, RunEvent, RunStatus, RunSummary
from trainflow_tui.workspace import Workspace

READ_BACK: Final = 600
"""Samples that a run's row is made from: its 300 points, with room for steps that were done again."""
UNKNOWN: Final = "unknown"
_END: Final = "9999"
UNKNOWN_WORDS: Final = "unknown at that time"
DROPPED_WORDS: Final = "its samples of that time are dropped; drawn from roll-ups"


def go_to(workspace: Workspace, past: Past, moment: datetime) -> None:
    """Let the past stand at the moment, with all that is shown of it. The workspace is only read.

    Raises:
        DamagedError: the ledger or the samples cannot be read.
    """
    past.go_to(moment)
    until = to_iso(moment)
    present = {run.id: run.summary for run in status.runs(workspace.ledger)}
    rows = []
    for run in status.runs(past):
        summary = run_at(workspace, run, present.get(run.id, RunSummary()), moment)
        rows.append((run.id, "{}", msgspec.json.encode(summary).decode(), summary.last_sample_at))
    past.put("run_status", rows)
    looks = node_history.at(workspace.ledger, until)
    past.put("node_status", [(name, text, seen) for name, (seen, text) in looks.items()])
    past.put("human_file", _human_files(past))


def view(workspace: Workspace, past: Past) -> Workspace:
    """A workspace that shows the past where it stands, by its ledger and its clock. It is not closed: nothing is its own."""
    return Workspace(
        workspace.root, past, clock=past.clock, settings=workspace.settings, origins=workspace.origins, created=False
    )


def bounds(workspace: Workspace, past: Past) -> tuple[str, str]:
    """The times of the first and the last thing that is recorded: an event, a sample, a look at a node. Empty without any."""
    segments = manifest.segments(workspace.ledger)
    runs = status.runs(workspace.ledger)
    first_look, last_look = node_history.changes(workspace.ledger)
    first = [past.first_time(), first_look, *(s.first_at or s.created_at for s in segments)]
    last = [past.previous_time(_END), last_look, *(run.summary.last_sample_at for run in runs)]
    return min((at for at in first if at), default=""), max((at for at in last if at), default="")


def step(workspace: Workspace, past: Past, moment: str, direction: int) -> str:
    """The time of the nearest event after (1) or before (-1) a moment, decided or met in a log; empty where there is none."""
    here = to_iso(from_iso(moment))
    met = [event.at for run in status.runs(workspace.ledger) for event in run.summary.events]
    if direction > 0:
        found = [at for at in (past.next_time(here), *met) if at and at > here]
        return min(found, default="")
    found = [at for at in (past.previous_time(here), *met) if at and at < here]
    return max(found, default="")


def run_at(workspace: Workspace, run: RunStatus, present: RunSummary, moment: datetime) -> RunSummary:
    """A run's row as of the moment: folded from its last samples until then, judged by the age that they had.

    Events are those of today's row that are not later; where more than it holds came since, those that follow from the
    samples stand for them. How many lines had been refused is not recorded: none is said.
    """
    until = to_iso(moment)

    def ask(found: Sequence[Segment]) -> tuple[list[dict[str, Any]], int, RunSummary | None]:
        known = [s for s in found if s.state != "rollup" and (not s.first_at or s.first_at <= until)]
        rows = workspace.store.recent([s.path for s in _newest(known, until)], until=until, limit=READ_BACK)
        if not rows:
            return [], 0, _from_rollups(workspace, [s for s in found if s.state == "rollup"], until)
        whole = [s for s in known if _is_whole(s, until)]
        parts = [s.path for s in known if not _is_whole(s, until)]
        return rows, sum(s.rows or 0 for s in whole) + workspace.store.count(parts, until=until), None

    rows, count, rolled = history.read(workspace, run.id, ask)
    if rolled is not None:
        unit = present.throughput_unit
        return msgspec.structs.replace(rolled, framework=present.framework, throughput_unit=unit)
    summary = RunSummary()
    for row in rows:
        summary = samples.add_record(summary, _record(row), at=str(row["at"]))
    events = _events(present, summary, until)
    if not rows:
        return RunSummary(events=events)
    state, detail = state_at(summary, moment)
    return msgspec.structs.replace(
        summary, framework=present.framework, state=state, detail=detail, samples=count, events=events
    )


def _is_whole(segment: Segment, until: str) -> bool:
    return segment.state != "live" and segment.rows is not None and bool(segment.last_at) and segment.last_at <= until


def _newest(known: Sequence[Segment], until: str) -> list[Segment]:
    """Those segments that hold the last samples: what reaches over the moment, and before that as many as are needed."""
    chosen = [s for s in known if not _is_whole(s, until)]
    rows = 0
    for segment in sorted((s for s in known if _is_whole(s, until)), key=lambda s: s.last_at, reverse=True):
        if rows >= READ_BACK:
            break
        chosen.append(segment)
        rows += segment.rows or 0
    return chosen


def _from_rollups(workspace: Workspace, rolled: Sequence[Segment], until: str) -> RunSummary | None:
    """What roll-ups say where the samples themselves are dropped; None where there are none of that time."""
    paths = [s.path for s in rolled if s.level == "roll60" and s.first_at <= until]
    found = workspace.store.rolled_until(paths, until=until)
    if found is None:
        return RunSummary(state=UNKNOWN, detail=DROPPED_WORDS) if paths else None
    count, last_at, attempt, step = found
    points: dict[float, list[float | None]] = {}
    for index, column in enumerate(("loss", "throughput")):
        for row in workspace.store.series(paths, column, buckets=RECENT_POINTS, until=until):
            points.setdefault(row[0], [None, None])[index] = row[2]
    recent = [(round(at), *values) for at, values in sorted(points.items())]
    loss, speed = recent[-1][1:] if recent else (None, None)
    return RunSummary(
        state=UNKNOWN,
        detail=DROPPED_WORDS,
        step=step,
        attempt=attempt,
        loss=loss,
        throughput=speed,
        samples=count,
        last_sample_at=last_at,
        recent=recent,  # type: ignore[arg-type]
    )


def _record(row: dict[str, Any]) -> MetricRecord:
    """The record that `samples.sample` made this row from, as far as a summary needs it."""
    extra: dict[str, Any] = msgspec.json.decode(row["extra"]) if row["extra"] else {}
    values = {name: value for name, value in extra.items() if name not in ("losses", "other")}
    values |= {name: row[name] for name in samples.STORED if row[name] is not None}
    loss = msgspec.UNSET if row["loss"] is None and not _is_of_training(extra) else row["loss"]
    return MetricRecord(line=0, step=row["step"], attempt=row["attempt"], loss=loss, values=values)


def _is_of_training(extra: dict[str, Any]) -> bool:
    """Whether a line without the main loss is one of training all the same, as a skipped step is.

    A validation line has other losses; of printers that name their losses on every line, a skipped step has none; LLaMA-Factory
    counts its steps against their total.
    """
    losses = extra.get("losses")
    return not losses if losses is not None else "total_steps" in extra


def _events(present: RunSummary, folded: RunSummary, until: str) -> list[RunEvent]:
    kept = [event for event in present.events if event.at <= until]
    if len(present.events) < samples.EVENTS_KEPT:
        return kept
    oldest = present.events[0].at
    return [*(event for event in folded.events if event.at < oldest), *kept][-samples.EVENTS_KEPT :]


def _human_files(past: Past) -> list[tuple[str, ...]]:
    """Files as last collected by then. What they were between that and the moment, nobody recorded."""
    rows: list[tuple[str, ...]] = []
    for task in tasks.all_tasks(past):
        for name in HUMAN_FILES:
            found = past.query(
                "SELECT at, payload FROM event WHERE entity = ? AND kind = 'file.collected' ORDER BY seq DESC LIMIT 1",
                (f"{task.id}/{name}",),
            )
            if found:
                sha256 = str(msgspec.json.decode(found[0][1])["sha256"])
                rows.append((task.id, name, "collected", "", sha256, "", str(found[0][0]), "[]"))
            elif task.state not in tasks.TERMINAL:
                rows.append((task.id, name, UNKNOWN, "", "", UNKNOWN_WORDS, "", "[]"))
    return rows
