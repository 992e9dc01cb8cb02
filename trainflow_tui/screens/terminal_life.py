"""What happens to the terminal under the screen: it is stopped and comes back, becomes too small, goes away."""

from __future__ import annotations

import time
from typing import Final

from textual import events

from trainflow_tui.language import _
from trainflow_tui.screens.base import SMALLEST
from trainflow_tui.screens.paced_driver import PacedDriver
from trainflow_tui.screens.slow_link import SlowLink
from trainflow_tui.screens.words import say

GUARD_S: Final = 0.4
"""Keys that were pressed before the picture had stood this long were meant for the one before."""
HUNG_UP: Final = 129
_SAID_S: Final = 3.0


class TerminalLife(SlowLink):
    """Mix in before `App`. A screen that decides has `armed_at`: keys and clicks that are older do nothing there."""

    armed_after: float = 0.0
    """Keys of before this moment (monotonic seconds) do nothing on any screen."""
    _said_until = 0.0

    def on_mount(self) -> None:
        """Hear of every return: from the shell (ctrl+z), the editor, the pager."""
        self.bind("ctrl+z", "suspend_process", description=_("To the shell; `fg` comes back"), show=False)
        self.app_resume_signal.subscribe(self, lambda _app: self.came_back())

    def came_back(self) -> None:
        """Draw everything, and let no key decide that was typed before it could be read."""
        self.armed_after = time.monotonic() + GUARD_S
        self.draw_anew()

    def on_paced_driver_written(self) -> None:
        """A terminal that went away ends the program, also where no signal says so."""
        if isinstance(self._driver, PacedDriver) and not self._driver.line_is_there:
            self.exit(HUNG_UP, return_code=HUNG_UP)

    @property
    def too_small(self) -> bool:
        """Whether the window cannot show what would be decided."""
        return self.size.width < SMALLEST[0] or self.size.height < SMALLEST[1]

    def _say_too_small(self) -> None:
        now = time.monotonic()
        if now >= self._said_until:
            self._said_until = now + _SAID_S
            words = say(_("Nothing is decided in less than {w}×{h} cells. esc back"), w=SMALLEST[0], h=SMALLEST[1])
            self.notify(words, severity="warning", timeout=_SAID_S, markup=False)

    async def on_event(self, event: events.Event) -> None:
        """Let nobody decide in a window that cannot show what is decided, nor just after it changed its size."""
        armed_at = getattr(self.screen, "armed_at", None) if self.screen_stack else None
        if armed_at is not None:
            if isinstance(event, events.Resize):
                self.screen.armed_at = max(armed_at, time.monotonic() + GUARD_S)  # type: ignore[attr-defined]
            elif self.too_small and _decides(event):
                self._say_too_small()
                return
        await super().on_event(event)


def _decides(event: events.Event) -> bool:
    if isinstance(event, events.Key):
        return event.key != "escape"
    return isinstance(event, events.MouseEvent | events.Paste)
