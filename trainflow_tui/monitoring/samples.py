"""From the records of a log to stored samples and to the summary that a screen shows at once."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any, Final

import msgspec

from trainflow_tui.monitoring import signs
from trainflow_tui.monitoring.logs.records import LogEvent, MetricRecord, event_json, to_json_value
from trainflow_tui.monitoring.status import RECENT_POINTS, RunEvent, RunSummary

EVENTS_KEPT: Final = 50
STORED: Final = ("grad_norm", "lr", "step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "samples_per_s")
"""Values that have a column of their own."""
_THROUGHPUT: Final = (
    ("tokens_per_s_per_gpu", "tok/s/GPU"),
    ("tokens_per_s_total", "tok/s"),
    ("tflops_per_gpu", "TFLOP/s/GPU"),
    ("samples_per_s", "samples/s"),
    ("steps_per_s", "steps/s"),
)


def throughput(record: MetricRecord) -> tuple[float | None, str]:
    """The line's throughput and its unit: as printed, else global batch size over step time.

    The printed figure is preferred in the order tokens, TFLOP/s, samples; definitions differ between printers, so a unit is
    never left out.
    """
    for name, unit in _THROUGHPUT:
        value = record.values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value), unit
    batch, seconds = record.values.get("global_batch_size"), record.values.get("step_time_s")
    if isinstance(batch, int | float) and isinstance(seconds, int | float) and seconds > 0:
        return batch / seconds, "samples/s"
    return None, ""


def sample(record: MetricRecord, *, generation: int, offset: int, at: str) -> dict[str, Any]:
    """The stored form of one record; what has no column of its own goes into `extra`."""
    loss = None if record.loss is msgspec.UNSET else record.loss
    rest = {name: _plain(value) for name, value in record.values.items() if name not in STORED}
    rest |= {name: to_json_value(value) for name, value in _beside(record) if value is not msgspec.UNSET}
    fixed = {name: record.values.get(name) for name in STORED}
    head = {"gen": generation, "off": offset, "at": at, "attempt": record.attempt, "step": record.step, "loss": loss}
    return head | fixed | {"throughput": throughput(record)[0], "extra": rest}


def _beside(record: MetricRecord) -> tuple[tuple[str, object], ...]:
    return ("losses", record.losses), ("other", record.other)


def _plain(value: object) -> object:
    # Almost every value is one of these, and to ask of what kind the others are takes twenty times as long.
    if type(value) in (int, str) or (type(value) is float and math.isfinite(value)):
        return value
    return to_json_value(value)


def add_record(summary: RunSummary, record: MetricRecord, *, at: str) -> RunSummary:
    """The summary after one more record; signs of trouble become events."""
    if record.loss is msgspec.UNSET:
        # A validation line: it has figures of its own and says nothing of the training's course.
        return msgspec.structs.replace(summary, samples=summary.samples + 1, last_sample_at=at)
    loss = record.loss
    speed, unit = throughput(record)
    events = list(summary.events)
    finite = _newest_losses(summary, signs.SPIKE_WINDOW)
    if loss is not None and math.isfinite(loss) and signs.is_spike(loss, finite):
        before = finite[-1]
        events.append(
            RunEvent(
                type="loss_spike", line=record.line, step=record.step, text=f"loss {before:.4g} -> {loss:.4g}", at=at
            )
        )
    printed = str(record.values.get("timestamp_local") or "")
    if printed and summary.printed_at and record.step is not None and summary.step is not None:
        seconds = record.values.get("step_time_s")
        step_time = float(seconds) if isinstance(seconds, int | float) else None
        gap = signs.gap_seconds(summary.printed_at, printed, step_time, record.step - summary.step)
        if gap is not None:
            events.append(
                RunEvent(type="stalled", line=record.line, step=record.step, text=f"nothing for {gap:.0f} s", at=at)
            )
    point = (record.step or 0, _finite(loss), _finite(speed))
    recent = summary.recent
    if record.step is not None and recent and not 0 < recent[-1][0] < record.step:
        # A step that is done again replaces what the older attempt said of it and of all after it.
        recent = [p for p in recent if p[0] < record.step]
    total = record.values.get("total_steps")
    seconds = record.values.get("step_time_s")
    return msgspec.structs.replace(
        summary,
        step=record.step,
        total_steps=int(total) if isinstance(total, int) else summary.total_steps,
        attempt=record.attempt,
        loss=loss,
        throughput=speed,
        throughput_unit=unit or summary.throughput_unit,
        step_time_s=float(seconds) if isinstance(seconds, int | float) else summary.step_time_s,
        samples=summary.samples + 1,
        last_sample_at=at,
        printed_at=printed,
        recent=[*recent, point][-RECENT_POINTS:],
        events=events[-EVENTS_KEPT:],
    )


def _newest_losses(summary: RunSummary, count: int) -> list[float]:
    """The newest finite losses, oldest of them first, found from the end: this is done for each record."""
    found = (loss for _, loss, _ in reversed(summary.recent) if loss is not None)
    return list(islice(found, count))[::-1]


def add_event(summary: RunSummary, event: LogEvent, *, at: str) -> RunSummary:
    """The summary with one more event of the log itself."""
    fields = {k: v for k, v in event_json(event).items() if k not in ("line", "type", "step")}
    step = event.fields.get("step")
    words = ", ".join(f"{name} {value}" for name, value in fields.items())
    made = RunEvent(
        type=event.type, line=event.line or 0, step=step if isinstance(step, int) else None, text=words[:200], at=at
    )
    return msgspec.structs.replace(summary, events=[*summary.events, made][-EVENTS_KEPT:])


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
