"""Display text, held against the Unicode database and rich's tables, not against what the module printed."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainflow_tui import text as text_module
from trainflow_tui.text import Display, cell_len, clip, display

# Format characters that are drawn (Unicode: Prepended_Concatenation_Mark).
DRAWN_FORMAT = set("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
# Default ignorable letters and marks, DerivedCoreProperties.txt.
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"

ASSIGNED = [*range(0x32000), *range(0xE0000, 0xE1000), 0xF0000, 0xFFFFE, 0x10FFFF]
"""Every plane that has characters; what lies between is unassigned in all versions of Unicode."""

TELLING = (
    "\x1b[]P_\\\x07\x9b\x9d\x9c03;m\r\n\t\x00\x7f\x85 \u202e\u200d\ufe0f\u0301\u1161\U000e0041\ud800" + "👩🏿❤1训é"
)
HOSTILE = st.one_of(st.text(TELLING, max_size=60), st.text(max_size=60))


def assert_drawable(shown: str, *, multiline: bool = False) -> None:
    for character in shown:
        category = unicodedata.category(character)
        assert category not in {"Cc", "Cs", "Zl", "Zp"} or (multiline and character == "\n"), ascii(shown)
        assert category != "Cf" or character == "\u200d" or character in DRAWN_FORMAT, ascii(shown)
        assert character not in FILLERS, ascii(shown)


@settings(max_examples=400)
@given(HOSTILE, st.integers(0, 90), st.booleans(), st.booleans())
@example("\x1b]0;title", 20, False, False)
@example("👩\u200d" * 9 + "👩", 40, False, False)
def test_whatever_comes_in_only_drawable_characters_come_out_and_no_more_cells_than_asked(raw, cells, multiline, whole):
    shown = display(raw, max_cells=cells, multiline=multiline, whole=whole)
    assert_drawable(shown, multiline=multiline)
    assert sum(cell_len(line) + 1 for line in shown.split("\n")) - 1 <= cells


@settings(max_examples=400)
@given(HOSTILE, st.integers(0, 90), st.booleans(), st.booleans())
def test_display_text_passes_unchanged_again(raw, cells, multiline, whole):
    once = display(raw, max_cells=cells, multiline=multiline, whole=whole)
    assert display(once, max_cells=cells, multiline=multiline, whole=whole) == once


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_are_read(raw):
    assert_drawable(display(raw))
    assert display(raw) == display(raw.decode("utf-8", "replace"))


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=300))
def test_clean_text_stays_as_it_is(raw):
    assert display(raw) == raw


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[38;2;1;2;3mx\x1b[K", "x"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]52;c;aGk=\x1b\\b", "ab"),
        ("a\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\b", "alinkb"),
        ("a\x1bP1$tx\x1b\\b", "ab"),
        ("a\x1b_Gf=1;AAAA\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd"),
        ("a\x9b31mb\x9d0;t\x9cc\x90q\x9cd", "abcd"),
        ("\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\x", "␛x"),
        ("\x1b(Bx\x1b=y\x1bcz", "xyz"),
        ("a\x1b]0;cut\x1b[0mb", "ab"),
        ("a\x1b]0;never ends", "a␛]0;never ends"),
        ("a\x1b[31", "a␛[31"),
        ("a\x1b", "a␛"),
        ("nul\x00bel\x07bs\x08del\x7f", "nul␀bel␇bs␈del␡"),
        ("c1\x85\x9c", "c1\ufffd\ufffd"),
        ("a\tb", "a       b"),
        ("训\tb", "训      b"),
        ("a\nb", "a␊b"),
        ("a\r\nb\r\n", "a␊b"),
        ("  1%\r 50%\r100%", "␍100%"),
        ("\r100%", "100%"),
        ("10%\r\x1b[K", "10%"),
        ("old\r\x1b[Knew\r", "␍new"),
        ("rm -rf /\rls", "␍ls"),
        ("\r", ""),
        ("evil\u202egnp.exe", "evil·gnp.exe"),
        ("ze\u200bro\ufeffso\u00adft\u2028", "ze·ro·so·ft·"),
        ("A\U000e0041\U000e0042", "A··"),
        ("x\ud800y\udce9", "x\ufffdy\ufffd"),
        ("\u0301x", "◌\u0301x"),
        ("e" + "\u0301" * 20 + "f", "e" + "\u0301" * 8 + "f"),
        ("👨\u200d👩\u200d👧", "👨\u200d👩\u200d👧"),
        ("❤\ufe0f 1\ufe0f\u20e3", "❤\ufe0f 1\ufe0f\u20e3"),
        ("a\u200db x\ufe0f 漢\ufe00", "a·b x· 漢·"),
        ("[rank3]: [/b [@click=app.quit]x[/]", "[rank3]: [/b [@click=app.quit]x[/]"),
    ],
)
def test_each_construct_is_shown_as_the_contract_says(raw, shown):
    assert display(raw) == shown


def test_what_somebody_approves_hides_nothing():
    assert display("rm -rf /\rls", whole=True) == "rm -rf /␍ls"
    assert display("ls \x1b]0;rm -rf /\x07", whole=True) == "ls ␛]0;rm -rf /␇"
    assert display("a\r\nb", whole=True, multiline=True) == "a\nb"


def test_lines_of_a_document_are_kept_and_each_line_follows_the_rules():
    shown = display("one\r\n1%\r2%\r\nthr\x1b[1mee\n", multiline=True)
    assert shown.lines == ("one", "␍2%", "three", "")
    assert all(isinstance(line, Display) for line in shown.lines)


def test_every_format_character_of_the_unicode_database_is_made_visible():
    for code in ASSIGNED:
        character = chr(code)
        if unicodedata.category(character) in {"Cf", "Cs", "Zl", "Zp", "Cc"} and character not in DRAWN_FORMAT:
            assert character not in display(f"a{character}b"), hex(code)
    for character in FILLERS:
        assert character not in display(f"a{character}b")


def test_no_character_but_a_mark_on_a_base_takes_part_without_a_cell():
    for code in ASSIGNED:
        shown = display(chr(code))
        assert cell_len(shown) == 0 if code in (0x0A, 0x0D) else cell_len(shown) > 0, hex(code)


def test_the_fast_path_lets_only_visible_base_characters_through():
    for code in ASSIGNED:
        character = chr(code)
        if text_module._PLAIN.fullmatch(character) and character not in "\n\t":
            assert unicodedata.category(character)[0] in "LNPSZ", hex(code)
            assert unicodedata.category(character) not in {"Zl", "Zp"}
            assert unicodedata.combining(character) == 0
            assert character not in FILLERS
            assert cell_len(character) > 0


@pytest.mark.parametrize(
    ("raw", "cells", "shown"),
    [
        ("x" * 30, 30, "x" * 30),
        ("x" * 31, 30, "x" * 25 + "… +6"),
        ("训" * 20, 30, "训" * 12 + "… +8"),
        ("a\n" * 20, 10, "a␊a␊… +35"),
    ],
)
def test_what_is_over_the_cap_is_counted_in_characters(raw, cells, shown):
    assert cell_len(shown) <= cells
    got = display(raw, max_cells=cells)
    kept, _, hidden = got.partition("… +")
    assert raw.replace("\n", "␊").removesuffix("␊").startswith(kept)
    if hidden:
        assert len(kept) + int(hidden) == len(raw.removesuffix("\n"))
    else:
        assert got == raw


@pytest.mark.parametrize(
    "raw",
    [
        "\x1b[" * 500_000,
        "\x1b]" * 500_000,
        "\x1b" * 1_000_000,
        "\x1b]0;" + "x" * 1_000_000,
        "\x1b[" + "1" * 1_000_000,
        "\x1b[K\r" * 250_000,
        "a\rb\n" * 250_000,
        "e" + "\u0301" * 1_000_000,
        "👩\u200d" * 500_000,
        b"\xff" * 1_000_000,
    ],
    ids=["csi", "osc", "esc", "osc-body", "csi-digits", "cr-escapes", "cr-lines", "marks", "joiners", "not-utf8"],
)
def test_a_hostile_megabyte_becomes_a_bounded_line_that_says_how_much_is_missing(raw):
    shown = display(raw)
    assert_drawable(shown)
    assert 0 < cell_len(shown) <= 4000
    assert len(shown) <= 4000 * 10
    assert int(shown.rpartition("… +")[2]) > 900_000


def test_the_last_state_of_a_megabyte_of_progress_is_shown():
    assert display("".join(f"\r{n}%" for n in range(200_000))) == "␍199999%"


@given(HOSTILE, st.integers(-1, 40))
def test_clipping_keeps_a_start_of_the_text_within_the_cells(raw, cells):
    shown = display(raw)
    cut = clip(shown, cells)
    assert isinstance(cut, Display)
    assert cell_len(cut) <= max(0, cells)
    assert cut == shown or shown.startswith(cut.removesuffix("…"))
    if cell_len(shown) <= cells:
        assert cut == shown


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_the_width_of_plain_text_is_what_rich_lays_out(raw):
    from rich.cells import cell_len as rich_cell_len

    assert cell_len(raw) == rich_cell_len(raw)


def test_only_display_makes_display_text():
    with pytest.raises(TypeError):
        Display("x")
    shown = display("x")
    assert type(copy.copy(shown)) is str
    assert type(pickle.loads(pickle.dumps(shown))) is str
    assert type(shown + "\x1b") is str


def test_importing_the_ground_brings_neither_rich_nor_textual():
    code = "import sys, trainflow_tui.text; print([m for m in sys.modules if m.split('.')[0] in ('rich', 'textual')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
