"""What a log adapter is: one printer's format, fed line by line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.records import Item


class LogAdapter(Protocol):
    """Turns the lines of one source into records and events. Keeps what one line does not tell: the attempt."""

    @property
    def name(self) -> str:
        """The adapter's id, stored with the source."""
        ...

    @property
    def markers(self) -> tuple[bytes, ...]:
        """Byte strings, at least one of which stands in every line that this adapter can use."""
        ...

    @property
    def framework(self) -> str:
        """The printer's family as far as the lines so far tell it."""
        ...

    @property
    def attempt_state(self) -> AttemptState:
        """Where the count of attempts stands; the constructor takes it to go on from there."""
        ...

    def feed(self, line: int, text: str) -> Sequence[Item]:
        """What the cleaned `text` of line number `line` holds: nothing for most lines. Never raises for any text."""
        ...

    def is_whole(self, text: str) -> bool:
        """Whether a last line without its newline is certainly complete."""
        ...
