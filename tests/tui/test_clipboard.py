"""Copied text reaches a clipboard, or a file that is named, and carries nothing that acts when it is pasted."""

from __future__ import annotations

import base64
import os
import re
import shutil
import stat
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from textual.app import App

from tests.tui.recorded_terminal import recorded
from tests.tui.terminal import ROOT, Terminal
from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.clipboard import MAX_TEXT_BYTES, Copied, copy

NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC)
XTERM = {"TERM": "xterm-256color", "PATH": os.environ["PATH"]}
OSC52 = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


async def copied(text, folder, *, to="osc52", environment=XTERM, app=None):
    """What `copy` says, and the clipboard that the written bytes have set."""
    app = app or App()
    async with recorded(app) as terminal:
        terminal.forget()
        result = copy(app, text, to=to, folder=folder, now=NOW, environment=environment)
        return result, terminal.written


def clipboard(written):
    """The last text that the bytes put on a clipboard; None where they put none."""
    found = OSC52.findall(written)
    return base64.b64decode(found[-1]).decode() if found else None


async def test_the_whole_text_goes_to_the_terminals_clipboard(tmp_path):
    text = "dcu-03\t学习率\n" * 50
    result, written = await copied(text, tmp_path / "c")
    assert clipboard(written) == text
    assert result == Copied(way="osc52", path=None, characters=len(text), redacted=0)
    assert not (tmp_path / "c").exists()


async def test_nothing_that_acts_is_pasted(tmp_path):
    result, written = await copied("a\x1b[200~rm -rf /\r\n\x1b[201~b\x00\x9b1m\u202ec\x07\ttab\nend\ud800", tmp_path)
    pasted = clipboard(written)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800]", pasted)
    assert pasted.split("\n") == ["a␛[200~rm -rf /", "␛[201~b␀\ufffd1m·c␇\ttab", "end\ufffd"]
    assert result.characters == len(pasted)


async def test_secrets_stay_behind_in_both_ways(tmp_path):
    for to in ("osc52", "file"):
        result, written = await copied("DB_PASSWORD=hunter2 x", tmp_path / "c", to=to)
        pasted = clipboard(written) or result.path.read_text()
        assert pasted == "DB_PASSWORD=[redacted:password] x"
        assert result.redacted == 1


async def test_the_limit_is_exact(tmp_path):
    result, written = await copied("x" * MAX_TEXT_BYTES, tmp_path / "c")
    assert (result.way, clipboard(written)) == ("osc52", "x" * MAX_TEXT_BYTES)
    assert len(OSC52.search(written)[0]) == 100_000
    for text in ("x" * (MAX_TEXT_BYTES + 1), "值" * (MAX_TEXT_BYTES // 3 + 1)):
        result, written = await copied(text, tmp_path / "c")
        assert (result.way, result.why, written) == ("file", "too-long", "")
        assert result.path.read_text("utf-8") == text


async def test_the_file_is_private_and_named(tmp_path):
    result, written = await copied("值", tmp_path / "c", to="file")
    assert (result.way, result.why, written) == ("file", "asked", "")
    assert result.path == tmp_path / "c" / "copied-20260304T120000Z.txt"
    assert result.path.read_text("utf-8") == "值"
    assert stat.S_IMODE(result.path.stat().st_mode) == 0o600


@pytest.mark.parametrize("term", ["dumb", "linux", ""])
async def test_a_terminal_without_a_clipboard_gets_a_file(tmp_path, term):
    result, written = await copied("x", tmp_path / "c", environment={"TERM": term})
    assert (result.way, result.why, written) == ("file", "no-clipboard", "")
    assert result.path.read_text() == "x"


async def test_no_terminal_at_all_gets_a_file(tmp_path):
    app = App()
    assert copy(app, "x", to="osc52", folder=tmp_path / "c", now=NOW, environment=XTERM).way == "file"
    async with app.run_test():
        assert copy(app, "x", to="osc52", folder=tmp_path / "c", now=NOW, environment=XTERM).why == "no-clipboard"


async def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "c").write_text("")
    with pytest.raises(TrainflowError, match="not a directory"):
        await copied("x", tmp_path / "c", to="file")


# Multiplexers


@pytest.mark.parametrize("term", ["screen-256color", "tmux-256color"])
async def test_a_multiplexer_at_the_other_end_of_the_line_is_said(tmp_path, term):
    result, written = await copied("x", tmp_path, environment=XTERM | {"TERM": term})
    assert (result.way, result.why, clipboard(written)) == ("osc52", "may-be-dropped", "x")


@pytest.fixture
def fake_tmux(tmp_path):
    """A `tmux` that keeps its words and its input, or fails where a file says so."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "tmux"
    program.write_text(f'#!/bin/sh\necho "$@" >{folder}/words\ncat >{folder}/input\nexit "$(cat {folder}/code)"\n')
    program.chmod(0o755)
    (folder / "code").write_text("0")
    return folder, {"TERM": "screen", "TMUX": "/tmp/tmux-1/default,1,0", "PATH": f"{folder}:{os.environ['PATH']}"}


async def test_tmux_is_asked_to_set_the_clipboard(tmp_path, fake_tmux):
    folder, environment = fake_tmux
    result, written = await copied("值\tx", tmp_path / "c", environment=environment)
    assert (result.way, result.why, written) == ("tmux", "", "")
    assert (folder / "words").read_text() == "load-buffer -w -\n"
    assert (folder / "input").read_text("utf-8") == "值\tx"


async def test_a_tmux_that_fails_or_is_missing_gives_a_file(tmp_path, fake_tmux):
    folder, environment = fake_tmux
    (folder / "code").write_text("1")
    for path in (environment["PATH"], str(tmp_path)):
        result, written = await copied("x", tmp_path / "c", environment=environment | {"PATH": path})
        assert (result.way, result.why, written) == ("file", "no-clipboard", "")


async def test_screen_passes_it_on_in_pieces(tmp_path):
    text = "x" * 3000
    result, written = await copied(text, tmp_path, environment=XTERM | {"STY": "1.pts", "TERM": "screen"})
    pieces = re.findall(r"\x1bP(.*?)\x1b\\", written, re.DOTALL)
    assert all(len(piece) <= 700 for piece in pieces)
    assert "".join(f"\x1bP{piece}\x1b\\" for piece in pieces) == written
    assert (result.way, clipboard("".join(pieces))) == ("osc52", text)


_IN_A_PANE = """
import os, sys
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from trainflow_tui.screens.clipboard import copy
def write(data):
    sys.stdout.write(data)
    sys.stdout.flush()
app = SimpleNamespace(_driver=SimpleNamespace(write=write), is_headless=False, is_web=False)
text = "from the pane " + "x" * 3000
print(copy(app, text, to="osc52", folder=Path(sys.argv[1]), now=datetime.now(UTC)).way, "done", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("multiplexer", ["tmux", "screen"])
def test_a_real_multiplexer_with_its_own_settings_sets_the_outer_clipboard(tmp_path, multiplexer):
    if shutil.which(multiplexer) is None:
        pytest.skip(f"{multiplexer} is not installed")
    (tmp_path / "pane.py").write_text(_IN_A_PANE)
    pane = [sys.executable, str(tmp_path / "pane.py"), str(tmp_path / "c")]
    private = {
        "TMUX": "",
        "TMUX_TMPDIR": str(tmp_path),
        "SCREENDIR": str(tmp_path / "screens"),
        "PYTHONPATH": str(ROOT),
    }
    (tmp_path / "screens").mkdir(mode=0o700)
    argv = {
        "tmux": ["tmux", "-f", "/dev/null", "new-session", " ".join(pane)],
        "screen": ["screen", "-c", "/dev/null", *pane],
    }[multiplexer]
    ending = {"tmux": ["tmux", "kill-server"], "screen": ["screen", "-X", "quit"]}[multiplexer]
    with Terminal(argv, size=(80, 24), env=private, config_home=tmp_path) as terminal:
        try:
            terminal.wait_for("done")
            terminal.until(lambda: b"\x07" in terminal.raw.partition(b"]52;")[2], "the clipboard")
        finally:  # their servers outlive the terminal
            subprocess.run(ending, env=os.environ | private, check=False)
    sequence = re.search(rb"\x1b\]52;c?;([A-Za-z0-9+/=]*)\x07", bytes(terminal.raw))
    assert base64.b64decode(sequence[1]).decode() == "from the pane " + "x" * 3000
