"""A snapshot of the past is what the screens showed at that moment."""

from __future__ import annotations

import asyncio
import random
from datetime import timedelta

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.clock import ManualClock, to_iso
from trainflow_tui.collaboration import approvals, guidance, questions, reports, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.errors import TrainflowError
from trainflow_tui.ledger.events import Actor
from trainflow_tui.ledger.past import Past
from trainflow_tui.screens import snapshot
from trainflow_tui.screens.desk import Desk
from trainflow_tui.workspace import Workspace

HUMAN = Actor(door="tui", uid=1000, user="operator", tty="/dev/pts/1")
AGENT = Actor(door="cli", uid=1000, user="operator", agent="a1")
LISTS = ("tasks", "approvals", "questions", "guidance", "traces")
OPERATIONS = [
    "task",
    "move",
    "report",
    "guidance",
    "receipt",
    "ask",
    "answer",
    "request",
    "decide",
    "consume",
    "close",
    "trace",
    "nothing",
]


class Story:
    """What people and agents do, drawn at random; a step that a rule refuses changes nothing."""

    def __init__(self, workspace, chance):
        self.workspace, self.ledger, self.chance = workspace, workspace.ledger, chance
        self.number = 0

    def do(self, operation):
        self.number += 1
        try:
            getattr(self, f"_{operation}")()
        except TrainflowError:
            return

    def _any_task(self):
        found = tasks.all_tasks(self.ledger)
        return self.chance.choice(found).id if found else "none"

    def _append(self, kind, entity, payload):
        with self.ledger.transaction() as transaction:
            transaction.append(kind, entity, payload, actor=HUMAN)

    def _task(self):
        tasks.create(self.workspace, title=f"Task {self.number}", actor=HUMAN)

    def _move(self):
        to = self.chance.choice(["prepared", "paused", "blocked", "resume", "completed", "cancelled"])
        tasks.move(self.ledger, self._any_task(), to, actor=HUMAN, reason=f"because {self.number}")

    def _report(self):
        word = {"summary": f"s{self.number}", "evidence": [], "status": "fail", "kind": "baseline"}
        reports.add(self.ledger, task=self._any_task(), actor=AGENT, **word)

    def _guidance(self):
        task, id = self._any_task(), f"g{self.chance.randint(1, 4)}"
        if self.chance.random() < 0.2:
            self._append("guidance.removed", f"{task}/{id}", {"task": task, "id": id, "n": self.number})
        else:
            payload = {"task": task, "id": id, "text": f"text {self.number}", "version": self.number, "position": 1}
            self._append("guidance.collected", f"{task}/{id}", payload)

    def _receipt(self):
        found = guidance.listed(self.ledger)
        item = self.chance.choice(found) if found else None
        state = self.chance.choice(["seen", "applied", "accepted"])
        if item is not None:
            guidance.add_receipt(
                self.ledger, task=item.task, item=item.id, state=state, note="n", actor=HUMAN, agent=None
            )

    def _ask(self):
        direction = self.chance.choice(questions.DIRECTIONS)
        named = {"title": f"Q{self.number}", "body": "", "blocking": self.chance.random() < 0.5}
        questions.ask(self.ledger, task=self._any_task(), actor=AGENT, direction=direction, **named)

    def _answer(self):
        found = questions.listed(self.ledger, open_only=True)
        if found:
            one = self.chance.choice(found)
            questions.answer(self.ledger, one.id, f"A{self.number}", actor=HUMAN, agent=None, task=one.task)

    def _request(self):
        now, limits = self.workspace.clock.now(), {}
        for name in ("expires_at", "start_before"):
            if self.chance.random() < 0.6:
                limits[name] = now + timedelta(seconds=self.chance.randint(1, 90))
        wanted = ApprovalRequest(
            task=self._any_task(), title=f"R{self.number}", payload=CommandPayload(argv=["x"], cwd="/"), **limits
        )
        approvals.request(self.ledger, wanted, actor=AGENT)

    def _decide(self):
        found = approvals.listed(self.ledger, pending_only=True)
        if found:
            one = self.chance.choice(found)
            verdict = self.chance.choice(["approve", "approve", "deny"])
            approvals.decide(self.ledger, one.id, verdict, by=HUMAN, agent=None, shown_digest=one.digest)

    def _consume(self):
        found = [a for a in approvals.listed(self.ledger) if a.state == "approved"]
        if found:
            one = self.chance.choice(found)
            approvals.consume(self.ledger, one.id, one.request.payload, actor=AGENT)

    def _close(self):
        approvals.close_overdue(self.ledger, actor=HUMAN)

    def _trace(self):
        payload = {"task": self._any_task(), "path": "/t", "sha256": "0" * 64, "summary": {"devices": []}}
        self._append("trace.added", f"tr{self.number}", payload)

    def _nothing(self):
        pass


def nouns(shown, ledger):
    return [getattr(shown, name) for name in LISTS] + [
        [reports.of_task(ledger, task.id) for task in shown.tasks],
        [run.id for run in shown.runs],
        [node.name for node in shown.nodes],
    ]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 60)), min_size=4, max_size=24), st.integers())
def test_a_snapshot_of_a_moment_is_the_one_that_was_loaded_then(tmp_path_factory, steps, seed):
    clock, chance = ManualClock(), random.Random(seed)
    workspace = Workspace.open(tmp_path_factory.mktemp("ws"), create=True, clock=clock)
    story = Story(workspace, chance)
    seen = {clock.now(): nouns(snapshot.load(workspace), workspace.ledger)}
    for operation, pause_s in [("task", 5), *steps]:
        story.do(operation)
        seen[clock.now()] = nouns(snapshot.load(workspace), workspace.ledger)
        clock.advance(pause_s)
        seen[clock.now()] = nouns(snapshot.load(workspace), workspace.ledger)
    past = Past(workspace.ledger)
    moments = list(seen)
    chance.shuffle(moments)
    for moment in moments:
        shown = snapshot.load_at(workspace, past, to_iso(moment))
        assert nouns(shown, past) == seen[moment]
        assert shown.moment == to_iso(moment)
    past.close()
    workspace.close()


def test_an_approval_that_has_expired_since_is_pending_when_it_was(workspace, clock):
    story = Story(workspace, random.Random(1))
    story.do("task")
    asked_at = clock.now()
    wanted = ApprovalRequest(
        task="task-1",
        title="R",
        payload=CommandPayload(argv=["x"], cwd="/"),
        expires_at=asked_at + timedelta(seconds=60),
    )
    approvals.request(workspace.ledger, wanted, actor=AGENT)
    clock.advance(3600)
    past = Past(workspace.ledger)
    states = {}
    for seconds in (0, 59, 60):
        shown = snapshot.load_at(workspace, past, to_iso(asked_at + timedelta(seconds=seconds)))
        states[seconds] = [a.state for a in shown.approvals]
    assert states == {0: ["pending"], 59: ["pending"], 60: ["expired"]}
    past.close()


def test_what_nobody_recorded_is_unknown_and_never_todays(workspace, clock, actor):
    begin = clock.now()
    tasks.create(workspace, title="t", actor=actor)
    clock.advance(10)
    with workspace.ledger.transaction() as transaction:
        payload = {"task": "t", "name": "GUIDANCE.md", "sha256": "ab", "size_bytes": 1, "encoding": "utf-8"}
        transaction.append("file.collected", "t/GUIDANCE.md", payload, actor=actor)
    collected_at = clock.now()
    clock.advance(10)
    with workspace.ledger.transaction() as transaction:
        for name in ("GUIDANCE.md", "QUESTIONS.md"):
            transaction.execute(
                "INSERT INTO human_file (task, name, state, scanned_at) VALUES ('t', ?, 'missing', ?)",
                (name, to_iso(clock.now())),
            )
        transaction.execute(
            "INSERT INTO lease VALUES ('watch', 'h:1', 1, '2099-01-01T00:00:00.000000Z', ?)", (to_iso(clock.now()),)
        )
        transaction.pulse("scan")
    now = snapshot.load(workspace)
    assert [f.state for f in now.files] == ["missing", "missing"]
    assert now.collector.running
    assert len(now.troubles) == 2
    past = Past(workspace.ledger)
    for moment, expected in (
        (begin, [("GUIDANCE.md", "unknown", ""), ("QUESTIONS.md", "unknown", "")]),
        (clock.now(), [("GUIDANCE.md", "collected", to_iso(collected_at)), ("QUESTIONS.md", "unknown", "")]),
    ):
        shown = snapshot.load_at(workspace, past, to_iso(moment))
        assert [(f.name, f.state, f.scanned_at) for f in shown.files] == expected
        assert (shown.collector.running, shown.collector.mode, shown.collector.scanned_at) == (False, "unknown", "")
        assert shown.troubles == []
    past.close()


def test_the_desk_shows_and_steps_through_the_past_of_a_workspace_that_is_only_read(tmp_path, clock, actor):
    root = tmp_path / "ws"
    opened = Workspace.open(root, create=True, clock=clock)
    times = []
    for title in ("a", "b", "c"):
        tasks.create(opened, title=title, actor=actor)
        times.append(to_iso(clock.now()))
        clock.advance(60)
    opened.close()
    desk = Desk(Workspace.open(root, clock=clock, flags={"readonly": True}))

    async def look():
        now = to_iso(clock.now())
        assert await desk.bounds() == (times[0], times[2])
        here, back = now, []
        while here := await desk.step(here, -1):
            back.append(here)
        assert back == times[::-1]
        assert [await desk.step(at, 1) for at in times] == [*times[1:], ""]
        shown = await desk.past(times[1])
        assert [t.id for t in shown.tasks] == ["a", "b"]
        assert shown.readonly
        assert msgspec.structs.replace(await desk.past(now), moment="").tasks == desk.first.tasks
        assert await desk.history("none", until=now) == ()

    asyncio.run(look())
    desk.close()
