"""Time enters the program here: UTC wall time for records, monotonic seconds for intervals."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Two readings that never mix: a wall clock that may jump and a monotonic one that may not."""

    def now(self) -> datetime:
        """The wall time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary origin; never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """The wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment of this boot."""
        return time.monotonic()


class ManualClock:
    """A clock that moves only when told; `advance` moves both readings, `set_wall` only the wall (a clock jump)."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._monotonic = 1000.0

    def now(self) -> datetime:
        """The wall time that was set."""
        return self._now

    def monotonic(self) -> float:
        """The seconds advanced so far, from 1000."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self._now += timedelta(seconds=seconds)
        self._monotonic += seconds

    def set_wall(self, moment: datetime) -> None:
        """Jump the wall clock; the monotonic one stays."""
        self._now = moment


def to_iso(moment: datetime) -> str:
    """UTC with microseconds and a `Z`, the one stored form; sorts as text."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def from_iso(text: str) -> datetime:
    """Read the stored form back.

    Raises:
        ValueError: the text is not an ISO time.
    """
    return datetime.fromisoformat(text)


def local_clock_time(moment: datetime | str, *, with_date: bool = False) -> str:
    """`HH:MM:SS` (or with the date) in the zone of this machine: absolute, so that a screen never repaints for age."""
    value = from_iso(moment) if isinstance(moment, str) else moment
    return value.astimezone().strftime("%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S")
