"""A simulated training job: writes a Megatron-format log at training speed, or a whole story at once.

The story: a falling loss, a checkpoint every 50 steps, a spike at step 130, a stall after step 170, a resume from step 150.
"""

from __future__ import annotations

import math
import os
import random
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TextIO

from trainflow_tui.demo.parent import ended_within

TOTAL_STEPS: Final = 2000
BATCH: Final = 256
STEP_TIME_S: Final = 1.0
CHECKPOINT_EVERY: Final = 50
SPIKE_STEP: Final = 130
STALL_AFTER: Final = 170
STALL_S: Final = 95.0
RESUME_FROM: Final = 150


def loss_at(step: int, dice: random.Random) -> float:
    """A plausible course: exponential decay with noise, and one spike that dies away within ten steps."""
    spike = 3.2 * math.exp(-(step - SPIKE_STEP) / 3) if 0 <= step - SPIKE_STEP < 10 else 0.0
    return 2.1 + 6.2 * math.exp(-step / 220) + spike + dice.gauss(0, 0.03)


def line(step: int, at: datetime, dice: random.Random) -> str:
    """One metric line in Megatron-LM's format."""
    milliseconds = 1000 * STEP_TIME_S * (1 + abs(dice.gauss(0, 0.02)))
    rate = 3e-4 * min(1.0, step / 100)
    return (
        f" [{at:%Y-%m-%d %H:%M:%S}] iteration {step:8d}/{TOTAL_STEPS:8d} | consumed samples: {step * BATCH:12d} |"
        f" elapsed time per iteration (ms): {milliseconds:.1f} | throughput per GPU (TFLOP/s/GPU): {412_000 / milliseconds:.1f} |"
        f" learning rate: {rate:.6E} | global batch size: {BATCH:5d} | lm loss: {loss_at(step, dice):.6E} | loss scale: 1.0 |"
        f" grad norm: {abs(dice.gauss(1.0, 0.2)):.3f} | number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def story(first: int, start: datetime, dice: random.Random) -> Iterator[tuple[float, str]]:
    """Seconds to wait and the line to write then, from step `first` on, with the stall and the resume in their places."""
    at, step = start, first
    while step <= TOTAL_STEPS:
        at += timedelta(seconds=STEP_TIME_S)
        yield STEP_TIME_S, line(step, at, dice)
        if step % CHECKPOINT_EVERY == 0:
            yield 0.0, f"  successfully saved checkpoint from iteration {step:7d} to /simulated/ckpt [ t 1/1, p 1/1 ]"
        if step == STALL_AFTER and first <= RESUME_FROM:
            at += timedelta(seconds=STALL_S)
            yield (
                STALL_S,
                f"  successfully loaded checkpoint from /simulated/ckpt [ t 1/1, p 1/1 ] at iteration {RESUME_FROM}",
            )
            step, first = RESUME_FROM, STALL_AFTER
        step += 1


def write_story(path: Path, *, steps: int, start: datetime, seed: int = 7) -> None:
    """The first `steps` metric lines at once, with the times that they would have had."""
    dice = random.Random(seed)
    written = 0
    with _open(path) as stream:
        stream.write("[simulated] this log is written by the demo, no training runs\n")
        for _, text in story(1, start, dice):
            stream.write(text + "\n")
            written += "] iteration " in text
            if written >= steps:
                break


def follow_story(path: Path, *, first: int) -> None:
    """Write on at training speed until standard input closes or the run is complete."""
    dice = random.Random(first)
    with _open(path) as stream:
        if first > 1:
            stream.write(
                f"  successfully loaded checkpoint from /simulated/ckpt [ t 1/1, p 1/1 ] at iteration {first - 1}\n"
            )
        for wait, text in story(first, datetime.now().astimezone(), dice):
            if ended_within(wait):
                return
            stream.write(text + "\n")
            stream.flush()


def _open(path: Path) -> TextIO:
    return open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))


if __name__ == "__main__":
    follow_story(Path(sys.argv[1]), first=int(sys.argv[2]))
