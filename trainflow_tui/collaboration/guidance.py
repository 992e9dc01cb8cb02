"""Guidance: what a human wants, item by item, and the receipts that agents give for each version of an item."""

from __future__ import annotations

from typing import Final

import msgspec

from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.ledger.events import Actor

RECEIPT_TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "collected": frozenset({"seen", "applied", "declined", "deferred"}),
    "seen": frozenset({"applied", "declined", "deferred"}),
    "deferred": frozenset({"applied", "declined", "deferred"}),
    "applied": frozenset({"accepted", "applied", "declined", "deferred"}),
    "declined": frozenset({"accepted", "applied", "declined", "deferred"}),
    "accepted": frozenset(),
}
"""Of one version of an item; a new version starts at collected. applied, declined and deferred are the ways to be handled;
accepted is the human's word that closes it."""

NEEDS_NOTE: Final = frozenset({"applied", "declined", "deferred"})


class Receipt(msgspec.Struct, frozen=True, kw_only=True):
    """One statement about one version of an item."""

    task: str
    item: str
    version: int
    state: str
    note: str
    at: str
    by: str


class GuidanceItem(msgspec.Struct, frozen=True, kw_only=True):
    """One human statement in its newest version. `state` is the last receipt of this version, else `collected`."""

    task: str
    id: str
    position: int
    heading: str
    text: str
    anchor: str
    version: int
    source: str
    """file, cli or tui."""
    provisional: bool
    """Taken while the file was still being edited."""
    collected_at: str
    first_at: str
    removed_at: str | None
    by: str
    state: str = "collected"
    receipts: list[Receipt] = []


def listed(ledger: Ledger, *, task: str | None = None) -> list[GuidanceItem]:
    """All items with their receipts, in the order of the file, removed ones last."""
    receipts: dict[tuple[str, str], list[Receipt]] = {}
    for row in ledger.query(
        "SELECT task, item, version, state, note, at, by FROM receipt WHERE ? IS NULL OR task = ? ORDER BY seq",
        (task, task),
    ):
        receipt = Receipt(**dict(zip(Receipt.__struct_fields__, row, strict=True)))
        receipts.setdefault((receipt.task, receipt.item), []).append(receipt)
    names = GuidanceItem.__struct_fields__[:13]
    rows = ledger.query(
        f"SELECT {', '.join(names)} FROM guidance WHERE ? IS NULL OR task = ? "
        "ORDER BY task, removed_at IS NOT NULL, position, first_at",
        (task, task),
    )
    items = []
    for row in rows:
        fields = dict(zip(names, row, strict=True))
        fields["provisional"] = bool(fields["provisional"])
        given = receipts.get((row[0], row[1]), [])
        current = [r.state for r in given if r.version == fields["version"]]
        items.append(GuidanceItem(**fields, state=current[-1] if current else "collected", receipts=given))
    return items


def add_receipt(
    ledger: Ledger,
    *,
    task: str,
    item: str,
    state: str,
    note: str,
    actor: Actor,
    agent: str | None,
    version: int | None = None,
) -> GuidanceItem:
    """State that this version of an item was seen, handled or accepted.

    Raises:
        UsageError: no such item, a handling without its note.
        RefusedError: the step is not in the table, the version is not the newest, or an agent accepts.
    """
    if state in NEEDS_NOTE and not note.strip():
        raise UsageError(
            "note-missing", f"Say in a note how the item was {state}.", subject="note", next_step="Give --note TEXT."
        )
    if state == "accepted" and agent:
        raise RefusedError("human-only", f"Only a person accepts: {agent}.", subject=item)
    with ledger.transaction() as transaction:
        newest, current = _current(transaction, task, item)
        if version is not None and version != newest:
            raise RefusedError(
                "guidance-moved",
                f"{item} is at version {newest}, not {version}.",
                subject=item,
                next_step="Read it again first.",
            )
        if state not in RECEIPT_TRANSITIONS[current]:
            allowed = ", ".join(sorted(RECEIPT_TRANSITIONS[current])) or "nothing"
            raise RefusedError(
                "receipt-transition",
                f"{item} is {current}: it cannot become {state}.",
                subject=item,
                next_step=f"From here: {allowed}.",
            )
        payload = {"task": task, "item": item, "version": newest, "state": state, "note": note.strip()}
        transaction.append("receipt.added", f"{task}/{item}", payload, actor=actor)
    return next(i for i in listed(ledger, task=task) if i.id == item)


def _current(transaction: Transaction, task: str, item: str) -> tuple[int, str]:
    """The newest version of an item and what its last receipt says of that version."""
    rows = transaction.query("SELECT version FROM guidance WHERE task = ? AND id = ?", (task, item))
    if not rows:
        raise UsageError(
            "no-guidance",
            f"Task {task[:80]!r} has no guidance item {item[:80]!r}.",
            subject=item[:80],
            next_step=f"`trainflow guidance list {task[:80]}` shows them.",
        )
    version = int(rows[0][0])
    said = transaction.query(
        "SELECT state FROM receipt WHERE task = ? AND item = ? AND version = ? ORDER BY seq DESC LIMIT 1",
        (task, item, version),
    )
    return version, str(said[0][0]) if said else "collected"
