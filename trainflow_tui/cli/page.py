"""The page that `--once` and `replay` print for a person: board, questions, hot-spots, cluster, and two charts of each active run."""

from __future__ import annotations

import math
import shutil
from typing import Any

from trainflow_tui.clock import local_clock_time
from trainflow_tui.language import _
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.workspace import Workspace

_HOTSPOTS_SHOWN = 8


def lines(workspace: Workspace, body: dict[str, Any]) -> list[str]:
    """The page, one string a line; of a body with a time (`as_of`) the page says that it shows that time."""
    now = local_clock_time(workspace.clock.now(), with_date=True)
    found = [f"trainflow · {workspace.root} · {_('as of {at}').format(at=now) if 'as_of' in body else now}", ""]
    found += _board(body) + _questions(body) + _hotspots(workspace) + _cluster(body)
    for run in status.runs(workspace.ledger):
        found += _run(run)
    return found


def _board(body: dict[str, Any]) -> list[str]:
    found = [_("BOARD")]
    if "collected" in body:
        found.append("  " + _("collected: {new} new, {revised} revised, {errors} errors").format(**body["collected"]))
    found += [f"  {t['id']:24} {t['state']:20} {t['latest_word']}" for t in body["tasks"]] or [
        "  " + _("No task: trainflow task create TITLE")
    ]
    words = _("approval {id} of {task}: {title}")
    found += ["  ! " + words.format(**a) for a in body["approvals"]]
    return [*found, ""]


def _questions(body: dict[str, Any]) -> list[str]:
    found = [_("QUESTIONS")]
    for q in body["questions"]:
        found.append(f"  {'!' if q['blocking'] else '?'} {q['id']:12} {q['direction']:9} {q['title']}")
    return [*(found if body["questions"] else [_("QUESTIONS"), "  " + _("None open.")]), ""]


def _hotspots(workspace: Workspace) -> list[str]:
    found = [_("HOT-SPOTS")]
    for trace in status.traces(workspace.ledger)[:3]:
        for device in trace.summary.get("devices", []):
            split = device["split"]
            window = split["total_ns"] or 1
            parts = " ".join(f"{name} {100 * split[field] / window:.1f}%" for name, field in _PARTS)
            found.append(
                f"  {trace.path.rsplit('/', 1)[-1]} device {device['device']}: {split['total_ns'] / 1e6:.3f} ms  {parts}"
            )
            for spot in device["hotspots"][:_HOTSPOTS_SHOWN]:
                found.append(
                    f"    {100 * spot['share']:5.1f}%  {spot['kind']:13} {spot['count']:6}  {spot['name'][:90]}"
                )
    return [*(found if len(found) > 1 else [_("HOT-SPOTS"), "  " + _("No trace: trainflow trace add FILE")]), ""]


_PARTS = (
    ("compute", "compute_ns"),
    ("exposed-comm", "exposed_communication_ns"),
    ("exposed-copy", "exposed_memcpy_ns"),
    ("idle", "idle_ns"),
)


def _cluster(body: dict[str, Any]) -> list[str]:
    found = [_("CLUSTER")]
    for node in body["nodes"]:
        bad = [s for s in node["signals"] if s.get("state") not in ("ok",)]
        words = "; ".join(f"{s.get('check')} {s.get('state')}: {s.get('text')}" for s in bad) or _("all checks ok")
        found.append(f"  {node['name']}: {words if node['signals'] else _('not checked yet')}")
    return [*(found if body["nodes"] else [_("CLUSTER"), "  " + _("No node: trainflow node check")]), ""]


def _run(run: RunStatus) -> list[str]:
    from trainflow_tui.analysis.plot_text import plot_series

    s = run.summary
    width = min(100, shutil.get_terminal_size((80, 24)).columns - 2)
    steps = [float(p[0]) for p in s.recent]
    found = [f"RUN {run.id} · {s.framework or 'unknown format'} · {s.state} · step {s.step} · attempt {s.attempt}"]
    for name, column in (("loss", 1), (f"throughput {s.throughput_unit}".strip(), 2)):
        values = [math.nan if p[column] is None else float(p[column]) for p in s.recent]  # type: ignore[arg-type]
        found += plot_series([(name, steps, values)], width=width, height=12, title=name).splitlines()
    return [*found, *(f"  {e.type} at step {e.step}: {e.text}" for e in s.events[-5:]), ""]
