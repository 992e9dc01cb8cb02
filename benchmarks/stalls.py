"""How long the screen's event loop stood still while a trace of 200 MB was taken in beside it.

Run as `python -m benchmarks.stalls WORKSPACE FILE` it is the screen itself with a ticker on its loop; with `-` for the workspace
it is the ticker alone, which shows what the machine adds.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.line import opened, shows
from benchmarks.measure import SHARED

TICK_S: Final = 0.01
TRACE_MB: Final = 200
SWITCHES: Final = 24
Lateness = list[tuple[float, float]]
"""When each tick came, on `time.perf_counter`, and by how many milliseconds it was late."""


def measure(tell: Callable[..., None], root: Path, folder: Path) -> None:
    """Take a trace in through the screen's own command, with and without keys pressed meanwhile."""
    generator = SHARED / "tools/gen_trace.py"
    if not generator.exists():
        print("skipped: the trace generator is not beside the project")
        return
    trace = folder / "big.json"
    made = [sys.executable, str(generator), str(trace), "--mb", str(TRACE_MB)]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL)
    told, alone = folder / "screen.json", folder / "alone.json"
    bare = subprocess.Popen([sys.executable, "-m", "benchmarks.stalls", "-", str(alone)], stdin=subprocess.PIPE)
    assert bare.stdin is not None
    try:
        windows = _session(root, trace, told)
    finally:
        bare.stdin.close()
        bare.wait()
    for words, (begin, end) in windows.items():
        for name, path, budgets in (("event loop", told, (50, 250)), ("an idle loop beside it", alone, (None, None))):
            late = [ms for at, ms in _read(path) if begin <= at <= end]
            tell(f"{name} {words}, late: p99", _quantile(late, 0.99), "ms", budgets[0])
            tell(f"{name} {words}, late: max", max(late, default=None), "ms", budgets[1])
        tell(f"{words}: length", end - begin, "s")


def _session(root: Path, trace: Path, told: Path) -> dict[str, tuple[float, float]]:
    """When the trace was taken in, and when screens were switched."""
    with opened([sys.executable, "-m", "benchmarks.stalls", str(root), str(told)]) as line:
        line.await_first(shows(line, "adapt-7b"), 0, 30)
        line.send("3")
        line.rest(1.0, limit_s=15)
        line.send(":")
        line.rest(0.5, limit_s=5)
        begin = line.clock()
        line.send(f"add trace {trace}\r")
        started = line.await_first(shows(line, f"Reading {trace.name}"), line.here, 20)
        ended = started and line.await_first(lambda: "Reading" not in line.look(), line.here, 180)
        ingest = begin, line.clock()
        line.rest(1.0, limit_s=5)
        line.draw()
        if not ended or not shows(line, trace.name)():
            print(f"the trace was not seen on the screen, which shows\n{line.text}")
            return {}
        begin = line.clock()
        for number in range(SWITCHES):
            line.send("450123"[number % 6])
            line.pump(0.5)
        return {"during ingest": ingest, "while screens are switched": (begin, line.clock())}


def _read(path: Path) -> Lateness:
    found: Lateness = json.loads(path.read_text())
    return found


def _quantile(values: list[float], share: float) -> float | None:
    return sorted(values)[int(share * (len(values) - 1))] if values else None


# The measured process


async def ticking(note: Callable[[tuple[float, float]], object]) -> None:
    """Ask to be woken every 10 ms and note when that was and by how many milliseconds it was late."""
    while True:
        due = time.perf_counter() + TICK_S
        await asyncio.sleep(TICK_S)
        now = time.perf_counter()
        note((now, 1000 * (now - due)))


async def _alone(late: Lateness) -> None:
    ticker = asyncio.create_task(ticking(late.append))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    ticker.cancel()


def _screen(root: Path, late: Lateness) -> None:
    import trainflow_tui.app
    from trainflow_tui.screens.desk import Desk
    from trainflow_tui.workspace import Workspace

    class TickingApp(trainflow_tui.app.TrainflowApp):
        CSS_PATH = str(Path(trainflow_tui.app.__file__).with_name("screens") / "styles" / "trainflow.tcss")

        def on_mount(self) -> None:
            self.ticker = asyncio.create_task(ticking(late.append))

    TickingApp(Desk(Workspace.open(root))).run()


def main(root: str, told: str) -> None:
    """Tick until the screen, or standard input, is closed; then tell."""
    late: Lateness = []
    if root == "-":
        asyncio.run(_alone(late))
    else:
        _screen(Path(root), late)
    Path(told).write_text(json.dumps(late))


if __name__ == "__main__":
    main(*sys.argv[1:])
