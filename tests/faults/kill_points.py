"""Sealing, rolling, merging, dropping and unlinking of one run, in a process that kills itself at its Nth change of the disk.

`python -m tests.faults.kill_points FOLDER`: one line on standard output for each N, until a process reaches the end. Every
process is forked before a database is opened; what it left is checked by the next, as after any crash.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import apsw
import duckdb  # loaded once, before the forks

from trainflow_tui import refresh
from trainflow_tui.clock import ManualClock
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.events import Actor
from trainflow_tui.monitoring import compaction, follow, history
from trainflow_tui.workspace import Workspace

START = datetime(2026, 1, 1, tzinfo=UTC)
LINES = 6


def line(step):
    return (
        f" iteration {step:8}/    1000 | consumed samples: {step * 8} | elapsed time per iteration (ms): 100.0 | "
        f"learning rate: 1.000000E-04 | global batch size:     8 | lm loss: {1.0 / step:.6E} | loss scale: 1.0 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def prepare(root):
    """A workspace that follows a log, with two sealed segments and a tail that is due."""
    root.mkdir(mode=0o700)
    log = root / "train.log"
    log.write_text("")
    workspace = Workspace.open(root, create=True, clock=ManualClock(START))
    follow.add_run(workspace, log, task="", id="r", actor=Actor(door="cli"))
    for number in range(3):
        with open(log, "a") as stream:
            stream.write("".join(line(step) for step in range(number * LINES + 1, number * LINES + LINES + 1)))
        follow.Follower().follow_all(workspace)
        workspace.clock.advance(61)
        if number < 2:
            follow.Follower(seals_by_age=True).follow_all(workspace)
    workspace.close()


def upkeep(root, *, hours, retain=False):
    """What the loop does over nine days, in a moment, begun so long after the log was read."""
    clock = ManualClock(START + timedelta(hours=hours))
    workspace = Workspace.open(root, clock=clock)
    follow.Follower(seals_by_age=True).follow_all(workspace)
    for pause in (0, 7200, 86_400, 8 * 86_400):
        clock.advance(pause)
        while step := next(iter(compaction.due(workspace, eager=True)), None):
            compaction.do(workspace, step)
        refresh.drop_sealed(workspace)
    if retain:
        for step in compaction.too_old(workspace):
            compaction.do(workspace, step)
    workspace.close()


def check(root):
    """Raise where a sample is lost or doubled, in the samples or in either level of roll-ups."""
    workspace = Workspace.open(root, clock=ManualClock(START + timedelta(days=30)))
    found = manifest.segments(workspace.ledger, "r")
    assert history.count(workspace, "r") == 3 * LINES, "samples"
    assert not [s.path for s in found if s.state != "live" and not (workspace.state / s.path).exists()], "missing"
    connection = duckdb.connect()
    raw = [str(workspace.state / s.path) for s in found if s.state == "rolled"]
    identities = set(connection.execute("SELECT gen, off FROM read_parquet(?)", [raw]).fetchall()) if raw else set()
    for level in ("roll60", "roll600"):
        paths = [str(workspace.state / s.path) for s in found if s.level == level]
        sql = "SELECT coalesce(sum(samples), 0), sum(loss_avg * loss_count) FROM read_parquet(?)"
        samples, total = connection.execute(sql, [paths]).fetchall()[0] if paths else (0, None)
        assert samples == len(identities), (level, samples, len(identities))
        if raw:
            expected = connection.execute("SELECT sum(loss) FROM read_parquet(?)", [raw]).fetchall()[0][0]
            assert abs(total - expected) < 1e-9, (level, total, expected)
    samples = [s.path for s in manifest.readable(workspace.ledger, "r")]
    steps = [row[0] for row in workspace.store.series(samples, "loss", buckets=1000)]
    assert steps == list(range(1, 3 * LINES + 1)), steps
    workspace.close()


class Killer:
    """Kills this process before or after its Nth change of the disk, counted over all kinds of change."""

    def __init__(self, at):
        self.at, self.count = at, 0

    def arm(self):
        for name in ("replace", "fsync", "unlink", "chmod"):
            setattr(os, name, self.around(getattr(os, name)))
        killer, execute = self, apsw.Cursor.execute

        class Cursor(apsw.Cursor):
            def execute(self, statements, *arguments, **named):
                is_change = statements.startswith(("COMMIT", "BEGIN IMMEDIATE", "INSERT", "UPDATE", "DELETE"))
                work = killer.around(execute) if is_change else execute
                return work(self, statements, *arguments, **named)

        class Connection(apsw.Connection):
            def __init__(self, *arguments, **named):
                super().__init__(*arguments, **named)
                self.cursor_factory = Cursor

        apsw.Connection = Connection

    def around(self, real):
        def call(*arguments, **named):
            self.hit()
            result = real(*arguments, **named)
            self.hit()
            return result

        return call

    def hit(self):
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(folder, stride):
    first = folder / "first"
    assert forked(lambda: prepare(first)) == 0
    assert forked(lambda: check(first)) == 0
    at, killed = 1, 0
    while True:
        root = folder / "again"
        shutil.copytree(first, root, symlinks=True)

        def work(root=root, at=at):
            killer = Killer(at)
            killer.arm()
            upkeep(root, hours=1)

        code = forked(work)
        assert code in (0, -signal.SIGKILL), code

        def after(root=root):
            check(root)
            upkeep(root, hours=2)
            check(root)
            upkeep(root, hours=3, retain=True)
            final(root)

        assert forked(after) == 0, f"killed at change {at}"
        shutil.rmtree(root)
        if code == 0:
            break
        killed += 1
        at += stride
    print(f"{killed} kills")


def final(root):
    """Everything is rolled up, merged and, being old, dropped."""
    workspace = Workspace.open(root, clock=ManualClock(START + timedelta(days=30)))
    states = sorted(s.state for s in manifest.segments(workspace.ledger, "r"))
    assert set(states) == {"rollup"}, states
    workspace.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
