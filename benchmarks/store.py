"""Log lines and metric samples: screened and parsed a second, bytes a row, charts of a run and of 1,000 ranks for six hours."""

from __future__ import annotations

import random
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.measure import show

RANKS = 1_000
SEGMENT_S = 600
HOURS = 6


def run() -> None:
    """Parse generated Megatron lines, store their samples, query them; then samples of 1,000 ranks at 1 Hz."""
    _lines()
    with tempfile.TemporaryDirectory() as folder:
        _one_run(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        _many_ranks(Path(folder))


def _lines() -> None:
    from trainflow_tui.demo.job import line
    from trainflow_tui.monitoring.logs.parser import LogParser

    dice = random.Random(1)
    noise = "\n".join(f"[rank{i % 8}] worker heartbeat {i} ok" for i in range(300_000)).encode() + b"\n"
    metric = "\n".join(line(step, datetime.now(UTC), dice) for step in range(1, 20_001)).encode() + b"\n"
    begin = time.process_time()
    LogParser(adapter="megatron").feed(noise)
    show("log lines screened (budget is a floor)", 300_000 / (time.process_time() - begin) / 1e6, 1.0, "M/s")
    begin = time.process_time()
    LogParser(adapter="megatron").feed(metric)
    show("log records parsed (budget is a floor)", 20_000 / (time.process_time() - begin) / 1e3, 100, "k/s")


def _one_run(state: Path) -> None:
    from trainflow_tui.store.metrics import LiveTail
    from trainflow_tui.store.query import Store

    dice = random.Random(2)
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
    store = Store(state)
    store.seal("metrics/r/live/a.jsonl", "metrics/r/raw/a.parquet")
    size = (state / "metrics/r/raw/a.parquet").stat().st_size
    show("metric sample in Parquet, one metric", size / rows, 5, "B")
    show(f"chart of {rows} samples", _fastest_ms(store, ["metrics/r/raw/a.parquet"]), 60, "ms")
    store.close()


def _many_ranks(state: Path) -> None:
    from trainflow_tui.store.query import Store, connect

    (state / "cache").mkdir()
    store, maker = Store(state), connect(memory_limit="1GB", spill=state / "cache")
    raw, hourly, tens = [], [], []
    roll_s = 0.0
    for hour in range(HOURS):
        parts = []
        for begin_s in range(hour * 3600, hour * 3600 + 3600, SEGMENT_S):
            raw.append(f"metrics/r/raw/{begin_s}.parquet")
            _generate(maker, state / raw[-1], begin_s)
            parts.append(f"metrics/r/roll60/{begin_s}.parquet")
            tens.append(f"metrics/r/roll600/{begin_s}.parquet")
            begin = time.perf_counter()
            store.roll([raw[-1]], parts[-1], after=(-1, -1))
            store.widen(parts[-1], tens[-1])
            roll_s += time.perf_counter() - begin
        hourly.append(f"metrics/r/roll60/hour{hour}.parquet")
        store.merge(parts, hourly[-1])
    rows = RANKS * HOURS * 3600
    assert store.count(raw) == rows
    size = sum((state / name).stat().st_size for name in raw)
    show(f"metric sample in Parquet, five metrics, {rows / 1e6:.1f} M rows", size / rows, 5, "B")
    show("roll 600 k samples up to 60 s and 600 s", 1000 * roll_s / len(raw), None, "ms")
    begin = time.perf_counter()
    store.merge(raw[:2], "metrics/r/raw/merged.parquet")
    show("merge two segments into one of 1.2 M samples", 1000 * (time.perf_counter() - begin), None, "ms")
    for level, files in (("60 s", hourly), ("600 s", tens)):
        bytes_a_day = sum((state / name).stat().st_size for name in files) * 24 / HOURS
        show(f"{level} roll-up of 1,000 ranks, a day", bytes_a_day / 1e6, None, "MB")
    for level, files in (("roll60", hourly), ("roll600", tens)):
        store.merge(files, f"metrics/r/{level}/day.parquet")
    show("six hours of 1,000 ranks, 60 s roll-ups in hours", _fastest_ms(store, hourly), 30, "ms")
    show(
        "six hours of 1,000 ranks, 60 s roll-ups in a day",
        _fastest_ms(store, ["metrics/r/roll60/day.parquet"]),
        30,
        "ms",
    )
    show("six hours of 1,000 ranks, 600 s roll-ups", _fastest_ms(store, ["metrics/r/roll600/day.parquet"]), 30, "ms")
    store.close()


def _fastest_ms(store, files: list[str], times: int = 7) -> float:
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        assert len(store.series(files, "loss", buckets=200)) > HOURS * 6 - 1
        found.append(time.perf_counter() - begin)
    return 1000 * min(found)


def _generate(connection, path: Path, begin_s: int) -> None:
    """A segment of samples of all ranks, quantised as a source prints them; offsets as of lines of 180 bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = "(hash(t * 1000 + r + {0}) % 1000) / 1000.0"
    connection.execute(f"""
        COPY (
          SELECT CAST(1 AS INTEGER) AS gen, CAST((t * {RANKS} + r) * 180 AS BIGINT) AS off,
            strftime(TIMESTAMP '2026-01-01' + to_seconds(t), '%Y-%m-%dT%H:%M:%S.%fZ') AS "at",
            CAST(1 AS INTEGER) AS attempt, CAST(t AS BIGINT) AS step,
            CAST(round(2 + 3 / (1 + t / 1000.0) + 0.1 * {noise.format(1)}, 4) AS DOUBLE) AS loss,
            CAST(round(0.5 + 0.1 * {noise.format(2)}, 3) AS DOUBLE) AS grad_norm, CAST(0.0003 AS DOUBLE) AS lr,
            CAST(round(1 + 0.02 * {noise.format(3)}, 3) AS DOUBLE) AS step_time_s,
            CAST(round(3000 + 30 * {noise.format(4)}) AS DOUBLE) AS tokens_per_s_per_gpu,
            CAST(NULL AS DOUBLE) AS tflops_per_gpu, CAST(NULL AS DOUBLE) AS samples_per_s,
            CAST(round(3000 + 30 * {noise.format(4)}) AS DOUBLE) AS throughput,
            CAST('{{"rank":' || r || '}}' AS JSON) AS extra
          FROM range({begin_s}, {begin_s + SEGMENT_S}) times(t), range({RANKS}) ranks(r)
          ORDER BY t, r
        ) TO '{path}' (FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd)""")
