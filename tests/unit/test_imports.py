"""What each door may load, seen in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("duckdb", "numpy", "asyncssh", "textual", "plotext", "watchfiles")
_PROBE = """
import json, sys
from trainflow_tui.cli import main
from trainflow_tui.cli.frame import run
code = run(main.root, sys.argv[1:])
sys.stderr.write(json.dumps({"code": code, "loaded": sorted(m for m in %r if m in sys.modules)}))
"""


def loaded(root, *words):
    done = subprocess.run(
        [sys.executable, "-c", _PROBE % (HEAVY,), "--workspace", str(root), "--json", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stderr.splitlines()[-1])
    return found["code"], found["loaded"]


@pytest.mark.parametrize(
    "words",
    [
        ("task", "list"),
        ("guidance", "list"),
        ("guidance", "add", "t", "--text", "words"),
        ("question", "ask", "t", "--title", "Why?"),
        ("approval", "list"),
        ("report", "list", "t"),
        ("receipt", "list", "t"),
        ("ledger", "verify"),
        ("config",),
        ("logs",),
    ],
)
def test_a_ledger_verb_loads_nothing_heavy(command, words):
    assert command.run("task", "create", "t").returncode == 0
    assert loaded(command.root, *words) == (0, [])


def test_the_headless_refresh_loads_no_screen(command):
    command.run("task", "create", "t")
    code, found = loaded(command.root, "--once")
    assert code in (0, 10)
    assert found == []


def test_first_paint_needs_neither_duckdb_nor_numpy():
    probe = "import sys, trainflow_tui.app; print(sorted(m for m in ('duckdb', 'numpy', 'asyncssh', 'plotext') if m in sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


def test_the_package_itself_imports_nothing():
    probe = "import sys; before = set(sys.modules); import trainflow_tui; print(sorted(set(sys.modules) - before))"
    assert (
        subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.strip()
        == "['trainflow_tui']"
    )
