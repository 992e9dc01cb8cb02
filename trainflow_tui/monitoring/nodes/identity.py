"""Sections of the collector to figures: who the node is, its memory, disks, processes and PCI functions."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from trainflow_tui.monitoring.nodes.records import Accelerator, Disk, Load
from trainflow_tui.monitoring.nodes.sections import Section

Sections = dict[str, Section]

_VENDORS = {"0x10de": "NVIDIA", "0x1002": "AMD", "0x1d94": "Hygon", "0x19e5": "Huawei"}
_DISK = re.compile(r"(.*\S)\s+(\d+)\s+(\d+)\s+(-?\d+)\s+(?:\d+%|-)\s+(/.*)")
_PRESSURE = re.compile(r"(cpu|memory|io) (some|full) .*\bavg60=([\d.]+)")
_PRESSURE_KINDS = frozenset({"cpu_some", "memory_full", "io_full"})


class Identity(NamedTuple):
    """The answers of the identity section; None where the node could not say."""

    name: str | None
    boot_id: str | None
    kernel: str | None
    uptime_s: float | None
    cpus: int | None
    date_s: float | None
    """The node's wall clock, seconds since 1970."""


class Process(NamedTuple):
    """A process that waits in the kernel (D) or is dead and not collected (Z)."""

    state: str
    pid: int
    age_s: float
    command: str


def identity(sections: Sections) -> Identity:
    """Who the node is."""
    answers = dict(line.partition(" ")[::2] for line in _lines(sections, "identity"))
    texts = {key: value.strip() for key, value in answers.items() if value.strip()}
    cpus = _number(texts.get("cpus"))
    return Identity(
        name=texts.get("hostname"),
        boot_id=texts.get("boot_id"),
        kernel=texts.get("kernel"),
        uptime_s=_number(texts.get("uptime_s")),
        cpus=None if cpus is None else int(cpus),
        date_s=_number(texts.get("date_s", "").removesuffix(".N")),  # date without %N, as on macOS
    )


def load(sections: Sections) -> Load | None:
    """The run-queue means of /proc/loadavg."""
    numbers = [_number(word) for word in " ".join(_lines(sections, "load")).split()[:3]]
    one, five, fifteen = numbers if len(numbers) == 3 else (None, None, None)
    if one is None or five is None or fifteen is None:
        return None
    return Load(one_minute=one, five_minutes=five, fifteen_minutes=fifteen)


def memory_bytes(sections: Sections) -> tuple[int | None, int | None]:
    """Total and available memory, from the kB (1024 bytes) of /proc/meminfo."""
    answers = dict(line.partition(":")[::2] for line in _lines(sections, "memory"))
    total, available = (_number(answers.get(key, "").removesuffix("kB")) for key in ("MemTotal", "MemAvailable"))
    return _kib(total), _kib(available)


def pressure_pct(sections: Sections) -> dict[str, float] | None:
    """The one-minute averages of Linux PSI that say something; None where the kernel keeps none."""
    matches = [_PRESSURE.match(line) for line in _lines(sections, "pressure")]
    found = {f"{match[1]}_{match[2]}": _number(match[3]) for match in matches if match is not None}
    return {kind: value for kind, value in found.items() if kind in _PRESSURE_KINDS and value is not None} or None


def disks(sections: Sections) -> tuple[Disk, ...] | None:
    """The mounted file systems; only the local ones where a dead network mount stopped the full list."""
    for name in ("disks", "local_disks"):
        # df ends with 1 when one mount of many cannot be read, and its list is good.
        matches = [_DISK.fullmatch(line) for line in _lines(sections, name, any_exit=True)]
        found = tuple(disk for match in matches if match is not None and (disk := _disk(match)) is not None)
        if found:
            return found
    return None


def processes(sections: Sections) -> tuple[Process, ...] | None:
    """The processes in state D or Z; None where they could not be listed."""
    if not _is_complete(sections, "processes"):
        return None
    found: list[Process] = []
    for line in _lines(sections, "processes"):
        words = line.split(None, 3)
        if len(words) == 4 and words[1].isdecimal() and words[2].isdecimal():
            found.append(Process(state=words[0][:1], pid=int(words[1]), age_s=float(words[2]), command=words[3]))
    return tuple(found)


def tools(sections: Sections) -> tuple[str, ...] | None:
    """The vendor and cluster tools that the node has."""
    return tuple(_lines(sections, "tools")) if _is_complete(sections, "tools") else None


def accelerators(sections: Sections) -> tuple[Accelerator, ...] | None:
    """The accelerators on the PCI bus; empty where there is none, None where the bus could not be seen."""
    if not _is_complete(sections, "accelerators"):
        return None
    rows = (line.split("|") for line in _lines(sections, "accelerators"))
    return tuple(
        Accelerator(
            pci=row[0],
            vendor=_VENDORS.get(row[1], row[1]),
            device_id=row[2],
            link_speed=row[4] or None,
            link_width=int(row[5]) if row[5].isdecimal() else None,
            driver=row[6] or None,
        )
        for row in rows
        if len(row) == 7
    )


def _lines(sections: Sections, name: str, *, any_exit: bool = False) -> list[str]:
    section = sections.get(name)
    if section is None or (not any_exit and section.exit_code not in (0, None)):
        return []
    return [line for line in section.text.splitlines() if line.strip()]


def _is_complete(sections: Sections, name: str) -> bool:
    section = sections.get(name)
    return section is not None and section.is_complete


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _kib(number: float | None) -> int | None:
    return None if number is None else int(number) * 1024


def _disk(match: re.Match[str]) -> Disk | None:
    total, used, available = (int(match[group]) * 1024 for group in (2, 3, 4))
    fillable = used + max(available, 0)
    if total == 0 or fillable == 0:
        return None
    return Disk(
        mount=match[5],
        device=match[1],
        total_bytes=total,
        used_bytes=used,
        used_pct=round(100 * used / fillable, 1),
    )
