"""What is known of a node and its devices, as frozen records. None is "not known", never zero."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

State: TypeAlias = Literal["ok", "warning", "critical", "unknown"]


class DeviceError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field that the device could not answer."""

    field: str
    error: str


class Device(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One accelerator as its vendor's tool describes it. Units are those that the tool prints."""

    index: int | None = None
    name: str | None = None
    uuid: str | None = None
    pci: str | None = None
    temp_c: float | None = None
    util_pct: float | None = None
    mem_used_mib: int | None = None
    mem_total_mib: int | None = None
    power_w: float | None = None
    power_cap_w: float | None = None
    ecc_uncorrected_volatile: int | None = None
    throttle: tuple[str, ...] | None = None
    """Why the clocks are lowered; empty: they are not."""
    performance_state: str | None = None
    errors: tuple[DeviceError, ...] = ()
    other: dict[str, str] = {}
    """Columns of no meaning to us, as printed."""


class ToolWarning(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something in a tool's output that a person should look at."""

    code: str
    device: int | msgspec.UnsetType | None = msgspec.UNSET
    row: int | msgspec.UnsetType = msgspec.UNSET
    """From 1, where the output has rows without a device number."""
    value: float | msgspec.UnsetType = msgspec.UNSET
    text: str | msgspec.UnsetType = msgspec.UNSET


class ToolError(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool's own failure. One lost device makes some tools fail as a whole: the others are unknown, not lost."""

    code: str
    bus_id: str | None = None
    text: str = ""


Cell: TypeAlias = float | str | dict[str, str] | None


class NodeParse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one tool's output says, whatever the tool: the object `node-parse/1`."""

    schema: str = "node-parse/1"
    file: str
    tool: str
    devices: tuple[Device, ...] = ()
    ports: tuple[dict[str, Cell], ...] = ()
    events: tuple[dict[str, Cell], ...] = ()
    warnings: tuple[ToolWarning, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] | msgspec.UnsetType = msgspec.UNSET
    """Cells whose columns the output does not name. A cell `{"error": …}` is an error of the device."""
    errors: tuple[ToolError, ...] | msgspec.UnsetType = msgspec.UNSET
    exit_code: int | msgspec.UnsetType | None = msgspec.UNSET
    state: State | msgspec.UnsetType = msgspec.UNSET


class Disk(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One mounted file system."""

    mount: str
    device: str
    total_bytes: int
    used_bytes: int
    used_pct: float
    """Of what users may fill: used / (used + available), as df counts it."""


class Accelerator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One PCI function of an accelerator vendor. It is there even when its driver is dead."""

    pci: str
    vendor: str
    device_id: str
    link_speed: str | None
    link_width: int | None
    driver: str | None


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The judgement of one check. `unknown` says why in `text`; it is neither ok nor a fault."""

    check: str
    state: State
    value: float | None
    unit: str
    text: str


class Load(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Mean length of the run queue over 1, 5 and 15 minutes."""

    one_minute: float
    five_minutes: float
    fifteen_minutes: float


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One node at one moment."""

    name: str | None
    boot_id: str | None
    kernel: str | None
    uptime_s: float | None
    cpus: int | None
    load: Load | None
    mem_total_bytes: int | None
    mem_available_bytes: int | None
    pressure_pct: dict[str, float] | None
    """Share of the last 60 s in which tasks waited: `cpu_some`, `memory_full`, `io_full` (Linux PSI)."""
    disks: tuple[Disk, ...] | None
    accelerators: tuple[Accelerator, ...] | None
    """Empty: there is none, which is a normal answer. None: it could not be seen."""
    devices: tuple[Device, ...] | None
    """What the vendor's tool reports. None: there is no such tool, or it did not answer."""
    tools: tuple[str, ...] | None
    clock_offset_s: float | None
    """The node's clock less ours."""
    signals: tuple[Signal, ...]
    collected_at: str
    source: str
