"""The screen with a loop that stands still before it opens an approval. Tells in a file, line by line, what happened when.

Run as `python -m tests.tui.stalled_screen WORKSPACE FILE SECONDS`.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from textual import events

import trainflow_tui.app
from trainflow_tui.app import TrainflowApp
from trainflow_tui.screens.desk import Desk
from trainflow_tui.screens.dialogs.approval import ApprovalDialog
from trainflow_tui.workspace import Workspace


class QuietDesk(Desk):
    async def ensure_watch(self) -> None:
        return None


class StalledApp(TrainflowApp):
    CSS_PATH = str(Path(trainflow_tui.app.__file__).with_name("screens") / "styles" / "trainflow.tcss")

    def __init__(self, desk: Desk, *, told: Path, stall_s: float) -> None:
        super().__init__(desk)
        self._told, self._stall_s = told, stall_s

    def tell_test(self, what: str, at: float, **more: str) -> None:
        with open(self._told, "a", encoding="utf-8") as stream:
            stream.write(json.dumps({"what": what, "at": at} | more) + "\n")

    def ask_decision(self, id: str) -> None:
        self.tell_test("stall", time.monotonic())
        time.sleep(self._stall_s)
        super().ask_decision(id)

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.tell_test("key", event.time, key=event.key)
        await super().on_event(event)


def main(root: str, told: str, stall_s: str) -> int:
    app = StalledApp(QuietDesk(Workspace.open(Path(root))), told=Path(told), stall_s=float(stall_s))
    mounted = ApprovalDialog.on_mount

    def on_mount(dialog: ApprovalDialog) -> None:
        mounted(dialog)
        app.tell_test("armed", dialog.armed_at)

    ApprovalDialog.on_mount = on_mount
    app.run()
    return app.return_code or 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
