"""`trainflow question`: ask, answer and list, in both directions."""

from __future__ import annotations

import click

from trainflow_tui.cli.frame import DECISION, Call, Noun, Reason, Reply
from trainflow_tui.cli.given import read_text
from trainflow_tui.collaboration import questions
from trainflow_tui.collaboration.identity import agent_behind, current_actor
from trainflow_tui.collaboration.questions import Question


def waiting(found: list[Question]) -> list[Reason]:
    """A reason for each blocking question that waits for a person."""
    return [
        Reason("blocking-question", f"{q.id} waits for your answer: {q.title}", q.id, DECISION)
        for q in found
        if q.blocking and q.state == "open" and q.direction == "to-human"
    ]


@click.group(cls=Noun, help="Questions: the agents' to you, and yours to them.")
def question() -> None:
    """Questions."""


@question.command(help="Ask the human. An agent that cannot go on without the answer adds --blocking.")
@click.argument("task")
@click.option("--title", required=True, metavar="TEXT")
@click.option("--body", default="", metavar="TEXT")
@click.option("--blocking", is_flag=True, help="Work waits until a person has answered.")
@click.option("--to-agent", is_flag=True, help="Ask the agent instead, as QUESTIONS.md does.")
@click.pass_obj
def ask(call: Call, task: str, title: str, body: str, blocking: bool, to_agent: bool) -> Reply:
    """Ask a question."""
    if to_agent and blocking:
        raise click.UsageError("A question to the agent never blocks.")
    asked = questions.ask(
        call.open().ledger,
        task=task,
        title=title,
        body=body,
        blocking=blocking,
        direction="to-agent" if to_agent else "to-human",
        actor=current_actor("cli"),
    )
    return Reply(
        schema="question-ask/1",
        body={"question": asked},
        reasons=waiting([asked]),
        lines=[f"Question {asked.id} is open."],
    )


@question.command(help="Answer a question. What was asked of a human is not answered by an agent.")
@click.argument("id_", metavar="ID")
@click.option("--text", default=None, metavar="TEXT")
@click.option("--file", default=None, metavar="FILE")
@click.option("--task", default=None, metavar="TASK", help="Where two tasks have a question of this id.")
@click.pass_obj
def answer(call: Call, id_: str, text: str | None, file: str | None, task: str | None) -> Reply:
    """Answer a question."""
    words = read_text(text, file, what="the answer")
    actor = current_actor("cli")
    answered = questions.answer(call.open().ledger, id_, words, actor=actor, agent=agent_behind(), task=task)
    return Reply(schema="question-answer/1", body={"question": answered}, lines=[f"{answered.id} is answered."])


@question.command("list", help="Questions, the open and blocking ones first.")
@click.option("--task", default=None, metavar="TASK")
@click.option("--open", "open_only", is_flag=True, help="Only those without an answer.")
@click.pass_obj
def list_(call: Call, task: str | None, open_only: bool) -> Reply:
    """List questions."""
    ledger = call.open().ledger
    if task is not None:
        from trainflow_tui.collaboration import tasks  # which the other verbs need not load

        tasks.get(ledger, task)
    found = questions.listed(ledger, task=task, open_only=open_only)
    lines = [
        f"{'!' if q.blocking and q.state == 'open' else ' '} {q.id:12} {q.direction:9} {q.state:9} {q.title}"
        for q in found
    ]
    return Reply(
        schema="question-list/1", body={"questions": found}, reasons=waiting(found), lines=lines or ["No question."]
    )
