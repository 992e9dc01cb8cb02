"""From bytes to text: right, or said to be not right; never a wrong text without a word."""

import random
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from trainflow_tui.collaboration.decoding import Decoded, Incomplete, Undecodable, decode, normalised

LINES = [
    "## G1 请把学习率降低一半",
    "batch size 保持 1024，见第 3 步；温度 ≥ 85 ℃ 时停止。",
    "",
    "Keep the checkpoint of step 12000 – “as it is” 😀",
    "最后一行",
]
SAMPLE = "\n".join(LINES) + "\n"

# Encoding, line end, byte order mark: what editors write.
MIXES = [
    *[("utf-8", eol, b"") for eol in ("\n", "\r\n", "\r")],
    *[("utf-8", eol, b"\xef\xbb\xbf") for eol in ("\n", "\r\n")],
    *[("utf-16-le", eol, b"\xff\xfe") for eol in ("\n", "\r\n")],
    *[("utf-16-be", eol, b"\xfe\xff") for eol in ("\n", "\r\n")],
    *[("gb18030", eol, b"") for eol in ("\n", "\r\n", "\r")],
    ("utf-8", "mixed", b""),
    ("gbk", "\r\n", b""),
]


def encoded(encoding: str, eol: str, bom: bytes) -> tuple[str, bytes]:
    text = SAMPLE.replace("\n", "\r\n", 2) if eol == "mixed" else SAMPLE.replace("\n", eol)
    if encoding == "gbk":
        text = text.replace("😀", "")  # GBK has no emoji
    return text, bom + text.encode(encoding)


mixes = pytest.mark.parametrize(("encoding", "eol", "bom"), MIXES, ids=lambda value: repr(value).strip("b'"))


def test_there_are_fourteen_mixes():
    assert len(set(MIXES)) == 14


@mixes
def test_a_whole_file_is_read_and_what_it_was_is_remembered(encoding, eol, bom):
    text, raw = encoded(encoding, eol, bom)
    found = decode(raw)
    assert isinstance(found, Decoded)
    assert found.text == text
    assert found.encoding == ("gb18030" if encoding == "gbk" else encoding)
    assert found.had_bom == bool(bom)
    assert found.eol == {"\n": "lf", "\r\n": "crlf", "\r": "cr", "mixed": "mixed"}[eol]
    assert found.final_newline is True
    assert found.badge == ("decoded as GB18030" if encoding in ("gbk", "gb18030") else None)


@mixes
def test_a_file_cut_at_any_byte_gives_its_beginning_or_no_text(encoding, eol, bom):
    text, raw = encoded(encoding, eol, bom)
    refused = 0
    for cut in range(len(raw)):
        found = decode(raw[:cut])
        if isinstance(found, Decoded):
            assert text.startswith(found.text), (cut, found)
        else:
            # A few characters of GBK may pass for damaged UTF-8.
            assert isinstance(found, Incomplete) or encoding in ("gbk", "gb18030"), (cut, found)
            refused += 1
    # At least one cut within each character of several bytes; all others give text.
    assert sum(1 for c in text if c > "\x7f") <= refused < 0.6 * len(raw)


@mixes
def test_the_encoding_makes_no_difference_to_what_was_said(encoding, eol, bom):
    _, raw = encoded(encoding, eol, bom)
    found = decode(raw)
    assert isinstance(found, Decoded)
    assert normalised(found.text) == normalised(SAMPLE.replace("😀", "") if encoding == "gbk" else SAMPLE)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=60))
@settings(max_examples=500)
def test_utf8_is_never_taken_for_anything_else(text):
    found = decode(text.encode())
    assert isinstance(found, Decoded)
    assert found.text == text.removeprefix("\ufeff")
    assert found.encoding == "utf-8"


@given(st.text(st.characters(min_codepoint=0x4E00, max_codepoint=0x9FA5), min_size=2, max_size=40), st.data())
@settings(max_examples=500)
def test_utf8_that_is_cut_or_damaged_never_gives_another_text(text, data):
    raw = text.encode()
    cut = data.draw(st.integers(0, len(raw) - 1))
    beginning = decode(raw[:cut])
    assert isinstance(beginning, Incomplete) or text.startswith(beginning.text)
    # One byte overwritten: no text at all, or the one that these bytes are in UTF-8.
    place, byte = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(1, 255))
    spoilt = raw[:place] + bytes([byte]) + raw[place + 1 :]
    found = decode(spoilt)
    if isinstance(found, Decoded):
        assert found.text.encode() == spoilt
        assert found.encoding == "utf-8"


def is_utf8(raw: bytes) -> bool:
    return raw.decode("utf-8", "replace").encode() == raw


COMMON = "请把学习率降低一半然后再试一次并告诉我结果如何不要停止训练保留最近的检查点"


@given(st.text(st.sampled_from(COMMON), min_size=1, max_size=60))
@settings(max_examples=300)
def test_gbk_gives_the_right_text_with_a_badge_or_none(text):
    raw = text.encode("gbk")
    # Some characters in GBK are letters in UTF-8, and UTF-8 comes first: a text of nothing else cannot be told.
    assume(not is_utf8(raw))
    found = decode(raw)
    if isinstance(found, Decoded):
        assert (found.text, found.badge) == (text, "decoded as GB18030")


def test_gbk_of_a_sentence_is_read():
    rnd = random.Random(7)
    sentences = ["".join(rnd.sample(COMMON, 12)) for _ in range(1000)]
    texts = [getattr(decode(sentence.encode("gbk")), "text", None) for sentence in sentences]
    assert set(texts) <= {*sentences, None}
    assert texts.count(None) <= 5


def test_traditional_characters_in_gbk_are_read():
    text = "請把學習率降低一半，然後再試一次，並且告訴我結果。不要停止訓練。"
    found = decode(text.encode("gbk"))
    assert isinstance(found, Decoded)
    assert found.text == text


@pytest.mark.parametrize(
    "raw",
    [
        "請把學習率降低一半，然後再試一次，並告訴我結果".encode("big5"),
        "学習率を下げてください。次の実験".encode("shift_jis"),
        "уменьшите скорость обучения".encode("koi8-r"),
        "уменьшите скорость обучения".encode("cp1251"),
        "größer für Übung".encode("latin-1"),
        "señor mañana".encode("latin-1"),
        "降低学习率再试一次".encode("utf-16-le"),
        "降低学习率再试一次".encode("utf-16-be"),
        "降低 the rate".encode("utf-16-le"),
        SAMPLE.encode("utf-32"),
        SAMPLE.encode("utf-32-be"),
        b"text\0with NUL",
        b"\xef\xbb\xbftext\0with NUL",
        "text\0".encode("utf-16"),
        b"\xff\xff\xff\xff text",
        bytes(range(1, 256)),
    ],
    ids=lambda raw: repr(raw[:12]),
)
def test_other_bytes_are_refused_with_the_reason(raw):
    found = decode(raw)
    assert isinstance(found, Undecodable)
    assert found.reason


def test_the_place_of_damage_is_named():
    raw = ("请" * 60).encode()
    assert decode(raw[:99] + b"\xff" + raw[99:]) == Undecodable(reason="it is UTF-8 with damage at byte 99")
    assert decode(b"\xff\xfe" + b"\x00\xdc" + b"a\0") == Undecodable(reason="it is UTF-16 with damage at byte 2")


def test_a_gbk_file_is_not_incomplete_because_its_last_character_is_short():
    # The two last bytes are no UTF-8, but they are no cut-off UTF-8 either.
    found = decode("batch 中".encode("gbk"))
    assert isinstance(found, Decoded)
    assert found.text == "batch 中"


@given(st.binary(max_size=200))
@settings(max_examples=1000)
def test_any_bytes_have_an_answer(raw):
    found = decode(raw)
    if isinstance(found, Decoded):
        assert "\0" not in found.text
        bom = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
        assert (bom[found.encoding] if found.had_bom else b"") + found.text.encode(found.encoding) == raw


@given(st.text(max_size=80), st.sampled_from(["\r\n", "\r", "  \n", "\t\n"]), st.integers(0, 3))
@settings(max_examples=500)
def test_what_an_editor_changes_by_itself_changes_no_identity(text, eol, ends):
    text = text.replace("\r", "")
    saved = "\ufeff" + text.removeprefix("\ufeff").replace("\n", eol) + "\n" * ends
    assert normalised(saved) == normalised(text)
    assert normalised(unicodedata.normalize("NFD", text)) == normalised(text)


@given(st.text(max_size=80))
def test_the_normal_form_is_its_own(text):
    once = normalised(text.removeprefix("\ufeff"))
    assert normalised(once) == once


def test_inner_and_leading_blanks_count():
    assert normalised("a  b") != normalised("a b")
    assert normalised("  a") != normalised("a")
    assert normalised("a\n\nb") != normalised("a\nb")


def test_marks_beyond_any_use_are_left_as_they_are_instead_of_sorted_for_minutes():
    row = "\u0315\u0300" * 200_000
    text = "e\u0301" + "a" + row + "e\u0301"
    assert normalised(text) == "\u00e9a" + row + "\u00e9"


def test_every_combining_character_is_seen_by_the_guard():
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.combining(character):
            text = "a" + character * 100
            assert normalised(text) == text, hex(code)
