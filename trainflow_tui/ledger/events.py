"""One event: a decided fact, chained to the one before it. The identity and the hash are computed here and nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import msgspec


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who did it, as the operating system tells it; only `agent` is what the actor says of itself."""

    door: str
    """cli, tui, once, watch, mcp or demo."""
    uid: int = -1
    user: str = ""
    host: str = ""
    tty: str = ""
    """The controlling terminal, or empty: no terminal took part."""
    ssh_from: str = ""
    """The client's address as sshd left it in the environment; empty when the session is local."""
    parent: str = ""
    """The parent's program and, of an interpreter, its script; never its arguments, which may hold passwords."""
    agent: str = ""
    """The content of TRAINFLOW_AGENT; declared, not observed."""

    @property
    def label(self) -> str:
        """A short name for lists: the agent's declared name, else the account."""
        return f"agent {self.agent}" if self.agent else (self.user or self.door)


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the chain."""

    seq: int
    key: str
    kind: str
    entity: str
    at: str
    actor: Actor
    payload: dict[str, Any]
    prev: str
    hash: str


def canonical(value: object) -> str:
    """JSON with sorted keys and no blanks: equal values give equal bytes."""
    return msgspec.json.encode(value, order="deterministic").decode()


def event_key(kind: str, entity: str, predecessor: str, payload_json: str) -> str:
    """The identity: the same step from the same state is one event, A to B to A is three."""
    return hashlib.sha256("\x1f".join((kind, entity, predecessor, payload_json)).encode()).hexdigest()


def event_hash(prev: str, seq: int, key: str, kind: str, entity: str, at: str, actor_json: str, payload: str) -> str:
    """The link: covers every column of the row and the link before it."""
    parts = (prev, str(seq), key, kind, entity, at, actor_json, payload)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()


def decode_payload(text: str) -> dict[str, Any]:
    """A stored payload as a mapping; unknown fields of newer writers stay in it."""
    value = msgspec.json.decode(text)
    return value if isinstance(value, Mapping) else {"value": value}  # type: ignore[return-value]
