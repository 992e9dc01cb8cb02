"""Which lines of Markdown are opaque; judged by markdown-it-py, an implementation of CommonMark."""

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from trainflow_tui.collaboration.fences import LineKind, classify

HEADING = re.compile(r"##(?:[ \t]|$)")


def headings(text: str) -> list[int]:
    found = classify(text)
    return [n for n, line in enumerate(found.lines) if found.kinds[n] == LineKind.TEXT and HEADING.match(line)]


def headings_by_markdown_it(text: str) -> list[int]:
    lines = text.split("\n")
    return [
        token.map[0]
        for token in MarkdownIt("commonmark").parse(text)
        if token.type == "heading_open" and token.level == 0 and token.markup == "##" and lines[token.map[0]][0] == "#"
    ]


def opaque(text: str) -> str:
    """One letter a line: t, f(enced), c(omment), m(atter), b(lock)."""
    return "".join("tfcmb"[kind] for kind in classify(text).kinds)


FRAGMENTS = [
    "## h", "##", "### s", "  ## h", "text", "  text", "    text", "\ttext", "     text", "", "",
    "```", "````", "~~~", "  ~~~~", "```py", "``` a`b", "~~~ a`b", "   ~~~", "    ```", "\t```",
    "- a", "- ```", "  - n", "    - ```", "-   ```", "-     ```", "- - ```", "- \ta", "-", "* b", "* * *",
    "1. x", "2. y", "1. ```", "10. z", "> q", "> ```", "---", "===", "<!-- c -->", "<!-- open", "close -->",
]  # fmt: skip


@given(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=14))
@settings(max_examples=1500, deadline=None)
@example(["- ```", "code", "## h", "```", "## h"])
@example(["- a", "lazy", "  ```", "## h"])
@example(["> q", "-", "  ~~~~", "## h"])
@example(["-", "", "  ```", "## h"])
def test_headings_are_those_of_commonmark(lines):
    text = "\n".join(lines)
    # Where we depart on purpose: a comment without its end is no comment. Front matter is not CommonMark at all.
    assume("-->" in text.rpartition("<!--")[2] or "<!--" not in text)
    assert headings(text) == headings_by_markdown_it(text)


def test_a_fence_is_closed_by_its_own_kind_and_length_only():
    assert opaque("```\n~~~\n``\n```` x\n````\ntext") == "ffffft"
    assert opaque("~~~~\n~~~\n~~~~~\ntext") == "ffft"


def test_an_unclosed_fence_runs_to_the_end_and_is_told():
    found = classify("text\n\n```py\n## a\n## b\n")
    assert found.unclosed_fence == 3
    assert [(w.line, w.code) for w in found.warnings()] == [(3, "fence-unclosed")]
    assert classify("```\na\n```\n").warnings() == []


def test_four_blanks_open_no_fence():
    assert opaque("    ```\n## a") == "tt"
    assert opaque("   ```\n## a") == "ff"


def test_backticks_with_a_backtick_behind_open_no_fence():
    assert opaque("``` `x` ```\n## a") == "tt"


def test_a_fence_in_a_list_item_ends_with_the_item():
    assert opaque("- ```\n  ## a\n## b") == "fft"


def test_comments_are_opaque_and_kept():
    found = classify("<!--\n## a\n\n-->\n## b\n")
    assert bytes(found.kinds) == bytes([2, 2, 2, 2, 0])
    assert found.lines == ["<!--", "## a", "", "-->", "## b"]


def test_a_comment_that_is_never_closed_hides_nothing():
    assert opaque("<!-- oops\n## a\n## b") == "ttt"


@pytest.mark.parametrize("eol", ["\n", "\r\n", "\r"])
def test_line_ends_and_the_byte_order_mark_make_no_difference(eol):
    text = "\ufeff" + eol.join(["## a", "```", "## b", "```", ""])
    assert classify(text).lines == ["## a", "```", "## b", "```"]
    assert opaque(text) == "tfff"


def test_other_separators_of_unicode_end_no_line():
    text = "a\x0bb\x0cc\x85d\u2028e\u2029f\x1cg"
    assert classify(text).lines == [text]


def test_an_empty_text_has_no_lines():
    assert classify("").lines == []
    assert classify("\n").lines == [""]


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("---\ntitle: x\ntags:\n  - a\n- b\n---\n## a", "mmmmmmt"),
        ("---\ntitle: x\n...\n## a", "mmmt"),
        ("---\n## a\n---\n## b", "tttt"),
        ("---\n\ntitle: x\n---\n## a", "ttttt"),
        ("---\ntitle: x\n## a", "ttt"),
        ("---\n---\n## a", "ttt"),
        ("text\n---\ntitle: x\n---", "tttt"),
    ],
)
def test_front_matter_is_at_the_very_top_and_holds_only_keys(text, kinds):
    assert opaque(text) == kinds


START, END = re.compile(r"<start>"), re.compile(r"<end>")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("a\n<start>\n## b\n```\n<end>\n## c", "tbbbbt"),
        ("<start>\n## b\n<start>\n<end>", "ttbb"),
        ("<start>\n## b", "tt"),
        ("<end>\n## b", "tt"),
        ("```\n<start>\n```\n<end>", "ffft"),
    ],
)
def test_a_block_is_opaque_between_its_two_markers_and_nothing_without_one(text, kinds):
    assert "".join("tfcmb"[kind] for kind in classify(text, block=(START, END)).kinds) == kinds


def test_the_paragraphs_of_a_form_are_emptied_once():
    found = classify("# Form\n\nkeep\n\n# Form\nand more\n")
    found.blank_template("# Form\n", 0, len(found.lines))
    assert found.lines == ["", "", "keep", "", "# Form", "and more"]
