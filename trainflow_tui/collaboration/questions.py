"""Questions both ways. A question authorises nothing; an agent's blocking one waits for a person."""

from __future__ import annotations

from typing import Final

import msgspec

from trainflow_tui.collaboration.identity import new_id
from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.ledger.events import Actor

DIRECTIONS: Final = ("to-human", "to-agent")
TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "open": frozenset({"answered", "withdrawn", "open"}),
    "answered": frozenset({"open", "withdrawn"}),
    "withdrawn": frozenset({"open"}),
}
"""A human's question opens again when its text changes; removing the text withdraws it."""

MAX_ANSWER_BYTES: Final = 128 * 1024


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One question and, once given, its answer. `version` is the hash of the normalised text."""

    task: str
    id: str
    direction: str
    title: str
    body: str
    blocking: bool
    state: str
    version: str
    asked_at: str
    by: str
    answer: str | None
    answered_at: str | None
    answered_by: str | None
    position: int
    """From 1 in QUESTIONS.md; 0 for one that a command asked."""
    provisional: bool = False
    """Taken while the file was still being edited."""


_COLUMNS: Final = ", ".join(Question.__struct_fields__)


def ask(
    ledger: Ledger, *, task: str, title: str, body: str, blocking: bool, actor: Actor, direction: str = "to-human"
) -> Question:
    """Record a question. The direction is told by who asks: an agent asks the human.

    Raises:
        UsageError: no such task, an empty or overlong title.
    """
    title = title.strip()
    if not title or len(title) > 300 or "\n" in title:
        raise UsageError("question-title", "A question's title is one line of 1 to 300 characters.", subject="title")
    id = new_id("q")
    payload = {
        "task": task,
        "id": id,
        "direction": direction,
        "title": title,
        "body": body.strip(),
        "blocking": blocking,
    }
    with ledger.transaction() as transaction:
        if not transaction.query("SELECT 1 FROM task WHERE id = ?", (task,)):
            raise UsageError("no-task", f"There is no task {task[:120]!r}.", subject=task[:120])
        transaction.append("question.asked", f"{task}/{id}", payload, actor=actor)
    return get(ledger, id, task=task)


def answer(ledger: Ledger, id: str, text: str, *, actor: Actor, agent: str | None, task: str | None = None) -> Question:
    """Record the answer. `agent` is why the caller counts as an agent's process, or None.

    Raises:
        UsageError: no such question, an empty or oversized answer.
        RefusedError: it is not open, or an agent answers what was asked of the human.
    """
    text = text.strip()
    if not text or len(text.encode(errors="surrogatepass")) > MAX_ANSWER_BYTES:
        raise UsageError("answer-size", "An answer has 1 byte to 128 KiB.", subject="text")
    question = get(ledger, id, task=task)
    if question.direction == "to-human" and agent:
        raise RefusedError(
            "human-only",
            f"{id} was asked of a human and cannot be answered by an agent: {agent}.",
            subject=id,
            next_step="Wait for the operator.",
        )
    with ledger.transaction() as transaction:
        state = _state(transaction, question)
        if "answered" not in TRANSITIONS[state]:
            raise RefusedError(
                "question-transition",
                f"{id} is {state}: it cannot become answered.",
                subject=id,
                next_step="Ask a new question to add something.",
            )
        payload = {"task": question.task, "id": question.id, "answer": text, "version": question.version}
        transaction.append("question.answered", f"{question.task}/{question.id}", payload, actor=actor)
    return get(ledger, id, task=question.task)


def _state(transaction: Transaction, question: Question) -> str:
    rows = transaction.query("SELECT state FROM question WHERE task = ? AND id = ?", (question.task, question.id))
    return str(rows[0][0])


def get(ledger: Ledger, id: str, *, task: str | None = None) -> Question:
    """One question by its id; the task is needed only where two tasks have a question of this id.

    Raises:
        UsageError: none or several match.
    """
    rows = ledger.query(f"SELECT {_COLUMNS} FROM question WHERE id = ? AND (? IS NULL OR task = ?)", (id, task, task))
    if len(rows) == 1:
        return _question(rows[0])
    if rows:
        raise UsageError(
            "question-ambiguous",
            f"Several tasks have a question {id}.",
            subject=id,
            next_step="Name the task with --task.",
        )
    raise UsageError(
        "no-question",
        f"There is no question {id[:80]!r}.",
        subject=id[:80],
        next_step="`trainflow question list` shows them.",
    )


def listed(ledger: Ledger, *, task: str | None = None, open_only: bool = False) -> list[Question]:
    """Questions, the open and blocking ones first, then by age."""
    rows = ledger.query(
        f"SELECT {_COLUMNS} FROM question WHERE (? IS NULL OR task = ?) AND (NOT ? OR state = 'open') "
        "ORDER BY state != 'open', NOT blocking, rowid",
        (task, task, open_only),
    )
    return [_question(row) for row in rows]


def blocking_open(ledger: Ledger) -> list[Question]:
    """What stops an agent until a person answers."""
    rows = ledger.query(
        f"SELECT {_COLUMNS} FROM question WHERE state = 'open' AND blocking AND direction = 'to-human' ORDER BY rowid"
    )
    return [_question(row) for row in rows]


def _question(row: tuple[object, ...]) -> Question:
    fields = dict(zip(Question.__struct_fields__, row, strict=True))
    for name in ("blocking", "provisional"):
        fields[name] = bool(fields[name])
    return Question(**fields)  # type: ignore[arg-type]
