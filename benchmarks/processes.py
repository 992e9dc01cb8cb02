"""What the processes of a program cost: CPU time and memory, the collector apart from the screen. Linux; empty elsewhere."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Cost:
    """CPU seconds since its start, those of ended children included, and resident bytes now."""

    cpu_s: float = 0.0
    rss_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.cpu_s + other.cpu_s, self.rss_bytes + other.rss_bytes)


def costs(root: int, *, apart: str = " watch") -> tuple[Cost, Cost]:
    """Of a process and its descendants; second, of those whose command line holds the words and of their descendants."""
    table = dict(_processes())
    own, other = Cost(), Cost()
    todo = [(root, False)]
    while todo:
        pid, is_apart = todo.pop()
        if pid not in table:
            continue
        _, cost, command = table[pid]
        is_apart = is_apart or apart in command
        own, other = (own, other + cost) if is_apart else (own + cost, other)
        todo += [(child, is_apart) for child, (parent, _, _) in table.items() if parent == pid]
    return own, other


def _processes() -> list[tuple[int, tuple[int, Cost, str]]]:
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # proc(5): the name in brackets may hold blanks; behind it parent is field 4, times are 14 to 17, rss is 24.
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        ticks = sum(int(field) for field in fields[11:15])
        found.append(
            (int(entry.name), (int(fields[1]), Cost(ticks / TICKS_PER_S, int(fields[21]) * PAGE_BYTES), command))
        )
    return found
