"""`trainflow approval`: request, list, show, decide, consume."""

from __future__ import annotations

from datetime import timedelta

import click

from trainflow_tui.cli.frame import DECISION, Call, Noun, Reason, Reply
from trainflow_tui.cli.given import read_bytes
from trainflow_tui.clock import local_clock_time
from trainflow_tui.collaboration import approvals
from trainflow_tui.collaboration.approvals import Approval, ApprovalRequest, Evidence
from trainflow_tui.collaboration.identity import agent_behind, current_actor
from trainflow_tui.collaboration.payload import decode_payload
from trainflow_tui.ledger.events import canonical


def pending(found: list[Approval]) -> list[Reason]:
    """A reason for each request that waits for a person."""
    return [
        Reason("pending-approval", f"{a.id} waits for your decision: {a.request.title}", a.id, DECISION)
        for a in found
        if a.state == "pending"
    ]


def lines_of(found: Approval) -> list[str]:
    """All that a person needs to decide, the arguments one a line."""
    wanted, payload = found.request, found.request.payload
    lines = [
        f"{found.id}  {found.state}  {wanted.title}",
        f"task: {wanted.task}   kind: {wanted.kind}   reversible: {wanted.reversible}",
    ]
    lines += [f"asked by: {found.by.label}   at: {local_clock_time(found.requested_at, with_date=True)}", "command:"]
    lines += [f"  {canonical(word)}" for word in payload.argv]
    for name in ("cwd", "container", "user"):
        if getattr(payload, name):
            lines.append(f"{name}: {getattr(payload, name)}")
    lines.append(f"hosts: {', '.join(payload.hosts) or 'this machine'} ({max(1, len(payload.hosts))})")
    if payload.env_names:
        lines.append(f"environment names: {', '.join(payload.env_names)}")
    if payload.timeout_s is not None:
        lines.append(f"time limit: {payload.timeout_s} s")
    for name in ("why", "effect", "undo"):
        if getattr(wanted, name):
            lines.append(f"{name}: {getattr(wanted, name)}")
    lines += [f"evidence: {e.label} {e.ref}" for e in wanted.evidence]
    lines.append(f"digest: {found.digest}")
    if found.decision:
        by = found.decision.by
        where = by.tty or "no terminal"
        lines.append(
            f"decided: {found.state} by {by.label} at {local_clock_time(found.decision.at, with_date=True)} ({by.door}, {where})"
        )
        if found.decision.comment:
            lines.append(f"comment: {found.decision.comment}")
    return lines


@click.group(cls=Noun, help="Approvals: one bound action each, decided by a person.")
def approval() -> None:
    """Approvals."""


@approval.command(
    help='Ask for one action. --payload holds the command: {"argv": […], "hosts": […], …}; \'-\' reads standard input.'
)
@click.argument("task")
@click.option("--title", required=True, metavar="TEXT")
@click.option("--payload", required=True, metavar="FILE")
@click.option("--kind", default="command", type=click.Choice(approvals.KINDS), show_default=True)
@click.option("--why", default="", metavar="TEXT")
@click.option("--effect", default="", metavar="TEXT", help="What it touches.")
@click.option("--reversible", default="partly", type=click.Choice(approvals.REVERSIBLE), show_default=True)
@click.option("--undo", default="", metavar="TEXT", help="How it is undone.")
@click.option("--evidence", multiple=True, metavar="LABEL=REF", help="Something to look at; repeatable.")
@click.option(
    "--expires-in",
    type=click.IntRange(1, 315_360_000),
    default=None,
    metavar="SECONDS",
    help="Without it the request waits without limit.",
)
@click.option(
    "--start-within",
    type=click.IntRange(1, 315_360_000),
    default=None,
    metavar="SECONDS",
    help="An approval not used by then lapses.",
)
@click.pass_obj
def request(
    call: Call,
    task: str,
    title: str,
    payload: str,
    kind: str,
    why: str,
    effect: str,
    reversible: str,
    undo: str,
    evidence: tuple[str, ...],
    expires_in: int | None,
    start_within: int | None,
) -> Reply:
    """Request an approval."""
    ledger = call.open().ledger
    now = ledger.clock.now()
    pairs = [
        Evidence(label=label or ref, ref=ref or label) for label, _, ref in (item.partition("=") for item in evidence)
    ]
    wanted = ApprovalRequest(
        task=task,
        title=title,
        payload=decode_payload(read_bytes(payload)),
        kind=kind,
        why=why,
        effect=effect,
        reversible=reversible,
        undo=undo,
        evidence=pairs,
        expires_at=now + timedelta(seconds=expires_in) if expires_in else None,
        start_before=now + timedelta(seconds=start_within) if start_within else None,
    )
    made = approvals.request(ledger, wanted, actor=current_actor("cli"))
    return Reply(
        schema="approval-request/1",
        body={"approval": made},
        reasons=pending([made]),
        lines=[f"Approval {made.id} is pending."],
    )


@approval.command("list", help="Requests: what waits first, high impact before low, then by age.")
@click.option("--task", default=None, metavar="TASK")
@click.option("--pending", "pending_only", is_flag=True)
@click.pass_obj
def list_(call: Call, task: str | None, pending_only: bool) -> Reply:
    """List approvals."""
    ledger = call.open().ledger
    if task is not None:
        from trainflow_tui.collaboration import tasks  # which the other verbs need not load

        tasks.get(ledger, task)
    found = approvals.listed(ledger, task=task, pending_only=pending_only)
    lines = [f"{a.id:12} {a.state:18} {a.request.task:20} {a.request.title}" for a in found] or ["No approval."]
    return Reply(schema="approval-list/1", body={"approvals": found}, reasons=pending(found), lines=lines)


@approval.command(help="One request with everything that its digest covers.")
@click.argument("id_", metavar="ID")
@click.pass_obj
def show(call: Call, id_: str) -> Reply:
    """Show an approval."""
    found = approvals.get(call.open().ledger, id_)
    return Reply(schema="approval-show/1", body={"approval": found}, reasons=pending([found]), lines=lines_of(found))


@approval.command(help="Decide a request. Refused for agents; the first decision stands.")
@click.argument("id_", metavar="ID")
@click.argument("verdict", type=click.Choice(tuple(approvals.VERDICTS)))
@click.option("--comment", default="", metavar="TEXT", help="Needed for `changes`.")
@click.option(
    "--token", default=None, metavar="XXXX", help="Needed to approve what cannot be undone: its digest's end."
)
@click.pass_obj
def decide(call: Call, id_: str, verdict: str, comment: str, token: str | None) -> Reply:
    """Decide an approval."""
    actor, ledger = current_actor("cli"), call.open().ledger
    shown = None
    if token is not None:
        asked = approvals.get(ledger, id_)
        if token != asked.token:
            raise click.UsageError(f"The digest of {asked.id} does not end in {token[:20]}: nothing was decided.")
        shown = asked.digest
    decided = approvals.decide(
        ledger,
        id_,
        verdict,
        by=actor,
        agent=agent_behind(),
        comment=comment,
        shown_digest=shown,
        input="cli" if token is None else "typed-token",
    )
    lines = [f"{decided.id} is {decided.state}."]
    if not actor.tty:
        lines.append("Recorded as a decision without a terminal.")
    return Reply(schema="approval-decide/1", body={"approval": decided}, lines=lines)


@approval.command(help="Use an approval once, for exactly the approved command. Prints the start token.")
@click.argument("id_", metavar="ID")
@click.option("--payload", required=True, metavar="FILE")
@click.pass_obj
def consume(call: Call, id_: str, payload: str) -> Reply:
    """Consume an approval."""
    wanted = decode_payload(read_bytes(payload))
    used = approvals.consume(call.open().ledger, id_, wanted, actor=current_actor("cli"))
    return Reply(
        schema="approval-consume/1",
        body={"approval": used, "start_token": used.start_token},
        lines=[f"{used.id} is used: {used.start_token}"],
    )
