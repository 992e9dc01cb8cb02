"""How the demo's children learn that they are to end: their standard input closes."""

from __future__ import annotations

import os
import select
import sys
import time


def ended_within(seconds: float) -> bool:
    """Wait; True as soon as standard input is closed."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([sys.stdin.fileno()], [], [], left)
        if ready and not os.read(sys.stdin.fileno(), 4096):
            return True
    return False
