"""The keys around the events of a trace: plain JSON, read whole, with patience for what profilers get wrong."""

from __future__ import annotations

import json
import re
from typing import Any

from trainflow_tui.errors import DamagedError

BARE_CONSTANT = re.compile(r":\s*[-+]?(?:inf|infinity|nan)\s*(?=[,}\]])", re.IGNORECASE)
_TRAILING_COMMA = re.compile(r",(?=\s*[\]}])")


def not_a_trace(reason: str) -> DamagedError:
    """The error for a stream that holds something else; `reason` completes "This is not a profiler trace: …"."""
    return DamagedError(
        "not-a-trace",
        f"This is not a profiler trace: {reason}.",
        next_step="Expected is Chrome trace JSON as PyTorch's profiler writes it, plain or gzip.",
    )


def strict_object(text: bytes) -> dict[str, Any] | None:
    """The object that `text` is, or None."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def lenient_object(text: bytes) -> dict[str, Any] | None:
    """The same, also with trailing commas, bare inf and nan, control characters and bytes that are no UTF-8."""
    value = strict_object(text)
    if value is None:
        readable = _TRAILING_COMMA.sub("", BARE_CONSTANT.sub(": null", text.decode("utf-8", "replace")))
        try:
            value = json.loads(readable, strict=False)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None
