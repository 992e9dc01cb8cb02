"""Lines of a megabyte in everything that others write: they are cut before any widget gets them, and memory stays bounded."""

from __future__ import annotations

import contextlib
import resource
import sys
import time

import msgspec
import pytest
from rich.text import Text
from textual.content import Content

from tests.tui import example
from trainflow_tui import refresh
from trainflow_tui.collaboration import approvals, questions, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.collaboration.settled_read import SettledReader
from trainflow_tui.errors import TrainflowError
from trainflow_tui.monitoring import follow, status
from trainflow_tui.monitoring.nodes.records import Signal
from trainflow_tui.monitoring.status import RunEvent, RunSummary
from trainflow_tui.screens.widgets.patched_table import PatchedTable
from trainflow_tui.screens.widgets.steady_text import SteadyText

LENGTH = 1_000_000
LONGEST_CELL = 8000
"""Characters: `text.display` keeps 4,000 cells of one text unless it is told otherwise, and a line joins a few texts."""
LONGEST_TO_READ = 120_000
"""A text that was opened to be read: 100,000 cells."""
KINDS = {
    "ascii": "x" * LENGTH,
    "cjk": "训" * LENGTH,
    "combining": "e" + "\u0301" * LENGTH,
    "words": "loss " * (LENGTH // 5),
    "escapes": "\x1b[31m" * (LENGTH // 5),
    "returns": "10%\r" * (LENGTH // 4),
}
DEFAULT = ("cjk",)


@pytest.fixture
def given(monkeypatch):
    """The length of every text that a widget was given, longest last."""
    lengths = [0]

    def note(text):
        lengths.append(len(text.plain if isinstance(text, Text | Content) else str(text)))

    show, show_rows = SteadyText.show, PatchedTable.show_rows

    def noted_show(self, content):
        note(content)
        show(self, content)

    def noted_rows(self, columns, rows):
        for row in rows:
            for cell in row.cells:
                note(cell)
        show_rows(self, columns, rows)

    monkeypatch.setattr(SteadyText, "show", noted_show)
    monkeypatch.setattr(PatchedTable, "show_rows", noted_rows)
    return lengths


def written_everywhere(workspace, clock, monkeypatch, words):
    """The words in each place that takes them, as long as it takes them; returns the places with the lengths."""
    took = {}

    def longest(name, write):
        for length in (LENGTH, 200_000, 65_536, 20_000, 4_000, 500, 200, 100):
            with contextlib.suppress(TrainflowError):  # it is refused with a reason: nothing to show
                write(words[:length])
                took[name] = length
                return

    example.fill(workspace, clock, monkeypatch)
    ledger, actor = workspace.ledger, example.AGENT
    longest("title", lambda w: tasks.create(workspace, title=w, id="long-title", objective="x", actor=actor))
    longest("objective", lambda w: tasks.create(workspace, title="x", id="long-aim", objective=w, actor=actor))

    def ask(title, body):
        questions.ask(ledger, task="adapt-7b", title=title, body=body, blocking=True, actor=actor)

    longest("question", lambda w: ask(w, "x"))
    longest("question's body", lambda w: ask("x", w))

    def request(title="x", word="x", why="x"):
        payload = CommandPayload(argv=["echo", word], cwd="/tmp")
        approvals.request(ledger, ApprovalRequest(task="adapt-7b", title=title, payload=payload, why=why), actor=actor)

    longest("approval", lambda w: request(title=w))
    longest("approval's why", lambda w: request(why=w))
    longest("approval's argument", lambda w: request(word=w))
    folder = workspace.task_folder("adapt-7b")
    for name in ("GUIDANCE.md", "QUESTIONS.md"):
        (folder / name).write_text(f"## {words}\n\n{words}\n")
    log = workspace.root / "long.log"
    log.write_text(f"[rank0]: RuntimeError: {words}\nstep 1 loss 2.0 {words}\n" * 3)
    follow.add_run(workspace, log, task="adapt-7b", id="long", actor=actor)
    reader = SettledReader(clock=example._Later(clock), sleep=lambda _: None)
    refresh.run_round(workspace, actor=actor, reader=reader, check_nodes=False)
    # What our own parsers cut is stored uncut too, as an older version or another program may have done.
    event = RunEvent(type="error", line=1, step=1, text=words, at="2026-03-04T03:00:07.000000Z")
    summary = RunSummary(framework=words, state="following", step=1, throughput_unit=words, events=[event] * 3)
    signal = Signal(check="memory", state="warning", value=1.0, unit="%", text=words)
    trace = example._trace_summary()
    for spot in trace["devices"][0]["hotspots"]:
        spot["name"] = words
    with ledger.transaction() as transaction:
        status.store_run(transaction, ledger, "adapt-7b-train", tail={}, summary=summary)
        status.store_node(
            transaction, ledger, "dcu-01", msgspec.structs.replace(example._node(), signals=(signal,) * 3)
        )
        given = {"path": f"/runs/{words}", "sha256": "cd" * 32, "task": "adapt-7b", "summary": trace}
        transaction.append("trace.added", "cdcdcdcdcdcd", given, actor=actor)
    return took


def resident_mb():
    if not sys.platform.startswith("linux"):
        return 0.0
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 1e6


@pytest.mark.parametrize("kind", [k if k in DEFAULT else pytest.param(k, marks=pytest.mark.long) for k in KINDS])
async def test_a_line_of_a_megabyte_is_cut_before_any_widget(
    workspace, clock, monkeypatch, opened, given, kind, record_property
):
    took = written_everywhere(workspace, clock, monkeypatch, KINDS[kind])
    assert len(took) == 7
    before = resident_mb()
    async with opened() as (app, pilot):
        slowest = 0.0
        for key in "123450":
            await pilot.press(key)
            await pilot.pause()
            assert max(given) <= LONGEST_CELL, key
            begin = time.perf_counter()
            app.redraw()
            app.screen._compositor.render_strips()
            slowest = max(slowest, time.perf_counter() - begin)
        assert max(given) > 100
        for approval in app.snapshot.pending[-3:]:
            app.ask_decision(approval.id)
            await pilot.pause(0.1)
            await pilot.press("escape")
        await pilot.press("1", "enter")
        await pilot.pause(0.1)
        assert max(given) <= LONGEST_TO_READ
        grown = resident_mb() - before
    record_property("slowest_frame_ms", round(1000 * slowest))
    record_property("grown_mb", round(grown))
    assert grown < 200
