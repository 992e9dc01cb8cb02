"""The screen on a pseudo-terminal: first paint, bytes and CPU at rest, bytes while a run is live, key to byte."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.measure import SHARED, TRAINFLOW, show

METER = SHARED / "tools/pty_meter.py"


def run() -> None:
    """Measure on the demo's workspace, at rest and with its job writing."""
    if not METER.exists():
        print("skipped: the terminal meter is not beside the project")
        return
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "demo"
        subprocess.run([*TRAINFLOW, "demo", str(root), "--headless"], stdout=subprocess.DEVNULL, check=True)
        call = [*TRAINFLOW, "--workspace", str(root)]
        for size in ("120x40", "80x24"):
            found = _meter(call, size, "--until", "Needs you", "--settle", "20", "--seconds", "12")
            show(f"first paint {size}", found["until_s"], 0.6, "s")
            show(f"at rest {size}", found["bytes_per_s"], None, "B/s")
            show(f"at rest {size}, screen and collector", found["cpu_percent"], 0.3, "%")
        keyed = _meter(call, "120x40", "--until", "Needs you", "--settle", "4", "--seconds", "1", "--keys", "j")
        show("key to first byte", keyed["key_to_first_byte_ms"], 30, "ms")
        _live(root, call)


def _live(root: Path, call: list[str]) -> None:
    job = subprocess.Popen(
        [sys.executable, "-m", "trainflow_tui.demo.job", str(root / "train.log"), "400"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        for size in ("120x40", "80x24"):
            found = _meter(call, size, "--until", "Needs you", "--settle", "20", "--seconds", "15")
            show(f"live at 1 Hz, overview {size}", found["bytes_per_s"], 650, "B/s")
            show(f"live at 1 Hz, overview {size}, screen and collector", found["cpu_percent"], 1.0, "%")
        slow = _meter(
            call,
            "120x40",
            "--until",
            "Needs you",
            "--settle",
            "8",
            "--seconds",
            "2",
            "--rate",
            "4000",
            "--keys",
            "j",
            "--expect",
            "\x1b[",
        )
        show("live, 4 KB/s line: key to repaint", slow.get("key_to_expected_ms") or 0.0, 400, "ms")
    finally:
        assert job.stdin is not None
        job.stdin.close()
        job.wait()


def _meter(call: list[str], size: str, *options: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(METER), "--size", size, *options, "--", *call],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"TERM": "xterm-256color"},
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[0])
    return found
