"""Typed errors: what went wrong, with what, and what to do next. Doors turn them into exit codes and sentences."""

from __future__ import annotations


class TrainflowError(Exception):
    """An expected failure that a person or an agent can act on.

    `code` is a stable kebab-case word for programs, `message` one sentence for people, `subject` the thing concerned (a
    file, an id, a field path) and `next_step` what to do about it. `exit_code` is the process status that a headless
    verb ends with (70 internal, 64 usage, 30 busy, 20 attention).
    """

    exit_code = 20

    def __init__(self, code: str, message: str, *, subject: str = "", next_step: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.subject = subject
        self.next_step = next_step

    def __str__(self) -> str:
        return f"{self.message} {self.next_step}".strip()


class UsageError(TrainflowError):
    """The words of the call are wrong: an unknown id, a value out of range, a missing field."""

    exit_code = 64


class RefusedError(TrainflowError):
    """The call is well formed and a rule forbids it: an illegal transition, a decided request, a differing digest."""


class DamagedError(TrainflowError):
    """A file or record cannot be read as what it claims to be. Names the place and what was expected there."""


class BusyError(TrainflowError):
    """Another process holds what is needed; trying again is right."""

    exit_code = 30


class InternalError(TrainflowError):
    """An invariant of this program does not hold."""

    exit_code = 70
