"""A collector that is killed at any moment loses nothing and doubles nothing (T-01)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time

from trainflow_tui.collaboration import guidance, tasks
from trainflow_tui.collaboration.collector import collect
from trainflow_tui.workspace import Workspace

KILLS = 100
_COLLECTOR = """
import sys
from pathlib import Path
from trainflow_tui.collaboration import collector
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace
workspace = Workspace.open(Path(sys.argv[1]))
collector.CHUNK = 7
print("up", flush=True)
while True:
    collector.collect(workspace, actor=Actor(door="watch"))
"""


class Writer(threading.Thread):
    """A person who adds items: in place, in two halves, by a new file renamed over."""

    def __init__(self, path, seed):
        super().__init__(daemon=True)
        self.path, self.dice, self.written, self.stop = path, random.Random(seed), [], threading.Event()

    def run(self):
        number = 0
        while not self.stop.wait(self.dice.uniform(0.02, 0.12)):
            items = [
                f"\n## G{number + i} item {number + i}\n\nbody {number + i}\n" for i in range(self.dice.randint(1, 3))
            ]
            text = "".join(items)
            style = self.dice.choice(["append", "halves", "rename"])
            if style == "rename":
                fresh = self.path.with_name(".edit")
                fresh.write_text(self.path.read_text() + text)
                os.replace(fresh, self.path)
            else:
                with open(self.path, "a") as stream:
                    if style == "halves":
                        middle = self.dice.randrange(len(text))
                        stream.write(text[:middle])
                        stream.flush()
                        time.sleep(0.03)
                        stream.write(text[middle:])
                    else:
                        stream.write(text)
            self.written += [f"G{number + i}" for i in range(len(items))]
            number += len(items)


def test_a_hundred_kills_lose_and_double_nothing(tmp_path, actor):
    root = tmp_path / "ws"
    root.mkdir(mode=0o700)
    workspace = Workspace.open(root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    writer = Writer(workspace.task_folder("t") / "GUIDANCE.md", seed=5)
    writer.start()
    dice = random.Random(6)
    for _ in range(KILLS):
        child = subprocess.Popen([sys.executable, "-c", _COLLECTOR, str(root)], stdout=subprocess.PIPE)
        assert child.stdout.readline() == b"up\n"
        time.sleep(dice.uniform(0.0, 0.25))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
    writer.stop.set()
    writer.join()
    os.utime(writer.path, (time.time() - 60,) * 2)
    time.sleep(0.01)
    for _ in range(3):
        collect(workspace, actor=actor)
    found = [i for i in guidance.listed(workspace.ledger) if i.removed_at is None]
    assert [i.id for i in found] == writer.written
    assert all(i.text.strip().endswith(f"body {i.id[1:]}") for i in found)
    collected = workspace.ledger.query(
        "SELECT entity, json_extract(payload, '$.version'), count(*) FROM event WHERE kind = 'guidance.collected' "
        "GROUP BY 1, 2 HAVING count(*) > 1"
    )
    assert collected == []
    assert workspace.ledger.verify().first_bad_seq is None
    workspace.close()
