"""The program's own log: one JSON object a line, so that nothing a host or a job is named can make a second record.

Secrets are taken out before a line is written.
"""

from __future__ import annotations

import json
import logging
import os
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
            "text": _without_secrets(record.getMessage()),
        }
        if record.exc_info and record.exc_info[1] is not None:
            # Frames without local variables: those may hold secrets.
            entry["error"] = _without_secrets(repr(record.exc_info[1]))
            entry["trace"] = _without_secrets(self.formatException(record.exc_info)).splitlines()[-12:]
        return json.dumps(entry, ensure_ascii=True)

    @staticmethod
    def converter(seconds: float | None) -> Any:
        import time

        return time.gmtime(seconds)


def _without_secrets(text: str) -> str:
    from trainflow_tui.redaction import redact, secret_values  # its patterns cost 15 ms, and most calls log nothing

    return redact(text, known=secret_values(os.environ))[0]


class _OnFirstRecord(logging.Handler):
    """Opens the file when there is something to write: most calls log nothing, and rotation's imports cost them 6 ms."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._file: logging.Handler | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self._file is None:
            self._file = _rotating_file(self._path)
        self._file.emit(record)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def _rotating_file(path: Path) -> logging.Handler:
    from logging.handlers import RotatingFileHandler

    class PrivateFile(RotatingFileHandler):
        def _open(self) -> Any:
            return open(
                self.baseFilename, self.mode, encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)
            )

    handler = PrivateFile(path, maxBytes=_MAX_BYTES, backupCount=2, delay=True)
    handler.setFormatter(_JsonLines())
    return handler


def start(directory: Path) -> None:
    """Send every record of this process to the workspace's log file; a second call changes the place."""
    # A log that cannot be written, on a full disk say, must not write its own trouble across a screen or an answer.
    logging.raiseExceptions = False
    logger = logging.getLogger("trainflow_tui")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.addHandler(_OnFirstRecord(directory / FILE_NAME))
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
            entry = json.loads(line)
        except ValueError:
            entry = None
        entries.append(entry if isinstance(entry, dict) else {"level": "unreadable", "text": line[:2000]})
    return entries
