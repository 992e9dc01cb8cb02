"""Bytes of a log to lines worth parsing: blocks of whole lines, a cheap search for marker words, cleaned text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 20
"""What is read of one line. Longer ones are progress bars or binary spill, never records."""

BLOCK_BYTES = 1 << 20

# CSI and OSC sequences, then two-character escapes (ECMA-48). An OSC stops at the next escape, so the search is linear.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]")


def clean_segments(raw: bytes) -> list[str]:
    """The texts of one line: without NUL and terminal escapes, split where a carriage return rewrites the line.

    Bytes that are not UTF-8 become replacement characters. Blank segments are left out.
    """
    raw = raw[:MAX_LINE_BYTES]
    if b"\0" in raw:
        raw = raw.replace(b"\0", b"")
    text = raw.decode("utf-8", "replace")
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if "\r" not in text:
        return [text] if text and not text.isspace() else []
    return [segment for segment in text.split("\r") if segment and not segment.isspace()]


def candidate_lines(block: bytes, markers: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """The lines of `block` that hold any of the markers, with their index in the block, in order.

    `block` is whole lines. Searching the block once for each marker costs about 35 ns a marker and line of 80 bytes; a
    test of each line costs ten times that. Put the marker first that most lines hold in a log full of records.
    """
    if block.count(markers[0]) * 2 > block.count(b"\n"):
        return _dense(block, markers)
    found: dict[int, int] = {}
    for marker in markers:
        at = block.find(marker)
        while at >= 0:
            end = block.find(b"\n", at)
            if end < 0:
                end = len(block)
            found[block.rfind(b"\n", 0, at) + 1] = end
            at = block.find(marker, end)
    lines: list[tuple[int, bytes]] = []
    index = counted = 0
    for start in sorted(found):
        index += block.count(b"\n", counted, start)
        counted = start
        lines.append((index, block[start : found[start]]))
    return lines


def _dense(block: bytes, markers: Sequence[bytes]) -> list[tuple[int, bytes]]:
    """The same for a block where most lines hold the first marker: only the others are searched for the rest."""
    first, *rest = markers
    places: list[int] = []
    others: list[bytes] = []
    lines: list[tuple[int, bytes]] = []
    for index, line in enumerate(block.split(b"\n")):
        if first in line:
            lines.append((index, line))
        elif line:
            places.append(index)
            others.append(line)
    if others and rest:
        lines += [(places[index], line) for index, line in candidate_lines(b"\n".join(others), rest)]
        lines.sort()
    return lines


class BlockReader:
    """Blocks of whole lines from a binary stream; afterwards `tail` holds what stands behind the last newline.

    NUL bytes at the start of the stream are counted and skipped: a hole left by a writer that went on at its old offset
    after the file had been truncated. A line longer than `MAX_LINE_BYTES` is cut to one byte more than that, so that
    whoever reads the line sees that there was more.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.leading_nul_bytes = 0
        self.bytes_read = 0
        self.tail = b""

    @property
    def tail_offset(self) -> int:
        """Where `tail` begins, in bytes from the start of the stream."""
        return self.bytes_read - len(self.tail)

    def __iter__(self) -> Iterator[bytes]:
        carry = b""
        skipping = False
        while chunk := self._stream.read(BLOCK_BYTES):
            nul_only_so_far = self.bytes_read == self.leading_nul_bytes
            self.bytes_read += len(chunk)
            if nul_only_so_far:
                text = chunk.lstrip(b"\0")
                self.leading_nul_bytes += len(chunk) - len(text)
                chunk = text
            if skipping:
                _, newline, chunk = chunk.partition(b"\n")
                skipping = not newline
            carry += chunk
            end = carry.rfind(b"\n") + 1
            if end:
                yield carry[:end]
                carry = carry[end:]
            if len(carry) > MAX_LINE_BYTES:
                yield carry[: MAX_LINE_BYTES + 1] + b"\n"
                carry, skipping = b"", True
        self.tail = carry
