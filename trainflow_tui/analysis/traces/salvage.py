"""Event by event through a piece that does not parse: keep what is whole, repair what can be read, count the rest.

What profilers have written (spec/traces.md §6 and §7): raw control characters, bytes that are no UTF-8, bare
backslashes and quotes in names, lone surrogates, lower-case inf and nan, keys given twice, null among the events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from trainflow_tui.analysis.traces.envelope import BARE_CONSTANT

JOIN_LIMIT = 40
"""How many fragments one event with nested objects may be spread over."""

# As pieces.BOUNDARY, with null, numbers and the like allowed between two events.
_EVENT_START = re.compile(
    rb'\}\s*,\s*(?:(?:null|true|false|-?\d[\d.eE+-]*)\s*,\s*)*(\{)\s*"(?:ph|name|cat|args|pid|tid|ts|dur|id|s|bp)"\s*:'
)
REPAIR_LIMIT = 3
"""How many ways of joining fragments are tried for an event that needs repair as well."""

_OBJECT_START = re.compile(r'\{\s*"(?:ph|name|cat|args|pid|tid|ts|dur|id|s|bp)"\s*:')
_NEXT_KEY = r'"\s*,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:'
_NAME = re.compile(r'("name"\s*:\s*")(.*?)(?=' + _NEXT_KEY + r'|"\s*\}\s*$)', re.DOTALL)
_BAD_ESCAPE = re.compile(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_BARE_QUOTE = re.compile(r'(?<!\\)((?:\\\\)*)"')
_SURROGATE = re.compile("[\ud800-\udfff]")
_ARRAY_ENDS = re.compile(r'\s*,?\s*\]\s*(?:,\s*"|\}|$)')
_SCALAR = re.compile(r"null|true|false|-?\d[\d.eE+-]*")
_SCALARS_BEFORE = re.compile(rf"[\s,]*(?:(?:{_SCALAR.pattern})[\s,]+)*")
_SCALARS_AFTER = re.compile(rf"(?:[\s,]+(?:{_SCALAR.pattern}))*")

# Floats stay text: a time must not pass through binary floating point.
_STRICT = json.JSONDecoder(strict=True, parse_float=str, parse_constant=lambda _: None)
_LENIENT = json.JSONDecoder(strict=False, parse_float=str, parse_constant=lambda _: None)


@dataclass(slots=True)
class Salvage:
    """What came out of one stretch of text."""

    events: list[dict[str, Any]] = field(default_factory=list)
    repaired: int = 0
    bad: int = 0
    not_events: int = 0
    first_bad: bool = False
    last_bad: bool = False
    end: int = 0
    """Where the stretch really ended: behind its last event, or behind the bad fragment."""
    array_ended: bool = False

    def rows(self) -> bytes:
        """The events as a JSON array, times as text, free of anything a strict parser refuses."""
        text = json.dumps(self.events, ensure_ascii=False, allow_nan=False)
        return _SURROGATE.sub("\ufffd", text).encode()


def fragments(text: memoryview) -> list[int]:
    """Where events seem to begin in `text`, and its length as the last element."""
    return [0, *(match.start(1) for match in _EVENT_START.finditer(text)), len(text)]


def salvage(text: memoryview, marks: list[int], first: int, stop: int, *, on_event: Callable[[], None]) -> Salvage:
    """Recover the events of fragments `first` up to at least `stop` (indices into `marks`).

    An event that reaches beyond `stop` is followed to its end. `on_event` is called for each fragment and may raise.
    """
    result = Salvage()
    index = first
    while index < stop and not result.array_ended:
        on_event()
        used, event = _next_event(text, marks, index, result)
        if event is None:
            result.bad += 1
            result.first_bad = result.first_bad or index == first
        else:
            result.events.append(event)
        result.last_bad = event is None
        index += used
    result.end = index
    return result


def _next_event(text: memoryview, marks: list[int], index: int, result: Salvage) -> tuple[int, dict[str, Any] | None]:
    """The event that begins at a fragment, and how many fragments it took: as written, repaired, or what is behind it."""

    def stretch(count: int) -> bytes:
        return bytes(text[marks[index] : marks[index + count]])

    counts = range(1, min(JOIN_LIMIT, len(marks) - 1 - index) + 1)
    for count in counts:
        event, clean = _parse(stretch(count).decode("utf-8", "replace"), result)
        if event is not None:
            result.repaired += not (clean and _is_proper(stretch(count), event))
            return count, event
    balanced = (count for count in counts if stretch(count).count(b"{") == stretch(count).count(b"}"))
    for count in {1: None} | dict.fromkeys(islice(balanced, REPAIR_LIMIT)):
        event = _parse_repaired(stretch(count).decode("utf-8", "replace"), result)
        if event is not None:
            result.repaired += 1
            return count, event
    readable = stretch(1).decode("utf-8", "replace")
    for start in list(_OBJECT_START.finditer(readable))[1 : JOIN_LIMIT + 1]:
        event, _ = _parse(readable[start.start() :], result)
        if event is not None:
            result.bad += 1  # what comes before it in this fragment broke off
            return 1, event
    return 1, None


def _is_proper(raw: bytes, event: dict[str, Any]) -> bool:
    """Whether nothing had to be replaced to read an event."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return not _SURROGATE.search(str(event.get("name", "")))


def _parse(text: str, result: Salvage) -> tuple[dict[str, Any] | None, bool]:
    """The one event in `text`, scalars around it passed over; and whether it was valid JSON as it stood."""
    before = _SCALARS_BEFORE.match(text)
    start = before.end() if before else 0
    for decoder in (_STRICT, _LENIENT):
        try:
            event, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        after = _SCALARS_AFTER.match(text, end)
        end = after.end() if after else end
        array_ends = _ARRAY_ENDS.match(text, end)
        if not isinstance(event, dict) or "ph" not in event or (text[end:].strip(" \t\r\n,") and not array_ends):
            break
        result.array_ended = result.array_ended or array_ends is not None
        result.not_events += sum(len(_SCALAR.findall(match.group())) for match in (before, after) if match)
        return _with_plain_arguments(event), decoder is _STRICT
    return None, False


def _parse_repaired(text: str, result: Salvage) -> dict[str, Any] | None:
    """The event after ever stronger repairs: bare constants, then the name quoted anew, then bare backslashes."""
    text = BARE_CONSTANT.sub(": null", text)
    renamed = _NAME.sub(_escape_name, text, count=1)
    for repaired in (text, renamed, _BAD_ESCAPE.sub(r"\\\\", text), _BAD_ESCAPE.sub(r"\\\\", renamed)):
        event, _ = _parse(repaired, result)
        if event is not None:
            return event
    return None


def _escape_name(match: re.Match[str]) -> str:
    """A name as it was meant: with one bad escape in it, none of its backslashes is an escape."""
    name = match.group(2)
    if _BAD_ESCAPE.search(name):
        name = re.sub(r'\\(?!")', r"\\\\", name)
    return match.group(1) + _BARE_QUOTE.sub(r'\1\\"', name)


def _with_plain_arguments(event: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(event.get("args"), dict):
        event.pop("args", None)
    return event
