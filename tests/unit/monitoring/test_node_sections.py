from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.monitoring.nodes.sections import parse_sections

names = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
bodies = st.text(
    st.characters(exclude_characters="\x1e\n\r\x0b\x0c\x1c\x1d\x85\u2028\u2029", exclude_categories=["Cs"]), max_size=30
)


def frame(name, body, code):
    return f"\n\x1e> {name}\n{body}\n\x1e< {name} {code}\n".encode()


@settings(deadline=None)
@given(st.dictionaries(names, st.tuples(bodies, st.integers(0, 255)), max_size=5), st.binary(max_size=20))
def test_what_was_framed_comes_back_whatever_stands_before(parts, banner):
    output = banner.replace(b"\x1e", b"") + b"".join(frame(name, *part) for name, part in parts.items())
    found = parse_sections(output)
    assert {name: (section.text, section.exit_code) for name, section in found.items()} == parts


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=200))
def test_output_that_was_cut_keeps_the_sections_before_the_cut(length):
    output = frame("first", "one", 0) + frame("second", "two\nlines", 3) + frame("end", "", 0)
    whole, found = parse_sections(output), parse_sections(output[:length])
    assert list(found) == list(whole)[: len(found)]
    for name, section in list(found.items())[:-1]:
        assert section == whole[name]
    if found:
        last = list(found.values())[-1]
        assert last == whole[last.name] or last.exit_code is None


def test_a_section_without_its_end_is_not_complete():
    found = parse_sections(b"\x1e> a\nhalf\n\x1e> b\nwhole\n\x1e< b 0\n")
    assert (found["a"].text, found["a"].exit_code, found["a"].is_complete) == ("half", None, False)
    assert (found["b"].text, found["b"].is_complete) == ("whole", True)


def test_an_end_of_another_name_ends_nothing_and_the_first_of_a_name_counts():
    found = parse_sections(frame("a", "real\n\x1e< b 0\nrest", 0) + frame("a", "forged", 0))
    assert found["a"].text == "real\n\x1e< b 0\nrest"


def test_bytes_that_are_no_utf8_are_replaced():
    assert parse_sections(b"\x1e> a\n\xff\n\x1e< a 0\n")["a"].text == "\ufffd"
