"""Display text: turns any foreign string into the one type that screens and printed output accept.

Knows no widget. Quoting for CSV or Markdown files is left to whoever writes such a file.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Display", "cell_len", "clip", "display"]

_MAKER: Final = object()
_TAB_CELLS: Final = 8
_MARKS_PER_BASE: Final = 8
_JOINS_PER_EMOJI: Final = 3
"""The longest emoji in use (a family, a kiss with skin tones) has three joiners; more only widens rows unseen."""
_RAW_PER_CELL: Final = 16
"""Characters read for one cell of the cap, so that a megabyte on one line costs what 64,000 characters cost."""

_JOINER: Final = "\u200d"
_DOT: Final = "·"
_OVERWRITTEN: Final = "␍"

_ESCAPES: Final = re.compile(
    # CSI with its final byte; OSC, DCS, SOS, PM, APC with their terminator, or broken off by the next control; other
    # escapes of two or more bytes (ECMA-48 §5.3-5.6). Possessive, so that a megabyte of openings is read once; the set
    # comes first, so that text between escapes is skipped at memory speed.
    r"[\x1b\x9b\x9d\x90\x98\x9e\x9f](?:"
    r"(?:(?<=\x9b)|(?<=\x1b)\[)[0-?]*+[ -/]*+[@-~]"
    r"|(?:(?<=[\x9d\x90\x98\x9e\x9f])|(?<=\x1b)[\]PX^_])[^\x00-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c|(?=[\x00-\x1f\x7f-\x9f]))"
    r"|(?<=\x1b)[ -/]{0,3}+(?![\[\]PX^_])[0-~])"
)

_PLAIN: Final = re.compile(
    # What needs no further look: printable, one base character each, nothing invisible, nothing that combines.
    "[\n\t -~\u00a0-\u00ac\u00ae-\u02ff\u0391-\u03a1\u03a3-\u0482\u048a-\u052f\u2010-\u2027\u2030-\u205e\u20a0-\u20c0"
    "\u2100-\u218b\u2190-\u2426\u2460-\u2b73\u3000-\u3029\u3030-\u303f\u3041-\u3096\u309b-\u30ff\u3105-\u312f"
    "\u3131-\u3163\u3165-\u318e\u3220-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufa6d\uff01-\uff9f\uffe0-\uffe6\ufffd"
    "\U0001f300-\U0001f3fa\U0001f400-\U0001f64f\U0001f680-\U0001f6c5\U00020000-\U0002a6df]*+"
)

_INVISIBLE: Final = re.compile(
    # Bidi controls, zero widths, byte order mark, soft hyphen, line and paragraph separators, annotation and musical
    # format characters, tags and supplementary variation selectors, fillers. The joiner and FE00-FE0F: see _cluster.
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_NOT_CHARACTERS: Final = re.compile(
    # Lone surrogates and the noncharacters (Unicode §23.7).
    "[\ud800-\udfff\ufdd0-\ufdef"
    + "".join(chr(plane << 16 | 0xFFFE) + chr(plane << 16 | 0xFFFF) for plane in range(17))
    + "]"
)
_PICTURES: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "␡",
    **dict.fromkeys(range(0x80, 0xA0), "\ufffd"),
}
_JOINABLE_SYMBOLS: Final = frozenset("\u2194\u2195\u2640\u2642\u2695\u2696\u26a7\u2708\u2764\u27a1\u2b1b")


class Display(str):
    """Text that is safe to draw: no control character, nothing invisible, a bounded length. Only `display` makes it.

    Multi-line text holds line ends; every other character takes part in a cell that `cell_len` counts.
    """

    __slots__ = ()

    def __new__(cls, text: str, *, maker: object = None) -> Display:
        """Refused (TypeError) to everyone but this module."""
        if maker is not _MAKER:
            raise TypeError("Display text is made by trainflow_tui.text.display() alone.")
        return super().__new__(cls, text)

    @property
    def lines(self) -> tuple[Display, ...]:
        """The lines of a multi-line text, without line ends; one empty line for an empty text."""
        return tuple(_made(line) for line in self.split("\n"))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # A copy that travelled through a file is foreign again.
        return str, (str(self),)


def display(raw: str | bytes, *, max_cells: int = 4000, multiline: bool = False, whole: bool = False) -> Display:
    """Make foreign text safe to draw. Any input, never an error; linear time; the result passes unchanged again.

    Bytes are read as UTF-8, errors and lone surrogates become U+FFFD. Terminal escapes are removed; an unterminated
    one ends at the next control character, and where none follows only its opening is replaced, so nothing can hide the
    rest of a line. Remaining controls become pictures (␀ … ␡, C1 U+FFFD), tabs spaces, invisible characters `·`.

    Args:
        raw: what a log, a host, a trace, an agent or a person wrote.
        max_cells: of the whole text, a line end counting one; what is over becomes `… +N`, N in characters.
        multiline: keep line ends; otherwise they are shown as ␊, and a single one at the end is dropped.
        whole: hide nothing, for text that somebody approves: escapes and what a carriage return overwrites stay, their
            controls as pictures. Otherwise the last thing written to a line stays, as a progress bar means it, behind
            one ␍ that says so.
    """
    text = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else str(raw)
    if len(text) <= max_cells and text.isascii() and text.isprintable():
        return _made(text)
    if not multiline:
        text = text.removesuffix("\n")
    room = _RAW_PER_CELL * max_cells + 256
    hidden = 0
    settle = _without_line_end if whole else _last_written
    if "\r" in text and "\n" not in text:
        text = settle(text)  # before the cut: of a progress bar's megabyte the end counts
    if len(text) > room:
        hidden = len(text) - room
        text = text[:room]
    if "\r" in text:
        text = "\n".join(settle(line) if "\r" in line else line for line in text.split("\n"))
    text = _visible(text, whole)
    if not multiline:
        text = text.replace("\n", "␊")
    if "\t" in text:
        text = "\n".join(_expand_tabs(line) for line in text.split("\n"))
    return _made(_capped(text, max_cells, hidden))


def cell_len(text: str) -> int:
    """Terminal cells that one line of text takes. The tables of rich, thus exactly what Textual lays out with."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len as measured  # 3 ms, and only where text is not ASCII

    return measured(text)


def clip(text: Display, cells: int) -> Display:
    """Cut one line to at most `cells` cells, the last of them `…` where something was cut. Splits no character."""
    if cells <= 0:
        return _made("")
    if cell_len(text) <= cells:
        return text
    return _made(_fitting(text, cells - 1) + "…")


def _made(text: str) -> Display:
    return Display(text, maker=_MAKER)


def _without_line_end(line: str) -> str:
    return line.rstrip("\r")


def _last_written(line: str) -> str:
    """What a terminal would leave of a line with carriage returns. Those before the line end move nothing."""
    line = line.rstrip("\r")
    pieces = line.split("\r")
    for position in range(len(pieces) - 1, max(-1, len(pieces) - 64), -1):
        if _ESCAPES.sub("", pieces[position]).strip():
            before = any(piece.strip() for piece in pieces[:position])
            return (_OVERWRITTEN if before else "") + pieces[position]
    return line


def _visible(text: str, whole: bool) -> str:
    """Every escape gone, every character one that is seen."""
    if _PLAIN.fullmatch(text):
        return text
    if not whole:
        text = _ESCAPES.sub("", text)
    text = text.translate(_PICTURES)
    if text.isascii():
        return text
    text = _NOT_CHARACTERS.sub("\ufffd", text)
    text = _INVISIBLE.sub(_DOT, text)
    return text if _PLAIN.fullmatch(text) else _cluster(text)


def _cluster(text: str) -> str:
    """Hold combining marks to their base and to a count, keep joiners and variation selectors inside emoji alone."""
    from rich.cells import get_character_cell_size

    out: list[str] = []
    has_base = emoji = False
    marks = joins = 0
    previous = ""
    for position, character in enumerate(text):
        if character == _JOINER:
            following = text[position + 1 : position + 2]
            if emoji and previous != _JOINER and joins < _JOINS_PER_EMOJI and following and _joinable(following):
                joins += 1
            else:
                character, has_base, emoji = _DOT, True, False
        elif "\ufe00" <= character <= "\ufe0f":
            if character < "\ufe0e" or not _takes_selector(previous):
                character, has_base, emoji = _DOT, True, False
        elif "\U0001f3fb" <= character <= "\U0001f3ff":
            if not emoji or "\U0001f3fb" <= previous <= "\U0001f3ff":  # alone, it is drawn but not counted
                character, has_base, emoji = _DOT, True, False
        elif character not in "\n\t" and get_character_cell_size(character) == 0:  # marks, Hangul vowels and finals
            marks += 1
            if not has_base:
                out.append("◌")
                has_base, marks = True, 1
            if marks > _MARKS_PER_BASE:
                continue
        else:
            has_base = character not in "\n\t"
            emoji = _joinable(character)
            marks = 0
            if previous != _JOINER:
                joins = 0
        out.append(character)
        previous = character
    return "".join(out)


def _joinable(character: str) -> bool:
    return "\U0001f000" <= character <= "\U0001faff" or character in _JOINABLE_SYMBOLS


def _takes_selector(character: str) -> bool:
    if not character:
        return False
    symbol = "\u2100" <= character <= "\u2bff" or "\U0001f000" <= character <= "\U0001faff"
    return symbol or character in "#*0123456789©®‼⁉〰〽㊗㊙"


def _expand_tabs(line: str) -> str:
    if line.isascii():
        return line.expandtabs(_TAB_CELLS)
    pieces = line.split("\t")
    at = 0
    for number, piece in enumerate(pieces[:-1]):
        at += cell_len(piece)
        gap = _TAB_CELLS - at % _TAB_CELLS
        pieces[number] = piece + " " * gap
        at += gap
    return "".join(pieces)


def _capped(text: str, max_cells: int, hidden: int) -> str:
    if not hidden and (len(text) * 2 <= max_cells or _cells_of_lines(text) <= max_cells):
        return text
    reserved = len(f"… +{len(text) + hidden}")
    kept = _fitting(text, max(0, max_cells - reserved))
    suffix = f"… +{len(text) - len(kept) + hidden}"
    return kept + suffix[: max(0, max_cells)]


def _cells_of_lines(text: str) -> int:
    return sum(cell_len(line) + 1 for line in text.split("\n")) - 1


def _fitting(text: str, cells: int) -> str:
    """The longest start of the text that takes no more cells, a line end counting one; graphemes stay whole."""
    if text.isascii():
        return text[:cells]
    from rich.cells import split_graphemes

    used = 0
    position = 0
    for line in text.split("\n"):
        if used + cell_len(line) + 1 <= cells:
            used += cell_len(line) + 1
            position += len(line) + 1
            continue
        for start, _end, width in split_graphemes(line)[0]:
            if used + width > cells:
                return text[: position + start]
            used += width
        return text[: position + len(line)]
    return text
