"""Megatron's `progress.txt`: one tab-separated line for each job start and checkpoint."""

from __future__ import annotations

from trainflow_tui.monitoring.logs.attempts import Attempts, AttemptState
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine, Value

_ACTIONS = {
    "Saving async checkpoint": "checkpoint_saving",
    "Saved async checkpoint": "checkpoint_saved",
    "Saved checkpoint": "checkpoint_saved",
}
# Megatron-LM training.py append_to_progress_log; the first word behind the number is its unit.
_NUMBERS = {
    "Job throughput": "tflops_per_gpu_job",
    "Cumulative throughput": "tflops_per_gpu_cumulative",
    "Floating-point operations": "flops_total",
    "Tokens (in billions)": "tokens_billion",
}


class MegatronProgressAdapter:
    """Reads the progress file. Its throughputs are means over the job or the whole run, never of one step."""

    name = "megatron-progress"
    markers = (b"Job ID:",)
    framework = "megatron-lm"

    def __init__(self, attempts: AttemptState | None = None) -> None:
        self._attempts = Attempts(attempts)

    @property
    def attempt_state(self) -> AttemptState:
        """What the constructor needs to go on counting."""
        return self._attempts.state

    def is_whole(self, text: str) -> bool:
        """A line without its newline is never taken."""
        return False

    def feed(self, line: int, text: str) -> list[Item]:
        """A job start, or the figures and the event of a checkpoint."""
        clock, *parts = text.split("\t")
        if not parts or not parts[0].startswith("Job ID:"):
            return []
        fields = dict(part.partition(": ")[::2] for part in parts)
        if "Starting job" in fields:
            self._attempts.restarted()
            return [LogEvent(type="job_started", line=line, fields=_job(fields) | {"timestamp_local": clock})]
        if "Iteration" not in fields:
            return []
        try:
            return self._checkpoint(line, text, clock, fields)
        except (ValueError, IndexError):
            return [RejectedLine(line=line, reason="a field of the progress line is no number", text=text[:200])]

    def _checkpoint(self, line: int, text: str, clock: str, fields: dict[str, str]) -> list[Item]:
        step = int(fields["Iteration"])
        values: dict[str, Value] = {"timestamp_local": clock}
        for printed, canonical in _NUMBERS.items():
            if printed in fields:
                values[canonical] = float(fields[printed].split()[0])
        boundary = self._attempts.stepped(line, step, text)
        items: list[Item] = [] if boundary is None else [boundary]
        items.append(MetricRecord(line=line, step=step, attempt=self._attempts.number, values=values))
        for action, event in _ACTIONS.items():
            if action in fields:
                items.append(LogEvent(type=event, line=line, fields={"step": step}))
        return items


def _job(fields: dict[str, str]) -> dict[str, object]:
    gpus = fields.get("# GPUs", "")
    return {"job_id": fields["Job ID"]} | ({"gpus": int(gpus)} if gpus.isdecimal() else {})
