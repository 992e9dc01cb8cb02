"""Which SQLite the ledger runs on, and whether it is free of the WAL defect that releases before 3.51.3 have."""

from __future__ import annotations

from typing import Final

import apsw

SQLITE_VERSION: Final[str] = (
    apsw.sqlite_lib_version() if hasattr(apsw, "sqlite_lib_version") else apsw.sqlitelibversion()
)


def is_safe() -> bool:
    """Whether two processes may checkpoint and write at once."""
    return tuple(int(part) for part in SQLITE_VERSION.split(".")) >= (3, 51, 3)
