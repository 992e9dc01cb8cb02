"""Lines that tell of an event in any training log: checkpoints, signals, failed workers, watchdogs, memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.records import LogEvent

Fields = dict[str, object]


class _Pattern(NamedTuple):
    type: str
    marker: str
    regex: re.Pattern[str]
    fields: Callable[[re.Match[str]], Fields]


def _integers(match: re.Match[str]) -> Fields:
    return {name: int(value) for name, value in match.groupdict().items() if value is not None}


def _words(match: re.Match[str]) -> Fields:
    return {name: value for name, value in match.groupdict().items() if value is not None}


def _mixed(match: re.Match[str]) -> Fields:
    names = {"pg", "op"}
    return {
        name: value if name in names else int(value) for name, value in match.groupdict().items() if value is not None
    }


def _overflow(match: re.Match[str]) -> Fields:
    scale = float(match["scale"])
    new = float(match["new"]) if match["new"] else scale
    # At the smallest scale a further overflow cannot be answered any more: every step is skipped from here on.
    severity: Fields = {"severity": "critical"} if new >= scale and scale <= 1 else {}
    return {"loss_scale": _whole(scale), "new_loss_scale": _whole(new)} | severity


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() else number


# Sources of the wordings: Megatron-LM checkpointing.py; torch distributed/elastic/multiprocessing/api.py;
# DeepSpeed loss_scaler.py; c10d ProcessGroupNCCL.cpp; Slurm; the kernel; CPython faulthandler; ROCr.
_PATTERNS = (
    _Pattern(
        "checkpoint_saved",
        "successfully saved checkpoint",
        re.compile(r"successfully saved checkpoint (?:from|at) iteration\s+(?P<step>\d+)"),
        _integers,
    ),
    _Pattern("signal", "closing signal", re.compile(r"closing signal (?P<signal>SIG[A-Z0-9]+)"), _words),
    _Pattern(
        "worker_failed",
        "(exitcode: ",
        re.compile(r"\(exitcode: (?P<exitcode>-?\d+)\) local_rank: (?P<local_rank>\d+)(?: \(pid: (?P<pid>\d+)\))?"),
        _integers,
    ),
    _Pattern(
        "overflow",
        "OVERFLOW!",
        re.compile(r"OVERFLOW!.*?loss scale: (?P<scale>[\d.eE+]+)(?:.*?\breducing to (?P<new>[\d.eE+]+))?"),
        _overflow,
    ),
    _Pattern(
        "nccl_timeout",
        "Watchdog caught collective operation timeout",
        re.compile(
            r"\[Rank (?P<rank>\d+)\] Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<seq>\d+), "
            r"OpType=(?P<op>\w+),.*?Timeout\(ms\)=(?P<timeout_ms>\d+)\) ran for (?P<ran_ms>\d+)"
        ),
        _mixed,
    ),
    _Pattern(
        "nccl_work_state",
        "detected by watchdog at work",
        re.compile(
            r"\[PG (?:ID )?(?P<pg>\d+)[^\]]*? Rank (?P<rank>\d+)\].*?watchdog at work: (?P<failed>\d+), "
            r"last enqueued NCCL work: (?P<last_enqueued>\d+), last completed NCCL work: (?P<last_completed>\d+)"
        ),
        _mixed,
    ),
    _Pattern(
        "nccl_watchdog_stuck",
        "watchdog got stuck",
        re.compile(r"\[PG (?:ID )?(?P<pg>\d+)[^\]]*? Rank (?P<rank>\d+)\].*?got stuck for (?P<seconds>\d+) seconds"),
        _mixed,
    ),
    _Pattern(
        "out_of_memory",
        "ut of memory",
        re.compile(r"(?P<kind>\w+ out of memory|Out of memory: Killed process \d+|OutOfMemoryError)"),
        _words,
    ),
    _Pattern("out_of_memory", "oom_kill", re.compile(r"(?P<kind>oom_kill) event"), _words),
    _Pattern("fatal_error", "Segmentation fault", re.compile(r"(?P<reason>Segmentation fault)"), _words),
    _Pattern("fatal_error", "Fatal Python error", re.compile(r"(?P<reason>Fatal Python error: .{0,120})"), _words),
    _Pattern(
        "fatal_error", "Memory access fault", re.compile(r"(?P<reason>Memory access fault by GPU.{0,120})"), _words
    ),
)

MARKERS = tuple(dict.fromkeys(pattern.marker.encode() for pattern in _PATTERNS))

FAILURES = frozenset(
    {"worker_failed", "nccl_timeout", "nccl_work_state", "nccl_watchdog_stuck", "out_of_memory", "fatal_error"}
)
"""Events that are worth an answer even where no training record was recognised."""


READ_CHARACTERS = 4096
"""How far into a line its event is looked for: several patterns are quadratic in the length of a hostile line."""


def scan_event(line: int, text: str) -> LogEvent | None:
    """The event that `text` tells of, the first that fits; None for any other line.

    A rank that reports a collective timeout is its victim: suspects are the ranks that do not report or whose last
    completed work is lowest.
    """
    text = text[:READ_CHARACTERS]
    for pattern in _PATTERNS:
        if pattern.marker in text and (match := pattern.regex.search(text)):
            return LogEvent(type=pattern.type, line=line, fields=pattern.fields(match))
    return None


class FailureLines:
    """The adapter of last resort: no records, only events. Chosen where nothing else fits and a failure is told."""

    name = "failure-lines"
    markers = MARKERS

    def __init__(self) -> None:
        self._saw_collective = False

    @property
    def framework(self) -> str:
        """`pytorch-nccl` where the log holds watchdog lines, else `unknown`."""
        return "pytorch-nccl" if self._saw_collective else "unknown"

    @property
    def attempt_state(self) -> AttemptState:
        """Failure lines begin no attempt."""
        return AttemptState()

    def feed(self, line: int, text: str) -> list[LogEvent]:
        """The event of this line, if any."""
        event = scan_event(line, text)
        if event is None:
            return []
        self._saw_collective |= event.type.startswith("nccl_")
        return [event]

    def is_whole(self, text: str) -> bool:
        """A line without its newline is never taken."""
        return False
