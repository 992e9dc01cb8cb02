"""Running a command for its cost, and printing a figure beside its budget."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
TRAINFLOW = [str(Path(sys.executable).with_name("trainflow"))]


@dataclass(frozen=True)
class Cost:
    """What one run of a command took, its children included."""

    wall_s: float
    cpu_s: float
    peak_mb: float


def cost(argv: list[str], *, runs: int = 5, ok: tuple[int, ...] = (0,)) -> Cost:
    """The median run by wall clock, after one warm-up."""
    found = []
    for number in range(runs + 1):
        start = time.perf_counter()
        child = subprocess.Popen(
            argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, cwd=ROOT
        )
        assert child.stderr is not None
        problem = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        code = os.waitstatus_to_exitcode(status)
        child.returncode = code
        if code not in ok:
            raise RuntimeError(f"{argv} ended with {code}: {problem.decode(errors='replace')[-500:]}")
        if number:
            found.append(Cost(wall, usage.ru_utime + usage.ru_stime, _megabytes(usage)))
    return sorted(found, key=lambda c: c.wall_s)[len(found) // 2]


def _megabytes(usage: resource.struct_rusage) -> float:
    return usage.ru_maxrss / (1024 if sys.platform.startswith("linux") else 1024 * 1024)


def show(what: str, measured: float | None, budget: float | None, unit: str, *, beside: str = "") -> None:
    """One line: the figure, its budget and their ratio (below 1 is within, except where the budget is a floor).

    None was not seen. `beside` stands at the end: another program's figure, or a condition.
    """
    limit = f"{budget:g} {unit}" if budget is not None else "–"
    ratio = f"{measured / budget:7.2f}" if budget and measured is not None else "      –"
    figure = f"{measured:9.3f} {unit:4}" if measured is not None else f"{'not seen':>9} {'':4}"
    print(f"{what:58} {figure} {limit:>10} {ratio}  {beside}".rstrip(), flush=True)


def conditions() -> str:
    """How busy the machine was: figures of a shared one are not those of a quiet one."""
    load = os.getloadavg()
    return f"{os.cpu_count()} cores, load {load[0]:.2f} {load[1]:.2f} {load[2]:.2f}"
