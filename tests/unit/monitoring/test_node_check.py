import os
import shutil
import subprocess
from datetime import UTC, datetime

import pytest

from trainflow_tui.clock import ManualClock, SystemClock
from trainflow_tui.executors.local import Outcome
from trainflow_tui.monitoring.nodes.check import MAX_OUTPUT_BYTES, TIMEOUT_S, check_this_node, collector_script

ANSWER = b"\n\x1e> identity\nhostname node-a\n\n\x1e< identity 0\n\n\x1e> end\n\n\x1e< end 0\n"


class FakeRun:
    def __init__(self, outcome):
        self.outcome = outcome
        self.calls = []

    def __call__(self, argv, **options):
        self.calls.append((argv, options))
        return self.outcome


def outcome(state="ok", code=0, stdout=ANSWER, **more):
    return Outcome(state=state, exit_code=code, stdout=stdout, stderr=b"", **more)


def test_the_script_goes_to_a_shell_by_stdin_and_is_bounded():
    run = FakeRun(outcome())
    found = check_this_node(clock=ManualClock(datetime(2026, 1, 1, tzinfo=UTC)), run=run)
    limits = {"timeout_s": TIMEOUT_S, "max_output_bytes": MAX_OUTPUT_BYTES}
    assert run.calls == [(["sh", "-s"], {"stdin": collector_script(), **limits})]
    assert (found.name, found.source, found.collected_at) == ("node-a", "local", "2026-01-01T00:00:00.000000Z")


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (outcome("timed_out", -9), "30 s"),
        (outcome(truncated=True), "bytes"),
        (outcome("failed", 127, b""), "127"),
    ],
    ids=["timeout", "too much", "no shell"],
)
def test_what_went_wrong_is_an_unknown_signal_and_what_came_is_kept(result, words):
    found = check_this_node(clock=ManualClock(), run=FakeRun(result))
    (collector,) = [signal for signal in found.signals if signal.check == "collector"]
    assert collector.state == "unknown"
    assert words in collector.text
    assert found.name == ("node-a" if result.stdout else None)


def test_this_machine_answers():
    found = check_this_node(clock=SystemClock())
    assert found.name == subprocess.run(["hostname"], capture_output=True, text=True, check=True).stdout.strip()
    assert found.cpus == os.cpu_count()
    assert "collector" not in {signal.check for signal in found.signals}
    usage = shutil.disk_usage("/")
    (root,) = [disk for disk in found.disks if disk.mount == "/"]
    assert root.total_bytes == usage.total


def stub(folder, script):
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_vendors_tool_is_asked_for_its_csv(tmp_path, monkeypatch):
    stub(tmp_path, 'printf "index, temperature.gpu\\n0, 41\\n"; printf "%s\\n" "$@" >"$(dirname "$0")/asked"')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = check_this_node(clock=SystemClock())
    assert [device.temp_c for device in found.devices] == [41.0]
    assert "nvidia-smi" in found.tools
    query, form = (tmp_path / "asked").read_text().split()
    assert query.startswith("--query-gpu=index,name,uuid,pci.bus_id,")
    assert query.endswith(",clocks_event_reasons.active")
    assert form == "--format=csv"


def test_an_older_driver_is_asked_by_the_older_name(tmp_path, monkeypatch):
    stub(
        tmp_path,
        'case $1 in *clocks_event*) echo "Field \\"clocks_event_reasons.active\\" is not a valid field to query."; exit 2;;\n'
        'esac; printf "index, clocks_throttle_reasons.active\\n0, 0x40\\n"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    (device,) = check_this_node(clock=SystemClock()).devices
    assert device.throttle == ("hw_thermal_slowdown",)


def test_the_tools_failure_is_read_with_its_exit_code(tmp_path, monkeypatch):
    stub(tmp_path, 'echo "Unable to determine the device handle for GPU0000:07:00.0: Unknown Error" >&2; exit 255')
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = check_this_node(clock=SystemClock())
    assert found.devices is None
    assert [signal.state for signal in found.signals if signal.check == "nvidia-smi"] == ["critical"]


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox"])
def test_the_script_is_valid_in_other_shells(shell, tmp_path):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    argv = [shell, "sh"] if shell == "busybox" else [shell]
    done = subprocess.run([*argv, "-n"], input=collector_script(), capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
