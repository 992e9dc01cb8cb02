"""The screen with a fault in its own code that comes when `z` is pressed. Run as `python -m tests.tui.broken_screen WORKSPACE`."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.tui.stalled_screen import QuietDesk
from trainflow_tui.app import TrainflowApp
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.workspace import Workspace


def zoom(_screen: ModeScreen) -> None:
    password = os.environ["DB_WORDS"]
    raise RuntimeError(f"a fault of ours, {len(password)} letters")


def main(root: str) -> int:
    workspace = Workspace.open(Path(root))
    ModeScreen.action_zoom = zoom
    app = TrainflowApp(QuietDesk(workspace))
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
