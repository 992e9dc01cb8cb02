"""The collector's round over the human files: settle, keep the bytes, decode, parse, compare, record. It never writes them.

Identity is the content, so a round that is repeated, interrupted or run by two processes records each thing once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.collaboration import file_rows, odd_entries, spool, spooled, tasks
from trainflow_tui.collaboration.decoding import Decoded, Incomplete, decode
from trainflow_tui.collaboration.file_changes import guidance_changes, question_changes
from trainflow_tui.collaboration.file_rows import FileRow, LastRead
from trainflow_tui.collaboration.generated_files import HUMAN_FILES
from trainflow_tui.collaboration.settled_read import (
    BeingEdited,
    Fingerprint,
    Missing,
    NotRegular,
    Outcome,
    Oversize,
    Settled,
    SettledReader,
    Unchanged,
    Unreadable,
)
from trainflow_tui.errors import BusyError, TrainflowError
from trainflow_tui.ledger.database import Transaction
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
WATCHED_NAMES: Final = frozenset(HUMAN_FILES)
CHUNK: Final = 200
"""Items that one transaction takes: 150 kills of a process that took whole files made no progress, chunks lost nothing."""
PROVISIONAL_AFTER: Final = timedelta(seconds=18)
"""After retries at 1, 2, 5 and 10 s a file that never rests is taken as it is, and marked."""


class FileError(msgspec.Struct, frozen=True, kw_only=True):
    """One file that could not be collected; the others were."""

    code: str
    file: str
    text: str


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """What one round over all human files found."""

    new: int = 0
    revised: int = 0
    removed: int = 0
    errors: list[FileError] = []
    editing: list[str] = []
    provisional: list[str] = []
    """Files that were taken while they might still be edited; the next scans settle them."""
    hints: list[str] = []


def collect(workspace: Workspace, *, actor: Actor, reader: SettledReader | None = None) -> Scan:
    """Scan every human file of every task that has not ended, and the spool."""
    reader = reader or SettledReader()
    errors: list[FileError] = []

    def stays(name: str, reason: str) -> None:
        text = f"The spooled record {name} is not readable and waits: {reason}."
        errors.append(FileError(code="record-unreadable", file=name, text=text))

    counts = {"new": spooled.ingest(workspace, on_problem=stays), "revised": 0, "removed": 0}
    editing: list[str] = []
    provisional: list[str] = []
    hints = [f"The spool holds {name}, which is no record of ours." for name in spool.strangers(workspace.spool)]
    met_again: list[tuple[str, str, FileRow]] = []
    for task in tasks.all_tasks(workspace.ledger):
        if task.state in tasks.TERMINAL:
            continue
        for name in HUMAN_FILES:
            one = _collect_alone(workspace, task.id, name, reader, actor)
            for key, value in one.counts.items():
                counts[key] += value
            errors += one.errors
            editing += one.editing
            provisional += one.provisional
            hints += one.hints
            met_again += one.met_again
    odd = odd_entries.find(workspace)
    hints += [entry.sentence for entry in odd]
    with workspace.ledger.transaction() as transaction:  # one for all that is as it was
        for task_id, name, row in met_again:
            file_rows.keep(transaction, workspace, task_id, name, row)
        odd_entries.write(transaction, odd, now=to_iso(workspace.clock.now()))
        transaction.pulse("scan")
    return Scan(**counts, errors=errors, editing=editing, provisional=provisional, hints=hints)


class _Outcome:
    def __init__(self) -> None:
        self.counts = {"new": 0, "revised": 0, "removed": 0}
        self.errors: list[FileError] = []
        self.editing: list[str] = []
        self.provisional: list[str] = []
        self.hints: list[str] = []
        self.met_again: list[tuple[str, str, FileRow]] = []


def _collect_alone(workspace: Workspace, task: str, name: str, reader: SettledReader, actor: Actor) -> _Outcome:
    """One file, whose trouble is not the others'."""
    try:
        return _collect_file(workspace, task, name, reader, actor)
    except BusyError:
        raise  # no fault of the file: the whole round is tried again
    except (TrainflowError, OSError) as problem:
        _log.warning("%s/%s is not collected", task, name, exc_info=True)
        outcome = _Outcome()
        code = problem.code if isinstance(problem, TrainflowError) else "not-collected"
        outcome.errors.append(FileError(code=code, file=f"{task}/{name}", text=f"{task}/{name}: {problem}"))
        return outcome


def _look(workspace: Workspace, task: str, name: str, known: FileRow, reader: SettledReader) -> Outcome:
    if workspace.is_linked_away(task):
        return NotRegular(kind="behind a link in the place of the task's folder")
    last, path = known.last, workspace.task_folder(task) / name
    found = reader.read(
        path,
        previous=last.fingerprint if last else None,
        last_scan=last.scanned_at if last else None,
        scans_since_hash=last.scans_since_hash if last else 0,
        was_provisional=last.provisional if last else False,
        impatient=known.state == "editing" and _waited(workspace, known) >= PROVISIONAL_AFTER,
    )
    if isinstance(found, Missing) and not known.state:
        # It has never been there: whoever recorded the task was killed before it made the files.
        tasks.make_human_files(workspace, tasks.get(workspace.ledger, task))
        return reader.read(path)
    return found


def _collect_file(workspace: Workspace, task: str, name: str, reader: SettledReader, actor: Actor) -> _Outcome:
    outcome, known = _Outcome(), file_rows.load(workspace, task, name)
    before = workspace.clock.now()
    found = _look(workspace, task, name, known, reader)
    match found:
        case Unchanged():
            assert known.last is not None
            last = known.last
            last = msgspec.structs.replace(last, scanned_at=before, scans_since_hash=last.scans_since_hash + 1)
            outcome.met_again.append((task, name, _rested(known, last)))
        case BeingEdited():
            _store_editing(workspace, task, name, known, outcome)
        case Settled():
            _take(workspace, task, name, found, known, outcome, actor, before)
        case Missing() | Oversize() | NotRegular() | Unreadable():
            code, text = _problem(found)
            file_rows.store(workspace, task, name, msgspec.structs.replace(known, state=code, detail=text, last=None))
            outcome.errors.append(FileError(code=code, file=f"{task}/{name}", text=f"{task}/{name}: {text}"))
    return outcome


def _store_editing(workspace: Workspace, task: str, name: str, known: FileRow, outcome: _Outcome) -> None:
    since = known.detail if known.state == "editing" else to_iso(workspace.clock.now())
    file_rows.store(workspace, task, name, msgspec.structs.replace(known, state="editing", detail=since))
    outcome.editing.append(f"{task}/{name}")


def _take(
    workspace: Workspace,
    task: str,
    name: str,
    found: Settled,
    known: FileRow,
    outcome: _Outcome,
    actor: Actor,
    before: datetime,
) -> None:
    last = LastRead(fingerprint=found.fingerprint, scanned_at=before, provisional=found.provisional)
    fresh = FileRow(state="collected", last=last, sha256=found.sha256)
    if found.provisional:
        outcome.provisional.append(f"{task}/{name}")
    was_final = known.last is None or not known.last.provisional
    if found.sha256 == known.sha256 and known.state in ("collected", "editing") and (was_final or found.provisional):
        outcome.met_again.append((task, name, _rested(known, last)))
        return
    label = f"{task}/{name}"
    workspace.artifacts.add(found.content)  # bytes are kept before anything is concluded from them
    decoded = decode(found.content)
    if isinstance(decoded, Incomplete) and found.provisional and _waited(workspace, known) < PROVISIONAL_AFTER:
        _store_editing(workspace, task, name, known, outcome)
        return
    if not isinstance(decoded, Decoded):
        reason = "it ends inside a character" if isinstance(decoded, Incomplete) else decoded.reason
        file_rows.store(workspace, task, name, msgspec.structs.replace(fresh, state="undecodable", detail=reason))
        text = f"{label} cannot be decoded: {reason}. Its bytes are kept."
        outcome.errors.append(FileError(code="undecodable", file=label, text=text))
        return
    fresh = msgspec.structs.replace(fresh, detail=decoded.badge or "")
    hints = _record(workspace, task, name, found, decoded, fresh, outcome, actor)
    outcome.hints += [f"{label}: {hint}" for hint in hints]


def _rested(known: FileRow, last: LastRead) -> FileRow:
    """The row of a file whose content is what was collected. Its detail then was since when it was edited, or how it was decoded."""
    if known.state == "editing":
        return msgspec.structs.replace(known, state="collected", detail="", last=last)
    return msgspec.structs.replace(known, last=last)


def _record(
    workspace: Workspace,
    task: str,
    name: str,
    found: Settled,
    decoded: Decoded,
    fresh: FileRow,
    outcome: _Outcome,
    actor: Actor,
) -> list[str]:
    """Record what changed, some items a transaction; each one compares afresh, so it goes on where another stopped."""
    changes_of = guidance_changes if name == "GUIDANCE.md" else question_changes
    while True:
        with workspace.ledger.transaction() as transaction:
            plan = changes_of(transaction, task, decoded.text, provisional=found.provisional)
            for change in plan.changes[:CHUNK]:
                transaction.append(change.kind, f"{task}/{change.payload['id']}", change.payload, actor=actor)
                if change.counts_as:
                    outcome.counts[change.counts_as] += 1
            if len(plan.changes) <= CHUNK:
                _record_version(transaction, task, name, found, decoded, actor)
                file_rows.write(transaction, workspace, task, name, fresh, plan.hints)
                return list(plan.hints)


def _record_version(
    transaction: Transaction, task: str, name: str, found: Settled, decoded: Decoded, actor: Actor
) -> None:
    row = transaction.query("SELECT sha256 FROM human_file WHERE task = ? AND name = ?", (task, name))
    before = row[0][0] if row else ""
    if before != found.sha256:
        size = len(found.content)
        payload = {"task": task, "name": name, "sha256": found.sha256, "size_bytes": size, "encoding": decoded.encoding}
        transaction.append("file.collected", f"{task}/{name}", payload, actor=actor)


def _waited(workspace: Workspace, known: FileRow) -> timedelta:
    try:
        since = workspace.clock.now() - from_iso(known.detail)
    except ValueError:
        return timedelta(0)
    # Since a time to come: the clock was set back. For how long is not known, and waiting for that time may take years.
    return since if since >= timedelta(0) else PROVISIONAL_AFTER


def _problem(found: Missing | Oversize | NotRegular | Unreadable) -> tuple[str, str]:
    match found:
        case Missing():
            return "missing", "the file is missing. It is not made again: restore it, or write a new one."
        case Oversize():
            return "oversize", f"it has {found.size_bytes} bytes, at most 1 MiB is read. Move older parts elsewhere."
        case NotRegular():
            return "not-regular", f"it is {found.kind}, a regular file is expected."
        case Unreadable():
            return "unreadable", found.reason


def mark_edited(workspace: Workspace) -> list[str]:
    """Show files that differ from what was collected as edited, before they are collected; returns their names."""
    edited = []
    for task, name in _files(workspace):
        known = file_rows.load(workspace, task, name)
        if workspace.is_linked_away(task):
            continue
        try:
            now = Fingerprint.of(workspace.task_folder(task) / name)
        except OSError:
            continue
        if known.state == "collected" and known.last is not None and now != known.last.fingerprint:
            file_rows.store(
                workspace,
                task,
                name,
                msgspec.structs.replace(known, state="editing", detail=to_iso(workspace.clock.now())),
            )
            edited.append(f"{task}/{name}")
    if edited:
        with workspace.ledger.transaction() as transaction:
            transaction.pulse("edited")
    return edited


def _files(workspace: Workspace) -> Iterator[tuple[str, str]]:
    for task in tasks.all_tasks(workspace.ledger):
        if task.state not in tasks.TERMINAL:
            for name in HUMAN_FILES:
                yield task.id, name


def watched_directories(workspace: Workspace) -> tuple[Path, ...]:
    """The parent directories whose change events are worth a wake-up; one that may not be looked into would cost all the others'."""
    folders = {workspace.task_folder(task) for task, _ in _files(workspace) if workspace.has_task_folder(task)}
    return tuple(sorted(f for f in (*folders, workspace.spool) if f.is_dir() and os.access(f, os.R_OK | os.X_OK)))
