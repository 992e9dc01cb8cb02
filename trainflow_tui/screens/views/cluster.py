"""The panes of the cluster screen: nodes with their worst signal, and every signal of one node."""

from __future__ import annotations

from typing import Any, Final

from trainflow_tui.language import N_
from trainflow_tui.screens.freshness import Freshness, from_nodes
from trainflow_tui.screens.pane_view import AsOf, PaneView, row
from trainflow_tui.screens.snapshot import Snapshot
from trainflow_tui.screens.views.columns import figures, moment, number, words
from trainflow_tui.screens.widgets.patched_table import Column
from trainflow_tui.screens.words import BAD, MUTED, OK, WARN, _, mark, say

STATE_STYLES: Final = {"ok": OK, "warning": WARN, "degraded": WARN, "critical": BAD, "unknown": MUTED}
STATES: Final = {
    "ok": N_("ok"),
    "warning": N_("warning"),
    "degraded": N_("degraded"),
    "critical": N_("critical"),
    "unknown": N_("unknown"),
}
_GLYPHS: Final = {"ok": "●", "warning": "▲", "degraded": "▲", "critical": "✗", "unknown": "?"}
_SEVERITY: Final = ("critical", "degraded", "warning", "unknown", "ok")


def nodes(snapshot: Snapshot, freshness: Freshness, *, compact: bool = False) -> PaneView:
    """Nodes with their worst signal. Compact keeps the name, the memory and the signal."""
    columns = (
        Column("", 1),
        Column(_("Node"), 18, "node"),
        figures(_("Load"), 6, "load_one_minute"),
        figures(_("Mem used"), 8, "memory_used_share"),
        figures(_("Devices"), 8, "devices"),
        Column(_("Worst signal"), None, "worst_signal"),
        Column(_("At"), 8, "checked_at"),
    )
    rows = []
    for node in snapshot.nodes:
        s = node.status
        state, text = worst_signal(s)
        total, free = s.get("mem_total_bytes"), s.get("mem_available_bytes")
        used = (total - free) / total if total and free is not None else None
        seen = s.get("devices") if s.get("devices") is not None else s.get("accelerators")
        load = (s.get("load") or {}).get("one_minute")
        rows.append(
            row(
                node.name,
                mark(_GLYPHS.get(state, "?"), STATE_STYLES.get(state, MUTED)),
                words(node.name),
                number("—" if load is None else f"{load:.1f}", load),
                number("—" if used is None else f"{100 * used:.0f}%", used),
                number("—" if seen is None else str(len(seen)), None if seen is None else len(seen)),
                words(text, STATE_STYLES.get(state, MUTED)),
                moment(node.checked_at),
            )
        )
    keys = "4 n" if compact else "n"
    empty = say(_("No node yet.  {keys}  or  trainflow node check"), keys=keys)
    view = PaneView(say(_("Nodes")), columns, tuple(rows), empty, as_of=from_nodes(snapshot, freshness))
    return view.only(0, 1, 3, 5) if compact else view


def worst_signal(status: dict[str, Any]) -> tuple[str, str]:
    """The worst state among a node's signals and its words; unknown is worse than ok and never hidden by it."""
    signals = status.get("signals")
    if not isinstance(signals, list) or not signals:
        return "unknown", _("not checked yet")
    for state in _SEVERITY:
        found = [s for s in signals if s.get("state") == state]
        if found and state != "ok":
            return state, "; ".join(str(s.get("text") or s.get("check")) for s in found[:3])
    return "ok", _("all checks ok")


def node_detail(snapshot: Snapshot, name: str | None, freshness: Freshness) -> PaneView:
    """Every signal of one node."""
    columns = (
        Column(_("Check"), 22, "check"),
        Column(_("State"), 9, "state"),
        Column(_("Value"), None, "value"),
    )
    node = next((n for n in snapshot.nodes if n.name == name), None)
    rows = tuple(
        row(
            f"{i}",
            words(str(s.get("check", ""))),
            words(_(STATES.get(str(s.get("state")), str(s.get("state")))), STATE_STYLES.get(str(s.get("state")), "")),
            words(str(s.get("text") or s.get("value") or "—")),
        )
        for i, s in enumerate(node.status.get("signals", []) if node else [])
    )
    source = AsOf(node.checked_at, say("{name}", name=node.name), freshness.nodes) if node else None
    title = say(_("Signals of {name}"), name=name or "—")
    return PaneView(title, columns, rows, say(_("Choose a node above.")), as_of=source)
