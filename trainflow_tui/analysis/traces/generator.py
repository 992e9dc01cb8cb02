"""Small synthetic traces for the demo and for tests: data-parallel training steps with the exact answer beside them.

Every rank computes forward and backward; behind each backward layer a bucket is reduced on a second stream while the
next layer computes. A collective begins when its own rank is ready and ends everywhere at once, so a slow rank shows as
long communication on the others. Standard library only; the same arguments give the same bytes.
"""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from trainflow_tui.analysis.traces.records import TimeSplit

LAYERS = 4
COMPUTE_STREAM, COPY_STREAM, REDUCE_STREAM = 7, 14, 22
BASE_TIME_NS = 1_767_225_600 * 10**9

_FORWARD = (
    ("rmsnorm_forward_bf16", "model::rmsnorm", 31_000),
    ("gemm_bf16_256x128_tn", "aten::mm", 268_000),
    ("attention_forward_bf16_d128_causal", "model::attention", 190_000),
    ("gemm_bf16_128x256_tn", "aten::mm", 342_000),
    ("fused_silu_multiply_bf16", "model::silu_multiply", 47_000),
)
_OPTIMIZER = (("adamw_update_multi_tensor", "Optimizer.step#AdamW.step", 96_000),) * 3
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
_HOST_PROCESS = _HOST_THREAD = 4100
_BACKWARD_THREAD = 4187


class _Lane(NamedTuple):
    """Where work is issued from and where it runs."""

    category: str
    stream: int
    thread: int


_COPY = _Lane("gpu_memcpy", COPY_STREAM, _HOST_THREAD)
_COMPUTE = _Lane("kernel", COMPUTE_STREAM, _HOST_THREAD)
_BACKWARD = _Lane("kernel", COMPUTE_STREAM, _BACKWARD_THREAD)
_CLEAR = _Lane("gpu_memset", COMPUTE_STREAM, _HOST_THREAD)


class SyntheticTruth(msgspec.Struct, frozen=True, kw_only=True):
    """What an exact reader finds in a synthetic trace."""

    split: TimeSplit
    names: dict[str, tuple[int, int]]
    """Per device event name: count and sum of durations in ns."""
    events: int
    """All events of the file, of every phase."""


@dataclass(frozen=True, slots=True)
class _DeviceEvent:
    category: str
    name: str
    stream: int
    start_ns: int
    end_ns: int


@dataclass(slots=True)
class _Rank:
    """One rank as it runs: its clocks, and the events as they will stand in the file."""

    number: int
    noise: random.Random
    host_ns: int = 0
    stream_free_ns: Counter[int] = field(default_factory=Counter)
    correlation: int = 9000
    written: list[dict[str, Any]] = field(default_factory=list)
    device: list[_DeviceEvent] = field(default_factory=list)

    @property
    def slowness(self) -> float:
        """Odd ranks compute a little slower, so there is something to find."""
        return 1.0 + 0.06 * (self.number % 2)

    def jittered(self, nominal_ns: int) -> int:
        return max(400, int(nominal_ns * self.slowness * self.noise.uniform(0.93, 1.09)))

    def host(self, category: str, name: str, start_ns: int, duration_ns: int, thread: int, **args: Any) -> None:
        self._write(category, name, start_ns, duration_ns, _HOST_PROCESS, thread, args)

    def launch(self, lane: _Lane, name: str, op: str, nominal_ns: int) -> None:
        """Issue one piece of device work from the host; it runs as soon as its stream is free."""
        self.correlation += 1
        call_ns = self.host_ns + self.noise.randrange(1_500, 3_500)
        op_ns = self.noise.randrange(6_000, 14_000)
        self.host("cpu_op", op, self.host_ns, op_ns, lane.thread, **{"External id": self.correlation})
        call = "cudaLaunchKernel" if lane.category == "kernel" else "cudaMemcpyAsync"
        self.host("cuda_runtime", call, call_ns, 2_100, lane.thread, correlation=self.correlation)
        self._flow("s", call_ns, _HOST_PROCESS, lane.thread)
        self.host_ns += op_ns + self.noise.randrange(200, 900)
        start_ns = max(call_ns + 4_000, self.stream_free_ns[lane.stream] + 300)
        self.run(lane.category, name, lane.stream, start_ns, start_ns + self.jittered(nominal_ns))

    def run(self, category: str, name: str, stream: int, start_ns: int, end_ns: int, **args: Any) -> None:
        """Put device work on a stream at known times."""
        self.stream_free_ns[stream] = end_ns
        self.device.append(_DeviceEvent(category, name, stream, start_ns, end_ns))
        about = {"device": self.number, "stream": stream, "correlation": self.correlation, **args}
        about["External id"] = self.correlation
        if category == "kernel":
            about |= {"grid": [132, 1, 1], "block": [256, 1, 1]}
        else:
            about["bytes"] = 4 << 20
        self._write(category, name, start_ns, end_ns - start_ns, self.number, stream, about)
        self._flow("f", start_ns, self.number, stream)

    def _write(
        self, category: str, name: str, start_ns: int, duration_ns: int, process: int, thread: int, args: Any
    ) -> None:
        self.written.append(
            {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread}
            | {"ts": start_ns, "dur": duration_ns, "args": args}
        )

    def _flow(self, phase: str, at_ns: int, process: int, thread: int) -> None:
        self.written.append(
            {"ph": phase, "id": self.correlation, "pid": process, "tid": thread, "ts": at_ns}
            | {"cat": "ac2g", "name": "ac2g"}
            | ({"bp": "e"} if phase == "f" else {})
        )


def write_synthetic_trace(
    target: str | Path | BinaryIO, *, rank: int, world_size: int, steps: int, seed: int
) -> SyntheticTruth:
    """Write the trace of one rank and return what is in it, worked out event by event beside the trace.

    Args:
        target: a path (gzip if it ends in .gz) or a binary stream.
        rank: whose trace; 0 to world_size - 1.
        world_size: ranks that take part in the collectives; all are simulated.
        steps: training steps, about 60 device events each.
        seed: of the durations.
    """
    ranks = [_Rank(number, random.Random(f"{seed}/{number}")) for number in range(world_size)]
    network = random.Random(f"{seed}/network")
    for step in range(steps):
        _run_step(ranks, network, step + 3)
    chosen = ranks[rank]
    body = b"".join(_document(chosen, rank, world_size))
    if isinstance(target, str | Path):
        path = Path(target)
        path.write_bytes(gzip.compress(body, mtime=0) if path.suffix == ".gz" else body)
    else:
        target.write(body)
    return SyntheticTruth(
        split=_exact_split(chosen.device), names=_exact_names(chosen.device), events=len(chosen.written)
    )


def _run_step(ranks: list[_Rank], network: random.Random, number: int) -> None:
    begun = [rank.host_ns for rank in ranks]
    buckets = [_compute(rank) for rank in ranks]
    reduced_ns = 0
    for bucket in range(LAYERS):
        starts = [
            max(ready[bucket], rank.stream_free_ns[REDUCE_STREAM] + 300)
            for rank, ready in zip(ranks, buckets, strict=True)
        ]
        reduced_ns = max(starts) + network.randrange(380_000, 620_000)
        for rank, start_ns in zip(ranks, starts, strict=True):
            about = {"Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 1 << 23}
            about |= {"Group size": len(ranks), "Process Group Name": "0"}
            rank.correlation += 1
            rank.run("kernel", _ALL_REDUCE, REDUCE_STREAM, start_ns, reduced_ns, **about)
    for rank, begin_ns in zip(ranks, begun, strict=True):
        rank.stream_free_ns[COMPUTE_STREAM] = max(rank.stream_free_ns[COMPUTE_STREAM], reduced_ns)
        _optimize(rank)
        rank.host_ns = max(rank.host_ns, *rank.stream_free_ns.values())
        rank.host("user_annotation", f"ProfilerStep#{number}", begin_ns, rank.host_ns - begin_ns, _HOST_THREAD)
        rank.host_ns += rank.noise.randrange(700_000, 1_500_000)  # the next batch is being prepared


def _compute(rank: _Rank) -> list[int]:
    """Forward and backward of one step; when each layer's gradients are ready to be reduced."""
    rank.launch(_COPY, "Memcpy HtoD (Pinned -> Device)", "aten::copy_", 58_000)
    for _ in range(LAYERS):
        for name, op, nominal_ns in _FORWARD:
            rank.launch(_COMPUTE, name, op, nominal_ns)
    rank.launch(_COPY, "Memcpy DtoH (Device -> Pinned)", "aten::item", 9_000)
    ready = []
    for _ in range(LAYERS):
        for name, op, nominal_ns in reversed(_FORWARD):
            rank.launch(_BACKWARD, name.replace("forward", "backward"), f"{op}Backward", 2 * nominal_ns)
        ready.append(rank.stream_free_ns[COMPUTE_STREAM] + 2_000)
    return ready


def _optimize(rank: _Rank) -> None:
    for name, op, nominal_ns in _OPTIMIZER:
        rank.launch(_COMPUTE, name, op, nominal_ns)
    rank.launch(_CLEAR, "Memset (Device)", "aten::zero_", 6_000)


def _document(rank: _Rank, number: int, world_size: int) -> Iterator[bytes]:
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": number, "name": "Synthetic accelerator", "totalGlobalMem": 64 << 30}],
        "distributedInfo": {"backend": "nccl", "rank": number, "world_size": world_size},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_TIME_NS,
    }
    yield json.dumps(head, indent=2)[:-2].encode() + b',\n  "traceEvents": [\n'
    for index, event in enumerate(rank.written):
        yield (b"  " if not index else b",\n  ") + _event_text(event)
    yield b'\n  ],\n  "traceName": "synthetic"\n}\n'


def _event_text(event: dict[str, Any]) -> bytes:
    """One event; times as microseconds with three decimals, digit by digit from the integer."""
    fields = []
    for key, value in event.items():
        text = f"{value // 1000}.{value % 1000:03d}" if key in ("ts", "dur") else json.dumps(value)
        fields.append(f'"{key}": {text}')
    return ("{" + ", ".join(fields) + "}").encode()


def _exact_names(events: Iterable[_DeviceEvent]) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for event in events:
        count, total_ns = found.get(event.name, (0, 0))
        found[event.name] = (count + 1, total_ns + event.end_ns - event.start_ns)
    return found


def _exact_split(events: list[_DeviceEvent]) -> TimeSplit:
    """The split by walking from bound to bound with a count of what is active."""
    changes: dict[int, Counter[str]] = {}
    for event in events:
        kind = {"gpu_memcpy": "copy"}.get(event.category, "reduce" if event.name == _ALL_REDUCE else "compute")
        changes.setdefault(event.start_ns, Counter())[kind] += 1
        changes.setdefault(event.end_ns, Counter())[kind] -= 1
    spent: Counter[str] = Counter()
    active: Counter[str] = Counter()
    bounds = sorted(changes)
    for begin, end in pairwise(bounds):
        active.update(changes[begin])
        running = {kind for kind, count in active.items() if count}
        for kind in running or {"idle"}:
            spent[kind] += end - begin
        spent["exposed reduce"] += (end - begin) * ("reduce" in running and "compute" not in running)
        spent["exposed copy"] += (end - begin) * (running == {"copy"})
    total_ns = bounds[-1] - bounds[0] if bounds else 0
    return TimeSplit(
        total_ns=total_ns,
        busy_ns=total_ns - spent["idle"],
        idle_ns=spent["idle"],
        compute_ns=spent["compute"],
        communication_ns=spent["reduce"],
        exposed_communication_ns=spent["exposed reduce"],
        memcpy_ns=spent["copy"],
        exposed_memcpy_ns=spent["exposed copy"],
    )
