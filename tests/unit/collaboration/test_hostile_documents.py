"""Documents that nobody would write: parsed without an exception, without a loss, in time proportional to their length."""

import random
import re
import time

import pytest

from trainflow_tui.collaboration.decoding import Decoded, Incomplete, Undecodable, decode, normalised
from trainflow_tui.collaboration.guidance_file import GUIDANCE_TEMPLATE, Item, parse_guidance
from trainflow_tui.collaboration.item_matching import KnownItem, match_items, new_item_id
from trainflow_tui.collaboration.questions_file import QUESTIONS_TEMPLATE, parse_questions

BASE = f"""\
{GUIDANCE_TEMPLATE.format(title="Run 7")}
Keep the run on partition A.

## G1 学习率
Lower the rate to `3e-4` at step 12000; see
- the loss of [rank 3]
  ```python
  ## not a heading
  lr = 3e-4
  ```

## [g:k3f9qz] Data
> ## quoted
~~~~
```
~~~
~~~~
<!-- trainflow:answer {"0f" * 32} -->
### Answer
## Q9 no
<!-- /trainflow:answer -->

## Q1: Which rate? 😀
## Which rate? ##
Q2：为什么？
### Q3 near
{QUESTIONS_TEMPLATE.format(title="Run 7")}"""

TOKENS = [
    b"## ", b"\n## ", b"```\n", b"\n~~~~", b"<!--", b"-->", b"\n---\n", b"\r", b"\r\n", b"\n\n", b"- ", b"> ", b"\t", b"G1 ", b"Q1: ",
    b"[g:", b"]", b"\xef\xbb\xbf", "\u2028".encode(), "\u202e".encode(), b"\x1b[2J", b"\n<!-- /trainflow:answer -->\n",
    b"\n<!-- trainflow:answer -->\n", "e\u0301".encode(), b"#" * 50, b" " * 50, b"`" * 50, "中".encode("gbk"), b"\xff", b"\0",
]  # fmt: skip


def mutated(rnd: random.Random) -> bytes:
    raw = bytearray(BASE.encode())
    for _ in range(rnd.randint(1, 12)):
        place = rnd.randrange(len(raw) + 1)
        match rnd.randrange(6):
            case 0 if place < len(raw):
                raw[place] ^= 1 << rnd.randrange(8)
            case 1:
                del raw[place : place + rnd.randint(1, 40)]
            case 2:
                raw[place:place] = raw[place : place + rnd.randint(1, 200)] * rnd.randint(1, 3)
            case 3:
                lines = raw.split(b"\n")
                rnd.shuffle(lines)
                raw = bytearray(b"\n".join(lines))
            case _:
                raw[place:place] = rnd.choice(TOKENS)
    return bytes(raw[: rnd.randrange(len(raw) + 1)]) if raw and rnd.random() < 0.2 else bytes(raw)


def known(items: list[Item]) -> list[KnownItem]:
    taken: set[str] = set()
    found = []
    for position, item in enumerate(items):
        id = new_item_id("task", item, taken)
        taken.add(id)
        found.append(KnownItem(id=id, anchor=item.anchor, heading=item.heading, text=item.text, position=position))
    return found


def check(text: str, before: list[KnownItem]) -> list[Item]:
    items = parse_guidance(text, template="").items
    kept = [line for item in items for line in item.text.split("\n") if line.strip()]
    assert kept == [line for line in re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff")) if line.strip()]
    questions = parse_questions(text).questions
    assert len({q.id for q in questions}) == len(questions)
    met = [m.known_id for m in match_items(before, items) if m.known_id]
    assert len(met) == len(set(met))
    return items


def check_mutants(seeds: range) -> None:
    outcomes = {Decoded: 0, Incomplete: 0, Undecodable: 0}
    before: list[KnownItem] = []
    for seed in seeds:
        raw = mutated(random.Random(seed))
        found = decode(raw)
        outcomes[type(found)] += 1
        # What cannot be decoded is still a text to the parsers.
        items = check(found.text if isinstance(found, Decoded) else raw.decode("utf-8", "replace"), before)
        before = known(items)
    print({kind.__name__: count for kind, count in outcomes.items()})
    assert all(outcomes.values())


def test_3000_mutated_documents():
    check_mutants(range(3000))


@pytest.mark.long
def test_100000_mutated_documents():
    check_mutants(range(10_000, 110_000))


SHAPES = {
    "one line": "x" * 64,
    "one line of Chinese": "学习率" * 20,
    "one heading": "# " * 32,
    "headings": "## item\nsome text\n",
    "equal paragraphs": "text\n\n",
    "marks": "# ",
    "blanks": "    ",
    "blank lines": "\n",
    "fences": "```a\n~~~\n",
    "fences in lists": "- ```\n",
    "growing fences": "```\n````\n`````\n``````\n",
    "nested lists": "- ",
    "nested quotes": "> ",
    "numbers": "1. a\n",
    "open comments": "<!-- x\n",
    "comment ends": "--> ",
    "ids": "## <!-- g:abcdef",
    "open answers": "<!-- trainflow:answer " + "a" * 64 + " -->\n",
    "answers": "<!-- trainflow:answer " + "a" * 64 + " -->\nx\n<!-- /trainflow:answer -->\n",
    "near misses": "Q1. a\n### Q2\n",
    "question marks": "Q1 ? ",
    "colons": "Q1:\n",
    "accents": "a\u0301\u0300\u0315",
    "stacked accents": "\u0315\u0300",
    "carriage returns": "x\r",
    "rules": "- - - x\n",
    "tabs": "\t- a\n",
}


def chain(raw: bytes) -> float:
    begin = time.process_time()
    found = decode(raw)
    assert isinstance(found, Decoded)
    items = parse_guidance("## start\n" + found.text, template=BASE).items
    parse_guidance(found.text, template=BASE)
    parse_questions("## Q1 start\n" + found.text)
    parse_questions(found.text)
    match_items(known(items[:300]), items[:300])
    normalised(found.text)
    return time.process_time() - begin


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_repetition_of_any_shape_ends(shape, size):
    """What is quadratic takes hours at 1 MB; the ratio for four times the length is printed, for eyes only."""
    unit = SHAPES[shape]
    quarter, whole = ((unit * (length // len(unit.encode()) + 1)).encode() for length in (size // 4, size))
    before, after = chain(quarter), chain(whole)
    print(f"{shape:22} {len(whole):9,} B {after:6.2f} s CPU, 4 times the length: x {after / max(before, 1e-3):.1f}")


def test_10000_headings_and_a_megabyte_on_one_line_are_kept():
    text = "".join(f"## item {n}\n" for n in range(10_000)) + "x" * 1_000_000
    items = check(text, [])
    assert len(items) == 2001
    assert items[-1].text.endswith("x" * 1_000_000)
