"""Following a log into the store: each line once, through growth, truncation, sealing and crashes."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime

import pytest

from trainflow_tui.demo import job
from trainflow_tui.errors import UsageError
from trainflow_tui.ledger import manifest
from trainflow_tui.monitoring import follow, status
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.store.metrics import LiveTail

START = datetime(2026, 1, 1, tzinfo=UTC)


def metric(step, loss=None):
    text = job.line(step, START, random.Random(step))
    return text if loss is None else text.replace(text.split("lm loss: ")[1].split(" ")[0], loss)


@pytest.fixture
def log(workspace, actor):
    path = workspace.root / "train.log"
    path.write_text("[simulated]\n")
    run, _ = follow.add_run(workspace, path, task="", id=None, actor=actor)
    return path, run


def add(path, *lines):
    with open(path, "a") as stream:
        stream.write("".join(f"{line}\n" for line in lines))


def summary(workspace):
    return status.runs(workspace.ledger)[0].summary


def stored(workspace, run):
    return workspace.store.count([s.path for s in manifest.readable(workspace.ledger, run)])


def test_new_lines_become_samples_once(workspace, log):
    path, run = log
    follower = Follower()
    for first in (1, 11, 21):
        add(path, *(metric(step) for step in range(first, first + 10)))
        follower.follow_all(workspace)
        follower.follow_all(workspace)
        Follower().follow_all(workspace)
    found = summary(workspace)
    assert (found.step, found.samples, found.framework, found.state) == (30, 30, "megatron-lm", "following")
    assert stored(workspace, run) == 30
    assert [p[0] for p in found.recent] == list(range(1, 31))


def test_an_unfinished_line_waits_for_its_end(workspace, log):
    path, run = log
    whole = metric(1) + "\n"
    with open(path, "a") as stream:
        stream.write(whole[:100])
    Follower().follow_all(workspace)
    assert summary(workspace).samples == 0
    with open(path, "a") as stream:
        stream.write(whole[100:])
    Follower().follow_all(workspace)
    assert summary(workspace).samples == 1
    assert stored(workspace, run) == 1


def test_samples_written_before_a_crash_are_not_doubled(workspace, log):
    path, run = log
    add(path, metric(1), metric(2))
    Follower().follow_all(workspace)
    before = workspace.ledger.query("SELECT tail, summary FROM run_status")[0]
    add(path, metric(3), metric(4))
    Follower().follow_all(workspace)
    # As if the process had died between the samples and its position.
    with workspace.ledger.transaction() as transaction:
        transaction.execute("UPDATE run_status SET tail = ?, summary = ?", before)
    Follower().follow_all(workspace)
    assert summary(workspace).samples == 4
    live = workspace.state / manifest.readable(workspace.ledger, run)[0].path
    assert len(live.read_text().splitlines()) == 4


def test_sealing_keeps_every_sample(workspace, log, clock):
    path, run = log
    follower = Follower(seals_by_age=True)
    for part in range(3):
        add(path, *(metric(step) for step in range(part * 5 + 1, part * 5 + 6)))
        follower.follow_all(workspace)
        clock.advance(61)
        follower.follow_all(workspace)
    paths = [s.path for s in manifest.readable(workspace.ledger, run)]
    assert sum(p.endswith(".parquet") for p in paths) == 3
    assert stored(workspace, run) == 15


def test_a_truncated_log_goes_on_as_a_new_generation(workspace, log):
    path, run = log
    add(path, *(metric(step) for step in range(1, 11)))
    Follower().follow_all(workspace)
    path.write_text("".join(f"{metric(step)}\n" for step in range(11, 14)))
    Follower().follow_all(workspace)
    assert summary(workspace).step == 13
    assert stored(workspace, run) == 13


def test_a_missing_log_is_said_once_and_found_again(workspace, log):
    path, _ = log
    add(path, metric(1))
    Follower().follow_all(workspace)
    path.rename(path.with_suffix(".away"))
    assert Follower().follow_all(workspace).troubles
    assert summary(workspace).state == "missing"
    path.with_suffix(".away").rename(path)
    add(path, metric(2))
    Follower().follow_all(workspace)
    assert (summary(workspace).state, summary(workspace).samples) == ("following", 2)


def test_a_loss_that_jumps_and_one_that_is_no_number_become_events(workspace, log):
    path, _ = log
    add(path, *(metric(step) for step in range(1, 9)), metric(9, "2.000000E+01"), metric(10, "nan"))
    Follower().follow_all(workspace)
    kinds = [e.type for e in summary(workspace).events]
    assert "loss_spike" in kinds
    assert "non_finite" in kinds
    assert summary(workspace).recent[-1][1] is None


def test_a_silent_log_becomes_stale_and_comes_back(workspace, log, clock):
    path, _ = log
    add(path, metric(1), metric(2))
    follower = Follower()
    follower.follow_all(workspace)
    clock.advance(120)
    follower.follow_all(workspace)
    assert summary(workspace).state == "stale"
    version = workspace.ledger.version()
    follower.follow_all(workspace)
    assert workspace.ledger.version() == version
    add(path, metric(3))
    follower.follow_all(workspace)
    assert summary(workspace).state == "following"


def test_a_step_done_again_replaces_the_older_attempts_points(workspace, log):
    path, _ = log
    add(path, *(metric(step) for step in range(1, 9)))
    add(
        path,
        "  successfully loaded checkpoint from /c [ t 1/1, p 1/1 ] at iteration 4",
        *(metric(step) for step in range(5, 7)),
    )
    Follower().follow_all(workspace)
    found = summary(workspace)
    assert [p[0] for p in found.recent] == [1, 2, 3, 4, 5, 6]
    assert (found.attempt, found.samples) == (2, 10)


def test_two_followers_at_once_read_each_line_once(workspace, log, clock):
    path, run = log
    add(path, *(metric(step) for step in range(1, 51)))
    from trainflow_tui.ledger import leases

    held = leases.acquire(workspace.ledger, f"tail:{run}", "another", ttl_s=30)
    assert Follower().follow_all(workspace).samples == 0
    leases.release(workspace.ledger, held)
    assert Follower().follow_all(workspace).samples == 50


def test_an_unknown_format_waits_and_is_decided_later(workspace, log):
    path, run = log
    add(path, *("nothing of interest" for _ in range(50)))
    Follower().follow_all(workspace)
    assert summary(workspace).state == "waiting"
    add(path, metric(1))
    Follower().follow_all(workspace)
    assert summary(workspace).samples == 1
    assert stored(workspace, run) == 1


def test_what_is_no_regular_file_is_not_followed(workspace, actor):
    os.mkfifo(workspace.root / "pipe")
    with pytest.raises(Exception, match="pipe"):
        follow.add_run(workspace, workspace.root / "pipe", task="", id=None, actor=actor)
    with pytest.raises(UsageError):
        follow.add_run(workspace, workspace.root / "nowhere", task="", id=None, actor=actor)


def test_a_torn_live_file_is_mended_by_the_next_round(workspace, log):
    path, run = log
    add(path, metric(1))
    Follower().follow_all(workspace)
    live = workspace.state / manifest.readable(workspace.ledger, run)[0].path
    with open(live, "a") as stream:
        stream.write('{"gen": 1, "of')
    add(path, metric(2))
    Follower().follow_all(workspace)
    assert LiveTail(live).last() is not None
    assert stored(workspace, run) == 2
