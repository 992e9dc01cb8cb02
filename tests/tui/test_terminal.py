"""The program on a real pseudo-terminal: how it starts, ends, stands still, and whom it obeys."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
import time

import pytest

from tests.conftest import Command
from tests.tui.terminal import PATIENCE_S, ROOT, Terminal, processes_about
from trainflow_tui.collaboration import approvals, questions, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

REQUEST = "Restart from step 150"
ASKING = "This screen runs the collector"
DECIDING = "approve once"
STALL_S = 0.3
ESCAPE = "\x1b[27u"
"""As a terminal with the Kitty protocol sends the key: a bare ESC and a letter soon after it are alt and that letter."""


@pytest.fixture(scope="session")
def demo_story(tmp_path_factory):
    """A workspace in which the demo's story was played to its end."""
    root = tmp_path_factory.mktemp("demo") / "story"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TRAINFLOW_")}
    subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "demo", str(root), "--headless"],
        check=True,
        capture_output=True,
        cwd=ROOT,
        env=clean | {"XDG_CONFIG_HOME": str(root.parent)},
    )
    return root


@pytest.fixture
def root(demo_story, tmp_path):
    """A copy of the story for one test; what still runs on it afterwards is ended."""
    root = tmp_path / "ws"
    shutil.copytree(demo_story, root)
    yield root
    for pid in processes_about(root):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def screen(root, tmp_path):
    """Opens the screen on the copy."""

    def opened(size=(120, 40), env=None, *, words=()):
        argv = [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), *words]
        return Terminal(argv, size=size, env=env, config_home=tmp_path / "config")

    return opened


def collectors(root):
    return [pid for pid, command in processes_about(root).items() if " watch" in command]


def wait_for_collector(terminal, root):
    """The screen says that one collects, and there is one."""
    terminal.wait_for("watching")
    assert len(collectors(root)) == 1


def state_of_requests(root):
    with_terminal = Workspace.open(root)
    try:
        return {a.id: a for a in approvals.listed(with_terminal.ledger)}
    finally:
        with_terminal.close()


# Start and end


def test_the_first_picture_holds_what_is_stored_before_anything_is_collected(screen, root):
    with screen(env={"TRAINFLOW_READONLY": "1"}) as terminal:
        for words in ("adapt-7b", "profile-moe", REQUEST, "simulated_rank1of2.json", "loss 4.", "READ-ONLY"):
            terminal.wait_for(words)
        assert collectors(root) == []


def quit_by_key(terminal):
    terminal.send("q")
    terminal.wait_for(ASKING)
    terminal.send("q")


ENDINGS = {
    "q": (quit_by_key, 0),
    "SIGTERM": (lambda terminal: terminal.signal(signal.SIGTERM), 143),
    "SIGHUP": (lambda terminal: terminal.signal(signal.SIGHUP), 129),
    "hang-up": (Terminal.hang_up, 129),
    "SIGKILL": (lambda terminal: terminal.signal(signal.SIGKILL), -9),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_the_collector_ends_with_the_screen_however_it_ends(screen, root, how):
    end, code = ENDINGS[how]
    with screen() as terminal:
        wait_for_collector(terminal, root)
        end(terminal)
        assert terminal.exit_code() == code
        terminal.until(lambda: not processes_about(root), "every process to end")
    workspace = Workspace.open(root)
    assert leases.holder(workspace.ledger, "watch") is None
    workspace.close()


@pytest.mark.parametrize("how", ["q", "SIGTERM", "SIGHUP"])
def test_the_terminal_is_given_back_as_it_was(screen, root, how):
    with screen() as terminal:
        before = terminal.attributes()
        wait_for_collector(terminal, root)
        assert not terminal.attributes()[3] & termios.ECHO
        ENDINGS[how][0](terminal)
        terminal.exit_code()
        for taken, given_back in (
            (b"\x1b[?1049h", b"\x1b[?1049l"),  # alternate screen
            (b"\x1b[?25l", b"\x1b[?25h"),  # cursor
            (b"\x1b[?1000h", b"\x1b[?1000l"),  # mouse
            (b"\x1b[?2004h", b"\x1b[?2004l"),  # bracketed paste
        ):
            assert terminal.raw.rfind(taken) < terminal.raw.rfind(given_back), given_back
        assert terminal.attributes() == before


def test_a_terminal_that_takes_nothing_does_not_keep_the_program(screen, root):
    with screen() as terminal:
        before = terminal.attributes()
        wait_for_collector(terminal, root)
        for n in range(30):  # more than the kernel holds, and nobody reads it
            terminal.send("15"[n % 2])
            time.sleep(0.1)
        terminal.signal(signal.SIGTERM)
        end = time.monotonic() + PATIENCE_S
        while terminal.poll() is None and time.monotonic() < end:
            time.sleep(0.02)
        assert terminal.poll() == 143
        assert terminal.attributes() == before
        terminal.until(lambda: not processes_about(root), "every process to end")
        terminal.until(lambda: b"\x1b[?1049l" in terminal.raw, "the way back to the shell's own picture")


def test_a_terminal_that_answers_no_question_is_drawn_all_the_same(screen, root, monkeypatch):
    monkeypatch.setattr("tests.tui.terminal.ANSWERS", ())
    with screen() as terminal:
        wait_for_collector(terminal, root)
        for key, words in (("1", "Approvals"), ("5", "Throughput"), ("0", "Needs you"), ("1", "Approvals")):
            terminal.send(key)
            terminal.wait_for(words)
        quit_by_key(terminal)
        assert terminal.exit_code() == 0


STOPS = {
    "ctrl+z": lambda terminal: terminal.send("\x1a"),
    "SIGTSTP": lambda terminal: terminal.signal(signal.SIGTSTP),
    "SIGSTOP": lambda terminal: terminal.signal(signal.SIGSTOP),
}


@pytest.mark.parametrize("how", ["ctrl+z", pytest.param("SIGTSTP", marks=pytest.mark.long), "SIGSTOP"])
def test_to_the_shell_and_back(screen, root, how):
    with screen() as terminal:
        before = terminal.attributes()
        wait_for_collector(terminal, root)
        terminal.settle()
        STOPS[how](terminal)
        terminal.until(lambda: state_of_process(terminal.pid).startswith("T"), "the stop")
        terminal.pump(0.2)
        if how != "SIGSTOP":  # which gives no time to do anything
            assert terminal.attributes() == before
            assert terminal.raw.rfind(b"\x1b[?1049h") < terminal.raw.rfind(b"\x1b[?1049l")
        # A stop without a warning leaves everything running: Textual would start its threads a second time.
        tasks_of = f"/proc/{terminal.pid}/task"
        threads = len(os.listdir(tasks_of)) if how == "SIGSTOP" and os.path.exists(tasks_of) else None
        terminal.forget_picture()
        terminal.signal(signal.SIGCONT)
        for words in ("0 Overview", "Needs you", "profile-moe", REQUEST):
            terminal.wait_for(words)
        assert not terminal.attributes()[3] & termios.ECHO
        if threads is not None:
            terminal.settle()
            assert len(os.listdir(tasks_of)) == threads
        terminal.pump(0.6)  # keys do nothing until then
        quit_by_key(terminal)
        assert terminal.exit_code() == 0
        assert terminal.attributes() == before
        terminal.until(lambda: not processes_about(root), "every process to end")


def test_no_key_that_was_pressed_while_it_was_stopped_decides(screen, root):
    with screen() as terminal:
        wait_for_collector(terminal, root)
        terminal.send("a")
        terminal.wait_for(DECIDING)
        terminal.pump(0.6)
        terminal.signal(signal.SIGTSTP)
        terminal.until(lambda: state_of_process(terminal.pid).startswith("T"), "the stop")
        terminal.pump(0.2)
        terminal.send("a\na\rad")
        terminal.forget_picture()
        given = len(terminal.raw)
        terminal.signal(signal.SIGCONT)
        terminal.until(lambda: b"\x1b[?1049h" in terminal.raw[given:], "the terminal to be taken")
        terminal.send("a")
        terminal.wait_for(DECIDING)
        terminal.pump(0.2)
        assert DECIDING in terminal.text
        assert [a.state for a in state_of_requests(root).values()] == ["pending"]
        terminal.pump(0.6)
        terminal.send("a")
        terminal.wait_for("Decision recorded")


def state_of_process(pid):
    return subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout


def test_quitting_asks_and_goes_back(screen, root):
    with screen() as terminal:
        wait_for_collector(terminal, root)
        terminal.send("q")
        for words in (ASKING, "q  Quit", "w  Quit and leave", "b  Back"):
            terminal.wait_for(words)
        terminal.send("b")
        terminal.wait_gone(ASKING)
        assert len(collectors(root)) == 1


def test_a_collector_can_be_left_running(screen, root):
    with screen() as terminal:
        wait_for_collector(terminal, root)
        terminal.send("q")
        terminal.wait_for(ASKING)
        terminal.send("w")
        assert terminal.exit_code() == 0
        terminal.until(lambda: _holder(root) is not None, "the collector that stays to take the lease")
        (left,) = collectors(root)
        assert "--with-parent" not in processes_about(root)[left]
        os.kill(left, signal.SIGTERM)
        terminal.until(lambda: not processes_about(root), "the collector to end")


def _holder(root):
    workspace = Workspace.open(root)
    try:
        return leases.holder(workspace.ledger, "watch")
    finally:
        workspace.close()


def test_a_screen_that_runs_no_collector_quits_without_asking(screen, root):
    watch = subprocess.Popen(
        [sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "watch"], cwd=ROOT, stdout=subprocess.DEVNULL
    )
    try:
        with screen() as terminal:
            terminal.wait_for("watching")
            terminal.send("q")
            assert terminal.exit_code() == 0
        assert collectors(root) == [watch.pid]
    finally:
        watch.terminate()
        watch.wait()


# Who decides


def test_an_approval_by_keys_is_recorded_with_the_terminal(screen, root):
    with screen() as terminal:
        terminal.wait_for(REQUEST)
        terminal.send("a")
        terminal.wait_for(DECIDING)
        terminal.pump(0.6)
        terminal.send("a")
        terminal.wait_for("Decision recorded")
    code, answer = Command(root).json("approval", "list")
    assert code == 0
    (found,) = answer["approvals"]
    assert found["state"] == "approved"
    decision = state_of_requests(root)[found["id"]].decision
    assert decision.by.tty.startswith("/dev/")
    assert decision.by.door == "tui"
    assert decision.input == "key"
    assert decision.shown_for_ms >= 400


def test_in_a_window_that_became_too_small_nothing_is_decided(screen, root):
    with screen() as terminal:
        terminal.wait_for(REQUEST)
        terminal.send("a")
        terminal.wait_for(DECIDING)
        terminal.pump(0.6)
        terminal.resize(59, 15)
        terminal.settle()
        terminal.send("a")
        terminal.wait_for("Nothing is decided")
        terminal.send("d")
        terminal.send("c")
        terminal.settle()
        terminal.resize(120, 40)
        terminal.wait_for("ask for changes")
        assert "Why not?" not in terminal.text
        assert [a.state for a in state_of_requests(root).values()] == ["pending"]
        terminal.pump(0.6)
        terminal.send("a")
        terminal.wait_for("Decision recorded")


def test_keys_typed_ahead_of_a_dialog_decide_nothing(root, tmp_path):
    # The loop stands still while the keys arrive; more come until shortly before the dialog may be decided.
    told = tmp_path / "told"
    told.touch()
    argv = [sys.executable, "-m", "tests.tui.stalled_screen", str(root), str(told), str(STALL_S)]
    (id,) = state_of_requests(root)
    rounds = late_rounds = 0
    with Terminal(argv, config_home=tmp_path / "config") as terminal:
        terminal.wait_for(REQUEST)
        while rounds < 50:
            before = len(_told(told))
            terminal.send("a")
            terminal.until(lambda before=before: _since(told, before, "stall"), "the stall")
            for key in "y\r ad":
                terminal.send(key)
            terminal.until(lambda before=before: _since(told, before, "armed"), "the dialog")
            armed_at = _since(told, before, "armed")[0]["at"]
            typed = 0
            while time.monotonic() < armed_at - 0.1:
                terminal.send("y\r ad"[typed % 5])
                typed += 1
                terminal.pump(0.03)
            terminal.until(lambda armed_at=armed_at: time.monotonic() > armed_at)
            terminal.wait_for(DECIDING)
            terminal.pump(0.05)
            late = [key for key in _since(told, before, "key") if key["at"] >= armed_at]
            if late or not typed:
                # A key that was typed early came only after the dialog was armed, or there was no time to type: it proves nothing.
                late_rounds += 1
                assert late_rounds < 20
            else:
                assert DECIDING in terminal.text
                assert "Why not?" not in terminal.text
                assert state_of_requests(root)[id].state == "pending"
                rounds += 1
            while DECIDING in terminal.text:
                terminal.send(ESCAPE)
                terminal.pump(0.1)
    assert [a.state for a in state_of_requests(root).values()] == ["pending"]


def _told(path):
    return [json.loads(entry) for entry in path.read_text().splitlines(keepends=True) if entry.endswith("\n")]


def _since(path, count, what):
    return [entry for entry in _told(path)[count:] if entry["what"] == what]


def test_what_arrives_while_a_draft_is_written_takes_no_key_of_it(screen, root):
    with screen() as terminal:
        terminal.wait_for(REQUEST)
        terminal.send("w")
        terminal.wait_for("Guidance for")
        terminal.send("say")
        Command(root).json("question", "ask", "adapt-7b", "--title", "Stop?", "--body", "-", "--blocking")
        terminal.pump(1.5)
        terminal.send(" and stay")
        terminal.wait_for("say and stay")
        terminal.send("\x1b\x1b")
    assert [a.state for a in state_of_requests(root).values()] == ["pending"]


# What a person writes in a file


def guidance_file(root):
    return root / "collaboration" / "adapt-7b" / "GUIDANCE.md"


def test_an_appended_item_is_collected_and_the_file_stays_as_it_was_written(screen, root):
    path = guidance_file(root)
    with screen() as terminal:
        wait_for_collector(terminal, root)
        with open(path, "a", encoding="utf-8") as stream:
            stream.write("\n## Leave card 7 alone\n\nIts fan is loud.\n")
        written = path.read_bytes()
        terminal.send("2")
        terminal.wait_for("Leave card 7 alone")
        receipts = path.with_name("RECEIPTS.md")
        terminal.until(lambda: "Leave card 7 alone" in receipts.read_text(), "the receipt")
        assert path.read_bytes() == written
    _code, answer = Command(root).json("guidance", "list", "adapt-7b")
    (item,) = [item for item in answer["items"] if "card 7" in json.dumps(item)]
    assert item["state"] == "collected"


def test_a_file_that_is_being_saved_is_called_edited_until_it_is_collected(screen, root):
    # Editors that save in place empty the file first.
    path = guidance_file(root)
    with screen() as terminal:
        wait_for_collector(terminal, root)
        written = path.read_bytes() + b"\n## Stop at step 300\n"
        path.write_bytes(b"")
        terminal.wait_for("adapt-7b/GUIDANCE.md edited, not yet collected")
        path.write_bytes(written)
        terminal.wait_gone("edited, not yet collected")
        terminal.send("2")
        terminal.wait_for("Stop at step 300")
        assert path.read_bytes() == written


# The line


@pytest.mark.parametrize("key", ["0", "5"])
def test_nothing_is_sent_while_nothing_changes(screen, root, key):
    with screen() as terminal:
        wait_for_collector(terminal, root)
        terminal.send(key)
        terminal.settle(2.0)
        # The copied files are new, so they are read again 1, 2, 5 and 10 s after the start; later once in 5 minutes.
        assert any(terminal.pump(3.0) == 0 for _ in range(8)), bytes(terminal.raw[-2000:])


@pytest.mark.parametrize("size", [(60, 16), (59, 15), (40, 10), (80, 24), (120, 40), (200, 60), (500, 150)])
def test_every_screen_opens_at_every_size(screen, root, size):
    with screen(size) as terminal:
        large = size[0] >= 60 and size[1] >= 16
        terminal.wait_for("0 Overview" if large else "60×16")
        for key in "12345?":
            terminal.send(key)
            terminal.settle(0.2)
        terminal.send("\x1b")
        terminal.settle(0.3)
        assert ("5 Live" in terminal.text) == large
        terminal.send("q")
        terminal.settle(0.3)
        if ASKING in terminal.text:
            terminal.send("q")
        assert terminal.exit_code() == 0


def test_a_storm_of_sizes_leaves_the_picture_of_the_last_one(screen, root):
    with screen() as terminal:
        wait_for_collector(terminal, root)
        terminal.settle(1.0)
        before = terminal.rows
        for n in range(400):  # 200 a second
            terminal.resize(30 + 7 * n % 130, 8 + 5 * n % 50)
            terminal.pump(0.005)
        terminal.resize(120, 40)
        terminal.until(lambda: _but_for_times(terminal.rows) == _but_for_times(before), "the first picture again")


def _but_for_times(rows):
    # The machine's own memory is checked again meanwhile.
    return [re.sub(r"\d\d:\d\d:\d\d|\b\d+%", "", row) for row in rows]


@pytest.mark.parametrize(
    "env",
    [
        {"TERM": "dumb"},
        {"TERM": "vt100"},
        {"TERM": "screen"},
        {"TERM": "tmux-256color"},
        {"TERM": "linux", "COLORTERM": ""},
        {"TERM": "xterm"},
        {"LC_ALL": "C", "LANG": "C"},
        {"LC_ALL": "zh_CN.GBK", "LANG": "zh_CN.GBK", "TRAINFLOW_LANGUAGE": "en"},
        {"PYTHONIOENCODING": "gbk"},  # as such a locale would have it where it is installed
    ],
    ids=lambda env: "-".join(env.values()),
)
def test_it_opens_and_quits_on_terminals_of_every_kind(screen, root, env):
    with screen((80, 24), env) as terminal:
        terminal.wait_for("adapt-7b")
        wait_for_collector(terminal, root)
        quit_by_key(terminal)
        assert terminal.exit_code() == 0


SGR = re.compile(rb"\x1b\[([0-9;:]*)m")


def colours_in(raw):
    """Colour codes among the attributes that were set; 39 and 49 ask for the terminal's own."""
    codes = {int(code) for found in SGR.findall(raw) for code in re.split(rb"[;:]", found) if code}
    return {code for code in codes if 30 <= code <= 38 or 40 <= code <= 48 or 90 <= code <= 107}


def test_without_colour_the_cursor_is_seen_and_no_colour_is_sent(screen, root):
    with screen((80, 24), {"NO_COLOR": "1"}) as terminal:
        terminal.wait_for(REQUEST)
        terminal.settle()
        for key in "351":
            terminal.send(key)
            terminal.settle()
        assert colours_in(bytes(terminal.raw)) == set()
        terminal.wait_for("Approvals")
        (line,) = [y for y, row in enumerate(terminal.rows) if "adapt-7b" in row and "environment" in row]
        (other,) = [y for y, row in enumerate(terminal.rows) if "profile-moe" in row]
        assert all(cell.reverse for cell in terminal.cells[line] if cell.data.strip())
        assert not any(cell.reverse for cell in terminal.cells[other])


def test_the_check_of_colours_would_see_one(screen, root):
    with screen((80, 24)) as terminal:
        terminal.wait_for(REQUEST)
        terminal.settle()
        assert colours_in(bytes(terminal.raw))


# What others write

HOSTILE = (
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;evil\x07",
    "\x1b]8;;http://evil.invalid\x1b\\link\x1b]8;;\x1b\\",
    "\x1bP+q544e\x1b\\",
    "\x1b_evil\x1b\\",
    "\x1b[2J\x1b[?1049l\x1b[31;5m",
    "\x9b2J\x9d0;evil\x9c",
    "\x1b]133;A\x1b\\\x1b]777;notify;evil;evil\x1b\\",
    "a\rb\bc\vd\x0ee\x0ff\x05g",
    "\x1b",
)


def test_foreign_text_can_send_the_terminal_nothing(screen, root):
    workspace, log = Workspace.open(root), root / "evil.log"
    actor = Actor(door="cli", uid=1000, user="agent")
    guidance = guidance_file(root).read_text()
    for number, payload in enumerate(HOSTILE):
        words = f"x{payload}y"
        tasks.create(workspace, title=words, id=f"evil-{number}", objective=words, actor=actor)
        questions.ask(workspace.ledger, task="adapt-7b", title=f"q{payload}", body=words, blocking=True, actor=actor)
        command = CommandPayload(argv=["echo", words], cwd=f"/tmp/{words}")
        wanted = ApprovalRequest(task="adapt-7b", title=f"r{payload}", payload=command, why=words)
        approvals.request(workspace.ledger, wanted, actor=actor)
        guidance += f"\n## g{number}{payload}\n\n{words}\n"
    workspace.close()
    guidance_file(root).write_text(guidance)
    log.write_text("".join(f"[rank0]: RuntimeError: x{payload}y\n" for payload in HOSTILE))
    command = Command(root)
    command.json("log", "add", str(log), "--task", "adapt-7b")
    command.json("--once")
    with screen() as terminal:
        wait_for_collector(terminal, root)
        for key in "12345021":
            terminal.send(key)
            terminal.settle(0.3)
        terminal.send("\ta")
        terminal.settle(0.3)
        terminal.send("\x1b:")
        terminal.settle(0.3)
        terminal.send("evil\r")
        terminal.settle(0.3)
        written = bytes(terminal.raw)
    assert "evil" in written.decode()
    # Textual itself sends no OSC, DCS or APC, no C1 control and none of these C0 controls after its own questions.
    after_start = written.replace(b"\x1b]11;?\x1b\\", b"").replace(b"\x1b]10;?\x1b\\", b"")
    after_start = re.sub(rb"\x1b\]22;[a-z-]*(?:\x07|\x1b\\)", b"", after_start)  # the mouse pointer's shape
    assert re.findall(rb"\x1b[\]PX^_].{,60}", after_start) == []
    assert not re.search("[\x80-\x9f]", written.decode())
    assert not re.search(rb"[\x05\x07\x08\x0b\x0e\x0f]", after_start)
    assert written.count(b"\x1b[2J") == 0
