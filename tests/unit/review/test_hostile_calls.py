"""Calls that come from broken places: closed or full streams, other encodings, bytes that are no text, names that lead nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from trainflow_tui.cli.frame import ATTENTION, BUSY, DECISION, INTERNAL, USAGE, Reason, Reply
from trainflow_tui.cli.watch import _quoted


@pytest.fixture
def task(command):
    assert command.run("task", "create", "t").returncode == 0
    return "t"


def shell(command, line, env=None):
    words = f"{sys.executable} -m trainflow_tui --workspace {command.root}"
    line = line.replace("TRAINFLOW", words)
    return subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=os.environ | (env or {}), check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("TRAINFLOW task list >&-; exit $?", 0),
        ("TRAINFLOW task list <&- >&- 2>/dev/null; exit $?", 0),
        ("TRAINFLOW task show nope >&- 2>&-; exit $?", 64),
        ("TRAINFLOW --no-json task show nope 2>&-; exit $?", 64),
        ("TRAINFLOW task list > >(head -c 0); exit $?", 0),
        ("TRAINFLOW --no-json task list > >(head -c 0); exit $?", 0),
        ("TRAINFLOW approval request t --title x --payload - <&-; exit $?", 64),
        ("TRAINFLOW guidance add t --file - <&-; exit $?", 64),
    ],
)
def test_a_closed_stream_changes_neither_the_code_nor_the_manners(command, task, line, code):
    done = shell(command, line)
    assert done.returncode == code
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_an_answer_that_could_not_be_written_is_no_success(command, task):
    done = shell(command, "TRAINFLOW task list >/dev/full; exit $?")
    assert done.returncode == 20
    assert "Traceback" not in done.stderr


def test_a_terminal_of_another_encoding_gets_what_it_can_show(command, task):
    command.run("task", "create", "训练", "--id", "zh")
    done = shell(command, "TRAINFLOW --no-json --once; exit $?", {"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "zh" in done.stdout


def test_low_descriptors_are_never_given_to_a_file():
    # With 0 to 2 closed the next file opened would get one of them, and with it whatever is printed to it.
    program = (
        "import os; [os.close(n) for n in range(3)]; from trainflow_tui.cli.streams import hold_descriptors; "
        "hold_descriptors(); os._exit(os.open(os.devnull, os.O_RDONLY))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode >= 3


@pytest.mark.parametrize(
    "words",
    [
        ("task", "create", b"a\xffb"),
        ("task", "show", b"a\xffb"),
        ("guidance", "add", "t", "--text", b"a\xffb"),
        ("question", "ask", "t", "--title", b"a\xffb"),
        ("report", "add", "t", "--kind", "k", "--status", "fail", "--summary", b"a\xffb"),
        ("approval", "list", "--task", b"a\xffb"),
    ],
)
def test_bytes_that_are_no_text_are_a_wrong_call_and_are_not_recorded(command, task, words):
    before = command.json("ledger", "verify")[1]["verification"]["events"]
    done = subprocess.run(
        [sys.executable, "-m", "trainflow_tui", "--workspace", str(command.root), *words],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["status"]) == (64, "usage")
    assert command.json("ledger", "verify")[1]["verification"]["events"] == before


@pytest.mark.parametrize(
    "words",
    [
        ("--workspace", "", "config"),
        ("--workspace", "~no-such-user/x", "config"),
        ("--workspace", "x" * 5000, "task", "list"),
        ("log", "read", "~no-such-user/x"),
        ("log", "add", ""),
        ("trace", "hotspots", "x" * 5000),
        ("demo", "~no-such-user/x", "--headless"),
        ("report", "add", "t", "--kind", "k", "--status", "fail", "--executed", "9" * 20),
        ("report", "add", "t", "--kind", "k", "--status", "fail", "--executed", "-1"),
        ("approval", "request", "t", "--title", "x", "--payload", "-", "--expires-in", "9" * 20),
        ("task", "create", "x", "--id", ""),
        ("receipt", "list", "nope"),
        ("question", "list", "--task", "nope"),
        ("approval", "list", "--task", "nope"),
    ],
)
def test_a_name_or_a_number_that_cannot_be_meant_is_a_wrong_call(command, task, words):
    code, found = command.json(*words, stdin='{"argv": ["x"]}')
    assert (code, found["status"]) == (64, "usage"), found


def test_a_call_from_a_directory_that_is_gone_is_a_wrong_call(tmp_path):
    line = f"mkdir {tmp_path}/d && cd {tmp_path}/d && rmdir {tmp_path}/d && {sys.executable} -m trainflow_tui config"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (64, "usage")


def test_an_account_without_a_home_has_defaults(monkeypatch):
    import platformdirs

    from trainflow_tui import config

    def homeless(_):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(platformdirs, "user_config_dir", homeless)
    assert config.user_file() is None
    assert config.load(environment={})[0] == config.Settings()


def test_one_trace_that_cannot_be_read_does_not_hide_the_others(command, task, tmp_path):
    from trainflow_tui.analysis.traces.generator import write_synthetic_trace

    with open(tmp_path / "good.json", "wb") as stream:
        write_synthetic_trace(stream, rank=0, world_size=1, steps=2, seed=1)
    (tmp_path / "bad.json").write_text("no trace")
    code, found = command.json(
        "trace", "add", str(tmp_path / "bad.json"), str(tmp_path / "good.json"), str(tmp_path / "none.json")
    )
    assert [r["file"] for r in found["traces"]] == [str(tmp_path / "good.json")]
    assert len([r for r in found["reasons"] if r["subject"].endswith(("bad.json", "none.json"))]) == 2
    assert code == 64


def test_the_log_can_be_read_when_the_ledger_cannot(command, task):
    (command.root / ".trainflow/log/trainflow.jsonl").write_text('{"text": "why", "level": "error"}\n5\nnot json\n')
    (command.root / ".trainflow/ledger.db").write_bytes(b"gone" * 2000)
    code, found = command.json("logs")
    assert code == 0
    assert [e.get("text") for e in found["entries"]] == ["why", "5", "not json"]


@pytest.mark.parametrize(
    ("exits", "code"),
    [
        ((0,), 0),
        ((10, 0), 10),
        ((10, ATTENTION), 20),
        ((ATTENTION, DECISION, 10), 11),
        ((DECISION, BUSY), 30),
        ((BUSY, 130), 130),
        ((130, USAGE, ATTENTION), 64),
        ((USAGE, INTERNAL), 70),
    ],
)
def test_one_code_by_precedence(exits, code):
    assert Reply(schema="x/1", reasons=[Reason("c", "t", "", exit) for exit in exits]).exit_code == code


def test_a_verbs_keys_never_replace_the_envelope(capsys):
    from trainflow_tui.cli.frame import print_reply

    print_reply(Reply(schema="x/1", body={"schema": "y", "status": "fine", "reasons": 3, "n": 1}), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found == {"schema": "x/1", "status": "ok", "reasons": [], "n": 1}


def test_a_path_is_quoted_for_systemd():
    assert _quoted("/plain/path-1") == "/plain/path-1"
    assert _quoted('/a "b\\c %h $x') == '"/a \\"b\\\\c %%h $$x"'


def test_a_unit_for_a_name_that_would_break_its_line_is_refused(command, tmp_path):
    place = tmp_path / "two\nlines"
    place.mkdir(mode=0o700)
    assert command.json("--workspace", str(place), "watch", "--unit")[0] == 64
    _, found = command.json("--workspace", str(tmp_path / "50%"), "watch", "--unit")
    assert "50\\%" in found["cron"]
    assert "50%%" in found["unit"]


def test_approving_what_cannot_be_undone_needs_the_end_of_its_digest(command, task):
    words = ("approval", "request", "t", "--title", "x", "--payload", "-", "--reversible", "no")
    made = command.json(*words, stdin='{"argv": ["rm", "-r", "/ckpt"]}')[1]["approval"]
    code, found = command.json("approval", "decide", made["id"], "approve")
    assert (code, found["error"]["code"]) == (20, "token-missing")
    assert command.json("approval", "decide", made["id"], "approve", "--token", "zzzz")[0] == 64
    assert command.json("approval", "show", made["id"])[1]["approval"]["state"] == "pending"
    code, found = command.json("approval", "decide", made["id"], "approve", "--token", made["digest"][-4:])
    assert (code, found["approval"]["decision"]["input"]) == (0, "typed-token")


def test_denying_needs_no_token(command, task):
    words = ("approval", "request", "t", "--title", "x", "--payload", "-", "--kind", "restart")
    made = command.json(*words, stdin='{"argv": ["x"]}')[1]["approval"]
    assert command.json("approval", "decide", made["id"], "deny")[0] == 0
