"""Signs of trouble that stand in the numbers of a run: a loss that jumps, a gap in the log's own clock."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import datetime
from typing import Final

SPIKE_WINDOW: Final = 20
SPIKE_RATIO: Final = 1.5
GAP_STEPS: Final = 5
GAP_FLOOR_S: Final = 60.0


def is_spike(loss: float, before: Sequence[float]) -> bool:
    """Whether a loss stands out: above 1.5 times the median of the last 20 finite ones, once there are 5."""
    recent = list(before[-SPIKE_WINDOW:])
    return len(recent) >= 5 and loss > SPIKE_RATIO * statistics.median(recent)


def gap_seconds(before: str, now: str, step_time_s: float | None, steps: int) -> float | None:
    """The pause between two printed times if it is out of proportion, else None.

    Expected is the step time times the steps between; a pause counts from five times that, and from 60 s.
    """
    try:
        passed = (_printed(now) - _printed(before)).total_seconds()
    except ValueError:
        return None
    expected = (step_time_s or 0.0) * max(1, steps)
    return passed if passed > max(GAP_FLOOR_S, GAP_STEPS * expected) else None


def is_stale(quiet_s: float, step_time_s: float | None) -> bool:
    """Whether a log that has said nothing for this long is overdue: 20 steps, at least 60 s."""
    return quiet_s > max(GAP_FLOOR_S, 20 * (step_time_s or 0.0))


def _printed(text: str) -> datetime:
    if len(text) > 8 and text[8] == " " and text[:8].isdigit():
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    # The zone is not printed; only the difference of two such times is used.
    return datetime.fromisoformat(text)
