"""Textual's terminal driver with a writer that never makes the event loop wait, knows what is not written, and ends.

Textual's own writer (8.2.8) holds 30 writes: the next one stops the event loop, and so does the end of the program.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import select
import termios
import threading
import time
from collections import deque
from typing import IO, Any, Final

from textual import events
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from trainflow_tui.screens.line_pace import LinePace
from trainflow_tui.text import cell_len

_CHUNK: Final = 1024
_END_S: Final = 1.0
"""How long a terminal may take for the last bytes; one that takes none is left as it is."""
_LOOK_S: Final = 0.05
_ANSWER_S: Final = 0.5
_QUESTION: Final = "\x1b[6n"
"""Where the cursor is (ECMA-48 DSR): asked because every terminal answers, also those behind a multiplexer."""
_CANCEL: Final = b"\x18"
"""Ends a sequence of which the terminal may have got only the first half (ECMA-48 CAN)."""


def _in_cells(problem: UnicodeError) -> tuple[str, int]:
    """A question mark for each cell of what a terminal's encoding lacks, so that a row keeps its width."""
    assert isinstance(problem, UnicodeEncodeError)
    return "?" * cell_len(problem.object[problem.start : problem.end]), problem.end


codecs.register_error("trainflow-cells", _in_cells)


class OutputLine(threading.Thread):
    """Writes to the terminal in the background. What `write` is given waits without limit; keeping it short is the caller's."""

    def __init__(self, file: IO[str]) -> None:
        super().__init__(daemon=True, name="terminal-output")
        # Around Python's buffer: a thread that stands still while it holds the buffer's lock aborts the interpreter's end.
        with contextlib.suppress(OSError, ValueError):
            file.flush()
        self._fd, self._waits = _opened(file.fileno())
        self._encoding = getattr(file, "encoding", None) or "utf-8"
        self._waiting: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._unwritten = 0
        self._ended = self._given_up = False
        self.total = 0
        """Bytes that were ever given to it."""
        self.dead = False
        """Whether the terminal is gone."""
        self.wake: Any = None
        """Called from this thread when everything was written, or the terminal found gone."""

    @property
    def unwritten(self) -> int:
        """Bytes that the kernel has not taken, and those that it says are still in its own queue."""
        return self._unwritten + (_kernel_queue(self._fd) if not self._unwritten else 0)

    def write(self, text: str) -> None:
        """Take text; never waits. After the end it is dropped."""
        data = text.encode(self._encoding, "trainflow-cells")
        with self._changed:
            if self._ended or self.dead:
                return
            self._waiting.append(data)
            self._unwritten += len(data)
            self.total += len(data)
            self._changed.notify()

    def flush(self) -> None:
        """Nothing: what was given is on its way."""

    def isatty(self) -> bool:
        """True, as Textual's own says."""
        return True

    def fileno(self) -> int:
        """The terminal."""
        return self._fd

    def run(self) -> None:
        """Write until the end."""
        while True:
            with self._changed:
                while not self._waiting and not self._ended:
                    self._changed.wait()
                if not self._waiting:
                    return
                data = b"".join(self._waiting)
                self._waiting.clear()
            try:
                self._put(data)
            except OSError:
                with self._changed:
                    self.dead, self._unwritten = True, 0
                    self._waiting.clear()
            if self._unwritten == 0 and self.wake is not None:
                self.wake()
            if self.dead:
                return

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view and not self._given_up:
            if not self._waits and not select.select([], [self._fd], [], _LOOK_S)[1]:
                continue
            try:
                written = os.write(self._fd, view[:_CHUNK])
            except BlockingIOError:
                continue
            view = view[written:]
            with self._changed:
                self._unwritten -= written

    def stop(self) -> None:
        """End after the last byte, or after a second; then a terminal that takes nothing is left, as Textual's never is."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        if self.is_alive():
            self.join(_END_S)
        if self.is_alive():
            self._give_up()
        if not self._waits:
            os.close(self._fd)
            self._waits = True

    def _give_up(self) -> None:
        self._given_up = True
        with self._changed:
            last = _CANCEL + b"".join(self._waiting)
            self._waiting.clear()
        self.join(_END_S / 4)
        if not self._waits:
            with contextlib.suppress(OSError, termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)  # makes room
                os.write(self._fd, last)


def _opened(fd: int) -> tuple[int, bool]:
    """The terminal opened once more, and whether writing to it may wait: not waiting is a matter of each opening.

    Of the one that a shell gave us the shell has the other end: it would not wait either. Where there is no name to
    open (a container without the terminal's device) that one is used.
    """
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK), False
    except OSError:
        return fd, True


def _kernel_queue(fd: int) -> int:
    """Bytes in the kernel's output queue: of a serial line on Linux, of any terminal on macOS; a pseudo-terminal on Linux tells 0."""
    import fcntl
    import struct

    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, b"\0" * 4))[0])
    except OSError:
        return 0


class PacedDriver(LinuxDriver):
    """Knows what the terminal has not drawn yet (`holds`), and takes no key that was typed before the screen was back."""

    class Answered(Message):
        """The terminal drew everything up to a question."""

        def __init__(self, at: float) -> None:
            super().__init__()
            self.at = at

    class Written(Message):
        """Everything was written, or the terminal is gone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._line: OutputLine | None = None
        self.pace = LinePace()
        self._answer_came = threading.Event()
        self._unasked = False
        """Frames were sent behind the question that is open."""
        self._counted = 0
        super().__init__(*args, **options)

    # Textual makes its writer where it starts, in the middle of one long method: this takes ours in its place.

    @property
    def _writer_thread(self) -> Any:
        return self._line

    @_writer_thread.setter
    def _writer_thread(self, textuals: Any) -> None:
        if textuals is None:
            self._line = None
            return
        self._line = OutputLine(textuals._file)
        self._line.wake = self._tell_written

    def _tell_written(self) -> None:
        # Of a terminal that answers its answer is worth more.
        if not self.pace.answers or not self.line_is_there:
            self._app.post_message(self.Written())

    @property
    def line_is_there(self) -> bool:
        """False after the terminal went away."""
        return self._line is None or not self._line.dead

    @property
    def is_drawn(self) -> bool:
        """Whether all that was sent is known to be drawn; where no terminal answers, whether it was written."""
        return not self._unwritten and not self.pace.under_way

    @property
    def holds(self) -> bool:
        """Whether a frame would have to wait behind an earlier one."""
        return bool(self._unwritten) or self.pace.holds(time.monotonic())

    @property
    def _unwritten(self) -> int:
        return self._line.unwritten if self._line is not None else 0

    def end_frame(self) -> None:
        """A frame was written: ask the terminal to say when it has drawn it, or ask after the answer that is awaited."""
        if self._line is None or not self.pace.asks:
            return
        self._unasked = self.pace.under_way
        if not self._unasked:
            self._ask(measured=True)

    def _ask(self, *, measured: bool) -> None:
        assert self._line is not None
        self._answer_came.clear()
        self.write(_QUESTION)
        self.pace.sent(self._line.total - self._counted, time.monotonic(), measured=measured)
        self._counted = self._line.total

    def answered(self, at: float) -> None:
        """The terminal answered; ask about the frames that followed the question."""
        self.pace.answered(at)
        if self._unasked and self._line is not None:
            self._unasked = False
            self._ask(measured=False)

    def process_message(self, message: Message) -> None:
        """Take the answer out of what is typed (in the input thread)."""
        if isinstance(message, events.CursorPosition):
            self._answer_came.set()
            self._app.post_message(self.Answered(time.monotonic()))
            return
        super().process_message(message)

    # Life

    def start_application_mode(self) -> None:
        """Take the terminal. What was typed until now was meant for a shell or an editor and is thrown away."""
        self.pace = LinePace()
        self._counted, self._unasked = 0, False
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().start_application_mode()  # type: ignore[no-untyped-call]
        self.end_frame()

    def stop_application_mode(self) -> None:
        """Give the terminal back. An answer that is under way would be typed into the shell: it is awaited for a moment."""
        if self._line is not None and self.line_is_there and self.pace.answers and self.pace.under_way:
            self._answer_came.wait(_ANSWER_S)
        super().stop_application_mode()

    def _sigcont_application(self, *signal: Any) -> None:
        """Go on after a stop. One that gave no warning (SIGSTOP) left everything running: start anew, not twice."""
        if self._auto_restart and self._line is not None and self._line.is_alive() and not self._must_signal_resume:
            self.suspend_application_mode()
            self._must_signal_resume = True
        super()._sigcont_application(*signal)
