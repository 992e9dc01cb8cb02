"""`trainflow metrics`: what is kept of the followed logs, and the upkeep that the collector does by itself."""

from __future__ import annotations

from collections.abc import Callable

import click
import msgspec

from trainflow_tui.cli.frame import ATTENTION, Call, Noun, Reason, Reply
from trainflow_tui.monitoring import compaction
from trainflow_tui.monitoring import kept as kept_runs
from trainflow_tui.monitoring.compaction import Step
from trainflow_tui.workspace import Workspace

_DONE = {"roll": "rolled up", "compact": "merged", "retain": "dropped"}


@click.group(cls=Noun, help="Samples and roll-ups of the followed logs. The collector keeps them in order by itself.")
def metrics() -> None:
    """Metrics."""


@metrics.command("list", help="Files, rows, bytes and times of each run and level.")
@click.argument("run", required=False, metavar="[RUN]")
@click.pass_obj
def list_(call: Call, run: str | None) -> Reply:
    """List what is kept."""
    found = kept_runs.kept(call.open(), run=run)
    reasons, lines = [], []
    for one in found:
        lines.append(f"{one.run}: {one.not_rolled} segments not rolled up yet, {one.to_unlink} files to be unlinked")
        for level in one.levels:
            times = f"{level.first_at[:19]} to {level.last_at[:19]}" if level.first_at else ""
            lines.append(
                f"  {level.level:8} {level.files:5} files {level.rows:11} rows {level.bytes:12} bytes  {times}"
            )
        for path in one.missing:
            text = f"{path} is in the manifest of run {one.run} and not on disk: its rows are missing in every answer."
            reasons.append(Reason("segment-missing", text, path, ATTENTION))
    return Reply(
        schema="metrics-list/1", body={"runs": found}, reasons=reasons, lines=lines or ["No samples are kept yet."]
    )


_plan_only = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@metrics.command(help="Make the roll-ups that are due and merge small files, without waiting for the collector.")
@click.argument("run", required=False, metavar="[RUN]")
@_plan_only
@click.pass_obj
def compact(call: Call, run: str | None, dry_run: bool) -> Reply:
    """Roll up and merge."""
    workspace = call.open()
    return _upkeep(workspace, run, lambda: compaction.due(workspace, run=run, eager=True), "compact", dry_run)


@metrics.command(help="Drop samples that are older than metrics_days and stand in roll-ups. Roll-ups stay.")
@click.argument("run", required=False, metavar="[RUN]")
@_plan_only
@click.pass_obj
def retain(call: Call, run: str | None, dry_run: bool) -> Reply:
    """Drop old samples."""
    workspace = call.open()
    return _upkeep(workspace, run, lambda: compaction.too_old(workspace, run=run), "retain", dry_run)


def _upkeep(workspace: Workspace, run: str | None, steps: Callable[[], list[Step]], verb: str, dry_run: bool) -> Reply:
    kept_runs.check_run(workspace, run)
    done, troubles = (steps(), []) if dry_run else compaction.do_all(workspace, steps)
    body = {
        "dry_run": dry_run,
        "steps": [
            {"kind": s.kind, "run": s.run, "level": s.level, "rows": s.rows, "files": [f.path for f in s.segments]}
            for s in done
        ],
    }
    lines = [
        f"{s.run}: {len(s.segments)} {s.level} files, {s.rows} rows {'to be ' if dry_run else ''}{_DONE[s.kind]}"
        for s in done
    ]
    reasons = [Reason(t.code, str(t), t.subject, t.exit_code) for t in troubles]
    return Reply(
        schema=f"metrics-{verb}/1",
        body=msgspec.to_builtins(body),
        reasons=reasons,
        lines=lines or ["Nothing to do."],
    )
