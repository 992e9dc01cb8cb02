"""`trainflow serve` in headless Chromium: what stands on the page, what a key does there, whom the page talks to."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import pytest
import pytest_asyncio

pytest.importorskip("textual_serve", reason="the extra `web` is not installed")
pytest.importorskip("aiohttp", reason="the extra `web` is not installed")
from tests.real import chromium
from tests.real.served import Served, until
from tests.real.test_serve import REASON, REQUEST, TASK, fill, request_in

PROGRAM = chromium.find()
pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason=f"no browser: none of {', '.join(chromium.NAMES)} is installed"),
    pytest.mark.asyncio(loop_scope="module"),
]


def addresses(browser):
    """Of everything that the browser was asked for by the page."""
    asked = [event["params"] for event in browser.events]
    return [p["request"]["url"] for p in asked if "documentURL" in p] + [
        event["params"]["url"] for event in browser.events if event["method"] == "Network.webSocketCreated"
    ]


def refused(browser):
    """Why requests were not made."""
    return [e["params"].get("blockedReason") for e in browser.events if e["method"] == "Network.loadingFailed"]


def complaints(browser):
    """Exceptions of scripts, and what the browser calls an error."""
    thrown = [event for event in browser.events if event["method"] == "Runtime.exceptionThrown"]
    said = [event["params"]["entry"] for event in browser.events if event["method"] == "Log.entryAdded"]
    return thrown + [entry for entry in said if entry["level"] == "error"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory):
    """A server, and a browser that was sent to its address."""
    place = tmp_path_factory.mktemp("browser")
    root = place / "ws"
    root.mkdir(mode=0o700)
    fill(root)
    with Served(root, place / "config") as served:
        async with chromium.Chromium(PROGRAM, place / "profile") as browser:
            await browser.open(served.said["url"])
            await browser.wait_for(REQUEST)
            yield served, browser


async def test_the_page_talks_to_its_server_only(both):
    served, browser = both
    here = f"127.0.0.1:{served.port}"
    found = addresses(browser)
    assert {urlsplit(url).netloc for url in found if not url.startswith("data:")} == {here}
    assert f"ws://{here}/ws" in {url.partition("?")[0] for url in found}
    assert f"http://{here}/static/mono.ttf" in found
    assert complaints(browser) == []
    # The token stays in no address, scripts cannot read the cookie, links open nothing.
    past = (await browser.call("Page.getNavigationHistory"))["entries"]
    assert [entry["url"] for entry in past if served.token in entry["url"]] == []
    assert await browser.evaluate("location.href + document.cookie") == f"http://{here}/"
    assert await browser.evaluate("String(window.open('http://evil.example/'))") == "null"
    # Where a script is made to fetch from elsewhere, the policy keeps the browser from asking.
    await browser.evaluate("document.body.append(Object.assign(new Image(), {src: 'http://192.0.2.1/x.png'}))")
    await until(lambda: refused(browser), "the browser to refuse")
    assert refused(browser) == ["csp"]


async def test_the_screen_stands_in_the_page_obeys_keys_and_decides_nothing(both):
    served, browser = both
    before = request_in(served.root)
    shown = await browser.text()
    for words in (TASK, "READ-ONLY", "Needs you"):
        assert words in shown
    await browser.press("1")
    await browser.wait_for("Approvals")
    assert "Needs you" not in await browser.text()
    await browser.press("0")
    await browser.wait_for("Needs you")
    await browser.press("a")
    await browser.wait_for(REASON)
    for _ in range(10):
        await browser.press("a")
        await asyncio.sleep(0.05)  # beyond the moment from which an open dialog listens; a shorter one proves less
    await browser.press("Escape")
    await browser.wait_for(REASON, gone=True)
    await browser.press("q")
    await until(lambda: not served.screens(), "the screen to end")
    assert request_in(served.root) == before
    # The end is said by the page, not by the terminal, and another screen is one reload away.
    await browser.wait_until("getComputedStyle(document.querySelector('#ended')).display === 'block'")
    await browser.call("Page.reload")
    await browser.wait_for("Needs you")
