"""Guidance from commands and the screen: one durable record a file in the spool, taken into the ledger exactly once."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from typing import Final

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.collaboration import spool
from trainflow_tui.errors import DamagedError, UsageError
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"


class SpooledGuidance(msgspec.Struct, frozen=True, kw_only=True):
    """One record of the spool."""

    v: int = 1
    id: str
    task: str
    text: str
    actor: Actor
    at: str


def write_guidance(workspace: Workspace, *, task: str, text: str, actor: Actor) -> str:
    """Write the record durably; returns the item's id. Nothing is lost from here on.

    Raises:
        UsageError: the text is no Unicode or too long.
        DamagedError: it is not durable; nothing is left behind.
    """
    id = "g:" + "".join(secrets.choice(_ALPHABET) for _ in range(8))
    record = SpooledGuidance(id=id, task=task, text=text, actor=actor, at=to_iso(workspace.clock.now()))
    try:
        content = msgspec.json.encode(record)
    except UnicodeEncodeError as problem:
        raise UsageError("text-not-unicode", "The text holds bytes that are not UTF-8.", subject="text") from problem
    try:
        spool.write_record(workspace.spool, content)
    except OSError as problem:
        raise DamagedError(
            "guidance-not-recorded",
            f"The guidance was not recorded: {(problem.strerror or str(problem)).lower()}.",
            subject=str(workspace.spool),
            next_step="Look at the disk, then send it again.",
        ) from problem
    return id


def ingest(workspace: Workspace, *, on_problem: Callable[[str, str], None] | None = None) -> int:
    """Take every waiting record in, in the order of their names; returns how many were new.

    A record is removed only after its event is durable; one that was taken already is removed and counts as nothing. One
    that cannot be read stays, is told to `on_problem` by its name with the reason, and stops no other.
    """
    taken = 0
    for path in spool.pending(workspace.spool):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=SpooledGuidance)
        except FileNotFoundError:
            continue  # another process was faster
        except (msgspec.ValidationError, msgspec.DecodeError, OSError) as problem:
            _log.error("%s is not read as a guidance record and stays: %s", path.name, problem)
            if on_problem is not None:
                on_problem(path.name, str(problem))
            continue
        taken += _take(workspace, record)
        spool.archive(path)
    return taken


def _take(workspace: Workspace, record: SpooledGuidance) -> int:
    payload = {
        "task": record.task,
        "id": record.id,
        "heading": _heading(record.text),
        "text": record.text,
        "version": 1,
        "source": record.actor.door,
        "by": record.actor.label,
        "recorded_at": record.at,
    }
    with workspace.ledger.transaction() as transaction:
        if not transaction.query("SELECT 1 FROM task WHERE id = ?", (record.task,)):
            _log.error("guidance %s names the unknown task %s", record.id, record.task)
        position = transaction.query(
            "SELECT coalesce(max(position), 0) + 1 FROM guidance WHERE task = ?", (record.task,)
        )[0][0]
        if transaction.query("SELECT 1 FROM guidance WHERE task = ? AND id = ?", (record.task, record.id)):
            return 0
        event = transaction.append(
            "guidance.collected",
            f"{record.task}/{record.id}",
            payload | {"position": position},
            actor=record.actor,
            idempotency=record.id,
        )
    return 1 if event is not None else 0


def _heading(text: str) -> str:
    first, _, rest = text.strip().partition("\n")
    return first.removeprefix("## ").strip() if first.startswith("## ") or not rest.strip() else ""
