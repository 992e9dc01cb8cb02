"""The Megatron family of log lines: Megatron-LM 2022 to 2026, Megatron-DeepSpeed, Primus, MindSpeed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from trainflow_tui.monitoring.logs import deepspeed, events
from trainflow_tui.monitoring.logs.attempts import Attempts, AttemptState
from trainflow_tui.monitoring.logs.megatron_fields import (
    DEEPSPEED_NAMES,
    PRIMUS_NAMES,
    FieldRule,
    Values,
    field_rule,
    main_loss,
    read_hip_memory,
    read_pair,
)
from trainflow_tui.monitoring.logs.records import AuxRecord, Item, LogEvent, MetricRecord, RejectedLine, Value

# `[default3]:` is torchrun's local rank, `[rank-7/8]` Primus' rank and world size.
_PREFIX = re.compile(
    r"\s*(?:\[default(?P<local_rank>\d+)\]:)?\s*(?:\[rank(?P<rank>\d+)\]:)?\s*"
    r"(?:\[(?P<clock>\d{4}-?\d\d-?\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\])?(?:\[rank-(?P<of_rank>\d+)/(?P<of>\d+)\])?"
)
_RESUME = re.compile(r"successfully loaded checkpoint from .* at iteration\s+(\d+)")
_VALIDATION = re.compile(r"validation loss at iteration\s+(\d+)(?: on (validation|test) set)?\s*\|(.*)")
_VALIDATION_TERM = re.compile(r"\s*(.+?) value:\s*(\S+)\s*")
_MEMORY = re.compile(r"\[Rank (\d+)\] \(after (\d+) iterations\) memory \(MB\) \|(.*)")

_REMEMBERED_NAMES = 256


class MegatronAdapter:
    """Reads ` iteration N/ TOTAL | name: value | … |` and the lines around it. The last rank prints them."""

    name = "megatron"
    markers = (b"iteration", *events.MARKERS, *deepspeed.MARKERS)

    def __init__(self, attempts: AttemptState | None = None) -> None:
        self.framework = "megatron-lm"
        self._attempts = Attempts(attempts)
        # How the fields of this source are read, by their printed form with its blanks: one lookup for each field.
        self._plain: dict[str, tuple[str, Callable[[str], Value]]] = {}
        self._loss_names: dict[str, str] = {}

    @property
    def attempt_state(self) -> AttemptState:
        """What the constructor needs to go on counting."""
        return self._attempts.state

    def is_whole(self, text: str) -> bool:
        """A metric line may be cut behind any field: without its newline it is never taken."""
        return False

    def feed(self, line: int, text: str) -> list[Item]:
        """The record, event or rejection that one line holds."""
        at = text.find("iteration ")
        if at >= 0:
            bar = text.find("|", at)
            step, slash, total = text[at + 10 : bar].partition("/")
            if bar > 0 and slash and not text[:at].rstrip().endswith(","):  # NeMo: `Training epoch 0, iteration 1/9 |`
                try:
                    return self._metric_line(line, text, int(step), int(total), at, bar)
                except ValueError as damage:
                    return [RejectedLine(line=line, reason=f"damaged metric line: {damage}", text=text[:200])]
        return self._other_line(line, text)

    def _metric_line(self, line: int, text: str, step: int, total: int, at: int, bar: int) -> list[Item]:
        """Read the fields behind the head.

        Raises:
            _Damage: two lines were written into one, the line was cut, or a field is no number.
        """
        *fields, rest = text[bar + 1 :].split("|")
        if rest and not rest.isspace():
            raise _Damage("it does not end with '|'")
        if text.count("consumed samples:") > 1:
            raise _Damage("two lines in one")
        values: Values = {"total_steps": total}
        losses: dict[str, float] = {}
        other: dict[str, float | str] = {}
        plain = self._plain
        for field in fields:
            printed, colon, raw = field.partition(":")
            rule = plain.get(printed)
            try:
                if rule is not None:
                    values[rule[0]] = rule[1](raw)
                elif printed in self._loss_names:
                    losses[self._loss_names[printed]] = float(raw)
                elif colon:
                    self._odd_field(printed, raw, values, losses, other)
                else:
                    raise _Damage(f"a field without a value, {field.strip()[:60]!r}")
            except _Damage:
                raise
            except ValueError:
                values.update(_pair(printed, raw))
        if at > 1:
            _read_prefix(text[:at], values)
        return self._items(line, text, (step, total), values, losses, other)

    def _odd_field(
        self, printed: str, raw: str, values: Values, losses: dict[str, float], other: dict[str, float | str]
    ) -> None:
        """Read a field that is new, or that is no single number, and remember how such a field is read."""
        rule = self._learn(printed)
        if rule.kind == "several":
            values.update(read_hip_memory(raw))
        elif rule.kind == "loss":
            losses[rule.canonical] = float(raw)
        elif rule.kind == "value":
            values[rule.canonical] = rule.convert(raw)
        else:
            try:
                other[rule.canonical] = float(raw)
            except ValueError:
                other[rule.canonical] = raw.strip()[:200]

    def _learn(self, printed: str) -> FieldRule:
        rule = field_rule(printed)
        name = " ".join(printed.lower().split())
        if name in PRIMUS_NAMES:
            self.framework = "primus-megatron"
        elif name in DEEPSPEED_NAMES and self.framework == "megatron-lm":
            self.framework = "megatron-deepspeed"
        if rule.kind == "value" and len(self._plain) < _REMEMBERED_NAMES:
            self._plain[printed] = (rule.canonical, rule.convert)
        elif rule.kind == "loss" and len(self._loss_names) < _REMEMBERED_NAMES:
            self._loss_names[printed] = rule.canonical
        return rule

    def _items(
        self,
        line: int,
        text: str,
        place: tuple[int, int],
        values: Values,
        losses: dict[str, float],
        other: dict[str, float | str],
    ) -> list[Item]:
        step, total = place
        items: list[Item] = []
        boundary = self._attempts.stepped(line, step, text, total_steps=total)
        if boundary is not None:
            items.append(boundary)
        loss = main_loss(losses)
        record = MetricRecord(
            line=line, step=step, attempt=self._attempts.number, loss=loss, losses=losses, values=values
        )
        if other:
            record = MetricRecord(
                line=line, step=step, attempt=record.attempt, loss=loss, losses=losses, values=values, other=other
            )
        items.append(record)
        items.extend(_health(line, text, values, losses))
        return items

    def _other_line(self, line: int, text: str) -> list[Item]:
        text = text[: events.READ_CHARACTERS]
        if match := _RESUME.search(text):
            return [self._attempts.resumed(line, int(match[1]))]
        if event := events.scan_event(line, text):
            return [event]
        if aux := deepspeed.parse_line(line, text):
            return [aux]
        if match := _VALIDATION.search(text):
            return self._validation(line, match)
        if match := _MEMORY.search(text):
            return _memory(line, match)
        return []

    def _validation(self, line: int, match: re.Match[str]) -> list[Item]:
        losses: dict[str, float] = {}
        try:
            for term in match[3].split("|"):
                if found := _VALIDATION_TERM.fullmatch(term):
                    losses[found[1]] = float(found[2])
        except ValueError as damage:
            return [RejectedLine(line=line, reason=f"damaged validation line: {damage}", text=match[0][:200])]
        values: Values = {"kind": match[2] or "validation", "val_loss": main_loss(losses)}
        return [
            MetricRecord(line=line, step=int(match[1]), attempt=self._attempts.number, losses=losses, values=values)
        ]


class _Damage(ValueError):
    """The line is not one whole record."""


def _pair(printed: str, raw: str) -> Values:
    try:
        return read_pair(field_rule(printed), raw)
    except ValueError:
        raise _Damage(f"{printed.strip()!r} is no number, {raw.strip()[:60]!r}") from None


def _read_prefix(prefix: str, values: Values) -> None:
    """The clock and the ranks that stand before `iteration`."""
    match = _PREFIX.match(prefix)
    if match is None:
        return
    local_rank, rank, clock, of_rank, of = match.groups()
    if clock:
        values["timestamp_local"] = clock
    if local_rank:
        values["local_rank"] = int(local_rank)
    if rank or of_rank:
        values["rank"] = int(rank or of_rank)
    if of:
        values["world_size"] = int(of)


_GRAD_NORM_TEXT = re.compile(r"grad norm:\s*([^|\s]+)")


def _health(line: int, text: str, values: Values, losses: dict[str, float]) -> list[LogEvent]:
    """What this record says about the state of the training.

    Non-finite is judged from the loss terms, the gradient norm and the counter alike: Megatron leaves a NaN loss out of
    the line, and the counter alone stays 0 in some of its forks.
    """
    grad_norm, step_time_s = values.get("grad_norm"), values.get("step_time_s")
    skipped, nan_count = values.get("skipped_iterations"), values.get("nan_iterations")
    usual = (
        not (skipped or nan_count)
        and math.isfinite(sum(losses.values()))
        and losses
        and (grad_norm is None or (isinstance(grad_norm, float) and grad_norm - grad_norm == 0 and grad_norm))
        and not (isinstance(step_time_s, float) and step_time_s <= 0)
    )
    return [] if usual else _unusual(line, text, values, losses)


def _unusual(line: int, text: str, values: Values, losses: dict[str, float]) -> list[LogEvent]:
    found: list[LogEvent] = []
    grad_norm, step_time_s = values.get("grad_norm"), values.get("step_time_s")
    skipped, nan_count = values.get("skipped_iterations"), values.get("nan_iterations")
    bad = [name for name, value in losses.items() if not math.isfinite(value)]
    if isinstance(grad_norm, float) and not math.isfinite(grad_norm):
        bad.append("grad norm")
    if bad or nan_count:
        fields: dict[str, object] = {"fields": bad}
        found.append(
            LogEvent(type="non_finite", line=line, fields=fields | ({"nan_iterations": nan_count} if nan_count else {}))
        )
    if skipped:
        found.append(LogEvent(type="loss_scale_skip", line=line, fields={"count": skipped}))
    elif not losses and not bad and not nan_count:
        found.append(LogEvent(type="loss_missing", line=line))
    if grad_norm == 0.0:
        printed = _GRAD_NORM_TEXT.search(text)
        reason = f"grad norm exactly {printed[1] if printed else '0'}"
        found.append(LogEvent(type="suspicious", line=line, fields={"reason": reason}))
    if isinstance(step_time_s, float) and step_time_s <= 0:
        reason = "elapsed time per iteration is not positive"
        found.append(LogEvent(type="suspicious", line=line, fields={"reason": reason}))
    return found


def _memory(line: int, match: re.Match[str]) -> list[Item]:
    """`[Rank 7] (after 2 iterations) memory (MB) | allocated: 20.5 | …`; its MB are 1024² bytes."""
    values: Values = {"rank": int(match[1])}
    for field in match[3].split("|"):
        name, _, raw = field.partition(":")
        try:
            values[f"mem_{name.strip().replace(' ', '_')}_mib"] = float(raw)
        except ValueError:
            continue
    return [AuxRecord(line=line, source="megatron memory", step=int(match[2]), values=values)]
