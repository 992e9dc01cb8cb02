"""The terminal handed to another program for a while: the human's editor, a pager. No shell reads a word of it.

While it runs nothing is painted and no key is ours. Afterwards what was typed ahead is thrown away, and `armed_after`
tells until when keys are still dropped, so that none of them decides (reliability, H-03).
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Protocol

from textual.app import SuspendNotSupported

from trainflow_tui.errors import TrainflowError
from trainflow_tui.files import create_exclusive, open_regular
from trainflow_tui.redaction import redact
from trainflow_tui.screens.exports import safe_stem
from trainflow_tui.text import display

__all__ = ["ARMED_AFTER_S", "NoPager", "Suspendable", "edit", "page"]

ARMED_AFTER_S: Final = 0.4
"""How long keys are dropped after the return: terminals answer our questions in that time, and a finger leaves the key."""

_EDITORS: Final = ("vi", "nano")
_PAGERS: Final = ("less", "more")
_WHOLE_CELLS: Final = 10_000_000
_LESS: Final = {
    "LESS": "-M",  # in place of the user's own, which may have -R or -r
    "LESSSECURE": "1",  # no shell, no editor, no other file
    "LESSHISTFILE": "-",
    "LESSCHARSET": "utf-8",
}
_NOT_FOR_PAGERS: Final = ("LESSOPEN", "LESSCLOSE", "LESSKEY", "LESSKEYIN", "LESS_LINES", "MORE")


class Suspendable(Protocol):
    """The application, as far as this module touches it."""

    armed_after: float
    """Events older than this (`time.monotonic`, as `Message.time`) are to be dropped if they are keys or clicks."""

    def suspend(self) -> AbstractContextManager[None]:
        """Give the terminal away for the length of a `with`; Textual's `App.suspend`."""
        ...


class NoPager(TrainflowError):  # noqa: N818  it is caught by name: the text is shown in a dialog instead
    """There is no pager, or the terminal cannot be handed over."""


def edit(app: Suspendable, path: Path, *, environment: Mapping[str, str] = os.environ) -> None:
    """Open a file in $VISUAL, $EDITOR, vi or nano and wait for its end. A missing file is made, empty and private.

    The file is the human's: nothing else is done to it. Blocks the screen's loop, which may paint nothing meanwhile;
    a signal that ends the program is obeyed after the editor's end.

    Raises:
        TrainflowError: no editor is found, it failed, or the terminal cannot be handed over; names editor and file.
    """
    words = _editor(environment, path)
    try:
        if not create_exclusive(path, b""):
            os.close(open_regular(path))
    except OSError as problem:
        raise TrainflowError(
            "file-not-opened",
            f"{display(str(path))} cannot be opened: {problem.strerror or problem}.",
            subject=str(path),
            next_step="Look at the rights of its directory.",
        ) from problem
    try:
        _run(app, [*words, str(path.absolute())], environment)
    except SuspendNotSupported as problem:
        raise TrainflowError(
            "terminal-not-given",
            "This screen cannot hand its terminal to an editor.",
            subject=str(path),
            next_step=f"Edit {display(str(path))} in another window; what is saved is collected.",
        ) from problem


def page(app: Suspendable, title: str, text: str, *, environment: Mapping[str, str] = os.environ) -> None:
    """Show a long text in $PAGER, less or more and wait for its end.

    The pager reads a private file that is gone afterwards; controls in the text are pictures, secrets are marks. It
    can start nothing where it is less.

    Raises:
        NoPager: none is found, or the terminal cannot be handed over.
        TrainflowError: the pager failed, or the file cannot be written.
    """
    words = _pager(environment)
    shown = redact(display(text, max_cells=_WHOLE_CELLS, multiline=True, whole=True))[0]
    kept = {name: value for name, value in environment.items() if name not in _NOT_FOR_PAGERS}
    try:
        with tempfile.TemporaryDirectory(prefix="trainflow-") as folder:
            path = Path(folder) / f"{safe_stem(title)}.txt"  # pagers show the name
            create_exclusive(path, (shown.rstrip("\n") + "\n").encode())
            _run(app, [*words, str(path)], {**kept, **_LESS})
    except SuspendNotSupported as problem:
        raise NoPager("terminal-not-given", "This screen cannot hand its terminal to a pager.") from problem
    except OSError as problem:
        raise TrainflowError(
            "text-not-written",
            f"The text for the pager cannot be written: {problem}.",
            subject=tempfile.gettempdir(),
            next_step=f"Make room in {tempfile.gettempdir()}.",
        ) from problem


def _editor(environment: Mapping[str, str], path: Path) -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        words = _words(environment, variable)
        if words:
            return words
    for name in _EDITORS:
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    raise TrainflowError(
        "no-editor",
        "There is no editor: neither $VISUAL nor $EDITOR is set, and neither vi nor nano is found.",
        subject=str(path),
        next_step=f"Set $EDITOR, or edit {display(str(path))} in another window.",
    )


def _pager(environment: Mapping[str, str]) -> list[str]:
    words = _words(environment, "PAGER")
    if words and Path(words[0]).name != "cat":  # it ends before anything is read
        return words
    for name in _PAGERS:
        if shutil.which(name, path=environment.get("PATH")):
            return [name]
    raise NoPager("no-pager", "There is no pager: neither less nor more is found.", next_step="Set $PAGER.")


def _words(environment: Mapping[str, str], variable: str) -> list[str]:
    """The program and its options that a variable names; empty where it is not set.

    Raises:
        TrainflowError: its quotes do not match, or there is no such program.
    """
    value = environment.get(variable, "")
    try:
        words = shlex.split(value)
    except ValueError as problem:
        raise TrainflowError(
            "program-not-read",
            f"${variable} is {display(value)!s}: {problem}.",
            subject=variable,
            next_step=f"Correct ${variable}.",
        ) from problem
    if words and shutil.which(words[0], path=environment.get("PATH")) is None:
        raise TrainflowError(
            "program-not-found",
            f"${variable} names {display(words[0])}, which is not found.",
            subject=variable,
            next_step=f"Correct ${variable}, or install it.",
        )
    return words


def _run(app: Suspendable, words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Run a program on our terminal.

    Raises:
        SuspendNotSupported: the terminal cannot be handed over.
        TrainflowError: it could not start, or ended with another code than 0.
    """
    code: int | str
    name = display(Path(words[0]).name)
    try:
        with app.suspend():
            # Nothing may be raised in here: Textual takes the terminal back only where the block ends by itself.
            try:
                with _interrupts_are_its_own():
                    code = subprocess.run(words, env=dict(environment), check=False).returncode
            except OSError as problem:
                code = problem.strerror or str(problem)
            _drop_typed_ahead()
    finally:
        app.armed_after = time.monotonic() + ARMED_AFTER_S
    if code:
        how = f"was ended by signal {-code}" if isinstance(code, int) and code < 0 else f"ended with code {code}"
        raise TrainflowError(
            "program-failed",
            f"{name} {how}." if isinstance(code, int) else f"{name} cannot be started: {display(code)}.",
            subject=words[-1],
            next_step=f"Look at {display(words[-1])} before you go on." if isinstance(code, int) else "",
        )


@contextlib.contextmanager
def _interrupts_are_its_own() -> Iterator[None]:
    """Ctrl+C reaches the whole group of processes. It is for the program; a handler of ours would end the screen.

    A handler that does nothing, not SIG_IGN: that one the program would inherit (execve(2)).
    """
    before: dict[signal.Signals, Any] = {}
    with contextlib.suppress(ValueError):  # not in the main thread: nothing to guard
        for number in (signal.SIGINT, signal.SIGQUIT):
            before[number] = signal.signal(number, lambda *_given: None)
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:  # None: it was not set from Python, and cannot be set back
                signal.signal(number, handler)


def _drop_typed_ahead() -> None:
    """Throw away what was typed, or answered by the terminal, and not read by the program."""
    stdin = sys.__stdin__
    with contextlib.suppress(termios.error, OSError, ValueError):
        if stdin is not None:
            termios.tcflush(stdin.fileno(), termios.TCIFLUSH)
