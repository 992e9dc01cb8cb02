"""Help, generated from the bindings that are active, with the reason beside each one that is not."""

from __future__ import annotations

from collections.abc import Iterable

from textual.binding import Binding

from trainflow_tui.screens import keys
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.dialogs.approval import ApprovalDialog
from trainflow_tui.screens.widgets.patched_table import PatchedTable
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display, display


def help_text(screen: ModeScreen, *, readonly: bool) -> Display:
    """All keys of this screen by group, one a line."""
    groups: list[tuple[str, Iterable[object]]] = [
        (_("This screen"), type(screen).BINDINGS),
        (_("Lists"), PatchedTable.BINDINGS),
        (_("Everywhere"), keys.APP_KEYS),
        (_("Inside an approval"), ApprovalDialog.BINDINGS),
    ]
    lines = []
    for title, bindings in groups:
        lines.append(f"{title}")
        for binding in bindings:
            if isinstance(binding, Binding):
                lines.append(_help_line(screen, binding, readonly=readonly))
        lines.append("")
    lines.append(_("Commands after ':'  add trace FILE · add log FILE · add node · task TITLE · guide · 0…5 · quit"))
    lines.append(_("Text can be selected with shift and the mouse. Over a slow line use ssh -C."))
    return display("\n".join(lines), multiline=True, whole=True)


def _help_line(screen: ModeScreen, binding: Binding, *, readonly: bool) -> str:
    names = {
        "question_mark": "?",
        "slash": "/",
        "colon": ":",
        "left_square_bracket": "[",
        "right_square_bracket": "]",
        "escape": "esc",
    }
    shown = " ".join(names.get(key, key) for key in binding.key.split(","))
    words = screen.describe(binding)
    action = binding.action.split("(")[0]
    reason = say("  ({why})", why=_("not in read-only mode")) if readonly and action in keys.MUTATING else ""
    return f"  {shown:18} {words}{reason}"
