"""`trainflow task`: create, list, show and move tasks."""

from __future__ import annotations

import click
import msgspec

from trainflow_tui.cli.frame import Call, Noun, Reply
from trainflow_tui.collaboration import reports, tasks
from trainflow_tui.collaboration.identity import current_actor


@click.group(cls=Noun, help="Tasks: what is being worked on.")
def task() -> None:
    """Tasks."""


@task.command(help="Record a task and make its GUIDANCE.md and QUESTIONS.md.")
@click.argument("title")
@click.option("--id", "id_", metavar="ID", help="An id of your own; otherwise made from the title.")
@click.option("--objective", default="", metavar="TEXT", help="What is to be reached.")
@click.option("--mode", default="full", type=click.Choice(tasks.MODES), show_default=True, help="Which stages it has.")
@click.pass_obj
def create(call: Call, title: str, id_: str | None, objective: str, mode: str) -> Reply:
    """Create a task."""
    workspace = call.open(create=True)
    made = tasks.create(workspace, title=title, id=id_, objective=objective, mode=mode, actor=current_actor("cli"))
    folder = workspace.task_folder(made.id)
    return Reply(
        schema="task-create/1",
        body={"task": made, "guidance": str(folder / "GUIDANCE.md"), "questions": str(folder / "QUESTIONS.md")},
        reasons=call.created_reason(),
        lines=[f"Task {made.id}: {made.title}", f"Write what you want into {folder / 'GUIDANCE.md'}"],
    )


@task.command("list", help="Every task with its stage and latest word.")
@click.pass_obj
def list_(call: Call) -> Reply:
    """List tasks."""
    found = tasks.all_tasks(call.open().ledger)
    lines = [f"{t.id:24} {t.state:20} {t.latest_word}" for t in found] or [
        "No task yet: `trainflow task create TITLE`."
    ]
    return Reply(schema="task-list/1", body={"tasks": found}, lines=lines)


@task.command(help="One task with its reports.")
@click.argument("id_", metavar="ID")
@click.pass_obj
def show(call: Call, id_: str) -> Reply:
    """Show a task."""
    ledger = call.open().ledger
    found = tasks.get(ledger, id_)
    kept = reports.of_task(ledger, id_)
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in msgspec.to_builtins(found).items() if value]
    lines += [f"report {r.kind}: {r.status}  {r.summary}" for r in kept]
    return Reply(schema="task-show/1", body={"task": found, "reports": kept}, lines=lines)


@task.command(help="Move a task one step. Stops need a reason; `resume` returns to the stage before.")
@click.argument("id_", metavar="ID")
@click.argument("to", metavar="STAGE")
@click.option("--reason", default="", metavar="TEXT")
@click.pass_obj
def move(call: Call, id_: str, to: str, reason: str) -> Reply:
    """Move a task."""
    moved = tasks.move(call.open().ledger, id_, to, actor=current_actor("cli"), reason=reason)
    return Reply(schema="task-move/1", body={"task": moved}, lines=[f"{moved.id} is {moved.state}."])
