"""Disks and processes as tests of faults need them: a small disk that can be filled, a collector of its own, patience."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0
"""How long something may take on a busy machine before a test fails; never how long it should take."""


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for a condition that another process or thread brings about."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.05)


@contextlib.contextmanager
def small_disk(place: Path, options: str = "size=6m") -> Iterator[Path]:
    """A file system in memory at `place`; skips the test where none can be mounted."""
    place.mkdir(mode=0o700, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def fill(place: Path) -> Path:
    """Take all the room that is left; returns the file that has it."""
    stuffing = place / "stuffing"
    with open(stuffing, "ab", buffering=0) as stream:
        for size in (1 << 20, 4096, 64):
            with contextlib.suppress(OSError):
                while True:
                    stream.write(bytes(size))
    return stuffing


@contextlib.contextmanager
def collector(
    root: Path, *words: str, before: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """`trainflow watch` on a workspace; it ends with the context."""
    argv = [*before, sys.executable, "-m", "trainflow_tui", "--workspace", str(root), "--json", "watch"]
    child = subprocess.Popen(
        [*argv, "--with-parent", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=ROOT,
        env=os.environ | (env or {}),
    )
    try:
        yield child
    finally:
        if child.poll() is None:
            child.stdin.close()
            try:
                child.wait(timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                child.kill()
        child.wait()
        child.stdout.close()
