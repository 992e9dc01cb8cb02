"""A real trace from file to first complete hot-spot list, as a whole process, and a generated one against one `read_json` pass."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import SHARED, TRAINFLOW, cost, show


def run() -> None:
    """The largest corpus trace; then 200 MB made by the shared generator, where it is present."""
    trace = SHARED / "corpus/traces/nv_v100_ddp_rank1of2_memory.json.gz"
    if trace.exists():
        found = cost([*TRAINFLOW, "trace", "hotspots", str(trace), "--json"], ok=(0, 20))
        show("54 MB trace, process start to hot-spots: CPU", found.cpu_s, 1.2, "s")
        show("54 MB trace, process start to hot-spots: memory", found.peak_mb, 300, "MB")
    else:
        print("skipped: the trace corpus is not beside the project")
    tool = SHARED / "tools/gen_trace.py"
    if not tool.exists():
        print("skipped: the trace generator is not beside the project")
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "t.json"
        subprocess.run([sys.executable, str(tool), str(made), "--mb", "200"], check=True, stdout=subprocess.DEVNULL)
        one_pass = cost([sys.executable, "-c", _CALIBRATION, str(made)], runs=3)
        root = Path(folder) / "ws"
        added = cost([*TRAINFLOW, "--workspace", str(root), "trace", "add", str(made), "--json"], runs=1, ok=(0, 20))
        show("200 MB ingest, CPU (budget: 3.2 × one read_json pass)", added.cpu_s, 3.2 * one_pass.cpu_s, "s")
        show("200 MB ingest, memory", added.peak_mb, 600, "MB")
        ident = subprocess.run(
            [*TRAINFLOW, "--workspace", str(root), "trace", "list", "--no-json"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()[0]
        from trainflow_tui.analysis.traces import hotspots  # noqa: F401  a screen that is open has DuckDB loaded
        from trainflow_tui.monitoring.traces import hotspots_of_id
        from trainflow_tui.workspace import Workspace

        workspace = Workspace.open(root)
        for name in ("reopen the ingested trace, 90 % list", "90 % list again"):
            begin = time.perf_counter()
            hotspots_of_id(workspace, ident, target=0.9, all_rows=False)
            show(name, 1000 * (time.perf_counter() - begin), 100, "ms")
        workspace.close()


_CALIBRATION = """
import re, sys, duckdb
text = open(sys.argv[1], "rb").read()
start = text.index(b"[", text.index(b'"traceEvents"'))
end = text.rindex(b"]")
import tempfile
with tempfile.NamedTemporaryFile(suffix=".json") as f:
    f.write(text[start:end + 1]); f.flush()
    c = duckdb.connect(config={"threads": 1})
    c.execute("SELECT sum(dur) FROM read_json('%s', format='array', maximum_object_size=1000000000, "
              "columns={ph: 'VARCHAR', cat: 'VARCHAR', name: 'VARCHAR', dur: 'DOUBLE'})" % f.name).fetchall()
"""
