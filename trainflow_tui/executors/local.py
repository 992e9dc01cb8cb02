"""One command on this machine: argument list in, bounded bytes out, and its process group ended at the deadline."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Literal

import msgspec

_CHUNK_BYTES = 1 << 16
_DRAIN_S = 0.5
"""How long output may still come after the command itself has ended: a child of it may hold the pipe open for ever."""
_REAP_S = 2.0
"""How long a killed command is waited for. One that hangs in the kernel cannot die; it is left behind."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a command ended and what it printed.

    `exit_code` is negative for a signal, 127 where the program was not found, None where no end was seen.
    `truncated` says that output beyond the cap was thrown away.
    """

    state: Literal["ok", "failed", "timed_out"]
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    truncated: bool = False


def run(argv: Sequence[str], *, stdin: bytes = b"", timeout_s: float, max_output_bytes: int) -> Outcome:
    """Run `argv` without a shell, in a session of its own, with `stdin` as its input.

    Each of stdout and stderr is kept up to `max_output_bytes`; the rest is read and dropped, so that the command never
    stalls on a full pipe. At the deadline the whole process group gets SIGKILL. A process that moved to another session
    is not found by that, and not waited for; nor is a child that outlives a command which ended in time.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        # The shell's numbers: 127 not found, 126 found and not to be executed.
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return Outcome(state="failed", exit_code=code, stdout=b"", stderr=f"{argv[0]}: {error.strerror}".encode())
    talk = _Conversation(process, stdin, max_output_bytes)
    finished = False
    try:
        finished = talk.run(time.monotonic() + timeout_s)
    finally:
        if not finished:
            _end_group(process)
        talk.close()
    if not finished:
        return talk.outcome("timed_out", process.returncode)
    return talk.outcome("ok" if process.returncode == 0 else "failed", process.returncode)


class _Conversation:
    """Feeds stdin and collects both outputs of one process at the same time."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, cap: int) -> None:
        self._process = process
        self._rest = memoryview(stdin)
        self._cap = cap
        self._truncated = False
        self._kept: dict[str, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}
        self._selector = selectors.DefaultSelector()
        for name in ("stdin", "stdout", "stderr"):
            pipe: IO[bytes] = getattr(process, name)
            os.set_blocking(pipe.fileno(), False)
            event = selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ
            self._selector.register(pipe, event, name)

    def run(self, deadline: float) -> bool:
        """Talk until the process has ended and its pipes are closed, or the deadline passes. True: it has ended."""
        drain_until: float | None = None
        while True:
            now = time.monotonic()
            ended = self._process.poll() is not None
            if ended and drain_until is None:
                drain_until = now + _DRAIN_S
            if ended and (not self._reads() or (drain_until is not None and now >= drain_until)):
                return True
            if now >= deadline:
                return ended
            limit = deadline if drain_until is None else min(deadline, drain_until)
            if not self._selector.get_map():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(limit - now)
                continue
            # The end of the process is no event of a pipe: look for it ten times a second.
            for key, _ in self._selector.select(min(limit - now, 0.1)):
                self._serve(key.data, key.fileobj)

    def _reads(self) -> bool:
        return any(key.data != "stdin" for key in self._selector.get_map().values())

    def _serve(self, name: str, pipe: object) -> None:
        if name == "stdin":
            self._write(pipe)
            return
        try:
            piece = os.read(pipe.fileno(), _CHUNK_BYTES)  # type: ignore[attr-defined]  # selectors types it as object
        except BlockingIOError:
            return
        if not piece:
            self._drop(pipe)
            return
        kept = self._kept[name]
        room = self._cap - len(kept)
        kept += piece[:room]
        self._truncated |= len(piece) > room

    def _write(self, pipe: object) -> None:
        try:
            written = os.write(pipe.fileno(), self._rest[:_CHUNK_BYTES]) if self._rest else 0  # type: ignore[attr-defined]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = self._rest[:0]
            written = 0
        self._rest = self._rest[written:]
        if not self._rest:
            self._drop(pipe)

    def _drop(self, pipe: object) -> None:
        self._selector.unregister(pipe)  # type: ignore[arg-type]  # it was registered
        with contextlib.suppress(OSError):
            pipe.close()  # type: ignore[attr-defined]

    def close(self) -> None:
        """Close what is still open."""
        for key in list(self._selector.get_map().values()):
            self._drop(key.fileobj)
        self._selector.close()

    def outcome(self, state: Literal["ok", "failed", "timed_out"], exit_code: int | None) -> Outcome:
        """What was collected, with how it ended."""
        return Outcome(
            state=state,
            exit_code=exit_code,
            stdout=bytes(self._kept["stdout"]),
            stderr=bytes(self._kept["stderr"]),
            truncated=self._truncated,
        )


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Kill the group of a process that has not been reaped, so that its number cannot belong to another one yet."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_REAP_S)
