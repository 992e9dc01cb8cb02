"""Leases: who runs a loop or reads a source, with a fencing token that only grows. Plain rows, not events."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.ledger.database import Ledger


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A held lease. A write that carries an older token than the row's is refused by `renew`."""

    name: str
    owner: str
    token: int
    expires_at: str
    heartbeat_at: str


def acquire(ledger: Ledger, name: str, owner: str, *, ttl_s: float) -> Lease | None:
    """Take the lease if it is free, expired or already ours; None while another owner lives.

    A wall clock that went back never makes a lease expire earlier: the stored expiry decides alone.
    """
    now = ledger.clock.now()
    with ledger.transaction() as transaction:
        rows = transaction.query("SELECT owner, token, expires_at FROM lease WHERE name = ?", (name,))
        if rows and rows[0][0] not in ("", owner) and from_iso(rows[0][2]) > now:
            return None
        lease = Lease(
            name=name,
            owner=owner,
            token=(rows[0][1] if rows else 0) + 1,
            expires_at=to_iso(now + timedelta(seconds=ttl_s)),
            heartbeat_at=to_iso(now),
        )
        transaction.execute("INSERT OR REPLACE INTO lease VALUES (?,?,?,?,?)", msgspec.structs.astuple(lease))
    return lease


def renew(ledger: Ledger, lease: Lease, *, ttl_s: float) -> bool:
    """Extend it; False when somebody else has taken it since, which ends the holder's work."""
    now = ledger.clock.now()
    with ledger.transaction() as transaction:
        held = transaction.query(
            "SELECT 1 FROM lease WHERE name = ? AND token = ? AND owner = ?", (lease.name, lease.token, lease.owner)
        )
        if held:
            transaction.execute(
                "UPDATE lease SET expires_at = ?, heartbeat_at = ? WHERE name = ?",
                (to_iso(now + timedelta(seconds=ttl_s)), to_iso(now), lease.name),
            )
    return bool(held)


def release(ledger: Ledger, lease: Lease) -> None:
    """Give it back; the token stays so that the next holder's is larger."""
    with ledger.transaction() as transaction:
        transaction.execute(
            "UPDATE lease SET owner = '', expires_at = ? WHERE name = ? AND token = ?",
            (to_iso(ledger.clock.now()), lease.name, lease.token),
        )


def holder(ledger: Ledger, name: str) -> Lease | None:
    """Who holds the lease now; None when it is free or has expired."""
    rows = ledger.query("SELECT name, owner, token, expires_at, heartbeat_at FROM lease WHERE name = ?", (name,))
    if not rows or not rows[0][1] or from_iso(rows[0][3]) <= ledger.clock.now():
        return None
    fields = dict(zip(("name", "owner", "token", "expires_at", "heartbeat_at"), rows[0], strict=True))
    return Lease(**fields)
