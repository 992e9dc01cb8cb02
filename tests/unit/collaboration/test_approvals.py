"""Approvals: one decision, one use, bound to exactly what was shown."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainflow_tui.collaboration import approvals, tasks
from trainflow_tui.collaboration.approvals import ApprovalRequest
from trainflow_tui.collaboration.payload import CommandPayload, decode_payload, digest
from trainflow_tui.errors import RefusedError, UsageError

PAYLOAD = CommandPayload(
    argv=["torchrun", "--nproc", "8", "train.py"],
    cwd="/data",
    env_names=["HCU_VISIBLE", "NCCL_DEBUG"],
    hosts=["dcu-01", "dcu-02"],
    user="train",
    timeout_s=600,
)


@pytest.fixture
def task(workspace, actor):
    return tasks.create(workspace, title="adapt", actor=actor).id


@pytest.fixture
def pending(workspace, actor, task):
    return approvals.request(
        workspace.ledger, ApprovalRequest(task=task, title="Start it", payload=PAYLOAD), actor=actor
    )


def decide(workspace, approval, actor, verdict="approve", **named):
    return approvals.decide(workspace.ledger, approval.id, verdict, by=actor, agent=None, **named)


def test_the_first_decision_stands_and_the_second_is_told_whose_it_was(workspace, actor, pending):
    decide(workspace, pending, actor)
    with pytest.raises(RefusedError, match="approved by operator") as refused:
        decide(workspace, pending, actor, "deny")
    assert refused.value.code == "already-decided"
    assert approvals.get(workspace.ledger, pending.id).state == "approved"


def test_an_agent_decides_nothing(workspace, actor, pending):
    with pytest.raises(RefusedError) as refused:
        approvals.decide(workspace.ledger, pending.id, "approve", by=actor, agent="TRAINFLOW_AGENT is set")
    assert refused.value.code == "human-only"
    assert approvals.get(workspace.ledger, pending.id).state == "pending"


def test_an_expired_request_is_expired_and_never_denied(workspace, actor, task, clock):
    wanted = ApprovalRequest(task=task, title="Soon", payload=PAYLOAD, expires_at=clock.now() + timedelta(seconds=30))
    made = approvals.request(workspace.ledger, wanted, actor=actor)
    clock.advance(31)
    assert approvals.get(workspace.ledger, made.id).state == "expired"
    with pytest.raises(RefusedError) as refused:
        decide(workspace, made, actor)
    assert refused.value.code == "expired"
    assert workspace.ledger.query("SELECT state FROM approval") == [("expired",)]


def test_without_a_deadline_a_request_waits_for_ever(workspace, pending, clock):
    clock.advance(10 * 365 * 86400)
    assert approvals.get(workspace.ledger, pending.id).state == "pending"


def test_an_approval_is_used_once(workspace, actor, pending):
    decide(workspace, pending, actor)
    used = approvals.consume(workspace.ledger, pending.id, PAYLOAD, actor=actor)
    assert used.state == "consumed"
    assert used.start_token
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, pending.id, PAYLOAD, actor=actor)
    assert refused.value.code == "consumed"


@pytest.mark.parametrize("verdict", ["deny", "changes", None])
def test_nothing_but_an_approval_authorises(workspace, actor, pending, verdict):
    if verdict:
        decide(workspace, pending, actor, verdict, comment="no")
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, pending.id, PAYLOAD, actor=actor)
    assert refused.value.code == "not-approved"


def test_an_approval_not_started_in_time_has_lapsed(workspace, actor, task, clock):
    wanted = ApprovalRequest(task=task, title="Soon", payload=PAYLOAD, start_before=clock.now() + timedelta(seconds=60))
    made = approvals.request(workspace.ledger, wanted, actor=actor)
    decide(workspace, made, actor)
    clock.advance(61)
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, made.id, PAYLOAD, actor=actor)
    assert refused.value.code == "lapsed"


CHANGES = {
    "argv": ["torchrun", "--nproc", "9", "train.py"],
    "cwd": "/data2",
    "env_names": ["NCCL_DEBUG"],
    "hosts": ["dcu-02", "dcu-01"],
    "container": "other",
    "user": "root",
    "timeout_s": 601,
}


@pytest.mark.parametrize("field", CHANGES)
def test_a_changed_field_is_refused_by_its_name(workspace, actor, pending, field):
    decide(workspace, pending, actor)
    other = msgspec.structs.replace(PAYLOAD, **{field: CHANGES[field]})
    with pytest.raises(RefusedError) as refused:
        approvals.consume(workspace.ledger, pending.id, other, actor=actor)
    assert refused.value.code == "digest-differs"
    assert refused.value.subject == field


def test_every_flipped_byte_of_the_payload_is_refused(workspace, actor, pending):
    decide(workspace, pending, actor)
    raw = msgspec.json.encode(PAYLOAD)
    refused = 0
    for place in range(len(raw)):
        damaged = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        try:
            other = decode_payload(damaged)
        except UsageError:
            refused += 1
            continue
        if digest(other) == digest(PAYLOAD):
            assert other == PAYLOAD or sorted(other.env_names) == sorted(PAYLOAD.env_names)
            continue
        with pytest.raises(RefusedError):
            approvals.consume(workspace.ledger, pending.id, other, actor=actor)
        refused += 1
    assert refused == len(raw)
    assert approvals.consume(workspace.ledger, pending.id, PAYLOAD, actor=actor).state == "consumed"


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("argv[1]", {"argv": ["x", "a\0b"]}),
        ("cwd", {"cwd": "/data\0/../etc"}),
        ("container", {"container": "train\0"}),
        ("user", {"user": "\0root"}),
    ],
)
def test_a_text_that_no_program_can_be_given_is_refused_by_its_field(workspace, actor, field, change):
    other = msgspec.structs.replace(PAYLOAD, **change)
    with pytest.raises(UsageError) as refused:
        decode_payload(msgspec.json.encode(other))
    assert refused.value.subject == f"payload.{field}"
    with pytest.raises(UsageError):
        approvals.request(workspace.ledger, ApprovalRequest(task="t", title="x", payload=other), actor=actor)


def test_a_decision_that_showed_nothing_says_so(workspace, actor, pending):
    assert decide(workspace, pending, actor).decision.shown_digest == ""


def test_a_decision_that_showed_the_request_says_which(workspace, actor, pending):
    assert decide(workspace, pending, actor, shown_digest=pending.digest).decision.shown_digest == pending.digest


def test_what_was_shown_must_be_what_is_recorded(workspace, actor, pending):
    with pytest.raises(RefusedError) as refused:
        decide(workspace, pending, actor, shown_digest="v1:0000")
    assert refused.value.code == "shown-differs"


def test_a_request_for_changes_says_which(workspace, actor, pending):
    with pytest.raises(UsageError, match="what should change"):
        decide(workspace, pending, actor, "changes")


def test_a_decision_without_a_terminal_is_shown_as_such(workspace, actor, pending):
    decided = decide(workspace, pending, msgspec.structs.replace(actor, tty=""))
    assert decided.decision.without_terminal


def test_an_irreversible_request_is_of_high_impact(workspace, actor, task):
    wanted = ApprovalRequest(task=task, title="Remove", payload=PAYLOAD, reversible="no")
    made = approvals.request(workspace.ledger, wanted, actor=actor)
    assert made.high_impact
    assert made.token == made.digest[-4:]


names = st.text("abcXYZ_", min_size=1, max_size=8)
payloads = st.builds(
    CommandPayload,
    argv=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=12),
        min_size=1,
        max_size=5,
    ),
    cwd=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8),
    env_names=st.lists(names, max_size=4),
    hosts=st.lists(st.sampled_from(["n1", "n2", "n3"]), max_size=3),
    container=st.sampled_from(["", "c"]),
    user=st.sampled_from(["", "u"]),
    timeout_s=st.none() | st.integers(1, 100),
)


@given(payloads, st.randoms())
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_the_same_meaning_has_the_same_digest(payload, dice):
    mapping = msgspec.to_builtins(payload)
    keys = list(mapping)
    dice.shuffle(keys)
    shuffled_env = list(mapping["env_names"]) * 2
    dice.shuffle(shuffled_env)
    text = json.dumps(
        {k: mapping[k] for k in keys} | {"env_names": shuffled_env},
        ensure_ascii=dice.random() < 0.5,
        indent=dice.choice([None, 3]),
    )
    assert digest(decode_payload(text.encode())) == digest(payload)


@given(payloads, payloads)
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
def test_another_meaning_has_another_digest(one, other):
    def meaning(p):
        return (tuple(p.argv), p.cwd, frozenset(p.env_names), tuple(p.hosts), p.container, p.user, p.timeout_s)

    assert (digest(one) == digest(other)) == (meaning(one) == meaning(other))


def test_composed_and_decomposed_letters_are_different_arguments():
    one, other = CommandPayload(argv=["caf\u00e9"]), CommandPayload(argv=["cafe\u0301"])
    assert digest(one) != digest(other)


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (b'{"argv": []}', "argv"),
        (b'{"argv": "rm -rf /"}', "argv"),
        (b'{"argv": ["x"], "shell": true}', "shell"),
        (b'{"argv": ["x"], "hosts": ["a b"]}', "hosts"),
        (b'{"argv": ["x"], "hosts": ["$(id)"]}', "hosts"),
        (b'{"argv": ["x"], "env_names": ["A=secret"]}', "env_names"),
        (b'{"argv": ["x"], "timeout_s": 0}', "timeout_s"),
        (b'{"argv": ["x"], "timeout_s": 1.5}', "timeout_s"),
        (b'{"argv": ["a\\u0000b"]}', "argv"),
        (b"{", "payload"),
    ],
)
def test_a_bad_payload_names_the_field(raw, names):
    with pytest.raises(UsageError) as refused:
        decode_payload(raw)
    assert names in str(refused.value)
