"""The screen on a pseudo-terminal, beside W&B LEET in the same run: first paint, bytes and CPU at rest and live, keys, stalls.

What has to be visible is judged on an emulated picture, never on the bytes that were sent.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import leet, slow_line, stalls
from benchmarks.cursor import Cursor, Press
from benchmarks.figures import Figures
from benchmarks.line import Line, opened, shows
from benchmarks.measure import TRAINFLOW, conditions
from benchmarks.processes import Cost, costs
from benchmarks.workspaces import demo, thousand_nodes

PAINTS: Final = 5
SETTLE_S: Final = 15.0
WINDOW_S: Final = 20.0
PRESSES: Final = 60
SLOW_PRESSES: Final = 20
WIDE: Final = (120, 40)
SIZES: Final = (WIDE, (80, 24), (200, 60))


@dataclass(frozen=True)
class Program:
    """A program, what it must show to be of use, and its keys for cursor down and up."""

    name: str
    argv: list[str]
    words: tuple[str, ...]
    cursor: tuple[str, str]


def run(*, with_leet: bool = False) -> None:
    """Measure everything; figures only, no verdict."""
    print(f"the screen, {conditions()}; first paint is the median of {PAINTS}")
    figures = Figures()
    version = leet.install() if with_leet else None
    with tempfile.TemporaryDirectory() as folder:
        root = demo(Path(folder) / "demo")
        paint = ("adapt-7b", "Needs you", "Restart from step 150", "Loss of")
        ours = Program("ours", [*TRAINFLOW, "--workspace", str(root)], paint, ("j", "k"))
        theirs = None
        if version:
            print(f"beside {version}")
            static = leet.finished_run(Path(folder) / "finished", steps=300)
            theirs = Program("LEET", leet.command(static), ("loss", "throughput", "Summary", "└──"), ("s", "w"))
        nodes, live = Path(folder) / "nodes", Path(folder) / "live"
        _part(lambda: first_paint(figures, ours, theirs))
        _part(lambda: at_rest_and_live(figures, ours, root))
        if theirs:
            _part(lambda: live_leet(figures, theirs, live))
        _part(lambda: keys(figures, ours, theirs, thousand_nodes(nodes)))
        _part(lambda: on_slow_line(figures, ours, root, theirs, live))
        _part(lambda: switches(figures, ours, theirs))
        _part(lambda: stalls.measure(figures.ours, root, Path(folder)))
    if not theirs:
        figures.take_stored()
    figures.table()


def _part(measure: Callable[[], None]) -> None:
    """One measurement; where it is not to be had the others go on."""
    try:
        measure()
    except (RuntimeError, OSError, subprocess.SubprocessError) as problem:
        print(f"not measured: {problem}", flush=True)


# First paint


def first_paint(figures: Figures, ours: Program, theirs: Program | None) -> None:
    """From the start of the process until what is stored can be read; the two programs take turns."""
    found: dict[str, list[tuple[float | None, int, int]]] = {"ours": [], "LEET": []}
    for _ in range(PAINTS):
        for program in filter(None, (ours, theirs)):
            with opened(program.argv, size=WIDE) as line:
                line.pump(1.0)
                line.rest(1.0, limit_s=10)
                piece = line.first(shows(line, *program.words), 0)
                moment = None if piece is None else line.moment(piece) - line.begun
                until = line.bytes_between(0, None if piece is None else piece + 1)
                found[program.name].append((moment, until, line.bytes_between(0)))
    for name, tell in (("ours", figures.ours), ("LEET", figures.theirs)):
        if not found[name]:
            continue
        moments = [m for m, _, _ in found[name] if m is not None]
        budget = {"budget": 0.6} if name == "ours" else {}
        tell("first paint 120x40", statistics.median(moments) if moments else None, "s", **budget)
        tell("first paint 120x40: bytes until then", statistics.median(b for _, b, _ in found[name]), "B")
        tell("first paint 120x40: bytes until at rest", statistics.median(b for _, _, b in found[name]), "B")


# At rest and live


@dataclass(frozen=True)
class Window:
    """What a program wrote and used in some seconds."""

    bytes_per_s: float
    writes_per_s: float
    cpu_percent: float
    apart_percent: float
    own: Cost
    apart: Cost


def watched(line: Line, seconds: float) -> Window:
    """Look at a program for some time."""
    own, apart = costs(line.pid)
    since, begin = line.here, line.clock()
    line.pump(seconds)
    span = line.clock() - begin
    now, now_apart = costs(line.pid)
    return Window(
        bytes_per_s=line.bytes_between(since) / span,
        writes_per_s=(line.here - since) / span,
        cpu_percent=100 * (now.cpu_s - own.cpu_s) / span,
        apart_percent=100 * (now_apart.cpu_s - apart.cpu_s) / span,
        own=now,
        apart=now_apart,
    )


def at_rest_and_live(figures: Figures, ours: Program, root: Path) -> None:
    """At each size: nothing changes, then the job writes a line a second. The live screen has two charts and two lists."""
    for size in SIZES:
        words = _words(size)
        with opened(ours.argv, size=size) as line:
            line.pump(2.0)
            if size != WIDE:
                line.send("5")
            line.pump(SETTLE_S)
            rest = watched(line, WINDOW_S)
            figures.ours(f"at rest {words}", rest.bytes_per_s, "B/s", 0.0)
            figures.ours(f"at rest {words}: CPU", rest.cpu_percent, "%", 0.3)
            figures.ours(f"at rest {words}: CPU with the collector", rest.cpu_percent + rest.apart_percent, "%")
            with job(root):
                line.pump(6.0)
                if size == WIDE:
                    _show_live(figures, f"live at 1 Hz {words}, overview", watched(line, WINDOW_S), 650)
                    line.send("5")
                    line.pump(4.0)
                _show_live(figures, f"live at 1 Hz {words}", watched(line, WINDOW_S), 500 if size == (80, 24) else 650)
            if size == WIDE:
                own, apart = costs(line.pid)
                figures.ours("memory of the screen", own.rss_bytes / 1e6, "MB", 120)
                figures.ours("memory of the collector", apart.rss_bytes / 1e6, "MB")


def _show_live(figures: Figures, name: str, seen: Window, budget: float) -> None:
    figures.ours(name, seen.bytes_per_s, "B/s", budget)
    figures.ours(f"{name}: writes", seen.writes_per_s, "/s")
    figures.ours(f"{name}: CPU", seen.cpu_percent, "%", 1.0)
    figures.ours(f"{name}: CPU with the collector", seen.cpu_percent + seen.apart_percent, "%")


def live_leet(figures: Figures, theirs: Program, folder: Path) -> None:
    """LEET at rest on a finished run, then on one that is written once a second."""
    with opened(theirs.argv, size=WIDE) as line:
        line.pump(6.0)
        rest = watched(line, WINDOW_S)
        figures.theirs("at rest 120x40", rest.bytes_per_s, "B/s")
        figures.theirs("at rest 120x40: CPU", rest.cpu_percent, "%")
    with leet.writing(folder, at_once=240, then=600) as live:
        for size in SIZES:
            name = f"live at 1 Hz {_words(size)}"
            with opened(leet.command(live), size=size) as line:
                line.pump(8.0)
                seen = watched(line, WINDOW_S)
                figures.theirs(name, seen.bytes_per_s, "B/s")
                figures.theirs(f"{name}: writes", seen.writes_per_s, "/s")
                figures.theirs(f"{name}: CPU", seen.cpu_percent, "%")
                if size == WIDE:
                    figures.theirs("memory of the screen", seen.own.rss_bytes / 1e6, "MB")


@contextmanager
def job(root: Path) -> Iterator[None]:
    """The demo's job writes a line a second to the workspace's log."""
    log = root / "train.log"
    step = max(int(number) for number in re.findall(r"\] iteration +(\d+)/", log.read_text())) + 1
    argv = [sys.executable, "-m", "trainflow_tui.demo.job", str(log), str(step)]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        assert child.stdin is not None
        child.stdin.close()
        child.wait()


# Keys


def keys(figures: Figures, ours: Program, theirs: Program | None, root: Path) -> None:
    """The cursor in a list of 1,000 nodes; in LEET, which has no such list, in the one of a run's settings."""
    with opened([*TRAINFLOW, "--workspace", str(root)], size=WIDE) as line:
        line.pump(2.0)
        line.send("4")
        line.await_first(shows(line, "node-0003"), 0, 10)
        line.rest(1.0, limit_s=SETTLE_S)
        _show_keys(figures.ours, _pressed(line, ours, PRESSES, limit_s=2.0), budget=True)
        since, begin = line.here, line.clock()
        line.send("\x1b[6~")
        line.rest(0.5, limit_s=5)
        figures.ours("page down in 1,000 rows", 1000 * (line.pieces[-1][0] - begin), "ms")
        figures.ours("page down in 1,000 rows: bytes", line.bytes_between(since), "B")
    if theirs:
        with opened(theirs.argv, size=WIDE) as line:
            line.pump(5.0)
            _show_keys(figures.theirs, _pressed(line, theirs, PRESSES, limit_s=2.0), budget=False)


def _pressed(line: Line, program: Program, count: int, *, limit_s: float) -> list[Press]:
    cursor = Cursor(line, program.cursor)
    found = []
    for number in range(count):
        found.append(cursor.press(limit_s=limit_s))
        line.pump(0.15 + 0.01 * (number % 10))  # not in step with anything that comes once a second
    return found


def _show_keys(tell: Callable[..., None], found: list[Press], *, budget: bool) -> None:
    limits = {"budget": 30} if budget else {}
    for words, values in (
        ("key to first byte", [p.first_byte_ms for p in found]),
        ("key to the row drawn", [p.drawn_ms for p in found]),
    ):
        tell(f"{words}, p50", _quantile(values, 0.5), "ms")
        tell(f"{words}, p95", _quantile(values, 0.95), "ms", **(limits if words.endswith("byte") else {}))
    tell("one row down: bytes", statistics.median(p.sent_bytes for p in found), "B")


def _quantile(values: list[float | None], share: float) -> float | None:
    """None where more are missing than the share leaves out."""
    known = sorted(v for v in values if v is not None)
    place = int(share * (len(values) - 1) + 0.5)
    return known[place] if place < len(known) else None


def on_slow_line(figures: Figures, ours: Program, root: Path, theirs: Program | None, folder: Path) -> None:
    """On a line of 4 KB/s while the run is live: from the key until the row under the cursor is drawn."""
    with job(root):
        _show_slow(figures.ours, slow_line.measure(ours.argv, ours.words, presses=SLOW_PRESSES, keys=ours.cursor), 400)
    if theirs:
        with leet.writing(folder, at_once=240, then=300) as live:
            found = slow_line.measure(leet.command(live), theirs.words, presses=SLOW_PRESSES, keys=theirs.cursor)
            _show_slow(figures.theirs, found, None)


def _show_slow(tell: Callable[..., None], found: slow_line.Found, budget: float | None) -> None:
    tell("live, 4 KB/s: key to the row drawn, p50", found.p50_ms, "ms")
    tell("live, 4 KB/s: key to the row drawn, p95", found.p95_ms, "ms", *([budget] if budget else []))
    tell("live, 4 KB/s: bytes without a key", found.bytes_per_s, "B/s")


# Whole pictures


def switches(figures: Figures, ours: Program, theirs: Program | None) -> None:
    """Every screen for the first and the second time, and a picture sent anew because the window has another size."""
    with opened(ours.argv, size=WIDE) as line:
        line.pump(2.0)
        line.rest(1.0, limit_s=SETTLE_S)
        for words in ("first", "again"):
            found = [_burst(line, lambda key=key: line.send(key)) for key in "123450"]
            figures.ours(f"switch of screen, {words}: worst", max(ms for ms, _ in found), "ms", 250)
            figures.ours(f"switch of screen, {words}: worst: bytes", max(b for _, b in found), "B", 45_000)
        took, sent = _burst(line, lambda: line.send("\t"))
        figures.ours("to the next pane", took, "ms", 250)
        figures.ours("to the next pane: bytes", sent, "B")
        took, sent = _burst(line, lambda: line.resize(121, 40))
        figures.ours("another size: whole picture", took, "ms", 250)
        figures.ours("another size: whole picture: bytes", sent, "B", 45_000)
    if theirs:
        with opened(theirs.argv, size=WIDE) as line:
            line.pump(5.0)
            found = [_burst(line, lambda key=key: line.send(key)) for key in "[[22"]
            figures.theirs("switch of screen, again: worst", max(ms for ms, _ in found), "ms")
            figures.theirs("switch of screen, again: worst: bytes", max(b for _, b in found), "B")
            took, sent = _burst(line, lambda: line.send("\t"))
            figures.theirs("to the next pane", took, "ms")
            figures.theirs("to the next pane: bytes", sent, "B")
            took, sent = _burst(line, lambda: line.resize(121, 40))
            figures.theirs("another size: whole picture", took, "ms")
            figures.theirs("another size: whole picture: bytes", sent, "B")


def _burst(line: Line, act: Callable[[], None]) -> tuple[float, float]:
    """Milliseconds until the last byte that an action led to, and how many bytes it led to."""
    since, begin = line.here, line.clock()
    act()
    line.rest(0.6, limit_s=5)
    if line.here == since:
        return 0.0, 0.0
    return 1000 * (line.pieces[-1][0] - begin), float(line.bytes_between(since))


def _words(size: tuple[int, int]) -> str:
    return f"{size[0]}x{size[1]}"
