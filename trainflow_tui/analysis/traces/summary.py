"""The small record of a trace that is kept beside its artifact and painted first."""

from __future__ import annotations

from trainflow_tui.analysis.traces.records import (
    DeviceHotspots,
    DeviceSummary,
    IngestResult,
    TimeSplit,
    TraceHotspots,
    TraceSummary,
)

SUMMARY_ROWS = 20


def summarise(ingested: IngestResult, hotspots: TraceHotspots) -> TraceSummary:
    """Reduce an ingested trace and its hot-spots to what the first paint needs: each split and the first 20 rows."""
    return TraceSummary(
        file=hotspots.file,
        source_sha256=ingested.source_sha256,
        source_bytes=ingested.source_bytes,
        events=ingested.events,
        devices=tuple(_device(device) for device in hotspots.devices),
        unknown_categories={name: count for name, count in ingested.categories.items() if not count.known},
        quality=hotspots.quality,
    )


def _device(device: DeviceHotspots) -> DeviceSummary:
    split = TimeSplit(**{field: getattr(device, field) for field in TimeSplit.__struct_fields__})
    return DeviceSummary(
        device=device.device,
        split=split,
        hotspots=device.hotspots[:SUMMARY_ROWS],
        hotspot_rows=len(device.hotspots),
    )
