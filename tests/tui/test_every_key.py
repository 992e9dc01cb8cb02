"""Every binding of the key map pressed once, and its effect seen."""

from __future__ import annotations

import json

import pytest
from textual.screen import ModalScreen

from tests.tui.test_approval_dialog import until
from trainflow_tui.collaboration import approvals, guidance, tasks
from trainflow_tui.screens import keys
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.dialogs.approval import ApprovalDialog
from trainflow_tui.screens.dialogs.choice import ChoiceDialog
from trainflow_tui.screens.dialogs.writing import LineDialog, ReadingDialog, WritingDialog
from trainflow_tui.screens.widgets.list_pane import ListPane


class Operator:
    """Presses keys and looks; what leaves the screen is caught in `out`."""

    def __init__(self, app, pilot, workspace, story) -> None:
        self.app, self.pilot, self.workspace, self.story = app, pilot, workspace, story
        self.out: list[tuple[str, object]] = []

    def key_of(self, id):
        """The first key of a binding."""
        return next(b for b in keys.all_bindings() if b.id == id).key.split(",")[0]

    async def press(self, id):
        await self.pilot.press(self.key_of(id))
        await self.pilot.pause()

    async def see(self, wanted):
        await until(self.app, self.pilot, wanted)

    async def see_dialog(self, kind):
        await self.see(lambda: isinstance(self.app.screen, kind))

    async def home(self):
        """Back to the overview without dialog, filter, marks, zoom or past."""
        await self.pilot.pause(0.05)
        while not isinstance(self.app.screen, ModeScreen):
            self.app.pop_screen()
            await self.pilot.pause()
        self.app._asking = False
        self.app.screen.close_prompt()
        self.app.leave_past()
        self.app.screen.zoom(None)
        self.app.action_show_mode("overview")
        await self.see(lambda: self.app.current_mode == "overview")
        self.pane("tasks").table.focus()
        await self.pilot.pause()

    def pane(self, id):
        return self.app.screen.query_one(f"#{id}", ListPane)

    def mode(self, name):
        return lambda: self.app.current_mode == name


async def show(o, id):
    await o.press(id)
    await o.see(o.mode(id.removeprefix("show-")))


async def show_overview(o, id):
    await o.press("show-live")
    await show(o, id)


async def refresh_now(o, id):
    await o.press(id)
    await o.see(lambda: ("child", ("--once",)) in o.out)


async def help_(o, id):
    await o.press(id)
    await o.see_dialog(ReadingDialog)


async def command(o, id):
    await o.press(id)
    await o.see(lambda: o.app.screen.prompt.purpose == "command" and o.app.screen.prompt.display)


async def filter_(o, id):
    await o.press(id)
    await o.pilot.press("p", "r", "o")
    await o.see(lambda: [r.key for r in o.pane("tasks").shown_rows()] == ["profile-moe"])
    await o.pilot.press("enter")


async def back(o, id):
    o.pane("tasks").filter("pro")
    await o.press("mark")
    await o.press("zoom")
    assert o.app.screen.has_class("-zoomed")
    await o.press(id)
    assert o.pane("tasks").row_filter.text == ""
    await o.press(id)
    assert not o.pane("tasks").marks
    await o.press(id)
    assert not o.app.screen.has_class("-zoomed")
    await o.press("show-live")
    await o.press(id)
    await o.see(o.mode("overview"))


async def leave(o, id):
    gone = []
    o.app.exit = lambda *values: gone.append(values)
    await o.press(id)
    await o.see(lambda: gone == [(0,)])
    del o.app.exit


async def copy_selection(o, id):
    o.app.screen.get_selected_text = lambda: "some words"
    await o.press(id)
    await o.see(lambda: ("copy", "some words") in o.out)


async def new(o, id):
    await o.press(id)
    await o.see_dialog(LineDialog)


async def decide(o, id):
    o.pane("waiting").table.focus()
    await o.press(id)
    await o.see_dialog(ApprovalDialog)


async def write_guidance(o, id):
    await o.press(id)
    await o.see_dialog(WritingDialog)


async def edit(o, id):
    name = "GUIDANCE.md" if id == "edit-guidance" else "QUESTIONS.md"
    await o.press(id)
    path = o.workspace.root / "collaboration" / o.app.current_task / name
    await o.see(lambda: ("edit", path) in o.out)


async def step(o, id):
    before = o.app.current_task
    await o.press(id)
    assert o.app.current_task != before
    assert o.app.current_task in ("adapt-7b", "profile-moe")


async def event_before(o, id):
    await o.press(id)
    await o.see(lambda: o.app.moment != "")
    assert o.app.refused(quiet=True)


async def event_after(o, id):
    await event_before(o, "event-before")
    await o.press("event-before")
    here = o.app.moment
    await o.press(id)
    await o.see(lambda: o.app.moment > here)


async def time_cursor(o, id):
    await o.press(id)
    await o.see(lambda: o.app.screen.prompt.field.value == "at ")


async def next_pane(o, id):
    await o.press(id)
    await o.see(lambda: o.pane("waiting").table.has_focus)


async def previous_pane(o, id):
    o.pane("waiting").table.focus()
    await o.pilot.pause()
    await o.press(id)
    await o.see(lambda: o.pane("tasks").table.has_focus)


async def jump(o, id):
    await o.press(id)
    letters = [part.badge if isinstance(part, ListPane) else part._badge for part in o.app.screen.parts()]
    assert letters == list("abcdef")
    await o.pilot.press("b")
    await o.see(lambda: o.pane("waiting").table.has_focus)
    assert not o.app.screen.jumping
    assert o.pane("waiting").badge == ""


async def zoom(o, id):
    await o.press(id)
    assert o.app.screen.zoomed_part() is o.pane("tasks")
    assert not o.pane("waiting").region


async def sort(o, id):
    await o.press(id)
    await o.see_dialog(ChoiceDialog)
    await o.pilot.press("1")
    await o.see(lambda: o.pane("tasks").sorting.key == "task")
    assert [r.key for r in o.pane("tasks").shown_rows()] == ["adapt-7b", "profile-moe"]


async def reverse(o, id):
    before = [r.key for r in o.pane("tasks").shown_rows()]
    await o.press(id)
    assert [r.key for r in o.pane("tasks").shown_rows()] == before[::-1]
    await o.press(id)


async def mark(o, id):
    key = o.pane("tasks").selected
    await o.press(id)
    assert o.pane("tasks").marks == {key}
    o.pane("tasks").clear_marks()


async def copy_cell(o, id):
    o.pane("tasks").table.move_to("adapt-7b")
    await o.press(id)
    await o.see_dialog(ChoiceDialog)
    await o.pilot.press("1")
    await o.see(lambda: ("copy", "adapt-7b") in o.out)


async def copy_rows(o, id):
    o.pane("tasks").table.move_to("adapt-7b")
    await o.press(id)
    await o.see(lambda: any(kind == "copy" and "**Task**: adapt-7b" in str(text) for kind, text in o.out))


async def open_pager(o, id):
    o.pane("tasks").table.move_to("adapt-7b")
    await o.press(id)
    await o.see(lambda: any(kind == "page" and "A trusted baseline" in str(text) for kind, text in o.out))


async def export(o, id):
    await o.press(id)
    await o.see_dialog(ChoiceDialog)
    await o.pilot.press("2")
    folder = o.workspace.root / "exports"
    await o.see(lambda: folder.is_dir() and any(p.suffix == ".json" for p in folder.iterdir()))
    written = json.loads(next(p for p in folder.iterdir() if p.suffix == ".json").read_text())
    assert {row["task"] for row in written["rows"]} == {"adapt-7b", "profile-moe"}


async def chart_scale(o, id):
    await o.press("show-live")
    before = o.app.remembered.log_scale
    await o.press(id)
    assert o.app.remembered.log_scale is not before


async def chart_pause(o, id):
    await o.press("show-live")
    await o.press(id)
    assert o.app.screen.paused
    await o.press(id)
    assert not o.app.screen.paused


async def table_move(o, id):
    table = o.pane("tasks").table
    first, last = [r.key for r in o.pane("tasks").shown_rows()]
    down = id in ("table-down", "table-bottom", "table-page-down")
    table.move_to(first if down else last)
    await o.press(id)
    assert table.cursor_key == (last if down else first)


async def table_open(o, id):
    o.pane("waiting").table.focus()
    await o.press(id)
    await o.see_dialog(ModalScreen)


async def prompt_cancel(o, id):
    await o.press("filter")
    await o.pilot.press("x")
    await o.press(id)
    assert not o.app.screen.prompt.display
    assert o.pane("tasks").row_filter.text == ""


async def prompt_recall(o, id):
    for words in ("older", "newer"):
        await o.press("filter")
        for _ in o.app.screen.prompt.field.value:
            await o.pilot.press("backspace")
        await o.pilot.press(*words, "enter")
    o.pane("tasks").filter("")
    await o.press("filter")
    await o.press("prompt-earlier")
    assert o.app.screen.prompt.field.value == "newer"
    await o.press("prompt-earlier")
    assert o.app.screen.prompt.field.value == "older"
    await o.press("prompt-later")
    assert o.app.screen.prompt.field.value == "newer"
    await o.press("prompt-cancel")


async def prompt_complete(o, id):
    await o.press("command")
    await o.pilot.press(*"task", "space", *"pro")
    await o.see(lambda: [s.line for s in o.app.screen.prompt._found] == ["task profile-moe"])
    await o.press(id)
    assert o.app.screen.prompt.field.value == "task profile-moe "
    await o.pilot.press("enter")
    await o.see(lambda: o.app.current_task == "profile-moe" and o.app.current_mode == "board")


async def opened_approval(o):
    o.app.ask_decision(o.story["approval"].id)
    await o.see(lambda: isinstance(o.app.screen, ApprovalDialog) and o.app.screen.armed_at < 1e9)
    o.app.screen.armed_at = 0.0
    return o.app.screen


async def approval_approve(o, id):
    # Its effect ends the request: the others come first.
    await opened_approval(o)
    await o.press(id)
    await o.see(lambda: isinstance(o.app.screen, ModeScreen) or o.app.screen._field.display)
    if not isinstance(o.app.screen, ModeScreen):
        await o.pilot.press(*o.story["approval"].token, "enter")
    await o.see(lambda: approvals.get(o.workspace.ledger, o.story["approval"].id).state == "approved")


async def approval_words(o, id):
    dialog = await opened_approval(o)
    await o.press(id)
    assert dialog._field.display
    assert dialog._wanted == {"approval-deny": "deny", "approval-changes": "changes"}[id]


async def approval_back(o, id):
    await opened_approval(o)
    await o.press(id)
    await o.see(lambda: isinstance(o.app.screen, ModeScreen))


async def approval_scroll(o, id):
    dialog = await opened_approval(o)
    body = dialog.query_one("#approval-body")
    down = "down" in id
    body.scroll_to(y=0 if down else body.max_scroll_y, animate=False)
    await o.pilot.pause()
    before = body.scroll_offset.y
    await o.press(id)
    assert body.max_scroll_y == 0 or (body.scroll_offset.y > before if down else body.scroll_offset.y < before)


async def writing_send(o, id):
    await o.press("write-guidance")
    await o.see_dialog(WritingDialog)
    await o.pilot.press(*"Hold")
    await o.press(id)
    await o.see(lambda: any(i.text == "Hold" for i in guidance.listed(o.workspace.ledger)))


async def writing_back(o, id):
    await o.press("write-guidance")
    await o.see_dialog(WritingDialog)
    await o.pilot.press("x")
    await o.press(id)
    assert isinstance(o.app.screen, WritingDialog)
    await o.press(id)
    await o.see(lambda: isinstance(o.app.screen, ModeScreen))


async def line_back(o, id):
    await o.press("new")
    await o.see_dialog(LineDialog)
    await o.press(id)
    await o.see(lambda: isinstance(o.app.screen, ModeScreen))


async def reading_back(o, id):
    await o.press("help")
    await o.see_dialog(ReadingDialog)
    await o.press(id)
    await o.see(lambda: isinstance(o.app.screen, ModeScreen))


async def reading_scroll(o, id):
    await o.press("help")
    await o.see_dialog(ReadingDialog)
    await o.pilot.pause()
    body = o.app.screen.query_one("#reading-body")
    down = "down" in id
    body.scroll_to(y=0 if down else body.max_scroll_y, animate=False)
    await o.pilot.pause()
    before = body.scroll_offset.y
    await o.press(id)
    await o.see(lambda: body.scroll_offset.y > before if down else body.scroll_offset.y < before)


PRESSES = {
    **{f"show-{mode}": show for mode in ("board", "questions", "hotspots", "cluster", "live")},
    "show-overview": show_overview,
    "refresh-now": refresh_now,
    "help": help_,
    "command": command,
    "filter": filter_,
    "back": back,
    "quit": leave,
    "quit-ctrl": leave,
    "copy-selection": copy_selection,
    "new": new,
    "decide": decide,
    "write-guidance": write_guidance,
    "edit-guidance": edit,
    "edit-questions": edit,
    "step-back": step,
    "step-on": step,
    "event-before": event_before,
    "event-after": event_after,
    "time-cursor": time_cursor,
    "next-pane": next_pane,
    "previous-pane": previous_pane,
    "jump": jump,
    "zoom": zoom,
    "sort": sort,
    "reverse": reverse,
    "mark": mark,
    "copy-cell": copy_cell,
    "copy-rows": copy_rows,
    "open-pager": open_pager,
    "export": export,
    "chart-scale": chart_scale,
    "chart-pause": chart_pause,
    **dict.fromkeys(
        ("table-down", "table-up", "table-top", "table-bottom", "table-page-down", "table-page-up"), table_move
    ),
    "table-open": table_open,
    "prompt-cancel": prompt_cancel,
    "prompt-earlier": prompt_recall,
    "prompt-later": prompt_recall,
    "prompt-complete": prompt_complete,
    "approval-deny": approval_words,
    "approval-changes": approval_words,
    "approval-back": approval_back,
    **dict.fromkeys(("approval-down", "approval-up", "approval-page-down", "approval-page-up"), approval_scroll),
    "approval-approve": approval_approve,
    "writing-send": writing_send,
    "writing-back": writing_back,
    "line-back": line_back,
    "reading-back": reading_back,
    **dict.fromkeys(("reading-down", "reading-up", "reading-page-down", "reading-page-up"), reading_scroll),
}


def test_every_binding_has_a_press():
    assert set(PRESSES) == {b.id for b in keys.all_bindings()}


@pytest.mark.parametrize("title", [title for title, _bindings in keys.GROUPS])
async def test_each_key_does_what_the_help_says(opened, workspace, story, title, monkeypatch, clock, actor):
    for stage in ("prepared", "paused"):  # events to go to
        clock.advance(60)
        tasks.move(workspace.ledger, "profile-moe", stage, actor=actor, reason="so")
    clock.advance(60)
    group = {b.id for b in next(bindings for name, bindings in keys.GROUPS if name == title)}
    async with opened(size=(120, 40)) as (app, pilot):
        operator = Operator(app, pilot, workspace, story)
        monkeypatch.setattr(
            "trainflow_tui.screens.outside.edit", lambda _app, path: operator.out.append(("edit", path))
        )
        monkeypatch.setattr(
            "trainflow_tui.screens.outside.page", lambda _app, _title, text: operator.out.append(("page", text))
        )
        monkeypatch.setattr(app, "_copy", lambda text: operator.out.append(("copy", text)))

        async def child(child, _progress):
            operator.out.append(("child", child.arguments))
            return {}

        monkeypatch.setattr(app.desk, "run_child", child)
        for id, press in PRESSES.items():
            if id in group:
                await operator.home()
                try:
                    await press(operator, id)
                except AssertionError as problem:
                    raise AssertionError(f"{id}: {problem}") from problem
