"""Appends of one and of four processes, beside a bare write and fsync."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import show

_WRITER = """
import sys, time
from pathlib import Path
from trainflow_tui.clock import SystemClock
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.ledger.events import Actor
ledger, actor = Ledger.open(Path(sys.argv[1]), clock=SystemClock()), Actor(door="cli")
for i in range(int(sys.argv[2])):
    begin = time.perf_counter()
    with ledger.transaction() as transaction:
        transaction.append("note", f"{sys.argv[3]}-{i}", {"text": "x" * 200}, actor=actor)
    print(time.perf_counter() - begin)
"""


def run() -> None:
    """Four writers at once; each prints the seconds of every append."""
    with tempfile.TemporaryDirectory() as folder:
        bare = _bare_fsync(Path(folder) / "bare")
        path = str(Path(folder) / "ledger.db")
        writers = [
            subprocess.Popen([sys.executable, "-c", _WRITER, path, "250", str(i)], stdout=subprocess.PIPE, text=True)
            for i in range(4)
        ]
        times = sorted(float(line) for writer in writers for line in writer.communicate()[0].split())
        show("write 300 B and fsync, mean (the limit)", 1000 * bare, None, "ms")
        show("ledger append, 4 writers: p50", 1000 * statistics.median(times), 5000 * bare, "ms")
        show("ledger append, 4 writers: p99", 1000 * times[int(len(times) * 0.99)], 20, "ms")


def _bare_fsync(path: Path) -> float:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    begin = time.perf_counter()
    for _ in range(300):
        os.write(descriptor, b"x" * 300)
        os.fsync(descriptor)
    os.close(descriptor)
    return (time.perf_counter() - begin) / 300
