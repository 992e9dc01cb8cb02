"""One round of everything: collect, follow logs, check nodes, close deadlines, render. What `--once`, `watch` and the key `r` call."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.collaboration import approvals, collector, generated_files, guidance, questions, spooled, tasks
from trainflow_tui.collaboration.collector import Scan
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.collaboration.tasks import Task
from trainflow_tui.errors import TrainflowError
from trainflow_tui.files import shortage
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import follow, node_checks, status
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.workspace import Workspace

T = TypeVar("T")
_log = logging.getLogger(__name__)
UNLINK_AFTER = timedelta(minutes=10)


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs attention and stopped nothing else."""

    code: str
    text: str
    subject: str
    exit: int = 20
    """What a headless verb ends with if this is the worst: 20 attention, 30 busy, 70 internal."""


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
    parts = _Parts()
    scan: Scan = parts.do("collect", lambda: collector.collect(workspace, actor=actor, reader=reader), Scan())
    parts.troubles += [Trouble(code=e.code, text=e.text, subject=e.file) for e in scan.errors]
    followed = follow.NOTHING
    if short := shortage(workspace.state):
        text = f"Nothing that is measured is recorded: {short}. Free some space."
        parts.troubles.append(Trouble(code="disk-short", text=text, subject=str(workspace.state)))
    else:
        followed = parts.do("follow", lambda: (follower or Follower()).follow_all(workspace), follow.NOTHING)
    parts.troubles += [Trouble(code="log", text=text, subject=run) for run, text in followed.troubles]
    if check_nodes:
        parts.do("check", lambda: node_checks.check_due(workspace), 0)
    parts.do("deadlines", lambda: approvals.close_overdue(workspace.ledger, actor=actor), 0)
    parts.do("unlink", lambda: drop_sealed(workspace), 0)
    changed = _render(workspace, parts)
    return Round(scan=scan, samples=followed.samples, changed_files=changed, troubles=parts.troubles)


class _Parts:
    """Work of which each part may fail alone."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []

    def do(self, name: str, work: Callable[[], T], default: T) -> T:
        """The result; where it fails, the default, and a trouble that says why."""
        try:
            return work()
        except TrainflowError as problem:
            exit = problem.exit_code if problem.exit_code in (30, 70) else 20
            self.troubles.append(Trouble(code=problem.code, text=str(problem), subject=problem.subject, exit=exit))
        except OSError as problem:
            _log.exception("%s failed", name)
            subject = str(problem.filename or "")
            self.troubles.append(Trouble(code=f"{name}-failed", text=f"{name}: {problem}", subject=subject))
        except Exception as problem:
            _log.exception("%s failed", name)
            text = f"{name}: {type(problem).__name__}: {problem}"[:500]
            self.troubles.append(Trouble(code="internal", text=text, subject=name, exit=70))
        return default


def _render(workspace: Workspace, parts: _Parts) -> list[str]:
    changed = []
    found: list[Task] = parts.do("render", partial(tasks.all_tasks, workspace.ledger), [])
    for task in found:
        names: list[str] = parts.do("render", partial(generated_files.render_task, workspace, task.id), [])
        changed += [f"{task.id}/{name}" for name in names]
    return changed


def add_guidance(workspace: Workspace, *, task: str, text: str, actor: Actor) -> str:
    """Put guidance into the spool, collect it at once and render; returns the item's id.

    Raises:
        UsageError: there is no such task, or the text cannot be kept.
        DamagedError: the record is not durable.
    """
    tasks.get(workspace.ledger, task)
    item = spooled.write_guidance(workspace, task=task, text=text, actor=actor)
    parts = _Parts()
    parts.do("collect", lambda: spooled.ingest(workspace), 0)
    parts.do("render", lambda: len(generated_files.render_task(workspace, task)), 0)
    for trouble in parts.troubles:
        # The record is durable in the spool; the next round takes it in.
        _log.warning("spooled guidance waits for the next round: %s", trouble.text)
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
    collected = {"new": done.scan.new, "revised": done.scan.revised, "errors": len(done.scan.errors)}
    return {"collected": collected} | state_document(workspace) | {"generated": done.changed_files}


def state_document(workspace: Workspace) -> dict[str, Any]:
    """What is known, without what a round did: the keys that `once/1` and `replay/1` share."""
    ledger = workspace.ledger
    pending = approvals.listed(ledger, pending_only=True)
    items = guidance.listed(ledger)
    return {
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
