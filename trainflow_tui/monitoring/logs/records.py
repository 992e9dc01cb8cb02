"""What a training log holds, as frozen records, and its JSON form `log-read/1`. Parsing is done elsewhere."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

SCHEMA = "log-read/1"

Value: TypeAlias = bool | int | float | str | list[float] | None
"""One metric as the line gives it. Non-finite floats stay floats here; None is "the line says it does not know"."""


class MetricRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One line that reports training progress.

    `values` maps canonical names (`step_time_s`, `tflops_per_gpu`, `grad_norm`, …, unit in the name) to what this line
    holds; a name that the line does not hold is absent. `loss` is the main training loss, None where the line has none.
    `losses` keeps every loss term and `other` every further field, both under the name that the source prints.
    """

    line: int
    """From 1, in the file split on LF."""
    step: int | None
    attempt: int = 1
    """From 1; the next one begins where a checkpoint is loaded again or the step goes back."""
    loss: float | msgspec.UnsetType | None = msgspec.UNSET
    losses: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    values: dict[str, Value]
    other: dict[str, float | str] | msgspec.UnsetType = msgspec.UNSET


class AuxRecord(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Figures about the same steps from a second printer in the same log. Kept with their source, never averaged in."""

    line: int
    source: str
    step: int | None
    values: dict[str, Value]


class LogEvent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that happened, with the fields of its type: `resume{step, attempt}`, `signal{signal}` …."""

    type: str
    line: int | None = None
    """None: an event of the whole file."""
    fields: dict[str, object] = {}


class RejectedLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that looks like a record and cannot be one. It is counted and shown, never repaired by a guess."""

    line: int
    reason: str
    text: str = ""
    """The start of the line, at most 200 characters."""


class PendingTail(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The unfinished last line: not yet data. Read again from `offset` when the file has grown."""

    line: int
    reason: str
    offset: int
    size_bytes: int


class SeriesPoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The value that counts for a step: that of the newest attempt which reached it."""

    step: int
    attempt: int
    loss: float | None


class LostSteps(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"first": "from", "last": "to"}
):
    """Steps of an attempt that its successor had to do again, both ends included."""

    first: int
    last: int
    attempt: int
    """The attempt whose work was lost."""
    reason: str


class LogRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that one read of a log file found."""

    file: str
    framework: str
    """The printer's family, e.g. `megatron-lm`; `unknown` where only failure lines were recognised."""
    records: tuple[MetricRecord, ...] = ()
    aux_records: tuple[AuxRecord, ...] = ()
    events: tuple[LogEvent, ...] = ()
    rejected: tuple[RejectedLine, ...] = ()
    pending_tail: PendingTail | None = None
    effective_series: tuple[SeriesPoint, ...] = ()
    """Filled where the log holds more than one attempt."""
    lost_steps: tuple[LostSteps, ...] = ()
    """One entry for each rewind, oldest first."""
    leading_nul_bytes: int = 0
    lines: int = 0
    unparsed_suspicious: int = 0
    """Lines that speak of a loss and yielded no record. A growing count means that the adapter lost the format."""


Item: TypeAlias = MetricRecord | AuxRecord | LogEvent | RejectedLine


def to_json_value(value: object) -> object:
    """The same value with non-finite floats as the strings `NaN`, `Infinity`, `-Infinity`: strict JSON has no other."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Mapping):
        return {key: to_json_value(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [to_json_value(entry) for entry in value]
    return value


def record_json(record: MetricRecord) -> dict[str, object]:
    """One metric record, flat: the canonical names stand beside `line`, `step` and `attempt`."""
    flat: dict[str, object] = {"line": record.line, "step": record.step, "attempt": record.attempt}
    if record.loss is not msgspec.UNSET:
        flat["loss"] = record.loss
    if record.losses is not msgspec.UNSET:
        flat["losses"] = record.losses
    flat.update(record.values)
    if record.other is not msgspec.UNSET:
        flat["other"] = record.other
    return {key: to_json_value(value) for key, value in flat.items()}


def event_json(event: LogEvent) -> dict[str, object]:
    """One event, flat: `line` (where it has one), `type` and its own fields."""
    head: dict[str, object] = {"type": event.type} if event.line is None else {"line": event.line, "type": event.type}
    return head | {key: to_json_value(value) for key, value in event.fields.items()}


def log_read_json(read: LogRead) -> dict[str, object]:
    """The object `log-read/1`. Optional keys appear only where the log has their content.

    `lost_steps` is the newest rewind; with several of them `rewinds` lists all.
    """
    answer: dict[str, object] = {
        "schema": SCHEMA,
        "file": read.file,
        "framework": read.framework,
        "records": [record_json(record) for record in read.records],
        "events": [event_json(event) for event in read.events],
        "rejected": [msgspec.to_builtins(entry) for entry in read.rejected],
        "pending_tail": msgspec.to_builtins(read.pending_tail),
        "lines": read.lines,
        "unparsed_suspicious": read.unparsed_suspicious,
    }
    if read.aux_records:
        answer["aux_records"] = [_aux_json(record) for record in read.aux_records]
    if read.effective_series:
        answer["effective_series"] = [to_json_value(msgspec.structs.asdict(point)) for point in read.effective_series]
    if read.lost_steps:
        rewinds = [msgspec.to_builtins(entry) for entry in read.lost_steps]
        answer["lost_steps"] = rewinds[-1]
        if len(rewinds) > 1:
            answer["rewinds"] = rewinds
    if read.leading_nul_bytes:
        answer["leading_nul_bytes"] = read.leading_nul_bytes
    return answer


def _aux_json(record: AuxRecord) -> dict[str, object]:
    head: dict[str, object] = {"line": record.line, "source": record.source, "step": record.step}
    return head | {key: to_json_value(value) for key, value in record.values.items()}
