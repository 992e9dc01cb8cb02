"""The key map: every binding with its stable id, in one table. Footer, help and checks of read-only mode read it."""

from __future__ import annotations

from typing import Final

from textual.binding import Binding

from trainflow_tui.screens.words import _

APP_KEYS: Final = [
    Binding("0", "show_mode('overview')", _("Overview"), id="show-overview"),
    Binding("1", "show_mode('board')", _("Board"), id="show-board"),
    Binding("2", "show_mode('questions')", _("Questions"), id="show-questions"),
    Binding("3", "show_mode('hotspots')", _("Hot-spots"), id="show-hotspots"),
    Binding("4", "show_mode('cluster')", _("Cluster"), id="show-cluster"),
    Binding("5", "show_mode('live')", _("Live"), id="show-live"),
    Binding("r", "refresh_now", _("Refresh now"), id="refresh-now"),
    Binding("question_mark,f1", "help", _("Help"), key_display="?", id="help"),
    Binding("colon,ctrl+p", "command", _("Command"), key_display=":", id="command"),
    Binding("slash", "filter", _("Filter"), key_display="/", id="filter"),
    Binding("escape", "back", _("Clear filter, then back"), key_display="esc", id="back"),
    Binding("q", "leave", _("Quit"), id="quit"),
    Binding("ctrl+c", "leave_hint", _("Quit hint"), show=False, id="quit-hint"),
    Binding("ctrl+q", "leave", _("Quit"), show=False, id="quit-ctrl"),
]

SCREEN_KEYS: Final = [
    Binding("n", "new", _("New"), id="new"),
    Binding("a", "decide", _("Open what waits"), id="decide"),
    Binding("w", "guide", _("Write guidance"), id="write-guidance"),
    Binding("left_square_bracket", "task(-1)", _("Previous task"), key_display="[", id="previous-task"),
    Binding("right_square_bracket", "task(1)", _("Next task"), key_display="]", id="next-task"),
    Binding("z", "zoom", _("Zoom"), id="zoom"),
]

FOOTER: Final = (
    "new",
    "decide",
    "help",
    "quit",
    "filter",
    "command",
    "zoom",
    "refresh-now",
    "write-guidance",
    "next-task",
)
"""Ids in the order of the footer, the most wanted first: a narrow screen cuts its end."""

MUTATING: Final = frozenset({"new", "decide_approval", "guide", "answer", "approve", "deny", "changes"})
"""Actions that change something: shown with the reason and not run in read-only mode."""
