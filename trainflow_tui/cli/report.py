"""`trainflow report`: add and list reports with their evidence."""

from __future__ import annotations

from pathlib import Path

import click

from trainflow_tui.cli.frame import Call, Noun, Reply
from trainflow_tui.cli.given import read_bytes
from trainflow_tui.collaboration import reports, tasks
from trainflow_tui.collaboration.identity import current_actor


@click.group(cls=Noun, help="Reports: a status that rests on evidence.")
def report() -> None:
    """Reports."""


@report.command(help="Record a report. A pass needs evidence and the number of checks that ran.")
@click.argument("task")
@click.option("--kind", required=True, metavar="KIND", help="environment, baseline, analysis, performance, …")
@click.option("--status", required=True, type=click.Choice(reports.STATUSES))
@click.option("--summary", default="", metavar="TEXT")
@click.option("--evidence", multiple=True, metavar="FILE", help="A file to keep as evidence; repeatable.")
@click.option("--executed", type=int, default=None, metavar="N", help="How many checks ran.")
@click.pass_obj
def add(
    call: Call, task: str, kind: str, status: str, summary: str, evidence: tuple[str, ...], executed: int | None
) -> Reply:
    """Add a report."""
    workspace = call.open()
    tasks.get(workspace.ledger, task)
    hashes = [workspace.artifacts.add(read_bytes(file, limit=64 * 1024 * 1024)) for file in evidence]
    added = reports.add(
        workspace.ledger,
        task=task,
        kind=kind,
        status=status,
        summary=summary,
        evidence=hashes,
        executed=executed,
        actor=current_actor("cli"),
    )
    names = {sha: Path(file).name for sha, file in zip(hashes, evidence, strict=True)}
    return Reply(
        schema="report-add/1",
        body={"report": added, "evidence_files": names},
        lines=[f"Report {added.id}: {kind} {status}"],
    )


@report.command("list", help="The reports of a task, newest first.")
@click.argument("task")
@click.pass_obj
def list_(call: Call, task: str) -> Reply:
    """List reports."""
    ledger = call.open().ledger
    tasks.get(ledger, task)
    found = reports.of_task(ledger, task)
    lines = [f"{r.at[:19]}  {r.kind:16} {r.status:10} {r.summary}" for r in found] or ["No report yet."]
    return Reply(schema="report-list/1", body={"reports": found}, lines=lines)
