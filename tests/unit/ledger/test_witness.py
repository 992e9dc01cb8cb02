"""The witness beside the ledger: an older state that is put back, or a journal that is deleted, does not pass unnoticed."""

from __future__ import annotations

import json
import shutil

from trainflow_tui.collaboration import tasks
from trainflow_tui.ledger import leases
from trainflow_tui.ledger.database import Ledger
from trainflow_tui.workspace import Workspace


def add(ledger, actor, n):
    with ledger.transaction() as transaction:
        transaction.append("task.created", f"t{n}", {"title": f"T{n}", "mode": "full"}, actor=actor)


def test_an_older_copy_of_the_file_is_noticed_with_the_number_that_is_gone(tmp_path, clock, actor):
    path = tmp_path / "ledger.db"
    ledger = Ledger.open(path, clock=clock)
    add(ledger, actor, 1)
    ledger.close()
    shutil.copy(path, tmp_path / "older")
    ledger = Ledger.open(path, clock=clock)
    add(ledger, actor, 2)
    ledger.close()
    for name in ("ledger.db-wal", "ledger.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    shutil.copy(tmp_path / "older", path)
    again = Ledger.open(path, clock=clock)
    assert again.loss is not None
    assert again.loss.seq == 2
    assert again.verify().first_bad_seq == 2
    add(again, actor, 3)
    again.close()
    # It is said until a person has decided, also after further writing.
    still = Ledger.open(path, clock=clock)
    assert still.loss is not None
    still.close()


def test_an_untouched_ledger_has_lost_nothing(tmp_path, clock, actor):
    path = tmp_path / "ledger.db"
    for n in range(3):
        ledger = Ledger.open(path, clock=clock)
        assert ledger.loss is None
        add(ledger, actor, n)
        ledger.close()


def test_every_answer_says_what_was_lost(command, actor):
    workspace = Workspace.open(command.root, create=True)
    tasks.create(workspace, title="t", actor=actor)
    workspace.close()
    path = command.root / ".trainflow/ledger.db"
    shutil.copy(path, command.root / "older")
    command.run("task", "create", "second")
    shutil.copy(command.root / "older", path)
    for name in ("ledger.db-wal", "ledger.db-shm"):
        path.with_name(name).unlink(missing_ok=True)
    done = command.run("task", "list", "--json")
    assert done.returncode == 20
    assert "events-lost" in [r["code"] for r in json.loads(done.stdout)["reasons"]]


def test_a_holder_that_was_stopped_past_its_lease_writes_nothing_more(tmp_path, clock):
    ledger = Ledger.open(tmp_path / "ledger.db", clock=clock)
    stopped = leases.acquire(ledger, "tail:r", "host-a:1:x", ttl_s=10)
    clock.advance(11)
    leases.acquire(ledger, "tail:r", "host-b:2:y", ttl_s=10)
    with ledger.transaction() as transaction:
        assert not leases.keep(transaction, clock, stopped, ttl_s=10)
    ledger.close()
