"""A file that a person names: opened as a regular file, or refused with a sentence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from trainflow_tui.errors import UsageError
from trainflow_tui.files import open_regular


def real_path(path: Path) -> Path:
    """The file that a name leads to, through links.

    Raises:
        UsageError: the links lead nowhere.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError) as problem:
        raise UsageError(
            "file-unreadable", f"{path} leads nowhere: {problem}.", subject=str(path), next_step="Check the name."
        ) from problem


def open_source(path: Path) -> BinaryIO:
    """The file's bytes. A link that the person names is followed; what it leads to must be a regular file.

    Raises:
        UsageError: there is no such file, or it may not be read.
        DamagedError: it is something else, which is named.
    """
    try:
        return os.fdopen(open_regular(real_path(path)), "rb")
    except OSError as problem:
        words = (problem.strerror or str(problem)).lower()
        raise UsageError(
            "file-unreadable", f"{path} cannot be read: {words}.", subject=str(path), next_step="Check the name."
        ) from problem
