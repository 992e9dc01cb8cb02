"""`trainflow log`: read a training log, follow one."""

from __future__ import annotations

import click

from trainflow_tui.cli.frame import ATTENTION, Call, Noun, Reason, Reply
from trainflow_tui.cli.given import given_path
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.monitoring import follow, status


@click.group(cls=Noun, help="Training logs.")
def log() -> None:
    """Logs."""


@log.command(help="Print what the fitting adapter reads in a file. Keeps nothing.")
@click.argument("file")
@click.option("--adapter", default=None, metavar="NAME", help="Force a format.")
@click.pass_obj
def read(call: Call, file: str, adapter: str | None) -> Reply:
    """Read a log."""
    from trainflow_tui.monitoring.logs.read import read_log
    from trainflow_tui.monitoring.logs.records import log_read_json

    document = log_read_json(read_log(given_path(file), adapter=adapter))
    reasons = []
    if document["rejected"]:
        count = len(document["rejected"])  # type: ignore[arg-type]
        reasons.append(
            Reason("lines-rejected", f"{count} lines look like records and cannot be read.", file, ATTENTION)
        )
    lines = [f"{document['framework']}: {len(document['records'])} records, {len(document['events'])} events"]  # type: ignore[arg-type]
    for record in document["records"][-20:]:  # type: ignore[index]
        lines.append(f"  step {record.get('step')}  loss {record.get('loss')}  attempt {record.get('attempt')}")
    for event in document["events"][-20:]:  # type: ignore[index]
        lines.append("  " + "  ".join(f"{k} {v}" for k, v in event.items()))
    return Reply(schema=str(document.pop("schema")), body=document, reasons=reasons, lines=lines)


@log.command(help="Follow a growing log: read it now, and go on with every refresh and collector.")
@click.argument("file")
@click.option("--task", default="", metavar="TASK")
@click.option("--id", "id_", default=None, metavar="ID", help="A name for the run; otherwise made from the file's.")
@click.pass_obj
def add(call: Call, file: str, task: str, id_: str | None) -> Reply:
    """Add a log."""
    workspace = call.open(create=True)
    run, new = follow.add_run(workspace, given_path(file), task=task, id=id_, actor=current_actor("cli"))
    followed = follow.Follower().follow(workspace, run)
    found = next(r for r in status.runs(workspace.ledger) if r.id == run)
    reasons = call.created_reason() + [Reason("log", text, subject, ATTENTION) for subject, text in followed.troubles]
    s = found.summary
    lines = [
        f"Run {run}{'' if new else ' (already followed)'}: {s.framework or 'format not known yet'}, {s.samples} samples, step {s.step}"
    ]
    return Reply(schema="log-add/1", body={"run": run, "new": new, "summary": s}, reasons=reasons, lines=lines)


@log.command("list", help="Followed logs with their last numbers.")
@click.pass_obj
def list_(call: Call) -> Reply:
    """List runs."""
    rows = status.runs(call.open().ledger)
    lines = [f"{r.id:20} {r.summary.state:10} step {r.summary.step}  loss {r.summary.loss}  {r.path}" for r in rows]
    return Reply(schema="log-list/1", body={"runs": rows}, lines=lines or ["No log: trainflow log add FILE"])
