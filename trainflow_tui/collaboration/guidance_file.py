"""The grammar of GUIDANCE.md: from its text to items. Unknown syntax is still guidance; nothing a person wrote is dropped."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from itertools import pairwise
from typing import Final

import msgspec

from trainflow_tui.collaboration.decoding import normalised
from trainflow_tui.collaboration.fences import Classified, FileWarning, LineKind, classify

__all__ = ["GUIDANCE_TEMPLATE", "MAX_ITEMS", "Item", "ParsedGuidance", "parse_guidance"]

GUIDANCE_TEMPLATE: Final = """\
# Guidance for {title}

<!--
Tell the agents what you want. Each `## ` heading begins one item; without headings, each paragraph is one.
You get a receipt for each item in RECEIPTS.md. Edit, move and remove items as you like: this file is yours.
-->
"""
"""What a new GUIDANCE.md holds; `{title}` is the task's."""

MAX_ITEMS: Final = 2000
"""What comes after the last of them is one more item, so that nothing is lost."""


class Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One human statement as it stands in the file."""

    explicit_id: str | None
    """`G7` or `g:k3f9qz`, where the heading has one that no earlier item has."""
    heading: str
    """Without marks and id; empty for a paragraph and for what stands before the first heading."""
    body: str
    """What is below the heading, without blank lines around it."""
    text: str
    """The whole of it as written, line ends LF."""
    anchor: str
    """SHA-256 of the normalised text without the id: what an item is recognised by while nobody changes it."""
    occurrence: int
    """How many earlier items have the same anchor."""
    first_line: int
    """Counted from 1."""


class ParsedGuidance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The items in the order of the file."""

    items: list[Item]
    warnings: list[FileWarning]


class _Block(msgspec.Struct, frozen=True):
    """A part of the file: where it begins (from 0) and its lines."""

    start: int
    lines: list[str]
    is_section: bool = False


_HEADING: Final = re.compile(r"##(?:[ \t]+|$)")
_ID: Final = re.compile(r"(?:(G[0-9]{1,9})(?=[\s:：]|$)|\[(g:[A-Za-z0-9]{6,52})\])[ \t]*[:：]?[ \t]*")
_ID_COMMENT: Final = re.compile(r"<!--[ \t]*(g:[A-Za-z0-9]{6,52})[ \t]*-->")


def parse_guidance(text: str, *, template: str) -> ParsedGuidance:
    """Divide the text into items.

    An item is a `## ` heading at the margin, outside of code, comments and front matter, with all that follows up to the
    next one. What stands before the first is one item; where there is no such heading, each paragraph is one. Front
    matter is an item of its own. The paragraphs of `template` (this task's, with its title) are left out where they
    still stand before the first heading. Every other line that is not blank is in exactly one item.
    """
    found = classify(text)
    starts = [i for i, line in enumerate(found.lines) if line.startswith("##") and _is_heading(found, i)]
    blocks = _before_headings(found, template, starts[0] if starts else None)
    for start, end in pairwise([*starts, len(found.lines)]):
        blocks.append(_Block(start, found.lines[start:end], is_section=True))
    warnings = found.warnings()
    if len(blocks) > MAX_ITEMS:
        first_left = blocks[MAX_ITEMS].start
        blocks[MAX_ITEMS:] = [_Block(first_left, found.lines[first_left:])]
        message = f"There are more than {MAX_ITEMS:,} items: from here on everything is taken as one."
        warnings.append(FileWarning(line=first_left + 1, code="too-many-items", text=message))
    items = _items(blocks, warnings)
    return ParsedGuidance(items=items, warnings=sorted(warnings, key=lambda warning: warning.line))


def _is_heading(found: Classified, index: int) -> bool:
    return found.kinds[index] == LineKind.TEXT and _HEADING.match(found.lines[index]) is not None


def _before_headings(found: Classified, template: str, first_heading: int | None) -> list[_Block]:
    """The items of what stands before the first heading; all of the file where there is none."""
    end = len(found.lines) if first_heading is None else first_heading
    front = found.kinds.count(LineKind.FRONT_MATTER)
    found.blank_template(template, front, end)
    blocks = [_Block(0, found.lines[:front])] if front else []
    paragraphs = [_Block(start, lines) for start, lines in found.paragraphs(front, end)]
    if first_heading is None or not paragraphs:
        return blocks + paragraphs
    start = paragraphs[0].start
    return [*blocks, _Block(start, found.lines[start:end])]


def _items(blocks: list[_Block], warnings: list[FileWarning]) -> list[Item]:
    items: list[Item] = []
    ids: set[str] = set()
    anchors: Counter[str] = Counter()
    for block in blocks:
        explicit_id, heading = _heading(block.lines[0]) if block.is_section else (None, "")
        if explicit_id in ids:
            message = f"The id {explicit_id} is used twice. Only the first item has it; give this one another, or none."
            warnings.append(FileWarning(line=block.start + 1, code="id-twice", text=message))
            explicit_id = None
        elif explicit_id is not None:
            ids.add(explicit_id)
        body = _trimmed(block.lines[1:] if block.is_section else block.lines)
        anchor = hashlib.sha256(normalised(f"## {heading}\n{body}" if block.is_section else body).encode()).hexdigest()
        items.append(
            Item(
                explicit_id=explicit_id,
                heading=heading,
                body=body,
                text=_trimmed(block.lines),
                anchor=anchor,
                occurrence=anchors[anchor],
                first_line=block.start + 1,
            )
        )
        anchors[anchor] += 1
    return items


def _heading(line: str) -> tuple[str | None, str]:
    """The id and the words of a heading line."""
    words = _without_closing_marks(line[2:].strip())
    comment = _ID_COMMENT.search(words)
    if comment:
        around = words[: comment.start()].rstrip(), words[comment.end() :].lstrip()
        words = _without_closing_marks(" ".join(filter(None, around)))
    leading = _ID.match(words)
    if leading:
        words = words[leading.end() :]
    if leading and leading[1]:
        return leading[1], words
    # Written by hand or by the program, in either case the same id.
    given = leading[2] if leading else comment[1] if comment else None
    return (given.lower() if given else None), words


def _without_closing_marks(words: str) -> str:
    # CommonMark 4.2: `## words ##`. No pattern: one that looks for blanks and marks from the end is quadratic.
    bare = words.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else words


def _trimmed(lines: list[str]) -> str:
    first, last = 0, len(lines)
    while first < last and not lines[first].strip():
        first += 1
    while last > first and not lines[last - 1].strip():
        last -= 1
    return "\n".join(lines[first:last])
