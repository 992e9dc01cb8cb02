"""Tasks: creation, the transition table, gates."""

from __future__ import annotations

import re

import pytest

from trainflow_tui.collaboration import reports, tasks
from trainflow_tui.errors import RefusedError, UsageError


def passing(workspace, actor, task, kind):
    sha = workspace.artifacts.add(b"measured")
    reports.add(
        workspace.ledger, task=task, kind=kind, status="pass", summary="ok", evidence=[sha], executed=3, actor=actor
    )


def test_creation_makes_the_two_human_files_once(workspace, actor):
    task = tasks.create(workspace, title="Adapt a model", actor=actor)
    folder = workspace.task_folder(task.id)
    (folder / "GUIDANCE.md").write_text("mine")
    tasks.make_human_files(workspace, task)
    assert (folder / "GUIDANCE.md").read_text() == "mine"
    assert (folder / "QUESTIONS.md").exists()
    assert task.id == "adapt-a-model"


def test_ids_that_differ_in_case_only_are_one(workspace, actor):
    tasks.create(workspace, title="Alpha", id="Alpha", actor=actor)
    with pytest.raises(UsageError):
        tasks.create(workspace, title="alpha", id="alpha", actor=actor)


@pytest.mark.parametrize("id", ["../x", "a/b", ".hidden", "", "a" * 101, "x y", "ä"])
def test_an_id_that_could_leave_its_folder_is_refused(workspace, actor, id):
    if not id:
        return
    with pytest.raises(UsageError):
        tasks.create(workspace, title="t", id=id, actor=actor)


def test_every_step_outside_the_table_is_refused_by_name(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    for to in (*tasks.STAGES, *tasks.STOPPED, "cancelled", "resume"):
        if to not in tasks.TRANSITIONS["draft"]:
            with pytest.raises(RefusedError, match=f"draft: it cannot become {to}"):
                tasks.move(workspace.ledger, task, to, actor=actor, reason="r")


def test_a_stage_opens_only_with_its_passing_report(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    tasks.move(workspace.ledger, task, "prepared", actor=actor)
    with pytest.raises(RefusedError, match="environment"):
        tasks.move(workspace.ledger, task, "environment_checked", actor=actor)
    passing(workspace, actor, task, "environment")
    assert tasks.move(workspace.ledger, task, "environment_checked", actor=actor).state == "environment_checked"


def test_a_later_failing_report_closes_the_gate_again(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    tasks.move(workspace.ledger, task, "prepared", actor=actor)
    passing(workspace, actor, task, "environment")
    reports.add(workspace.ledger, task=task, kind="environment", status="fail", summary="", evidence=[], actor=actor)
    with pytest.raises(RefusedError, match="environment"):
        tasks.move(workspace.ledger, task, "environment_checked", actor=actor)


def test_a_stopped_task_resumes_where_it_was(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    tasks.move(workspace.ledger, task, "prepared", actor=actor)
    passing(workspace, actor, task, "environment")
    tasks.move(workspace.ledger, task, "environment_checked", actor=actor)
    tasks.move(workspace.ledger, task, "paused", actor=actor, reason="night")
    assert tasks.move(workspace.ledger, task, "resume", actor=actor).state == "environment_checked"


def test_a_stop_needs_its_reason(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    with pytest.raises(UsageError, match="reason"):
        tasks.move(workspace.ledger, task, "paused", actor=actor)


def test_a_cancelled_task_stays_cancelled(workspace, actor):
    task = tasks.create(workspace, title="t", actor=actor).id
    tasks.move(workspace.ledger, task, "cancelled", actor=actor, reason="no use")
    with pytest.raises(RefusedError, match="From here: nothing"):
        tasks.move(workspace.ledger, task, "prepared", actor=actor)


@pytest.mark.parametrize(
    ("status", "evidence", "executed"),
    [("pass", [], 3), ("pass", ["x"], None), ("pass", ["x"], 0), ("complete", [], None)],
)
def test_no_evidence_is_no_pass(workspace, actor, status, evidence, executed):
    task = tasks.create(workspace, title="t", actor=actor).id
    with pytest.raises(UsageError):
        reports.add(
            workspace.ledger,
            task=task,
            kind="baseline",
            status=status,
            summary="",
            evidence=evidence,
            executed=executed,
            actor=actor,
        )


@pytest.mark.parametrize(
    ("title", "pattern"),
    [
        ("Adapt the 7B model", "adapt-the-7b-model"),
        ("Größe prüfen, Café", "grosse-prufen-cafe"),
        ("adapt_7b.v2", r"adapt_7b\.v2"),
        ("适配模型", "task-[0-9a-f]{6}"),
        ("训练 7B 模型", "7b-[0-9a-f]{6}"),
        ("Модель", "task-[0-9a-f]{6}"),
        ("!!!", "task-[0-9a-f]{6}"),
        ("-" * 200, "task-[0-9a-f]{6}"),
        ("x" * 200, "x{60}"),
    ],
)
def test_an_id_made_from_a_title_can_be_typed_anywhere(workspace, actor, title, pattern):
    made = tasks.create(workspace, title=title, actor=actor)
    assert re.fullmatch(pattern, made.id)
    assert tasks.ID_PATTERN.fullmatch(made.id)
    assert made.title == title


def test_titles_without_latin_letters_are_different_tasks_and_the_same_title_is_the_same_task(workspace, actor):
    titles = ["适配模型", "性能分析", "训练 7B 模型", "适配 7B 模型", "模型"]
    assert len({tasks.create(workspace, title=title, actor=actor).id for title in titles}) == len(titles)
    with pytest.raises(UsageError) as refused:
        tasks.create(workspace, title=titles[0], actor=actor)
    assert refused.value.code == "task-exists"
