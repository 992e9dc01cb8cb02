"""One round of everything: collect, follow logs, check nodes, close deadlines, render. What `--once`, `watch` and the key `r` call."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.collaboration import approvals, collector, generated_files, guidance, questions, spooled, tasks
from trainflow_tui.collaboration.collector import Scan
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.errors import TrainflowError
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import follow, node_checks, status
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
UNLINK_AFTER = timedelta(minutes=10)


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs attention and stopped nothing else."""

    code: str
    text: str
    subject: str


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What one round did."""

    scan: Scan
    samples: int
    changed_files: list[str]
    troubles: list[Trouble]


def run_round(
    workspace: Workspace,
    *,
    actor: Actor,
    follower: Follower | None = None,
    reader: SettledReader | None = None,
    check_nodes: bool = True,
) -> Round:
    """Do one round. A part that fails becomes a trouble; the others go on.

    In a read-only workspace nothing is done and nothing is troubled.
    """
    if workspace.ledger.readonly:
        return Round(scan=Scan(), samples=0, changed_files=[], troubles=[])
    troubles: list[Trouble] = []

    def part(name: str, work: Any, default: Any) -> Any:
        try:
            return work()
        except TrainflowError as problem:
            troubles.append(Trouble(code=problem.code, text=str(problem), subject=problem.subject))
        except OSError as problem:
            _log.exception("%s failed", name)
            troubles.append(Trouble(code=f"{name}-failed", text=f"{name}: {problem}", subject=problem.filename or ""))
        return default

    scan: Scan = part("collect", lambda: collector.collect(workspace, actor=actor, reader=reader), Scan())
    troubles += [Trouble(code=e.code, text=e.text, subject=e.file) for e in scan.errors]
    followed = part("follow", lambda: (follower or Follower()).follow_all(workspace), follow.NOTHING)
    troubles += [Trouble(code="log", text=text, subject=run) for run, text in followed.troubles]
    if check_nodes:
        part("check", lambda: node_checks.check_due(workspace), 0)
    part("deadlines", lambda: approvals.close_overdue(workspace.ledger, actor=actor), 0)
    changed = part("render", lambda: generated_files.render_all(workspace), [])
    return Round(scan=scan, samples=followed.samples, changed_files=changed, troubles=troubles)


def add_guidance(workspace: Workspace, *, task: str, text: str, actor: Actor) -> str:
    """Put guidance into the spool, collect it at once and render; returns the item's id."""
    tasks.get(workspace.ledger, task)
    item = spooled.write_guidance(workspace, task=task, text=text, actor=actor)
    try:
        spooled.ingest(workspace)
        generated_files.render_task(workspace, task)
    except TrainflowError:
        # The record is durable in the spool; the next round takes it in.
        _log.exception("spooled guidance waits for the next round")
    return item


def drop_sealed(workspace: Workspace) -> int:
    """Unlink tails whose rows stand in Parquet for longer than any reader can still need them."""
    before = to_iso(workspace.clock.now() - UNLINK_AFTER)
    paths = manifest.droppable(workspace.ledger, before=before)
    for path in paths:
        (workspace.state / path).unlink(missing_ok=True)
    if paths:
        manifest.mark_dropped(workspace.ledger, paths)
    return len(paths)


def once_document(workspace: Workspace, done: Round) -> dict[str, Any]:
    """The keys of `once/1` beside schema, status and reasons."""
    ledger = workspace.ledger
    pending = approvals.listed(ledger, pending_only=True)
    items = guidance.listed(ledger)
    return {
        "collected": {"new": done.scan.new, "revised": done.scan.revised, "errors": len(done.scan.errors)},
        "tasks": [
            {"id": t.id, "title": t.title, "state": t.state, "latest_word": t.latest_word, "latest_at": t.latest_at}
            | {"guidance": sum(1 for i in items if i.task == t.id and i.removed_at is None)}
            for t in tasks.all_tasks(ledger)
        ],
        "questions": [
            {
                "id": q.id,
                "task": q.task,
                "direction": q.direction,
                "title": q.title,
                "blocking": q.blocking,
                "state": q.state,
            }
            for q in questions.listed(ledger, open_only=True)
        ],
        "approvals": [
            {"id": a.id, "title": a.request.title, "task": a.request.task, "requested_at": a.requested_at}
            for a in pending
        ],
        "traces": [
            {"id": t.id, "file": t.path, "added_at": t.added_at} | _splits(t.summary) for t in status.traces(ledger)
        ],
        "runs": [_run(run) for run in status.runs(ledger)],
        "nodes": [
            {"name": n.name, "checked_at": n.checked_at, "signals": n.status.get("signals", [])}
            for n in status.nodes(ledger)
        ],
        "files": [
            {"task": t, "name": n, "state": s, "detail": d, "hints": msgspec.json.decode(h)}
            for t, n, s, d, h in ledger.query(
                "SELECT task, name, state, detail, hints FROM human_file ORDER BY task, name"
            )
        ],
        "generated": done.changed_files,
    }


def _splits(summary: dict[str, Any]) -> dict[str, Any]:
    return {"devices": [{"device": d["device"], **d["split"]} for d in summary.get("devices", [])]}


def _run(run: status.RunStatus) -> dict[str, Any]:
    s = run.summary
    return {
        "id": run.id,
        "task": run.task,
        "file": run.path,
        "framework": s.framework,
        "state": s.state,
        "step": s.step,
        "loss": s.loss,
        "throughput": s.throughput,
        "throughput_unit": s.throughput_unit,
        "attempt": s.attempt,
        "samples": s.samples,
        "last_sample_at": s.last_sample_at or None,
    }
