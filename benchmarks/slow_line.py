"""The screen on a line of a few kilobytes a second while a run is live: from a key to its picture, screens, bytes.

The line answers each question once, in order, when it has taken the bytes before it, as a terminal behind a slow SSH connection does.
"""

from __future__ import annotations

import os
import random
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cursor import Cursor, Press
from benchmarks.line import SLOW, Line, shows
from benchmarks.measure import TRAINFLOW, show
from benchmarks.workspaces import demo
from tests.tui import terminal

RATES = (SLOW, 1000)
BUDGET_MS = 400
HELD = 30
_TAIL = 16


class AnsweringLine(Line):
    """A `Line` on which a question cut by the end of a read is answered too, and two in one read are answered twice."""

    _tail = b""
    delay_s = 0.0
    """How long an answer is on its way."""

    def _take(self, seconds: float) -> bool:
        room = self._room()
        if self._master < 0:
            return False
        if room < 64:
            time.sleep(min(0.005, seconds))
            return True
        if not select.select([self._master], [], [], min(0.05, seconds))[0]:
            return True
        try:
            written = os.read(self._master, room)
        except OSError:
            return False
        self._tokens -= len(written)
        self.raw += written
        self.pieces.append((time.perf_counter(), written))
        found = []
        known = len(self._tail)
        whole = self._tail + written
        for question, answer in terminal.ANSWERS:
            at = whole.find(question)
            while at >= 0:
                if at + len(question) > known:
                    found.append((at, answer))
                at = whole.find(question, at + 1)
        for _, answer in sorted(found):
            self.send(answer)
        self._tail = whole[-_TAIL:]
        return bool(written)


class Held(Cursor):
    """A cursor whose key is held down."""

    def move(self) -> None:
        """Move it without waiting."""
        self._at = 1 - self._at
        self._line.send(self._keys[0] if self._at else self._keys[1])


@dataclass(frozen=True)
class Found:
    """What was measured on one line. Milliseconds until the row under the cursor was drawn whole; None is never."""

    rate: int
    presses: list[Press]
    bytes_per_s: float
    held_ms: float | None
    """The same for the last of 30 keys, 15 a second: a key that is held down."""
    switch_ms: list[float]
    """From the key of another screen to the last byte of it."""

    @property
    def p50_ms(self) -> float:
        """The median."""
        return statistics.median(self._known)

    @property
    def p95_ms(self) -> float:
        """19 of 20 were there by then; the limit stands for those that were not."""
        values = sorted(self._known)
        return values[min(len(values) - 1, int(0.95 * len(values)))]

    @property
    def _known(self) -> list[float]:
        return [10_000.0 if p.drawn_ms is None else p.drawn_ms for p in self.presses]


def measure(
    argv: Sequence[str],
    words: Sequence[str],
    *,
    rate: int = SLOW,
    presses: int = 20,
    size: tuple[int, int] = (120, 40),
    keys: tuple[str, str] = ("j", "k"),
    screens: str = "",
) -> Found:
    """Open a program that a live run changes once a second, and press keys at moments that know nothing of its ticks."""
    chance = random.Random(4)
    with (
        tempfile.TemporaryDirectory() as home,
        AnsweringLine(argv, config_home=Path(home), size=size, rate=rate) as line,
    ):
        try:
            line.await_first(shows(line, *words), 0, 90)
            line.catch_up(10.0)
            since = line.here
            line.pump(10.0)
            live = line.bytes_between(since) / 10
            cursor, found = Held(line, keys), []
            for _ in range(presses):
                line.pump(1.0 + chance.random())
                found.append(cursor.press(limit_s=10.0))
            for _ in range(HELD):
                cursor.move()
                line.pump(1 / 15)
            held = cursor.press(limit_s=20.0).drawn_ms
            line.rest(1.5, limit_s=10)
            switched = [_switch(line, key) for key in screens]
        finally:
            line.hang_up()
    return Found(rate, found, live, held, switched)


def _switch(line: AnsweringLine, key: str) -> float:
    begin = line.clock()
    line.send(key)
    line.rest(0.6, limit_s=40)
    return 1000 * (line.pieces[-1][0] - begin)


@contextmanager
def writing(root: Path) -> Iterator[None]:
    """The demo's job, writing its log once a second."""
    job = subprocess.Popen(
        [sys.executable, "-m", "trainflow_tui.demo.job", str(root / "train.log"), "600"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        assert job.stdin is not None
        job.stdin.close()
        job.wait()


def run() -> None:
    """On the demo's workspace with its job writing."""
    with tempfile.TemporaryDirectory() as folder:
        root = demo(Path(folder) / "demo")
        with writing(root):
            for rate in RATES:
                found = measure([*TRAINFLOW, "--workspace", str(root)], ("Needs you",), rate=rate)
                budget = BUDGET_MS if rate == SLOW else None
                show(f"live, {rate} B/s: key to the row drawn, p50", found.p50_ms, None, "ms")
                show(f"live, {rate} B/s: key to the row drawn, p95", found.p95_ms, budget, "ms")
                show(f"live, {rate} B/s: last of {HELD} keys, 15 a second", found.held_ms or 20_000.0, None, "ms")
                show(f"live, {rate} B/s: bytes without a key", found.bytes_per_s, None, "B/s")


if __name__ == "__main__":
    run()
