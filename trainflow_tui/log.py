"""The program's own log: one JSON object a line, so that nothing a host or a job is named can make a second record."""

from __future__ import annotations

import json
import logging
import logging.handlers
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

FILE_NAME: Final = "trainflow.jsonl"
_MAX_BYTES: Final = 4_000_000


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "pid": record.process,
            "part": record.name.removeprefix("trainflow_tui."),
            "text": record.getMessage(),
        }
        if record.exc_info and record.exc_info[1] is not None:
            # Frames without local variables: those may hold secrets.
            entry["error"] = repr(record.exc_info[1])
            entry["trace"] = self.formatException(record.exc_info).splitlines()[-12:]
        return json.dumps(entry, ensure_ascii=True)

    @staticmethod
    def converter(seconds: float | None) -> Any:
        import time

        return time.gmtime(seconds)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _PrivateFile(logging.handlers.RotatingFileHandler):
    def _open(self) -> Any:
        opener: Callable[[str, int], int] = _private
        return open(self.baseFilename, self.mode, encoding="utf-8", opener=opener)


def start(directory: Path) -> None:
    """Send every record of this process to the workspace's log file; a second call changes the place."""
    logger = logging.getLogger("trainflow_tui")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    handler = _PrivateFile(directory / FILE_NAME, maxBytes=_MAX_BYTES, backupCount=2, delay=True)
    handler.setFormatter(_JsonLines())
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def read(directory: Path, *, limit: int) -> list[dict[str, Any]]:
    """The newest entries, oldest of them first; a line that is not JSON is returned as text, never dropped."""
    lines: list[str] = []
    for path in (directory / f"{FILE_NAME}.1", directory / FILE_NAME):
        if path.exists():
            lines += path.read_text(encoding="utf-8", errors="replace").splitlines()
    entries: list[dict[str, Any]] = []
    for line in lines[-limit:]:
        try:
            entries.append(json.loads(line))
        except ValueError:
            entries.append({"level": "unreadable", "text": line[:2000]})
    return entries
