"""The screen's process behind one tab of a browser: started, drawn from, typed into, ended. Knows no HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from trainflow_tui.language import _
from trainflow_tui.web import WEB_DRIVER

_log = logging.getLogger(__name__)
_READY: Final = b"__GANGLION__\n"
_DRAWN, _MESSAGE, _FILE = b"D", b"M", b"P"
_MOST_BYTES: Final = 2**26
"""Of a packet: more is a stray word that was taken for one."""
_ENDED_BY_US: Final = (0, 128 + signal.SIGHUP, 128 + signal.SIGTERM, -signal.SIGTERM)
QUIT_S: Final = 6.0
"""For the screen to end by itself: it gives its own collector three seconds."""
TERMINATE_S: Final = 2.0


class Tab:
    """One process of the screen, spoken to in packets.

    A packet is a letter, a length of four bytes with the highest first, and that many bytes; `D` is what is drawn or
    typed, `M` a message in JSON, `P` a piece of a file. A line of its own tells that packets follow (textual 8.2.8,
    `drivers/web_driver.py`; the other end in textual-serve 1.1.3 is `app_service.py`, which starts a shell).
    """

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._input = process.stdin
        self._output = process.stdout
        self._complaints = asyncio.create_task(_last_line(process.stderr))

    @classmethod
    async def open(cls, argv: Sequence[str], *, width: int, height: int) -> Tab:
        """Start the screen with a size in cells. No shell reads `argv`.

        Standard error is a pipe too: on the server's terminal a decision would look as if it had been typed there.
        """
        environment = os.environ | {
            "TEXTUAL_DRIVER": WEB_DRIVER,
            "TEXTUAL_COLOR_SYSTEM": "truecolor",
            "COLUMNS": str(width),
            "ROWS": str(height),
        }
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, limit=2**20, start_new_session=True
        )
        return cls(process)

    async def show(self, draw: Callable[[bytes], Awaitable[None]]) -> str:
        """Pass on what the screen draws until it ends. Returns why there was none, else nothing."""
        refused = await self._until_ready()
        if refused:
            return refused
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                kind = await self._output.readexactly(1)
                size = int.from_bytes(await self._output.readexactly(4), "big")
                if kind not in (_DRAWN, _MESSAGE, _FILE) or size > _MOST_BYTES:
                    _log.error("a screen wrote something that is no packet, beginning with %r", kind)
                    break
                payload = await self._output.readexactly(size)
                if kind == _DRAWN:  # messages and files ask the browser to open addresses and to save: not offered
                    await draw(payload)
        return ""

    async def _until_ready(self) -> str:
        answer: list[bytes] = []
        try:
            while line := await self._output.readline():
                if line == _READY:
                    return ""
                answer.append(line)
        except ValueError:  # a line longer than the limit
            _log.error("a screen wrote a line without an end")
        return _reason(answer) or _("The screen could not be opened. `trainflow logs` may say why.")

    async def type(self, text: str) -> None:
        """Give the screen what was typed, pasted, or told by the terminal."""
        await self._send(_DRAWN, text.encode(errors="replace"))

    async def tell(self, kind: str, **about: int) -> None:
        """Send a message: `resize` with width and height in cells, `focus`, `blur` or `quit`."""
        await self._send(_MESSAGE, json.dumps({"type": kind, **about}).encode())

    async def _send(self, kind: bytes, payload: bytes) -> None:
        with contextlib.suppress(ConnectionError):  # it has ended; `show` says so
            self._input.write(kind + len(payload).to_bytes(4, "big") + payload)
            await self._input.drain()

    async def end(self) -> None:
        """Ask the screen to end, then make it. Returns when it has gone. `show` must not run any more."""
        process = self._process
        drained = asyncio.create_task(_drain(self._output))  # a full pipe would keep it from hearing us
        quitting = asyncio.create_task(self.tell("quit"))
        for patience_s, number in ((QUIT_S, signal.SIGTERM), (TERMINATE_S, signal.SIGKILL)):
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(process.wait(), patience_s)
            if process.returncode is not None:
                break
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        await process.wait()
        quitting.cancel()
        drained.cancel()
        complaint = await self._complaints
        if process.returncode not in _ENDED_BY_US:
            _log.error("a screen ended with %s: %s", process.returncode, complaint)


def _reason(answer: list[bytes]) -> str:
    """The sentences of a verb's answer in JSON; nothing where it is none."""
    try:
        found: Any = json.loads(b"".join(answer))
        return " ".join(str(reason["text"]) for reason in found["reasons"])
    except (ValueError, KeyError, TypeError):
        return ""


async def _last_line(stream: asyncio.StreamReader) -> str:
    """Of all that is written to a stream; the lines before hold a traceback's variables, which no log may keep."""
    kept = b""
    while piece := await stream.read(4096):
        kept = (kept + piece)[-4096:]
    lines = kept.decode(errors="replace").split("\n")
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
