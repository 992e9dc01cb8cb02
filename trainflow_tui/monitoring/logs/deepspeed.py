"""DeepSpeed's own two metric lines, the optimizer's and the timer's, as they stand inside the logs of others."""

from __future__ import annotations

import re

from trainflow_tui.monitoring.logs.records import AuxRecord, Value

MARKERS = (b"SamplesPerSec=", b", skipped=")

# logging.py log_dist and timer.py stop: `epoch=0/micro_step=199/global_step=199, …`, before 0.8 `0/40, …`.
_OPTIMIZER = re.compile(r"\bstep=(?P<step>\d+), skipped=(?P<skipped>\d+), lr=\[(?P<lr>[^\]]*)\]")
_TIMER = re.compile(
    r"(?:global_step=|\b\d+/)(?P<step>\d+), (?:RunningAvgSamplesPerSec=(?P<average>[^,\s]+), )?"
    r"(?:Curr)?SamplesPerSec=(?P<now>[^,\s]+), "
    r"MemAllocated=(?P<allocated>[\d.]+)GB, MaxMemAllocated=(?P<highest>[\d.]+)GB"
)


def parse_line(line: int, text: str) -> AuxRecord | None:
    """The figures of one DeepSpeed line; None for any other line.

    `skipped_total` is cumulative, unlike Megatron's count for the window. `samples_per_s` of the timer and of the
    trainer differ: both are kept, each with its source.
    """
    try:
        if "skipped=" in text and (match := _OPTIMIZER.search(text)):
            return _optimizer(line, match)
        if "SamplesPerSec=" in text and (match := _TIMER.search(text)):
            return _timer(line, match)
    except ValueError:
        return None
    return None


def _optimizer(line: int, match: re.Match[str]) -> AuxRecord:
    rates = [float(part) for part in match["lr"].split(",") if part.strip()]
    values: dict[str, Value] = {"skipped_total": int(match["skipped"]), "lr": rates}
    return AuxRecord(line=line, source="deepspeed optimizer", step=int(match["step"]), values=values)


def _timer(line: int, match: re.Match[str]) -> AuxRecord:
    values: dict[str, Value] = {}
    if match["average"]:
        values["samples_per_s_running_avg"] = float(match["average"])
    values["samples_per_s"] = float(match["now"])
    values["mem_allocated_gb"] = float(match["allocated"])
    values["mem_max_allocated_gb"] = float(match["highest"])
    return AuxRecord(line=line, source="deepspeed timer", step=int(match["step"]), values=values)
