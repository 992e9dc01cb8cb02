"""Whether an approval's limit is over, under a wall clock that may jump: two clocks are asked, and nothing gains where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trainflow_tui.clock import Clock, boot_id, from_iso


def moment(clock: Clock) -> dict[str, Any]:
    """The monotonic reading that is recorded with a request: seconds, and of which start of which machine they are."""
    return {"boot": boot_id(), "s": clock.monotonic()}


def has_passed(row: Mapping[str, Any], clock: Clock) -> bool:
    """Whether the limit of a request's state is over: `expires_at` of a pending one, `start_before` of an approved one.

    The time since the request is measured by the monotonic clock as well, where both readings are of one start of one
    machine. Where the two clocks disagree, one of them was set: a request stays pending until both say that its time is
    over (an answer that was waited for is not lost early), an approval lapses as soon as one does (none holds for longer
    than it was given).
    """
    deadline = {"pending": row["expires_at"], "approved": row["start_before"]}.get(row["state"])
    if deadline is None:
        return False
    by_wall = from_iso(deadline) <= clock.now()
    since_s = _monotonic_since(row["request"], clock)
    if since_s is None:
        return by_wall
    by_monotonic = since_s >= (from_iso(deadline) - from_iso(row["requested_at"])).total_seconds()
    return by_wall and by_monotonic if row["state"] == "pending" else by_wall or by_monotonic


def _monotonic_since(request: str, clock: Clock) -> float | None:
    """Seconds since the request; None where it was made under another start of the machine, or tells nothing of it."""
    asked = msgspec.json.decode(request).get("asked") or {}
    if not boot_id() or asked.get("boot") != boot_id():
        return None
    since_s = clock.monotonic() - float(asked.get("s", 0.0))
    return since_s if since_s >= 0 else None
