"""Sections of the collector to one judged `NodeStatus`."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.monitoring.nodes import identity, nvidia_smi
from trainflow_tui.monitoring.nodes.records import (
    Accelerator,
    Device,
    Disk,
    NodeParse,
    NodeStatus,
    Signal,
    State,
    ToolError,
)
from trainflow_tui.monitoring.nodes.sections import Section

DISK_WARNING_PCT, DISK_CRITICAL_PCT = 90.0, 98.0
"""From 98 % on the next checkpoint of a large model does not fit on most disks."""
MEMORY_WARNING_PCT = 5.0
PRESSURE_WARNING_PCT = 60.0
"""systemd-oomd's default limit for memory pressure."""
CLOCK_WARNING_S = 30.0
BLOCKED_WARNING_S = 300.0
"""A process this old that is seen in state D; one sample cannot say for how long it has been."""

_PSEUDO_DEVICES = frozenset({"tmpfs", "devtmpfs", "udev", "efivarfs", "shm", "none"})
_SKIPPED_EXIT = 75
_TIMED_OUT_EXITS = frozenset({124, 137})


def node_status(sections: dict[str, Section], *, collected_at: datetime, source: str, note: str = "") -> NodeStatus:
    """Everything that the sections say, with the signals that follow from it.

    `collected_at` is our wall clock at the moment of the answer, `source` how it was reached, `note` what went wrong on
    the way. A missing or failed section makes its figures None and its check unknown.
    """
    who = identity.identity(sections)
    total_bytes, available_bytes = identity.memory_bytes(sections)
    pressure = identity.pressure_pct(sections)
    mounts = identity.disks(sections)
    functions = identity.accelerators(sections)
    parsed = _tool_answer(sections)
    offset_s = None if who.date_s is None else round(who.date_s - collected_at.timestamp(), 3)
    signals = [
        *_collector(sections, note),
        _clock(offset_s),
        _memory(total_bytes, available_bytes),
        *_pressure(pressure),
        *_disks(mounts),
        _blocked(identity.processes(sections)),
        _accelerators(functions),
        *_devices(sections.get("nvidia_smi"), parsed, functions),
    ]
    return NodeStatus(
        name=who.name,
        boot_id=who.boot_id,
        kernel=who.kernel,
        uptime_s=who.uptime_s,
        cpus=who.cpus,
        load=identity.load(sections),
        mem_total_bytes=total_bytes,
        mem_available_bytes=available_bytes,
        pressure_pct=pressure,
        disks=mounts,
        accelerators=functions,
        devices=None if parsed is None or not isinstance(parsed.errors, msgspec.UnsetType) else parsed.devices,
        tools=identity.tools(sections),
        clock_offset_s=offset_s,
        signals=tuple(signals),
        collected_at=to_iso(collected_at),
        source=source,
    )


def _signal(check: str, state: State, text: str, value: float | None = None, unit: str = "") -> Signal:
    return Signal(check=check, state=state, value=value, unit=unit, text=text)


def _collector(sections: dict[str, Section], note: str) -> list[Signal]:
    if "end" in sections and not note:
        return []
    reason = note or "the collector's output was cut before its end"
    return [_signal("collector", "unknown", reason, len(sections), "sections")]


def _clock(offset_s: float | None) -> Signal:
    if offset_s is None:
        return _signal("clock", "unknown", "the node did not tell its time", None, "s")
    state: State = "warning" if abs(offset_s) > CLOCK_WARNING_S else "ok"
    return _signal("clock", state, f"the node's clock is {offset_s:+.1f} s from ours", offset_s, "s")


def _memory(total_bytes: int | None, available_bytes: int | None) -> Signal:
    if not total_bytes or available_bytes is None:
        return _signal("memory", "unknown", "the node did not tell its memory", None, "%")
    percent = round(100 * available_bytes / total_bytes, 1)
    state: State = "warning" if percent < MEMORY_WARNING_PCT else "ok"
    return _signal("memory", state, f"{percent} % of the memory is available", percent, "%")


def _pressure(pressure: dict[str, float] | None) -> list[Signal]:
    if pressure is None or "memory_full" not in pressure:
        return []  # the kernel keeps no such figure, which is no fault and nothing to look after
    percent = pressure["memory_full"]
    state: State = "warning" if percent >= PRESSURE_WARNING_PCT else "ok"
    return [_signal("memory_pressure", state, f"all tasks waited for memory {percent} % of the time", percent, "%")]


def _disks(mounts: tuple[Disk, ...] | None) -> list[Signal]:
    if mounts is None:
        return [_signal("disk", "unknown", "the disks could not be listed", None, "%")]
    return [_disk(disk) for disk in mounts if _is_judged(disk)]


def _is_judged(disk: Disk) -> bool:
    """Whether filling up matters: no memory file system, no read-only loop image, no container layer but the root."""
    if disk.device in _PSEUDO_DEVICES or disk.device.startswith("/dev/loop"):
        return False
    return disk.device != "overlay" or disk.mount == "/"


def _disk(disk: Disk) -> Signal:
    state: State = "ok"
    if disk.used_pct >= DISK_WARNING_PCT:
        state = "critical" if disk.used_pct >= DISK_CRITICAL_PCT else "warning"
    return _signal(f"disk {disk.mount}", state, f"{disk.mount} is {disk.used_pct} % full", disk.used_pct, "%")


def _blocked(processes: tuple[identity.Process, ...] | None) -> Signal:
    if processes is None:
        return _signal("blocked_processes", "unknown", "the processes could not be listed", None, "processes")
    blocked = [process for process in processes if process.state == "D"]
    old = [process for process in blocked if process.age_s >= BLOCKED_WARNING_S]
    named = ", ".join(f"{process.command} ({process.pid})" for process in (old or blocked)[:5])
    text = f"{len(blocked)} processes wait in the kernel" + (f": {named}" if named else "")
    return _signal("blocked_processes", "warning" if old else "ok", text, len(blocked), "processes")


def _accelerators(functions: tuple[Accelerator, ...] | None) -> Signal:
    if functions is None:
        return _signal("accelerators", "unknown", "the PCI bus could not be seen", None, "devices")
    counts = {
        vendor: sum(each.vendor == vendor for each in functions) for vendor in (each.vendor for each in functions)
    }
    text = ", ".join(f"{count} {vendor}" for vendor, count in counts.items()) or "no accelerator"
    return _signal("accelerators", "ok", text, len(functions), "devices")


def _tool_answer(sections: dict[str, Section]) -> NodeParse | None:
    section = sections.get("nvidia_smi")
    return None if section is None else nvidia_smi.parse(section.text, "nvidia_smi")


def _devices(
    section: Section | None, parsed: NodeParse | None, functions: tuple[Accelerator, ...] | None
) -> list[Signal]:
    """What the vendor's tool says, set against what the PCI bus shows."""
    expected = None if functions is None else sum(each.vendor == "NVIDIA" for each in functions)
    if section is None:
        if not expected:
            return []
        text = f"{expected} NVIDIA devices on the bus and no nvidia-smi"
        return [_signal("nvidia-smi", "unknown", text, None, "devices")]
    if parsed is None:
        return [_signal("nvidia-smi", "unknown", _why_silent(section), None, "devices")]
    if not isinstance(parsed.errors, msgspec.UnsetType):
        return [_failure(error, expected) for error in parsed.errors]
    count = len(parsed.devices)
    complete = expected is None or count >= expected
    text = f"{count} devices answer" + ("" if complete else f", {expected} are on the bus")
    if section.is_complete:
        found = [_signal("nvidia-smi", "ok" if complete else "critical", text, count, "devices")]
    else:  # an answer that was cut shows some devices and loses none
        found = [_signal("nvidia-smi", "unknown", f"{_why_silent(section)}; {text}", count, "devices")]
    for device in parsed.devices:
        found.extend(_device(device))
    return found


def _failure(error: ToolError, expected: int | None) -> Signal:
    # The tool without driver and device is common on login nodes and in containers.
    is_idle = error.code == "driver_unreachable" and expected == 0
    return _signal(
        "nvidia-smi", "unknown" if is_idle else "critical", f"{error.code} {error.bus_id or ''}: {error.text}"
    )


def _why_silent(section: Section) -> str:
    if section.exit_code == _SKIPPED_EXIT:
        return "not asked: an earlier nvidia-smi hangs in the driver"
    if section.exit_code in _TIMED_OUT_EXITS or section.exit_code is None:
        return "no answer in time"
    first = section.text.strip().partition("\n")[0][:120]
    return f"exit {section.exit_code}, not understood: {first}"


def _device(device: Device) -> list[Signal]:
    """A slow-down by heat or power is a warning, an uncorrected memory error or a failing field is critical."""
    found: list[Signal] = []
    for warning in nvidia_smi.device_warnings(device):
        state: State = "warning" if warning.code in nvidia_smi.FAULTY_THROTTLE else "critical"
        value = None if isinstance(warning.value, msgspec.UnsetType) else warning.value
        detail = "" if isinstance(warning.text, msgspec.UnsetType) else f" ({warning.text})"
        text = f"device {device.index}: {warning.code.replace('_', ' ')}{detail}"
        found.append(_signal(f"device {device.index} {warning.code}", state, text, value))
    return found
