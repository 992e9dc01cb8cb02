"""`trainflow replay`: the page of an earlier moment, and a workspace that is byte for byte as it was."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

import pytest

from trainflow_tui.clock import ManualClock
from trainflow_tui.collaboration import questions, tasks
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import follow
from trainflow_tui.workspace import Workspace

BEGIN = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
ACTOR = Actor(door="cli", user="operator")


def line(step, loss):
    return (
        f" iteration {step:8}/    1000 | consumed samples: {step * 8} | elapsed time per iteration (ms): 100.0 | "
        f"learning rate: 1.000000E-04 | global batch size:     8 | lm loss: {loss:.6E} | loss scale: 1.0 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


@pytest.fixture
def story(command):
    """A task at 12:00, ten samples of a log at 12:10, a question at 12:20, ten more samples at 12:30."""
    clock = ManualClock(BEGIN)
    workspace = Workspace.open(command.root, create=True, clock=clock)
    tasks.create(workspace, title="first", actor=ACTOR)
    log = command.root / "train.log"
    log.write_text("")
    follow.add_run(workspace, log, task="first", id="r", actor=ACTOR)
    for half in range(2):
        clock.advance(600)
        with open(log, "a") as stream:
            stream.write("".join(line(s, 20.0 - s) for s in range(1 + 10 * half, 11 + 10 * half)))
        follow.Follower(seals_by_age=True).follow_all(workspace)
        clock.advance(600)
        if not half:
            questions.ask(workspace.ledger, task="first", title="Why", body="", blocking=True, actor=ACTOR)
    workspace.close()
    return command


def contents(root):
    # SQLite's shared memory is not data: it counts who reads.
    return {
        str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() if p.is_file() else "directory"
        for p in sorted(root.rglob("*"))
        if p.name != "ledger.db-shm"
    }


def test_a_replay_shows_what_was_known_then_and_says_of_when_it_is(story):
    code, found = story.json("replay", "--at", "2026-03-04T12:15:00Z")
    assert (code, found["schema"], found["as_of"]) == (0, "replay/1", "2026-03-04T12:15:00.000000Z")
    assert [t["id"] for t in found["tasks"]] == ["first"]
    assert found["questions"] == []
    (run,) = found["runs"]
    assert (run["step"], run["loss"], run["samples"]) == (10, 10.0, 10)
    assert run["last_sample_at"] == "2026-03-04T12:10:00.000000Z"
    assert {f["state"] for f in found["files"]} == {"unknown"}
    assert (found["first_at"], found["last_at"]) == ("2026-03-04T12:00:00.000000Z", "2026-03-04T12:30:00.000000Z")
    code, found = story.json("replay", "--at", "2026-03-04T12:35:00Z")
    # What waited then needs nobody now: the code stays 0.
    assert ([q["title"] for q in found["questions"]], found["runs"][0]["step"], code) == (["Why"], 20, 0)


def test_a_replay_has_the_keys_of_a_refresh_but_for_what_a_refresh_does(story):
    _, replayed = story.json("replay", "--at", "2026-03-04T12:15:00Z")
    _, refreshed = story.json("--once")
    assert set(refreshed) - set(replayed) == {"collected", "generated"}
    assert set(replayed) - set(refreshed) == {"as_of", "first_at", "last_at"}
    assert set(replayed["runs"][0]) == set(refreshed["runs"][0])


def test_a_replay_to_read_says_as_of_when_and_draws_what_was(story):
    done = story.run("--no-json", "replay", "--at", "2026-03-04T12:15:00Z", env={"TZ": "UTC"})
    assert done.returncode == 0, done.stderr
    assert "as of 2026-03-04 12:15:00" in done.stdout.splitlines()[0]
    assert "step 10 " in done.stdout
    assert "Why" not in done.stdout
    assert "collected" not in done.stdout


def test_a_replay_changes_nothing(story):
    story.json("--readonly", "task", "list")  # SQLite makes its empty log where nobody has the ledger open
    before = contents(story.root)
    for words in ("--json", "--no-json"):
        assert story.run(words, "replay", "--at", "2026-03-04T12:15:00Z").returncode == 0
    assert contents(story.root) == before


def test_a_moment_before_the_first_record_is_empty_and_said(story):
    code, found = story.json("replay", "--at", "2026-03-04T11:59:59Z")
    assert (code, [r["code"] for r in found["reasons"]]) == (0, ["before-records"])
    assert (found["tasks"], found["runs"], found["nodes"]) == ([], [], [])


def test_a_moment_that_is_none_is_a_usage_error_that_says_what_is_expected(story):
    code, found = story.json("replay", "--at", "yesterday")
    assert (code, found["error"]["code"]) == (64, "moment")
    assert "-10m" in found["error"]["next_step"]


def test_there_is_nothing_to_replay_where_there_is_no_workspace(command):
    code, found = command.json("replay", "--at", "-1h")
    assert (code, found["error"]["code"]) == (64, "no-workspace")
    assert not (command.root / ".trainflow").exists()
