"""nvidia-smi: the CSV of `--query-gpu` with and without header, and its two ways to fail as a whole."""

from __future__ import annotations

import re

import msgspec

from trainflow_tui.monitoring.nodes.records import Cell, Device, DeviceError, NodeParse, ToolError, ToolWarning

TOOL = "nvidia-smi"

_ABSENT = frozenset({"", "N/A", "[N/A]", "[Not Supported]", "Not Supported", "[Not Available]"})
_BARE_ERRORS = frozenset({"Requested functionality has been deprecated", "ERR!"})

# NVML nvmlClocksThrottleReason*: the bits of clocks_event_reasons.active (clocks_throttle_reasons before 535.54).
_THROTTLE = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
FAULTY_THROTTLE = frozenset({"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})

# Query field to record field and its type.
_COLUMNS: dict[str, tuple[str, type[int] | type[float] | type[str]]] = {
    "index": ("index", int),
    "name": ("name", str),
    "gpu_name": ("name", str),
    "uuid": ("uuid", str),
    "gpu_uuid": ("uuid", str),
    "pci.bus_id": ("pci", str),
    "gpu_bus_id": ("pci", str),
    "temperature.gpu": ("temp_c", float),
    "utilization.gpu": ("util_pct", float),
    "memory.used": ("mem_used_mib", int),
    "memory.total": ("mem_total_mib", int),
    "power.draw": ("power_w", float),
    "power.limit": ("power_cap_w", float),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected_volatile", int),
    "pstate": ("performance_state", str),
}
_THROTTLE_COLUMNS = frozenset({"clocks_event_reasons.active", "clocks_throttle_reasons.active"})

_LOST = re.compile(
    r"Unable to determine the device handle for GPU\s*([0-9A-Fa-f]+:[0-9A-Fa-f]+:[0-9A-Fa-f.]+): (.{0,200})"
)
_NO_DRIVER = "couldn't communicate with the NVIDIA driver"
_HEADER_CELL = re.compile(r"([a-z0-9_.]+)(?: \[([^\]]+)\])?")
_NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)(?: ?(?:%|MiB|W|C|MHz))?")
_UUID = re.compile(r"\bGPU-[0-9a-f]{8}-")


def parse(text: str, file_name: str) -> NodeParse | None:
    """Read one output of nvidia-smi; None if it is none.

    `[N/A]`, `N/A` and `[Not Supported]` are None; `[Unknown Error]`, `[GPU requires reset]` and any other text in
    brackets are errors of the device.
    """
    failure = _failure(text, file_name)
    if failure is not None:
        return failure
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if len(rows) == 0 or any(len(row) < 2 for row in rows):
        return None
    header = [_HEADER_CELL.fullmatch(cell) for cell in rows[0]]
    names = [match[1] for match in header if match is not None]
    if len(names) == len(rows[0]) and any(name in _COLUMNS for name in names):
        return _with_header(names, rows[1:], file_name)
    if text.lstrip()[:1] != "{" and ("nvidia" in file_name.lower() or _smells_of_nvidia(text)):
        return _without_header(rows, file_name)
    return None


def _failure(text: str, file_name: str) -> NodeParse | None:
    errors: list[ToolError] = []
    exit_code: int | None = None
    for line in text.splitlines():
        if match := _LOST.search(line):
            errors.append(ToolError(code="gpu_lost", bus_id=match[1], text=match[2]))
        elif _NO_DRIVER in line:
            errors.append(ToolError(code="driver_unreachable", text=line[:200]))
            exit_code = 9
        elif line.startswith("Failed to initialize NVML"):
            errors.append(ToolError(code="driver_unreachable", text=line[:200]))
    if not errors:
        return None
    return NodeParse(file=file_name, tool=TOOL, errors=tuple(errors), exit_code=exit_code, state="critical")


def _smells_of_nvidia(text: str) -> bool:
    return "[Not Supported]" in text or "[N/A]" in text or _UUID.search(text) is not None


def _with_header(names: list[str], rows: list[list[str]], file_name: str) -> NodeParse:
    devices: list[Device] = []
    warnings: list[ToolWarning] = []
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            warnings.append(ToolWarning(code="row_damaged", row=number, text=", ".join(row)[:200]))
            continue
        device = _device(names, row)
        devices.append(device)
        warnings.extend(device_warnings(device))
    tool = f"{TOOL} --query-gpu=... --format=csv"
    return NodeParse(file=file_name, tool=tool, devices=tuple(devices), warnings=tuple(warnings))


def _device(names: list[str], row: list[str]) -> Device:
    fields: dict[str, object] = {}
    errors: list[DeviceError] = []
    other: dict[str, str] = {}
    for name, cell in zip(names, row, strict=True):
        error = _error(cell)
        if error is not None:
            errors.append(DeviceError(field=name, error=error))
        elif cell in _ABSENT:
            continue
        elif name in _THROTTLE_COLUMNS:
            fields["throttle"] = _reasons(cell)
        elif name in _COLUMNS:
            field, kind = _COLUMNS[name]
            fields[field] = cell if kind is str else _typed(cell, kind)
            if fields[field] is None:
                other[name] = cell
        else:
            other[name] = cell
    return msgspec.convert({**fields, "errors": errors, "other": other}, Device)


def _typed(cell: str, kind: type[int] | type[float] | type[str]) -> int | float | None:
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return None
    number = float(match[1])
    return int(number) if kind is int else number


def _reasons(cell: str) -> list[str] | None:
    try:
        bits = int(cell, 16)
    except ValueError:
        return None
    return [name for bit, name in _THROTTLE.items() if bits & bit]


def _error(cell: str) -> str | None:
    if cell in _BARE_ERRORS:
        return cell
    if cell in _ABSENT or not (cell.startswith("[") and cell.endswith("]")):
        return None
    return cell[1:-1]


def device_warnings(device: Device) -> list[ToolWarning]:
    """What is wrong with one device: clocks held down by heat or power, uncorrected memory errors, failing fields."""
    warnings = [
        ToolWarning(code=reason, device=device.index) for reason in device.throttle or () if reason in FAULTY_THROTTLE
    ]
    if device.ecc_uncorrected_volatile:
        warnings.append(ToolWarning(code="ecc_uncorrected", device=device.index, value=device.ecc_uncorrected_volatile))
    for failed in device.errors:
        warnings.append(ToolWarning(code="device_error", device=device.index, text=f"{failed.field}: {failed.error}"))
    return warnings


def _without_header(rows: list[list[str]], file_name: str) -> NodeParse:
    cells = tuple(tuple(_cell(cell) for cell in row) for row in rows)
    warnings = tuple(
        ToolWarning(code="device_error", row=number, text=cell["error"])
        for number, row in enumerate(cells, start=1)
        for cell in row
        if isinstance(cell, dict)
    )
    return NodeParse(file=file_name, tool=f"{TOOL} csv,noheader", rows=cells, warnings=warnings)


def _cell(cell: str) -> Cell:
    error = _error(cell)
    if error is not None:
        return {"error": error}
    if cell in _ABSENT:
        return None
    match = _NUMBER.fullmatch(cell)
    return cell if match is None else float(match[1])
