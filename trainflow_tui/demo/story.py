"""The demo's course: sets a workspace up through the command line and the files a person writes, and starts its two children."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from trainflow_tui.analysis.traces.generator import write_synthetic_trace
from trainflow_tui.demo import agent, job
from trainflow_tui.demo.agent import Trainflow
from trainflow_tui.errors import UsageError
from trainflow_tui.files import write_atomic
from trainflow_tui.workspace import STATE_DIRECTORY, is_workspace

MARK: Final = "demo.json"
STEPS_AT_ONCE: Final = 240
STEPS_BEFORE_LIVE: Final = 110
GUIDANCE: Final = """
## Keep every checkpoint until the baseline is trusted

Also those before a resume.

## Tell me before the learning rate changes

I want to see the loss curve with the request.
"""
QUESTIONS: Final = """
## Q1: Which rank waits longest in the all-reduce?
"""


def is_demo(root: Path) -> bool:
    """Whether a directory holds a demo."""
    return (root / STATE_DIRECTORY / MARK).exists()


def set_up(root: Path, *, whole: bool) -> None:
    """Make the workspace and play the story's beginning; `whole` plays it to its end at once, in simulated time.

    Raises:
        UsageError: the directory holds a workspace already.
    """
    if is_workspace(root):
        raise UsageError(
            "demo-directory",
            f"{root} holds a workspace already.",
            subject=str(root),
            next_step="Name another directory.",
        )
    trainflow = Trainflow(root)
    agent.prepare(trainflow)
    write_atomic(root / STATE_DIRECTORY / MARK, json.dumps({"simulated": True}).encode())
    _write_as_a_person(root)
    steps = STEPS_AT_ONCE if whole else STEPS_BEFORE_LIVE
    log = root / "train.log"
    job.write_story(log, steps=steps, start=datetime.now().astimezone() - timedelta(seconds=steps * job.STEP_TIME_S))
    trainflow.call("log", "add", str(log), "--task", agent.TASK)
    trainflow.call("--once", may_end_with=(0, 10, 11, 20))
    for rank in range(2):
        trace = root / f"simulated_rank{rank}of2.json"
        with open(trace, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as stream:
            write_synthetic_trace(stream, rank=rank, world_size=2, steps=6, seed=11)
        trainflow.call("trace", "add", str(trace), "--task", agent.SECOND_TASK)
    trainflow.call("node", "check", may_end_with=(0, 20))
    if whole:
        agent.answer_guidance(trainflow)
        agent.report_analysis(trainflow, log)
        agent.ask(trainflow, blocking=False)
        agent.request(trainflow)


def _write_as_a_person(root: Path) -> None:
    # A person's editor appends to files that the program never writes.
    folder = root / "collaboration" / agent.TASK
    for name, text in (("GUIDANCE.md", GUIDANCE), ("QUESTIONS.md", QUESTIONS)):
        with open(folder / name, "a", encoding="utf-8") as stream:
            stream.write(text)
        # As if saved a while ago: a file at rest is collected by one read.
        past = time.time() - 60
        os.utime(folder / name, (past, past))


class Children:
    """The simulated job and agent as processes; both end when this process does, since their standard input closes."""

    def __init__(self, root: Path) -> None:
        log = root / "train.log"
        self._children = [
            self._start(root, "job", str(log), str(_next_step(log))),
            self._start(root, "agent", str(root), str(log)),
        ]

    @staticmethod
    def _start(root: Path, module: str, *words: str) -> subprocess.Popen[bytes]:
        output = os.open(
            root / STATE_DIRECTORY / "log" / f"demo-{module}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600
        )
        try:
            return subprocess.Popen(
                [sys.executable, "-m", f"trainflow_tui.demo.{module}", *words],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        finally:
            os.close(output)

    def end(self) -> None:
        """Close their input and wait for them."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        for child in self._children:
            try:
                child.wait(timeout=5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


def _next_step(log: Path) -> int:
    """The step after the last one in the log: a second demo goes on where the first stopped."""
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    steps = re.findall(r"\] iteration +(\d+)/", text)
    return int(steps[-1]) + 1 if steps else 1
