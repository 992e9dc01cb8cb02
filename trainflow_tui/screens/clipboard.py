"""Copied text on its way to the operator's own clipboard, over SSH and through multiplexers; into a file where none is reached.

A terminal confirms nothing, so the result says which way the text took and where it may have been dropped.
"""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal

from textual.app import App

from trainflow_tui.clock import SystemClock
from trainflow_tui.redaction import redact
from trainflow_tui.screens.exports import write_export
from trainflow_tui.text import display

__all__ = ["MAX_TEXT_BYTES", "Copied", "copy"]

Way = Literal["osc52", "tmux", "file"]
Why = Literal["", "asked", "too-long", "no-clipboard", "may-be-dropped"]

MAX_TEXT_BYTES: Final = 74_994
"""The largest text whose sequence stays within the 100,000 bytes that hterm and others take: 8 around it, 4 for every 3."""

_WHOLE_CELLS: Final = 10_000_000
_TMUX_TIMEOUT_S: Final = 2.0
_SCREEN_PIECE: Final = 512
"""GNU screen 4.9 passes a device control string of 700 characters on and drops one of 4,000."""


@dataclass(frozen=True)
class Copied:
    """Where the text went. `path` is the file's; `characters` and `redacted` count the text and the secrets taken out.

    `why` is a file's reason (`asked`, `too-long`, `no-clipboard`), or `may-be-dropped` for a sequence that goes through
    a multiplexer on another machine, which takes it only with tmux's `set-clipboard on`.
    """

    way: Way
    path: Path | None
    characters: int
    redacted: int
    why: Why = ""


def copy(
    app: App[Any],
    text: str,
    *,
    to: str,
    folder: Path,
    now: datetime | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Copied:
    """Give the text to the terminal's clipboard, or write it into a private file in `folder`.

    Its control characters, except line ends and tabs, become pictures, so that pasting presses nothing; its secrets
    become marks. Inside tmux it waits for `tmux` (5 ms, at most 2 s): call it from a worker thread.

    Args:
        app: the running application, whose driver writes.
        text: the whole value, never what a cell had room for.
        to: the setting `clipboard`: `osc52` or `file`.
        folder: for the file: `copied-<time>.txt`.
        now: the time in the file's name; None for the machine's clock.
        environment: tells the terminal and the multiplexer.

    Raises:
        TrainflowError: the file cannot be written.
    """
    clean, redacted = redact(_harmless(text))
    content = clean.encode()
    way: Way = "file"
    why: Why = "asked"
    if to != "file":
        if len(content) > MAX_TEXT_BYTES:
            why = "too-long"
        else:
            way, why = _send(app, clean, content, environment)
    path = write_export(folder, "copied", "txt", clean, now=now or SystemClock().now()) if way == "file" else None
    return Copied(way=way, path=path, characters=len(clean), redacted=redacted, why=why)


def _harmless(text: str) -> str:
    pieces = text.split("\t")
    return "\t".join(display(piece, max_cells=_WHOLE_CELLS, multiline=True, whole=True) for piece in pieces)


def _send(app: App[Any], clean: str, content: bytes, environment: Mapping[str, str]) -> tuple[Way, Why]:
    """Hand it to the terminal, or say that there is none that takes it."""
    term = environment.get("TERM", "")
    driver = app._driver
    if driver is None or app.is_headless or app.is_web or term in ("", "dumb", "linux"):
        return "file", "no-clipboard"
    if environment.get("TMUX"):
        return ("tmux", "") if _through_tmux(content, environment) else ("file", "no-clipboard")
    if environment.get("STY"):
        # Screen knows no OSC 52, but passes what a device control string holds on to the terminal it is in.
        sequence = f"\x1b]52;c;{base64.b64encode(content).decode()}\x07"
        pieces = (sequence[at : at + _SCREEN_PIECE] for at in range(0, len(sequence), _SCREEN_PIECE))
        to_terminal = driver.write
        to_terminal("".join(f"\x1bP{piece}\x1b\\" for piece in pieces))
        return "osc52", ""
    app.copy_to_clipboard(clean)
    # A multiplexer at the operator's end of the SSH line: its variable does not come over, its TERM does.
    return "osc52", "may-be-dropped" if term.startswith(("tmux", "screen")) else ""


def _through_tmux(content: bytes, environment: Mapping[str, str]) -> bool:
    """Set tmux's buffer and, by `-w` (tmux 3.2), the clipboard of the terminal that tmux is shown on.

    Tried with tmux 3.3a: with its default `set-clipboard external` it drops an application's own OSC 52, and the
    wrapped one too, since `allow-passthrough` is off; this command works whatever both are set to.
    """
    try:
        done = subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=content,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TMUX_TIMEOUT_S,
            env=dict(environment),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0
