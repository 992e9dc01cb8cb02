"""Metric samples on disk: a JSONL tail that is appended to, and the Parquet segment that takes its place.

A sample is one JSON object with its identity (`gen`, `off`: the generation of the source and the byte offset of its line) and
its values. The identity makes a tail that was read twice after a crash harmless.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec

from trainflow_tui.clock import from_iso, to_iso
from trainflow_tui.files import ensure_private_directory

COLUMNS: Final = {
    "gen": "INTEGER",
    "off": "BIGINT",
    "at": "VARCHAR",
    "attempt": "INTEGER",
    "step": "BIGINT",
    "loss": "DOUBLE",
    "grad_norm": "DOUBLE",
    "lr": "DOUBLE",
    "step_time_s": "DOUBLE",
    "tokens_per_s_per_gpu": "DOUBLE",
    "tflops_per_gpu": "DOUBLE",
    "samples_per_s": "DOUBLE",
    "throughput": "DOUBLE",
    "extra": "JSON",
}
"""`at` is the time at which the line was read (UTC, ISO); the source's own time, if it has one, stands in `extra`."""
_BLOCK_BYTES: Final = 1 << 16


def stored_form(time: str) -> str:
    """An ISO time as the store writes it, so that the two sort as text.

    Raises:
        ValueError: it is no ISO time, or has no zone.
    """
    moment = from_iso(time)
    if moment.tzinfo is None:
        raise ValueError(f"{time} has no zone")
    return to_iso(moment)


class SegmentGoneError(Exception):
    """A segment of a reader's list is not on disk: replaced and unlinked since, or deleted by somebody else."""


class LiveTail:
    """The open end of a run's samples: one writer, complete lines only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        ensure_private_directory(path.parent)
        self._mend()

    def _mend(self) -> None:
        # A line torn by a crash was never acknowledged: its source line is read again.
        with contextlib.suppress(FileNotFoundError), open(self.path, "rb+") as stream:
            size = end = stream.seek(0, os.SEEK_END)
            while end > 0:
                start = max(0, end - _BLOCK_BYTES)
                stream.seek(start)
                whole = stream.read(end - start).rfind(b"\n") + 1
                end = start + whole
                if whole:
                    break
            if end != size:
                stream.truncate(end)
                os.fsync(stream.fileno())

    def append(self, samples: Iterable[dict[str, Any]]) -> int:
        """Add samples durably; returns how many."""
        lines = [msgspec.json.encode(_storable(sample)) for sample in samples]
        if lines:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                data = memoryview(b"\n".join(lines) + b"\n")
                while data:
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        return len(lines)

    def last(self) -> tuple[int, int] | None:
        """Generation and offset of the newest sample, from which the cursor is recomputed after a crash."""
        try:
            with open(self.path, "rb") as stream:
                stream.seek(0, os.SEEK_END)
                stream.seek(max(0, stream.tell() - _BLOCK_BYTES))
                lines = stream.read().splitlines()
        except FileNotFoundError:
            return None
        for line in reversed(lines):
            try:
                sample = json.loads(line)
                return int(sample["gen"]), int(sample["off"])
            except (ValueError, KeyError):
                continue
        return None

    def size(self) -> int:
        """Bytes in the tail; 0 where there is none."""
        return self.path.stat().st_size if self.path.exists() else 0


def _storable(sample: dict[str, Any]) -> dict[str, Any]:
    # Bare NaN is not JSON; DuckDB casts the quoted words to DOUBLE exactly.
    return {
        key: (str(value) if isinstance(value, float) and not _is_finite(value) else value)
        for key, value in sample.items()
    }


def _is_finite(value: float) -> bool:
    return value - value == 0.0
