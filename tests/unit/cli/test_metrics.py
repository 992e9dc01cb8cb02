"""`trainflow metrics`: what it lists, what it would do, what it does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.unit.monitoring.segments import Run
from trainflow_tui.workspace import Workspace

DAY = (datetime.now(UTC) - timedelta(days=20)).strftime("%Y-%m-%d")


@pytest.fixture
def workspace(command):
    opened = Workspace.open(command.root, create=True)
    yield opened
    opened.close()


@pytest.fixture
def run(workspace):
    """A run of three sealed segments, all of one day three weeks ago, and a tail."""
    run = Run(workspace)
    for number in range(3):
        run.append({"step": number, "loss": 1.0, "at": f"{DAY}T0{number}:00:00.000000Z"})
        run.seal()
    run.append({"step": 9, "loss": 1.0})
    return run


def levels(found):
    return {level["level"]: (level["files"], level["rows"]) for level in found["runs"][0]["levels"]}


def test_list_compact_and_retain(command, run):
    code, found = command.json("metrics", "list")
    assert (code, found["schema"], found["status"]) == (0, "metrics-list/1", "ok")
    assert levels(found) == {"live": (1, 0), "raw": (3, 3)}
    assert found["runs"][0]["not_rolled"] == 3
    assert found["runs"][0]["levels"][1]["first_at"] == f"{DAY}T00:00:00.000000Z"

    code, planned = command.json("metrics", "compact", "--dry-run")
    assert (code, planned["schema"], planned["dry_run"]) == (0, "metrics-compact/1", True)
    assert [(s["kind"], s["rows"], len(s["files"])) for s in planned["steps"]] == [("roll", 3, 3)]
    assert command.json("metrics", "list")[1] == found

    code, done = command.json("metrics", "compact", "r")
    assert code == 0
    assert [(s["kind"], s["level"], s["rows"]) for s in done["steps"]] == [("roll", "raw", 3), ("compact", "raw", 3)]
    after = command.json("metrics", "list", "r")[1]
    assert levels(after) == {"live": (1, 0), "raw": (1, 3), "roll60": (1, 3), "roll600": (1, 3)}
    assert after["runs"][0]["to_unlink"] == 6
    assert command.json("metrics", "compact")[1]["steps"] == []

    assert command.json("metrics", "retain", "--dry-run")[1]["steps"][0]["rows"] == 3
    code, done = command.json("metrics", "retain")
    assert (code, [s["kind"] for s in done["steps"]]) == (0, ["retain"])
    assert levels(command.json("metrics", "list")[1]) == {"live": (1, 0), "roll60": (1, 3), "roll600": (1, 3)}
    assert "roll600" in command.run("metrics", "list", "--no-json").stdout


def test_a_missing_segment_needs_attention_and_stops_no_other_run(command, run, workspace):
    other = Run(workspace, "s")
    other.append({"step": 1, "loss": 1.0})
    other.seal()
    (workspace.state / run.level("raw")[1]).unlink()
    code, found = command.json("metrics", "list")
    assert (code, [r["code"] for r in found["reasons"]]) == (20, ["segment-missing"])
    code, found = command.json("metrics", "compact")
    assert (code, [r["code"] for r in found["reasons"]]) == (20, ["segment-missing"])
    assert [s["run"] for s in found["steps"]] == ["s"]


def test_an_unknown_run_is_a_wrong_word(command, run):
    for verb in ("list", "compact", "retain"):
        code, found = command.json("metrics", verb, "nobody")
        assert (code, found["error"]["code"]) == (64, "no-run")


def test_nothing_is_compacted_read_only(command, run):
    assert command.json("metrics", "compact", "--readonly", "--dry-run")[0] == 0
    code, found = command.json("metrics", "compact", "--readonly")
    assert (code, found["error"]["code"]) == (20, "ledger-readonly")
