"""Entries beside the human files that are never read: pipes, links, devices, names that are no text. Listed, not opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.collaboration import tasks
from trainflow_tui.collaboration.generated_files import GENERATED_FILES, HUMAN_FILES
from trainflow_tui.files import TEMPORARY_NAME, kind_of
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.workspace import Workspace

STATE: Final = "odd"
"""The state of their rows among those of the human files."""
LISTED: Final = 50
"""Of one folder; how many more there are is said."""
LOOKED_AT: Final = 10_000
_OF_OURS: Final = frozenset((*HUMAN_FILES, *GENERATED_FILES))


class OddEntry(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One entry of a task's folder, or of the folder above where `task` is empty."""

    task: str
    name: str
    """Printable: what is no text or no visible character stands as an escape."""
    reason: str

    @property
    def sentence(self) -> str:
        """What a person is told."""
        return f"{'/'.join(filter(None, ('collaboration', self.task, self.name)))} is not read: {self.reason}."


def find(workspace: Workspace) -> list[OddEntry]:
    """All of them, once each, in order. A folder that cannot be looked at is left to those who read its files."""
    known = {task.id for task in tasks.all_tasks(workspace.ledger)}
    found = list(_in_folder("", workspace.collaboration, passed_over=known))
    for task in tasks.all_tasks(workspace.ledger):
        if task.state not in tasks.TERMINAL and workspace.has_task_folder(task.id):
            found += _in_folder(task.id, workspace.task_folder(task.id), passed_over=_OF_OURS)
    return sorted(set(found))


def _in_folder(task: str, folder: Path, *, passed_over: frozenset[str] | set[str]) -> Iterator[OddEntry]:
    try:
        with os.scandir(folder) as entries:
            seen = list(islice(entries, LOOKED_AT + 1))
    except OSError:
        return
    names = [(entry.name, reason) for entry in seen if entry.name not in passed_over and (reason := _reason(entry))]
    for name, reason in names[:LISTED]:
        yield OddEntry(task=task, name=_printable(name), reason=reason)
    if len(names) > LISTED:
        yield OddEntry(task=task, name="…", reason=f"{len(names) - LISTED} more entries are like these")
    if len(seen) > LOOKED_AT:
        yield OddEntry(
            task=task, name="… …", reason=f"it has more than {LOOKED_AT:,} entries, the others are not looked at"
        )


def _reason(entry: os.DirEntry[str]) -> str:
    if TEMPORARY_NAME.fullmatch(entry.name):
        return ""
    try:
        is_file, is_folder = entry.is_file(follow_symlinks=False), entry.is_dir(follow_symlinks=False)
        kind = "" if is_file or is_folder else f"it is a {kind_of(entry.stat(follow_symlinks=False).st_mode)}"
    except OSError:
        return ""  # it is gone again
    if kind:
        return kind
    if is_folder and not os.access(entry.path, os.R_OK | os.X_OK):
        return "it may not be opened"
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    return "" if entry.name.isprintable() else "its name holds characters that cannot be shown"


def _printable(name: str) -> str:
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def stored(ledger: Ledger | Transaction) -> list[OddEntry]:
    """Those that the last scan met, in order."""
    rows = ledger.query(
        "SELECT task, name, detail FROM human_file WHERE state = ? ORDER BY task, name, detail", (STATE,)
    )
    return [OddEntry(task=task, name=name, reason=detail) for task, name, detail in rows]


def write(transaction: Transaction, found: list[OddEntry], *, now: str) -> None:
    """Let the rows be these; nothing is written where they are."""
    if stored(transaction) == found:
        return
    transaction.execute("DELETE FROM human_file WHERE state = ?", (STATE,))
    for entry in found:
        transaction.execute(
            "INSERT OR IGNORE INTO human_file (task, name, state, detail, scanned_at) VALUES (?,?,?,?,?)",
            (entry.task, entry.name, STATE, entry.reason, now),
        )
