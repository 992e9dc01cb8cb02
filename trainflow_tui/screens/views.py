"""From a snapshot to the rows of each list pane: what is shown, in which order, in which words. No widget, no clock."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from trainflow_tui.collaboration.approvals import Approval
from trainflow_tui.collaboration.guidance import GuidanceItem
from trainflow_tui.collaboration.questions import Question
from trainflow_tui.collaboration.tasks import STOPPED, Task
from trainflow_tui.monitoring.status import RunStatus
from trainflow_tui.screens.pane_view import PaneView
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.widgets.patched_table import Column, Row
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, at, joined, line, mark, say
from trainflow_tui.text import cell_len

TASK_MARKS: Final = {
    "failed": ("✗", BAD),
    "blocked": ("■", BAD),
    "paused": ("‖", WARN),
    "training": ("●", OK),
    "completed": ("✓", OK),
    "cancelled": ("–", MUTED),
}
GUIDANCE_MARKS: Final = {
    "collected": ("◐", WARN),
    "seen": ("◉", ACCENT),
    "applied": ("✓", OK),
    "declined": ("✗", BAD),
    "deferred": ("…", WARN),
    "accepted": ("★", OK),
}
APPROVAL_MARKS: Final = {
    "pending": ("!", BAD),
    "approved": ("✓", OK),
    "denied": ("✗", BAD),
    "changes_requested": ("↺", WARN),
    "expired": ("⌛", MUTED),
    "lapsed": ("⌛", MUTED),
    "consumed": ("●", OK),
}
RUN_MARKS: Final = {
    "waiting": ("◐", MUTED),
    "following": ("●", OK),
    "stale": ("◌", WARN),
    "missing": ("✗", BAD),
    "damaged": ("✗", BAD),
}
STATE_STYLES: Final = {"ok": OK, "warning": WARN, "degraded": WARN, "critical": BAD, "unknown": MUTED}


def _task_rank(snapshot: Snapshot, task: Task) -> tuple[int, str]:
    order = {"failed": 0, "blocked": 1, "paused": 3, "completed": 6, "cancelled": 7}
    rank = order.get(task.state, 4)
    return (2 if snapshot.waiting(task.id) and rank > 2 else rank, task.created_at)


def figures(label: str, width: int) -> Column:
    """A column of numbers, with its heading to the right as they are."""
    return Column(" " * (width - cell_len(label)) + label, width)


def tasks(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Tasks, worst first: failed, blocked, waiting for a person, paused, at work, done. Compact leaves the time out."""
    rows = []
    for task in sorted(snapshot.tasks, key=lambda t: _task_rank(snapshot, t)):
        waits = snapshot.waiting(task.id)
        state = task.state + (f" ({task.resume_state})" if task.state in STOPPED and task.resume_state else "")
        rows.append(
            Row(
                task.id,
                (
                    mark(*TASK_MARKS.get(task.state, ("●", ACCENT))),
                    line(task.id),
                    line(state, MUTED),
                    mark(f"!{waits}", BAD) if waits else mark("", MUTED),
                    line(task.latest_word or task.title),
                    at(task.latest_at),
                ),
            )
        )
    columns = (
        Column("", 1),
        Column(_("Task"), 14),
        Column(_("Stage"), 19),
        Column("!", 3),
        Column(_("Latest word"), None),
        Column(_("At"), 8),
    )
    view = PaneView(say(_("Tasks")), columns, tuple(rows), say(_("No task yet.  n  or  trainflow task create TITLE")))
    return view.only(0, 1, 2, 3, 4) if compact else view


def approvals(snapshot: Snapshot) -> PaneView:
    """The queue of requests, and below it what was decided."""
    rows = tuple(_approval_row(a) for a in snapshot.approvals)
    columns = (
        Column("", 1),
        Column(_("Id"), 9),
        Column(_("State"), 12),
        Column(_("Task"), 10),
        Column(_("Request"), None),
        Column(_("At"), 8),
    )
    empty = say(_("Nothing waits for a decision.  trainflow approval request TASK …"))
    note = say(_("{n} waiting"), n=len(snapshot.pending))
    return PaneView(say(_("Approvals")), columns, rows, empty, note)


def _approval_row(approval: Approval) -> Row:
    state = approval.state.replace("_", " ")
    if approval.decision and approval.decision.without_terminal:
        state = f"⌁ {state}"
    risk = mark(_("HIGH"), BAD) if approval.high_impact and approval.state == "pending" else mark("", MUTED)
    return Row(
        approval.id,
        (
            mark(*APPROVAL_MARKS[approval.state]),
            line(approval.id),
            line(state, APPROVAL_MARKS[approval.state][1]),
            line(approval.request.task, MUTED),
            joined(risk, line(approval.request.title)),
            at(approval.requested_at),
        ),
    )


def guidance(snapshot: Snapshot) -> PaneView:
    """Guidance items of all tasks with what became of each."""
    rows = tuple(_guidance_row(item) for item in snapshot.guidance)
    columns = (
        Column("", 1),
        Column(_("Item"), 9),
        Column(_("State"), 9),
        Column(_("Task"), 10),
        Column(_("Guidance"), None),
        Column(_("At"), 8),
    )
    open_items = sum(1 for i in snapshot.guidance if i.state in ("collected", "seen") and i.removed_at is None)
    empty = say(_("No guidance yet.  n  or  trainflow guidance add TASK --text …"))
    return PaneView(say(_("Guidance")), columns, rows, empty, say(_("{n} not handled"), n=open_items))


def _guidance_row(item: GuidanceItem) -> Row:
    state = _("removed") if item.removed_at else item.state
    badge = mark("✎", WARN) if item.provisional else mark("", MUTED)
    last = item.receipts[-1] if item.receipts else None
    words = line(item.heading or item.text)
    note = line(f"— {last.note}", MUTED) if last and last.note else mark("", MUTED)
    return Row(
        f"{item.task}/{item.id}",
        (
            mark(*GUIDANCE_MARKS[item.state]) if not item.removed_at else mark("–", MUTED),
            line(item.id),
            line(f"{state} v{item.version}" if item.version > 1 else state, MUTED),
            line(item.task, MUTED),
            joined(badge, words, note),
            at(last.at if last else item.collected_at),
        ),
    )


def agent_questions(snapshot: Snapshot) -> PaneView:
    """What agents asked of the human: open and blocking first."""
    found = [q for q in snapshot.questions if q.direction == "to-human" and q.state != "withdrawn"]
    note = say(_("{n} open"), n=len(snapshot.asked))
    rows = tuple(map(_question_row, found))
    return PaneView(say(_("Agents ask")), _QUESTION_COLUMNS, rows, say(_("No agent asks anything.")), note)


def human_questions(snapshot: Snapshot) -> PaneView:
    """What the human asked of the agents, with the answers."""
    found = [q for q in snapshot.questions if q.direction == "to-agent"]
    waiting = sum(1 for q in found if q.state == "open")
    empty = say(_("No question of yours.  Write it into QUESTIONS.md of the task."))
    rows = tuple(map(_question_row, found))
    return PaneView(say(_("You asked")), _QUESTION_COLUMNS, rows, empty, say(_("{n} open"), n=waiting))


_QUESTION_COLUMNS: Final = (
    Column("", 1),
    Column(_("Id"), 9),
    Column(_("State"), 9),
    Column(_("Task"), 10),
    Column(_("Question"), None),
    Column(_("At"), 8),
)


def _question_row(question: Question) -> Row:
    style = {"open": WARN, "answered": OK}.get(question.state, MUTED)
    glyph = "?" if question.state == "open" else "✓" if question.state == "answered" else "–"
    blocking = question.blocking and question.state == "open"
    answer = line(f"→ {question.answer}", MUTED) if question.answer else mark("", MUTED)
    return Row(
        f"{question.task}/{question.id}",
        (
            mark("!" if blocking else glyph, BAD if blocking else style),
            line(question.id),
            line(question.state, style),
            line(question.task, MUTED),
            joined(line(question.title), answer),
            at(question.answered_at or question.asked_at),
        ),
    )


def traces(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Ingested traces, one row a device. Compact keeps the name, the window and the idle share."""
    rows = []
    for trace in snapshot.traces:
        devices = trace.summary.get("devices", [])
        for device in devices:
            split = device["split"]
            window = split["total_ns"] or 1
            rows.append(
                Row(
                    f"{trace.id}/{device['device']}",
                    (
                        line(trace.path.rsplit("/", 1)[-1]),
                        line(str(device["device"]), MUTED),
                        right(milliseconds(split["total_ns"])),
                        right(share(split["compute_ns"], window)),
                        right(share(split["exposed_communication_ns"], window)),
                        right(share(split["idle_ns"], window), WARN if split["idle_ns"] * 2 > window else ""),
                        at(trace.added_at),
                    ),
                )
            )
        if not devices:
            cells = (
                line(trace.path.rsplit("/", 1)[-1]),
                mark("–", MUTED),
                *(mark("–", MUTED) for _n in range(4)),
                at(trace.added_at),
            )
            rows.append(Row(trace.id, cells))
    columns = (
        Column(_("Trace"), None),
        Column(_("Device"), 6),
        figures(_("Window ms"), 10),
        figures(_("Compute"), 7),
        figures(_("Exposed"), 7),
        figures(_("Idle"), 7),
        Column(_("At"), 8),
    )
    keys = "3 n" if compact else "n"
    empty = say(_("No trace yet.  {keys}  or  trainflow trace add FILE"), keys=keys)
    view = PaneView(say(_("Traces")), columns, tuple(rows), empty)
    return view.only(0, 2, 5) if compact else view


def hotspots(snapshot: Snapshot, key: str | None) -> PaneView:
    """The 90 % list of one trace's device; `key` is `trace/device`."""
    columns = (
        figures(_("Share"), 7),
        figures(_("Cumul."), 7),
        figures(_("Attributed ms"), 13),
        figures(_("Calls"), 7),
        Column(_("Kind"), 13),
        Column(_("Name"), None),
    )
    device = find_device(snapshot, key)
    if device is None:
        return PaneView(say(_("Hot-spots")), columns, (), say(_("Choose a trace above.")))
    rows = tuple(
        Row(
            f"{spot['kind']}/{spot['name']}",
            (
                right(f"{100 * spot['share']:.1f}%"),
                right(f"{100 * spot['cumulative_share']:.1f}%", MUTED),
                right(milliseconds(spot["attributed_ns"])),
                right(str(spot["count"])),
                line(spot["kind"], KIND_STYLES.get(spot["kind"], "")),
                line(spot["name"]),
            ),
        )
        for spot in device.get("hotspots", [])
    )
    window = milliseconds(device["split"]["total_ns"])
    left_out = device["hotspot_rows"] - len(rows)
    more = say(_("; {n} more: trainflow trace hotspots"), n=left_out) if left_out else ""
    note = say(_("together 90 % of {window} ms{more}"), window=window, more=more)
    return PaneView(say(_("Hot-spots")), columns, rows, say(_("No device activity in this trace.")), note)


KIND_STYLES: Final = {"communication": WARN, "idle": BAD, "memcpy": ACCENT, "memset": ACCENT}


def find_device(snapshot: Snapshot, key: str | None) -> dict[str, Any] | None:
    """The split of one device out of a trace's summary."""
    if key is None:
        return None
    for trace in snapshot.traces:
        for device in trace.summary.get("devices", []):
            if f"{trace.id}/{device['device']}" == key:
                return device  # type: ignore[no-any-return]
    return None


def runs(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Followed logs with their last numbers. Compact leaves the time to the charts below."""
    columns = (
        Column("", 1),
        Column(_("Run"), 12 if compact else 20),
        figures(_("Step"), 11),
        figures(_("Loss"), 8),
        figures(_("Throughput"), 17),
        Column(_("State"), None),
        Column(_("At"), 8),
    )
    rows = tuple(_run_row(run) for run in snapshot.runs)
    view = PaneView(say(_("Runs")), columns, rows, say(_("No log yet.  n  or  trainflow log add FILE")))
    return view.only(0, 1, 2, 3, 4, 5) if compact else view


def _run_row(run: RunStatus) -> Row:
    s = run.summary
    step = "—" if s.step is None else f"{s.step}/{s.total_steps}" if s.total_steps else str(s.step)
    tput = "—" if s.throughput is None else f"{s.throughput:,.1f} {s.throughput_unit}"
    words = s.state + (f": {s.detail}" if s.detail else "") + (f" · attempt {s.attempt}" if s.attempt > 1 else "")
    return Row(
        run.id,
        (
            mark(*RUN_MARKS.get(s.state, ("●", MUTED))),
            line(run.id),
            right(step),
            right("—" if s.loss is None else f"{s.loss:.5g}", BAD if s.loss is not None and s.loss != s.loss else ""),
            right(tput),
            line(words, RUN_MARKS.get(s.state, ("", MUTED))[1]),
            at(s.last_sample_at),
        ),
    )


def run_events(run: RunStatus | None) -> PaneView:
    """What a log says besides its numbers, newest first."""
    columns = (figures(_("Step"), 9), Column(_("Event"), 18), Column(_("What"), None), Column(_("At"), 8))
    rows = tuple(
        Row(
            f"{e.line}/{e.type}/{i}",
            (
                right("—" if e.step is None else str(e.step)),
                line(e.type.replace("_", " "), _EVENT_STYLES.get(e.type, "")),
                line(e.text, MUTED),
                at(e.at),
            ),
        )
        for i, e in enumerate(reversed(run.summary.events if run else []))
    )
    return PaneView(say(_("Events")), columns, rows, say(_("The log reports no event.")))


_EVENT_STYLES: Final = {
    "non_finite": BAD,
    "worker_failed": BAD,
    "signal": BAD,
    "loss_spike": WARN,
    "stalled": BAD,
    "checkpoint_saved": OK,
    "resume": ACCENT,
}


def nodes(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Nodes with their worst signal. Compact keeps the name, the memory and the signal."""
    columns = (
        Column("", 1),
        Column(_("Node"), 18),
        figures(_("Load"), 6),
        figures(_("Mem used"), 8),
        figures(_("Devices"), 8),
        Column(_("Worst signal"), None),
        Column(_("At"), 8),
    )
    rows = []
    for node in snapshot.nodes:
        s = node.status
        state, words = worst_signal(s)
        total, free = s.get("mem_total_bytes"), s.get("mem_available_bytes")
        used = f"{100 * (total - free) / total:.0f}%" if total and free is not None else "—"
        seen = s.get("devices") if s.get("devices") is not None else s.get("accelerators")
        load = (s.get("load") or {}).get("one_minute")
        rows.append(
            Row(
                node.name,
                (
                    mark(_NODE_GLYPHS.get(state, "?"), STATE_STYLES.get(state, MUTED)),
                    line(node.name),
                    right("—" if load is None else f"{load:.1f}"),
                    right(used),
                    right("—" if seen is None else str(len(seen))),
                    line(words, STATE_STYLES.get(state, MUTED)),
                    at(node.checked_at),
                ),
            )
        )
    keys = "4 n" if compact else "n"
    empty = say(_("No node yet.  {keys}  or  trainflow node check"), keys=keys)
    view = PaneView(say(_("Nodes")), columns, tuple(rows), empty)
    return view.only(0, 1, 3, 5) if compact else view


_NODE_GLYPHS: Final = {"ok": "●", "warning": "▲", "degraded": "▲", "critical": "✗", "unknown": "?"}
_SEVERITY: Final = ("critical", "degraded", "warning", "unknown", "ok")


def worst_signal(status: dict[str, object]) -> tuple[str, str]:
    """The worst state among a node's signals and its words; unknown is worse than ok and never hidden by it."""
    signals = status.get("signals")
    if not isinstance(signals, list) or not signals:
        return "unknown", _("not checked yet")
    for state in _SEVERITY:
        found = [s for s in signals if s.get("state") == state]
        if found and state != "ok":
            return state, "; ".join(str(s.get("text") or s.get("check")) for s in found[:3])
    return "ok", _("all checks ok")


def node_detail(snapshot: Snapshot, name: str | None) -> PaneView:
    """Every signal of one node."""
    columns = (Column(_("Check"), 22), Column(_("State"), 9), Column(_("Value"), None))
    node = next((n for n in snapshot.nodes if n.name == name), None)
    rows = tuple(
        Row(
            f"{i}",
            (
                line(str(s.get("check", ""))),
                line(str(s.get("state", "")), STATE_STYLES.get(str(s.get("state")), "")),
                line(str(s.get("text") or s.get("value") or "—")),
            ),
        )
        for i, s in enumerate(node.status.get("signals", []) if node else [])
    )
    return PaneView(say(_("Signals of {name}"), name=name or "—"), columns, rows, say(_("Choose a node above.")))


def milliseconds(ns: int) -> str:
    """Nanoseconds as milliseconds with three decimals, by integer arithmetic."""
    return f"{ns // 1_000_000:,}.{ns % 1_000_000 // 1000:03d}"


def share(part: int, whole: int) -> str:
    """A part in percent of a window."""
    return f"{100 * part / whole:.1f}%"


def right(raw: str, style: str = "") -> Text:
    """A number, set to the right."""
    text = line(raw, style)
    text.justify = "right"
    return text


def waiting(snapshot: Snapshot) -> PaneView:
    """All that waits for a person: approvals by impact, then questions, the blocking ones first."""
    rows = [
        Row(
            a.id,
            (
                mark("!", BAD),
                joined(line(_("HIGH") if a.high_impact else "", BAD), line(a.request.title)),
                line(a.request.task, MUTED),
                at(a.requested_at),
            ),
        )
        for a in snapshot.pending
    ]
    rows += [
        Row(
            f"{q.task}/{q.id}",
            (
                mark("?", BAD if q.blocking else WARN),
                joined(line(_("BLOCKS") if q.blocking else "", BAD), line(q.title)),
                line(q.task, MUTED),
                at(q.asked_at),
            ),
        )
        for q in snapshot.asked
    ]
    columns = (Column("", 1), Column(_("What waits"), None), Column(_("Task"), 10), Column(_("At"), 8))
    return PaneView(say(_("Needs you")), columns, tuple(rows), say(_("Nothing waits for you.")))
