"""The lines of a human's Markdown file, and which of them are opaque: a `##` in a code block is text, not a heading.

A line scanner, because only one question is asked of the Markdown. markdown-it-py answers it too, and is what the tests
compare with, but takes 2 s for the block structure of 1 MB where a whole parse may take 50 ms. Written after CommonMark
0.31: 4.5 fenced code, 4.6 HTML blocks (comments only), 5.2 list items. It departs in one point: a comment that is never
closed is no comment, so that a slip of the pen does not hide the rest of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from enum import IntEnum
from typing import Final

import msgspec

__all__ = ["Classified", "FileWarning", "LineKind", "classify"]


class LineKind(IntEnum):
    """What a line belongs to."""

    TEXT = 0
    FENCED = 1
    """Fenced code, with the fences themselves."""
    COMMENT = 2
    """An HTML comment that begins its line."""
    FRONT_MATTER = 3
    """YAML between `---` lines at the very top."""
    BLOCK = 4
    """Between the two marker lines that the caller named, with both."""


class FileWarning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the writer of a file should know about one of its lines."""

    line: int
    """Counted from 1."""
    code: str
    text: str


class Classified(msgspec.Struct):
    """All lines of a text without their ends, and the `LineKind` of each."""

    lines: list[str]
    kinds: bytearray
    unclosed_fence: int | None = None
    """The line, from 1, of a fence that runs to the end of the file because nothing closes it."""

    def paragraphs(self, start: int, end: int) -> Iterator[tuple[int, list[str]]]:
        """Runs of lines between blank ones, each with the index at which it begins. A blank line in code divides nothing."""
        begin = start
        for index in range(start, end):
            if not self.lines[index].strip() and self.kinds[index] == LineKind.TEXT:
                if begin < index:
                    yield begin, self.lines[begin:index]
                begin = index + 1
        if begin < end:
            yield begin, self.lines[begin:end]

    def blank_template(self, template: str, start: int, end: int) -> None:
        """Empty the lines of each paragraph of a form, once each, also where somebody went on writing right below it."""
        form = classify(template)
        known = [[line.rstrip() for line in lines] for _, lines in form.paragraphs(0, len(form.lines))]
        for begin, lines in list(self.paragraphs(start, end)):
            for wanted in known:
                if lines[0].rstrip() != wanted[0]:
                    continue
                if [line.rstrip() for line in lines[: len(wanted)]] == wanted:
                    known.remove(wanted)
                    self.lines[begin : begin + len(wanted)] = [""] * len(wanted)
                    self.kinds[begin : begin + len(wanted)] = bytes(len(wanted))
                    break

    def warnings(self) -> list[FileWarning]:
        """Remarks about the structure, for the writer of the file."""
        if self.unclosed_fence is None:
            return []
        text = "This code fence is never closed: everything below it counts as code."
        return [FileWarning(line=self.unclosed_fence, code="fence-unclosed", text=text)]


_FENCE: Final = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_LIST_MARKER: Final = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?:([ \t]+)(?=[^ \t])|[ \t]*$)")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
_THEMATIC_BREAK: Final = re.compile(r"([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*$")
_SPECIAL: Final = frozenset(" \t`~<#>-*+_=0123456789")
_BLANKS: Final = re.compile(r"[ \t]*")
_MAX_NESTING: Final = 20
_KEY: Final = re.compile(r"[\w.-]+[ \t]*:")
_KEY_OR_VALUE: Final = re.compile(r"[\w.-]+[ \t]*:|[ \t]+\S|- ")


def classify(text: str, *, block: tuple[re.Pattern[str], re.Pattern[str]] | None = None) -> Classified:
    """Split a text into lines (LF, CRLF or CR) and tell the kind of each, in time proportional to its length.

    `block` holds two patterns for whole lines, an opening and a closing one. Lines between such a pair are opaque,
    whatever they hold; a marker without its partner is an ordinary line.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not lines[-1]:
        lines.pop()
    start = _front_matter_end(lines)
    kinds = bytearray([LineKind.FRONT_MATTER]) * start + bytearray(len(lines) - start)
    scanner = _Scanner(lines, kinds, block)
    if "```" not in text and "~~~" not in text and not scanner.has_marks:
        return Classified(lines, kinds)
    return Classified(lines, kinds, scanner.run(start))


def _front_matter_end(lines: list[str]) -> int:
    """The number of lines of front matter. Strict, since a text may well begin with a rule: a blank line undoes it."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    for index, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return index + 1 if index > 1 else 0
        if not (_KEY if index == 1 else _KEY_OR_VALUE).match(line):
            return 0
    return 0


class _Scanner:
    """One pass over the lines; holds where in the nesting of lists the pass is."""

    def __init__(
        self, lines: list[str], kinds: bytearray, block: tuple[re.Pattern[str], re.Pattern[str]] | None
    ) -> None:
        self._lines = lines
        self._kinds = kinds
        self._comment_ends = [index for index, line in enumerate(lines) if "-->" in line]
        self._block_starts = [i for i, line in enumerate(lines) if block and block[0].fullmatch(line)]
        self._block_ends = [i for i, line in enumerate(lines) if block and block[1].fullmatch(line)]
        self.has_marks = bool(self._comment_ends or self._block_starts)
        """There may be something opaque besides fences."""
        self._items: list[int] = []
        """The columns at which the content of each open list item begins."""
        self._in_paragraph = False
        self._in_quote = False
        """The paragraph is in a block quote: it can go on without the mark, but keeps no list from beginning."""
        self._item_is_empty = False
        """The line before was a list marker alone; a blank line ends such an item."""

    def run(self, start: int) -> int | None:
        """Mark every opaque line from `start` on; returns the line, from 1, of a fence that stays open."""
        index, lines = start, self._lines
        while index < len(lines):
            line = lines[index]
            if not self._items and line[:1] not in _SPECIAL:
                # Most lines by far: text at the margin, or nothing.
                self._in_paragraph = line != ""
                self._in_quote = self._in_quote and self._in_paragraph
                index += 1
                continue
            end, kind, closed = self._opaque(index)
            if kind is LineKind.TEXT:
                index += 1
                continue
            self._kinds[index:end] = bytes([kind]) * (end - index)
            if not closed:
                return index + 1
            index, self._in_paragraph, self._in_quote = end, False, False
        return None

    def _opaque(self, index: int) -> tuple[int, LineKind, bool]:
        """Look at one line outside of all opaque ones: where the opaque part that begins there ends, if one does."""
        line = self._lines[index]
        nothing = (index + 1, LineKind.TEXT, True)
        at = _indent(line)
        column = _width(line, at)
        if at == len(line):
            if self._item_is_empty:
                self._items.pop()
            self._in_paragraph = self._in_quote = self._item_is_empty = False
            return nothing
        self._item_is_empty = False
        at, column = self._enter_lists(line, at, column)
        base = self._items[-1] if self._items else 0
        if column - base > 3:
            return nothing
        if (end := self._block_end(index)) is not None:
            return end, LineKind.BLOCK, True
        if fence := _FENCE.match(line, at):
            end, closed = self._fence_end(index + 1, fence[1] or fence[2], base)
            return end, LineKind.FENCED, closed
        if line.startswith("<!--", at):
            end = self._next(self._comment_ends, index)
            if end is not None:
                return end + 1, LineKind.COMMENT, True
        underlines = self._in_paragraph and not self._in_quote and column >= base and _UNDERLINE.match(line, at)
        ends = underlines or at == len(line) or _HEADING.match(line, at) or _THEMATIC_BREAK.match(line, at)
        self._in_paragraph = not ends
        self._in_quote = self._in_paragraph and (self._in_quote or line.startswith(">", at))
        return nothing

    def _enter_lists(self, line: str, at: int, column: int) -> tuple[int, int]:
        """Leave the list items that the line does not continue and enter those that it begins.

        Returns the position and column of the content behind the markers.
        """
        if self._items and column < self._items[-1] and not self._is_lazy(line, at, column):
            self._in_paragraph = self._in_quote = False
            while self._items and column < self._items[-1]:
                self._items.pop()
        base = self._items[-1] if self._items else 0
        for _ in range(_MAX_NESTING):
            if column - base > 3 or _THEMATIC_BREAK.match(line, at) or not (marker := _LIST_MARKER.match(line, at)):
                break
            if self._in_paragraph and not self._in_quote and not _may_interrupt(marker):
                break
            blanks = marker[2] or " "
            width = marker.end() - marker.start() - len(marker[2] or "") + _width(blanks, len(blanks))
            self._in_paragraph = self._in_quote = False
            if _width(blanks, len(blanks)) > 4:
                # Five blanks begin an indented code block inside of the item.
                self._items.append(column + width - _width(blanks, len(blanks)) + 1)
                return len(line), column + width
            self._item_is_empty = marker[2] is None
            at, column = marker.end(), column + width
            base = column
            self._items.append(base)
        return at, column

    def _is_lazy(self, line: str, at: int, column: int) -> bool:
        """Whether the line goes on with a list item's paragraph without being indented (CommonMark 5.2, laziness)."""
        if not self._in_paragraph or line.startswith(("<", ">"), at):
            return False
        if column > 3:
            return True
        marker = _LIST_MARKER.match(line, at)
        begins = _HEADING.match(line, at) or _FENCE.match(line, at) or _THEMATIC_BREAK.match(line, at)
        return not begins and not marker

    def _fence_end(self, index: int, fence: str, base: int) -> tuple[int, bool]:
        closing = re.compile(re.escape(fence[0]) + "{" + str(len(fence)) + r",}[ \t]*$")
        for end in range(index, len(self._lines)):
            line = self._lines[end]
            at = _indent(line)
            if at == len(line):
                continue
            column = _width(line, at)
            if column < base:
                # The list item ends here, and the fence with it.
                return end, True
            if column - base <= 3 and closing.match(line, at):
                return end + 1, True
        return len(self._lines), False

    def _block_end(self, index: int) -> int | None:
        if self._next(self._block_starts, index) != index:
            return None
        end, other = self._next(self._block_ends, index), self._next(self._block_starts, index + 1)
        return None if end is None or (other is not None and other < end) else end + 1

    @staticmethod
    def _next(places: list[int], index: int) -> int | None:
        found = bisect_left(places, index)
        return places[found] if found < len(places) else None


def _may_interrupt(marker: re.Match[str]) -> bool:
    """Whether a list item may begin inside of a paragraph: not an empty one, nor a number other than 1."""
    return marker[2] is not None and marker[1] in (None, "1")


def _indent(line: str) -> int:
    found = _BLANKS.match(line)
    return found.end() if found else 0


def _width(line: str, end: int) -> int:
    """Columns of the first `end` characters, all of them blanks; a tab goes to the next multiple of 4."""
    if "\t" not in line[:end]:
        return end
    return len(line[:end].expandtabs(4))
