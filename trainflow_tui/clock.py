"""Time enters the program here: UTC wall time for records, monotonic seconds for intervals."""

from __future__ import annotations

import re
import time as system_time
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import cache
from pathlib import Path
from typing import Final, Protocol

from trainflow_tui.errors import UsageError


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
        """Seconds since the machine was started, those in which it was suspended too where the system counts them (Linux)."""
        return system_time.clock_gettime(_SINCE_BOOT)


_SINCE_BOOT: Final = getattr(system_time, "CLOCK_BOOTTIME", system_time.CLOCK_MONOTONIC)


@cache
def boot_id() -> str:
    """Which start of which machine this is: monotonic seconds can be compared within it, also between processes.

    Empty where the system does not tell (random(4), boot_id); then they cannot be compared.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


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


_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGO: Final = re.compile(r"-\s*(\d{1,9})\s*([smhd])")
_OF_DAY: Final = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_EXPECTED: Final = "14:05, 14:05:07, 2026-03-04 14:05, 2026-03-04T14:05:07Z, -30s, -10m, -2h, -1d or now"


def moment_of(text: str, now: datetime, zone: tzinfo | None = None) -> datetime:
    """The moment that a person means, in UTC, never later than `now`.

    A time of day is the last time, up to now, that a clock of the zone showed it: today or yesterday, the second time where the
    clock was set back over it, the day before where the clock was set forward over it. A date and time without a zone is that
    of the zone; one that the clock showed twice is the later of the two that is not to come, one that it jumped over is
    refused. `-10m` is ten minutes before now. `zone` None is the zone of this machine.

    Raises:
        UsageError: `moment` names what was expected; `moment-skipped`, `moment-future`.
    """
    words = text.strip()
    if words.lower() == "now":
        return now.astimezone(UTC)
    try:
        if ago := _AGO.fullmatch(words.lower()):
            return now.astimezone(UTC) - timedelta(seconds=int(ago[1]) * _UNITS_S[ago[2]])
        if of_day := _OF_DAY.fullmatch(words):
            return _last_shown(time(int(of_day[1]), int(of_day[2]), int(of_day[3] or 0)), now, zone)
        given = datetime.fromisoformat(words)
        if len(words) <= len("2026-03-04"):
            raise ValueError("no time of day")
        return _not_to_come(text, given, now, zone)
    except (ValueError, OverflowError) as problem:
        raise UsageError(
            "moment", f"{words[:40]!r} names no moment.", subject="moment", next_step=f"Give {_EXPECTED}."
        ) from problem


def _last_shown(of_day: time, now: datetime, zone: tzinfo | None) -> datetime:
    today = now.astimezone(zone).date()
    # Tomorrow too: west of a date line that a zone crosses, the day is not over where it has begun. A week back is sure to do.
    days = (today + timedelta(days=ahead) for ahead in range(1, -8, -1))
    shown = (moment for day in days for moment in _readings(datetime.combine(day, of_day), zone))
    return max(moment for moment in shown if moment <= now)


def _not_to_come(text: str, given: datetime, now: datetime, zone: tzinfo | None) -> datetime:
    moments = [given.astimezone(UTC)] if given.tzinfo is not None else _readings(given, zone)
    step = f"Give a time that was, as {_EXPECTED}."
    if not moments:
        words = f"{text.strip()[:40]} never was: the clock was set forward over it."
        raise UsageError("moment-skipped", words, subject="moment", next_step=step)
    past = [moment for moment in moments if moment <= now]
    if not past:
        raise UsageError("moment-future", f"{text.strip()[:40]} is to come.", subject="moment", next_step=step)
    return max(past)


def _readings(shown: datetime, zone: tzinfo | None) -> list[datetime]:
    """The moments (UTC) at which a clock of the zone shows this: one, two where it was set back, none where it jumped over it."""
    # Without a zone Python asks the system, which knows its own changes too.
    moments = {shown.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
    return [moment for moment in moments if moment.astimezone(zone).replace(tzinfo=None, fold=0) == shown]
