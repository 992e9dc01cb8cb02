"""What the logs still hold needs no copy: read again from the first byte they give the very samples (T-48)."""

from __future__ import annotations

import hashlib
import json
import random
import shutil
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from trainflow_tui.collaboration import guidance, tasks
from trainflow_tui.demo import job
from trainflow_tui.ledger import manifest, schema
from trainflow_tui.monitoring import compaction, follow, history
from trainflow_tui.monitoring.follow import Follower
from trainflow_tui.store.metrics import COLUMNS

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "logs"
LOGS = (
    "llamafactory_trainer_log.jsonl",
    "megatron_deepspeed_tgs.log",
    "megatron_lm_2026_micros_nan.log",
    "megatron_restart_rewind.log",
    "primus_ansi_pairs.log",
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def export(workspace, run):
    """A hash of the sorted samples, without the time at which each line was read."""
    names = ", ".join(f'"{name}"' for name in COLUMNS if name != "at")
    found = []
    for path in [workspace.state / s.path for s in manifest.readable(workspace.ledger, run)]:
        if path.suffix == ".parquet":
            sql = f"SELECT {names} FROM read_parquet(?)"
            rows = duckdb.connect().execute(sql, [[str(path)]])
            keys = [column[0] for column in rows.description]
            found += [dict(zip(keys, row, strict=True)) for row in rows.fetchall()]
        else:
            found += map(json.loads, path.read_text().splitlines())
    for row in found:
        row["extra"] = json.loads(row["extra"]) if isinstance(row["extra"], str) else row["extra"]
        row.pop("at", None)
    lines = sorted({json.dumps({k: _text(v) for k, v in row.items()}, sort_keys=True) for row in found})
    return len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _text(value):
    # A tail writes NaN as a word, Parquet as a number.
    return str(float(value)) if isinstance(value, float) or value in ("nan", "inf", "-inf") else value


@pytest.fixture(params=["generated", *LOGS])
def text(request):
    if request.param == "generated":
        return "".join(f"{job.line(step, START, random.Random(step))}\n" for step in range(1, 401)).encode()
    if not CORPUS.is_dir():
        pytest.skip(f"the corpus of logs is not at {CORPUS}")
    return (CORPUS / request.param).read_bytes()


def test_deleted_metrics_are_read_again_from_the_log(workspace, actor, clock, text):
    path = workspace.root / "train.log"
    path.write_bytes(b"")
    run, _ = follow.add_run(workspace, path, task="", id="r", actor=actor)
    for part in range(4):
        with open(path, "ab") as stream:
            stream.write(text[len(text) * part // 4 : len(text) * (part + 1) // 4])
        Follower(seals_by_age=True).follow_all(workspace)
        clock.advance(61)
        Follower(seals_by_age=True).follow_all(workspace)
    clock.advance(7200)
    compaction.do_all(workspace, lambda: compaction.due(workspace, eager=True))
    before, total = export(workspace, run), history.count(workspace, run)
    assert before[0] == total > 0

    shutil.rmtree(workspace.state / "metrics" / run)
    with workspace.ledger.transaction() as transaction:
        transaction.execute("DELETE FROM run_status WHERE run = ?", (run,))
        transaction.execute("DELETE FROM segment WHERE run = ?", (run,))
    Follower(seals_by_age=True).follow_all(workspace)
    assert export(workspace, run) == before
    clock.advance(61)
    Follower(seals_by_age=True).follow_all(workspace)
    compaction.do_all(workspace, lambda: compaction.due(workspace, eager=True))
    assert export(workspace, run) == before
    assert history.count(workspace, run) == total


def test_a_rebuild_makes_the_same_tables_and_leaves_the_manifest(workspace, actor, clock):
    tasks.create(workspace, title="t", actor=actor)
    (workspace.task_folder("t") / "GUIDANCE.md").write_text("## G1 a\n\nwords\n")
    log = workspace.root / "train.log"
    log.write_text("".join(f"{job.line(step, START, random.Random(step))}\n" for step in range(1, 11)))
    follow.add_run(workspace, log, task="t", id="r", actor=actor)
    from trainflow_tui import refresh

    for _ in range(2):
        clock.advance(60)
        refresh.run_round(workspace, actor=actor, check_nodes=False)
    tables = (*schema.PROJECTION_TABLES, "segment", "run_status")

    def dump():
        return {name: sorted(workspace.ledger.query(f"SELECT * FROM {name}"), key=repr) for name in tables}

    before = dump()
    assert guidance.listed(workspace.ledger)
    assert before["segment"]
    with workspace.ledger.transaction() as transaction:
        for name in schema.PROJECTION_TABLES:
            transaction.execute(f"DELETE FROM {name}")
    assert workspace.ledger.rebuild() > 0
    assert dump() == before
