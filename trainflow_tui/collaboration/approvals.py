"""Approvals: one action that an agent may not take alone. Only a person's recorded decision authorises; silence never does."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any, Final

import msgspec

from trainflow_tui.clock import local_clock_time, to_iso
from trainflow_tui.collaboration.deadlines import has_passed, moment
from trainflow_tui.collaboration.identity import new_id
from trainflow_tui.collaboration.payload import CommandPayload, check_payload, differing_fields, digest
from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.ledger.database import Ledger, Transaction
from trainflow_tui.ledger.events import Actor

KINDS: Final = ("command", "file_change", "resource", "restart", "cleanup", "promote", "publish", "budget")
REVERSIBLE: Final = ("yes", "partly", "no")
VERDICTS: Final = {"approve": "approved", "deny": "denied", "changes": "changes_requested"}
HIGH_IMPACT_KINDS: Final = frozenset({"restart", "cleanup", "publish"})

TRANSITIONS: Final[dict[str, frozenset[str]]] = {
    "pending": frozenset({"approved", "denied", "changes_requested", "expired"}),
    "approved": frozenset({"consumed", "lapsed"}),
    "denied": frozenset(),
    "changes_requested": frozenset(),
    "expired": frozenset(),
    "consumed": frozenset(),
    "lapsed": frozenset(),
}
"""expired: nobody answered in time, which is not a refusal · lapsed: approved and not started in time."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to look at before deciding: an artifact, a trace, a report."""

    label: str
    ref: str


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an agent asks for. The digest covers exactly the payload that the operator is shown."""

    task: str
    title: str
    payload: CommandPayload
    kind: str = "command"
    why: str = ""
    effect: str = ""
    """What it touches: cards, jobs, files."""
    reversible: str = "partly"
    undo: str = ""
    evidence: list[Evidence] = []
    expires_at: datetime | None = None
    """None: waits without limit. An expired request is `expired`, never `denied`."""
    start_before: datetime | None = None
    """An approval that was not used by then has lapsed. None: no limit."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Who decided what, how and from where."""

    verdict: str
    state: str
    comment: str
    by: Actor
    at: str
    shown_digest: str
    """The digest of what the door showed or had confirmed; empty where it showed nothing (a plain call)."""
    shown_for_ms: int | None
    input: str
    """key, typed-token or cli."""

    @property
    def without_terminal(self) -> bool:
        """No terminal took part: shown as such wherever the decision is shown."""
        return not self.by.tty


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """One request with its current state. `state` is what it is now: a deadline that has passed shows at once."""

    id: str
    state: str
    request: ApprovalRequest
    digest: str
    by: Actor
    requested_at: str
    decision: Decision | None = None
    start_token: str | None = None
    consumed_at: str | None = None

    @property
    def high_impact(self) -> bool:
        """Whether deciding needs the typed token: it cannot be undone, or its kind stops or removes things."""
        return (
            self.request.reversible == "no"
            or self.request.kind in HIGH_IMPACT_KINDS
            or len(self.request.payload.hosts) > 8
        )

    @property
    def token(self) -> str:
        """What is typed to decide a high-impact request: the last four characters of the digest."""
        return self.digest[-4:]


def request(ledger: Ledger, wanted: ApprovalRequest, *, actor: Actor) -> Approval:
    """Record a request; it is durable before anybody is shown it.

    Raises:
        UsageError: no such task, or a field is out of its domain.
    """
    _check_request(wanted)
    id = new_id("ap")
    limits = {name: _stored_limit(name, getattr(wanted, name)) for name in ("expires_at", "start_before")}
    asked = moment(ledger.clock)
    payload = msgspec.to_builtins(wanted) | limits | {"digest": digest(wanted.payload), "asked": asked}
    with ledger.transaction() as transaction:
        if not transaction.query("SELECT 1 FROM task WHERE id = ?", (wanted.task,)):
            raise UsageError("no-task", f"There is no task {wanted.task[:120]!r}.", subject=wanted.task[:120])
        transaction.append("approval.requested", id, payload, actor=actor)
    return get(ledger, id)


def _stored_limit(name: str, moment: datetime | None) -> str | None:
    """A deadline in the one stored form, which sorts as text."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise UsageError(
            f"approval-{name.replace('_', '-')}",
            f"{name} = {moment.isoformat()}; expected a time with its zone.",
            subject=name,
            next_step="Write it as 2026-01-31T12:00:00Z.",
        )
    return to_iso(moment)


def _check_request(wanted: ApprovalRequest) -> None:
    check_payload(wanted.payload)
    if not wanted.title.strip() or len(wanted.title) > 200 or "\n" in wanted.title:
        raise UsageError("approval-title", "A title is one line of 1 to 200 characters.", subject="title")
    for field, value, domain in (("kind", wanted.kind, KINDS), ("reversible", wanted.reversible, REVERSIBLE)):
        if value not in domain:
            raise UsageError(
                f"approval-{field}",
                f"There is no {field} {value!r}.",
                subject=field,
                next_step=f"One of {', '.join(domain)}.",
            )


def decide(
    ledger: Ledger,
    id: str,
    verdict: str,
    *,
    by: Actor,
    agent: str | None,
    comment: str = "",
    shown_digest: str | None = None,
    shown_for_ms: int | None = None,
    input: str = "cli",
) -> Approval:
    """Record the operator's verdict. The first decision wins.

    `agent` is why the caller counts as an agent's process, or None; `shown_digest` is the digest of what was on the screen.

    Raises:
        UsageError: no such request or verdict, or a refusal without its reason.
        RefusedError: `human-only` (an agent decides), `already-decided` (names who, what, when), `expired`,
            `shown-differs` (what was shown is not what is recorded), `token-missing` (of high impact, and not shown).
    """
    _check_verdict(id, verdict, comment, agent)
    found = get(ledger, id)
    _check_shown(found, verdict, shown_digest)
    payload = {
        "verdict": verdict,
        "state": VERDICTS[verdict],
        "comment": comment.strip(),
        "by": msgspec.to_builtins(by),
        "shown_digest": shown_digest or "",
        "shown_for_ms": shown_for_ms,
        "input": input,
    }
    late = False
    with ledger.transaction() as transaction:
        current, now = _current(transaction, id), to_iso(ledger.clock.now())
        if current["state"] == "pending" and has_passed(current, ledger.clock):
            late = True
            transaction.append("approval.closed", id, {"state": "expired"}, actor=by)
        elif VERDICTS[verdict] not in TRANSITIONS[current["state"]]:
            raise _already(id, current)
        else:
            transaction.append("approval.decided", id, payload | {"at": now}, actor=by)
    if late:
        raise RefusedError(
            "expired", f"{id} has expired: nobody answered in time.", subject=id, next_step="The agent may ask again."
        )
    return get(ledger, id)


def _check_verdict(id: str, verdict: str, comment: str, agent: str | None) -> None:
    if verdict not in VERDICTS:
        raise UsageError(
            "verdict",
            f"There is no verdict {verdict!r}.",
            subject="verdict",
            next_step=f"One of {', '.join(VERDICTS)}.",
        )
    if agent:
        raise RefusedError(
            "human-only", f"Only a person decides: {agent}.", subject=id, next_step="Wait for the operator's decision."
        )
    if verdict == "changes" and not comment.strip():
        raise UsageError(
            "comment-missing", "Say what should change.", subject="comment", next_step="Give --comment TEXT."
        )


def _check_shown(found: Approval, verdict: str, shown_digest: str | None) -> None:
    if shown_digest is not None and shown_digest != found.digest:
        raise RefusedError(
            "shown-differs",
            f"What was shown for {found.id} is not what was requested.",
            subject=found.id,
            next_step="Open it again.",
        )
    if shown_digest is None and verdict == "approve" and found.high_impact:
        raise RefusedError(
            "token-missing",
            f"{found.id} cannot be undone or stops something: approving it needs a sign that it was read.",
            subject=found.id,
            next_step=f"`trainflow approval show {found.id}`, then --token with the last four characters of its digest.",
        )


def consume(ledger: Ledger, id: str, payload: CommandPayload, *, actor: Actor) -> Approval:
    """Use an approval once, for exactly the command that was approved; the start token is written before anything starts.

    Raises:
        RefusedError: `not-approved`, `consumed`, `lapsed`, `events-lost` (that it is unused is not certain), or
            `digest-differs`, which names the fields that differ.
    """
    check_payload(payload)
    if ledger.loss is not None:
        raise RefusedError(
            "events-lost",
            f"Event {ledger.loss.seq} is gone from the ledger: {id} may have been used already.",
            subject=id,
            next_step=f"Put a copy of the ledger back, or have a person remove {ledger.loss.path}.",
        )
    lapsed = False
    with ledger.transaction() as transaction:
        current = _current(transaction, id)
        approved = _request(current["request"]).payload
        if "consumed" not in TRANSITIONS[current["state"]]:
            code = "consumed" if current["state"] == "consumed" else "not-approved"
            raise RefusedError(
                code,
                f"{id} is {current['state']}: it authorises nothing.",
                subject=id,
                next_step="Request a new approval.",
            )
        if digest(payload) != current["digest"]:
            names = ", ".join(differing_fields(approved, payload))
            raise RefusedError(
                "digest-differs",
                f"This is not the command that was approved for {id}: {names} differ.",
                subject=names,
                next_step="Request a new approval for it.",
            )
        if has_passed(current, ledger.clock):
            lapsed = True
            transaction.append("approval.closed", id, {"state": "lapsed"}, actor=actor)
        else:
            token = {"start_token": os.urandom(16).hex(), "digest": digest(payload)}
            transaction.append("approval.consumed", id, token, actor=actor)
    if lapsed:
        raise RefusedError("lapsed", f"{id} was not started in time.", subject=id, next_step="Request a new approval.")
    return get(ledger, id)


def close_overdue(ledger: Ledger, *, actor: Actor) -> int:
    """Record as events what deadlines have already decided; returns how many."""
    limited = ledger.query(
        f"SELECT id, {', '.join(_CURRENT)} FROM approval WHERE (state = 'pending' AND expires_at IS NOT NULL) "
        "OR (state = 'approved' AND start_before IS NOT NULL)"
    )
    overdue = [id for id, *row in limited if has_passed(dict(zip(_CURRENT, row, strict=True)), ledger.clock)]
    if not overdue:
        return 0
    closed = 0
    with ledger.transaction() as transaction:
        for id in overdue:
            current = _current(transaction, id)
            if has_passed(current, ledger.clock):
                state = "expired" if current["state"] == "pending" else "lapsed"
                transaction.append("approval.closed", id, {"state": state}, actor=actor)
                closed += 1
    return closed


def get(ledger: Ledger, id: str) -> Approval:
    """One request.

    Raises:
        UsageError: there is none of this id.
    """
    rows = ledger.query(f"{_SELECT} WHERE approval.id = ?", (id,))
    if not rows:
        raise UsageError(
            "no-approval",
            f"There is no approval {id[:80]!r}.",
            subject=id[:80],
            next_step="`trainflow approval list` shows them.",
        )
    return _approval(ledger, rows[0])


def listed(ledger: Ledger, *, task: str | None = None, pending_only: bool = False) -> list[Approval]:
    """Requests: the pending ones first, high impact before low, then by age; the others newest first.

    Their age is the order in which they were recorded, whatever the clock said.
    """
    rows = ledger.query(
        f"{_SELECT} WHERE (? IS NULL OR task = ?) AND (NOT ? OR state = 'pending') ORDER BY rowid",
        (task, task, pending_only),
    )
    found = [_approval(ledger, row) for row in rows]
    pending = sorted((a for a in found if a.state == "pending"), key=lambda a: not a.high_impact)
    return pending if pending_only else pending + [a for a in reversed(found) if a.state != "pending"]


_CURRENT: Final = ("state", "request", "digest", "requested_at", "expires_at", "start_before", "decision")
_SELECT: Final = (
    "SELECT id, state, request, digest, requested_at, expires_at, start_before, decision, start_token, consumed_at, "
    "(SELECT actor FROM event WHERE entity = approval.id AND kind = 'approval.requested') FROM approval"
)


def _approval(ledger: Ledger, row: tuple[Any, ...]) -> Approval:
    id, state, wanted, digest_, requested_at, expires_at, start_before, decision, token, consumed_at, actor = row
    limits = {"requested_at": requested_at, "expires_at": expires_at, "start_before": start_before}
    if has_passed({"state": state, "request": wanted} | limits, ledger.clock):
        state = "expired" if state == "pending" else "lapsed"
    return Approval(
        id=id,
        state=state,
        request=_request(wanted),
        digest=digest_,
        by=msgspec.json.decode(actor, type=Actor),
        requested_at=requested_at,
        decision=msgspec.json.decode(decision, type=Decision) if decision else None,
        start_token=token,
        consumed_at=consumed_at,
    )


def _request(stored: str) -> ApprovalRequest:
    known = {k: v for k, v in msgspec.json.decode(stored).items() if k in ApprovalRequest.__struct_fields__}
    return msgspec.convert(known, ApprovalRequest, strict=False)


def _current(transaction: Transaction, id: str) -> dict[str, Any]:
    rows = transaction.query(f"SELECT {', '.join(_CURRENT)} FROM approval WHERE id = ?", (id,))
    if not rows:
        raise UsageError("no-approval", f"There is no approval {id[:80]!r}.", subject=id[:80])
    return dict(zip(_CURRENT, rows[0], strict=True))


def _already(id: str, current: dict[str, Any]) -> RefusedError:
    if not current["decision"]:
        return RefusedError("approval-transition", f"{id} is {current['state']}: it cannot be decided.", subject=id)
    decision = msgspec.json.decode(current["decision"], type=Decision)
    return RefusedError(
        "already-decided",
        f"{id} was already decided: {decision.state} by {decision.by.label} at {local_clock_time(decision.at, with_date=True)}.",
        subject=id,
        next_step="The first decision stands.",
    )
