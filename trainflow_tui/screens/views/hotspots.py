"""The panes of the hot-spots screen: traces with their split, and the rows that make 90 % of one of them."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from trainflow_tui.language import N_
from trainflow_tui.screens.freshness import from_traces
from trainflow_tui.screens.pane_view import AsOf, PaneView, row
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.columns import (
    figures,
    milliseconds,
    moment,
    muted,
    number,
    share,
    share_of,
    words,
)
from trainflow_tui.screens.widgets.cells import as_text
from trainflow_tui.screens.widgets.patched_table import Column, Row
from trainflow_tui.screens.words import ACCENT, BAD, MUTED, OK, WARN, _, joined, line, mark, say

KIND_STYLES: Final = {"communication": WARN, "idle": BAD, "memcpy": ACCENT, "memset": ACCENT}


def traces(snapshot: Snapshot, *, compact: bool = False) -> PaneView:
    """Ingested traces, one row a device. Compact keeps the name, the window and the idle share."""
    columns = (
        Column(_("Trace"), None, "trace"),
        Column(_("Device"), 6, "device"),
        figures(_("Window ms"), 10, "window_ns"),
        figures(_("Compute"), 7, "compute_share"),
        figures(_("Exposed"), 7, "exposed_communication_share"),
        figures(_("Idle"), 7, "idle_share"),
        Column(_("At"), 8, "added_at"),
    )
    keys = "3 n" if compact else "n"
    empty = say(_("No trace yet.  {keys}  or  trainflow trace add FILE"), keys=keys)
    rows = tuple(found for trace in snapshot.traces for found in _trace_rows(trace))
    view = PaneView(say(_("Traces")), columns, rows, empty, as_of=from_traces(snapshot))
    return view.only(0, 2, 5) if compact else view


def _trace_rows(trace: Any) -> list[Row]:
    name = words(trace.path.rsplit("/", 1)[-1], value=trace.path)
    devices = trace.summary.get("devices", [])
    if not devices:
        return [row(trace.id, name, *(mark("–", MUTED) for _n in range(5)), moment(trace.added_at))]
    rows = []
    for device in devices:
        split = device["split"]
        window = split["total_ns"] or 1
        idle = WARN if split["idle_ns"] * 2 > window else ""
        rows.append(
            row(
                f"{trace.id}/{device['device']}",
                name,
                muted(str(device["device"])),
                number(milliseconds(split["total_ns"]), split["total_ns"]),
                share_of(split["compute_ns"], window),
                share_of(split["exposed_communication_ns"], window),
                share_of(split["idle_ns"], window, idle),
                moment(trace.added_at),
            )
        )
    return rows


def hotspots(snapshot: Snapshot, key: str | None) -> PaneView:
    """The 90 % list of one trace's device; `key` is `trace/device`."""
    columns = (
        figures(_("Share"), 7, "share"),
        figures(_("Cumul."), 7, "cumulative_share"),
        figures(_("Attributed ms"), 13, "attributed_ns"),
        figures(_("Calls"), 7, "calls"),
        Column(_("Kind"), 13, "kind"),
        Column(_("Name"), None, "name"),
    )
    device = find_device(snapshot, key)
    if device is None:
        return PaneView(say(_("Hot-spots")), columns, (), say(_("Choose a trace above.")))
    rows = tuple(_hotspot_row(spot) for spot in device.get("hotspots", []))
    window = milliseconds(device["split"]["total_ns"])
    left_out = device["hotspot_rows"] - len(rows)
    more = say(_("; {n} more: trainflow trace hotspots"), n=left_out) if left_out else ""
    note = say(_("together 90 % of {window} ms{more}"), window=window, more=more)
    trace = next(t for t in snapshot.traces if key and t.id == key.rsplit("/", 1)[0])
    source = AsOf(trace.added_at, say("{name}", name=trace.path.rsplit("/", 1)[-1]))
    return PaneView(say(_("Hot-spots")), columns, rows, say(_("No device activity in this trace.")), note, source)


def _hotspot_row(spot: dict[str, Any]) -> Row:
    return row(
        f"{spot['kind']}/{spot['name']}",
        number(f"{100 * spot['share']:.1f}%", spot["share"]),
        number(f"{100 * spot['cumulative_share']:.1f}%", spot["cumulative_share"], MUTED),
        number(milliseconds(spot["attributed_ns"]), spot["attributed_ns"]),
        number(str(spot["count"]), spot["count"]),
        words(spot["kind"], KIND_STYLES.get(spot["kind"], "")),
        words(spot["name"]),
    )


def find_device(snapshot: Snapshot, key: str | None) -> dict[str, Any] | None:
    """The split of one device out of a trace's summary."""
    if key is None:
        return None
    for trace in snapshot.traces:
        for device in trace.summary.get("devices", []):
            if f"{trace.id}/{device['device']}" == key:
                return device  # type: ignore[no-any-return]
    return None


_PARTS: Final = (
    (N_("compute {compute_ns}"), OK),
    (N_("exposed comm {exposed_communication_ns} of {communication_ns}"), WARN),
    (N_("exposed copy {exposed_memcpy_ns}"), ACCENT),
    (N_("idle {idle_ns}"), BAD),
)


def split_line(snapshot: Snapshot, key: str | None) -> Text:
    """Compute + exposed communication + exposed copy + idle = window, in percent of the window."""
    device = find_device(snapshot, key)
    if device is None:
        return line("")
    window = max(1, int(device["split"]["total_ns"]))
    shares = {name: share(int(value), window) for name, value in device["split"].items()}
    return joined(*(as_text(say(_(part), **shares), style) for part, style in _PARTS), gap="  ")
