"""The key map: every binding of every screen and dialog with its stable id, in one place. Footer, help, documentation and the
user's own keys read it. Descriptions are translated where they are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from textual.binding import Binding

from trainflow_tui.errors import UsageError
from trainflow_tui.language import N_

APP_KEYS: Final = [
    Binding("0", "show_mode('overview')", N_("Overview"), id="show-overview"),
    Binding("1", "show_mode('board')", N_("Board"), id="show-board"),
    Binding("2", "show_mode('questions')", N_("Questions"), id="show-questions"),
    Binding("3", "show_mode('hotspots')", N_("Hot-spots"), id="show-hotspots"),
    Binding("4", "show_mode('cluster')", N_("Cluster"), id="show-cluster"),
    Binding("5", "show_mode('live')", N_("Live"), id="show-live"),
    Binding("r", "refresh_now", N_("Refresh now"), id="refresh-now"),
    Binding("question_mark,f1", "help", N_("Help"), id="help"),
    Binding("colon,ctrl+p", "command", N_("Command"), id="command"),
    Binding("slash", "filter", N_("Filter"), id="filter"),
    Binding("escape", "back", N_("Clear filter, marks, zoom; then back"), id="back"),
    Binding("q", "leave", N_("Quit"), id="quit"),
    Binding("ctrl+q", "leave", N_("Quit"), id="quit-ctrl"),
]

SCREEN_KEYS: Final = [
    Binding("n", "new", N_("New"), id="new"),
    Binding("a", "decide", N_("Open what waits"), id="decide"),
    Binding("w", "guide", N_("Write guidance"), id="write-guidance"),
    Binding("e", "edit('GUIDANCE.md')", N_("Edit GUIDANCE.md"), id="edit-guidance"),
    Binding("E", "edit('QUESTIONS.md')", N_("Edit QUESTIONS.md"), id="edit-questions"),
    Binding("left_square_bracket", "step(-1)", N_("Previous task; a minute back in the past"), id="step-back"),
    Binding("right_square_bracket", "step(1)", N_("Next task; a minute on in the past"), id="step-on"),
    Binding("left_curly_bracket", "leap(-1)", N_("To the event before"), id="event-before"),
    Binding("right_curly_bracket", "leap(1)", N_("To the event after"), id="event-after"),
    Binding("t", "at", N_("Go to a time"), id="time-cursor"),
    Binding("tab", "app.focus_next", N_("Next pane"), id="next-pane"),
    Binding("shift+tab", "app.focus_previous", N_("Previous pane"), id="previous-pane"),
    Binding("p", "jump", N_("Jump to a pane by its letter"), id="jump"),
    Binding("z", "zoom", N_("Zoom"), id="zoom"),
    Binding("s", "sort", N_("Sort by a column"), id="sort"),
    Binding("S", "reverse", N_("Reverse the order"), id="reverse"),
    Binding("space", "mark", N_("Mark row"), id="mark"),
    Binding("y", "copy_cell", N_("Copy a cell"), id="copy-cell"),
    Binding("Y", "copy_rows", N_("Copy as Markdown"), id="copy-rows"),
    Binding("ctrl+c", "app.copy_selection", N_("Copy selected text"), id="copy-selection"),
    Binding("o", "open_pager", N_("Whole text in the pager"), id="open-pager"),
    Binding("x", "export", N_("Export this pane"), id="export"),
]

LIVE_KEYS: Final = [
    Binding("v", "scale", N_("Linear or logarithmic"), id="chart-scale"),
    Binding("space", "pause", N_("Pause the charts"), id="chart-pause"),
]

TABLE_KEYS: Final = [
    Binding("j,down", "cursor_down", N_("Down"), id="table-down"),
    Binding("k,up", "cursor_up", N_("Up"), id="table-up"),
    Binding("g,home", "scroll_top", N_("First row"), id="table-top"),
    Binding("G,end", "scroll_bottom", N_("Last row"), id="table-bottom"),
    Binding("pagedown", "page_down", N_("Page down"), id="table-page-down"),
    Binding("pageup", "page_up", N_("Page up"), id="table-page-up"),
    Binding("enter", "select_cursor", N_("Open"), id="table-open"),
]

PROMPT_KEYS: Final = [
    Binding("escape", "cancel", N_("Cancel"), id="prompt-cancel"),
    Binding("up", "recall(1)", N_("Earlier input"), id="prompt-earlier"),
    Binding("down", "recall(-1)", N_("Later input"), id="prompt-later"),
    Binding("tab", "complete", N_("Complete; in a filter: words or pattern"), id="prompt-complete"),
]

APPROVAL_KEYS: Final = [
    Binding("a", "approve", N_("Approve once"), id="approval-approve"),
    Binding("d", "deny", N_("Deny"), id="approval-deny"),
    Binding("c", "changes", N_("Ask for changes"), id="approval-changes"),
    Binding("escape", "back", N_("Back"), id="approval-back"),
    Binding("j,down", "scroll(1)", N_("Down"), id="approval-down"),
    Binding("k,up", "scroll(-1)", N_("Up"), id="approval-up"),
    Binding("pagedown,space", "scroll(10)", N_("Page down"), id="approval-page-down"),
    Binding("pageup", "scroll(-10)", N_("Page up"), id="approval-page-up"),
]

WRITING_KEYS: Final = [
    Binding("ctrl+d", "send", N_("Send"), id="writing-send", priority=True),
    Binding("escape", "back", N_("Back; a draft is given up by a second press"), id="writing-back", priority=True),
]

LINE_KEYS: Final = [Binding("escape", "back", N_("Back"), id="line-back", priority=True)]

READING_KEYS: Final = [
    Binding("escape,q,enter", "back", N_("Back"), id="reading-back"),
    Binding("j,down", "scroll(1)", N_("Down"), id="reading-down"),
    Binding("k,up", "scroll(-1)", N_("Up"), id="reading-up"),
    Binding("pagedown,space", "scroll(10)", N_("Page down"), id="reading-page-down"),
    Binding("pageup", "scroll(-10)", N_("Page up"), id="reading-page-up"),
]

GROUPS: Final = (
    (N_("Every screen"), SCREEN_KEYS),
    (N_("Live screen"), LIVE_KEYS),
    (N_("Lists"), TABLE_KEYS),
    (N_("Everywhere"), APP_KEYS),
    (N_("Command and filter line"), PROMPT_KEYS),
    (N_("Inside an approval"), APPROVAL_KEYS),
    (N_("Writing"), WRITING_KEYS),
    (N_("One line"), LINE_KEYS),
    (N_("Reading"), READING_KEYS),
)
"""Every table with its heading, as help and documentation list them."""

FOOTER: Final = (
    "new",
    "decide",
    "help",
    "quit",
    "filter",
    "command",
    "zoom",
    "sort",
    "write-guidance",
    "copy-cell",
    "export",
    "time-cursor",
    "refresh-now",
    "step-on",
)
"""Ids in the order of the footer, the most wanted first: a narrow screen cuts its end."""

MUTATING: Final = frozenset(
    {
        "new",
        "write-guidance",
        "edit-guidance",
        "edit-questions",
        "refresh-now",
        "approval-approve",
        "approval-deny",
        "approval-changes",
        "writing-send",
    }
)
"""Bindings that change something: in read-only mode and in the past they say why not."""

_TOGETHER: Final = (
    [*SCREEN_KEYS, *TABLE_KEYS, *APP_KEYS],
    [*(b for b in SCREEN_KEYS if b.id != "mark"), *LIVE_KEYS, *TABLE_KEYS, *APP_KEYS],
    PROMPT_KEYS,
    APPROVAL_KEYS,
    WRITING_KEYS,
    READING_KEYS,
)
"""Bindings that are pressed in one place; space marks a row on every screen but the live one, where it pauses."""

_DECIDING: Final = frozenset({"approval-approve", "approval-deny", "approval-changes"})
_WHILE_WRITING: Final = frozenset({"writing-send", "writing-back", "line-back", "prompt-cancel"})
_NEVER_DECIDING: Final = frozenset({"enter", "space", "escape", "tab"})
_NAMES: Final = {
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "escape": "esc",
    "pagedown": "PgDn",
    "pageup": "PgUp",
    "home": "Home",
    "end": "End",
}


def shown_keys(binding: Binding, own: Mapping[str, str]) -> list[str]:
    """The keys of a binding as a person reads them, the user's own in place of ours."""
    return [_NAMES.get(key, key) for key in own.get(binding.id or "", binding.key).split(",")]


def all_bindings() -> Iterable[Binding]:
    """Every binding of every table."""
    for _title, bindings in GROUPS:
        yield from bindings


def checked_keymap(own: Mapping[str, str]) -> dict[str, str]:
    """The user's keys by binding id, in the names that Textual knows.

    Raises:
        UsageError: no such id, no key, or a key that must not decide.
    """
    known = {binding.id or "" for binding in all_bindings()}
    written = {sign: name for name, sign in _NAMES.items()}
    found: dict[str, str] = {}
    for id, keys in own.items():
        if id not in known:
            from difflib import get_close_matches

            near = get_close_matches(id, known, 3)
            hint = f" Near: {', '.join(near)}." if near else ""
            raise UsageError(
                "key-unknown", f"keys.{id}: there is no such binding.{hint}", subject=id, next_step="See docs/keys.md."
            )
        names = [written.get(key.strip(), key.strip()) for key in keys.split(",") if key.strip()]
        if not names:
            raise UsageError("key-missing", f"keys.{id}: expected one or more keys, as in 'Q,ctrl+q'.", subject=id)
        typed = [name for name in names if len(name) == 1 or name in _NAMES] if id in _WHILE_WRITING else []
        if [name for name in typed if name != "escape"]:
            raise UsageError(
                "key-refused",
                f"keys.{id}: {', '.join(typed)} is typed there.",
                subject=id,
                next_step="Use ctrl and a letter.",
            )
        bad = _NEVER_DECIDING.intersection(names) if id in _DECIDING else ()
        if bad:
            raise UsageError(
                "key-refused",
                f"keys.{id}: {', '.join(sorted(bad))} may not decide.",
                subject=id,
                next_step="Use a letter.",
            )
        found[id] = ",".join(names)
    _refuse_two_on_one_key(found)
    return found


def _refuse_two_on_one_key(own: Mapping[str, str]) -> None:
    for bindings in _TOGETHER:
        taken: dict[str, Binding] = {}
        for binding in bindings:
            id = binding.id or ""
            for key in own.get(id, binding.key).split(","):
                before = taken.setdefault(key, binding)
                other = before.id or ""
                if before.action != binding.action and (id in own or other in own):
                    raise UsageError(
                        "key-twice",
                        f"keys.{id if id in own else other}: {_NAMES.get(key, key)} is the key of both {other} and {id}.",
                        subject=id if id in own else other,
                        next_step=f"Give {other if id in own else id} another key too.",
                    )
