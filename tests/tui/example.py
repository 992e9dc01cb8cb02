"""A workspace for pictures: the same ids, times and numbers wherever it is made. Used by the goldens and the documentation."""

from __future__ import annotations

import hashlib
import itertools
import math
import os

import msgspec

from trainflow_tui.analysis.traces.records import HotspotKind
from trainflow_tui.collaboration import approvals, collector, guidance, questions, reports, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest, Evidence
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.nodes.records import Disk, Load, NodeStatus, Signal
from trainflow_tui.monitoring.status import RunEvent, RunSummary

HUMAN = Actor(door="cli", uid=1000, user="operator", tty="/dev/pts/7")
AGENT = Actor(door="cli", uid=1000, user="operator", agent="adapter-1")


def fill(workspace, clock, monkeypatch) -> None:
    """Two tasks with all that belongs to them; ids count up instead of being random."""
    numbers = itertools.count()
    monkeypatch.setattr(os, "urandom", lambda n: hashlib.sha256(str(next(numbers)).encode()).digest()[:n])
    ledger = workspace.ledger
    one = tasks.create(
        workspace, title="Adapt a 7B model", id="adapt-7b", objective="A trusted baseline on 16 cards", actor=HUMAN
    )
    tasks.create(
        workspace,
        title="Profile a mixture of experts",
        id="profile-moe",
        mode="analyze",
        objective="Find what makes the steps slow",
        actor=HUMAN,
    )
    clock.advance(40)
    sha = workspace.artifacts.add(b"checks")
    tasks.move(ledger, one.id, "prepared", actor=AGENT)
    reports.add(
        ledger,
        task=one.id,
        kind="environment",
        status="pass",
        summary="16 of 16 cards healthy, fabric at 200 Gb/s",
        evidence=[sha],
        executed=14,
        actor=AGENT,
    )
    tasks.move(ledger, one.id, "environment_checked", actor=AGENT)
    tasks.move(ledger, "profile-moe", "prepared", actor=AGENT)
    tasks.move(ledger, "profile-moe", "paused", actor=HUMAN, reason="The cards are lent out until Monday")
    folder = workspace.task_folder(one.id)
    (folder / "GUIDANCE.md").write_text(
        "## Keep every checkpoint until the baseline is trusted\n\nAlso those before a resume.\n\n"
        "## Tell me before the learning rate changes\n\n## 学习率变化前先告诉我\n"
    )
    (folder / "QUESTIONS.md").write_text(
        "## Q1: Which rank waits longest in the all-reduce?\n\n## Q2: How long does a checkpoint take?\n"
    )
    collector.collect(
        workspace, actor=Actor(door="watch"), reader=SettledReader(clock=_Later(clock), sleep=lambda _: None)
    )
    items = guidance.listed(ledger, task=one.id)
    guidance.add_receipt(
        ledger, task=one.id, item=items[0].id, state="applied", note="kept under ckpt/all", actor=AGENT, agent="x"
    )
    guidance.add_receipt(ledger, task=one.id, item=items[1].id, state="seen", note="", actor=AGENT, agent="x")
    questions.answer(ledger, "Q1", "Rank 5: it waits 3.1 ms of each step.", actor=AGENT, agent="x", task=one.id)
    clock.advance(300)
    questions.ask(
        ledger,
        task=one.id,
        title="The loss jumped at step 130. Lower the rate, or skip the batch?",
        body="",
        blocking=True,
        actor=AGENT,
    )
    _approvals(ledger, one.id)
    _measured(workspace, one.id)


class _Later:
    """A clock an hour ahead of the files' own times, so that they count as at rest."""

    def __init__(self, clock) -> None:
        self._clock = clock

    def now(self):
        import datetime

        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)

    def monotonic(self):
        return self._clock.monotonic()


def _approvals(ledger, task) -> None:
    payload = CommandPayload(
        argv=["torchrun", "--nproc-per-node", "8", "pretrain_gpt.py", "--load", "/ckpt/step-150", "--lr", "1.5e-4"],
        cwd="/runs/adapt",
        hosts=["dcu-01", "dcu-02"],
        env_names=["HIP_VISIBLE_DEVICES", "NCCL_DEBUG"],
        container="train",
        user="train",
        timeout_s=86400,
    )
    restart = ApprovalRequest(
        task=task,
        title="Restart from step 150 with half the learning rate",
        payload=payload,
        kind="resource",
        why="The loss spiked at step 130",
        effect="16 cards, one running job",
        reversible="yes",
        undo="stop it and resume from step 150",
        evidence=[Evidence(label="log", ref="train.log")],
    )
    cleanup = ApprovalRequest(
        task=task,
        title="Remove checkpoints before step 100",
        payload=CommandPayload(argv=["rm", "-r", "--", "/ckpt/step-50"], hosts=["dcu-01"]),
        kind="cleanup",
        reversible="no",
        why="The disk is 94 % full",
    )
    denied = approvals.request(
        ledger, msgspec.structs.replace(restart, title="Restart with the same rate"), actor=AGENT
    )
    approvals.decide(ledger, denied.id, "deny", by=HUMAN, agent=None, comment="It would jump again")
    approvals.request(ledger, restart, actor=AGENT)
    approvals.request(ledger, cleanup, actor=AGENT)


def _measured(workspace, task) -> None:
    ledger = workspace.ledger
    recent = [
        (
            n,
            2.1 + 6.2 * math.exp(-n / 120) + (3.0 * math.exp(-(n - 130) / 3) if 130 <= n < 140 else 0),
            405 + 8 * math.sin(n / 3),
        )
        for n in range(1, 216)
    ]
    events = [
        RunEvent(type="loss_spike", line=131, step=130, text="loss 4.2 -> 7.3", at="2026-03-04T02:58:10.000000Z"),
        RunEvent(type="checkpoint_saved", line=152, step=150, at="2026-03-04T02:58:31.000000Z"),
        RunEvent(type="resume", line=173, step=150, text="attempt 2", at="2026-03-04T03:00:07.000000Z"),
    ]
    summary = RunSummary(
        framework="megatron-lm",
        state="following",
        step=215,
        total_steps=2000,
        attempt=2,
        loss=recent[-1][1],
        throughput=recent[-1][2],
        throughput_unit="TFLOP/s/GPU",
        samples=235,
        last_sample_at="2026-03-04T03:03:40.000000Z",
        recent=recent,
        events=events,
    )
    trace = {"path": "/runs/adapt/rank0of2.json.gz", "sha256": "ab" * 32, "task": task, "summary": _trace_summary()}
    with ledger.transaction() as transaction:
        transaction.append("run.added", "adapt-7b-train", {"task": task, "path": "/runs/adapt/train.log"}, actor=HUMAN)
        status.store_run(transaction, ledger, "adapt-7b-train", tail={}, summary=summary)
        transaction.append("trace.added", "abababababab", trace, actor=HUMAN)
        transaction.append("node.added", "dcu-01", {"target": "local"}, actor=HUMAN)
        status.store_node(transaction, ledger, "dcu-01", _node())


def _trace_summary():
    split = {
        "total_ns": 74183120,
        "busy_ns": 72328542,
        "idle_ns": 1854578,
        "compute_ns": 69212851,
        "communication_ns": 11572566,
        "exposed_communication_ns": 3041508,
        "memcpy_ns": 118693,
        "exposed_memcpy_ns": 74183,
    }
    rows = [
        (HotspotKind.KERNEL, "gemm_bf16_128x256_tn", 48, 22774218),
        (HotspotKind.KERNEL, "gemm_bf16_256x128_tn", 48, 20326175),
        (HotspotKind.KERNEL, "attention_backward_bf16_d128_causal", 24, 9717989),
        (HotspotKind.COMMUNICATION, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 24, 7418312),
        (HotspotKind.KERNEL, "attention_forward_bf16_d128_causal", 24, 4970269),
        (HotspotKind.IDLE, "idle", 15, 1854578),
    ]
    covered, hotspots = 0, []
    for kind, name, count, attributed in rows:
        covered += attributed
        row = {"kind": kind.value, "name": name, "count": count, "total_ns": attributed, "attributed_ns": attributed}
        hotspots.append(
            row | {"share": attributed / split["total_ns"], "cumulative_share": covered / split["total_ns"]}
        )
    return {
        "devices": [{"device": 0, "split": split, "hotspots": hotspots, "hotspot_rows": len(hotspots)}],
        "quality": {},
    }


def _node():
    signals = (
        Signal(check="clock", state="ok", value=0.0, unit="s", text="the node's clock is 0.0 s from ours"),
        Signal(check="memory", state="ok", value=61.0, unit="%", text="61.0 % of the memory is available"),
        Signal(check="disk /ckpt", state="warning", value=94.0, unit="%", text="/ckpt is 94.0 % full"),
        Signal(check="accelerators", state="ok", value=8.0, unit="", text="8 accelerators of Hygon"),
        Signal(check="vendor_tool", state="unknown", value=None, unit="", text="hy-smi did not answer in 10 s"),
    )
    return NodeStatus(
        name="dcu-01",
        boot_id="b",
        kernel="5.10.0",
        uptime_s=864000.0,
        cpus=128,
        load=Load(one_minute=42.1, five_minutes=40.0, fifteen_minutes=39.0),
        mem_total_bytes=1 << 40,
        mem_available_bytes=int(0.61 * (1 << 40)),
        pressure_pct=None,
        disks=(
            Disk(mount="/ckpt", device="nvme0n1", total_bytes=1 << 42, used_bytes=int(0.94 * (1 << 42)), used_pct=94.0),
        ),
        accelerators=None,
        devices=None,
        tools=("hy-smi",),
        clock_offset_s=0.0,
        signals=signals,
        collected_at="2026-03-04T03:03:00.000000Z",
        source="local",
    )
