"""What one Megatron record says about the state of the training: non-finite numbers, skipped steps, a missing loss."""

from __future__ import annotations

import math
import re

from trainflow_tui.monitoring.logs.megatron_fields import Values
from trainflow_tui.monitoring.logs.records import Item, LogEvent

_GRAD_NORM_TEXT = re.compile(r"grad norm:\s*([^|\s]+)")


def health_events(line: int, text: str, values: Values, losses: dict[str, float]) -> list[Item]:
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


def _unusual(line: int, text: str, values: Values, losses: dict[str, float]) -> list[Item]:
    found: list[Item] = []
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
