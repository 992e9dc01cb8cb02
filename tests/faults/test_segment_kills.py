"""Killed between any two changes of the disk, sealing, rolling, merging, dropping and unlinking lose and double nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.monitoring.segments import Run, assert_same, rolled_by_hand
from trainflow_tui.monitoring import history

ROOT = Path(__file__).resolve().parents[2]


def kills(folder, stride):
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.kill_points", str(folder), str(stride)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout.split()[0])


def test_a_kill_at_some_changes_of_the_disk_loses_and_doubles_nothing(tmp_path):
    assert kills(tmp_path, 19) >= 6


@pytest.mark.long
def test_a_kill_at_every_change_of_the_disk_loses_and_doubles_nothing(tmp_path):
    assert kills(tmp_path, 1) >= 100


def test_three_processes_that_compact_at_once_do_each_step_once(workspace, clock):
    run = Run(workspace)
    for number in range(24):
        run.append(
            {
                "step": number,
                "loss": 1.0 / (number + 1),
                "at": f"2026-01-0{1 + number // 6}T0{number % 6}:00:00.000000Z",
            }
        )
        run.seal()
    words = ["-m", "trainflow_tui", "--workspace", str(workspace.root), "--json", "metrics", "compact"]
    crowd = [subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, cwd=ROOT) for _ in range(3)]
    answers = [process.communicate(timeout=120)[0] for process in crowd]
    assert [process.returncode for process in crowd] == [0, 0, 0], answers
    assert history.count(workspace, "r") == 24
    for level in ("roll60", "roll600"):
        assert_same(run.rollups(level), rolled_by_hand(run.samples, level))
    assert len(run.level("raw")) == 4
    named = {s for level in ("raw", "roll60", "roll600") for s in run.level(level)}
    replaced = {row[0] for row in workspace.ledger.query("SELECT path FROM segment WHERE state = 'dropped'")}
    on_disk = {str(p.relative_to(workspace.state)) for p in workspace.state.glob("metrics/*/r*/*")}
    assert on_disk == named | replaced
