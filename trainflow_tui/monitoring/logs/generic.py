"""Plain text metric lines without a framework: `iteration 18 loss 1.0`, `step: 20 loss: 2.345 lr: 1e-4`."""

from __future__ import annotations

import math
import re

import msgspec

from trainflow_tui.monitoring.logs import events
from trainflow_tui.monitoring.logs.attempts import Attempts, AttemptState
from trainflow_tui.monitoring.logs.numbers import DECIMAL_COMMA, AmbiguousNumber, read_number
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine, Value

_LONGEST = 4096
_HEAD = re.compile(
    r"\s*(?:\[?(?P<clock>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\]?\s+)?"
    r"(?:iteration|iter|global_step|step)\s*[:=]?\s*(?P<step>\d{1,18})(?:\s*/\s*(?P<total>\d{1,18}))?(?=[\s,:;]|$)[,:;]?"
)
_PAIR = re.compile(
    r"\s*([A-Za-z_][\w./-]*)(?:\s*[:=]\s*|\s+)([+-]?[\d.][\d.,eE+-]*|[+-]?(?:nan|inf|NaN|Inf|Infinity))(?=[\s;]|$)[;]?"
)

_CANONICAL = {
    "lr": "lr",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "gradnorm": "grad_norm",
    "tokens/s": "tokens_per_s",
    "samples/s": "samples_per_s",
    "epoch": "epoch",
    "val_loss": "val_loss",
}


class GenericTextAdapter:
    """Reads lines that consist of a step and `name value` pairs and nothing else.

    A line with any other word, unit or separator belongs to a format that we do not know; reading the part that looks
    familiar would give numbers without their unit.
    """

    name = "generic-text"
    markers = (b"iter", b"step", *events.MARKERS)
    framework = "generic"

    def __init__(self, attempts: AttemptState | None = None) -> None:
        self._attempts = Attempts(attempts)

    @property
    def attempt_state(self) -> AttemptState:
        """What the constructor needs to go on counting."""
        return self._attempts.state

    def is_whole(self, text: str) -> bool:
        """The last number may be cut: without its newline the line is not taken."""
        return False

    def feed(self, line: int, text: str) -> list[Item]:
        """The record, event or rejection that one line holds."""
        head = _HEAD.match(text) if len(text) <= _LONGEST else None
        pairs = None if head is None else _pairs(text[head.end() :])
        if head is None or pairs is None or not any("loss" in name.lower() for name in pairs):
            event = events.scan_event(line, text)
            return [] if event is None else [event]
        try:
            numbers = {name: read_number(raw) for name, raw in pairs.items()}
        except AmbiguousNumber:
            return [RejectedLine(line=line, reason=DECIMAL_COMMA, text=text[:200])]
        except ValueError as damage:
            return [RejectedLine(line=line, reason=f"no number: {damage}", text=text[:200])]
        return self._record(line, text, head, numbers)

    def _record(self, line: int, text: str, head: re.Match[str], numbers: dict[str, float]) -> list[Item]:
        values: dict[str, Value] = {}
        total = int(head["total"]) if head["total"] else None
        if total is not None:
            values["total_steps"] = total
        if head["clock"]:
            values["timestamp_local"] = head["clock"]
        losses = {name: value for name, value in numbers.items() if "loss" in name.lower() and name not in _CANONICAL}
        other: dict[str, float | str] = {}
        for name, value in numbers.items():
            if name.lower() in _CANONICAL:
                values[_CANONICAL[name.lower()]] = value
            elif name not in losses:
                other[name] = value
        step = int(head["step"])
        boundary = self._attempts.stepped(line, step, text, total_steps=total)
        items: list[Item] = [] if boundary is None else [boundary]
        items.append(
            MetricRecord(
                line=line,
                step=step,
                attempt=self._attempts.number,
                loss=losses.get("loss", next(iter(losses.values()), msgspec.UNSET)),
                losses=losses or msgspec.UNSET,
                values=values,
                other=other or msgspec.UNSET,
            )
        )
        bad = [name for name, value in numbers.items() if not math.isfinite(value)]
        if bad:
            items.append(LogEvent(type="non_finite", line=line, fields={"fields": bad}))
        return items


def _pairs(text: str) -> dict[str, str] | None:
    """The `name value` pairs that make up the whole text; None if anything else stands in it or a name comes twice."""
    pairs: dict[str, str] = {}
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _PAIR.match(text, at)
        if match is None or match[1] in pairs:
            return None
        pairs[match[1]] = match[2].rstrip(",")
        at = match.end()
    return pairs
