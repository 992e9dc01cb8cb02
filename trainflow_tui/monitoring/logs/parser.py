"""From lines to items: chooses the adapter that fits a source and feeds it only lines worth reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainflow_tui.errors import UsageError
from trainflow_tui.monitoring.logs.adapter import LogAdapter
from trainflow_tui.monitoring.logs.attempts import AttemptState
from trainflow_tui.monitoring.logs.events import FAILURES, FailureLines
from trainflow_tui.monitoring.logs.generic import GenericTextAdapter
from trainflow_tui.monitoring.logs.jsonl import JsonLinesAdapter
from trainflow_tui.monitoring.logs.lines import MAX_LINE_BYTES, candidate_lines, clean_segments
from trainflow_tui.monitoring.logs.megatron import MegatronAdapter
from trainflow_tui.monitoring.logs.megatron_progress import MegatronProgressAdapter
from trainflow_tui.monitoring.logs.records import Item, LogEvent, MetricRecord, RejectedLine

ADAPTERS: dict[str, Callable[[AttemptState | None], LogAdapter]] = {
    adapter.name: adapter
    for adapter in (MegatronAdapter, MegatronProgressAdapter, JsonLinesAdapter, GenericTextAdapter)
}
"""Every adapter that reads metric records, by name, the more specific first."""

DECISIVE_RECORDS = 32
"""With records from several adapters, the choice falls when one of them has this many."""


class _Reader:
    """One adapter on trial or in use, and what it has found and not yet given out."""

    def __init__(self, adapter: LogAdapter) -> None:
        self.adapter = adapter
        self.held: list[Item] = []

    def drain(self) -> list[Item]:
        held, self.held = self.held, []
        return held

    @property
    def records(self) -> int:
        return sum(isinstance(item, MetricRecord) for item in self.held)

    @property
    def tells_failure(self) -> bool:
        return any(isinstance(item, LogEvent) and item.type in FAILURES for item in self.held)


class LogParser:
    """Reads the lines of one source, in order.

    While the format is unknown every adapter reads along, and nothing is given out. The first to find a record is
    chosen; if several do, the one with the most. `adapter` names one chosen earlier; `attempts` continues its count.

    Raises:
        UsageError: no adapter has the given name.
    """

    def __init__(
        self, *, adapter: str | None = None, attempts: AttemptState | None = None, first_line: int = 1
    ) -> None:
        if adapter is not None and adapter not in ADAPTERS:
            raise UsageError(
                "log-adapter-unknown",
                f"There is no log adapter {adapter!r}.",
                subject=adapter,
                next_step=f"Use one of {', '.join(ADAPTERS)}.",
            )
        if adapter is not None:
            self._readers = [_Reader(ADAPTERS[adapter](attempts))]
        else:
            self._readers = [_Reader(make(attempts)) for make in ADAPTERS.values()] + [_Reader(FailureLines())]
        self._decided = adapter is not None
        self._line = first_line
        self.unparsed_suspicious = 0
        """Lines that speak of a loss and gave nothing."""

    @property
    def adapter(self) -> LogAdapter | None:
        """The adapter in use; None while the format is unknown."""
        return self._readers[0].adapter if self._decided else None

    @property
    def attempt_state(self) -> AttemptState:
        """Where the count of attempts stands. Stored with the read position, it is what a later parser starts from."""
        return self._readers[0].adapter.attempt_state

    @property
    def next_line(self) -> int:
        """The number of the line that comes next, from 1."""
        return self._line

    def feed(self, block: bytes) -> list[Item]:
        """Read whole lines, each with its newline, and give out what they and the lines held back before them hold."""
        names = (marker for reader in self._readers for marker in reader.adapter.markers)
        markers = tuple(dict.fromkeys((b"loss", *names)))
        is_plain = not any(byte in block for byte in (b"\0", b"\x1b", b"\r"))
        for index, raw in candidate_lines(block, markers):
            if len(raw) > MAX_LINE_BYTES:
                self._cut_line(self._line + index)
            elif is_plain:
                self._feed_text(self._line + index, raw.decode("utf-8", "replace"))
                continue
            for segment in clean_segments(raw):
                self._feed_text(self._line + index, segment)
        self._line += block.count(b"\n")
        if not self._decided:
            self._choose()
        return self._readers[0].drain() if self._decided else []

    def feed_lines(self, lines: Sequence[tuple[int, bytes]]) -> list[Item]:
        """Like `feed`, for lines with their byte offsets as the tailer gives them, without newlines.

        The line number of an item less `next_line` before the call is its index in `lines`, negative where it was held
        back from an earlier call.
        """
        return self.feed(b"".join(line + b"\n" for _, line in lines))

    def finish(self, tail: bytes) -> tuple[list[Item], bool]:
        """End of the file: what is still held back or stands in a last line that is complete without its newline.

        The second value says whether `tail` was taken.
        """
        taken = False
        for segment in clean_segments(tail):
            for reader in self._readers:
                if reader.adapter.is_whole(segment):
                    taken = True
                    reader.held.extend(reader.adapter.feed(self._line, segment))
        if not self._decided:
            self._choose(at_end=True)
        return (self._readers[0].drain() if self._decided else []), taken

    def _feed_text(self, line: int, text: str) -> None:
        found = False
        for reader in self._readers:
            if items := reader.adapter.feed(line, text):
                reader.held += items
                found = True
        if not found and "loss" in text:
            self.unparsed_suspicious += 1

    def _cut_line(self, line: int) -> None:
        for reader in self._readers:
            reader.held.append(RejectedLine(line=line, reason="longer than 1 MiB: only its start was read"))

    def _choose(self, *, at_end: bool = False) -> None:
        """Settle on the adapter with the most records, if the choice is clear or no more lines will come."""
        counts = [reader.records for reader in self._readers]
        most = max(counts)
        alone = sum(count > 0 for count in counts) == 1
        if most and (alone or at_end or most >= DECISIVE_RECORDS):
            self._readers = [self._readers[counts.index(most)]]
            self._decided = True
        elif at_end and self._readers[-1].tells_failure:
            self._readers = [self._readers[-1]]
            self._decided = True
