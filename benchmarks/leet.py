"""W&B LEET beside ours: the terminal viewer of wandb, in an environment of its own that only `--with-leet` makes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

STORED: Final = {
    "first paint 120x40": 0.42,
    "first paint 120x40: bytes until at rest": 16_000.0,
    "at rest 120x40": 0.0,
    "at rest 120x40: CPU": 0.8,
    "live at 1 Hz 120x40": 1290.0,
    "live at 1 Hz 120x40: writes": 8.0,
    "live at 1 Hz 120x40: CPU": 5.7,
    "key to first byte, p50": 7.0,
    "switch of screen, again: worst: bytes": 18_000.0,
}
"""LEET 0.31.0 as the interface specification has it (§1.1, on 2 cores), for runs without it; three charts instead of two."""

_WRITER: Final = """
import math, random, sys, time, wandb
settings = wandb.Settings(x_disable_stats=True, silent=True, console="off")
run = wandb.init(mode="offline", project="beside", dir=sys.argv[1], settings=settings)
print(run.dir, flush=True)
dice, at_once = random.Random(1), int(sys.argv[2])
for step in range(1, at_once + int(sys.argv[3])):
    run.log({"loss": 2.1 + 6.2 * math.exp(-step / 220) + dice.gauss(0, 0.03), "throughput": 412 + dice.gauss(0, 8)})
    if step >= at_once:
        time.sleep(1)
run.finish()
"""


def _home() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainflow-bench" / "leet"


def environment() -> dict[str, str]:
    """Nothing of it asks the network."""
    return os.environ | {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false", "WANDB_SILENT": "true"}


def install() -> str | None:
    """Make the environment where it is not yet; returns the version, or None where it does not install here."""
    home = _home()
    try:
        if not (home / "bin/wandb").exists():
            print(f"installing wandb into {home} (125 MB)", flush=True)
            subprocess.run([sys.executable, "-m", "venv", str(home)], check=True, capture_output=True)
            pip = [str(home / "bin/python"), "-m", "pip", "install", "--quiet", "wandb"]
            subprocess.run(pip, check=True, capture_output=True, text=True)
        told = subprocess.run([str(home / "bin/wandb"), "--version"], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as problem:
        said = (getattr(problem, "stderr", None) or str(problem))[-300:]
        print(f"LEET does not install here: {said}")
        return None
    return told.stdout.strip()


def command(run: Path) -> list[str]:
    """The viewer on one run's directory."""
    return [str(_home() / "bin/wandb"), "leet", "run", str(run)]


def finished_run(folder: Path, *, steps: int) -> Path:
    """Write a run of so many steps; returns its directory."""
    with writing(folder, at_once=steps, then=0) as run:
        pass
    return run


@contextmanager
def writing(folder: Path, *, at_once: int, then: int) -> Iterator[Path]:
    """A run to which a child writes, after the first steps one each second; gives its directory."""
    folder.mkdir(parents=True, exist_ok=True)
    argv = [str(_home() / "bin/python"), "-c", _WRITER, str(folder), str(at_once), str(then + 1)]
    child = subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment(), cwd=folder
    )
    assert child.stdout is not None
    try:
        said = child.stdout.readline().strip()
        if not said:
            raise RuntimeError("wandb wrote no run")
        yield Path(said).parent
        if then == 0:
            child.wait(60)
    finally:
        child.terminate()
        child.wait()
        child.stdout.close()
