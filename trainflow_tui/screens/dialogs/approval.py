"""The approval dialog: exactly what will run, where, with what effect; the decision bound to what is shown."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input

from trainflow_tui.clock import local_clock_time
from trainflow_tui.collaboration.approvals import Approval
from trainflow_tui.screens import keys
from trainflow_tui.screens.views.board import state_words
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.steady_text import SteadyText
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, joined, key_hints, line, say
from trainflow_tui.text import Display, display

ARMED_AFTER_S = 0.4
"""Keys that were pressed before the dialog had been on screen this long decide nothing."""


@dataclass(frozen=True)
class Verdict:
    """What the operator decided, and what was shown when."""

    approval: str
    verdict: str
    comment: str
    shown_digest: str
    shown_for_ms: int
    input: str


class ApprovalDialog(ModalScreen[Verdict | None]):
    """Answers with a `Verdict`, or None for back."""

    BINDINGS: ClassVar[list[BindingType]] = list(keys.APPROVAL_KEYS)

    def __init__(self, approval: Approval, *, why_not: Display | None) -> None:
        """Show it; `why_not` says why nothing can be decided."""
        super().__init__()
        self._approval = approval
        self._why_not = why_not
        self._wanted = ""
        self.armed_at = float("inf")
        """On the clock of event creation; the application drops keys and clicks that are older."""
        self._mounted_at = 0.0
        self._hint = SteadyText(id="approval-hint")
        self._field = Input(id="approval-field", compact=True)

    def compose(self) -> ComposeResult:
        """The request in a scrolling body, the input line, the keys."""
        with Vertical(id="approval-box"):
            with VerticalScroll(id="approval-body"):
                for i, text in enumerate(request_lines(self._approval)):
                    body = SteadyText(id=f"approval-line-{i}")
                    body.show(text)
                    yield body
            yield self._field
            yield self._hint

    def on_mount(self) -> None:
        """Arm the keys after a moment; nothing that decides has the focus."""
        self._mounted_at = time.monotonic()
        self.armed_at = self._mounted_at + ARMED_AFTER_S
        self._field.display = False
        self._field.cursor_blink = False
        self.query_one("#approval-body").focus()
        self._hint.show(self._keys())
        # Only a layout tells whether all of it fits.
        self.call_after_refresh(lambda: self._hint.show(self._keys()))

    def _keys(self) -> Text:
        if self._why_not is not None:
            return as_text(say(_("Nothing is decided here: {why}. esc back"), why=self._why_not), WARN)
        if self._approval.state != "pending":
            return as_text(
                say(_("{state}: nothing to decide. esc back"), state=state_words(self._approval.state)), WARN
            )
        if not self._all_seen:
            return line(_("Cannot be undone: scroll to the end first (space). esc back"), BAD)
        return key_hints(("a", _("approve once")), ("d", _("deny")), ("c", _("ask for changes")), ("esc", _("back")))

    @property
    def _all_seen(self) -> bool:
        # What cannot be undone is decided only after its last line was on the screen.
        if self._approval.request.reversible != "no":
            return True
        body = self.query_one("#approval-body", VerticalScroll)
        return body.scroll_offset.y >= body.max_scroll_y

    @property
    def _may_answer(self) -> bool:
        return self._why_not is None and self._approval.state == "pending" and time.monotonic() >= self.armed_at

    @property
    def _may_decide(self) -> bool:
        return self._may_answer and self._all_seen

    def action_scroll(self, lines: int) -> None:
        """Move the body."""
        body = self.query_one("#approval-body", VerticalScroll)
        body.scroll_relative(y=lines, animate=False)
        self.call_after_refresh(lambda: self._hint.show(self._keys()))

    def action_approve(self) -> None:
        """Approve once; a high-impact request asks for the typed token first."""
        if not self._may_decide:
            return
        if self._approval.high_impact:
            self._ask("approve", say(_("High impact: type the last four characters of the digest, then enter")))
        else:
            self._answer("approve", "", "key")

    def action_deny(self) -> None:
        """Ask for the reason, then deny."""
        if self._may_decide:
            self._ask("deny", say(_("Why not? The agent reads this. enter denies")))

    def action_changes(self) -> None:
        """Ask what should change."""
        if self._may_decide:
            self._ask("changes", say(_("What should change? enter sends it back")))

    def action_back(self) -> None:
        """Close the input line, else the dialog."""
        if self._field.display:
            self._field.display = False
            self.query_one("#approval-body").focus()
            self._hint.show(self._keys())
        else:
            self.dismiss(None)

    def _ask(self, wanted: str, prompt: Text | object) -> None:
        self._wanted = wanted
        self._field.value = ""
        self._field.display = True
        self._field.focus()
        self._hint.show(as_text(prompt, WARN))  # type: ignore[arg-type]
        self._hint.refresh(layout=True)  # it may take a second line now
        # The digest whose end is typed stands in the last line.
        self.call_after_refresh(self.query_one("#approval-body", VerticalScroll).scroll_end, animate=False)

    @on(Input.Submitted)
    def _entered(self, event: Input.Submitted) -> None:
        event.stop()
        words = event.value.strip()
        # All was seen when this line was opened; it takes a row of the body, whose end may be hidden by it now.
        if not self._may_answer:
            return
        if self._wanted == "approve":
            if words != self._approval.token:
                self._hint.show(
                    as_text(say(_("That is not {token}: nothing was decided"), token=self._approval.token), BAD)
                )
                return
            self._answer("approve", "", "typed-token")
        elif not words:
            self._hint.show(line(_("A reason is needed"), BAD))
        else:
            self._answer(self._wanted, words, "key")

    def _answer(self, verdict: str, comment: str, kind: str) -> None:
        shown = int((time.monotonic() - self._mounted_at) * 1000)
        self.dismiss(Verdict(self._approval.id, verdict, comment, self._approval.digest, shown, kind))


def request_lines(approval: Approval) -> list[Text]:
    """The whole request, one text a line; arguments with their control characters made visible."""
    wanted, payload = approval.request, approval.request.payload
    risk = line(_("HIGH IMPACT"), "bold reverse bad") if approval.high_impact else line(_("approval"), "bold")
    asked_at = local_clock_time(approval.requested_at, with_date=True)
    lines = [
        joined(risk, line(wanted.title, "bold"), line(approval.id, MUTED), gap="  "),
        as_text(
            say(_("asked by {by} at {at} for task {task}"), by=approval.by.label, at=asked_at, task=wanted.task), MUTED
        ),
    ]
    if wanted.expires_at:
        lines.append(
            as_text(
                say(
                    _("expires at {at}; no answer is not a refusal"),
                    at=local_clock_time(wanted.expires_at, with_date=True),
                ),
                WARN,
            )
        )
    lines.append(as_text(say(_("Command, {n} arguments"), n=len(payload.argv)), "bold"))
    lines += [
        joined(line(f"{i:>4}", MUTED), as_text(display(word, whole=True), ACCENT), gap="  ")
        for i, word in enumerate(payload.argv)
    ]
    lines.append(
        as_text(
            say(
                _("Where: {hosts} ({n})"),
                hosts=", ".join(payload.hosts) or _("this machine"),
                n=max(1, len(payload.hosts)),
            )
        )
    )
    places = ((_("container"), payload.container), (_("user"), payload.user), (_("directory"), payload.cwd))
    lines += [as_text(say("{name}: {value}", name=name, value=value)) for name, value in places if value]
    if payload.env_names:
        lines.append(as_text(say(_("environment (names only): {names}"), names=", ".join(sorted(payload.env_names)))))
    limit = say(_("{n} s"), n=payload.timeout_s) if payload.timeout_s is not None else say(_("none"))
    lines.append(as_text(say(_("time limit: {limit}"), limit=limit)))
    undo = f" · {wanted.undo}" if wanted.undo else ""
    lines.append(
        as_text(
            say(_("Reversible: {how}{undo}"), how=wanted.reversible, undo=undo),
            BAD if wanted.reversible == "no" else "",
        )
    )
    more = ((_("Why"), wanted.why), (_("Effect"), wanted.effect))
    lines += [as_text(say("{name}: {value}", name=name, value=value)) for name, value in more if value]
    lines += [as_text(say(_("Evidence: {label} {ref}"), label=e.label, ref=e.ref), MUTED) for e in wanted.evidence]
    if wanted.start_before:
        lines.append(
            as_text(
                say(_("lapses if not started by {at}"), at=local_clock_time(wanted.start_before, with_date=True)), WARN
            )
        )
    lines.append(as_text(say(_("digest {digest}"), digest=approval.digest), MUTED))
    return lines + _decision_lines(approval)


def _decision_lines(approval: Approval) -> list[Text]:
    decision = approval.decision
    if decision is None:
        return []
    moment = local_clock_time(decision.at, with_date=True)
    words = say(
        _("{state} by {by} at {at} through {door}"),
        state=state_words(decision.state),
        by=decision.by.label,
        at=moment,
        door=decision.by.door,
    )
    lines = [as_text(words, OK if decision.verdict == "approve" else WARN)]
    if decision.without_terminal:
        lines.append(line(_("Decided without a terminal"), BAD))
    if decision.comment:
        lines.append(as_text(say(_("Comment: {words}"), words=decision.comment)))
    return lines
