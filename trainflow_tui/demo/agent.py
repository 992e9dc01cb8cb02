"""A simulated agent. It knows nothing but the command line: reads guidance, gives receipts, asks, reports, requests approvals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from trainflow_tui.demo.parent import ended_within

AGENT: Final = "demo-agent (simulated)"
TASK: Final = "adapt-7b"
SECOND_TASK: Final = "profile-moe"
PAYLOAD: Final = {
    "argv": [
        "torchrun",
        "--nproc-per-node",
        "8",
        "pretrain_gpt.py",
        "--load",
        "/simulated/ckpt",
        "--lr",
        "1.5e-4",
        "--note",
        "halve the rate after the spike",
    ],
    "cwd": "/simulated/run",
    "hosts": ["dcu-01", "dcu-02"],
    "env_names": ["HIP_VISIBLE_DEVICES", "NCCL_DEBUG"],
    "container": "simulated-train",
    "user": "train",
    "timeout_s": 86400,
}


class Trainflow:
    """The command `trainflow` as an agent calls it."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def call(self, *words: str, stdin: str = "", may_end_with: tuple[int, ...] = (0, 10, 11)) -> dict[str, Any]:
        """Run one verb and read its answer.

        Raises:
            RuntimeError: the verb ended with another code than expected; quotes its answer.
        """
        done = subprocess.run(
            [sys.executable, "-m", "trainflow_tui", "--workspace", str(self._root), "--json", *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            env=os.environ | {"TRAINFLOW_AGENT": AGENT},
        )
        if done.returncode not in may_end_with:
            raise RuntimeError(
                f"trainflow {' '.join(words)} ended with {done.returncode}: {done.stdout or done.stderr}"
            )
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


def prepare(trainflow: Trainflow) -> None:
    """Two tasks, their first stage and reports."""
    trainflow.call(
        "task",
        "create",
        "Adapt a 7B model (simulated)",
        "--id",
        TASK,
        "--objective",
        "A trusted baseline on 16 cards (simulated)",
    )
    trainflow.call(
        "task",
        "create",
        "Profile a mixture of experts (simulated)",
        "--id",
        SECOND_TASK,
        "--mode",
        "analyze",
        "--objective",
        "Find what makes the steps slow (simulated)",
    )
    trainflow.call("task", "move", TASK, "prepared")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as evidence:
        evidence.write("simulated: 2 nodes, 16 cards, all checks passed\n")
        evidence.flush()
        trainflow.call(
            "report",
            "add",
            TASK,
            "--kind",
            "environment",
            "--status",
            "pass",
            "--executed",
            "14",
            "--evidence",
            evidence.name,
            "--summary",
            "16 of 16 cards healthy (simulated)",
        )
    trainflow.call("task", "move", TASK, "environment_checked")
    trainflow.call("task", "move", SECOND_TASK, "prepared")


def answer_guidance(trainflow: Trainflow) -> None:
    """Give a receipt for each item that has none: the first is applied, the others are seen."""
    for number, item in enumerate(trainflow.call("guidance", "list", TASK)["items"]):
        if item["state"] == "collected":
            trainflow.call("receipt", "add", TASK, item["id"], "seen", "--version", str(item["version"]))
            if number == 0:
                trainflow.call(
                    "receipt", "add", TASK, item["id"], "applied", "--note", "the launch script keeps them (simulated)"
                )


def ask(trainflow: Trainflow, *, blocking: bool) -> str:
    """Ask the human about the spike; returns the question's id."""
    words = [
        "--title",
        "The loss jumped at step 130. Lower the learning rate, or skip the batch?",
        "--body",
        "Steps 130 to 139 stand out; gradients stayed finite (simulated).",
    ]
    return str(trainflow.call("question", "ask", TASK, *words, *(["--blocking"] if blocking else []))["question"]["id"])


def request(trainflow: Trainflow) -> str:
    """Request the approval of a restart with half the rate; returns its id."""
    words = [
        "--title",
        "Restart from step 150 with half the learning rate",
        "--payload",
        "-",
        "--kind",
        "resource",
        "--reversible",
        "yes",
    ]
    words += [
        "--why",
        "The loss spiked at step 130 (simulated)",
        "--effect",
        "16 cards, one running job",
        "--undo",
        "stop it and resume from step 150",
        "--evidence",
        "log=train.log",
    ]
    return str(trainflow.call("approval", "request", TASK, *words, stdin=json.dumps(PAYLOAD))["approval"]["id"])


def report_analysis(trainflow: Trainflow, log: Path) -> None:
    """Report on the second task, with the log as evidence."""
    words = [
        "--kind",
        "analysis",
        "--status",
        "complete",
        "--evidence",
        str(log),
        "--summary",
        "Idle leads: input wait between steps (simulated)",
    ]
    trainflow.call("report", "add", SECOND_TASK, *words)


def live(root: Path, log: Path) -> None:
    """Play the agent beside a person until standard input closes: asks, waits for the answer, then requests the restart."""
    trainflow = Trainflow(root)
    answer_guidance(trainflow)
    report_analysis(trainflow, log)
    if ended_within(6):
        return
    waiting = _asked_before(trainflow) or ask(trainflow, blocking=True)
    while not ended_within(3):
        answer_guidance(trainflow)
        asked = trainflow.call("question", "list", "--task", TASK)["questions"]
        if any(q["id"] == waiting and q["state"] == "answered" for q in asked):
            break
    else:
        return
    pending = request(trainflow)
    while not ended_within(3):
        answer_guidance(trainflow)
        state = trainflow.call("approval", "show", pending)["approval"]["state"]
        if state == "approved":
            trainflow.call("approval", "consume", pending, "--payload", "-", stdin=json.dumps(PAYLOAD))
        if state not in ("pending", "approved"):
            break
    while not ended_within(5):
        answer_guidance(trainflow)


def _asked_before(trainflow: Trainflow) -> str | None:
    # A demo that is opened again goes on with the question that still waits.
    asked = trainflow.call("question", "list", "--task", TASK, "--open")["questions"]
    return next((str(q["id"]) for q in asked if q["blocking"]), None)


if __name__ == "__main__":
    live(Path(sys.argv[1]), Path(sys.argv[2]))
