"""GUIDANCE.md: every line that a person wrote is in exactly one item."""

import hashlib
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.collaboration.guidance_file import GUIDANCE_TEMPLATE, MAX_ITEMS, parse_guidance

TEMPLATE = GUIDANCE_TEMPLATE.format(title="Llama run")


def items(text: str, template: str = TEMPLATE):
    return parse_guidance(text, template=template).items


def parts(text: str) -> list[tuple[str | None, str, str]]:
    return [(i.explicit_id, i.heading, i.body) for i in items(text)]


def test_the_template_alone_holds_nothing():
    for text in (
        TEMPLATE,
        "",
        "\n\n",
        "\ufeff" + TEMPLATE.replace("\n", "\r\n"),
        TEMPLATE.replace("\n", " \n") + "\n\n",
    ):
        parsed = parse_guidance(text, template=TEMPLATE)
        assert (parsed.items, parsed.warnings) == ([], [])


def test_the_template_tells_the_title_and_holds_no_other_brace():
    assert TEMPLATE.startswith("# Guidance for Llama run\n")
    assert "{" not in TEMPLATE


def test_headings_divide_and_sub_headings_do_not():
    text = TEMPLATE + "## Rate\n\nlower it\n### why\nbecause\n# Part\n\n## Data ##\nskip shard 2\n"
    assert parts(text) == [(None, "Rate", "lower it\n### why\nbecause\n# Part"), (None, "Data", "skip shard 2")]


def test_without_headings_each_paragraph_is_an_item():
    text = TEMPLATE + "lower the rate\nby half\n\n```\na\n\nb\n```\n\n<!-- note\n\nmore -->\n"
    assert parts(text) == [
        (None, "", "lower the rate\nby half"),
        (None, "", "```\na\n\nb\n```"),
        (None, "", "<!-- note\n\nmore -->"),
    ]


def test_text_before_the_first_heading_is_one_item():
    assert parts(TEMPLATE + "first\n\nsecond\n\n## Rate\nx") == [(None, "", "first\n\nsecond"), (None, "Rate", "x")]


def test_what_is_written_right_below_the_template_is_not_lost():
    assert parts(TEMPLATE + "go slower\n") == [(None, "", "go slower")]
    assert parts(TEMPLATE.replace("run\n", "run\ngo slower\n", 1)) == [(None, "", "go slower")]


def test_a_changed_template_is_guidance():
    assert [i.text for i in items(TEMPLATE.replace("Llama run", "another"))] == ["# Guidance for another"]


def test_front_matter_is_kept_as_an_item_of_its_own():
    assert parts("---\nstop: true\n---\n" + TEMPLATE + "## a\n") == [
        (None, "", "---\nstop: true\n---"),
        (None, "a", ""),
    ]


@pytest.mark.parametrize(
    ("heading", "id", "words"),
    [
        ("## G1 Rate", "G1", "Rate"),
        ("## G12: Rate", "G12", "Rate"),
        ("## G3：学习率", "G3", "学习率"),
        ("## G4", "G4", ""),
        ("##  G5   Rate  ##", "G5", "Rate"),
        ("##\tG6\tRate", "G6", "Rate"),
        ("## [g:k3f9qz] Rate", "g:k3f9qz", "Rate"),
        ("## [g:K3F9QZ]: Rate", "g:k3f9qz", "Rate"),
        ("## Rate <!-- g:k3f9qz -->", "g:k3f9qz", "Rate"),
        ("## <!--g:k3f9qzab--> Rate", "g:k3f9qzab", "Rate"),
        ("## G7 Rate <!-- g:k3f9qz -->", "G7", "Rate"),
        ("## G1x Rate", None, "G1x Rate"),
        ("## G Rate", None, "G Rate"),
        ("## g1 Rate", None, "g1 Rate"),
        ("## see G1 Rate", None, "see G1 Rate"),
        ("## [g:abc] Rate", None, "[g:abc] Rate"),
        ("## see [g:k3f9qz]", None, "see [g:k3f9qz]"),
        ("## <!-- note --> Rate", None, "<!-- note --> Rate"),
        ("##", None, ""),
    ],
)
def test_explicit_ids(heading, id, words):
    (item,) = items(heading + "\nbody\n")
    assert (item.explicit_id, item.heading, item.body) == (id, words, "body")
    assert item.text == heading + "\nbody"


@pytest.mark.parametrize(
    "line", ["##Rate", " ## Rate", "### Rate", "#\u00a0# Rate", "\\## Rate", "> ## Rate", "    ## Rate"]
)
def test_what_is_no_heading_divides_nothing(line):
    assert parts(f"## a\n{line}\n") == [(None, "a", line)]


def test_a_heading_in_code_is_text():
    assert parts("## a\n```\n## G1 no\n```\n~~~~\n## no\n~~~\n## no\n~~~~\n## b\n") == [
        (None, "a", "```\n## G1 no\n```\n~~~~\n## no\n~~~\n## no\n~~~~"),
        (None, "b", ""),
    ]


def test_an_id_given_twice_stays_with_the_first_and_is_told():
    parsed = parse_guidance("## G1 a\n\n## G2 b\n\n## G1 c\n", template="")
    assert [i.explicit_id for i in parsed.items] == ["G1", "G2", None]
    assert [(w.line, w.code) for w in parsed.warnings] == [(5, "id-twice")]
    assert "G1" in parsed.warnings[0].text


def test_lines_are_counted_from_one_in_the_file_as_it_is():
    text = "\ufeff" + (TEMPLATE + "## a\nx\n\n## b\n").replace("\n", "\r\n")
    before = TEMPLATE.count("\n")
    assert [i.first_line for i in items(text)] == [before + 1, before + 4]


def test_the_anchor_is_the_hash_of_the_words_without_the_id():
    (item,) = items("## G1 Rate ##\nlower it  \n\n")
    assert item.anchor == hashlib.sha256(b"## Rate\nlower it").hexdigest()
    for same in (
        "## Rate\nlower it",
        "\ufeff## Rate\r\nlower it\t\r\n",
        "##   Rate\nlower it\n\n\n",
        "## Rate <!-- g:abcdef -->\nlower it",
    ):
        assert items(same)[0].anchor == item.anchor
    assert items("## Rate\nlower  it")[0].anchor != item.anchor
    assert items("Rate\nlower it")[0].anchor != item.anchor


def test_equal_items_are_counted():
    assert [i.occurrence for i in items("## a\nx\n\n## b\n\n## a\nx\n\n## G1 a\nx\n")] == [0, 0, 1, 2]


def test_what_exceeds_the_limit_is_one_last_item_and_told():
    text = "".join(f"## item {n}\nbody {n}\n" for n in range(MAX_ITEMS + 5))
    parsed = parse_guidance(text, template="")
    assert len(parsed.items) == MAX_ITEMS + 1
    assert parsed.items[-1].text == "\n".join(text.split("\n")[2 * MAX_ITEMS :]).rstrip("\n")
    assert [(w.line, w.code) for w in parsed.warnings] == [(2 * MAX_ITEMS + 1, "too-many-items")]


LINES = st.one_of(
    st.sampled_from(
        ["## a", "## G1 b", "## G1: c", "##", "```", "~~~", "<!--", "-->", "---", "key: x", "", "  ", "- x", "  ```"]
    ),
    st.text(max_size=12),
)


def written(text: str) -> list[str]:
    """The lines that are not blank, by another way than the parser's."""
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


@given(st.lists(LINES, max_size=25), st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
@settings(max_examples=800, deadline=None)
def test_every_line_that_is_not_blank_is_in_exactly_one_item_in_order(lines, eol, with_template):
    own = eol.join(lines)
    text = TEMPLATE.replace("\n", eol) + own if with_template else own
    parsed = parse_guidance(text, template=TEMPLATE if with_template else "")
    found = [line for item in parsed.items for line in written(item.text)]
    assert found == written(own if with_template else own.removeprefix("\ufeff"))
    assert len({i.explicit_id for i in parsed.items if i.explicit_id}) == sum(1 for i in parsed.items if i.explicit_id)
    assert len({(i.anchor, i.occurrence) for i in parsed.items}) == len(parsed.items)
    starts = [i.first_line for i in parsed.items]
    assert starts == sorted(set(starts))


@given(st.lists(LINES, max_size=20))
@settings(max_examples=300, deadline=None)
def test_how_the_file_is_saved_makes_no_difference_to_its_items(lines):
    lines = [line.replace("\r", "") for line in lines]
    lines = [part for line in lines for part in line.split("\n")]
    text = "\n".join(lines)
    saved = "\ufeff" + unicodedata.normalize("NFC", text.removeprefix("\ufeff")).replace("\n", "\r\n") + "\r\n"

    def identity(text: str) -> list[tuple[str | None, str, int]]:
        return [(i.explicit_id, i.anchor, i.occurrence) for i in items(text)]

    assert identity(saved) == identity(text)
