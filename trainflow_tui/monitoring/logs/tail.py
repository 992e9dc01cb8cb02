"""A growing file by byte offset: every complete line once, through truncation, copytruncate and rotation."""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

import msgspec

from trainflow_tui.monitoring.logs.lines import MAX_LINE_BYTES
from trainflow_tui.monitoring.logs.rotation import Found, Generation, locate, open_candidates, pread

MAX_POLL_BYTES = 16 << 20


class TailState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where reading stands. The caller stores it in the same transaction as the lines and gives it back.

    A sample's identity is (source, generation, byte offset of its line).
    """

    generation: int = 0
    """Counts the files and truncations that this source has gone through, from 1; 0: nothing was found yet."""
    file: Generation | None = None
    """How the file that is being read is recognised again."""
    offset: int = 0
    """Bytes of this generation that are delivered or skipped."""
    lines: int = 0
    """Lines of this generation that are delivered or skipped, so that the next one has number `lines + 1`."""
    is_skipping: bool = False
    """Inside a line longer than the cap, whose start was delivered."""
    size_bytes: int = 0
    """The size of the file when it was last seen; more than `offset`: an unfinished line, or more to read."""


class TailFinding(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something about the file that its reader has to know.

    Codes: `file-missing`, `not-a-regular-file`, `unreadable`, `truncated`, `rotated`, `rotated-file-gone`,
    `line-too-long`, `partial-line-dropped`.
    """

    code: str
    text: str
    generation: int
    offset: int


class NewLines(NamedTuple):
    """What one poll gives: all lines belong to `state.generation`."""

    lines: list[tuple[int, bytes]]
    state: TailState
    findings: tuple[TailFinding, ...]


def read_new(
    path: str | os.PathLike[str],
    state: TailState,
    *,
    max_bytes: int = MAX_POLL_BYTES,
    max_line_bytes: int = MAX_LINE_BYTES,
) -> NewLines:
    """The complete lines that were added since `state`, without their newlines, each with its byte offset.

    At most `max_bytes` are read (at least one line's cap); call again until there are no lines and the offset stays. A
    rotated file is read to its end first, then the next one; one call never mixes generations. A line longer than
    `max_line_bytes` is delivered cut to that length as soon as it is that long, and the rest of it is skipped. The path
    is never followed through a symbolic link, and nothing but a regular file is read.
    """
    findings: list[TailFinding] = []
    want = max(max_bytes, max_line_bytes + 1)
    with contextlib.ExitStack() as stack:
        candidates, problem = open_candidates(os.fspath(path), stack)
        place = locate(candidates, state.file, state.offset)
        if place is None and problem is not None:
            return NewLines([], state, (_finding(problem.code, problem.text, state),))
        if place is None:
            state, place = _begin(candidates[0], state, findings), 0
        while True:
            lines, state, at_end = _read_lines(candidates[place], state, want, max_line_bytes, findings)
            # The sizes were taken before this read. A writer that had begun a newer file by then writes here no more,
            # so the end that was reached is the end.
            newer_has_bytes = any(newer.size_bytes for newer in candidates[:place])
            if lines or not at_end or not newer_has_bytes:
                return NewLines(lines, state, tuple(findings))
            place -= 1
            state = _leave(candidates[place], state, findings)


def _begin(newest: Found, state: TailState, findings: list[TailFinding]) -> TailState:
    """A new generation at the file that now has the name, because the one that was being read is not found."""
    if state.file is not None:
        if newest.is_inode_of(state.file):
            code, text = "truncated", f"the file was truncated: {newest.size_bytes} bytes, read up to {state.offset}"
        else:
            code = "rotated-file-gone"
            text = f"the file read up to {state.offset} is gone; what was written behind that is lost"
        findings.append(_finding(code, text, state))
    return TailState(generation=state.generation + 1, file=newest.generation(0), size_bytes=newest.size_bytes)


def _leave(newer: Found, state: TailState, findings: list[TailFinding]) -> TailState:
    """Go on to the file that followed a rotated one."""
    rest = state.size_bytes - state.offset
    if rest > 0 and not state.is_skipping:
        text = f"the rotated file ends with {rest} bytes without a newline"
        findings.append(_finding("partial-line-dropped", text, state))
    findings.append(_finding("rotated", "the rotated file is read to its end; the next one begins", state))
    return TailState(generation=state.generation + 1, file=newer.generation(0), size_bytes=newer.size_bytes)


def _finding(code: str, text: str, state: TailState) -> TailFinding:
    return TailFinding(code=code, text=text, generation=state.generation, offset=state.offset)


def _read_lines(
    found: Found, state: TailState, want: int, cap: int, findings: list[TailFinding]
) -> tuple[list[tuple[int, bytes]], TailState, bool]:
    """One bounded read: the lines, the state behind them, and whether the end of the file was reached."""
    offset, count, skipping = state.offset, state.lines, state.is_skipping
    piece = pread(found.descriptor, want, offset)
    end, at_end = offset + len(piece), len(piece) < want
    if not skipping and piece[:1] == b"\0":
        piece = piece.lstrip(b"\0")
        if not piece:
            return [], _moved(found, state, _behind_hole(found.descriptor, state.offset, end, at_end=at_end)), at_end
        offset = end - len(piece)
    lines: list[tuple[int, bytes]] = []
    *parts, rest = piece.split(b"\n")
    for part in parts:
        if not skipping:
            lines.append((offset, part[:cap]))
            if len(part) > cap:
                findings.append(_too_long(offset, cap, state))
        skipping = False
        offset += len(part) + 1
        count += 1
    if skipping:
        offset = end
    elif len(rest) > cap:
        lines.append((offset, rest[:cap]))
        findings.append(_too_long(offset, cap, state))
        offset, skipping = end, True
    return lines, _moved(found, state, offset, end=end, lines=count, is_skipping=skipping), at_end


def _moved(
    found: Found, state: TailState, offset: int, *, end: int = 0, lines: int | None = None, is_skipping: bool = False
) -> TailState:
    return TailState(
        generation=state.generation,
        file=found.generation(offset),
        offset=offset,
        lines=state.lines if lines is None else lines,
        is_skipping=is_skipping,
        size_bytes=max(found.size_bytes, end),
    )


def _behind_hole(descriptor: int, offset: int, end: int, *, at_end: bool) -> int:
    """Where to read on when everything from `offset` to `end` is NUL.

    Such a hole stands before the first line of a writer that does not append and whose file was truncated. NUL bytes
    up to the end of the file stay: a writer may still be about to fill them.
    """
    if at_end:
        return offset
    with contextlib.suppress(OSError):  # no SEEK_DATA on this system, or no data behind the hole
        return max(end, os.lseek(descriptor, offset, getattr(os, "SEEK_DATA", -1)))
    return end


def _too_long(offset: int, cap: int, state: TailState) -> TailFinding:
    text = f"a line longer than {cap} bytes was cut"
    return TailFinding(code="line-too-long", text=text, generation=state.generation, offset=offset)
