"""What is decided, under links, kills, clocks that go back and callers that come between a look and a step."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from trainflow_tui import refresh
from trainflow_tui.collaboration import approvals, guidance, reports, spooled, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.generated_files import render_task
from trainflow_tui.collaboration.identity import agent_behind, current_actor, program_name
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.errors import BusyError, RefusedError, UsageError
from trainflow_tui.ledger.witness import Loss

PAYLOAD = CommandPayload(argv=["x"])


@pytest.fixture
def task(workspace, actor):
    tasks.create(workspace, title="t", actor=actor)
    return "t"


@pytest.fixture
def scan(workspace, actor):
    return lambda: collect(workspace, actor=actor, reader=SettledReader(clock=workspace.clock, sleep=lambda _: None))


def save(workspace, text, name="GUIDANCE.md"):
    (workspace.task_folder("t") / name).write_text(text)


# Items


def test_two_items_of_equal_text_come_back_as_two(workspace, task, scan):
    twice = "## same\n\nx\n\n## same\n\nx\n"
    for text in (twice, "## other\n", twice):
        save(workspace, text)
        scan()
    present = [i for i in guidance.listed(workspace.ledger) if i.removed_at is None]
    assert [i.text for i in present] == ["## same\n\nx"] * 2
    assert len({i.id for i in present}) == 2


def test_a_receipt_follows_the_table_also_where_another_came_first(workspace, task, scan, actor, monkeypatch):
    save(workspace, "## wish\n")
    scan()
    item = guidance.listed(workspace.ledger)[0].id

    def give(state):
        return guidance.add_receipt(
            workspace.ledger, task="t", item=item, state=state, note="n", actor=actor, agent=None
        )

    give("applied")
    real = workspace.ledger.transaction

    def accepted_just_before():
        monkeypatch.setattr(workspace.ledger, "transaction", real)
        give("accepted")
        return real()

    monkeypatch.setattr(workspace.ledger, "transaction", accepted_just_before)
    with pytest.raises(RefusedError) as refused:
        give("declined")
    assert refused.value.code == "receipt-transition"
    assert guidance.listed(workspace.ledger)[0].state == "accepted"


# Links and killed processes


def test_what_a_linked_folder_leads_to_is_neither_read_nor_written(workspace, task, scan, tmp_path, actor):
    away = tmp_path / "away"
    workspace.task_folder("t").rename(away)
    workspace.task_folder("t").symlink_to(away)
    (away / "GUIDANCE.md").write_text("## not of this workspace\n")
    before = {p.name: p.read_bytes() for p in away.iterdir()}
    found = scan()
    assert [e.code for e in found.errors] == ["not-regular"] * 2
    refresh.add_guidance(workspace, task="t", text="from a command", actor=actor)
    assert render_task(workspace, "t") == []
    assert {p.name: p.read_bytes() for p in away.iterdir()} == before
    assert [i.text for i in guidance.listed(workspace.ledger)] == ["from a command"]


def test_a_task_whose_place_is_a_link_is_not_recorded(workspace, tmp_path, actor):
    (workspace.root / "collaboration").symlink_to(tmp_path)
    before = workspace.ledger.head()
    with pytest.raises(RefusedError):
        tasks.create(workspace, title="u", actor=actor)
    assert workspace.ledger.head() == before
    assert not (tmp_path / "u").exists()


@pytest.mark.parametrize("name", ["BOARD.md", "RECEIPTS.md"])
def test_a_pipe_or_a_link_in_a_generated_files_place_is_replaced(workspace, task, tmp_path, name):
    canary = tmp_path / "canary"
    canary.write_text("keep")
    for put in (os.mkfifo, lambda path: path.symlink_to(canary)):
        path = workspace.task_folder("t") / name
        path.unlink(missing_ok=True)
        put(path)
        assert name in render_task(workspace, "t")
        assert path.is_file()
        assert not path.is_symlink()
    assert canary.read_text() == "keep"


def test_a_directory_in_a_generated_files_place_stops_no_other_task(workspace, task, actor):
    tasks.create(workspace, title="u", actor=actor)
    (workspace.task_folder("t") / "BOARD.md").mkdir()
    done = refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert [t.code for t in done.troubles] == ["render-failed"]
    assert "u/BOARD.md" in done.changed_files


def test_files_that_a_killed_process_did_not_make_are_made_by_the_next_scan(workspace, actor, monkeypatch, scan):
    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tasks, "make_human_files", killed)
        with pytest.raises(KeyboardInterrupt):
            tasks.create(workspace, title="t", actor=actor)
    assert scan().errors == []
    assert (workspace.task_folder("t") / "GUIDANCE.md").exists()


def test_a_file_that_was_there_and_is_gone_is_not_made_again(workspace, task, scan):
    scan()
    (workspace.task_folder("t") / "GUIDANCE.md").unlink()
    assert [e.code for e in scan().errors] == ["missing"]
    assert not (workspace.task_folder("t") / "GUIDANCE.md").exists()


def test_one_record_that_cannot_be_read_stays_and_stops_no_other(workspace, task, scan, actor):
    spooled.write_guidance(workspace, task="t", text="first", actor=actor)
    bad = next(iter(workspace.spool.iterdir()))
    bad.write_bytes(b"{")
    spooled.write_guidance(workspace, task="t", text="second", actor=actor)
    found = scan()
    assert [e.code for e in found.errors] == ["record-unreadable"]
    assert [i.text for i in guidance.listed(workspace.ledger)] == ["second"]
    assert bad.read_bytes() == b"{"


def test_one_file_that_fails_stops_no_other(workspace, task, scan, monkeypatch):
    real = workspace.artifacts.add

    def full(content):
        if b"wish" in content:
            raise OSError(28, "No space left on device")
        return real(content)

    monkeypatch.setattr(workspace.artifacts, "add", full)
    save(workspace, "## wish\n")
    save(workspace, "## Q1: why?\n", "QUESTIONS.md")
    found = scan()
    assert [(e.code, e.file) for e in found.errors] == [("not-collected", "t/GUIDANCE.md")]
    assert found.new == 1
    monkeypatch.setattr(workspace.artifacts, "add", real)
    assert scan().new == 1


def test_a_busy_ledger_is_no_fault_of_a_file(workspace, task, actor, monkeypatch):
    def busy(*_, **__):
        raise BusyError("ledger-busy", "Busy.")

    monkeypatch.setattr("trainflow_tui.collaboration.collector._collect_file", busy)
    done = refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert [(t.code, t.exit) for t in done.troubles] == [("ledger-busy", 30)]


def test_a_defect_of_ours_is_one_and_stops_no_other_part(workspace, task, actor, monkeypatch):
    monkeypatch.setattr(refresh.Follower, "follow_all", lambda *_: {}["no such key"])
    done = refresh.run_round(workspace, actor=actor, check_nodes=False)
    assert [(t.code, t.exit) for t in done.troubles] == [("internal", 70)]
    assert done.changed_files


# Clocks


def test_the_last_report_counts_also_where_the_clock_went_back(workspace, task, actor, clock):
    def report(status):
        reports.add(
            workspace.ledger,
            task="t",
            kind="environment",
            status=status,
            summary="",
            evidence=["e"],
            actor=actor,
            executed=1,
        )

    tasks.move(workspace.ledger, "t", "prepared", actor=actor)
    report("pass")
    clock.set_wall(clock.now() - timedelta(days=1))
    report("fail")
    assert reports.latest(workspace.ledger, "t", "environment").status == "fail"
    with pytest.raises(RefusedError) as refused:
        tasks.move(workspace.ledger, "t", "environment_checked", actor=actor)
    assert refused.value.code == "gate-closed"


def test_a_file_that_never_rests_is_taken_also_where_the_clock_went_back(workspace, task, scan, clock):
    save(workspace, "## wish\n")
    scan()
    row = "UPDATE human_file SET state = 'editing', detail = ?, sha256 = '' WHERE name = 'GUIDANCE.md'"
    with workspace.ledger.transaction() as transaction:
        transaction.execute(row, ("2090-01-01T00:00:00.000000Z",))
    path = workspace.task_folder("t") / "GUIDANCE.md"
    reads = []

    def restless(_):
        reads.append(1)
        path.write_text(f"## wish {len(reads)}\n")

    found = collect(workspace, actor=current_actor("cli"), reader=SettledReader(clock=clock, sleep=restless))
    assert "t/GUIDANCE.md" in found.provisional


def test_a_deadline_is_kept_in_one_form(workspace, task, actor, clock):
    east = timezone(timedelta(hours=8))
    soon = (clock.now() + timedelta(seconds=60)).astimezone(east)
    made = approvals.request(
        workspace.ledger, ApprovalRequest(task="t", title="x", payload=PAYLOAD, expires_at=soon), actor=actor
    )
    assert approvals.close_overdue(workspace.ledger, actor=actor) == 0
    clock.advance(61)
    assert approvals.close_overdue(workspace.ledger, actor=actor) == 1
    assert approvals.get(workspace.ledger, made.id).state == "expired"


def test_a_deadline_without_a_zone_is_refused(workspace, task, actor):
    naive = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    wanted = ApprovalRequest(task="t", title="x", payload=PAYLOAD, expires_at=naive)
    with pytest.raises(UsageError):
        approvals.request(workspace.ledger, wanted, actor=actor)
    assert approvals.listed(workspace.ledger) == []


# What rests on what


def test_an_approval_is_not_used_in_a_ledger_that_has_lost_events(workspace, task, actor):
    made = approvals.request(workspace.ledger, ApprovalRequest(task="t", title="x", payload=PAYLOAD), actor=actor)
    approvals.decide(workspace.ledger, made.id, "approve", by=actor, agent=None)
    workspace.ledger.loss = Loss(seq=9, path="ledger.db.head")
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, made.id, PAYLOAD, actor=actor)
    assert refused.value.code == "events-lost"


def test_an_empty_file_is_no_evidence(workspace, task, actor):
    with pytest.raises(UsageError) as refused:
        reports.add(
            workspace.ledger,
            task="t",
            kind="environment",
            status="pass",
            summary="",
            evidence=[workspace.artifacts.add(b"")],
            actor=actor,
            executed=1,
        )
    assert refused.value.code == "report-evidence"


def test_a_report_that_comes_between_the_look_and_the_step_closes_the_gate(workspace, task, actor, monkeypatch):
    def report(status):
        reports.add(
            workspace.ledger,
            task="t",
            kind="environment",
            status=status,
            summary="",
            evidence=["e"],
            actor=actor,
            executed=1,
        )

    tasks.move(workspace.ledger, "t", "prepared", actor=actor)
    report("pass")
    real = workspace.ledger.transaction

    def failing_just_before():
        monkeypatch.setattr(workspace.ledger, "transaction", real)
        report("fail")
        return real()

    monkeypatch.setattr(workspace.ledger, "transaction", failing_just_before)
    with pytest.raises(RefusedError):
        tasks.move(workspace.ledger, "t", "environment_checked", actor=actor)


# Who acts


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["bash", "-c", "export TOKEN=hunter2; trainflow task list"], "bash"),
        (["/usr/bin/python3.11", "-u", "/opt/agent.py", "--api-key", "hunter2"], "python3.11 agent.py"),
        (["python", "-m", "trainflow_tui", "mcp"], "python trainflow_tui"),
        (["mysql", "-phunter2"], "mysql"),
        (["/opt/tool", "hunter2"], "tool"),
        (["node", "--eval", "hunter2"], "node"),
        (["sshd: operator@pts/0"], "sshd:"),
        ([""], ""),
        ([], ""),
    ],
)
def test_of_a_command_no_argument_is_kept(command, name):
    assert program_name(command) == name


def test_no_secret_of_the_environment_reaches_a_record(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hunter2")
    monkeypatch.setenv("TRAINFLOW_AGENT", "A" * 10_000)
    found = current_actor("cli")
    assert b"hunter2" not in msgspec.json.encode(found)
    assert found.agent == "A" * 100


def test_a_name_of_any_bytes_is_recorded_as_text():
    found = current_actor("cli", {"TRAINFLOW_AGENT": "a\udcff", "SSH_CONNECTION": "\udcff 1 2 3"})
    assert msgspec.json.decode(msgspec.json.encode(found), type=type(found)) == found


def test_the_account_is_the_systems_word_and_not_a_variables(monkeypatch):
    import pwd

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "somebody-else")
    assert current_actor("cli").user == pwd.getpwuid(os.getuid()).pw_name


def test_a_servers_arguments_are_not_quoted_in_a_refusal():
    found = agent_behind({}, ancestors=lambda: [["/usr/bin/trainflow", "mcp", "--token", "hunter2"]])
    assert found is not None
    assert "hunter2" not in found


def test_leftovers_are_removed_when_they_are_old_and_nothing_else_is(workspace, task):
    from trainflow_tui.monitoring import leftovers

    folder = workspace.task_folder("t")
    old, new, foreign = (folder / f".trainflow-{c * 16}.tmp" for c in "abz")
    for path in (old, new, foreign, workspace.spool / f".trainflow-{'c' * 16}.tmp"):
        path.write_text("half")
    past = time.time() - 7200
    for path in (old, foreign, workspace.spool / f".trainflow-{'c' * 16}.tmp", folder / "GUIDANCE.md"):
        os.utime(path, (past, past))
    assert leftovers.drop(workspace) == 2
    assert sorted(p.name for p in folder.iterdir()) == [new.name, foreign.name, "GUIDANCE.md", "QUESTIONS.md"]
