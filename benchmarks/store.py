"""Log lines and metric samples: screened and parsed a second, bytes a row, a chart's query."""

from __future__ import annotations

import random
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import show


def run() -> None:
    """Parse generated Megatron lines, store their samples, query them."""
    from trainflow_tui.demo.job import line
    from trainflow_tui.monitoring.logs.parser import LogParser
    from trainflow_tui.store.metrics import LiveTail
    from trainflow_tui.store.query import Store

    dice = random.Random(1)
    noise = "\n".join(f"[rank{i % 8}] worker heartbeat {i} ok" for i in range(300_000)).encode() + b"\n"
    metric = "\n".join(line(step, datetime.now(UTC), dice) for step in range(1, 20_001)).encode() + b"\n"
    begin = time.process_time()
    LogParser(adapter="megatron").feed(noise)
    show("log lines screened (budget is a floor)", 300_000 / (time.process_time() - begin) / 1e6, 1.0, "M/s")
    begin = time.process_time()
    LogParser(adapter="megatron").feed(metric)
    show("log records parsed (budget is a floor)", 20_000 / (time.process_time() - begin) / 1e3, 100, "k/s")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder)
        (state / "cache").mkdir()
        rows = 200_000
        samples = [
            {
                "gen": 1,
                "off": i,
                "at": "2026-01-01T00:00:00.000000Z",
                "attempt": 1,
                "step": i,
                "loss": round(dice.uniform(2, 3), 4),
            }
            for i in range(rows)
        ]
        LiveTail(state / "metrics/r/live/a.jsonl").append(samples)
        (state / "metrics/r/raw").mkdir()
        store = Store(state)
        store.seal("metrics/r/live/a.jsonl", "metrics/r/raw/a.parquet")
        size = (state / "metrics/r/raw/a.parquet").stat().st_size
        show("metric sample in Parquet", size / rows, 5, "B")
        begin = time.perf_counter()
        found = store.series(["metrics/r/raw/a.parquet"], "loss", buckets=400)
        show(f"chart of {rows} samples, {len(found)} buckets", 1000 * (time.perf_counter() - begin), 60, "ms")
