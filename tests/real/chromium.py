"""A headless Chromium spoken to by the DevTools protocol: pages, keys, what the page asked the network for."""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final, Self

import aiohttp

from tests.real.served import PATIENCE_S, until

NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# The page keeps its terminal to itself; it sets `fitAddon` beside `terminal` on one object, which this lets be seen.
_SEE_THE_TERMINAL: Final = """
Object.defineProperty(Object.prototype, "fitAddon", {configurable: true, set(value) {
  window.theTerminal = this.terminal;
  Object.defineProperty(this, "fitAddon", {value, writable: true});
}});
"""
_TEXT: Final = """
(() => {
  const buffer = window.theTerminal?.buffer.active;
  if (!buffer) return "";
  return Array.from({length: buffer.length}, (_, y) => buffer.getLine(y).translateToString(true)).join("\\n");
})()
"""


def find() -> str | None:
    """The program, where there is one."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chromium:
    """One browser with one page. It can reach nothing but the loopback address."""

    def __init__(self, program: str, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        """What the page reported, oldest first."""
        self._profile = profile
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",  # which root may not have
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--window-size=1280,800",
                "--remote-debugging-port=0",
                f"--user-data-dir={profile}",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=os.environ | {"HOME": str(profile)},
        )

    async def __aenter__(self) -> Self:
        told = self._profile / "DevToolsActivePort"
        await until(lambda: told.exists() and len(told.read_text().split()) == 2, "the browser to listen")
        port = told.read_text().split()[0]
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://127.0.0.1:{port}/json/list") as answer:
            (page,) = [target for target in await answer.json() if target["type"] == "page"]
        self._line = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._listening = asyncio.create_task(self._listen())
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.call(f"{domain}.enable")
        await self.call("Page.addScriptToEvaluateOnNewDocument", source=_SEE_THE_TERMINAL)
        return self

    async def __aexit__(self, *problem: object) -> None:
        self._listening.cancel()
        await self._session.close()
        self._process.terminate()
        await asyncio.to_thread(self._process.wait)

    async def _listen(self) -> None:
        async for message in self._line:
            said = message.json()
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            else:
                self.events.append(said)

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol."""
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._line.send_json({"id": number, "method": method, "params": parameters})
        said = await asyncio.wait_for(answer, PATIENCE_S)
        assert "error" not in said, said
        return said["result"]

    async def open(self, url: str) -> None:
        """Go to an address."""
        await self.call("Page.navigate", url=url)

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"].get("value")

    async def press(self, key: str) -> None:
        """Press one key that types a letter, or Escape."""
        typed = {"windowsVirtualKeyCode": 27} if key == "Escape" else {"text": key}
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **typed)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def text(self) -> str:
        """What the page's terminal shows."""
        return await self.evaluate(_TEXT) or ""

    async def wait_for(self, words: str, *, gone: bool = False) -> str:
        """Wait until the terminal shows the words, or no longer does; returns all that it shows."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while (words in (shown := await self.text())) is gone:
            assert asyncio.get_running_loop().time() < end, f"waited {PATIENCE_S:.0f} s for {words!r} in\n{shown}"
            await asyncio.sleep(0.05)
        return shown

    async def wait_until(self, expression: str) -> None:
        """Wait until a JavaScript expression holds in the page."""
        end = asyncio.get_running_loop().time() + PATIENCE_S
        while not await self.evaluate(expression):
            assert asyncio.get_running_loop().time() < end, f"waited {PATIENCE_S:.0f} s for {expression}"
            await asyncio.sleep(0.05)
