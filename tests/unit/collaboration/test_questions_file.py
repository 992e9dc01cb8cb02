"""QUESTIONS.md: what is a question, what only looks like one, and what an answer below it changes (nothing)."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.collaboration.questions_file import (
    MAX_QUESTIONS,
    QUESTIONS_TEMPLATE,
    AskedQuestion,
    parse_questions,
)

TEMPLATE = QUESTIONS_TEMPLATE.format(title="Llama run")


def asked(text: str) -> list[AskedQuestion]:
    return parse_questions(text).questions


def answer(body: str, id: str = "a" * 64) -> str:
    return f"\n<!-- trainflow:answer {id} -->\n{body}\n<!-- /trainflow:answer -->\n"


def test_the_template_asks_nothing_and_is_no_near_miss():
    parsed = parse_questions(TEMPLATE)
    assert (parsed.questions, parsed.warnings) == ([], [])
    assert "> ## Q1" in TEMPLATE
    assert "{" not in TEMPLATE


@pytest.mark.parametrize(
    ("line", "id", "title"),
    [
        ("## Q1: Which rate?", "Q1", "Which rate?"),
        ("## Q1 Which rate?", "Q1", "Which rate?"),
        ("## Q1. Which rate?", "Q1", "Which rate?"),
        ("## Q1) Which rate?", "Q1", "Which rate?"),
        ("## Q2a：哪个学习率？", "Q2a", "哪个学习率？"),
        ("## Q3", "Q3", "Q3"),
        ("   ## Q4 Which rate? ##", "Q4", "Which rate?"),
        ("##\tQ5\tWhich rate?", "Q5", "Which rate?"),
        ("Q6: Which rate?", "Q6", "Which rate?"),
        ("Q7：哪个学习率？", "Q7", "哪个学习率？"),
        ("  Q8-b.2 : Which rate?", "Q8-b.2", "Which rate?"),
        ("\ufeffQ9: Which rate?", "Q9", "Which rate?"),
        ("\ufeff## Q10 Which rate?", "Q10", "Which rate?"),
        ("## Which rate?", None, "Which rate?"),
        ("## Queue length?", None, "Queue length?"),
        ("## q1: Which rate?", None, "q1: Which rate?"),
    ],
)
def test_what_begins_a_question(line, id, title):
    parsed = parse_questions(line + "\nand why\n")
    (question,) = parsed.questions
    assert (question.title, question.body, question.is_labelled) == (title, "and why", id is not None)
    if id:
        assert question.id == id
    else:
        assert question.id.startswith("q:")
        assert len(question.id) == 8
    assert parsed.warnings == []


@pytest.mark.parametrize(
    "line",
    [
        "> ## Q1 Which rate?",
        "> Q1: Which rate?",
        "    ## Q1 Which rate?",
        "\tQ1: Which rate?",
        "See Q1: it tells the rate",
        "Q: Which rate",
        "Q1 is about the rate.",
        "Question 1: Which rate",
        "```\nQ1: Which rate?\n```",
        "~~~\n## Q1 Which rate?\n~~~",
        "<!--\n## Q1 Which rate?\n-->",
        "# Title",
        "#### Details",
    ],
)
def test_quotes_mentions_code_and_comments_are_no_questions_and_no_near_misses(line):
    parsed = parse_questions(line)
    assert (parsed.questions, parsed.warnings) == ([], [])


@pytest.mark.parametrize(
    "line",
    [
        "### Q1 Which rate",
        "# Q1 Which rate",
        "##Q1 Which rate",
        "##Which rate",
        "###Q1",
        "q1: Which rate",
        "q1：哪个",
        "Q1. Which rate",
        "Q1、哪个",
        "Q1) Which rate",
        "Q1 what?",
        "Q1 哪个？",
        "Q1:",
        "- Q1: Which rate",
        "1. Q1: Which rate",
        "**Q1**: Which rate",
        "**Q1: Which rate**",
        "##",
        "What is the rate?",
    ],
)
def test_a_near_miss_is_told_with_its_line_and_not_collected(line):
    parsed = parse_questions(f"{TEMPLATE}\n{line}\n")
    assert parsed.questions == []
    assert [(w.line, w.code) for w in parsed.warnings] == [(TEMPLATE.count("\n") + 2, "near-miss")]


def test_a_near_miss_within_a_question_stays_part_of_its_text():
    parsed = parse_questions("## Q1 Which rate?\n### Q2 and the warm-up\n")
    assert [q.id for q in parsed.questions] == ["Q1"]
    assert "### Q2" in parsed.questions[0].text
    assert [w.line for w in parsed.warnings] == [2]


def test_a_question_goes_on_to_the_next():
    first, second = asked(TEMPLATE + "\n## Q1 a\n\nb\n\n- c\n\nQ2: d\ne\n\n")
    assert (first.text, second.text) == ("## Q1 a\n\nb\n\n- c", "Q2: d\ne")
    start = TEMPLATE.count("\n") + 2
    assert (first.first_line, first.last_line, second.first_line, second.last_line) == (
        start,
        start + 4,
        start + 6,
        start + 7,
    )


def test_the_version_is_the_hash_of_the_normalised_text():
    (question,) = asked("## Q1 Which rate?  \r\nafter warm-up\r\n\r\n")
    assert question.version == hashlib.sha256(b"## Q1 Which rate?\nafter warm-up").hexdigest()


def test_an_edit_keeps_a_labelled_question_and_changes_its_version():
    before, after = asked("## Q1 Which rate?")[0], asked("## Q1 Which rate now?")[0]
    assert before.id == after.id
    assert before.version != after.version


def test_a_derived_id_follows_the_title_and_not_the_place_or_the_body():
    alone = asked("## Which rate?\nx")[0]
    later = asked("## Another\n\n## Q7 b\n\n## Which rate? ##\ny")[2]
    assert alone.id == later.id
    assert asked("## Which rate now?")[0].id != alone.id


def test_an_id_given_twice_is_told_on_the_second_question_alone():
    parsed = parse_questions("## Q1 a\n\n## Q1 b\n\n## Q2 c\n")
    assert [q.id for q in parsed.questions][::2] == ["Q1", "Q2"]
    assert parsed.questions[1].id.startswith("q:")
    assert [[(w.line, w.code) for w in q.warnings] for q in parsed.questions] == [[], [(3, "id-twice")], []]
    assert parsed.questions[1].id == asked("## b")[0].id


def test_the_same_title_twice_gives_two_ids_and_the_first_keeps_its_own():
    first, second = asked("## Which rate?\nx\n\n## Which rate?\ny\n")
    assert first.id == asked("## Which rate?")[0].id
    assert second.id != first.id


ANSWERS = {
    "plain": "It is 3e-4.",
    "headings": "### Answer to Q1\n\n## Q9 not a question\n\nQ8: nor this\n",
    "an open fence": "```\n## in code",
    "an open comment": "<!-- oops",
    "nothing": "",
}


@pytest.mark.parametrize("body", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_an_answer_changes_neither_the_question_nor_the_next(body, eol):
    plain = "## Q1 Which rate?\nafter warm-up\n\n## Q2 Why?\n"
    answered = plain.replace("\n\n## Q2", "\n" + answer(body) + "\n## Q2").replace("\n", eol)
    before, after = parse_questions(plain), parse_questions(answered)
    assert [(q.id, q.version, q.body) for q in before.questions] == [(q.id, q.version, q.body) for q in after.questions]
    assert after.warnings == []
    assert [q.warnings for q in after.questions] == [[], []]
    (found,) = after.questions[0].answers
    assert (found.answer, found.text) == ("a" * 64, body)
    lines = answered.split(eol)
    assert "trainflow:answer a" in lines[found.first_line - 1]
    assert "/trainflow:answer" in lines[found.last_line - 1]
    assert after.questions[0].last_line == found.last_line


def test_several_answers_and_the_words_between_them():
    text = "## Q1 a\nb\n" + answer("one", "1" * 64) + "\nstill open\n" + answer("two", "2" * 64)
    (question,) = asked(text)
    assert [(a.answer, a.text) for a in question.answers] == [("1" * 64, "one"), ("2" * 64, "two")]
    assert question.text == "## Q1 a\nb\n\nstill open"


@pytest.mark.parametrize(
    ("damaged", "kept_out"),
    [
        (answer("It is 3.").replace("a" * 64, "a" * 63), True),
        (answer("It is 3.").replace("a" * 64, "A" * 64), True),
        (answer("It is 3.").replace(" " + "a" * 64, ""), True),
        (answer("It is 3.").replace("<!-- /trainflow:answer -->", ""), False),
        (answer("It is 3.").replace("<!-- trainflow:answer " + "a" * 64 + " -->", ""), False),
        (answer("It is 3.").replace("/trainflow", "/ trainflow"), False),
    ],
)
def test_a_damaged_marker_is_told_on_its_question_alone(damaged, kept_out):
    plain = "## Q1 a\n\n## Q2 b\nc\n\n## Q3 d\n"
    parsed = parse_questions(plain.replace("c\n", "c\n" + damaged))
    assert [q.id for q in parsed.questions] == ["Q1", "Q2", "Q3"]
    assert {w.code for w in parsed.questions[1].warnings} == {"answer-marker"}
    assert parsed.questions[0].warnings == parsed.questions[2].warnings == parsed.warnings == []
    assert parsed.questions[1].answers == []
    assert ("It is 3." in parsed.questions[1].text) is not kept_out
    assert "trainflow:answer" not in parsed.questions[1].text


def test_an_open_fence_is_told_because_it_hides_what_follows():
    parsed = parse_questions("## Q1 a\n```\n## Q2 b\n")
    assert [q.id for q in parsed.questions] == ["Q1"]
    assert [(w.line, w.code) for w in parsed.warnings] == [(2, "fence-unclosed")]


def test_what_exceeds_the_limit_is_told():
    parsed = parse_questions("".join(f"## Q{n} a\n" for n in range(MAX_QUESTIONS + 3)))
    assert len(parsed.questions) == MAX_QUESTIONS
    assert [(w.line, w.code) for w in parsed.warnings] == [(MAX_QUESTIONS + 1, "too-many-questions")]


def test_hints_are_limited():
    assert len(parse_questions("q1: a\n" * 5000).warnings) == 100


LINES = st.one_of(
    st.sampled_from(["## Q1 a", "Q2: b", "## c?", "### Q1", "```", "<!-- trainflow:answer " + "b" * 64 + " -->",
                     "<!-- /trainflow:answer -->", "<!-- trainflow:answer x -->", "", "text", "Q1.", "<!--", "-->"]),
    st.text(max_size=12),
)  # fmt: skip


@given(st.lists(LINES, max_size=25), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=800, deadline=None)
def test_any_text_has_questions_with_ids_of_their_own_and_lines_in_order(lines, eol):
    text = eol.join(lines)
    parsed = parse_questions(text)
    ids = [q.id for q in parsed.questions]
    assert len(ids) == len(set(ids))
    count = 1 + text.replace("\r\n", "\n").replace("\r", "\n").count("\n")
    last = 0
    for question in parsed.questions:
        assert last < question.first_line <= question.last_line <= count
        last = question.last_line
        assert question.title.strip()
        for block in question.answers:
            assert question.first_line < block.first_line < block.last_line <= question.last_line
    for warning in [*parsed.warnings, *(w for q in parsed.questions for w in q.warnings)]:
        assert 1 <= warning.line <= count
