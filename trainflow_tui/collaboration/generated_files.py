"""BOARD.md and RECEIPTS.md: written from the ledger, only when what they say has changed. The human files are never written here."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainflow_tui.collaboration import approvals, guidance, questions
from trainflow_tui.collaboration.guidance import GuidanceItem
from trainflow_tui.collaboration.guidance_file import GUIDANCE_TEMPLATE
from trainflow_tui.collaboration.questions_file import QUESTIONS_TEMPLATE
from trainflow_tui.errors import DamagedError
from trainflow_tui.files import open_regular, write_atomic
from trainflow_tui.language import translator
from trainflow_tui.text import display

if TYPE_CHECKING:
    from trainflow_tui.collaboration.tasks import Task
    from trainflow_tui.workspace import Workspace

HUMAN_FILES: Final = ("GUIDANCE.md", "QUESTIONS.md")
GENERATED_FILES: Final = ("BOARD.md", "RECEIPTS.md")
_RECEIPTS_SHOWN: Final = 500


def templates(title: str) -> dict[str, str]:
    """The starting texts of the two human files."""
    shown = display(title)
    return {
        "GUIDANCE.md": GUIDANCE_TEMPLATE.format(title=shown),
        "QUESTIONS.md": QUESTIONS_TEMPLATE.format(title=shown),
    }


def render_task(workspace: Workspace, task: str) -> list[str]:
    """Bring both generated files of a task up to date; returns the names of those that changed.

    Nothing is written where the task's folder is missing or is a link; a link or pipe in a file's place is replaced.

    Raises:
        OSError: the disk is full or refuses, or a directory has a file's name.
    """
    from trainflow_tui.collaboration import tasks

    found = tasks.get(workspace.ledger, task)
    if not workspace.has_task_folder(task):
        return []
    folder, changed = workspace.task_folder(task), []
    for name, text in (("BOARD.md", board(workspace, found)), ("RECEIPTS.md", receipts(workspace, found))):
        path, content = folder / name, text.encode()
        if not _holds(path, content):
            write_atomic(path, content)
            changed.append(name)
    return changed


def _holds(path: Path, content: bytes) -> bool:
    try:
        with os.fdopen(open_regular(path), "rb") as stream:
            return stream.read(len(content) + 1) == content
    except (OSError, DamagedError):
        return False


def render_all(workspace: Workspace) -> list[str]:
    """The same for every task; names are `task/FILE`."""
    from trainflow_tui.collaboration import tasks

    return [
        f"{task.id}/{name}" for task in tasks.all_tasks(workspace.ledger) for name in render_task(workspace, task.id)
    ]


def board(workspace: Workspace, task: Task) -> str:
    """The text of BOARD.md: where the task stands, what needs a person, what is asked and what is pending."""
    _ = translator(workspace.settings.files_language)
    ledger = workspace.ledger
    waiting = [
        *(
            f"{_('approval')} `{a.id}`: {_line(a.request.title)}"
            for a in approvals.listed(ledger, task=task.id, pending_only=True)
        ),
        *(f"{_('question')} `{q.id}`: {_line(q.title)}" for q in questions.blocking_open(ledger) if q.task == task.id),
        *_file_troubles(workspace, task.id),
    ]
    items = [i for i in guidance.listed(ledger, task=task.id) if i.removed_at is None]
    unhandled = sum(1 for i in items if i.state in ("collected", "seen"))
    asked = questions.listed(ledger, task=task.id, open_only=True)
    lines = [
        f"# {_line(task.title)}",
        "",
        _("Stage: **{state}**").format(state=task.state)
        + (_(" (before: {state})").format(state=task.resume_state) if task.resume_state else "")
        + _(" · since {at} UTC").format(at=task.moved_at[:19]),
        "",
        _("[Guidance](GUIDANCE.md) · [Questions](QUESTIONS.md) · [Receipts](RECEIPTS.md)"),
        "",
        _("## Latest word"),
        "",
        _line(task.latest_word) or _("Nothing reported yet."),
        "",
        _("## Needs you ({n})").format(n=len(waiting)),
        "",
        *([f"- {text}" for text in waiting] or [_("Nothing.")]),
        "",
        _("## Guidance: {n} items, {open} not handled").format(n=len(items), open=unhandled),
        "",
        *([f"- `{i.id}` {i.state}: {_line(i.heading or i.text)}" for i in items] or [_("None.")]),
        "",
        _("## Open questions ({n})").format(n=len(asked)),
        "",
        *([f"- `{q.id}` {q.direction}: {_line(q.title)}" for q in asked] or [_("None.")]),
        "",
        *_not_read(workspace, task.id),
        _("Generated; edits here are overwritten. Collected is not handled, handled is not accepted."),
        "",
    ]
    return "\n".join(lines)


def receipts(workspace: Workspace, task: Task) -> str:
    """The text of RECEIPTS.md: each guidance item with what became of each of its versions."""
    _ = translator(workspace.settings.files_language)
    items = guidance.listed(workspace.ledger, task=task.id)
    lines = [
        _("# Receipts of {title}").format(title=_line(task.title)),
        "",
        _("What was collected from GUIDANCE.md and what became of it. Generated."),
        "",
    ]
    for item in items[-_RECEIPTS_SHOWN:]:
        lines += _receipt_block(item, _)
    if not items:
        lines += [_("Nothing collected yet."), ""]
    if len(items) > _RECEIPTS_SHOWN:
        older = _("{n} older items: `trainflow guidance list {task}`.")
        lines += [older.format(n=len(items) - _RECEIPTS_SHOWN, task=task.id), ""]
    for q in questions.listed(workspace.ledger, task=task.id):
        if q.direction == "to-agent" and q.answer:
            lines += [
                _("## Answer to {id}: {title}").format(id=q.id, title=_line(q.title)),
                "",
                *_quoted(q.answer),
                "",
                _("by {by}, {at} UTC").format(by=_line(q.answered_by or ""), at=(q.answered_at or "")[:19]),
                "",
            ]
    return "\n".join(lines)


def _receipt_block(item: GuidanceItem, _: Callable[[str], str]) -> list[str]:
    badge = _(" · removed by human") if item.removed_at else ""
    badge += _(" · still being edited when collected") if item.provisional else ""
    lines = [f"## `{item.id}` {_line(item.heading or item.text)}", ""]
    collected = _("- version {n} collected {at} UTC from {source}")
    lines.append(collected.format(n=item.version, at=item.collected_at[:19], source=item.source) + badge)
    for r in item.receipts:
        note = f": {_line(r.note)}" if r.note else ""
        words = _("- version {n} {state} {at} UTC by {by}")
        lines.append(words.format(n=r.version, state=r.state, at=r.at[:19], by=_line(r.by)) + note)
    return [*lines, ""]


def _file_troubles(workspace: Workspace, task: str) -> list[str]:
    rows = workspace.ledger.query(
        "SELECT name, state, detail FROM human_file WHERE task = ? "
        "AND state NOT IN ('collected', 'unchanged', 'editing', 'odd')",
        (task,),
    )
    _ = translator(workspace.settings.files_language)
    words = _("{name} cannot be collected: {why}")
    return [words.format(name=name, why=_line(detail) or state) for name, state, detail in rows]


def _not_read(workspace: Workspace, task: str) -> list[str]:
    from trainflow_tui.collaboration import odd_entries

    found = [entry for entry in odd_entries.stored(workspace.ledger) if entry.task == task]
    lines = [f"- `{_line(entry.name)}`: {_line(entry.reason)}" for entry in found]
    _ = translator(workspace.settings.files_language)
    return [_("## Entries that are not read ({n})").format(n=len(found)), "", *lines, ""] if found else []


def _line(text: str) -> str:
    first = str(display(text.strip().split("\n", 1)[0], max_cells=160))
    return first.replace("`", "'").replace("<", "&lt;")


def _quoted(text: str) -> list[str]:
    return [f"> {display(line, max_cells=400)}" for line in text.splitlines()[:200]]
