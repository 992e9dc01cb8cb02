"""Leases: who runs a loop or reads a source, with a fencing token that only grows. Plain rows, not events."""

from __future__ import annotations

import os
import socket
from datetime import datetime, timedelta

import msgspec

from trainflow_tui.clock import Clock, from_iso, to_iso
from trainflow_tui.ledger.database import Ledger, Transaction


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A held lease. A write that carries an older token than the row's is refused by `renew`."""

    name: str
    owner: str
    token: int
    expires_at: str
    heartbeat_at: str


def acquire(ledger: Ledger, name: str, owner: str, *, ttl_s: float) -> Lease | None:
    """Take the lease if it is free, expired or already ours; None while another owner lives.

    A wall clock that went back never makes a lease expire earlier: the stored expiry decides, which may then be years away,
    except for a holder of which this machine knows that it has ended.
    """
    now = ledger.clock.now()
    with ledger.transaction() as transaction:
        rows = transaction.query("SELECT owner, token, expires_at, heartbeat_at FROM lease WHERE name = ?", (name,))
        if rows and rows[0][0] != owner and _lives(rows[0][0], rows[0][2], heartbeat_at=rows[0][3], now=now):
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
    with ledger.transaction() as transaction:
        return keep(transaction, ledger.clock, lease, ttl_s=ttl_s)


def keep(transaction: Transaction, clock: Clock, lease: Lease, *, ttl_s: float) -> bool:
    """The same inside a transaction of the caller, who writes only where this is True: a holder that was stopped for longer
    than its lease, and does not know, changes nothing any more.
    """
    held = transaction.query(
        "SELECT 1 FROM lease WHERE name = ? AND token = ? AND owner = ?", (lease.name, lease.token, lease.owner)
    )
    if held:
        now = clock.now()
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
    if not rows:
        return None
    found = Lease(**dict(zip(Lease.__struct_fields__, rows[0], strict=True)))
    lives = _lives(found.owner, found.expires_at, heartbeat_at=found.heartbeat_at, now=ledger.clock.now())
    return found if lives else None


def _lives(owner: str, expires_at: str, *, heartbeat_at: str, now: datetime) -> bool:
    if not owner or from_iso(expires_at) <= now:
        return False
    return from_iso(heartbeat_at) <= now or not _has_ended(owner)


def _has_ended(owner: str) -> bool:
    """Whether an owner `host:pid…` is a process of this machine that is no more."""
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    if host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # it is somebody else's
    return False
