"""What an approval is bound to: one command, its canonical form and digest. The same digest is computed by whoever runs it."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Final

import msgspec

from trainflow_tui.errors import UsageError
from trainflow_tui.ledger.events import canonical

DIGEST_VERSION: Final = "v1"
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")
_HOST: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}|[0-9A-Fa-f:.]{2,45}")


class CommandPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One command exactly as it will run. Everything here is shown to the operator and covered by the digest."""

    argv: list[str]
    """The program and its arguments, one element each; never a shell string."""
    cwd: str = ""
    env_names: list[str] = []
    """Names of the variables that are passed on; values are never recorded. A set: order has no meaning."""
    hosts: list[str] = []
    """Where it runs, in rank order; empty for this machine."""
    container: str = ""
    user: str = ""
    timeout_s: int | None = None
    """Seconds after which the far side ends it; None for no limit."""


def decode_payload(raw: bytes) -> CommandPayload:
    """Read a payload strictly.

    Raises:
        UsageError: names the path of the offending field and what was expected there.
    """
    try:
        payload = msgspec.json.decode(raw, type=CommandPayload)
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as problem:
        raise UsageError(
            "payload-invalid",
            f"The payload is not usable: {problem}.",
            subject="payload",
            next_step='Expected {"argv": [text, …], "cwd", "env_names", "hosts", "container", "user", "timeout_s"}.',
        ) from problem
    check_payload(payload)
    return payload


def check_payload(payload: CommandPayload) -> None:
    """Hold the rules that types cannot.

    Raises:
        UsageError: names the field and the value.
    """

    def refuse(field: str, value: str, expected: str) -> UsageError:
        return UsageError(
            "payload-invalid", f"payload.{field} = {value[:80]!r}; expected {expected}.", subject=f"payload.{field}"
        )

    if not payload.argv or not payload.argv[0]:
        raise refuse("argv", str(payload.argv), "a program and its arguments")
    words = {f"argv[{i}]": word for i, word in enumerate(payload.argv)}
    for field, word in (words | {name: getattr(payload, name) for name in ("cwd", "container", "user")}).items():
        if "\0" in word:
            # No argument, path or name can hold it: what would run is not what was shown.
            raise refuse(field, word, "text without NUL")
    for name in payload.env_names:
        if not _ENV_NAME.fullmatch(name):
            raise refuse("env_names", name, "a variable's name, never its value")
    for host in payload.hosts:
        if not _HOST.fullmatch(host):
            raise refuse("hosts", host, "a host name or address")
    if payload.timeout_s is not None and not 1 <= payload.timeout_s <= 31_536_000:
        raise refuse("timeout_s", str(payload.timeout_s), "1 second to 1 year")


def fields(payload: CommandPayload) -> dict[str, Any]:
    """The canonical fields: sets sorted, sequences as given, no Unicode normalisation (other bytes are another argument)."""
    return msgspec.structs.asdict(payload) | {"env_names": sorted(set(payload.env_names))}


def digest(payload: CommandPayload) -> str:
    """`v1:` and the SHA-256 of the canonical form."""
    return f"{DIGEST_VERSION}:{hashlib.sha256(canonical(fields(payload)).encode()).hexdigest()}"


def differing_fields(approved: CommandPayload, found: CommandPayload) -> list[str]:
    """Names of the fields in which two payloads differ, for the sentence of a refusal."""
    left, right = fields(approved), fields(found)
    return [name for name in left if left[name] != right[name]]
