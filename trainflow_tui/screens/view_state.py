"""What the screen remembers between two sessions on a workspace. A convenience: never in the way, deletable without harm.

Nothing in the file is trusted: it is read like foreign text, every value is brought within its bounds, and one that is
out of them is left at its default.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from trainflow_tui.config import FIELDS
from trainflow_tui.errors import TrainflowError
from trainflow_tui.files import ensure_private_directory, open_regular, write_atomic
from trainflow_tui.text import display

__all__ = ["CHARTS", "MODES", "ModeState", "PaneState", "ViewState", "load", "path_for", "save"]

VERSION: Final = 1
MODES: Final = ("overview", "board", "questions", "hotspots", "cluster", "live")
CHARTS: Final = ("linear", "log", "heat")
THEMES: Final = next(field.choices for field in FIELDS if field.key == "theme")

MAX_FILE_BYTES: Final = 1_048_576
"""A file of ours has at most 0.7 MB, with every text as long as it may be; more was not written by us, and is not read."""
MAX_PANES: Final = 32
MAX_TEXT: Final = 400
"""Characters of a filter or a command."""
MAX_FILTERS: Final = 50
MAX_COMMANDS: Final = 100

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
"""A pane's id, a column's key, a task's id."""

Chart = Literal["linear", "log", "heat"]


class PaneState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one list is shown."""

    sort_key: str = ""
    reverse: bool = False
    filter: str = ""
    filter_is_regex: bool = False


class ModeState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a mode's screen had: ids of panes, empty for none."""

    focused: str = ""
    zoomed: str = ""
    panes: dict[str, PaneState] = {}


class ViewState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is remembered. Names may be of panes, columns and tasks that are gone: those are passed over.

    `theme` is empty while the setting decides. The histories are oldest first, without repetition.
    """

    version: int = VERSION
    mode: str = MODES[0]
    task: str = ""
    theme: str = ""
    chart: Chart = "linear"
    modes: dict[str, ModeState] = {}
    filters: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()

    def in_mode(self, mode: str) -> ModeState:
        """What is remembered of a mode; the defaults where nothing is."""
        return self.modes.get(mode, ModeState())

    def with_filter(self, words: str) -> ViewState:
        """The same with the newest filter; one that cannot be kept, such as an empty one, changes nothing."""
        return msgspec.structs.replace(self, filters=_with_newest(self.filters, words, MAX_FILTERS))

    def with_command(self, words: str) -> ViewState:
        """The same with the newest command. Secrets in it are not kept."""
        return msgspec.structs.replace(self, commands=_with_newest(self.commands, words, MAX_COMMANDS))


def path_for(root: Path) -> Path | None:
    """Where a workspace's state is kept: by the platform's convention (XDG on Linux); None for an account without a home."""
    import platformdirs

    try:
        folder = platformdirs.user_state_path("trainflow")
    except RuntimeError:
        return None
    return folder / "views" / f"{hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:16]}.json"


def load(path: Path | None) -> tuple[ViewState, str]:
    """The remembered state within its bounds, and what is wrong with the file, if anything. Never an error.

    A file that is damaged, too large, not a regular one or another user's gives the defaults and a note; a missing one
    the defaults alone.
    """
    if path is None:
        return ViewState(), ""
    try:
        descriptor = open_regular(path)
        with open(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if found.st_uid != os.geteuid():
                return ViewState(), f"{path} belongs to another user and is not read."
            if found.st_size > MAX_FILE_BYTES:
                return ViewState(), f"{path} is too large ({found.st_size} bytes) and is not read."
            raw = msgspec.json.decode(file.read(MAX_FILE_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return ViewState(), ""
    except (OSError, TrainflowError) as problem:
        return ViewState(), f"{path} is not read: {problem}"
    except (msgspec.DecodeError, RecursionError) as problem:
        return ViewState(), f"{path} is damaged ({problem}); the screen starts with its defaults."
    if not isinstance(raw, dict):
        return ViewState(), f"{path} holds no view state; the screen starts with its defaults."
    return _bounded(raw), ""


def save(path: Path | None, state: ViewState) -> bool:
    """Replace the file (0600), whole or not at all; False where there is no place for it, such as a read-only home.

    Waits for the disk: call it from a worker thread, or at the end.
    """
    if path is None:
        return False
    try:
        ensure_private_directory(path.parent)
        write_atomic(path, msgspec.json.format(msgspec.json.encode(state), indent=1) + b"\n")
    except (OSError, TrainflowError):
        return False
    return True


def _bounded(raw: Mapping[str, Any]) -> ViewState:
    modes = _mapping(raw.get("modes"))
    return ViewState(
        mode=_one_of(raw.get("mode"), MODES, MODES[0]),
        task=_name(raw.get("task")),
        theme=_one_of(raw.get("theme"), THEMES, ""),
        chart=_one_of(raw.get("chart"), CHARTS, "linear"),  # type: ignore[arg-type]  # one of them
        modes={mode: _mode(_mapping(modes[mode])) for mode in MODES if mode in modes},
        filters=_history(raw.get("filters"), MAX_FILTERS),
        commands=_history(raw.get("commands"), MAX_COMMANDS),
    )


def _mode(raw: Mapping[str, Any]) -> ModeState:
    named = {name: pane for name, pane in _mapping(raw.get("panes")).items() if _name(name)}
    panes = {name: _pane(_mapping(named[name])) for name in list(named)[:MAX_PANES]}
    return ModeState(focused=_name(raw.get("focused")), zoomed=_name(raw.get("zoomed")), panes=panes)


def _pane(raw: Mapping[str, Any]) -> PaneState:
    return PaneState(
        sort_key=_name(raw.get("sort_key")),
        reverse=raw.get("reverse") is True,
        filter=_text(raw.get("filter")),
        filter_is_regex=raw.get("filter_is_regex") is True,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _one_of(value: Any, known: tuple[str, ...], default: str) -> str:
    return value if isinstance(value, str) and value in known else default


def _name(value: Any) -> str:
    return value if isinstance(value, str) and _NAME.fullmatch(value) else ""


def _text(value: Any) -> str:
    """One line that can be shown as it is, or nothing: a cut filter would be another filter."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return ""
    return value if display(value, whole=True) == value else ""


def _history(value: Any, most: int) -> tuple[str, ...]:
    entries = [entry for entry in map(_text, value if isinstance(value, list) else []) if entry.strip()]
    newest = dict.fromkeys(reversed(entries))
    return tuple(reversed(list(newest)[:most]))


def _with_newest(history: tuple[str, ...], words: str, most: int) -> tuple[str, ...]:
    from trainflow_tui.redaction import redact  # its patterns cost 15 ms, which first paint need not wait for

    entry = _text(redact(words.strip())[0])
    return (*(old for old in history if old != entry), entry)[-most:] if entry else history
