"""What may stand for a word of the command line: ids from the ledger, files, stages. Read only, and silent where nothing can be read."""

from __future__ import annotations

import re
from typing import Any, Final

import click
from click.shell_completion import CompletionItem

from trainflow_tui.cli.frame import Call
from trainflow_tui.config import FIELDS

LIMIT: Final = 500
"""The newest so many; a longer list helps nobody who presses tab."""

_SAFE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+-]*")
"""What a shell takes as one word. An id of any other form is not offered: it would have to be quoted in three ways."""

_TASKS: Final = f"SELECT id, title FROM task ORDER BY created_at DESC LIMIT {LIMIT}"
_IDS: Final = {
    "task": _TASKS,
    "approval": f"SELECT id, title FROM approval ORDER BY requested_at DESC LIMIT {LIMIT}",
    "approval decide": f"SELECT id, title FROM approval WHERE state = 'pending' ORDER BY requested_at LIMIT {LIMIT}",
    "approval consume": f"SELECT id, title FROM approval WHERE state = 'approved' ORDER BY requested_at LIMIT {LIMIT}",
    "question": f"SELECT id, title FROM question ORDER BY asked_at DESC LIMIT {LIMIT}",
    "question answer": f"SELECT id, title FROM question WHERE state = 'open' ORDER BY asked_at LIMIT {LIMIT}",
    "trace": f"SELECT id, path FROM trace ORDER BY added_at DESC LIMIT {LIMIT}",
    "log": f"SELECT id, path FROM run ORDER BY added_at DESC LIMIT {LIMIT}",
    "node": f"SELECT name, target FROM node ORDER BY name LIMIT {LIMIT}",
}
"""By noun, or by noun and verb where a verb takes only some of them."""

_OF_METAVAR: Final = {
    "TASK": _TASKS,
    "RUN": _IDS["log"],
    "TRACE": _IDS["trace"],
    "NODE": _IDS["node"],
    "APPROVAL": _IDS["approval"],
}


def candidates(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """What a parameter may be that begins as given: a setting's choices, else what its metavar names. Empty where that is not known."""
    choices = next((field.choices for field in FIELDS if field.key == parameter.name), ())
    found = [CompletionItem(choice) for choice in choices if choice.startswith(incomplete)]
    for kind in re.findall("[A-Z]+", parameter.metavar or (parameter.name or "").upper()):
        if kind == "FILE":
            found.append(CompletionItem(incomplete, type="file"))
        elif kind in ("DIR", "DIRECTORY"):
            found.append(CompletionItem(incomplete, type="dir"))
        else:
            rows = _rows(context, parameter, kind)
            found += [CompletionItem(id, help=_about(title)) for id, title in rows if id.startswith(incomplete)]
    return found


def _rows(context: click.Context, parameter: click.Parameter, kind: str) -> list[tuple[str, str]]:
    call: Call = context.find_root().ensure_object(Call)
    try:
        if kind == "STAGE":
            return _stages(call, context.params.get("id_"))
        if kind == "ITEM":
            return _read(
                call, "SELECT id, coalesce(nullif(heading, ''), text) FROM guidance WHERE task = ?", _task(context)
            )
        # `--id ID` names something that is not there yet.
        if kind == "ID" and isinstance(parameter, click.Argument):
            noun = context.parent.info_name if context.parent else None
            sql = _IDS.get(f"{noun} {context.info_name}") or _IDS.get(str(noun))
            return _read(call, sql) if sql else []
        return _read(call, _OF_METAVAR[kind]) if kind in _OF_METAVAR else []
    except Exception:
        return []  # no workspace, a damaged or foreign one, a settings file that is not readable: nothing to offer


def _task(context: click.Context) -> str:
    return str(context.params.get("task") or "")


def _read(call: Call, sql: str, *parameters: str) -> list[tuple[str, str]]:
    call.flags["readonly"] = True
    rows: list[tuple[Any, ...]] = call.open().ledger.query(sql, parameters)
    return [(id, title) for id, title in rows if _SAFE.fullmatch(id)]


def _stages(call: Call, task: object) -> list[tuple[str, str]]:
    """The steps that the table allows from where the task is."""
    from trainflow_tui.collaboration import tasks

    rows = _read(call, "SELECT state, resume_state FROM task WHERE id = ?", str(task or ""))
    return [(stage, "") for state, _ in rows for stage in sorted(tasks.TRANSITIONS[state])]


def _about(title: str) -> str | None:
    from trainflow_tui.text import display  # what a person or an agent wrote is drawn by the shell

    return str(display(title.strip().split("\n", 1)[0], max_cells=60)) or None
