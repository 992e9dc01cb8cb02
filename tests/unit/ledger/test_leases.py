"""Leases: one holder, a token that only grows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from trainflow_tui.ledger import leases
from trainflow_tui.ledger.database import Ledger


@pytest.fixture
def ledger(tmp_path, clock):
    opened = Ledger.open(tmp_path / "ledger.db", clock=clock)
    yield opened
    opened.close()


def test_a_live_lease_is_not_taken_and_an_expired_one_is(ledger, clock):
    first = leases.acquire(ledger, "watch", "a", ttl_s=10)
    assert leases.acquire(ledger, "watch", "b", ttl_s=10) is None
    clock.advance(11)
    second = leases.acquire(ledger, "watch", "b", ttl_s=10)
    assert second.token == first.token + 1
    assert not leases.renew(ledger, first, ttl_s=10)
    assert leases.renew(ledger, second, ttl_s=10)


def test_a_release_frees_it_and_the_token_still_grows(ledger):
    first = leases.acquire(ledger, "watch", "a", ttl_s=10)
    leases.release(ledger, first)
    assert leases.holder(ledger, "watch") is None
    assert leases.acquire(ledger, "watch", "b", ttl_s=10).token == first.token + 1


def test_a_stale_holder_cannot_release_its_successor(ledger, clock):
    first = leases.acquire(ledger, "watch", "a", ttl_s=1)
    clock.advance(2)
    leases.acquire(ledger, "watch", "b", ttl_s=10)
    leases.release(ledger, first)
    assert leases.holder(ledger, "watch").owner == "b"


def test_a_wall_clock_that_goes_back_gives_nobody_the_lease(ledger, clock):
    leases.acquire(ledger, "watch", "a", ttl_s=10)
    clock.set_wall(clock.now() - timedelta(days=1))
    assert leases.acquire(ledger, "watch", "b", ttl_s=10) is None
