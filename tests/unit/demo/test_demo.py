"""The demo: its story, its labels, and that it leaves nothing running."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainflow_tui.demo import job
from trainflow_tui.monitoring.logs.read import read_log


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    root = tmp_path_factory.mktemp("demo") / "d"
    done = subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "demo", str(root), "--headless"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return root


def call(root, *words):
    done = subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "--json", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_it_ends_with_one_pending_approval_and_no_blocking_question(played):
    code, found = call(played, "--once")
    assert code == 11
    assert len(found["approvals"]) == 1
    assert not any(q["blocking"] for q in found["questions"] if q["direction"] == "to-human")
    assert len(found["traces"]) == 2
    assert found["runs"][0]["attempt"] == 2
    assert found["nodes"]


def test_its_log_has_a_spike_a_checkpoint_a_stall_and_a_resume(played):
    _, found = call(played, "log", "list")
    kinds = {e["type"] for e in found["runs"][0]["summary"]["events"]}
    assert {"loss_spike", "checkpoint_saved", "stalled", "resume"} <= kinds


def test_its_guidance_was_collected_from_the_file_and_answered(played):
    _, found = call(played, "guidance", "list", "adapt-7b")
    assert [(i["source"], i["state"]) for i in found["items"]] == [("file", "applied"), ("file", "seen")]


def test_everything_it_wrote_says_that_it_is_simulated(played):
    _, found = call(played, "task", "list")
    assert all("simulated" in t["title"] for t in found["tasks"])
    _, found = call(played, "approval", "list")
    assert all("simulated" in a["by"]["agent"] for a in found["approvals"])
    assert (played / "train.log").read_text().startswith("[simulated]")


def test_deciding_it_leaves_nothing_that_needs_a_person(tmp_path):
    root = tmp_path / "d"
    subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "demo", str(root), "--headless"], capture_output=True, check=True
    )
    _, found = call(root, "--once")
    assert call(root, "approval", "decide", found["approvals"][0]["id"], "approve")[0] == 0
    assert call(root, "--once")[0] in (0, 10)


@pytest.mark.skipif(not Path("/proc").exists(), reason="needs /proc")
def test_it_leaves_no_process(played):
    mine = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != mine:
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            assert str(played) not in line, line


def test_a_directory_that_is_in_use_is_refused_and_left_alone(played):
    before = (played / "train.log").read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "demo", str(played), "--headless", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert json.loads(done.stdout)["error"]["code"] == "demo-directory"
    assert (played / "train.log").read_bytes() == before


def test_without_a_terminal_the_headless_way_is_named(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "demo", str(tmp_path / "x")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64
    assert "--headless" in done.stdout


def test_the_job_is_read_by_the_real_adapter_step_by_step(tmp_path):
    job.write_story(tmp_path / "l.log", steps=240, start=datetime(2026, 1, 1, tzinfo=UTC))
    found = read_log(tmp_path / "l.log")
    assert len(found.records) == 240
    assert [r.step for r in found.records] == [*range(1, 171), *range(151, 221)]
