"""What is kept of looks at a node: what is news, once an hour, for as many days as are set."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trainflow_tui.clock import from_iso
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import node_checks, node_history, status


def look(**changed):
    signals = [
        {"check": "memory", "state": "ok", "value": 40.0, "unit": "%", "text": "40.0 % of the memory is available"},
        {"check": "disk /", "state": "ok", "value": 50.0, "unit": "%", "text": "/ is 50.0 % full"},
    ]
    devices = [{"index": 0, "util_pct": 50.0, "temp_c": 50.0, "mem_used_mib": 500, "mem_total_mib": 1000, "errors": []}]
    base = {
        "name": "n",
        "boot_id": "b",
        "cpus": 10,
        "load": {"one_minute": 5.0},
        "signals": signals,
        "devices": devices,
    }
    return base | {"mem_total_bytes": 1000, "mem_available_bytes": 400, "accelerators": None} | changed


def with_signal(**changed):
    return look(signals=[look()["signals"][0], look()["signals"][1] | changed])


def with_device(**changed):
    return look(devices=[look()["devices"][0] | changed])


STILL = {
    "the same": look(),
    "a later moment": look(collected_at="later", uptime_s=9.0, clock_offset_s=0.1),
    "figures in the words": with_signal(text="/ is 51.5 % full", value=51.5),
    "load below a quarter of the processors": look(load={"one_minute": 7.4}),
    "memory below five points": look(mem_available_bytes=441),
    "a share below five points": with_signal(value=54.9),
    "a device's use": with_device(util_pct=74.0),
    "a device's heat": with_device(temp_c=59.0),
    "a device's memory": with_device(mem_used_mib=590),
}
NEWS = {
    "a state": with_signal(state="warning"),
    "words": with_signal(text="/ is gone"),
    "a check more": look(signals=[*look()["signals"], {"check": "x", "state": "ok", "text": ""}]),
    "load by a quarter of the processors": look(load={"one_minute": 7.5}),
    "no load": look(load=None),
    "memory by five points": look(mem_available_bytes=350),
    "a share by five points": with_signal(value=55.0),
    "a device's use": with_device(util_pct=25.0),
    "a device's heat": with_device(temp_c=60.0),
    "a device's memory": with_device(mem_used_mib=600),
    "a device that answers no more": with_device(util_pct=None),
    "a device's error": with_device(errors=[{"field": "temp_c", "error": "lost"}]),
    "a device that is slowed down": with_device(throttle=["heat"]),
    "no devices": look(devices=None),
    "a start of the machine": look(boot_id="c"),
}


@pytest.mark.parametrize("name", STILL)
def test_what_moves_with_every_look_is_not_kept(name):
    assert not node_history.is_news(look(), STILL[name])
    assert not node_history.is_news(STILL[name], look())


@pytest.mark.parametrize("name", NEWS)
def test_what_is_shown_otherwise_is_kept(name):
    assert node_history.is_news(look(), NEWS[name])
    assert node_history.is_news(NEWS[name], look())


def store(workspace, seen, **named):
    with workspace.ledger.transaction() as transaction:
        status.store_node(transaction, workspace.ledger, "n", seen, **named)


def kept(workspace, clock):
    rows = workspace.ledger.query("SELECT at FROM node_history WHERE name = 'n' ORDER BY id")
    return [round((from_iso(at) - clock.now()).total_seconds()) for (at,) in rows]


def test_a_look_is_kept_where_it_is_news_and_once_an_hour(workspace, clock):
    for _ in range(150):
        store(workspace, look())
        clock.advance(60)
    assert kept(workspace, clock) == [-9000, -5400, -1800]
    store(workspace, with_signal(state="critical"))
    assert kept(workspace, clock)[-1] == 0
    clock.advance(-7200)  # set back: a row in the future stops nothing
    store(workspace, with_signal(state="critical"))
    assert kept(workspace, clock)[-1] == 0


def test_what_creeps_is_kept_when_it_has_gone_far_enough_since_the_last_row(workspace, clock):
    for percent in range(50, 71):
        store(workspace, with_signal(value=float(percent)))
        clock.advance(60)
    assert len(kept(workspace, clock)) == 5  # at 50, 55, 60, 65 and 70


def test_rows_older_than_the_days_go_but_for_the_one_that_held_at_the_limit(workspace, clock):
    for day in range(10):
        store(workspace, look(boot_id=str(day)), keep_days=3)
        clock.advance(86_400)
    assert kept(workspace, clock) == [-432_000, -345_600, -259_200, -172_800, -86_400]
    found = node_history.at(workspace.ledger, "2026-03-11T00:00:00.000000Z")
    assert found["n"][0].startswith("2026-03-10T12:00:00")


def test_a_check_keeps_as_many_days_as_are_set(workspace, clock, monkeypatch):
    made = []
    monkeypatch.setattr(status, "store_node", lambda *_, **named: made.append(named["keep_days"]))
    node_checks.check(workspace, actor=Actor(door="cli"))
    clock.advance(3600)
    node_checks.check_due(workspace)
    assert made == [7, 7]


def test_the_last_look_counts_where_nothing_was_seen_since(workspace, clock):
    store(workspace, look())
    clock.advance(120)
    store(workspace, with_signal(value=51.0))
    (seen, text) = node_history.at(workspace.ledger, "2026-03-04T13:00:00.000000Z")["n"]
    assert (seen, "51.0" in text) == ("2026-03-04T12:02:00.000000Z", True)
    (seen, text) = node_history.at(workspace.ledger, "2026-03-04T12:01:59.000000Z")["n"]
    assert (seen, "51.0" in text) == ("2026-03-04T12:00:00.000000Z", False)
    assert node_history.at(workspace.ledger, (clock.now() - timedelta(hours=1)).isoformat()) == {}
