"""A whole log file or stream to one `LogRead`: what `trainflow log read FILE --json` prints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from trainflow_tui.errors import DamagedError, UsageError
from trainflow_tui.files import open_regular
from trainflow_tui.monitoring.logs.lines import BlockReader
from trainflow_tui.monitoring.logs.parser import ADAPTERS, LogParser
from trainflow_tui.monitoring.logs.records import (
    AuxRecord,
    Item,
    LogEvent,
    LogRead,
    MetricRecord,
    PendingTail,
    RejectedLine,
)
from trainflow_tui.monitoring.logs.series import effective_series, lost_steps

_HOLE = (
    "writer had the file open without O_APPEND: after truncation it goes on at the old offset, so the file starts "
    "with a hole of NUL bytes"
)


def read_log(
    source: BinaryIO | str | os.PathLike[str], *, name: str | None = None, adapter: str | None = None
) -> LogRead:
    """Read a log from its first byte to its end.

    `name` is what the answer calls the file (by default the path's last part), `adapter` forces a format.

    Raises:
        UsageError: the file cannot be opened, or no adapter has the given name.
        DamagedError: it is no regular file, or no adapter recognises a single record, and no line tells of a failure.
    """
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        with _open(path) as stream:
            return _read(stream, name or path.name, adapter)
    return _read(source, name or str(getattr(source, "name", "-")), adapter)


def _open(path: Path) -> BinaryIO:
    try:
        descriptor = open_regular(
            os.path.realpath(path)
        )  # a person may name a log by a link, unlike a program that polls it
    except OSError as error:
        raise UsageError("log-unreadable", f"{path} cannot be opened: {error.strerror}.", subject=str(path)) from error
    return os.fdopen(descriptor, "rb", buffering=0)


def _read(stream: BinaryIO, name: str, adapter: str | None) -> LogRead:
    parser = LogParser(adapter=adapter)
    blocks = BlockReader(stream)
    items: list[Item] = []
    for block in blocks:
        items.extend(parser.feed(block))
    rest, taken = parser.finish(blocks.tail)
    items.extend(rest)
    chosen = parser.adapter
    if chosen is None:
        raise DamagedError(
            "log-format-unknown",
            f"No adapter recognises {name}: {parser.next_line - 1} lines, no record, "
            f"{parser.unparsed_suspicious} lines that speak of a loss.",
            subject=name,
            next_step=f"Known formats are {', '.join(ADAPTERS)}.",
        )
    return _collect(name, chosen.framework, items, blocks, parser, taken=taken)


def _collect(
    name: str, framework: str, items: list[Item], blocks: BlockReader, parser: LogParser, *, taken: bool
) -> LogRead:
    records = tuple(item for item in items if isinstance(item, MetricRecord))
    events = tuple(item for item in items if isinstance(item, LogEvent))
    if blocks.leading_nul_bytes:
        events = (LogEvent(type="file_truncated", fields={"note": _HOLE}), *events)
    several = bool(records) and records[-1].attempt > records[0].attempt
    return LogRead(
        file=name,
        framework=framework,
        records=records,
        aux_records=tuple(item for item in items if isinstance(item, AuxRecord)),
        events=events,
        rejected=tuple(item for item in items if isinstance(item, RejectedLine)),
        pending_tail=None if taken else _pending(blocks, parser),
        effective_series=effective_series(records) if several else (),
        lost_steps=lost_steps(records, events) if several else (),
        leading_nul_bytes=blocks.leading_nul_bytes,
        lines=parser.next_line - 1,
        unparsed_suspicious=parser.unparsed_suspicious,
    )


def _pending(blocks: BlockReader, parser: LogParser) -> PendingTail | None:
    if not blocks.tail.strip(b"\0\r\n\t "):
        return None
    missing = " and not complete JSON" if blocks.tail.lstrip().startswith(b"{") else ""
    return PendingTail(
        line=parser.next_line,
        reason=f"no newline{missing}: keep the offset before it and retry",
        offset=blocks.tail_offset,
        size_bytes=len(blocks.tail),
    )
