import os
import select
import sys

import pytest

from trainflow_tui.executors.local import run


def sh(script, **options):
    return run(["sh", "-c", script], **{"timeout_s": 20, "max_output_bytes": 10_000, **options})


def test_outputs_and_exit_code_come_back_apart():
    outcome = sh("printf out; printf err >&2; exit 3")
    assert (outcome.state, outcome.exit_code, outcome.stdout, outcome.stderr) == ("failed", 3, b"out", b"err")
    assert sh("true").state == "ok"


def test_the_arguments_pass_no_shell():
    assert run(["printf", "%s", "$HOME; `x` *"], timeout_s=20, max_output_bytes=100).stdout == b"$HOME; `x` *"


def test_more_input_and_output_than_a_pipe_holds_passes():
    data = os.urandom(1 << 20)
    outcome = run(["cat"], stdin=data, timeout_s=20, max_output_bytes=2 << 20)
    assert (outcome.state, outcome.truncated) == ("ok", False)
    assert outcome.stdout == data


def test_output_beyond_the_cap_is_dropped_and_told_and_the_command_ends():
    outcome = run(["cat"], stdin=b"x" * (1 << 20), timeout_s=20, max_output_bytes=1000)
    assert (outcome.state, outcome.stdout, outcome.truncated) == ("ok", b"x" * 1000, True)


def test_a_command_that_does_not_read_its_input_ends():
    assert run(["true"], stdin=b"x" * (1 << 20), timeout_s=20, max_output_bytes=10).state == "ok"


def test_a_program_that_is_not_there_or_not_executable_is_told_as_a_shell_would(tmp_path):
    assert run(["no-such-program-here"], timeout_s=20, max_output_bytes=10).exit_code == 127
    (tmp_path / "plain").write_text("text")
    assert run([str(tmp_path / "plain")], timeout_s=20, max_output_bytes=10).exit_code == 126


def test_a_signal_is_a_negative_exit_code():
    outcome = sh("kill -TERM $$")
    assert (outcome.state, outcome.exit_code) == ("failed", -15)


def test_at_the_deadline_the_whole_group_is_killed_and_its_output_kept(tmp_path):
    held = tmp_path / "held"  # a pipe that ends when the last process that holds it has ended
    os.mkfifo(held)
    watch = os.open(held, os.O_RDONLY | os.O_NONBLOCK)
    try:
        outcome = sh(f"trap '' TERM; exec 9>{held}; printf begun; sleep 600 & wait", timeout_s=0.5)
        assert (outcome.state, outcome.exit_code, outcome.stdout) == ("timed_out", -9, b"begun")
        ended, _, _ = select.select([watch], [], [], 20)
        assert ended
        assert os.read(watch, 1) == b""
    finally:
        os.close(watch)


def test_a_child_that_keeps_the_pipe_open_does_not_hold_the_caller():
    outcome = sh("sleep 600 & echo $!")
    try:
        assert outcome.state == "ok"
    finally:
        os.kill(int(outcome.stdout), 9)


def test_a_command_that_closes_its_outputs_is_waited_for():
    script = "import os, sys, time; os.close(1); os.close(2); time.sleep(0.05); os._exit(7)"
    outcome = run([sys.executable, "-c", script], timeout_s=20, max_output_bytes=10)
    assert outcome.exit_code == 7


@pytest.mark.parametrize("count", [3])
def test_no_descriptor_is_left_open(count):
    before = len(os.listdir("/dev/fd"))
    for _ in range(count):
        sh("true")
        run(["no-such-program-here"], timeout_s=20, max_output_bytes=10)
    assert len(os.listdir("/dev/fd")) == before
