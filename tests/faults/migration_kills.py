"""Opening a ledger of an older schema in a process that kills itself before its Nth statement or change of the disk.

`python -m tests.faults.migration_kills LEDGER FOLDER`: for each N a copy of the ledger in FOLDER/N, and its exit code as a line
on standard output, until a process reaches the end. `… LEDGER --together N`: that many processes open it at once.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import apsw

from trainflow_tui.clock import ManualClock
from trainflow_tui.ledger.database import Ledger

START = datetime(2026, 1, 1, tzinfo=UTC)


def forked(work):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def open_ledger(path):
    opened = Ledger.open(path, clock=ManualClock(START))
    assert opened.verify().projections_match
    opened.close()


def open_and_die(path, at):
    left = at

    def hit(*_):
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return True

    class Connection(apsw.Connection):
        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.exec_trace = hit  # each statement of a script too

    def around(real):
        def call(*arguments, **named):
            hit()
            return real(*arguments, **named)

        return call

    apsw.Connection = Connection
    for name in ("open", "write", "replace", "fsync"):
        setattr(os, name, around(getattr(os, name)))
    Ledger.open(path, clock=ManualClock(START)).close()


def main(ledger, target, together=0):
    if target == "--together":
        children = [forked(lambda: open_ledger(ledger)) for _ in range(int(together))]
        print(sum(ended(child) == 0 for child in children))
        return
    for at in count(1):
        folder = Path(target) / str(at)
        folder.mkdir()
        shutil.copy(ledger, folder / "ledger.db")
        code = ended(forked(lambda: open_and_die(folder / "ledger.db", at)))  # noqa: B023
        print(code, flush=True)
        if code != -signal.SIGKILL:
            break


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
