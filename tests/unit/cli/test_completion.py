"""Completion: what the program offers, and that real shells put it into the line."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pyte
import pytest

from trainflow_tui.cli import candidates
from trainflow_tui.cli.completion import BashLine
from trainflow_tui.cli.frame import run
from trainflow_tui.cli.main import NOUNS, root
from trainflow_tui.cli.topics import TOPICS
from trainflow_tui.collaboration import approvals, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.collaboration.questions import listed
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

BIN = Path(sys.executable).parent
PROGRAM = BIN / "trainflow"
needs_program = pytest.mark.skipif(not PROGRAM.exists(), reason=f"{PROGRAM} is not installed")


@pytest.fixture
def offered(monkeypatch, capfd):
    """What the program answers to bash for a line up to the cursor: pairs of kind and value."""

    def ask(line, *, cwd, **env):
        monkeypatch.chdir(cwd)
        given = {"COMP_WORDS": line, "COMP_CWORD": "0", "_TRAINFLOW_COMPLETE": "bash_complete"} | env
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        assert run(root, []) == 0
        found = capfd.readouterr()
        assert found.err == ""
        return [tuple(row.split(",", 1)) for row in found.out.splitlines() if row]

    return ask


@pytest.fixture
def values(offered):
    return lambda line, **named: [value for _, value in offered(line, **named)]


class Filled:
    """Two tasks, a question with an id of the file's kind, a pending and a denied request."""

    def __init__(self, path):
        self.root = path
        path.mkdir(mode=0o700)
        workspace = Workspace.open(path, create=True)
        ledger, by = workspace.ledger, Actor(door="cli", uid=1000, user="operator", tty="/dev/pts/7")
        tasks.create(workspace, title="Adapt the model", actor=by)
        tasks.create(workspace, title="Second, with: signs", id="second", actor=by)
        (path / "collaboration" / "second" / "QUESTIONS.md").write_text("## Why is it slow?\n\nSince Monday.\n")
        collect(workspace, actor=by)
        self.question = listed(ledger)[0].id
        ids = []
        for title in ("Start", "Clean up"):
            wanted = ApprovalRequest(task="second", title=title, payload=CommandPayload(argv=["true"]))
            ids.append(approvals.request(ledger, wanted, actor=by).id)
        self.pending, self.denied = ids
        approvals.decide(ledger, self.denied, "deny", by=by, agent=None, comment="no")
        workspace.close()


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    return Filled(tmp_path_factory.mktemp("filled") / "ws")


def test_every_noun_is_offered_and_none_is_imported(values, tmp_path):
    assert values("trainflow ", cwd=tmp_path) == list(NOUNS)
    probe = (
        "import os, sys; os.environ.update(COMP_WORDS='trainflow ', COMP_CWORD='0', _TRAINFLOW_COMPLETE='bash_complete');"
        "from trainflow_tui.cli import main; from trainflow_tui.cli.frame import run; run(main.root, []);"
        "print(sorted(m for m in sys.modules if m.startswith('trainflow_tui')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", probe], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = done.stderr
    assert "trainflow_tui.workspace" not in loaded
    assert not [
        name for name, (place, _) in NOUNS.items() if name != "completion" and f"'{place.split(':')[0]}'" in loaded
    ]


def test_ids_come_from_the_ledger(values, filled):
    at = {"cwd": filled.root}
    assert sorted(values("trainflow task show ", **at)) == ["adapt-the-model", "second"]
    assert values("trainflow guidance list ad", **at) == ["adapt-the-model"]
    assert values("trainflow approval list --task se", **at) == ["second"]
    assert values("trainflow approval list --task=se", **at) == ["second"]
    assert values("trainflow question answer ", **at) == [filled.question]
    assert filled.question.startswith("q:")
    assert values(f"trainflow question answer {filled.question[:4]}", **at) == [filled.question]


def test_only_what_waits_is_offered_for_a_decision(values, filled):
    at = {"cwd": filled.root}
    assert values("trainflow approval decide ap", **at) == [filled.pending]
    assert set(values("trainflow approval show ap", **at)) == {filled.pending, filled.denied}
    assert values("trainflow approval consume ap", **at) == []
    assert values(f"trainflow approval decide {filled.pending} ", **at) == ["approve", "deny", "changes"]


def test_stages_are_those_that_may_follow(values, filled):
    assert values("trainflow task move second ", cwd=filled.root) == [
        "blocked",
        "cancelled",
        "failed",
        "paused",
        "prepared",
    ]


def test_runs_are_offered_for_nothing_that_makes_a_new_id(values, filled):
    assert values("trainflow task create x --id ", cwd=filled.root) == []


def test_files_are_left_to_the_shell(offered, filled):
    at = {"cwd": filled.root}
    assert offered("trainflow log add tr", **at) == [("file", "tr")]
    assert offered("trainflow trace hotspots ", **at) == [("file", "")]
    assert offered("trainflow --workspace /t", **at) == [("dir", "/t")]


def test_global_options_are_offered_before_and_after_the_verb(values, filled):
    at = {"cwd": filled.root}
    for line in ("trainflow --", "trainflow task --", "trainflow task list --"):
        assert {"--workspace", "--json", "--no-json", "--readonly"} <= set(values(line, **at)), line


def test_a_setting_is_offered_its_choices(values, filled):
    assert values("trainflow --theme ", cwd=filled.root) == ["dark", "light", "ansi", "high-contrast", "colour-blind"]
    assert values("trainflow --lang=z", cwd=filled.root) == ["zh-CN"]


def test_topics_commands_and_verbs_are_offered_to_help(values, filled):
    at = {"cwd": filled.root}
    assert set(values("trainflow help ", **at)) == {*TOPICS, *NOUNS}
    assert values("trainflow help appr", **at) == ["approvals", "approval"]
    assert values("trainflow help task c", **at) == ["create"]
    assert values("trainflow help start ", **at) == []


def test_the_workspace_that_the_line_names_is_read(values, filled, tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    assert values("trainflow task show ", cwd=away) == []
    assert values(f"trainflow --workspace {filled.root} task show ad", cwd=away) == ["adapt-the-model"]
    assert values(f"trainflow task show --workspace {filled.root} ad", cwd=away) == ["adapt-the-model"]
    assert values("trainflow task show ad", cwd=away, TRAINFLOW_WORKSPACE=str(filled.root)) == ["adapt-the-model"]
    assert list(away.iterdir()) == []


def test_a_workspace_is_left_as_it_is(values, filled):
    def state():
        kept = [p for p in filled.root.rglob("*") if not p.name.endswith(("-shm", "-wal"))]
        return {p: p.read_bytes() if p.is_file() else None for p in kept}

    before = state()
    assert values("trainflow task show ", cwd=filled.root)
    assert state() == before


@pytest.mark.parametrize("broken", ["ledger", "settings", "link", "variable"])
def test_a_broken_workspace_offers_nothing_and_says_nothing(values, filled, tmp_path, broken):
    place, env = shutil.copytree(filled.root, tmp_path / "ws"), {}
    if broken == "ledger":
        for file in (place / ".trainflow").glob("ledger.db*"):
            file.write_bytes(b"no database at all" * 500)
    elif broken == "settings":
        (place / "trainflow.toml").write_text("theme = 7\n")
    elif broken == "link":
        (place / ".trainflow").rename(tmp_path / "elsewhere")
        (place / ".trainflow").symlink_to(tmp_path / "elsewhere")
    else:
        env = {"TRAINFLOW_POLL_SECONDS": "often"}
    assert values("trainflow task show ", cwd=place, **env) == []
    assert "--json" in values("trainflow task show --", cwd=place, **env)


@pytest.mark.parametrize("id", ["a b", "$(reboot)", "`x`", "a;b", "-rf", "*", "a\nb", "é", ""])
def test_an_id_that_a_shell_would_read_otherwise_is_not_offered(id):
    assert not candidates._SAFE.fullmatch(id)


def test_every_form_of_id_that_the_program_makes_is_offered(filled):
    for id in (filled.pending, filled.question, "g:k3f9qz", "G7", "Q1", "adapt-the-model", "0f3ac2b91d77"):
        assert candidates._SAFE.fullmatch(id), id


@pytest.mark.parametrize(
    ("line", "words", "last"),
    [
        ("trainflow ", [], ""),
        ("trainflow ta", [], "ta"),
        ("trainflow task show ", ["task", "show"], ""),
        ("trainflow log add 'my lo", ["log", "add"], "my lo"),
        ("trainflow log add 'my ", ["log", "add"], "my "),
        ("trainflow log add my\\ lo", ["log", "add"], "my lo"),
        ("trainflow question answer q:ab", ["question", "answer"], "q:ab"),
    ],
)
def test_a_line_is_cut_at_the_cursor_as_the_shell_reads_it(monkeypatch, line, words, last):
    monkeypatch.setenv("COMP_WORDS", line)
    found = BashLine(root, {}, "trainflow", "_TRAINFLOW_COMPLETE").get_completion_args()
    assert found == (words, last)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_printed_as_it_is_and_as_json_on_request(capfd, shell):
    assert run(root, ["completion", shell]) == 0
    script = capfd.readouterr().out
    assert "_TRAINFLOW_COMPLETE" in script
    assert run(root, ["completion", shell, "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["schema"], found["shell"], found["script"]) == ("completion/1", shell, script)


class Shell:
    """An interactive shell on a pseudo-terminal of its own, seen as a person sees it."""

    def __init__(self, words, env, cwd):
        self.screen = pyte.Screen(100, 30)
        self._stream = pyte.ByteStream(self.screen)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(words[0], words, env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))

    @property
    def text(self):
        return " ".join(word for line in self.screen.display for word in line.split())

    def until(self, wanted):
        deadline = time.monotonic() + 30
        while wanted not in self.text:
            left = deadline - time.monotonic()
            if left < 0 or not select.select([self._fd], [], [], left)[0]:
                pytest.fail(f"{wanted!r} does not appear:\n{self.text}")
            self._stream.feed(os.read(self._fd, 65536))

    def type(self, text):
        os.write(self._fd, text.encode())

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._fd)


def started(shell, home, cwd):
    env = {
        "HOME": str(home),
        "PATH": f"{BIN}:/usr/bin:/bin",
        "TERM": "xterm",
        "LANG": "C.UTF-8",
        "SHELL": f"/bin/{shell}",
    }
    load = f'eval "$({PROGRAM} completion {shell})"'
    if shell == "bash":
        (home / "rc").write_text(f"PS1='READY> '\nbind 'set bell-style none'\n{load}\n")
        words = ["bash", "--noprofile", "--rcfile", str(home / "rc"), "-i"]
    elif shell == "zsh":
        (home / ".zshrc").write_text(
            f"PROMPT='READY> '\nunsetopt beep\nautoload -Uz compinit\ncompinit -u -D\n{load}\n"
        )
        words = ["zsh", "-i"]
    else:
        folder = home / ".config" / "fish"
        (folder / "completions").mkdir(parents=True)
        script = subprocess.run([PROGRAM, "completion", "fish"], capture_output=True, text=True, check=True).stdout
        (folder / "completions" / "trainflow.fish").write_text(script)
        (folder / "config.fish").write_text("set fish_greeting\nfunction fish_prompt; echo -n 'READY> '; end\n")
        words = ["fish", "-i"]
    return Shell(words, env, cwd)


@needs_program
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_real_shell_completes_nouns_verbs_options_and_ids(filled, tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    home = tmp_path / "home"
    home.mkdir()
    running = started(shell, home, filled.root)
    try:
        running.until("READY>")
        running.type("trainflow quest\t")
        running.until("READY> trainflow question")
        running.type("ans\t")
        running.until("READY> trainflow question answer")
        running.type(filled.question[:3] + "\t")  # behind a colon, where bash begins a new word
        running.until(f"question answer {filled.question}")
        running.type("--text '中文' --work\t")
        running.until(f"question answer {filled.question} --text '中文' --workspace")
    finally:
        running.end()
