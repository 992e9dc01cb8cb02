"""`make docs`: pictures of the screens for the documentation, from a workspace that is the same wherever this runs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.tui.conftest import QuietDesk  # noqa: E402
from tests.tui.example import fill  # noqa: E402
from trainflow_tui.app import TrainflowApp  # noqa: E402
from trainflow_tui.clock import ManualClock  # noqa: E402
from trainflow_tui.workspace import Workspace  # noqa: E402

PICTURES = {
    "overview": ("0",),
    "board": ("1",),
    "questions": ("2",),
    "hotspots": ("3",),
    "cluster": ("4",),
    "live": ("5",),
    "approval": ("1", "a"),
}
SIZE = (120, 40)


class _Patch:
    """The one method of pytest's monkeypatch that the example uses."""

    @staticmethod
    def setattr(target: object, name: str, value: object) -> None:
        setattr(target, name, value)


def without_fonts(svg: str) -> str:
    """Drop the fonts that Textual would fetch from elsewhere; the reader's own monospaced font serves."""
    svg = re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    # Some viewers trim the no-break spaces at the start of a text unless they are told to preserve them.
    svg = svg.replace("<svg ", '<svg xml:space="preserve" ', 1)
    return svg.replace("Fira Code", "DejaVu Sans Mono")


async def picture(app: TrainflowApp, keys: tuple[str, ...]) -> str:
    """The screen after some keys, as SVG."""
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause(0.2)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(0.3)
        return without_fonts(app.export_screenshot(title="trainflow"))


def main() -> None:
    """Write every picture into `docs/`."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    for name, keys in PICTURES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "cluster-a"
            root.mkdir(mode=0o700)
            clock = ManualClock(datetime(2026, 3, 4, 2, 58, 0, tzinfo=UTC))
            workspace = Workspace.open(root, create=True, clock=clock)
            genuine = os.urandom
            try:
                fill(workspace, clock, _Patch)
            finally:
                os.urandom = genuine
            svg = asyncio.run(picture(TrainflowApp(QuietDesk(workspace)), keys))
        (ROOT / "docs" / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"docs/{name}.svg")


if __name__ == "__main__":
    main()
