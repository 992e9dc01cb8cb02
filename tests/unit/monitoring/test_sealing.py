"""Sealing by a reader that was stopped for longer than its lease while another read on."""

from __future__ import annotations

import random
from datetime import UTC, datetime

from trainflow_tui.demo import job
from trainflow_tui.ledger import manifest
from trainflow_tui.monitoring import follow, history
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.workspace import Workspace

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_reader_that_slept_through_a_seal_writes_over_nothing(workspace, actor, clock, monkeypatch):
    path = workspace.root / "train.log"
    path.write_text("".join(f"{job.line(step, START, random.Random(step))}\n" for step in range(1, 6)))
    run, _ = follow.add_run(workspace, path, task="", id="r", actor=actor)
    Follower().follow_all(workspace)
    clock.advance(61)
    other = Workspace.open(workspace.root, clock=clock)
    real = workspace.store.seal

    def overtaken(live, parquet):
        written = real(live, parquet)
        clock.advance(follow.LEASE_TTL_S + 1)
        with open(path, "a") as stream:
            stream.write("".join(f"{job.line(step, START, random.Random(step))}\n" for step in range(6, 9)))
        Follower(seals_by_age=True).follow_all(other)
        return written

    monkeypatch.setattr(workspace.store, "seal", overtaken)
    assert Follower(seals_by_age=True).follow_all(workspace).troubles == []
    named = [s.path for s in manifest.segments(workspace.ledger, run)]
    assert [(workspace.state / name).exists() for name in named] == [True] * len(named)
    assert len(list(workspace.state.glob("metrics/r/raw/*"))) == 2
    assert sum(name.endswith(".parquet") for name in named) == 1
    Follower(seals_by_age=True).follow_all(workspace)
    assert history.count(workspace, run) == 8
    assert [row[0] for row in history.series(workspace, run, "loss", buckets=100)] == [float(n) for n in range(1, 9)]
    other.close()
