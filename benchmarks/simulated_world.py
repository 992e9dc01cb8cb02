"""Everything around a screen, a simulated second at a time: the job's log, the agent, the person's files, and the collector's own loop.

As a process (`python -m benchmarks.simulated_world ROOT START PACE`) it does one second for each line on its standard input and
answers with a line, until it is closed.
"""

from __future__ import annotations

import os
import random
import socket
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from trainflow_tui import watching
from trainflow_tui.clock import ManualClock, from_iso, to_iso
from trainflow_tui.collaboration import approvals, guidance, questions, reports, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.demo import job
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import follow, node_checks
from trainflow_tui.workspace import Workspace

TASK: Final = "adapt-7b"
AGENT: Final = Actor(door="cli", uid=os.getuid(), user="operator", agent="soak-agent (simulated)")
HUMAN: Final = Actor(door="tui", uid=os.getuid(), user="operator", tty="/dev/pts/0")
STEPS: Final = 100_000
"""A run that is not complete before the measurement is."""


class World:
    """A workspace in which a second passes when it is told to. Its loop is that of `trainflow watch`, which holds the lease.

    `pace` steps a second are trained, and what people and agents do comes as many times as often.
    """

    def __init__(self, root: Path, start: datetime, *, pace: int = 1) -> None:
        job.TOTAL_STEPS = STEPS  # type: ignore[misc]
        self.clock = ManualClock(start)
        self.second = 0
        self._pace, self._step = pace, 0
        self._workspace = Workspace.open(root, create=True, clock=self.clock)
        self._dice = random.Random(5)
        self._log = open(root / "train.log", "a", encoding="utf-8")  # noqa: SIM115  closed by `close`
        self._waiting: dict[str, Callable[[], object]] = {}
        self._prepare(root)
        owner = f"{socket.gethostname()}:{os.getpid()}"
        lease = leases.acquire(self._workspace.ledger, watching.LEASE, owner, ttl_s=watching.LEASE_TTL_S)
        assert lease is not None
        self._lease = lease
        self._loop = watching._Loop(self._workspace, lease, with_parent=False)
        self._loop.end()  # the file watcher goes by the machine's time
        self._loop._watcher = None

    def _prepare(self, root: Path) -> None:
        w = self._workspace
        tasks.create(w, title="Adapt a 7B model (simulated)", id=TASK, objective="A trusted baseline", actor=HUMAN)
        tasks.create(
            w, title="Profile (simulated)", id="profile-moe", mode="analyze", objective="Why slow", actor=HUMAN
        )
        tasks.move(w.ledger, TASK, "prepared", actor=AGENT)
        self._train()
        follow.add_run(w, root / "train.log", task=TASK, id="train", actor=HUMAN)
        node_checks.check(w, actor=HUMAN)

    def tick(self) -> None:
        """One second: the job's lines, what the agent and the person do in it, a turn of the collector."""
        self.second += 1
        self.clock.advance(1)
        self._train()
        for period, act in ((180, self._ask), (300, self._request), (400, self._guide), (900, self._report)):
            every = period // self._pace
            if self.second % every == every // 2:
                act()
        for due in [name for name in self._waiting if int(name.rpartition("@")[2]) <= self.second]:
            self._waiting.pop(due)()
        self._loop._turn()

    def close(self) -> None:
        """Give the lease back and close what was opened."""
        leases.release(self._workspace.ledger, self._lease)
        self._log.close()
        self._workspace.close()

    # What happens

    def _train(self) -> None:
        for _ in range(self._pace):
            self._step += 1
            self._log.write(job.line(self._step, self.clock.now().astimezone(), self._dice) + "\n")
            if self._step % job.CHECKPOINT_EVERY == 0:
                saved = f"  successfully saved checkpoint from iteration {self._step:7d} to /simulated/ckpt [ t 1/1, p 1/1 ]"
                self._log.write(saved + "\n")
        self._log.flush()

    def _later(self, seconds: int, name: str, act: Callable[[], object]) -> None:
        self._waiting[f"{name}@{self.second + seconds // self._pace}"] = act

    def _ask(self) -> None:
        ledger = self._workspace.ledger
        asked = questions.ask(
            ledger, task=TASK, title=f"Step {self.second}: lower the rate?", body="", blocking=True, actor=AGENT
        )
        self._later(
            60, asked.id, lambda: questions.answer(ledger, asked.id, "Yes.", actor=HUMAN, agent=None, task=TASK)
        )

    def _request(self) -> None:
        ledger = self._workspace.ledger
        payload = CommandPayload(argv=["torchrun", "--load", f"/simulated/step-{self.second}"], hosts=["dcu-01"])
        wanted = ApprovalRequest(task=TASK, title=f"Restart from step {self.second}", payload=payload, reversible="yes")
        asked = approvals.request(ledger, wanted, actor=AGENT)
        self._later(
            90, asked.id, lambda: approvals.decide(ledger, asked.id, "approve", by=HUMAN, agent=None, input="key")
        )
        self._later(100, f"{asked.id}-use", lambda: approvals.consume(ledger, asked.id, payload, actor=AGENT))

    def _guide(self) -> None:
        path = self._workspace.task_folder(TASK) / "GUIDANCE.md"
        with path.open("a", encoding="utf-8") as stream:
            stream.write(f"\n## Keep the checkpoint of step {self.second}\n\nAlso after a resume.\n")
        self._loop._next_scan = 0.0  # as the hint of an edit does
        self._later(120, f"seen-{self.second}", self._see)

    def _see(self) -> None:
        ledger = self._workspace.ledger
        for item in guidance.listed(ledger, task=TASK):
            if item.state == "collected":
                guidance.add_receipt(ledger, task=TASK, item=item.id, state="seen", note="", actor=AGENT, agent="soak")

    def _report(self) -> None:
        evidence = self._workspace.artifacts.add(f"simulated, second {self.second}".encode())
        reports.add(
            self._workspace.ledger,
            task="profile-moe",
            kind="analysis",
            status="complete",
            summary=f"Idle leads at second {self.second} (simulated)",
            evidence=[evidence],
            actor=AGENT,
        )


def main(root: str, start: str, pace: str) -> None:
    """A second for each line."""
    world = World(Path(root), from_iso(start), pace=int(pace))
    print(to_iso(world.clock.now()), flush=True)
    for _ in sys.stdin:
        world.tick()
        print(world.second, flush=True)
    world.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
