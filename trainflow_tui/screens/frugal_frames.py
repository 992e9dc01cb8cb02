"""Says a frame in few bytes: only cells that differ from what the terminal shows, only the part of a style that changes.

Textual 8.2.8 sends a changed line from its widget's left edge and ends every stretch of text with a reset of all styles.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from rich.cells import get_character_cell_size
from rich.color import ColorSystem
from rich.console import Console
from rich.control import Control
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

from trainflow_tui.text import cell_len

_MARK: Final = "_says_it_in_few_bytes"
_BRIDGE_CELLS: Final = 8
"""Equal cells between two changed ones that are sent again: going to another column costs as many bytes."""
_WIDE_END: Final = "wide"
_SGR: Final = re.compile(r"\x1b\[([0-9;]*)m")
_MOVES: Final = re.compile(r"(?:\x1b\[\d+;\d+H|\n)+")
_UNSEEN_ON_BLANKS: Final = frozenset({"1", "2", "3"})
"""Bold, dim, italic."""
_HALF_FLAGS: Final = frozenset(map(chr, range(0x1F1E6, 0x1F200)))
_COLOUR: Final = re.compile(r"(?:[34]8;(?:5;\d+|2;\d+;\d+;\d+)|\d+)")
Cell = tuple[str, str]
"""A character and its style's codes; the second cell of a wide character says so, and whose it is."""


# Which cells


class Change(NamedTuple):
    """Cells of a line that the terminal does not show; None for `cells` where nobody can tell how it lays them out."""

    y: int
    x1: int
    x2: int
    cells: list[Cell] | None


class Picture:
    """What the terminal shows, as far as it is known."""

    def __init__(self) -> None:
        self._lines: dict[int, dict[int, Cell]] = {}

    def forget(self) -> None:
        """Nobody knows what it shows: it was resized, or lent to another program."""
        self._lines.clear()

    def differing(self, update: ChopsUpdate, colours: ColorSystem) -> list[Change]:
        """The cells of an update that do not look like those that are shown."""
        found: list[Change] = []
        for y, x1, x2 in update.spans:
            for x, strip in _pieces(update, y, x1, x2):
                cells = _cells(strip, colours)
                if cells is None:
                    found.append(Change(y, x, x + strip.cell_length, None))
                else:
                    shown = self._lines.get(y, {})
                    found += _runs(y, x, cells, shown)
        return _joined(found)

    def drawn(self, changes: Iterable[Change]) -> None:
        """The terminal was told to show these."""
        for y, x1, x2, cells in changes:
            line = self._lines.setdefault(y, {})
            if cells is None:
                for x in range(x1 - 1, x2):  # its first character may join the one before
                    line.pop(x, None)
            else:
                line.update(zip(range(x1, x2), cells, strict=True))


def _runs(y: int, x: int, cells: list[Cell], shown: dict[int, Cell]) -> Iterator[Change]:
    start = last = -1
    for place, cell in enumerate(cells):
        if shown.get(x + place) != cell:
            if start >= 0 and place - last > _BRIDGE_CELLS:
                yield _change(y, x, cells, start, last)
                start = -1
            start = place if start < 0 else start
            last = place
    if start >= 0:
        yield _change(y, x, cells, start, last)


def _change(y: int, x: int, cells: list[Cell], start: int, last: int) -> Change:
    # Neither end may cut a wide character: half of one that is overwritten takes the other half with it.
    if cells[start][1].startswith(_WIDE_END):
        start -= 1
    if last + 1 < len(cells) and cells[last + 1][1].startswith(_WIDE_END):
        last += 1
    return Change(y, x + start, x + last + 1, cells[start : last + 1])


def _joined(changes: list[Change]) -> list[Change]:
    """Neighbours as one, where both are known."""
    joined: list[Change] = []
    for change in changes:
        before = joined[-1] if joined else None
        if before and before.cells and change.cells and (before.y, before.x2) == (change.y, change.x1):
            joined[-1] = Change(change.y, before.x1, change.x2, before.cells + change.cells)
        else:
            joined.append(change)
    return joined


def _pieces(update: ChopsUpdate, y: int, x1: int, x2: int) -> Iterator[tuple[int, Strip]]:
    """What an update holds for a stretch of a line, with its column."""
    for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
        if strip is None or x >= x2 or end <= x1:
            continue
        left, right = max(x, x1), min(end, x2)
        if (left, right) != (x, end):
            left, right = _uncut(strip, x, left, right)
        piece = strip.crop(left - x, right - x) if (left, right) != (x, end) else strip
        if piece.cell_length:
            yield left, piece


def _uncut(strip: Strip, x: int, left: int, right: int) -> tuple[int, int]:
    """A stretch of a strip at column x, made longer where an end would cut a wide character."""
    if all(text.isascii() for text, _, _ in strip):
        return left, right
    cells = _cells(strip, ColorSystem.TRUECOLOR)
    if cells is None:
        return x, x + strip.cell_length
    if left - x < len(cells) and cells[left - x][1].startswith(_WIDE_END):
        left -= 1
    if right - x < len(cells) and cells[right - x][1].startswith(_WIDE_END):
        right += 1
    return left, right


def _cells(strip: Strip, colours: ColorSystem) -> list[Cell] | None:
    """The cells of a strip; None if it holds a control or a character that joins with others: nobody knows what it takes."""
    cells: list[Cell] = []
    for text, style, _ in strip:
        codes = _codes(style, colours)
        if text.isascii() and text.isprintable():
            blank = (" ", _of_blank(codes))
            cells += [blank if character == " " else (character, codes) for character in text]
            continue
        size = 0
        for character in text:
            width = get_character_cell_size(character)
            if width < 1 or character in _HALF_FLAGS or not character.isprintable():
                return None
            size += width
            cells.append((character, codes))
            if width == 2:
                cells.append((character, _WIDE_END + codes))
        if size != cell_len(text):
            return None
    return cells


def _codes(style: Style | None, colours: ColorSystem) -> str:
    if style is None:
        return ""
    codes = style._ansi if style._ansi is not None else Strip.render_ansi(style, colours)
    return f"{codes} {style.link}" if style.link else codes


# How they are said


def install() -> None:
    """Wrap the place where Textual turns an update into bytes. Again is harmless."""
    original = ChopsUpdate.render_segments
    if hasattr(original, _MARK):
        return

    @functools.wraps(original)
    def render_segments(self: ChopsUpdate, console: Console) -> str:
        return with_few_codes(_cropped(self, console))

    setattr(render_segments, _MARK, True)
    ChopsUpdate.render_segments = render_segments  # type: ignore[method-assign]


def as_chops(update: LayoutUpdate) -> ChopsUpdate:
    """A whole screen as an update of all its lines."""
    chops: list[dict[int, Strip]] = []
    ends: list[list[int]] = []
    for strips in update.strips:
        x, line = update.region.x, {}
        for strip in strips:
            line[x] = strip
            x += strip.cell_length
        chops.append(line)
        ends.append([*list(line)[1:], x])
    spans = [(y, update.region.x, update.region.right) for y in range(len(chops))]
    return ChopsUpdate(chops, spans, ends)


def _cropped(update: ChopsUpdate, console: Console) -> str:
    parts: list[str] = []
    at = None
    for y, x1, x2 in update.spans:
        for x, strip in _pieces(update, y, x1, x2):
            for piece in _counted_alike(strip):
                if at != (x, y):
                    parts.append(Control.move_to(x, y).segment.text)
                parts.append(piece.render(console))
                x += piece.cell_length
                at = (x, y) if all(text.isascii() for text, _, _ in piece) else None
    return "".join(parts)


def _counted_alike(strip: Strip) -> list[Strip]:
    """The strip, or its segments where terminals do not agree how many cells one of them takes.

    What follows such a text is put into its own column, so that it stands there on every terminal.
    """
    if all(text.isascii() for text, _, _ in strip) or _cells(strip, ColorSystem.TRUECOLOR) is not None:
        return [strip]
    return [Strip([segment], segment.cell_length) for segment in strip if segment.cell_length]


def with_few_codes(frame: str) -> str:
    """The same picture with less SGR (ECMA-48 §8.3.117): a style is told as what differs from the one before.

    Takes what Rich writes: `CSI codes m`, text, `CSI 0 m`. Other sequences pass unchanged. Of a blank only what can be
    seen counts, which is its background.
    """
    parts: list[str] = []
    active = wanted = ""
    for text, codes in _stretches(frame):
        if text and not _MOVES.fullmatch(text):
            wanted = codes
            if text.isspace() and text.isprintable():
                wanted = _unseen(active, codes)
            parts.append(_transition(active, wanted))
            active = wanted
        parts.append(text)
    parts.append(_transition(active, ""))
    return "".join(parts)


def _stretches(frame: str) -> Iterator[tuple[str, str]]:
    """Text with the codes that hold for it."""
    codes, position = "", 0
    for found in _SGR.finditer(frame):
        yield frame[position : found.start()], codes
        codes = "" if found[1] in ("", "0") else found[1]
        position = found.end()
    yield frame[position:], codes


@functools.lru_cache(maxsize=4096)
def _transition(before: str, after: str) -> str:
    if before == after:
        return ""
    if not after:
        return "\x1b[0m"
    if not before:
        return f"\x1b[{after}m"
    old, new = _look(before), _look(after)
    whole = f"\x1b[0;{after}m"
    if old.attributes - new.attributes:
        return whole
    codes = sorted(new.attributes - old.attributes, key=int)
    if new.fore != old.fore:
        codes.append(new.fore or "39")
    if new.back != old.back:
        codes.append(new.back or "49")
    return min(f"\x1b[{';'.join(codes)}m", whole, key=len)


class _Look(NamedTuple):
    attributes: frozenset[str]
    fore: str
    back: str

    @property
    def codes(self) -> str:
        return ";".join([*sorted(self.attributes, key=int), *filter(None, (self.fore, self.back))])


@functools.lru_cache(maxsize=4096)
def _look(codes: str) -> _Look:
    attributes, fore, back = [], "", ""
    for code in _COLOUR.findall(codes):
        number = int(code.split(";", 1)[0])
        if 30 <= number <= 39 or 90 <= number <= 97:
            fore = code
        elif 40 <= number <= 49 or 100 <= number <= 107:
            back = code
        else:
            attributes.append(code)
    return _Look(frozenset(attributes), fore, back)


@functools.lru_cache(maxsize=4096)
def _unseen(active: str, codes: str) -> str:
    """Codes for a blank that need the fewest changes: those that hold already, but for the background."""
    before, wanted = _look(active), _look(codes)
    if before.attributes | wanted.attributes <= _UNSEEN_ON_BLANKS:
        return _Look(before.attributes, before.fore, wanted.back).codes
    return codes


@functools.lru_cache(maxsize=4096)
def _of_blank(codes: str) -> str:
    look = _look(codes)
    return look.back if look.attributes <= _UNSEEN_ON_BLANKS else codes
