"""`--once` with nothing new, and a ledger verb as a whole process."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.measure import TRAINFLOW, cost, show


def run() -> None:
    """Measure on the workspace that the headless demo makes."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "demo"
        begun = cost([*TRAINFLOW, "demo", str(root), "--headless"], runs=1, ok=(0, 64))
        show("demo --headless, second call refused", begun.wall_s, None, "s")
        call = [*TRAINFLOW, "--workspace", str(root)]
        subprocess.run([*call, "--once", "--json"], stdout=subprocess.DEVNULL, check=False)
        once = cost([*call, "--once", "--json"], ok=(0, 10, 11))
        show("--once --json, nothing new: wall", once.wall_s, 0.6, "s")
        show("--once --json, nothing new: memory", once.peak_mb, 150, "MB")
        page = cost([*call, "--once", "--no-json"], ok=(0, 10, 11))
        show("--once, the page with charts: wall", page.wall_s, 0.6, "s")
        for verb in (["approval", "list"], ["guidance", "list"], ["task", "list"]):
            show(f"{' '.join(verb)}: wall", cost([*call, *verb, "--json"], ok=(0, 11)).wall_s, 0.15, "s")
        asked = [*call, "question", "ask", "adapt-7b", "--title", "Measured?", "--json"]
        show("question ask, durable: wall", cost(asked).wall_s, 0.15, "s")
