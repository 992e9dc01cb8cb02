"""A program on a pseudo-terminal as an operator has it: what it writes is drawn by an emulator, keys go in, the line can be cut."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import pyte

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 30.0
"""How long something may take on a busy machine before a test fails; never how long it should take."""
ANSWERS: Final = (
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[6n", b"\x1b[1;1R"),
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    (b"\x1b]11;?", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
    (b"\x1b]10;?", b"\x1b]10;rgb:ffff/ffff/ffff\x1b\\"),
)
"""What a terminal is asked, and what this one says."""
_OF_THE_OUTSIDE: Final = ("TRAINFLOW_", "TEXTUAL_", "COLUMNS", "LINES", "NO_COLOR", "COLORTERM", "TERM")
# pyte takes `CSI < u` for text, and a sequence may be cut by the end of a read.
_UNKNOWN_TO_PYTE: Final = re.compile(rb"\x1b\[[<>=][0-9;]*[a-z]")
_CUT_SEQUENCE: Final = re.compile(rb"\x1b(\[[0-9;?<>=$]*)?$")
# A new session has no terminal: the child takes the one on its standard input, then becomes the program.
_TAKE_TERMINAL: Final = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)


class Terminal:
    """A command on a terminal of `size` columns and rows; leaving the context ends the command if it still runs."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        size: tuple[int, int] = (120, 40),
        env: Mapping[str, str] | None = None,
        config_home: Path,
    ) -> None:
        self.raw = bytearray()
        """Everything that was written."""
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self._rest = b""
        self._master, slave = pty.openpty()
        _set_size(slave, size)
        clean = {name: value for name, value in os.environ.items() if not name.startswith(_OF_THE_OUTSIDE)}
        usual = {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "XDG_CONFIG_HOME": str(config_home),
            "XDG_STATE_HOME": str(config_home / "state"),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-S", "-c", _TAKE_TERMINAL, *argv],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=ROOT,
            env=clean | usual | dict(env or {}),
        )
        os.close(slave)
        os.set_blocking(self._master, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self.hang_up()

    @property
    def pid(self) -> int:
        """The program's process id."""
        return self._process.pid

    def attributes(self) -> list[Any]:
        """The line's settings, such as echo, as `termios.tcgetattr` gives them."""
        return termios.tcgetattr(self._master)

    # What it shows

    @property
    def rows(self) -> list[str]:
        """The picture, a string a line."""
        return list(self._screen.display)

    @property
    def text(self) -> str:
        """The picture as one string."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    @property
    def cells(self) -> list[list[pyte.screens.Char]]:
        """Every cell of the picture with its attributes."""
        buffer = self._screen.buffer
        return [[buffer[y][x] for x in range(self._screen.columns)] for y in range(self._screen.lines)]

    def pump(self, seconds: float) -> int:
        """Take what is written for some time; returns how many bytes came."""
        before, end = len(self.raw), time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and self._take(left):
            pass
        return len(self.raw) - before

    def settle(self, quiet_s: float = 0.5) -> None:
        """Take what is written until nothing has come for a while."""
        self.until(lambda: self.pump(quiet_s) == 0, "the output to come to rest")

    def until(self, condition: Callable[[], object], what: str = "a condition") -> None:
        """Take what is written until the condition holds.

        Raises:
            AssertionError: it did not come to hold; shows the picture.
        """
        end = time.monotonic() + PATIENCE_S
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what}; the screen shows\n{self.text}")
            if not self._take(0.05):
                time.sleep(0.05)

    def wait_for(self, words: str) -> None:
        """Take what is written until the picture holds the words."""
        self.until(lambda: words in self.text, repr(words))

    def wait_gone(self, words: str) -> None:
        """Take what is written until the picture no longer holds the words."""
        self.until(lambda: words not in self.text, f"{words!r} to go")

    def _take(self, seconds: float) -> bool:
        """One read; False where the line is dead."""
        if self._master < 0:
            return False
        ready, _, _ = select.select([self._master], [], [], min(0.05, seconds))
        if not ready:
            return True
        try:
            written = os.read(self._master, 65536)
        except OSError:  # Linux says EIO where the other end is closed, macOS reads nothing
            return False
        self.raw += written
        cut = _CUT_SEQUENCE.search(whole := self._rest + written)
        end = cut.start() if cut else len(whole)
        whole, self._rest = whole[:end], whole[end:]
        self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", whole))
        for question, answer in ANSWERS:
            self.send(answer * whole.count(question))
        return bool(written)

    # What is done to it

    def send(self, keys: str | bytes) -> None:
        """Press keys."""
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def resize(self, columns: int, rows: int) -> None:
        """Drag the window to another size."""
        self._screen.resize(rows, columns)
        _set_size(self._master, (columns, rows))

    def signal(self, number: signal.Signals) -> None:
        """Send the program a signal."""
        os.kill(self.pid, number)

    def forget_picture(self) -> None:
        """Show nothing, as after another program used the terminal."""
        self._screen.reset()

    def poll(self) -> int | None:
        """The exit status, or None while the program runs; reads nothing of what it writes."""
        return self._process.poll()

    def hang_up(self) -> None:
        """Close the terminal, as a cut line does."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def exit_code(self) -> int:
        """Wait for the program's end; a negative number is the signal that killed it."""
        self.until(lambda: self._process.poll() is not None, "the program to end")
        self.pump(0.2)
        assert self._process.returncode is not None
        return self._process.returncode


def _set_size(terminal: int, size: tuple[int, int]) -> None:
    columns, rows = size
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def processes_about(path: Path) -> dict[int, str]:
    """Command lines by process id in which a path occurs; the path is a test's own, so are the processes."""
    listed = subprocess.run(
        ["ps", "-axww", "-o", "pid=,stat=,command="], capture_output=True, text=True, check=True
    ).stdout
    found = {}
    for entry in listed.splitlines():
        pid, state, command = entry.split(None, 2)
        if str(path) in command and not state.startswith("Z"):
            found[int(pid)] = command
    return found
