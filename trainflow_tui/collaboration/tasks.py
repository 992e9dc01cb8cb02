"""Tasks: what is being worked on, its stages, and which step may follow which."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.collaboration import reports
from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.files import create_exclusive, ensure_private_directory
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

ID_PATTERN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MODES: Final = ("environment", "adapt", "analyze", "optimize", "diagnose", "operate", "full")
STAGES: Final = (
    "draft",
    "prepared",
    "environment_checked",
    "baseline_validated",
    "profiling",
    "optimizing",
    "scale_ready",
    "training",
    "completed",
)
STOPPED: Final = ("paused", "blocked", "failed")
TERMINAL: Final = ("completed", "cancelled")
_ANY_STOP: Final = frozenset((*STOPPED, "cancelled"))

TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    **{stage: frozenset({STAGES[i + 1]}) | _ANY_STOP for i, stage in enumerate(STAGES[:-1])},
    "prepared": frozenset({"environment_checked", "completed"}) | _ANY_STOP,
    **{stop: frozenset({"resume", "cancelled"}) for stop in STOPPED},
    "completed": frozenset(),
    "cancelled": frozenset(),
}
"""`resume` returns to the stage that the task was stopped in. A completed or cancelled task stays so."""

GATES: Final[dict[str, tuple[str, ...]]] = {
    "environment_checked": ("environment",),
    "baseline_validated": ("baseline",),
    "profiling": ("baseline",),
    "optimizing": ("analysis",),
    "scale_ready": ("stage-quality", "performance", "experiment"),
    "training": ("environment", "stage-quality", "scale"),
    "completed": ("completion",),
}
"""Reports that must be current and passing before a stage is entered in mode full."""

SINGLE_MODE_REPORT: Final = {
    "environment": "environment",
    "adapt": "baseline",
    "analyze": "analysis",
    "optimize": "stage-quality",
    "diagnose": "diagnosis",
    "operate": "operations",
}
"""The one deliverable of a task that is not of mode full; a negative finding is a valid delivery."""


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """The current state of one task."""

    id: str
    title: str
    objective: str
    mode: str
    state: str
    resume_state: str | None
    reason: str
    created_at: str
    moved_at: str
    latest_word: str
    latest_at: str


_COLUMNS: Final = ", ".join(Task.__struct_fields__)


def create(
    workspace: Workspace, *, title: str, actor: Actor, id: str | None = None, objective: str = "", mode: str = "full"
) -> Task:
    """Record a task and make its two human files, each once and never over something.

    Raises:
        UsageError: the title is empty, the id or mode is not well formed, or a task of this id exists.
        RefusedError: the task's folder is a link or no directory.
    """
    title = title.strip()
    if not title or len(title) > 200 or "\n" in title:
        raise UsageError("task-title", "A title is one line of 1 to 200 characters.", subject="title")
    chosen = _slug(title) if id is None else id
    if not ID_PATTERN.fullmatch(chosen):
        raise UsageError(
            "task-id",
            f"The id {chosen[:120]!r} is not usable.",
            subject="id",
            next_step="1 to 100 letters, digits, '.', '_' or '-', the first a letter or digit.",
        )
    if mode not in MODES:
        raise UsageError(
            "task-mode", f"There is no mode {mode!r}.", subject="mode", next_step=f"One of {', '.join(MODES)}."
        )
    payload = {"title": title, "objective": objective.strip(), "mode": mode}
    with workspace.ledger.transaction() as transaction:
        # Ids that differ only in case would share a folder on some file systems.
        if transaction.query("SELECT 1 FROM task WHERE lower(id) = lower(?)", (chosen,)):
            raise UsageError(
                "task-exists", f"There is a task {chosen} already.", subject=chosen, next_step="Give another with --id."
            )
        _make_folder(workspace, chosen)  # refused before anything is recorded where the place is a link
        transaction.append("task.created", chosen, payload, actor=actor)
    make_human_files(workspace, get(workspace.ledger, chosen))
    return get(workspace.ledger, chosen)


def make_human_files(workspace: Workspace, task: Task) -> None:
    """Write GUIDANCE.md and QUESTIONS.md from their templates where they do not exist yet."""
    # Reading tasks, which every screen and verb does, needs no file grammar.
    from trainflow_tui.collaboration import generated_files

    folder = _make_folder(workspace, task.id)
    for name, text in generated_files.templates(task.title).items():
        create_exclusive(folder / name, text.encode())


def _make_folder(workspace: Workspace, id: str) -> Path:
    folder = workspace.task_folder(id)
    for place in (folder.parent, folder):
        ensure_private_directory(place, parents=False)
    return folder


def _slug(title: str) -> str:
    """An id that can be typed anywhere: the Latin letters and digits of the title, without their accents.

    Where other letters are lost thereby (Chinese, say), six that follow from the title tell it from its like: the same for
    the same title, so that a task that is made twice is still refused.
    """
    if ID_PATTERN.fullmatch(title):
        return title
    plain = "".join(c for c in unicodedata.normalize("NFKD", title.casefold()) if not unicodedata.combining(c))
    words = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].rstrip("-")
    if words and not any(c.isalnum() and not c.isascii() for c in plain):
        return words
    digest = hashlib.sha256(unicodedata.normalize("NFC", title).encode(errors="surrogatepass")).hexdigest()
    return f"{words or 'task'}-{digest[:6]}"


def get(ledger: Ledger, id: str) -> Task:
    """One task.

    Raises:
        UsageError: there is none of this id; names those there are.
    """
    rows = ledger.query(f"SELECT {_COLUMNS} FROM task WHERE id = ?", (id,))
    if not rows:
        known = [str(row[0]) for row in ledger.query("SELECT id FROM task ORDER BY created_at DESC LIMIT 8")]
        raise UsageError(
            "no-task",
            f"There is no task {id[:120]!r}.",
            subject=id[:120],
            next_step=f"Known: {', '.join(known)}." if known else "Make one with `trainflow task create TITLE`.",
        )
    return Task(**dict(zip(Task.__struct_fields__, rows[0], strict=True)))


def all_tasks(ledger: Ledger) -> list[Task]:
    """Every task, in the order in which they were made, whatever the clock said."""
    rows = ledger.query(f"SELECT {_COLUMNS} FROM task ORDER BY rowid")
    return [Task(**dict(zip(Task.__struct_fields__, row, strict=True))) for row in rows]


def move(ledger: Ledger, id: str, to: str, *, actor: Actor, reason: str = "") -> Task:
    """Take one step of the transition table.

    Raises:
        RefusedError: the step is not in the table, or a report that its gate needs is missing; names it.
        UsageError: a stop without a reason.
    """
    with ledger.transaction() as transaction:
        # All that the step rests on is read inside: nobody moves the task or adds a failing report in between.
        task = get(ledger, id)
        payload = _step(ledger, task, to, reason.strip())
        transaction.append("task.moved", id, payload, actor=actor)
    return get(ledger, id)


def _step(ledger: Ledger, task: Task, to: str, reason: str) -> dict[str, str | None]:
    allowed = TRANSITIONS[task.state]
    if to not in allowed and not (to == task.resume_state and "resume" in allowed):
        names = ", ".join(sorted(allowed)) or "nothing"
        raise RefusedError(
            "task-transition",
            f"{task.id} is {task.state}: it cannot become {to[:80]}.",
            subject=task.id,
            next_step=f"From here: {names}.",
        )
    if to in _ANY_STOP and not reason:
        raise UsageError("reason-missing", f"Give the reason why {task.id} becomes {to}.", subject="reason")
    payload = {"from": task.state, "to": to, "reason": reason, "resume_state": None}
    if to in STOPPED:
        payload["resume_state"] = task.state
    elif task.state in STOPPED and to not in _ANY_STOP:
        payload["to"] = task.resume_state or "prepared"
    elif to not in _ANY_STOP:
        _check_gate(ledger, task, to)
    return payload


def _check_gate(ledger: Ledger, task: Task, to: str) -> None:
    if to == "prepared":
        return
    if task.mode != "full":
        needed: tuple[str, ...] = (SINGLE_MODE_REPORT[task.mode],) if to == "completed" else ()
        missing = [kind for kind in needed if reports.latest(ledger, task.id, kind) is None]
    else:
        missing = [kind for kind in GATES.get(to, ()) if not reports.is_passing(reports.latest(ledger, task.id, kind))]
    if missing:
        raise RefusedError(
            "gate-closed",
            f"{task.id} cannot become {to}: no passing report of kind {', '.join(missing)}.",
            subject=task.id,
            next_step=f"Add it with `trainflow report add {task.id} --kind {missing[0]} …`.",
        )
