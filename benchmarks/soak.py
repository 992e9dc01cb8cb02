"""Hours of the demo in simulated time under a real screen without a terminal: does memory grow, does history slow the board?

The screen runs in this process; the job, the agent and the collector's loop in a child, in step with it.
"""

from __future__ import annotations

import asyncio
import gc
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import ROOT, conditions, show
from benchmarks.processes import costs
from benchmarks.stalls import ticking

SIZE: Final = (120, 40)
WARM_UP_SHARE: Final = 0.25
"""Of the whole: Textual's own caches, of 1,000 to 8,000 entries each, fill in the first hour."""
SAMPLE_EVERY_S: Final = 300
WALK: Final = (
    *("1", "j", "k", "2", "j", "3", "tab", "j", "4", "5", "v", "v", "0", "tab", "tab", "z", "z"),
    *("question_mark", "escape", "slash", "t", "escape", "1", "a", "escape", "0", "w", "escape", "enter", "escape"),
)
"""What a person does now and then: every screen, a filter, dialogs opened and left."""
KEY_EVERY_S: Final = 20


@dataclass(frozen=True)
class Moment:
    """One look at everything that could grow."""

    second: int
    screen_mb: float
    world_mb: float
    objects: int
    widgets: int
    tasks: int
    """Of asyncio."""


@dataclass
class Soak:
    """What a soak found."""

    moments: list[Moment] = field(default_factory=list)
    late_ms: list[int] = field(default_factory=lambda: [0] * 10_000)
    """How often the event loop was late by so many milliseconds while the world went by, without the looks at it."""
    load_ms: list[float] = field(default_factory=list)
    """Reading a snapshot of the ledger, at the begin and at the end."""
    repaint_ms: list[float] = field(default_factory=list)
    """Drawing the board from it anew."""
    rows: list[dict[str, int]] = field(default_factory=list)
    grown: dict[str, int] = field(default_factory=dict)
    """How many objects of a type there are more at the end than after the warm-up, the most first."""

    def note(self, tick: tuple[float, float]) -> None:
        """Count a tick of the event loop; a list of them would be what grows."""
        self.late_ms[min(int(tick[1]), len(self.late_ms) - 1)] += 1

    def late(self, share: float) -> float:
        """By how many milliseconds, at most, this share of the ticks was late."""
        left = share * sum(self.late_ms)
        for ms, count in enumerate(self.late_ms):
            left -= count
            if left <= 0:
                return float(ms)
        return float(len(self.late_ms))


class FollowedScreen:
    """The application on a pilot, and the world that is a second ahead of nothing: both clocks are moved together."""

    def __init__(self, app: Any, pilot: Any, world: asyncio.subprocess.Process, clock: Any, key_every_s: int) -> None:
        self.app, self.pilot, self.world, self.clock = app, pilot, world, clock
        self._key_every_s = key_every_s
        self.second = 0

    async def tick(self) -> None:
        """One simulated second of the world and then of the screen."""
        assert self.world.stdin is not None
        assert self.world.stdout is not None
        self.world.stdin.write(b"\n")
        if not await self.world.stdout.readline():
            raise RuntimeError("the simulated world has ended")
        self.clock.advance(1)
        self.second += 1
        if self.app._exit:
            raise RuntimeError("the screen has ended")
        await self.app._tick().wait()
        if self.second % self._key_every_s == 0:
            await self.pilot.press(WALK[self.second // self._key_every_s % len(WALK)])
        else:
            await self.pilot.pause()


@asynccontextmanager
async def followed(root: Path, *, pace: int = 1, key_every_s: int = KEY_EVERY_S) -> AsyncIterator[FollowedScreen]:
    """The screen on a new workspace in which a world goes by."""
    from trainflow_tui.app import TrainflowApp
    from trainflow_tui.clock import ManualClock, to_iso
    from trainflow_tui.screens.desk import Desk
    from trainflow_tui.workspace import Workspace

    start = datetime.now(UTC).replace(microsecond=0)
    argv = ["-m", "benchmarks.simulated_world", str(root), to_iso(start), str(pace)]
    pipe = asyncio.subprocess.PIPE
    world = await asyncio.create_subprocess_exec(sys.executable, *argv, stdin=pipe, stdout=pipe, cwd=ROOT)
    assert world.stdin is not None
    assert world.stdout is not None
    try:
        if not await world.stdout.readline():
            raise RuntimeError("the simulated world did not begin")
        clock = ManualClock(start)
        app = TrainflowApp(Desk(Workspace.open(root, clock=clock)))
        # Its own timer goes by the machine's time; here a second passes when both have done the last one.
        app.set_interval = lambda *_, **__: None  # type: ignore[method-assign,assignment,return-value]
        async with app.run_test(size=SIZE) as pilot:
            del app.set_interval
            await pilot.pause()
            yield FollowedScreen(app, pilot, world, clock, key_every_s)
    finally:
        world.stdin.close()
        await world.wait()


async def soaked(
    root: Path,
    seconds: int,
    *,
    warm_up_s: int,
    sample_every_s: int = SAMPLE_EVERY_S,
    key_every_s: int = KEY_EVERY_S,
    pace: int = 1,
    tell: Callable[[Moment], None] = lambda _: None,
) -> Soak:
    """So many simulated seconds, as fast as they go."""
    found = Soak()
    counted: Counter[str] = Counter()
    async with followed(root, pace=pace, key_every_s=key_every_s) as screen:
        await _look_at_board(screen, found)
        while screen.second < seconds:
            ticker = asyncio.create_task(ticking(found.note))
            for _ in range(sample_every_s):
                await screen.tick()
            ticker.cancel()
            found.moments.append(_moment(screen))
            tell(found.moments[-1])
            if screen.second == warm_up_s:
                counted = _types()
        await _look_at_board(screen, found)
        found.grown = dict((_types() - counted).most_common()) if counted else {}
    return found


async def _look_at_board(screen: FollowedScreen, found: Soak) -> None:
    from trainflow_tui.screens import snapshot

    app, pilot = screen.app, screen.pilot
    await pilot.press("escape", "escape", "1")
    await pilot.pause(0.2)
    loads, repaints = [], []
    for _ in range(20):
        begin = time.perf_counter()
        seen = await app.desk.run(snapshot.load)
        loads.append(1000 * (time.perf_counter() - begin))
        app.take(seen)
        begin = time.perf_counter()
        app.redraw()
        await pilot.pause()
        repaints.append(1000 * (time.perf_counter() - begin))
    found.load_ms.append(statistics.median(loads))
    found.repaint_ms.append(statistics.median(repaints))
    found.rows.append(
        {name: len(getattr(seen, name)) for name in ("tasks", "approvals", "questions", "guidance", "runs")}
        | {"recent points": sum(len(run.summary.recent) for run in seen.runs)}
        | {"events": sum(len(run.summary.events) for run in seen.runs)}
    )
    await pilot.press("0")


def _moment(screen: FollowedScreen) -> Moment:
    gc.collect()
    own, world = costs(os.getpid(), apart="simulated_world")
    return Moment(
        second=screen.second,
        screen_mb=own.rss_bytes / 1e6,
        world_mb=world.rss_bytes / 1e6,
        objects=len(gc.get_objects()),
        widgets=sum(
            len(list(shown.walk_children())) for stack in screen.app._screen_stacks.values() for shown in stack
        ),
        tasks=len(asyncio.all_tasks()),
    )


def _types() -> Counter[str]:
    gc.collect()
    return Counter(f"{type(o).__module__}.{type(o).__qualname__}" for o in gc.get_objects())


def slope_mb_per_h(moments: list[Moment], attribute: str, *, warm_up_s: int) -> float | None:
    """The straight line of least squares through what came after the warm-up; None with fewer than three points."""
    points = [(m.second / 3600, getattr(m, attribute)) for m in moments if m.second >= warm_up_s]
    if len(points) < 3:
        return None
    return statistics.linear_regression([x for x, _ in points], [y for _, y in points]).slope


def _print(m: Moment) -> None:
    print(
        f"{m.second:6} s  screen {m.screen_mb:6.1f} MB  collector {m.world_mb:6.1f} MB  {m.objects:7} objects "
        f"{m.widgets:4} widgets {m.tasks:3} asyncio tasks",
        flush=True,
    )


def run(*, hours: float = 4.0) -> None:
    """Soak and print."""
    print(f"{hours:g} simulated hours, {conditions()}")
    warm_up_s = int(hours * 3600 * WARM_UP_SHARE) // SAMPLE_EVERY_S * SAMPLE_EVERY_S
    begin = time.perf_counter()
    memory = Path("/dev/shm")  # ten fsyncs a simulated second are most of the time elsewhere
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        root = Path(folder) / "soak"
        root.mkdir(mode=0o700)
        os.environ |= {
            "XDG_CONFIG_HOME": folder,
            "XDG_STATE_HOME": folder,
        }  # neither the user's settings nor their looks
        found = asyncio.run(soaked(root, int(3600 * hours), warm_up_s=warm_up_s, tell=_print))
    took = time.perf_counter() - begin
    most = [f"{name} +{n}" for name, n in found.grown.items() if n > 20][:12]
    print("more objects than after the warm-up:", ", ".join(most) or "none")
    print("rows at the begin:", found.rows[0])
    print("rows at the end:  ", found.rows[-1])
    show("memory of the screen, slope", slope_mb_per_h(found.moments, "screen_mb", warm_up_s=warm_up_s), 1.0, "MB/h")
    show("memory of the collector, slope", slope_mb_per_h(found.moments, "world_mb", warm_up_s=warm_up_s), 1.0, "MB/h")
    # At many times the speed the loop is never at rest, so that only the longest stall says something of the real one.
    show("event loop, late: p99", found.late(0.99), None, "ms")
    show("event loop, late: max", found.late(1.0), 250, "ms")
    for name, values in (("snapshot of the ledger", found.load_ms), ("the board drawn anew", found.repaint_ms)):
        show(f"{name} at hour 0", values[0], None, "ms")
        show(f"{name} at hour {hours:g}", values[-1], None, "ms")
    show("a simulated second, both sides", 1000 * took / (3600 * hours), None, "ms")
    print(f"at the end: {conditions()}")
