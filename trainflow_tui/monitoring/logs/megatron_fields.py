"""The fields of a Megatron metric line: the name that is printed, the canonical name, how the number is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from trainflow_tui.monitoring.logs.records import Value

Values: TypeAlias = dict[str, Value]

PRIMUS_NAMES = frozenset(
    {
        "hip mem usage/free/total/usage_ratio",
        "tokens per gpu (tokens/s/gpu)",
        "compute per gpu (tflop/s/gpu)",
        "tokens/s/gpu inst/harmonic mean",
    }
)
DEEPSPEED_NAMES = frozenset(
    {"consumed tokens", "actual seqlen", "samples per second", "tflops", "tokens per gpu per second (tgs)"}
)


class FieldRule(NamedTuple):
    """How one field is read: `convert` takes the text behind the colon and raises ValueError for what is no number."""

    canonical: str
    convert: Callable[[str], Value]
    average: str | None = None
    """Where the pair `now/average` puts its second number (Primus)."""
    kind: Literal["value", "loss", "several", "other"] = "value"
    """`several`: one field that holds several values; `other`: no meaning to us, kept under its printed name."""


def _milliseconds(text: str) -> float:
    try:
        return float(text.strip() + "e-3")  # the nearest double; a division by 1000 may miss it by one
    except ValueError:
        return float(text) / 1000


_MEMORY = re.compile(r"\s*([\d.]+)(Gi?B)/([\d.]+)\2/([\d.]+)\2/([\d.]+)%\s*")


def _hip_memory(text: str) -> Values:
    match = _MEMORY.fullmatch(text)
    if match is None:
        raise ValueError(text)
    used, unit, free, total, percent = match.groups()
    unit = unit.lower()
    return {
        f"mem_used_{unit}": float(used),
        f"mem_free_{unit}": float(free),
        f"mem_total_{unit}": float(total),
        "mem_used_fraction": round(float(percent) / 100, 6),
    }


_TOKENS = FieldRule("tokens_per_s_per_gpu", float, "tokens_per_s_per_gpu_avg")
_TFLOPS = FieldRule("tflops_per_gpu", float, "tflops_per_gpu_avg")
_BATCH = FieldRule("global_batch_size", int)

# Megatron-LM training.py (training_log) of 2022 to 2026; Megatron-DeepSpeed (BigScience: seconds), tgs from its HCU
# forks; Primus 25/26 trainer.py; MindSpeed ("gloabl" is its spelling); LoongForge. The unit stands in the printed name.
FIELDS: dict[str, FieldRule] = {
    "consumed samples": FieldRule("consumed_samples", int),
    "skipped samples": FieldRule("skipped_samples", int),
    "consumed tokens": FieldRule("consumed_tokens", int),
    "elapsed time per iteration (ms)": FieldRule("step_time_s", _milliseconds, "step_time_avg_s"),
    "elapsed time per iteration (s)": FieldRule("step_time_s", float, "step_time_avg_s"),
    "throughput per gpu (tflop/s/gpu)": _TFLOPS,
    "compute per gpu (tflop/s/gpu)": _TFLOPS,
    "flop throughput (tflop/sec/gpu)": _TFLOPS,
    "tflops": _TFLOPS,
    "tokens per gpu (tokens/s/gpu)": _TOKENS,
    "tokens per gpu per second (tgs)": _TOKENS,
    "throughput (token/sec/gpu)": _TOKENS,
    "tokens/s/gpu inst/harmonic mean": FieldRule("tokens_per_s_per_gpu", float, "tokens_per_s_per_gpu_harmonic_mean"),
    "samples per second": FieldRule("samples_per_s", float),
    "throughput (samples/sec/per_device)": FieldRule("samples_per_s_per_device", float),
    "energy per gpu (j/iter/gpu)": FieldRule("energy_j_per_gpu", float),
    "power per gpu (w/gpu)": FieldRule("power_w_per_gpu", float),
    "hip mem usage/free/total/usage_ratio": FieldRule("mem_used_fraction", float, kind="several"),
    "learning rate": FieldRule("lr", float),
    "global batch size": _BATCH,
    "gloabl batch size": _BATCH,
    "loss scale": FieldRule("loss_scale", float),
    "grad norm": FieldRule("grad_norm", float),
    "num zeros": FieldRule("num_zeros", float),
    "params norm": FieldRule("params_norm", float),
    "actual seqlen": FieldRule("actual_seqlen", int),
    "number of skipped iterations": FieldRule("skipped_iterations", int),
    "number of nan iterations": FieldRule("nan_iterations", int),
}


def printed_name(printed: str) -> str:
    """The name of a field without its blanks and capitals."""
    return " ".join(printed.lower().split())


def field_rule(printed: str) -> FieldRule:
    """The rule for a field as it is printed. A name that speaks of a loss is a loss term, an unknown one is `other`."""
    name = printed_name(printed)
    rule = FIELDS.get(name)
    if rule is not None:
        return rule
    return FieldRule(printed.strip(), float, kind="loss" if "loss" in name else "other")


class DamagedLineError(ValueError):
    """A line that begins like a record and is not one whole record."""


def read_field(
    rule: FieldRule, raw: str, values: Values, losses: dict[str, float], other: dict[str, float | str]
) -> None:
    """Read one field into the dictionary that its rule names.

    Raises:
        DamagedLineError: a known field is no number, no `None` and no pair of numbers.
    """
    try:
        if rule.kind == "loss":
            losses[rule.canonical] = float(raw)
        elif rule.kind == "value":
            values[rule.canonical] = None if raw.strip() == "None" else rule.convert(raw)
        elif rule.kind == "several":
            values.update(_hip_memory(raw))
        else:
            other[rule.canonical] = _number_or_text(raw)
    except ValueError:
        values.update(_pair(rule, raw))


def _number_or_text(raw: str) -> float | str:
    try:
        return float(raw)
    except ValueError:
        return raw.strip()[:200]


_AVERAGE = re.compile(r"\s*(\S+)\s*(?:/\s*(\S+)|\(avg\s+([^)\s]+)\))\s*")
_LONGEST_PAIR = 100  # the pattern is quadratic in the length of a hostile text


def _pair(rule: FieldRule, raw: str) -> Values:
    """The two numbers of `13100.0/13240.9` or `579.4 (avg 573.6)`: this step and the average."""
    match = _AVERAGE.fullmatch(raw) if rule.average and len(raw) <= _LONGEST_PAIR else None
    if match is not None and rule.average:
        try:
            return {rule.canonical: rule.convert(match[1]), rule.average: rule.convert(match[2] or match[3])}
        except ValueError:
            pass
    raise DamagedLineError(f"{rule.canonical!r} is no number, {raw.strip()[:60]!r}")


_AUXILIARY_WORDS = ("balanc", "mtp", "sop", "z_loss", "z loss", "aux")


def main_loss(losses: dict[str, float]) -> float | None:
    """The main training loss: `lm loss`, else `loss`, else `total loss`, else the first term that is not auxiliary."""
    for name in ("lm loss", "loss", "total loss"):
        if name in losses:
            return losses[name]
    for name, value in losses.items():
        if not any(word in name.lower() for word in _AUXILIARY_WORDS):
            return value
    return None
