"""What a call is given: texts, the bytes of a file or of standard input, the names of files."""

from __future__ import annotations

import sys
from pathlib import Path

import click


def read_text(text: str | None, file: str | None, *, what: str) -> str:
    """The words of a call: given directly, or in a file, or `-` for standard input.

    Raises:
        click.UsageError: neither or both are given, or the file is not readable as UTF-8.
    """
    if (text is None) == (file is None):
        raise click.UsageError(f"Give {what} with --text, or with --file ('-' reads standard input).")
    if text is not None:
        return text
    try:
        return read_bytes(str(file)).decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise click.UsageError(f"{file} is not UTF-8: {problem.reason} at byte {problem.start}.") from problem


def read_bytes(file: str, *, limit: int = 1_048_576) -> bytes:
    """The bytes of a file, or of standard input for `-`, up to a limit.

    Raises:
        click.UsageError: the file is not readable or larger than the limit, or standard input is closed.
    """
    try:
        if file == "-":
            if sys.stdin is None:
                raise click.UsageError("Standard input is closed.")
            content = sys.stdin.buffer.read(limit + 1)
        else:
            with open(file, "rb") as stream:
                content = stream.read(limit + 1)
    except OSError as problem:
        raise click.UsageError(f"{file} cannot be read: {problem.strerror}.") from problem
    if len(content) > limit:
        raise click.UsageError(f"{file} is larger than {limit} bytes.")
    return content


def given_path(name: str) -> Path:
    """The absolute path that a name means, `~` for a home directory.

    Raises:
        click.UsageError: the name is empty, there is no such home, or the current directory is gone.
    """
    if not name:
        raise click.UsageError("The name of a file is empty.")
    try:
        return Path(name).expanduser().absolute()
    except (RuntimeError, OSError) as problem:
        raise click.UsageError(f"{name[:200]} leads nowhere: {problem}.") from problem
