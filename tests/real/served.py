"""`trainflow serve` in a process of its own, asked by plain HTTP and seen through a websocket with an emulator behind it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlsplit

import aiohttp
import pyte

from tests.tui.terminal import processes_about

ROOT: Final = Path(__file__).resolve().parents[2]
PATIENCE_S: Final = 60.0
"""How long something may take on a busy machine before a test fails; never how long it should take."""
_UNKNOWN_TO_PYTE: Final = re.compile(rb"\x1b\[[<>=][0-9;]*[a-z]")


class Served:
    """One server on a workspace; leaving the context ends it."""

    def __init__(self, root: Path, config_home: Path, *words: str) -> None:
        self.root = root
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINFLOW_", "TEXTUAL"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "serve", "--json", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=clean | {"XDG_CONFIG_HOME": str(config_home)},
            text=True,
        )
        assert self.process.stdout is not None
        self.said: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.port: int = self.said.get("port", 0)
        self.token: str = urlsplit(self.said.get("url", "")).query.removeprefix("token=")
        self.cookie = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        assert self.process.stdout is not None
        self.process.terminate()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()

    def ask(
        self, path: str, *, host: str | None = None, cookie: str | None = None, method: str = "GET", **headers: str
    ) -> tuple[HTTPResponse, str]:
        """One request, with the cookie that was given last unless another one, or an empty one, is named."""
        line = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        line.putrequest(method, path, skip_host=True)
        line.putheader("Host", host or f"127.0.0.1:{self.port}")
        for name, value in ({"Cookie": self.cookie if cookie is None else cookie} | headers).items():
            if value:
                line.putheader(name.replace("_", "-"), value)
        line.endheaders()
        answer = line.getresponse()
        text = answer.read().decode(errors="replace")
        line.close()
        return answer, text

    def enter(self) -> Self:
        """Trade the token for the cookie."""
        answer, _ = self.ask(f"/?token={self.token}")
        assert answer.status == 200
        self.cookie = str(answer.headers["Set-Cookie"]).split(";")[0]
        return self

    def screens(self) -> list[int]:
        """Process ids of the screens that run on this workspace."""
        found = processes_about(self.root)
        return [pid for pid, command in found.items() if " serve" not in command and " watch" not in command]

    def collectors(self) -> list[int]:
        """Process ids of the collectors that run on this workspace."""
        return [pid for pid, command in processes_about(self.root).items() if " watch" in command]

    def tab(self, *, size: tuple[int, int] = (120, 40)) -> Page:
        """A page's websocket."""
        return Page(self, size)


class Page:
    """What a browser's tab does, without a browser."""

    def __init__(self, served: Served, size: tuple[int, int]) -> None:
        self._served = served
        self._size = size
        self._screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self._screen)
        self.ended = False

    async def __aenter__(self) -> Self:
        address = f"http://127.0.0.1:{self._served.port}"
        self._session = aiohttp.ClientSession()
        self._line = await self._session.ws_connect(
            f"{address}/ws?width={self._size[0]}&height={self._size[1]}",
            headers={"Origin": address, "Cookie": self._served.cookie},
        )
        self._listening = asyncio.create_task(self._listen())
        return self

    async def __aexit__(self, *problem: object) -> None:
        self._listening.cancel()
        await self._session.close()

    async def _listen(self) -> None:
        async for message in self._line:
            if message.type is aiohttp.WSMsgType.BINARY:
                self._stream.feed(_UNKNOWN_TO_PYTE.sub(b"", message.data))
        self.ended = True

    @property
    def text(self) -> str:
        """The picture."""
        return "\n".join(self._screen.display)

    async def send(self, words: object) -> None:
        """Say something: text as it is, anything else as JSON."""
        await self._line.send_str(words if isinstance(words, str) else json.dumps(words))

    async def press(self, keys: str) -> None:
        """Type."""
        await self.send(["stdin", keys])

    async def wait_for(self, words: str) -> None:
        """Wait until the picture holds the words."""
        await until(lambda: words in self.text or self.ended, lambda: f"{words!r} in\n{self.text}")
        assert words in self.text, f"the tab ended without {words!r}:\n{self.text}"


async def until(condition: Callable[[], object], what: str | Callable[[], str]) -> None:
    """Wait until the condition holds.

    Raises:
        AssertionError: it did not come to hold; says for what was waited.
    """
    end = asyncio.get_running_loop().time() + PATIENCE_S
    while not condition():
        if asyncio.get_running_loop().time() > end:
            raise AssertionError(f"waited {PATIENCE_S:.0f} s for {what() if callable(what) else what}")
        await asyncio.sleep(0.05)
