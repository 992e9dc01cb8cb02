"""Shared fixtures: a fresh workspace, a clock that moves when told, the command line as a subprocess."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from trainflow_tui.clock import ManualClock
from trainflow_tui.ledger.events import Actor
from trainflow_tui.workspace import Workspace

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


@pytest.fixture(autouse=True)
def _alone(monkeypatch, tmp_path_factory):
    """No test sees the user's settings, language, screens of last time, another workspace or an agent's variable."""
    for name in list(os.environ):
        if name.startswith("TRAINFLOW_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    for name in ("EDITOR", "VISUAL", "PAGER", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    # A pytest parallel to a terminal session must not look like one to the decision record.
    monkeypatch.setenv("COLUMNS", "120")


@pytest.fixture
def clock():
    return ManualClock(datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC))


@pytest.fixture
def actor():
    return Actor(door="cli", uid=1000, user="operator", tty="/dev/pts/7")


@pytest.fixture
def workspace(tmp_path, clock):
    root = tmp_path / "ws"
    root.mkdir(mode=0o700)
    opened = Workspace.open(root, create=True, clock=clock)
    yield opened
    opened.close()


class Command:
    """The command line in a process of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def run(self, *words: str, stdin: str = "", env: dict[str, str] | None = None, timeout: float = 60):
        environment = {k: v for k, v in os.environ.items() if k != "TRAINFLOW_AGENT"} | (env or {})
        return subprocess.run(
            [sys.executable, "-m", "trainflow_tui", "--workspace", str(self.root), *words],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT,
            env=environment,
            check=False,
        )

    def json(self, *words: str, **named):
        done = self.run("--json", *words, **named)
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)


@pytest.fixture
def command(tmp_path):
    root = tmp_path / "ws"
    root.mkdir(mode=0o700, exist_ok=True)
    return Command(root)
