"""The command line as agents and scripts use it: one object out, the exit code, sane errors."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time

import pytest

PAYLOAD = json.dumps({"argv": ["torchrun", "train.py"], "hosts": ["dcu-01"]})


def ask_approval(command, task="t", **env):
    code, found = command.json(
        "approval", "request", task, "--title", "Start", "--payload", "-", stdin=PAYLOAD, env=env
    )
    assert code == 11, found
    return found["approval"]["id"]


@pytest.fixture
def task(command):
    assert command.run("task", "create", "t").returncode == 0
    return "t"


def test_a_whole_course_from_request_to_use(command, task):
    ident = ask_approval(command)
    code, once = command.json("--once")
    assert code == 11
    assert [(a["id"], a["title"], a["task"]) for a in once["approvals"]] == [(ident, "Start", "t")]
    assert once["approvals"][0]["requested_at"]
    assert command.json("approval", "decide", ident, "approve")[0] == 0
    assert command.json("--once")[0] == 0
    code, used = command.json("approval", "consume", ident, "--payload", "-", stdin=PAYLOAD)
    assert (code, bool(used["start_token"])) == (0, True)
    code, again = command.json("approval", "consume", ident, "--payload", "-", stdin=PAYLOAD)
    assert (code, again["error"]["code"]) == (20, "consumed")


def test_an_agent_cannot_decide_answer_or_guide(command, task):
    agent = {"TRAINFLOW_AGENT": "adapter"}
    ident = ask_approval(command)
    code, found = command.json("approval", "decide", ident, "approve", env=agent)
    assert (code, found["error"]["code"]) == (20, "human-only")
    _, asked = command.json("question", "ask", "t", "--title", "Which?", "--blocking", env=agent)
    code, found = command.json("question", "answer", asked["question"]["id"], "--text", "this", env=agent)
    assert (code, found["error"]["code"]) == (20, "human-only")
    code, found = command.json("guidance", "add", "t", "--text", "do it", env=agent)
    assert (code, found["error"]["code"]) == (20, "human-only")


def test_a_server_of_agents_among_the_ancestors_counts_as_an_agent(command, task):
    ident = ask_approval(command)
    verb = [
        sys.executable,
        "-m",
        "trainflow_tui",
        "--workspace",
        str(command.root),
        "--json",
        "approval",
        "decide",
        ident,
        "approve",
    ]
    # A process whose command line is `trainflow mcp` and whose child decides.
    server = (
        "import subprocess, sys; r = subprocess.run(sys.argv[3:], capture_output=True, text=True); "
        "print(r.stdout); sys.exit(r.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", server, "trainflow", "mcp", *verb], capture_output=True, text=True, check=False
    )
    assert done.returncode == 20
    assert json.loads(done.stdout)["error"]["code"] == "human-only"


def test_a_decision_records_where_it_came_from(command, task):
    ident = ask_approval(command)
    env = {"SSH_CONNECTION": "192.0.2.7 50000 192.0.2.1 22"}
    _, found = command.json("approval", "decide", ident, "deny", "--comment", "no", env=env)
    by = found["approval"]["decision"]["by"]
    assert by["uid"] == os.getuid()
    assert by["door"] == "cli"
    assert by["ssh_from"] == "192.0.2.7 50000"
    assert "python" in by["parent"] or "pytest" in by["parent"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("frobnicate",), 64),
        (("task",), 64),
        (("task", "create"), 64),
        (("task", "show", "nope"), 64),
        (("task", "create", "x", "--mode", "no"), 64),
        (("approval", "decide", "ap-none", "approve"), 64),
        (("--once", "task", "list"), 64),
        (("task", "move", "t", "training"), 20),
        (("trace", "hotspots", "/nowhere.json"), 64),
        (("log", "read", "/nowhere.log"), 64),
        (("approval", "request", "t", "--title", "x", "--payload", "/nowhere"), 64),
    ],
)
def test_a_wrong_call_ends_with_its_code_and_one_object(command, task, words, code):
    found_code, found = command.json(*words)
    assert found_code == code, found
    assert found["schema"] == "error/1"
    assert found["status"] == {64: "usage", 20: "attention"}[code]
    assert found["error"]["message"]
    assert "Traceback" not in json.dumps(found)


def test_global_options_stand_before_or_after_the_verb(command, task):
    verb = [sys.executable, "-m", "trainflow_tui", "task", "list"]
    for words in (["--workspace", str(command.root), "--json"],):
        after = subprocess.run([*verb, *words], capture_output=True, text=True, check=True)
        assert json.loads(after.stdout)["tasks"][0]["id"] == "t"


def test_json_is_the_default_without_a_terminal_and_text_on_request(command, task):
    assert json.loads(command.run("task", "list").stdout)["schema"] == "task-list/1"
    assert command.run("task", "list", "--no-json").stdout.startswith("t ")


def test_without_a_terminal_the_screen_names_the_headless_refresh(command, task):
    done = command.run("--no-json")
    assert done.returncode == 64
    assert "--once" in done.stderr


def test_reading_verbs_make_nothing(command, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    for words in (("config",), ("doctor",), ("task", "list"), ("approval", "list")):
        subprocess.run(
            [sys.executable, "-m", "trainflow_tui", "--workspace", str(empty), "--json", *words],
            capture_output=True,
            check=False,
        )
    assert list(empty.iterdir()) == []


def test_a_verb_that_makes_the_workspace_says_so(command):
    _, found = command.json("task", "create", "t")
    assert "workspace-created" in [r["code"] for r in found["reasons"]]


def test_foreign_text_in_output_for_a_terminal_is_harmless(command, task):
    command.run("question", "ask", "t", "--title", "a\x1b[2Jb\x07")
    assert "\x1b" not in command.run("question", "list", "--no-json").stdout


def test_config_says_where_each_value_comes_from(command, task):
    _, found = command.json("config", env={"TRAINFLOW_POLL_SECONDS": "7"})
    assert {"key": "poll_seconds", "value": 7, "origin": "TRAINFLOW_POLL_SECONDS"} in found["settings"]


def test_the_log_holds_one_object_a_line(command, task):
    from trainflow_tui import log

    log.start(command.root / ".trainflow/log")
    import logging

    logging.getLogger("trainflow_tui.test").error("host %s", 'evil"\n{"level": "info"}')
    _, found = command.json("logs")
    assert [e["text"] for e in found["entries"]] == ['host evil"\n{"level": "info"}']


def test_the_unit_names_the_workspace_and_the_verb(command, task):
    _, found = command.json("watch", "--unit")
    assert str(command.root) in found["unit"]
    assert "watch" in found["unit"]
    assert "--once" in found["cron"]


def test_a_second_collector_is_told_that_one_runs(command, task):
    first = subprocess.Popen(
        [sys.executable, "-m", "trainflow_tui", "--workspace", str(command.root), "watch", "--with-parent"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while True:
            code, found = command.json("watch", "--with-parent") if time.monotonic() > deadline - 17 else (0, {})
            if code == 30 or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        assert code == 30
        assert found["status"] == "busy"
        # A held lease never keeps a refresh from scanning.
        assert command.json("--once")[0] in (0, 10)
    finally:
        first.stdin.close()
        assert first.wait(timeout=20) == 0


def test_the_ledger_verifies_and_rebuilds_by_command(command, task):
    code, found = command.json("ledger", "verify")
    assert (code, found["verification"]["first_bad_seq"]) == (0, None)
    assert command.json("ledger", "rebuild")[1]["events"] == found["verification"]["events"]


def test_a_terminal_makes_the_output_readable(command, task):
    controller, terminal = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "trainflow_tui", "--workspace", str(command.root), "task", "list"],
        stdout=terminal,
        stderr=terminal,
    )
    os.close(terminal)
    assert child.wait(timeout=30) == 0
    assert os.read(controller, 4096).startswith(b"t ")
    os.close(controller)
