"""Bytes of a trace: hashed and counted as stored, handed on decompressed. Forward reads only, so a pipe will do."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from typing import Protocol

from trainflow_tui.errors import DamagedError

RAW_CHUNK_BYTES = 1 << 16
INFLATED_CHUNK_BYTES = 1 << 18

_GZIP = b"\x1f\x8b"
_UNSUPPORTED = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
    b"\xfd7zX": "xz",
    b"BZh": "bzip2",
}


class BinaryStream(Protocol):
    """What a trace is read from: a file, a pipe, an SSH channel."""

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; empty at the end."""
        ...


class TraceSource:
    """A stream of JSON text, plain or gzip (told by its first bytes, never by its name).

    Several gzip members in a row are one text. A gzip stream that breaks off or fails its own check ends the text there
    and sets `truncated`.
    """

    def __init__(self, stream: BinaryStream) -> None:
        self._stream = stream
        self._readinto: Callable[[memoryview], int | None] | None = getattr(stream, "readinto", None)
        self._hash = hashlib.sha256()
        self._raw = b""
        self._inflate: zlib._Decompress | None = None
        self._started = False
        self.bytes_read = 0
        self.truncated = False

    @property
    def sha256(self) -> str:
        """Of the stored bytes read so far, as hex."""
        return self._hash.hexdigest()

    def readinto(self, target: memoryview) -> int:
        """Fill the start of `target` with text; the number of bytes, 0 only at the end.

        Raises:
            DamagedError: the stream is compressed in a way that is not supported.
        """
        if not self._started:
            self._start()
        if self._inflate is not None:
            return self._inflate_into(target)
        if not self._raw and self._readinto:  # plain text from a file: one copy less
            count = self._readinto(target[: 1 << 20]) or 0
            self._note(target[:count])
            return count
        if not self._raw:
            self._fetch(min(len(target), 1 << 20))
        taken = min(len(target), len(self._raw))
        target[:taken] = memoryview(self._raw)[:taken]
        self._raw = self._raw[taken:]
        return taken

    def drain(self) -> None:
        """Read what is left, so that hash and size are those of the whole source."""
        while self._fetch(1 << 20):
            pass
        self._raw = b""

    def _fetch(self, size: int) -> bool:
        self._raw = self._stream.read(size)
        self._note(self._raw)
        return bool(self._raw)

    def _note(self, stored: bytes | memoryview) -> None:
        self._hash.update(stored)
        self.bytes_read += len(stored)

    def _start(self) -> None:
        self._started = True
        head = b""
        while len(head) < 6 and self._fetch(RAW_CHUNK_BYTES):  # a pipe may give single bytes
            head += self._raw
        self._raw = head
        for magic, name in _UNSUPPORTED.items():
            if head.startswith(magic):
                raise DamagedError(
                    "trace-compression",
                    f"The trace is compressed with {name}; plain JSON and gzip can be read.",
                    next_step="Decompress it first, or pipe it in decompressed.",
                )
        if head.startswith(_GZIP):
            self._inflate = zlib.decompressobj(wbits=31)

    def _inflate_into(self, target: memoryview) -> int:
        limit = min(len(target), INFLATED_CHUNK_BYTES)
        while self._inflate is not None:
            fetched = bool(self._raw) or self._fetch(RAW_CHUNK_BYTES)
            try:
                text = self._inflate.decompress(self._raw, limit)
            except zlib.error:
                self.truncated = True
                self.drain()
                return 0
            self._raw = self._inflate.unconsumed_tail
            if self._inflate.eof:
                self._next_member(self._inflate.unused_data)
            if text:
                target[: len(text)] = text
                return len(text)
            if not fetched:  # the decompressor may hold text after its last input, so the end shows only here
                self.truncated = True
                return 0
        return 0

    def _next_member(self, rest: bytes) -> None:
        """Go on with the member that follows; padding or rubbish after the last one is not text."""
        while len(rest) < len(_GZIP) and self._fetch(RAW_CHUNK_BYTES):
            rest += self._raw
        self._raw = rest
        if rest.startswith(_GZIP):
            self._inflate = zlib.decompressobj(wbits=31)
        else:
            self.drain()
            self._inflate = None
