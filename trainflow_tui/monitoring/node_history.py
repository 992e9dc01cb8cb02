"""What was seen of each node in the course of time. A look is kept where what is shown has changed, and once an hour."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.ledger.database import Ledger, Transaction

KEPT_EVERY: Final = timedelta(hours=1)
MATERIAL: Final = {
    "load": 0.25,
    "memory_pct": 5.0,
    "signal_pct": 5.0,
    "device_util_pct": 25.0,
    "device_temp_c": 10.0,
    "device_mem_pct": 10.0,
}
"""By how much a figure moves before that alone makes a look worth keeping: load by a quarter of the CPUs, shares in points of
a hundred. A change of state or of words always does; figures inside the words do not."""
_FIGURE: Final = re.compile(r"[+-]?\d+(\.\d+)?")


def note(
    transaction: Transaction, name: str, status: dict[str, Any], *, now: datetime, keep_days: int | None = None
) -> bool:
    """Keep a look at a node where it is news against the last one kept; returns whether it was.

    With `keep_days` rows older than that go, but for the newest of them, which tells what held at the limit.
    """
    rows = transaction.query("SELECT at, status FROM node_history WHERE name = ? ORDER BY id DESC LIMIT 1", (name,))
    if rows and not (_is_due(rows[0][0], now) or is_news(msgspec.json.decode(rows[0][1]), status)):
        return False
    transaction.execute(
        "INSERT INTO node_history (name, at, status) VALUES (?, ?, ?)",
        (name, to_iso(now), msgspec.json.encode(status).decode()),
    )
    if keep_days is not None:
        limit = to_iso(now - timedelta(days=keep_days))
        transaction.execute(
            "DELETE FROM node_history WHERE name = ?1 AND at < ?2 AND id < "
            "(SELECT max(id) FROM node_history WHERE name = ?1 AND at < ?2)",
            (name, limit),
        )
    return True


def is_news(before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Whether two looks at a node differ by more than figures that move with every look."""
    old, new = _figures(before), _figures(now)
    return (
        _words(before) != _words(now)
        or old.keys() != new.keys()
        or any(abs(value - old[key]) >= MATERIAL[key[0]] for key, value in new.items())
    )


def at(ledger: Ledger, moment: str) -> dict[str, tuple[str, str]]:
    """Of each node the last look, as time and JSON, that was not later than the moment (UTC, as stored).

    A look in the last row of all counts too: nothing has been seen since.
    """
    newest = "SELECT name, checked_at, status FROM node_status WHERE checked_at <= ?1"
    kept = (
        "SELECT name, at, status FROM node_history WHERE id IN "
        "(SELECT max(id) FROM node_history WHERE at <= ?1 GROUP BY name)"
    )
    has_history = ledger.query("SELECT 1 FROM sqlite_master WHERE name = 'node_history'")  # not in an older file
    found = {name: (seen, status) for name, seen, status in (ledger.query(kept, (moment,)) if has_history else ())}
    return found | {name: (seen, status) for name, seen, status in ledger.query(newest, (moment,))}


def changes(ledger: Ledger) -> tuple[str, str]:
    """The times of the first and the last look that are kept; empty without any."""
    if not ledger.query("SELECT 1 FROM sqlite_master WHERE name = 'node_history'"):
        return "", ""
    rows = ledger.query("SELECT coalesce(min(at), ''), coalesce(max(at), '') FROM node_history")
    return str(rows[0][0]), str(rows[0][1])


def _is_due(last: str, now: datetime) -> bool:
    # A row in the future: the clock was set back.
    return not now - KEPT_EVERY < from_iso(last) <= now


def _words(status: dict[str, Any]) -> object:
    signals = [(s.get("check"), s.get("state"), _FIGURE.sub("#", str(s.get("text")))) for s in _list(status, "signals")]
    devices = [(d.get("index"), d.get("throttle"), d.get("errors")) for d in _list(status, "devices")]
    return signals, devices, status.get("boot_id"), [a.get("pci") for a in _list(status, "accelerators")]


def _figures(status: dict[str, Any]) -> dict[tuple[str, object], float]:
    found: dict[tuple[str, object], float | None] = {
        ("memory_pct", None): _share(status.get("mem_available_bytes"), status.get("mem_total_bytes"))
    }
    load = (status.get("load") or {}).get("one_minute")
    found["load", None] = None if load is None else load / (status.get("cpus") or 1)
    for signal in _list(status, "signals"):
        found["signal_pct", signal.get("check")] = signal.get("value") if signal.get("unit") == "%" else None
    for device in _list(status, "devices"):
        found["device_util_pct", device.get("index")] = device.get("util_pct")
        found["device_temp_c", device.get("index")] = device.get("temp_c")
        found["device_mem_pct", device.get("index")] = _share(device.get("mem_used_mib"), device.get("mem_total_mib"))
    return {key: float(value) for key, value in found.items() if value is not None}


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _list(status: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return status.get(key) or []
