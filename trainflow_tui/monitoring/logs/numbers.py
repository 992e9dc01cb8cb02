"""Numbers as logs print them: thousands separators, durations in words, and the comma that could be either."""

from __future__ import annotations

import re

DECIMAL_COMMA = "decimal comma: ambiguous with thousands separators"

_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_DURATION = re.compile(r"(?:(\d+) days?, )?(\d+):(\d\d):(\d\d(?:\.\d+)?)")


class AmbiguousNumber(ValueError):  # noqa: N818  # it says what the number is
    """A comma that may part thousands or decimals."""


def read_number(text: str) -> float:
    """A printed number; `12,345.6` has thousands separators, `nan` and `inf` are numbers.

    Raises:
        AmbiguousNumber: the comma does not part thousands, or it could part decimals as well (`2,345`).
        ValueError: the text is no number.
    """
    if "," not in text:
        return float(text)
    if _THOUSANDS.fullmatch(text) and ("." in text or text.count(",") > 1):
        return float(text.replace(",", ""))
    raise AmbiguousNumber(text)


def duration_s(text: object) -> float | int | None:
    """Seconds of `5:13:22` or `1 day, 0:00:10`; None for anything else."""
    match = _DURATION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        return None
    days, hours, minutes, seconds = match.groups()
    whole = int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60
    return whole + (float(seconds) if "." in seconds else int(seconds))
