"""Everything that the screens show, read from the ledger in one go. Frozen: two equal snapshots repaint nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.collaboration import approvals, guidance, health, questions, tasks
from trainflow_tui.collaboration.approvals import Approval
from trainflow_tui.collaboration.guidance import GuidanceItem
from trainflow_tui.collaboration.health import Trouble
from trainflow_tui.collaboration.questions import Question
from trainflow_tui.collaboration.tasks import Task
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.monitoring import status
from trainflow_tui.monitoring.status import NodeRow, RunStatus, TraceRow
from trainflow_tui.workspace import Workspace

if TYPE_CHECKING:
    from trainflow_tui.ledger.past import Past


class HumanFile(msgspec.Struct, frozen=True, kw_only=True):
    """The collector's last word on one human file."""

    task: str
    name: str
    state: str
    detail: str
    scanned_at: str


class CollectorView(msgspec.Struct, frozen=True, kw_only=True):
    """Who collects, since when, and how it notices edits."""

    running: bool
    holder: str
    mode: str
    scanned_at: str


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """One consistent reading of the workspace."""

    version: tuple[int, int]
    name: str
    readonly: bool
    tasks: list[Task] = []
    approvals: list[Approval] = []
    questions: list[Question] = []
    guidance: list[GuidanceItem] = []
    traces: list[TraceRow] = []
    runs: list[RunStatus] = []
    nodes: list[NodeRow] = []
    files: list[HumanFile] = []
    collector: CollectorView
    troubles: list[Trouble] = []
    """What stands until somebody does something about it, the worst first."""
    moment: str = ""
    """The time that it shows (UTC, ISO); empty is now."""

    def waiting(self, task: str) -> int:
        """How many things of a task wait for a person."""
        asked = sum(1 for a in self.approvals if a.state == "pending" and a.request.task == task)
        return asked + sum(1 for q in self.questions if q.task == task and _waits(q))

    @property
    def pending(self) -> list[Approval]:
        """Approvals that wait, high impact first."""
        return [a for a in self.approvals if a.state == "pending"]

    @property
    def asked(self) -> list[Question]:
        """Agents' questions that wait for an answer."""
        return [q for q in self.questions if q.direction == "to-human" and q.state == "open"]


def _waits(question: Question) -> bool:
    return question.direction == "to-human" and question.state == "open"


def load(workspace: Workspace) -> Snapshot:
    """Read it. Milliseconds: ledger rows and summaries only."""
    troubles = [*health.standing(workspace), *health.recorded(workspace.ledger)]
    return _read(workspace, workspace.ledger, collector=_collector(workspace), troubles=troubles)


def load_at(workspace: Workspace, past: Past, moment: str) -> Snapshot:
    """The same as it was at a moment (an ISO time with its zone). The workspace is only read.

    Who collected then, and what stood in the way, nobody recorded: the collector's mode is `unknown`, of troubles none is said.

    Raises:
        DamagedError: the ledger or the samples cannot be read.
    """
    from trainflow_tui.monitoring import replay  # brings the parsers of logs and DuckDB, which first paint does without

    at = from_iso(moment)
    replay.go_to(workspace, past, at)
    collector = CollectorView(running=False, holder="", mode="unknown", scanned_at="")
    return _read(workspace, past, collector=collector, troubles=[], moment=to_iso(at))


def _read(
    workspace: Workspace, ledger: Ledger, *, collector: CollectorView, troubles: list[Trouble], moment: str = ""
) -> Snapshot:
    files = [
        HumanFile(task=t, name=n, state=s, detail=d, scanned_at=at)
        for t, n, s, d, at in ledger.query(
            "SELECT task, name, state, detail, scanned_at FROM human_file ORDER BY task, name"
        )
    ]
    return Snapshot(
        version=ledger.version(),
        name=workspace.root.name or str(workspace.root),
        readonly=workspace.ledger.readonly,
        tasks=tasks.all_tasks(ledger),
        approvals=approvals.listed(ledger),
        questions=questions.listed(ledger),
        guidance=guidance.listed(ledger),
        traces=status.traces(ledger),
        runs=status.runs(ledger),
        nodes=status.nodes(ledger),
        files=files,
        collector=collector,
        troubles=troubles,
        moment=moment,
    )


def _collector(workspace: Workspace) -> CollectorView:
    held = leases.holder(workspace.ledger, "watch")
    rows = workspace.ledger.query("SELECT detail, at FROM pulse WHERE topic = 'scan'")
    silent = workspace.ledger.query("SELECT 1 FROM pulse WHERE topic = 'watch' AND detail != ''")
    mode = "polling" if silent or not workspace.filesystem.watchable else "watching"
    return CollectorView(
        running=held is not None,
        holder=held.owner if held else "",
        mode=mode if held else "off",
        scanned_at=rows[0][1] if rows else "",
    )
