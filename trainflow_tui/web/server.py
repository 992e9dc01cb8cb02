"""The loopback server of `trainflow serve`: one page and the terminal's files behind a cookie, one screen a websocket."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import logging
import signal
import socket
import string
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import textual_serve
from aiohttp import WSMsgType, web

from trainflow_tui import language
from trainflow_tui.errors import BusyError, UsageError
from trainflow_tui.language import _
from trainflow_tui.text import display
from trainflow_tui.web.access import ADDRESS, Access
from trainflow_tui.web.tab import Tab

_log = logging.getLogger(__name__)
_silent = logging.getLogger("trainflow_tui.web.http")
_silent.disabled = True  # aiohttp quotes the request line of what it cannot read, and the token may stand in it
_OURS: Final = Path(__file__).with_name("page")
_THEIRS: Final = Path(textual_serve.__file__).parent / "static"
_FILES: Final = {
    "page.css": (_OURS / "page.css", "text/css"),
    "page.js": (_OURS / "page.js", "text/javascript"),
    "textual.js": (_THEIRS / "js/textual.js", "text/javascript"),
    "xterm.css": (_THEIRS / "css/xterm.css", "text/css"),
    "mono.ttf": (_THEIRS / "fonts/RobotoMono-VariableFont_wght.ttf", "font/ttf"),
}
_ON_TO_THE_PAGE: Final = (
    '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><meta http-equiv="refresh" content="0;url=/">'
)
MAX_TABS: Final = 8
"""Each is a process of 50 to 150 MB."""
MAX_MESSAGE_BYTES: Final = 1_000_000
HEARTBEAT_S: Final = 30.0
"""After how long without an answer a browser that vanished is noticed, and its screen ended."""
_MOST_CELLS: Final = 1000
"""Of a width or a height: a screen of any size that a browser may name would take its memory."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ScreenServer:
    """Serves one command's screen to one browser. `argv` starts the screen; `title` is shown on the tab."""

    def __init__(self, argv: Sequence[str], *, title: str, port: int) -> None:
        self.access = Access(port)
        self._argv = argv
        self._title = display(title)
        self._page = string.Template((_OURS / "index.html").read_text(encoding="utf-8"))
        self._files = {name: _content(path) for name, (path, _type) in _FILES.items()}
        self._headers = _headers(self.access.names)
        self._screens: set[asyncio.Task[Any]] = set()

    def application(self) -> web.Application:
        """The routes, all of them behind the same guard."""
        application = web.Application(middlewares=[self._guard])
        application.on_response_prepare.append(self._add_headers)
        application.add_routes(
            [
                web.get("/", self._show_page, allow_head=False),
                web.get("/ws", self._open_screen, allow_head=False),
                web.get("/static/{name}", self._give_file, allow_head=False),
            ]
        )
        return application

    async def end_screens(self) -> None:
        """End every screen, and return when they have gone."""
        for screen in self._screens:
            screen.cancel()
        await asyncio.gather(*self._screens, return_exceptions=True)

    # Who is answered

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self.access.is_our_host(request.headers.getall("Host", [])):
            return _refused(_("This server answers only to {name}.").format(name=f"http://{self.access.names[0]}/"))
        if request.method == "GET" and request.path == "/" and "token" in request.query:
            return self._enter(request.query["token"])
        if not self.access.is_in_session(request.cookies.get(self.access.cookie)):
            return _refused(_("This browser has not opened the address that `trainflow serve` printed."))
        try:
            return await handler(request)
        except web.HTTPException:
            raise
        except Exception:
            _log.exception("a request failed")
            raise

    def _enter(self, token: str) -> web.Response:
        session = self.access.trade(token)
        if session is None:
            words = _("This address does not work, or no more: it opens once. Open {name} where it was opened.")
            return _refused(words.format(name=f"http://{self.access.names[0]}/"))
        # Not a redirect: after a link in another site's page a strict cookie would not go with it.
        response = web.Response(text=_ON_TO_THE_PAGE, content_type="text/html")
        response.set_cookie(self.access.cookie, session, httponly=True, samesite="Strict", path="/")
        return response

    async def _add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        response.headers.update(self._headers)

    # What is given

    async def _show_page(self, request: web.Request) -> web.Response:
        words = {
            "language": language.current(),
            "title": self._title,
            "socket": f"ws://{request.host}/ws",
            "opening": _("Opening the screen…"),
            "ended": _("The screen has ended. Reload the page to open another."),
            "scripts": _("This page needs JavaScript."),
        }
        text = self._page.substitute({name: html.escape(word) for name, word in words.items()})
        response = web.Response(text=text, content_type="text/html")
        response.enable_compression()
        return response

    async def _give_file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._files:
            raise web.HTTPNotFound
        response = web.Response(body=self._files[name], content_type=_FILES[name][1])
        response.enable_compression()
        return response

    # A screen

    async def _open_screen(self, request: web.Request) -> web.StreamResponse:
        if not self.access.is_our_origin(request.headers.getall("Origin", []), request.host):
            return _refused(_("Only this server's own page opens a screen."))
        connection = web.WebSocketResponse(heartbeat=HEARTBEAT_S, max_msg_size=MAX_MESSAGE_BYTES)
        await connection.prepare(request)
        if len(self._screens) >= MAX_TABS:
            await _say(connection, _("{n} screens are open already: close one.").format(n=MAX_TABS))
            return connection
        task = asyncio.current_task()
        assert task is not None
        self._screens.add(task)
        try:
            await self._run_screen(connection, _cells(request.query.get("width")), _cells(request.query.get("height")))
        finally:
            self._screens.discard(task)
        return connection

    async def _run_screen(self, connection: web.WebSocketResponse, width: int, height: int) -> None:
        tab = await Tab.open(self._argv, width=width, height=height)
        shown = asyncio.create_task(_show(tab, connection))
        try:
            async for message in connection:
                if message.type is WSMsgType.TEXT:
                    await _obey(tab, connection, message.data)
        finally:
            shown.cancel()
            (problem,) = await asyncio.gather(shown, return_exceptions=True)
            if isinstance(problem, Exception):
                _log.error("a screen could not be shown", exc_info=problem)
            await tab.end()


async def serve(argv: Sequence[str], *, title: str, port: int, announce: Callable[[str, int], bool]) -> bool:
    """Serve on the loopback address until SIGINT, SIGTERM or SIGHUP, and end every screen. Port 0 takes a free one.

    `announce` is given the address that works once and the port; False from it ends the server, and is returned.

    Raises:
        BusyError: another process has the port.
        UsageError: the installed textual-serve is not laid out as ours was written for.
    """
    listening = _listen(port)
    port = listening.getsockname()[1]
    server = ScreenServer(argv, title=title, port=port)
    runner = web.AppRunner(server.application(), access_log=None, logger=_silent, shutdown_timeout=1.0)
    await runner.setup()
    await web.SockSite(runner, listening).start()
    stop = _stop_on_signals()
    try:
        announced = announce(server.access.first_url, port)
        if announced:
            await stop.wait()
    finally:
        await server.end_screens()
        await runner.cleanup()
    return announced


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((ADDRESS, port))
    except OSError as problem:
        listening.close()
        raise BusyError(
            "port-taken",
            f"Port {port} cannot be had: {problem.strerror}.",
            subject=str(port),
            next_step="Name another with --port, or none: a free one is taken.",
        ) from problem
    return listening


def _stop_on_signals() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup means it
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as problem:
        raise UsageError(
            "web-extra-differs",
            f"This textual-serve has no {path.name} where it was looked for.",
            subject=str(path),
            next_step="Install `trainflow-tui[web]` again.",
        ) from problem


def _headers(names: Sequence[str]) -> dict[str, str]:
    """What every answer carries: nothing is fetched from elsewhere, framed, kept, or told to another site."""
    sockets = " ".join(f"ws://{name}" for name in names)
    policy = {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self' 'unsafe-inline'",  # the terminal writes its own style elements
        "font-src": "'self'",
        "img-src": "'self' data:",
        "connect-src": f"'self' {sockets}",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return {
        "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in policy.items()),
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "clipboard-read=()",  # a screen may fill the clipboard, never ask for it
        "Server": "trainflow",
    }


def _refused(words: str) -> web.Response:
    return web.Response(status=403, text=f"{words}\n")


def _cells(given: str | int | None) -> int:
    """A width or height in cells, from what a browser says; 80 where it says none."""
    try:
        return max(1, min(_MOST_CELLS, int(given or 80)))
    except ValueError:
        return 80


async def _show(tab: Tab, connection: web.WebSocketResponse) -> None:
    with contextlib.suppress(ConnectionError):  # the browser went
        refused = await tab.show(connection.send_bytes)
        if refused:
            await _say(connection, refused)
        await connection.close()


async def _say(connection: web.WebSocketResponse, words: str) -> None:
    await connection.send_bytes(display(words).encode())
    await connection.close()


async def _obey(tab: Tab, connection: web.WebSocketResponse, words: str) -> None:
    """Do what the page's terminal says (textual-serve 1.1.3, `textual.js`): a list of a name and one value."""
    try:
        said: Any = json.loads(words)
    except (ValueError, RecursionError):
        return
    match said:
        case ["stdin", str(text)]:
            await tab.type(text)
        case ["resize", {"width": int(width), "height": int(height)}]:
            await tab.tell("resize", width=_cells(width), height=_cells(height))
        case ["focus" | "blur" as kind]:
            await tab.tell(kind)
        case ["ping", str(sent)]:
            await connection.send_json(["pong", sent])
