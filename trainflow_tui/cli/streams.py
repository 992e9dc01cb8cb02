"""The three standard streams, any of which may be closed, full, of another encoding, or without a reader."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO


def hold_descriptors() -> None:
    """Keep 0, 1 and 2 from being given to a file of ours, into which somebody's error message would then be written."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def let_go_of_streams() -> None:
    """Point the three at nothing, for a process whose terminal has gone."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)


def is_terminal(*streams: TextIO | None) -> bool:
    """Whether all of these streams are open and are terminals."""
    return all(stream is not None and not stream.closed and stream.isatty() for stream in streams)


def emit(output: str, complaints: str) -> bool:
    """Write to standard output and standard error; False where the output could not be written.

    A reader that has gone, as `head` does, has had what it wanted; a full disk has not.
    """
    delivered = _write(sys.stdout, output)
    _write(sys.stderr, complaints)
    return delivered


def _write(stream: TextIO | None, text: str) -> bool:
    if stream is None or not text:
        return True
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")  # a terminal of another encoding shows what it can
    try:
        stream.write(text)
        stream.flush()
    except OSError as problem:
        # What the stream still holds would be written, and fail, once more when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return isinstance(problem, BrokenPipeError)
    return True
