"""Cutting the text of a trace into pieces that hold whole events, and reading the keys around them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainflow_tui.analysis.traces.envelope import lenient_object, not_a_trace, strict_object
from trainflow_tui.analysis.traces.source import TraceSource
from trainflow_tui.analysis.traces.structure import scan
from trainflow_tui.errors import DamagedError

LOOKAHEAD_BYTES = 1 << 20
"""Text held back behind every cut, so that the keys after the events (26 KB in real files) come with the last piece."""
HEADER_LIMIT_BYTES = 256 << 20
PIECE_LIMIT_BYTES = 1 << 30
TAIL_LIMIT_BYTES = 64 << 20
PATIENCE = 4
"""How many times its size the buffer grows before a structural cut is given up: stray quotes can hide every end."""

# Two events touch here. The pattern needs unescaped quotes, so no valid string contains it; inside nested arrays it can
# occur, and then the pieces on both sides are unbalanced and fail to parse, which is never silent (spec/engine.md §3).
BOUNDARY = re.compile(rb'\}\s*,\s*(\{)\s*"(?:ph|name|cat|args|pid|tid|ts|dur|id|s|bp)"\s*:')
_ANY_BOUNDARY = re.compile(rb"\}\s*,\s*\{")
_TAIL = re.compile(rb'\s*(?:,\s*"|\}|\Z)')
_EVENT_KEY = re.compile(rb'"ph"\s*:')
_SEPARATOR = re.compile(rb"[\s,]*")
_EVENTS_KEY = re.compile(rb'"traceEvents"\s*:\s*')
_ARRAY_END = re.compile(rb"(?:\}\s*,?|\A[\s,]*)\s*\]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some events as JSON text without the brackets around them. Valid until the next one is asked for."""

    body: memoryview
    final: bool
    rest: memoryview | None = None
    """For a last piece whose end had to be guessed: the whole text, to salvage from if the guess does not parse."""


class EventArray:
    """The events of one trace, handed out in pieces; the keys around them afterwards in `metadata`."""

    def __init__(self, source: TraceSource, *, piece_bytes: int, structural: bool = False) -> None:
        self._source = source
        self._piece_bytes = piece_bytes
        self._structural = structural
        self._buffer = bytearray(piece_bytes + LOOKAHEAD_BYTES)
        self._used = 0
        self._ended = False
        self._rooted_in_object = True
        self.metadata: dict[str, Any] = {}
        self.truncated = False
        self.header_damaged = False
        self.tail_damaged = False

    def head(self) -> memoryview:
        """The beginning of the events, at most 64 KB, for a look at how times are written. Reads the header first.

        Raises:
            DamagedError: this is no trace; says why.
        """
        self._fill()
        self._skip_header()
        self._fill()
        return memoryview(self._buffer)[: min(self._used, 1 << 16)]

    def pieces(self) -> Iterator[Piece]:
        """The pieces in order; `head` must have been called. Ends with the piece whose `final` is set.

        Raises:
            DamagedError: one event is larger than can be held.
        """
        while True:
            self._fill()
            if self._ended and self._used <= self._piece_bytes + LOOKAHEAD_BYTES:
                yield self._last_piece()
                break
            cut = self._structural_cut() if self._structural else self._quick_cut()
            if cut is None and len(self._buffer) >= PATIENCE * (self._piece_bytes + LOOKAHEAD_BYTES):
                cut = self._boundary_cut()
            if isinstance(cut, Piece):
                yield cut
                break
            if cut is None and self._ended:
                yield self._last_piece()
                break
            if cut is None:
                self._grow()
                continue
            yield Piece(memoryview(self._buffer)[:cut], final=False)
            self._discard(self._after_separator(cut))
        self._source.drain()
        self.truncated = self.truncated or self._source.truncated

    def _fill(self) -> None:
        view = memoryview(self._buffer)
        while not self._ended and self._used < len(self._buffer):
            count = self._source.readinto(view[self._used :])
            self._used += count
            self._ended = count == 0

    def _grow(self) -> None:
        if len(self._buffer) >= PIECE_LIMIT_BYTES:
            raise DamagedError(
                "trace-event-too-large",
                f"No end of an event within {len(self._buffer) >> 20} MB.",
                next_step="Check that the file is a Chrome trace.",
            )
        larger = bytearray(2 * len(self._buffer))
        larger[: self._used] = memoryview(self._buffer)[: self._used]
        self._buffer = larger

    def _discard(self, count: int) -> None:
        view = memoryview(self._buffer)
        view[: self._used - count] = view[count : self._used]
        self._used -= count

    def _after_separator(self, at: int) -> int:
        match = _SEPARATOR.match(self._buffer, at, self._used)
        return match.end() if match else at

    # -- the keys before the events

    def _skip_header(self) -> None:
        if self._buffer.startswith(_BYTE_ORDER_MARK):
            self._discard(len(_BYTE_ORDER_MARK))
        start = self._after_separator(0)
        opening = bytes(self._buffer[start : min(start + 1, self._used)])
        if opening == b"[":
            self._rooted_in_object = False
            self._discard(start + 1)
        elif opening == b"{":
            self._skip_to_events(start)
        else:
            found = "it is empty" if not self._used else "it does not begin with { or ["
            raise not_a_trace(found)

    def _skip_to_events(self, start: int) -> None:
        match = _EVENTS_KEY.search(self._buffer, start, self._used)
        while not match or match.end() == self._used:
            if self._ended or self._used > HEADER_LIMIT_BYTES:
                raise not_a_trace("it has no traceEvents")
            self._grow()
            self._fill()
            match = _EVENTS_KEY.search(self._buffer, start, self._used)
        if self._buffer[match.end()] != ord("["):
            raise not_a_trace("its traceEvents is not an array")
        header = bytes(self._buffer[start : match.start()]).rstrip(b" \t\r\n,") + b"}"
        keys = lenient_object(header)
        self.header_damaged = keys is None
        self.metadata.update(keys or {})
        self._discard(match.end() + 1)

    # -- cutting

    def _quick_cut(self) -> int | None:
        cut = self._boundary_cut() or self._structural_cut()
        return cut if isinstance(cut, int) else None

    def _boundary_cut(self) -> int | None:
        """Behind the last event that ends within a piece, else the first that ends at all, by the text between."""
        window = 1 << 16
        high = min(self._piece_bytes, self._used)
        while True:
            low = max(0, high - window)
            ends = [match.start() + 1 for match in BOUNDARY.finditer(self._buffer, low, high)]
            if ends:
                return ends[-1]
            if low == 0:
                break
            window *= 8
        first = BOUNDARY.search(self._buffer, 0, self._used)
        return first.start() + 1 if first else None

    def _structural_cut(self) -> int | Piece | None:
        """Behind the last event that ends within a piece by bracket count; the last piece if the array ends here."""
        structure = scan(memoryview(self._buffer)[: self._used])
        if structure.array_end is not None and self._structural:
            piece = self._ended_piece(structure.array_end)
            if piece:
                return piece
        ends = structure.event_ends
        within = ends[ends <= self._piece_bytes]
        for end in (within if len(within) else ends)[::-1]:
            # A stray quote turns the count inside out; the text behind a true end looks like this all the same.
            if _ANY_BOUNDARY.match(self._buffer, int(end) - 1, self._used):
                return int(end)
        return None

    # -- the last piece and the keys after the events

    def _last_piece(self) -> Piece:
        piece = None if self._structural else self._piece_before_keys()
        if piece:
            return piece
        structure = scan(memoryview(self._buffer)[: self._used])
        piece = None if structure.array_end is None else self._ended_piece(structure.array_end)
        if piece is None and self._structural:
            piece = self._piece_before_keys()
        return piece or self._piece_without_end(structure.event_ends)

    def _piece_before_keys(self) -> Piece | None:
        """The last piece, up to the first bracket near the end that only keys of an object follow; takes the keys."""
        for match in _ARRAY_END.finditer(self._buffer, max(0, self._used - LOOKAHEAD_BYTES), self._used):
            if self._take_tail(match.end(), lenient=False):
                return self._piece_up_to(match.end() - 1)
        return None

    def _ended_piece(self, array_end: int) -> Piece | None:
        """The last piece where the bracket count found its end, if what follows is no event; takes the keys behind."""
        self._read_rest(array_end)
        if not self._take_tail(array_end, lenient=False):
            if not _TAIL.match(self._buffer, array_end, self._used):
                return None
            if _EVENT_KEY.search(self._buffer, array_end, self._used):
                return None
            if not self._take_tail(array_end, lenient=True):
                self.tail_damaged = True
                self.truncated = self.truncated or not self._is_closed()
        piece = self._piece_up_to(array_end - 1)
        return Piece(piece.body, final=True, rest=memoryview(self._buffer)[: self._used])

    def _piece_without_end(self, event_ends: npt.NDArray[np.intp]) -> Piece:
        """The last piece of a file that breaks off, or whose quotes are so damaged that its end cannot be found."""
        view = memoryview(self._buffer)[: self._used]
        end = int(event_ends[-1]) if len(event_ends) else 0
        if BOUNDARY.search(self._buffer, end, self._used):  # events behind the last one: the count went astray
            self.tail_damaged = self._is_closed()
            self.truncated = not self.tail_damaged
            return Piece(view, final=True, rest=view)
        self.truncated = True
        return Piece(view[:end], final=True, rest=view)

    def _is_closed(self) -> bool:
        return bytes(self._buffer[max(0, self._used - 64) : self._used]).rstrip().endswith((b"}", b"]"))

    def _read_rest(self, array_end: int) -> None:
        while not self._ended and self._used - array_end < TAIL_LIMIT_BYTES:
            self._grow()
            self._fill()

    def _piece_up_to(self, end: int) -> Piece:
        while end and self._buffer[end - 1] in b" \t\r\n,":
            end -= 1
        return Piece(memoryview(self._buffer)[:end], final=True)

    def _take_tail(self, array_end: int, *, lenient: bool) -> bool:
        """Read what follows the array as the rest of an object; False if it is not."""
        rest = bytes(self._buffer[array_end : self._used]).strip()
        if not self._rooted_in_object:
            return not rest or lenient
        text = b'{"":0' + rest
        keys = lenient_object(text) if lenient else strict_object(text)
        if keys is None:
            return False
        keys.pop("", None)
        self.metadata.update(keys)
        return True
