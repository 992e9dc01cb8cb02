"""The Megatron family of log lines: Megatron-LM 2022 to 2026, Megatron-DeepSpeed, Primus, MindSpeed."""

from __future__ import annotations

import re

import msgspec

from trainflow_tui.monitoring.logs import deepspeed, events
from trainflow_tui.monitoring.logs.attempts import Attempts, AttemptState
from trainflow_tui.monitoring.logs.megatron_fields import (
    DEEPSPEED_NAMES,
    PRIMUS_NAMES,
    DamagedLineError,
    FieldRule,
    Values,
    field_rule,
    main_loss,
    printed_name,
    read_field,
)
from trainflow_tui.monitoring.logs.megatron_health import health_events
from trainflow_tui.monitoring.logs.megatron_layout import Layout
from trainflow_tui.monitoring.logs.records import AuxRecord, Item, MetricRecord, RejectedLine

# `[default3]:` is torchrun's local rank, `[rank-7/8]` Primus' rank and world size.
_PREFIX = re.compile(
    r"\s*(?:\[default(?P<local_rank>\d+)\]:)?\s*(?:\[rank(?P<rank>\d+)\]:)?\s*"
    r"(?:\[(?P<clock>\d{4}-?\d\d-?\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?)\])?(?:\[rank-(?P<of_rank>\d+)/(?P<of>\d+)\])?"
)
_RESUME = re.compile(r"successfully loaded checkpoint from .* at iteration\s+(\d+)")
_VALIDATION = re.compile(r"validation loss at iteration\s+(\d+)(?: on (validation|test) set)?\s*\|(.*)")
_VALIDATION_TERM = re.compile(r"\s*(.+?) value:\s*(\S+)\s*")
_MEMORY = re.compile(r"\[Rank (\d+)\] \(after (\d+) iterations\) memory \(MB\) \|(.*)")

_REMEMBERED_SHAPES = 4
_MOST_FIELDS = 256


class MegatronAdapter:
    """Reads ` iteration N/ TOTAL | name: value | … |` and the lines around it. The last rank prints them."""

    name = "megatron"
    markers = (b"iteration", *events.MARKERS, *deepspeed.MARKERS)

    def __init__(self, attempts: AttemptState | None = None) -> None:
        self.framework = "megatron-lm"
        self._attempts = Attempts(attempts)
        self._shapes: list[list[str]] = []
        """The printed names of the fields, for each shape of line that was seen."""
        self._layouts: list[Layout] = []

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
        if at < 0 or text[at - 2 : at] == ", ":  # NeMo writes `Training epoch 0, iteration 1/9 |`
            return self._other_line(line, text)
        for layout in self._layouts:
            if found := layout.read(text, at):
                step, values, losses = found
                return self._record(line, text, at, step, values, losses, {})
        bar = text.find("|", at)
        step_text, slash, total_text = text[at + 10 : bar].partition("/")
        if bar < 0 or not slash:
            return self._other_line(line, text)
        values, losses = {}, {}
        other: dict[str, float | str] = {}
        try:
            step, values["total_steps"] = int(step_text), int(total_text)
            self._read_fields(text, bar, values, losses, other)
        except ValueError as damage:
            return [RejectedLine(line=line, reason=f"damaged metric line: {damage}", text=text[:200])]
        return self._record(line, text, at, step, values, losses, other)

    def _record(
        self,
        line: int,
        text: str,
        at: int,
        step: int,
        values: Values,
        losses: dict[str, float],
        other: dict[str, float | str],
    ) -> list[Item]:
        boundary = self._attempts.stepped(line, step, text, total_steps=values["total_steps"])
        if at > 1:
            _read_prefix(text[:at], values)
        record = MetricRecord(
            line=line,
            step=step,
            attempt=self._attempts.number,
            loss=main_loss(losses),
            losses=losses,
            values=values,
            other=other or msgspec.UNSET,
        )
        first: list[Item] = [record] if boundary is None else [boundary, record]
        return first + health_events(line, text, values, losses)

    def _read_fields(
        self, text: str, bar: int, values: Values, losses: dict[str, float], other: dict[str, float | str]
    ) -> None:
        """Read a line of a shape not seen before, field by field, and remember the shape.

        Raises:
            DamagedLineError: two lines were written into one, the line was cut, or a field is no number.
        """
        *fields, rest = text[bar + 1 :].split("|")
        if rest and not rest.isspace():
            raise DamagedLineError("it does not end with '|'")
        if text.count("consumed samples:") > 1 or len(fields) > _MOST_FIELDS:
            raise DamagedLineError("two lines in one")
        names: list[str] = []
        rules: list[FieldRule] = []
        for field in fields:
            printed, colon, raw = field.partition(":")
            if not colon:
                raise DamagedLineError(f"a field without a value, {field.strip()[:60]!r}")
            rule = field_rule(printed)
            names.append(printed)
            rules.append(rule)
            self._note_framework(printed)
            read_field(rule, raw, values, losses, other)
        if any(len(names) < len(shape) and names == shape[: len(names)] for shape in self._shapes):
            raise DamagedLineError("it ends behind a field")
        if len(self._shapes) < _REMEMBERED_SHAPES and names not in self._shapes:
            self._shapes.append(names)
            if layout := Layout.of(names, rules):
                self._layouts.append(layout)

    def _note_framework(self, printed: str) -> None:
        name = printed_name(printed)
        if name in PRIMUS_NAMES:
            self.framework = "primus-megatron"
        elif name in DEEPSPEED_NAMES and self.framework == "megatron-lm":
            self.framework = "megatron-deepspeed"

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


def _read_prefix(prefix: str, values: Values) -> None:
    """The clock and the ranks that stand before `iteration`."""
    if len(prefix) < 32 and prefix[:2] == " [" and prefix[-2:] == "] " and prefix[6] == "-" and prefix[15] == ":":
        values["timestamp_local"] = prefix[2:-2]  # the usual ` [2024-04-06 02:59:36] ` without a regular expression
        return
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
