"""The moment that a person means: times of day, dates, zones that change their clocks, what is no moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui.clock import moment_of, to_iso
from trainflow_tui.errors import UsageError

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = [UTC, BERLIN, ZoneInfo("Asia/Shanghai"), ZoneInfo("America/St_Johns"), ZoneInfo("Australia/Lord_Howe")]
NOW = datetime(2026, 3, 4, 12, 0, 0, 250_000, tzinfo=UTC)
nows = st.integers(631_152_000, 2_114_380_800).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
zones = st.sampled_from(ZONES)


def at(*parts):
    return datetime(*parts, tzinfo=UTC)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("11:59", at(2026, 3, 4, 11, 59)),
        ("12:00", at(2026, 3, 4, 12)),
        ("12:01", at(2026, 3, 3, 12, 1)),
        (" 9:05 ", at(2026, 3, 4, 9, 5)),
        ("14:05:07", at(2026, 3, 3, 14, 5, 7)),
        ("2026-03-04 09:05", at(2026, 3, 4, 9, 5)),
        ("2026-03-04T09:05:06.5", at(2026, 3, 4, 9, 5, 6, 500_000)),
        ("2026-03-04T09:05:06Z", at(2026, 3, 4, 9, 5, 6)),
        ("2026-03-04T09:05+08:00", at(2026, 3, 4, 1, 5)),
        ("-30s", NOW - timedelta(seconds=30)),
        ("-10m", NOW - timedelta(minutes=10)),
        ("-2h", NOW - timedelta(hours=2)),
        ("-1D", NOW - timedelta(days=1)),
        ("now", NOW),
        ("-0m", NOW),
    ],
)
def test_each_way_to_name_a_moment(words, expected):
    found = moment_of(words, NOW, UTC)
    assert (found, found.tzinfo) == (expected, UTC)


WRONG = "yesterday|14|24:00|12:60|12:00:60|1:2|2026-03-04|2026-13-01 10:00|2026-02-30 10:00|10m|+10m|-10|-10w|--1h"


@pytest.mark.parametrize("words", ["", " ", *WRONG.split("|"), "-999999999d", "0001-01-01T00:00+14:00", "x" * 500])
def test_what_is_no_moment_is_refused_with_what_is_expected(words):
    with pytest.raises(UsageError) as refused:
        moment_of(words, NOW, UTC)
    assert (refused.value.code, refused.value.subject) == ("moment", "moment")
    for form in ("14:05", "2026-03-04 14:05", "-10m", "now"):
        assert form in refused.value.next_step
    assert len(refused.value.message) < 100


@pytest.mark.parametrize("words", ["2026-03-04 12:01", "2026-03-04T12:00:01Z", "2027-01-01 00:00"])
def test_a_date_that_is_to_come_is_refused(words):
    with pytest.raises(UsageError) as refused:
        moment_of(words, NOW, UTC)
    assert refused.value.code == "moment-future"


def test_a_time_that_the_clock_jumped_over_is_that_of_the_day_before_and_refused_with_its_date():
    now = at(2026, 3, 29, 12)  # that night Berlin went from 02:00 to 03:00
    assert moment_of("02:30", now, BERLIN) == at(2026, 3, 28, 1, 30)
    with pytest.raises(UsageError) as refused:
        moment_of("2026-03-29 02:30", now, BERLIN)
    assert refused.value.code == "moment-skipped"
    assert moment_of("2026-03-29T02:30+01:00", now, BERLIN) == at(2026, 3, 29, 1, 30)


def test_a_time_that_the_clock_showed_twice_is_the_later_of_those_that_were():
    first, second = (
        at(2026, 10, 25, 0, 30),
        at(2026, 10, 25, 1, 30),
    )  # 02:30 before and after Berlin went from 03:00 to 02:00
    for words in ("02:30", "2026-10-25 02:30"):
        assert moment_of(words, second - timedelta(seconds=1), BERLIN) == first
        assert moment_of(words, second, BERLIN) == second
        assert moment_of(words, second + timedelta(hours=3), BERLIN) == second


def test_without_a_zone_the_machines_own_counts(monkeypatch):
    import time

    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    try:
        assert moment_of("14:05", NOW) == at(2026, 3, 4, 6, 5)
        assert moment_of("20:01", NOW) == at(2026, 3, 3, 12, 1)
        assert moment_of("2026-03-04 10:00", NOW) == at(2026, 3, 4, 2)
    finally:
        monkeypatch.undo()
        time.tzset()


@given(nows, zones, st.times())
def test_a_time_of_day_is_the_last_moment_at_which_the_clock_showed_it(now, zone, of_day):
    of_day = of_day.replace(microsecond=0, fold=0)
    found = moment_of(of_day.isoformat(), now, zone)
    assert found <= now
    assert found.astimezone(zone).time().replace(fold=0) == of_day
    # No later one: every clock here moves by whole quarters of an hour, so that it would be so many seconds after this.
    later = found
    while (later := later + timedelta(minutes=15)) <= now:
        assert later.astimezone(zone).time().replace(fold=0) != of_day


@given(nows, zones, st.timedeltas(timedelta(0), timedelta(days=4000)))
def test_a_time_with_its_date_is_a_moment_that_showed_it_and_not_to_come(now, zone, ago):
    moment = now - ago
    shown = moment.astimezone(zone)
    found = moment_of(shown.replace(tzinfo=None).isoformat(sep=" "), now, zone)
    assert found.astimezone(zone).replace(tzinfo=None, fold=0) == shown.replace(tzinfo=None, fold=0)
    assert moment <= found <= now
    assert found - moment <= timedelta(hours=1)
    assert moment_of(shown.isoformat(), now, UTC) == moment


@given(nows, st.integers(-14 * 60, 14 * 60))
def test_a_stored_time_is_its_own_moment(now, minutes):
    moment = now - timedelta(minutes=abs(minutes))
    assert moment_of(to_iso(moment), now, timezone(timedelta(minutes=minutes))) == moment


@given(st.text(max_size=30), nows, zones)
def test_any_text_is_a_moment_that_was_or_a_usage_error(words, now, zone):
    try:
        found = moment_of(words, now, zone)
    except UsageError:
        return
    assert found <= now
