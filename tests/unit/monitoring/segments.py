"""A run's segments made by hand, and what roll-ups of them must hold, computed in plain Python."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from datetime import timedelta

import duckdb

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.ledger import manifest
from trainflow_tui.store.metrics import LiveTail

METRICS = (
    "loss",
    "grad_norm",
    "lr",
    "step_time_s",
    "tokens_per_s_per_gpu",
    "tflops_per_gpu",
    "samples_per_s",
    "throughput",
)
SECONDS = {"roll60": 60, "roll600": 600}


class Run:
    """A followed run whose samples are given rather than read from a log."""

    def __init__(self, workspace, name="r"):
        self.workspace, self.name, self.samples, self.tails = workspace, name, [], 0
        self.generation, self.offset, self.live = 1, 0, None
        with workspace.ledger.transaction() as transaction:
            transaction.execute("INSERT INTO run VALUES (?, '', ?, '', '')", (name, f"/{name}"))

    def append(self, *rows, at=None):
        """Add samples, given by their values, as read at a time."""
        if self.live is None:
            self.tails += 1
            self.live = f"metrics/{self.name}/live/{self.tails}.jsonl"
            with self.workspace.ledger.transaction() as transaction:
                manifest.start_live(transaction, self.workspace.ledger, self.name, self.live)
        made = []
        for row in rows:
            self.offset += 10
            head = {"gen": self.generation, "off": self.offset, "at": at or to_iso(self.workspace.clock.now())}
            made.append(head | {"attempt": 1, "extra": {}} | row)
        LiveTail(self.workspace.state / self.live).append(made)
        self.samples += made
        return made

    def seal(self):
        """Make the tail a segment; returns its path."""
        path = self.live.replace("/live/", "/raw/").replace(".jsonl", ".parquet")
        written = self.workspace.store.seal(self.live, path)
        with self.workspace.ledger.transaction() as transaction:
            manifest.seal(
                transaction,
                self.workspace.ledger,
                live_path=self.live,
                parquet_path=path,
                rows=written.rows,
                first=written.first,
                last=written.last,
            )
        self.live = None
        return path

    def paths(self, *states):
        return [s.path for s in manifest.segments(self.workspace.ledger, self.name) if s.state in states]

    def level(self, level):
        return [s.path for s in manifest.segments(self.workspace.ledger, self.name) if s.level == level]

    def stored(self, *states):
        """Identities of the samples in the files of these states, with repetitions, read without the store's queries."""
        found = []
        for path in self.paths(*states):
            if path.endswith(".jsonl"):
                file = self.workspace.state / path
                lines = file.read_text().splitlines() if file.exists() else []
                found += [(row["gen"], row["off"]) for row in map(json.loads, lines)]
            else:
                found += [
                    tuple(row)
                    for row in duckdb.connect()
                    .execute("SELECT gen, off FROM read_parquet(?)", [[str(self.workspace.state / path)]])
                    .fetchall()
                ]
        return found

    def rollups(self, level):
        """Each key's figures, from all files of the level, their parts put together."""
        parts = defaultdict(list)
        for path in self.level(level):
            rows = duckdb.connect().execute("SELECT * FROM read_parquet(?)", [[str(self.workspace.state / path)]])
            names = [column[0] for column in rows.description]
            for row in rows.fetchall():
                row = dict(zip(names, row, strict=True))
                parts[row["bucket"], row["rank"], row["gen"], row["attempt"], row["block"]].append(row)
        return {key: _together(rows) for key, rows in parts.items()}


def _together(rows):
    rows = sorted(rows, key=lambda row: row["last_off"])
    whole = {
        "samples": sum(row["samples"] for row in rows),
        "first_at": min(row["first_at"] for row in rows),
        "last_at": max(row["last_at"] for row in rows),
        "last_off": rows[-1]["last_off"],
        "steps": _range(row[name] for row in rows for name in ("first_step", "last_step")),
    }
    for name in METRICS:
        held = [row for row in rows if row[f"{name}_count"]]
        whole[name] = (
            (
                min(row[f"{name}_min"] for row in held),
                max(row[f"{name}_max"] for row in held),
                math.fsum(row[f"{name}_avg"] * row[f"{name}_count"] for row in held),
                sum(row[f"{name}_count"] for row in held),
                held[-1][f"{name}_last"],
            )
            if held
            else None
        )
    return whole


def _range(values):
    known = [value for value in values if value is not None]
    return (min(known), max(known)) if known else None


def rolled_by_hand(samples, level):
    """What the level has to hold of these samples."""
    buckets = defaultdict(list)
    for sample in samples:
        moment = from_iso(sample["at"])
        since = (moment - moment.replace(hour=0, minute=0, second=0, microsecond=0)).total_seconds()
        bucket = to_iso(moment - timedelta(seconds=since % SECONDS[level]))
        block = None if sample["step"] is None else sample["step"] // 1024
        buckets[bucket, sample["extra"].get("rank"), sample["gen"], sample["attempt"], block].append(sample)
    found = {}
    for key, rows in buckets.items():
        rows = sorted({(row["gen"], row["off"]): row for row in rows}.values(), key=lambda row: row["off"])
        found[key] = {
            "samples": len(rows),
            "first_at": min(row["at"] for row in rows),
            "last_at": max(row["at"] for row in rows),
            "last_off": rows[-1]["off"],
            "steps": _range(row["step"] for row in rows),
        }
        for name in METRICS:
            values = [float(row[name]) for row in rows if row.get(name) is not None and math.isfinite(row[name])]
            figures = (min(values), max(values), math.fsum(values), len(values), values[-1]) if values else None
            found[key][name] = figures
    return found


def assert_same(found, expected):
    """Equal but for the last bits of the sums, which depend on the order of adding."""
    assert found.keys() == expected.keys()
    for key, whole in expected.items():
        for name, value in whole.items():
            mine = found[key][name]
            if name in METRICS and value is not None:
                assert mine[:2] + mine[3:] == value[:2] + value[3:], (key, name)
                assert math.isclose(mine[2], value[2], rel_tol=1e-9, abs_tol=1e-6), (key, name)
            else:
                assert mine == value, (key, name)
