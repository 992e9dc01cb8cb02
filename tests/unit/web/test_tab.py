"""The process behind a tab, with programs in the screen's place that behave badly."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from asyncio import create_task

import pytest

from trainflow_tui.web import tab as tabs
from trainflow_tui.web.tab import Tab

PACKETS = """
import json, os, signal, sys, time
def send(kind, payload):
    os.write(1, kind + len(payload).to_bytes(4, "big") + payload)
def heard():
    head = sys.stdin.buffer.read(5)
    return head[:1], sys.stdin.buffer.read(int.from_bytes(head[1:], "big"))
"""
READY = 'os.write(1, b"__GANGLION__\\n")\n'


@pytest.fixture
async def opened():
    """Opens programs as screens; all are ended."""
    found = []

    async def open(program, *words):
        found.append(await Tab.open([sys.executable, "-S", "-c", PACKETS + program, *words], width=100, height=30))
        return found[-1]

    yield open
    for one in found:
        one._process.kill() if one._process.returncode is None else None
        await one.end()


async def drawn(tab):
    pieces = []

    async def draw(piece):
        pieces.append(piece)

    return await tab.show(draw), b"".join(pieces)


async def test_what_is_typed_comes_in_and_what_is_drawn_goes_out(opened):
    tab = await opened(READY + "kind, said = heard(); send(b'D', kind + said); send(b'M', b'{\"type\": \"exit\"}')")
    await tab.type("é\ud800")
    assert await drawn(tab) == ("", "Dé?".encode())


async def test_a_message_is_json_and_the_size_is_in_the_environment(opened):
    tab = await opened(
        READY + "send(b'D', heard()[1] + os.environ['COLUMNS'].encode() + b'x' + os.environ['ROWS'].encode())"
    )
    await tab.tell("resize", width=7, height=8)
    _, text = await drawn(tab)
    assert json.loads(text.removesuffix(b"100x30")) == {"type": "resize", "width": 7, "height": 8}


async def test_a_refusal_before_the_first_picture_is_given_in_its_own_words(opened):
    answer = {"schema": "error/1", "reasons": [{"text": "There is no workspace in /tmp/x."}, {"text": "Make one."}]}
    tab = await opened(f"print({json.dumps(json.dumps(answer))})")
    assert await drawn(tab) == ("There is no workspace in /tmp/x. Make one.", b"")


@pytest.mark.parametrize("noise", ["''", "'words'", "'[]'", "'{\"reasons\": [1]}'", "'x' * 3_000_000"])
async def test_anything_else_before_the_first_picture_is_said_to_be_no_screen(opened, noise):
    tab = await opened(f"print({noise})")
    words, _ = await drawn(tab)
    assert words.startswith("The screen could not be opened.")


@pytest.mark.parametrize("word", ["a stray word", "Done, they said"])
async def test_output_that_is_no_packet_ends_the_picture(opened, caplog, word):
    tab = await opened(READY + f"send(b'D', b'good'); print({word!r}, flush=True); send(b'D', b'bad'); heard()")
    assert await drawn(tab) == ("", b"good")
    assert "no packet" in caplog.text


async def test_a_screen_that_quits_when_asked_is_not_killed(opened):
    tab = await opened(READY + "sys.exit(0 if heard() == (b'M', b'{\"type\": \"quit\"}') else 3)")
    await tab.end()
    assert tab._process.returncode == 0


@pytest.mark.parametrize(
    ("stubborn", "code"),
    [("", -15), ("signal.signal(15, signal.SIG_IGN); ", -9), ("signal.signal(15, lambda *_: time.sleep(1e6)); ", -9)],
)
async def test_a_screen_that_does_not_end_is_made_to(opened, monkeypatch, stubborn, code):
    monkeypatch.setattr(tabs, "QUIT_S", 0.2)
    monkeypatch.setattr(tabs, "TERMINATE_S", 0.2)
    tab = await opened(stubborn + READY + "send(b'D', b'up'); time.sleep(1e6)")
    up = asyncio.Event()

    async def draw(piece):
        up.set()

    shown = create_task(tab.show(draw))
    await up.wait()
    shown.cancel()
    await tab.end()
    assert tab._process.returncode == code


async def test_a_screen_that_draws_into_a_full_pipe_still_hears_that_it_is_to_end(opened):
    tab = await opened(
        READY + "[send(b'D', bytes(65536)) for _ in range(100)]; sys.exit(5 if heard()[0] == b'M' else 3)"
    )
    await tab.end()
    assert tab._process.returncode == 5


async def test_the_log_says_what_a_screen_died_of_without_the_lines_before(opened, caplog):
    caplog.set_level(logging.ERROR)
    tab = await opened("secret = 'hunter2'; sys.stderr.write(secret + '\\nValueError: too long\\n\\n'); sys.exit(1)")
    await drawn(tab)
    await tab.end()
    assert "ended with 1: ValueError: too long" in caplog.text
    assert "hunter2" not in caplog.text


async def test_its_streams_are_no_terminal_and_no_shell_reads_its_words(opened):
    words = ["a b", "$(exit 3)", "'\"\n;`"]
    tab = await opened(READY + "send(b'D', json.dumps([any(map(os.isatty, range(3))), sys.argv[1:]]).encode())", *words)
    _, text = await drawn(tab)
    assert json.loads(text) == [False, words]
