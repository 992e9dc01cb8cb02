"""Content-addressed files: the bytes behind every fact, verified at every read."""

from __future__ import annotations

import hashlib
from pathlib import Path

from trainflow_tui.errors import DamagedError, UsageError
from trainflow_tui.files import ensure_private_directory, write_atomic


class Artifacts:
    """Bytes kept under their SHA-256: `objects/<2 hex>/<64 hex>`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def path(self, sha256: str) -> Path:
        """Where the bytes of this hash are kept, whether or not they are there."""
        return self._root / sha256[:2] / sha256

    def add(self, content: bytes) -> str:
        """Keep the bytes durably; returns their SHA-256. Equal bytes are kept once."""
        digest = hashlib.sha256(content).hexdigest()
        target = self.path(digest)
        if not target.exists():
            for folder in (self._root, target.parent):
                ensure_private_directory(folder, parents=False)
            write_atomic(target, content)
        return digest

    def read(self, sha256: str) -> bytes:
        """The bytes.

        Raises:
            UsageError: nothing is kept under this hash.
            DamagedError: what is kept does not have this hash any more.
        """
        try:
            content = self.path(sha256).read_bytes()
        except FileNotFoundError as problem:
            raise UsageError("no-artifact", f"No artifact {sha256[:12]} is kept here.", subject=sha256) from problem
        if hashlib.sha256(content).hexdigest() != sha256:
            raise DamagedError("artifact-damaged", f"The artifact {sha256[:12]} has changed on disk.", subject=sha256)
        return content
