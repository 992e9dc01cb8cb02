"""The grammar of QUESTIONS.md: questions, the answers below them, and lines that look like a question but are none."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Container, Iterator
from itertools import islice, pairwise
from typing import Final

import msgspec

from trainflow_tui.collaboration.decoding import normalised
from trainflow_tui.collaboration.fences import Classified, FileWarning, LineKind, classify

__all__ = [
    "ANSWER_END",
    "ANSWER_START",
    "MAX_QUESTIONS",
    "QUESTIONS_TEMPLATE",
    "AnswerBlock",
    "AskedQuestion",
    "ParsedQuestions",
    "parse_questions",
]

QUESTIONS_TEMPLATE: Final = """\
# Questions about {title}

Ask the agents anything. A question begins with a `## ` heading or with `Q1: ` at the margin and goes on to the next one:

> ## Q1: Which learning rate does the current run use?
> I mean the value after warm-up.

Answers are written below your questions. A question never stops the work and permits nothing; what should be done goes
into GUIDANCE.md.
"""
"""What a new QUESTIONS.md holds; `{title}` is the task's. Its example is quoted and so is no question."""

ANSWER_START: Final = re.compile(r" {0,3}<!--[ \t]*trainflow:answer\b(.*)-->[ \t]*")
"""The line above an answer; the program writes `<!-- trainflow:answer 64-HEX -->`. Blanks may have been added."""
ANSWER_END: Final = re.compile(r" {0,3}<!--[ \t]*/trainflow:answer[ \t]*-->[ \t]*")
"""The line below an answer; the program writes `<!-- /trainflow:answer -->`."""
MAX_QUESTIONS: Final = 2000
_MAX_HINTS: Final = 100


class AnswerBlock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An answer that the program wrote into the file. What it claims is checked against the ledger by the caller."""

    answer: str
    """The id, 64 hexadecimal digits."""
    text: str
    """What is between the marker lines, line ends LF."""
    first_line: int
    last_line: int


class AskedQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question as it stands in the file."""

    id: str
    """`Q7` as written, else `q:` and six or more characters that follow from the title."""
    is_labelled: bool
    title: str
    """Without marks and id; the id where nothing else is there."""
    body: str
    text: str
    """Title line and body as written, without the answers."""
    version: str
    """SHA-256 of the normalised text: a changed question is to be answered again."""
    answers: list[AnswerBlock]
    first_line: int
    last_line: int
    """The last line that is not blank, answers included: a further answer belongs below it."""
    warnings: list[FileWarning]
    """About this question alone; the others are as good as without it."""


class ParsedQuestions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The questions in the order of the file, and hints about lines that are none."""

    questions: list[AskedQuestion]
    warnings: list[FileWarning]


_ID: Final = r"Q[0-9](?:[A-Za-z0-9._-]{0,97}[A-Za-z0-9])?"
_SECTION: Final = re.compile(r" {0,3}##[ \t]+(?=[^ \t])(?!#+[ \t]*$)")
_LABEL: Final = re.compile(rf" {{0,3}}({_ID})[ \t]*[:：][ \t]*(?=[^ \t])")
_LEADING_ID: Final = re.compile(rf"({_ID})(?:[.)]?[ \t]*[:：]|[.)]?(?=[ \t]|$))[ \t]*")
_ANSWER_ID: Final = re.compile(r"[0-9a-f]{64}")
_MARKER: Final = re.compile(r" {0,3}<!--[ \t]*/?[ \t]*trainflow:answer\b")

_NEAR_MISSES: Final = (
    (re.compile(r" {0,3}#(?:#{2,5})?[ \t]+[Qq][0-9]"), "a question's heading has two `#`"),
    (re.compile(r" {0,3}##[^#\s]"), "a blank is missing after `##`"),
    (re.compile(r" {0,3}##[ \t]*$"), "the heading has no text"),
    (re.compile(r" {0,3}#{1,6}[Qq][0-9]"), "a question's heading is `## ` and the text"),
    (re.compile(r" {0,3}q[0-9][A-Za-z0-9._-]*[ \t]*[:：]"), "the Q has to be a capital"),
    (re.compile(rf" {{0,3}}{_ID}[ \t]*[:：][ \t]*$"), "the question has to begin on the same line"),
    (re.compile(r" {0,3}[Qq][0-9]+[.)、．][ \t]*[^\s.]"), "after the number comes a colon"),
    (re.compile(rf" {{0,3}}{_ID}[ \t][^\n]*[?？][ \t]*$"), "after the number comes a colon"),
    (re.compile(rf" {{0,3}}(?:[-*+]|[0-9]{{1,9}}[.)])[ \t]+{_ID}[ \t]*[:：]"), "a question is no list item"),
    (re.compile(rf" {{0,3}}[*_]{{1,3}}{_ID}[*_:：]"), "the number is written without emphasis"),
)


def parse_questions(text: str) -> ParsedQuestions:
    """Find the questions.

    One begins with `## ` and text, or with `Q` and a digit, further letters or digits and a colon, before text; up to
    three blanks may stand before either. Quotes, indented lines, code, comments and answers hold none. It ends where the
    next begins. What stands before the first is no question. A fault in one question is a warning on that one.
    """
    found = classify(text, block=(ANSWER_START, ANSWER_END))
    starts = [i for i, kind in enumerate(found.kinds) if kind == LineKind.TEXT and _begins(found.lines[i])]
    preamble_end = starts[0] if starts else len(found.lines)
    hints = _hints(found, set(starts))
    hints.update(_unmarked(found, preamble_end, hints))
    warnings = [*found.warnings(), *(hints[line] for line in sorted(hints)[:_MAX_HINTS])]
    if len(starts) > MAX_QUESTIONS:
        message = f"There are more than {MAX_QUESTIONS:,} questions: this one and those below it are not collected."
        warnings.append(FileWarning(line=starts[MAX_QUESTIONS] + 1, code="too-many-questions", text=message))
    questions: list[AskedQuestion] = []
    titles: Counter[str] = Counter()
    taken: set[str] = set()
    for start, end in islice(pairwise([*starts, len(found.lines)]), MAX_QUESTIONS):
        questions.append(_question(found, start, end, titles, taken))
        taken.add(questions[-1].id)
    return ParsedQuestions(questions=questions, warnings=sorted(warnings, key=lambda warning: warning.line))


def _begins(line: str) -> bool:
    return ("#" in line[:5] and _SECTION.match(line) is not None) or (
        "Q" in line[:4] and _LABEL.match(line) is not None
    )


def _label_and_title(line: str) -> tuple[str | None, str]:
    section = _SECTION.match(line)
    words = line[section.end() :].strip() if section else line.strip()
    bare = words.rstrip("#")
    if section and bare[-1:] in (" ", "\t"):
        words = bare.rstrip()
    label = _LEADING_ID.match(words)
    return (label[1], words[label.end() :]) if label else (None, words)


def _question(found: Classified, start: int, end: int, titles: Counter[str], taken: Container[str]) -> AskedQuestion:
    """The question in the lines from `start` to `end` (from 0, end excluded)."""
    label, title = _label_and_title(found.lines[start])
    warnings: list[FileWarning] = []
    if label in taken:
        message = f"{label} is used twice. Only the first question has this id; give this one another."
        warnings.append(FileWarning(line=start + 1, code="id-twice", text=message))
    id_ = label if label is not None and label not in taken else _derived_id(title, titles[title], taken)
    titles[title] += id_ != label
    answers, words = _divide(found, start, end, warnings)
    text = "\n".join(words).strip("\n")
    return AskedQuestion(
        id=id_,
        is_labelled=id_ == label,
        title=title or label or "",
        body="\n".join(words[1:]).strip("\n").rstrip(),
        text=text.rstrip(),
        version=hashlib.sha256(normalised(text.rstrip()).encode()).hexdigest(),
        answers=answers,
        first_line=start + 1,
        last_line=max(i + 1 for i in range(start, end) if found.lines[i].strip()),
        warnings=warnings,
    )


def _divide(
    found: Classified, start: int, end: int, warnings: list[FileWarning]
) -> tuple[list[AnswerBlock], list[str]]:
    """The answers within a question, and its own lines. A fault in a marker is told and has no effect on others."""
    answers: list[AnswerBlock] = []
    words: list[str] = []
    index = start
    while index < end:
        line, kind = found.lines[index], found.kinds[index]
        if kind == LineKind.BLOCK and (opening := ANSWER_START.fullmatch(line)):
            last = next(i for i in range(index, end) if ANSWER_END.fullmatch(found.lines[i]))
            body = "\n".join(found.lines[index + 1 : last])
            answer = opening[1].strip()
            if _ANSWER_ID.fullmatch(answer):
                answers.append(AnswerBlock(answer=answer, text=body, first_line=index + 1, last_line=last + 1))
            else:
                message = "The id of this answer is damaged: the answer is passed over."
                warnings.append(FileWarning(line=index + 1, code="answer-marker", text=message))
            index = _behind_answer(found.lines, last + 1, end, words)
            continue
        if kind in (LineKind.TEXT, LineKind.COMMENT) and _MARKER.match(line):
            message = "This answer marker is without its partner: the answer counts as part of the question."
            warnings.append(FileWarning(line=index + 1, code="answer-marker", text=message))
        else:
            words.append(line)
        index += 1
    return answers, words


def _behind_answer(lines: list[str], index: int, end: int, words: list[str]) -> int:
    """Drop the blank lines on both sides of an answer, which are the program's; one stands for them."""
    while words and not words[-1].strip():
        words.pop()
    words.append("")
    while index < end and not lines[index].strip():
        index += 1
    return index


def _derived_id(title: str, occurrence: int, taken: Container[str]) -> str:
    """From the title alone, so that a question keeps its id when others come and go; longer where it is taken."""
    seed = normalised(title) + (f"\0{occurrence}" if occurrence else "")
    digest = base64.b32encode(hashlib.sha256(seed.encode()).digest()).decode().lower()
    return next(id_ for length in range(6, 52) if (id_ := f"q:{digest[:length]}") not in taken)


def _hints(found: Classified, starts: set[int]) -> dict[int, FileWarning]:
    """By line, those that look like the beginning of a question and are none."""
    hints = {}
    for index, line in enumerate(found.lines):
        if found.kinds[index] != LineKind.TEXT or index in starts or not any(c in line[:20] for c in "Qq#"):
            continue
        reason = next((reason for pattern, reason in _NEAR_MISSES if pattern.match(line)), None)
        if reason is not None:
            message = f"This looks like a question and is none: {reason}."
            hints[index + 1] = FileWarning(line=index + 1, code="near-miss", text=message)
    return hints


def _unmarked(found: Classified, end: int, told: Container[int]) -> Iterator[tuple[int, FileWarning]]:
    """By line, paragraphs above the first question that ask something and of which no line is told already."""
    found.blank_template(QUESTIONS_TEMPLATE, 0, end)
    message = "This asks something and is no question: put a line such as `## Q1` above it."
    for start, lines in found.paragraphs(0, end):
        plain = found.kinds[start] == LineKind.TEXT and not lines[0].startswith(("#", ">", "    ", "\t"))
        asks = any(line.rstrip().endswith(("?", "？")) for line in lines)
        if plain and asks and not any(start + n + 1 in told for n in range(len(lines))):
            yield start + 1, FileWarning(line=start + 1, code="near-miss", text=message)
