"""Help, generated from the tables of bindings and commands, with the reason beside each key that does nothing now."""

from __future__ import annotations

from trainflow_tui.screens import keys
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.live import LiveScreen
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display, cell_len, display

_KEYS_WIDTH = 16
_COMMAND_WIDTH = 26


def help_text(screen: ModeScreen) -> Display:
    """All keys by group, one a line, then the commands."""
    lines: list[str] = []
    for title, bindings in keys.GROUPS:
        if bindings is keys.LIVE_KEYS and not isinstance(screen, LiveScreen):
            continue
        lines.append(_(title))
        for binding in bindings:
            shown = " ".join(keys.shown_keys(binding, screen.app.own_keys))
            reason = screen.app.why_disabled(binding.id or "")
            why = say("  ({why})", why=reason) if reason else ""
            lines.append(f"  {_padded(shown, _KEYS_WIDTH)} {screen.describe(binding)}{why}")
        lines.append("")
    lines.append(_("Commands after ':'  (tab completes)"))
    for command in screen.app.commands():
        lines.append(f"  {_padded(f'{command.name} {command.usage}'.strip(), _COMMAND_WIDTH)} {command.words}")
    lines += [
        "",
        _("Signs: ● at work  ◐ waits  ✓ done  ✗ failed or lost  ! needs you  ? asks  ◌ stale"),
        _("Text is selected with the mouse, or with shift and the mouse by the terminal. Over a slow line use ssh -C."),
    ]
    return display("\n".join(lines), multiline=True, whole=True, max_cells=100_000)


def _padded(text: str, cells: int) -> str:
    return text + " " * max(0, cells - cell_len(text))
