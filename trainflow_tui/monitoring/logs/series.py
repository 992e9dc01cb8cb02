"""One series over all attempts: the newest attempt counts for each step, and the steps that had to be done again."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import msgspec

from trainflow_tui.monitoring.logs.records import LogEvent, LostSteps, MetricRecord, SeriesPoint


def effective_series(records: Iterable[MetricRecord]) -> tuple[SeriesPoint, ...]:
    """The loss for each step, ascending. The newest attempt wins a step, within an attempt its last record.

    Records without a loss field of their own (validation, counters) do not take part.
    """
    newest: dict[int, SeriesPoint] = {}
    for record in records:
        if record.step is None or record.loss is msgspec.UNSET:
            continue
        known = newest.get(record.step)
        if known is None or record.attempt >= known.attempt:
            newest[record.step] = SeriesPoint(step=record.step, attempt=record.attempt, loss=record.loss)
    return tuple(newest[step] for step in sorted(newest))


def lost_steps(records: Iterable[MetricRecord], events: Iterable[LogEvent]) -> tuple[LostSteps, ...]:
    """The steps that each new attempt had to do again, oldest attempt first.

    They begin after the step of the loaded checkpoint; where no such line was seen, at the first step that the new
    attempt reports. An attempt that went on where its predecessor ended lost nothing, nor did a run of another length.
    """
    spans: dict[int, _Span] = {}
    for record in records:
        if record.step is None:
            continue
        known = spans.get(record.attempt)
        first, last = (record.step, record.step) if known is None else (known.first, max(known.last, record.step))
        spans[record.attempt] = _Span(first, last, record.values.get("total_steps"))
    resumed: dict[object, int] = {}
    for event in events:
        step = event.fields.get("step")
        if event.type == "resume" and isinstance(step, int):
            resumed[event.fields.get("attempt")] = step
    attempts = sorted(spans)
    pairs = pairwise(attempts)
    found = (_between(old, spans[old], new, spans[new], resumed.get(new)) for old, new in pairs)
    return tuple(entry for entry in found if entry is not None)


class _Span(NamedTuple):
    first: int
    last: int
    total_steps: object


def _between(old: int, before: _Span, new: int, after: _Span, resume_step: int | None) -> LostSteps | None:
    first = after.first if resume_step is None else resume_step + 1
    if first > before.last or before.total_steps != after.total_steps:
        return None
    steps = f"step {first}..{before.last} of attempt {old}"
    done = after.last >= before.last
    reason = f"{steps} were redone" if done else f"{steps} are redone, attempt {new} is at {after.last}"
    return LostSteps(first=first, last=before.last, attempt=old, reason=reason)
