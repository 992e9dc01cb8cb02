"""Verbs that are killed at any moment: what was answered is recorded, what is recorded is whole, and nothing happens twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

KILLS = 8
TIMES = 100
"""The story again and again, as new attempts: samples for more than one seal."""
PAYLOAD = '{"argv": ["torchrun", "train.py"]}'


@pytest.fixture
def killed(command, tmp_path):
    """Run a verb and kill it at a random moment; returns its answer, or None where there was none yet."""
    dice = random.Random(11)
    (tmp_path / "payload").write_text(PAYLOAD)

    def run(*words, within_s):
        child = subprocess.Popen(
            [sys.executable, "-m", "trainflow_tui", "--workspace", str(command.root), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        time.sleep(dice.uniform(0.03, within_s))
        child.send_signal(signal.SIGKILL)
        said = child.communicate()[0]
        return json.loads(said) if said else None

    assert command.run("task", "create", "t").returncode == 0
    yield run
    code, found = command.json("ledger", "verify")
    assert (code, found["verification"]["first_bad_seq"], found["verification"]["projections_match"]) == (0, None, True)


def test_a_decision_and_its_use_are_whole_or_not_there(command, killed, tmp_path):
    payload = str(tmp_path / "payload")
    for _ in range(KILLS):
        words = ("approval", "request", "t", "--title", "x", "--payload", payload)
        ident = command.json(*words)[1]["approval"]["id"]
        answer = killed("approval", "decide", ident, "approve", within_s=0.3)
        state = command.json("approval", "show", ident)[1]["approval"]["state"]
        assert state in (("approved",) if answer else ("approved", "pending"))
        command.run("approval", "decide", ident, "approve")
        answer = killed("approval", "consume", ident, "--payload", payload, within_s=0.3)
        shown = command.json("approval", "show", ident)[1]["approval"]
        assert shown["state"] in (("consumed",) if answer else ("approved", "consumed"))
        code, _ = command.json("approval", "consume", ident, "--payload", payload)
        assert (code == 0) == (shown["state"] == "approved")


def test_guidance_that_was_answered_for_is_there_once(command, killed):
    answered = [
        f"wish {n}" for n in range(KILLS) if killed("guidance", "add", "t", "--text", f"wish {n}", within_s=0.4)
    ]
    command.run("--once")
    texts = [i["text"] for i in command.json("guidance", "list", "t")[1]["items"]]
    assert set(answered) <= set(texts)
    assert len(texts) == len(set(texts))
    assert [n for n in os.listdir(command.root / ".trainflow/spool") if n.endswith(".record")] == []


@pytest.mark.long
def test_a_trace_is_whole_or_not_there(command, killed, tmp_path):
    from trainflow_tui.analysis.traces.generator import write_synthetic_trace

    for seed in range(KILLS):
        path = tmp_path / f"rank0-{seed}.json"
        with open(path, "wb") as stream:
            write_synthetic_trace(stream, rank=0, world_size=1, steps=3, seed=seed)
        killed("trace", "add", str(path), within_s=0.9)
        for row in command.json("trace", "list")[1]["traces"]:
            assert command.json("trace", "hotspots", row["id"])[0] == 0
        assert command.json("trace", "add", str(path))[0] == 0
    assert len(command.json("trace", "list")[1]["traces"]) == KILLS


@pytest.mark.long
def test_a_log_that_is_sealed_under_kills_has_each_sample_once(command, killed, tmp_path):
    from datetime import UTC, datetime

    from trainflow_tui.demo import job
    from trainflow_tui.ledger import manifest
    from trainflow_tui.workspace import Workspace

    path = tmp_path / "train.log"
    job.write_story(path, steps=160, start=datetime.now(UTC))
    text = path.read_bytes()
    lines = text.count(b"] iteration ")
    path.write_bytes(text * TIMES)
    for _ in range(KILLS):
        killed("log", "add", str(path), within_s=1.5)
    deadline = time.monotonic() + 60
    while command.json("log", "add", str(path))[1]["summary"]["samples"] < lines * TIMES:
        assert time.monotonic() < deadline  # until the lease of the last one that was killed has run out
        time.sleep(1)
    workspace = Workspace.open(command.root)
    segments = [s.path for s in manifest.readable(workspace.ledger, "train")]
    assert any(path.endswith(".parquet") for path in segments)
    assert workspace.store.count(segments) == lines * TIMES
    workspace.close()
