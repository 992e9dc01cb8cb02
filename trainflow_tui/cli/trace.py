"""`trainflow trace`: add, list, hotspots."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from trainflow_tui.cli.frame import ATTENTION, INTERRUPTED, Call, Noun, Reason, Reply
from trainflow_tui.cli.given import given_path
from trainflow_tui.cli.streams import emit, is_terminal
from trainflow_tui.collaboration.identity import current_actor
from trainflow_tui.errors import TrainflowError
from trainflow_tui.monitoring import status, traces


def quality_reasons(name: str, quality: Any) -> list[Reason]:
    """What a reader has to know about a file that was not whole; a zero-length event is no damage."""
    harmless = {"rows", "zero_duration", "notes", "cut_structurally"}
    found = {k: v for k, v in msgspec.to_builtins(quality).items() if v and k not in harmless}
    if not found:
        return []
    words = ", ".join(k.replace("_", " ") if v is True else f"{k.replace('_', ' ')} {v}" for k, v in found.items())
    return [
        Reason("trace-damaged", f"{name} is damaged: {words}. What could be read is in the result.", name, ATTENTION)
    ]


@click.group(cls=Noun, help="Profiler traces: where the device's time went.")
def trace() -> None:
    """Traces."""


@trace.command(help="Read profiler traces (PyTorch JSON, plain or gzip) into the workspace.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--task", default="", metavar="TASK")
@click.option(
    "--progress", type=click.Choice(["json"]), default=None, help="Bytes done, as JSON lines on standard error."
)
@click.pass_obj
def add(call: Call, files: tuple[str, ...], task: str, progress: str | None) -> Reply:
    """Add traces."""
    workspace = call.open(create=True)
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopping.append(number))
    signal.signal(signal.SIGINT, lambda number, _: stopping.append(number))
    rows: list[dict[str, Any]] = []
    reasons, lines, problems = call.created_reason(), [], []
    for name in files:
        path = given_path(name)
        show, stop = _progress(name, progress), lambda: bool(stopping)
        try:
            row, new = traces.add_trace(
                workspace, path, task=task, actor=current_actor("cli"), on_progress=show, cancelled=stop
            )
        except TrainflowError as problem:
            problems.append(problem)
            reasons.append(Reason(problem.code, f"{name}: {problem}", name, problem.exit_code))
            if problem.exit_code == INTERRUPTED:
                break
            continue
        rows.append({"id": row.id, "file": row.path, "new": new, "summary": row.summary})
        reasons += quality_reasons(path.name, row.summary["quality"])
        lines.append(f"{row.id}  {path.name}{'' if new else '  (already here)'}")
    if problems and not rows:
        raise problems[0]
    return Reply(schema="trace-add/1", body={"traces": rows}, reasons=reasons, lines=lines)


def _progress(name: str, wanted: str | None) -> Callable[[int, int | None], None] | None:
    if wanted is None and not is_terminal(sys.stderr):
        return None

    def show(done: int, total: int | None) -> None:
        step = json.dumps({"file": name, "done": done, "total": total}) + "\n"
        emit("", step if wanted == "json" else f"\r{100 * done // max(1, total or 1):3d} % ")

    return show


@trace.command("list", help="Ingested traces.")
@click.pass_obj
def list_(call: Call) -> Reply:
    """List traces."""
    rows = status.traces(call.open().ledger)
    lines = [f"{r.id}  {r.added_at[:19]}  {r.path}" for r in rows] or ["No trace: trainflow trace add FILE"]
    return Reply(schema="trace-list/1", body={"traces": rows}, lines=lines)


@trace.command(
    help="The time split and the rows that make 90 % of the window, per device. Reading a FILE keeps nothing."
)
@click.argument("file_or_id", metavar="FILE|ID")
@click.option(
    "--target",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.9,
    show_default=True,
    help="How much of the window the list covers.",
)
@click.option("--all", "all_rows", is_flag=True, help="Every row.")
@click.pass_obj
def hotspots(call: Call, file_or_id: str, target: float, all_rows: bool) -> Reply:
    """Rank a trace."""
    path = given_path(file_or_id)
    if os.path.exists(path):  # which is False, not an error, for a name that no file can have
        found = traces.hotspots_of_file(path, target=target, all_rows=all_rows)
    elif "/" in file_or_id or "." in file_or_id:
        raise click.UsageError(f"There is no file {click.format_filename(file_or_id)}.")
    else:
        found = traces.hotspots_of_id(call.open(), file_or_id, target=target, all_rows=all_rows)
    body = msgspec.to_builtins(found)
    return Reply(
        schema="trace-hotspots/1", body=body, reasons=quality_reasons(found.file, found.quality), lines=_table(body)
    )


def _table(body: dict[str, Any]) -> list[str]:
    lines = [body["file"]]
    for device in body["devices"]:
        window = device["window_ns"] or 1
        lines.append(f"device {device['device']}: window {device['window_ns'] / 1e6:.6f} ms")
        for name in ("compute", "exposed_communication", "exposed_memcpy", "idle"):
            lines.append(
                f"  {name.replace('_', ' '):24} {device[f'{name}_ns'] / 1e6:14.6f} ms  {100 * device[f'{name}_ns'] / window:6.2f} %"
            )
        lines.append("   share     sum   attributed ms   calls  kind           name")
        for spot in device["hotspots"]:
            shares = f"{100 * spot['share']:5.1f}%  {100 * spot['cumulative_share']:5.1f}%"
            what = f"{spot['count']:6}  {spot['kind']:13}  {spot['name'][:120]}"
            lines.append(f"  {shares}  {spot['attributed_ns'] / 1e6:14.6f}  {what}")
    return lines if body["devices"] else [*lines, "No device events in this trace."]
