"""Another program on our terminal: which one, what it gets, what it may not do, and how the screen comes back."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path

import pytest
from textual.app import SuspendNotSupported

from tests.tui.terminal import ROOT, Terminal
from trainflow_tui.errors import TrainflowError
from trainflow_tui.screens.outside import ARMED_AFTER_S, NoPager, edit, page

SECRET = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class App:
    """Stands for the application: says whether it was suspended."""

    armed_after = 0.0

    def __init__(self, *, can_suspend=True):
        self.can_suspend = can_suspend
        self.suspended = 0

    @contextlib.contextmanager
    def suspend(self):
        if not self.can_suspend:
            raise SuspendNotSupported("no")
        self.suspended += 1
        yield  # as in Textual, nothing takes the terminal back where the block raises


@pytest.fixture
def programs(tmp_path):
    """A folder of programs that write down how they were called, and the environment that has only them."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(*names, code="exit 0"):
        for name in names:
            program = folder / name
            # The last word is the file.
            program.write_text(
                f'#!/bin/sh\nprintf "%s\\n" "$0" "$@" >"{tmp_path}/words"\n/usr/bin/env >"{tmp_path}/env"\n'
                f'for last; do :; done\n/bin/cat "$last" >"{tmp_path}/content"\n/bin/ls -ld "$last" >"{tmp_path}/mode"\n{code}\n'
            )
            program.chmod(0o755)
        return {"PATH": str(folder)}

    return make


def called(tmp_path):
    program, *words = (tmp_path / "words").read_text().splitlines()
    return [Path(program).name, *words]


# The editor


@pytest.mark.parametrize(
    ("variables", "installed", "words"),
    [
        ({"VISUAL": "ed1 -x 'a b'", "EDITOR": "ed2"}, ["ed1", "ed2", "vi"], ["ed1", "-x", "a b"]),
        ({"VISUAL": "", "EDITOR": "ed2"}, ["ed2", "vi"], ["ed2"]),
        ({"EDITOR": "ed2; touch x $(touch y)"}, ["ed2;"], ["ed2;", "touch", "x", "$(touch", "y)"]),
        ({}, ["vi", "nano"], ["vi"]),
        ({}, ["nano"], ["nano"]),
    ],
)
def test_the_editor_is_the_users_and_gets_the_path_last(tmp_path, programs, variables, installed, words):
    path = tmp_path / "-G UIDANCE.md"
    path.write_text("- mine\n")
    app = App()
    edit(app, path, environment=programs(*installed) | variables)
    assert called(tmp_path) == [*words, str(path)]
    assert app.suspended == 1
    assert not (tmp_path / "x").exists()
    assert not (ROOT / "x").exists()


def test_a_missing_file_is_made_private_and_one_that_is_there_is_not_touched(tmp_path, programs):
    environment = programs("vi")
    old = os.umask(0)
    try:
        edit(App(), tmp_path / "new.md", environment=environment)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.md").stat().st_mode) == 0o600
    assert (tmp_path / "new.md").read_bytes() == b""
    mine = tmp_path / "mine.md"
    mine.write_bytes(b"\xff\x00 mine")
    mine.chmod(0o640)
    before = mine.stat()
    edit(App(), mine, environment=environment)
    assert mine.read_bytes() == b"\xff\x00 mine"
    after = mine.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_ino) == (before.st_mode, before.st_mtime_ns, before.st_ino)


def test_what_is_no_file_is_not_opened(tmp_path, programs):
    environment = programs("vi")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "bin", "missing/x"):
        app = App()
        with pytest.raises(TrainflowError, match=name):
            edit(app, tmp_path / name, environment=environment)
        assert app.suspended == 0
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("variables", "code", "words"),
    [
        ({"EDITOR": "nowhere -x"}, "exit 0", ["$EDITOR names nowhere", "install it"]),
        ({"VISUAL": "vi 'x"}, "exit 0", ["$VISUAL", "quotation", "Correct $VISUAL"]),
        ({}, "exit 3", ["vi ended with code 3", "GUIDANCE.md"]),
        ({}, "kill -9 $$", ["vi was ended by signal 9", "GUIDANCE.md"]),
    ],
)
def test_a_failing_editor_is_named(tmp_path, programs, variables, code, words):
    app = App()
    with pytest.raises(TrainflowError) as problem:
        edit(app, tmp_path / "GUIDANCE.md", environment=programs("vi", code=code) | variables)
    for word in words:
        assert word in str(problem.value)


def test_an_editor_that_is_not_a_program_is_named_and_the_screen_comes_back(tmp_path, programs):
    environment = programs("vi")
    (tmp_path / "bin" / "vi").write_bytes(b"\x7fELF no")
    app = App()
    with pytest.raises(TrainflowError, match="vi cannot be started"):
        edit(app, tmp_path / "x", environment=environment)
    assert app.suspended == 1
    assert app.armed_after > time.monotonic()


def test_without_an_editor_or_a_terminal_the_step_names_the_file(tmp_path, programs):
    (tmp_path / "empty").mkdir()
    for app, environment in ((App(), {"PATH": str(tmp_path / "empty")}), (App(can_suspend=False), programs("vi"))):
        with pytest.raises(TrainflowError) as problem:
            edit(app, tmp_path / "GUIDANCE.md", environment=environment)
        assert str(tmp_path / "GUIDANCE.md") in problem.value.next_step


@pytest.mark.parametrize("code", ["exit 0", "exit 1"])
def test_keys_from_before_the_return_are_too_old(tmp_path, programs, code):
    app = App()
    with contextlib.suppress(TrainflowError):
        edit(app, tmp_path / "x", environment=programs("vi", code=code))
    assert 0 < app.armed_after - time.monotonic() <= ARMED_AFTER_S


# The pager


@pytest.mark.parametrize(
    ("variables", "installed", "words"),
    [
        ({"PAGER": "most -x"}, ["most", "less"], ["most", "-x"]),
        ({"PAGER": "cat"}, ["cat", "less"], ["less"]),
        ({}, ["less", "more"], ["less"]),
        ({}, ["more"], ["more"]),
    ],
)
def test_the_pager_is_the_users_or_less(tmp_path, programs, variables, installed, words):
    page(App(), "Question q-7", "text", environment=programs(*installed) | variables)
    *given, path = called(tmp_path)
    assert given == words
    assert Path(path).name == "Question-q-7.txt"


def test_the_pager_gets_harmless_text_in_a_private_file_that_is_gone_afterwards(tmp_path, programs):
    environment = programs("less") | {"LESS": "-R", "LESSOPEN": "|x %s", "LESSSECURE": "0", "HOME": "/h"}
    page(App(), "../t", f"a\x1b[2J\tb\r\n值 {SECRET}\n\n", environment=environment)
    assert (tmp_path / "content").read_text("utf-8") == "a␛[2J   b\n值 [redacted:github]\n"
    assert (tmp_path / "mode").read_text().startswith("-rw-------")
    path = Path(called(tmp_path)[-1])
    assert not path.exists()
    assert not path.parent.exists()
    assert path.parent.parent == Path(tempfile.gettempdir())
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines() if "=" in line)
    assert (seen["LESSSECURE"], seen["LESSHISTFILE"], seen["HOME"]) == ("1", "-", "/h")
    assert "r" not in seen["LESS"].lower()
    assert "LESSOPEN" not in seen


def test_a_failing_pager_is_named_and_its_file_is_gone(tmp_path, programs):
    with pytest.raises(TrainflowError, match="less ended with code 2"):
        page(App(), "t", "x", environment=programs("less", code="exit 2"))
    assert not Path(called(tmp_path)[-1]).parent.exists()


def test_without_a_pager_or_a_terminal_the_caller_is_told(tmp_path, programs):
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoPager):
        page(App(), "t", "x", environment={"PATH": str(tmp_path / "empty")})
    with pytest.raises(NoPager):
        page(App(can_suspend=False), "t", "x", environment=programs("less"))


def test_a_full_disk_is_an_error_with_a_step(programs, monkeypatch):
    def refuse(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("trainflow_tui.files.os.write", refuse)
    with pytest.raises(TrainflowError, match="Make room"):
        page(App(), "t", "x", environment=programs("less"))


# On a real terminal

_APP = """
import sys
from pathlib import Path
from textual import events
from textual.app import App
from textual.widgets import Static
from trainflow_tui.screens import outside

class Screen(App):
    armed_after = 0.0
    keys = ""
    def compose(self):
        yield Static("ready", markup=False)
    async def on_event(self, event):
        if isinstance(event, events.Key) and event.time < self.armed_after:
            return
        await super().on_event(event)
    def on_key(self, event):
        if event.key == "e":
            outside.edit(self, Path(sys.argv[1]))
        elif event.key == "o":
            outside.page(self, "title", "first\\x1b[31m\\n" + "line\\n" * 200 + "last")
        else:
            self.keys += event.key
        self.query_one(Static).update(f"back after {event.key}; keys {self.keys}.")

Screen().run()
"""
_EDITOR = """#!/bin/sh
trap 'echo interrupted >>"$1"' INT
stty -a | grep -q ' icanon' && stty -a | grep -q ' echo ' && echo cooked >>"$1"
echo EDITOR
while [ ! -e "$1.go" ]; do sleep 0.05; done
echo end >>"$1"
"""


@pytest.fixture
def screen(tmp_path):
    (tmp_path / "app.py").write_text(_APP)
    editor = tmp_path / "fake-editor"
    editor.write_text(_EDITOR)
    editor.chmod(0o755)
    environment = {"PYTHONPATH": str(ROOT), "EDITOR": str(editor), "VISUAL": "", "PAGER": "", "LESS": "-R"}
    argv = [sys.executable, str(tmp_path / "app.py"), str(tmp_path / "GUIDANCE.md")]
    with Terminal(argv, size=(60, 12), env=environment, config_home=tmp_path) as terminal:
        terminal.wait_for("ready")
        yield terminal, tmp_path / "GUIDANCE.md"


def press_until(terminal, key, words):
    """Keys are dropped for a moment after the return: press until one is taken."""

    def taken():
        terminal.send(key)
        return terminal.pump(0.1) and words in terminal.text

    terminal.until(taken, words)


def test_the_editor_has_the_terminal_and_no_key_typed_meanwhile_reaches_the_screen(screen):
    terminal, path = screen
    terminal.send("e")
    terminal.wait_for("EDITOR")
    assert b"\x1b[?1049l" in terminal.raw
    terminal.send("dd\rdd")
    terminal.send("\x03")
    terminal.until(lambda: "interrupted" in path.read_text(), "the interrupt")
    terminal.send("dd\rdd")
    (path.parent / "GUIDANCE.md.go").write_text("")
    terminal.wait_for("back after e; keys .")
    press_until(terminal, "k", "keys k")
    assert "d" not in terminal.text.split("keys ")[1]
    assert path.read_text().splitlines() == ["cooked", "interrupted", "end"]


def test_less_shows_the_text_and_starts_nothing(screen):
    if shutil.which("less") is None:
        pytest.skip("less is not installed")
    terminal, _path = screen
    terminal.send("o")
    terminal.wait_for("first␛[31m")
    terminal.wait_for("title.txt")
    for starter in ("!", "v", "|"):  # a shell, an editor, a pipe
        terminal.send(starter)
        terminal.wait_for("Command not available")
        terminal.send("\r")
        terminal.wait_gone("Command not available")
    terminal.send("G")
    terminal.wait_for("last")
    terminal.send("q")
    terminal.wait_for("back after o")
