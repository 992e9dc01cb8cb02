"""Metric lines that are JSON objects: LLaMA-Factory's trainer_log.jsonl and any other with a step and common names."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

import msgspec

from trainflow_tui.monitoring.logs.attempts import Attempts, AttemptState
from trainflow_tui.monitoring.logs.numbers import duration_s
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine, Value

_STEP_NAMES = ("step", "global_step", "current_steps", "iteration", "iter", "_step", "trainer/global_step")
_LOSS_NAMES = ("loss", "train_loss", "train/loss", "lm loss", "lm_loss")
_GRAD_NORM_NAMES = ("grad_norm", "train/grad_norm", "grad norm")

# Names that mean one thing wherever they stand. "throughput" alone says neither unit nor scope and is not among them.
_CANONICAL = {
    "total_steps": "total_steps",
    "max_steps": "total_steps",
    "lr": "lr",
    "learning_rate": "lr",
    "train/learning_rate": "lr",
    "epoch": "epoch",
    "percentage": "percentage",
    "eval_loss": "val_loss",
    "val_loss": "val_loss",
    "validation_loss": "val_loss",
    "eval/loss": "val_loss",
    "step_time_s": "step_time_s",
    "tokens_per_s": "tokens_per_s_total",
    "tokens_per_second": "tokens_per_s_total",
    "samples_per_s": "samples_per_s",
    "samples_per_second": "samples_per_s",
    "mfu": "mfu",
    "rank": "rank",
    "consumed_samples": "consumed_samples",
    "timestamp": "timestamp_local",
} | dict.fromkeys(_GRAD_NORM_NAMES, "grad_norm")
_TEXTS = frozenset({"timestamp_local"})
_USED = frozenset({*_STEP_NAMES, *_LOSS_NAMES, "elapsed_time", "remaining_time", "throughput", "total_tokens"})


class JsonLinesAdapter:
    """Reads one JSON object a line, with bare NaN and Infinity, and objects glued together on one line."""

    name = "jsonl"
    markers = (b"{",)

    def __init__(self, attempts: AttemptState | None = None) -> None:
        self.framework = "generic"
        self._attempts = Attempts(attempts)

    @property
    def attempt_state(self) -> AttemptState:
        """What the constructor needs to go on counting."""
        return self._attempts.state

    def is_whole(self, text: str) -> bool:
        """A closed object is complete, newline or not."""
        try:
            return all(True for _ in _objects(text))
        except ValueError:
            return False

    def feed(self, line: int, text: str) -> list[Item]:
        """The records of one line, each with the events that it brings."""
        if not text.lstrip().startswith("{"):
            return []
        items: list[Item] = []
        try:
            for entry in _objects(text):
                items.extend(self._entry(line, text, entry))
        except ValueError as damage:
            items.append(RejectedLine(line=line, reason=f"no JSON object: {damage}", text=text[:200]))
        return items

    def _entry(self, line: int, text: str, entry: dict[str, object]) -> list[Item]:
        step = _first_number(entry, _STEP_NAMES)
        loss_name = next((name for name in _LOSS_NAMES if name in entry), None)
        if step is None or not math.isfinite(step):
            return (
                [] if loss_name is None else [RejectedLine(line=line, reason="a loss without a step", text=text[:200])]
            )
        values, other = _values(entry)
        if "current_steps" in entry:
            self.framework = "llamafactory"
            values |= _llamafactory(entry)
        boundary = self._attempts.stepped(line, int(step), text, total_steps=values.get("total_steps"))
        items: list[Item] = [] if boundary is None else [boundary]
        losses = {name: _number(value) for name, value in entry.items() if "loss" in name}
        items.append(
            MetricRecord(
                line=line,
                step=int(step),
                attempt=self._attempts.number,
                loss=msgspec.UNSET if loss_name is None else losses[loss_name],
                losses={name: value for name, value in losses.items() if value is not None} or msgspec.UNSET,
                values=values,
                other=other or msgspec.UNSET,
            )
        )
        bad = [name for name, value in losses.items() if value is not None and not math.isfinite(value)]
        grad_norm = values.get("grad_norm")
        if isinstance(grad_norm, float) and not math.isfinite(grad_norm):
            bad.append(next(name for name in _GRAD_NORM_NAMES if name in entry))
        if bad:
            items.append(LogEvent(type="non_finite", line=line, fields={"fields": bad}))
        return items


def _objects(text: str) -> Iterator[dict[str, object]]:
    """The objects of one line. The fast decoder reads strict JSON; Python's reads NaN and finds where an object ends.

    Raises:
        ValueError: a part of the line is no JSON object.
    """
    try:
        yield _STRICT.decode(text)
        return
    except (msgspec.DecodeError, msgspec.ValidationError, RecursionError):
        pass
    at, end = _past_blank(text, 0), len(text)
    while at < end:
        try:
            entry, at = _LENIENT.raw_decode(text, at)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(entry, dict):
            raise ValueError("an object was expected")
        yield entry
        at = _past_blank(text, at)


def _past_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return at if match is None else match.end()


_BLANK = re.compile(r"\s*")
_STRICT = msgspec.json.Decoder(dict[str, object])
_LENIENT = json.JSONDecoder()


def _number(value: object) -> float | None:
    """The number, also where it is printed as a string (newer Hugging Face trainers); None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            return None
    return None


def _first_number(entry: dict[str, object], names: tuple[str, ...]) -> float | None:
    return next((number for name in names if (number := _number(entry.get(name))) is not None), None)


def _values(entry: dict[str, object]) -> tuple[dict[str, Value], dict[str, float | str]]:
    values: dict[str, Value] = {}
    other: dict[str, float | str] = {}
    for name, value in entry.items():
        canonical = _CANONICAL.get(name)
        if value is None:
            if canonical == "lr":
                values["lr"] = None
        elif canonical in _TEXTS:
            values[canonical] = str(value)[:200]
        elif canonical is not None:
            number = value if type(value) is int else _number(value)
            if number is not None:
                values[canonical] = number
        elif name not in _USED and "loss" not in name and (number := _number(value)) is not None:
            other[name] = number
    return values, other


def _llamafactory(entry: dict[str, object]) -> dict[str, Value]:
    """The fields that only this source has: durations, and a throughput in tokens that is 0 where it is not counted."""
    values: dict[str, Value] = {}
    for printed, canonical in (("elapsed_time", "elapsed_s"), ("remaining_time", "eta_s")):
        if printed in entry:
            values[canonical] = duration_s(entry[printed])
    for printed, canonical in (("throughput", "tokens_per_s_total"), ("total_tokens", "consumed_tokens")):
        if printed in entry:
            values[canonical] = _number(entry[printed]) or None
    total = entry.get("total_steps")
    if "loss" in entry and entry["loss"] is None and entry.get("eval_loss") is None and entry["current_steps"] == total:
        values["final"] = True
    return values
