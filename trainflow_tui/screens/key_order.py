"""Keys in the order in which they were pressed: what a key does is done before the next one is looked at.

Textual forwards a key to the widget that has the focus and runs its binding some messages later. Of `:task 7`, typed or
pasted at once over SSH, the letters would then be pressed on the table, and `a` would open a request.
"""

from __future__ import annotations

import time
from typing import Final

from textual import events
from textual.binding import Binding
from textual.dom import DOMNode
from textual.timer import Timer
from textual.widgets import Input

from trainflow_tui.screens import keys
from trainflow_tui.screens.base import ModeScreen
from trainflow_tui.screens.host import Host
from trainflow_tui.screens.prompt import PromptInput

HOLD_S: Final = 0.5
"""Keys wait at most so long for what is about to come."""


class KeyOrder(Host):
    """Mix in before the other mixins of the application."""

    _opening_since: float | None = None
    _held: list[events.Key]
    _hold_timer: Timer | None = None

    def hold_keys(self) -> None:
        """A dialog is about to open, or an input line to close: the keys that follow are meant for what comes."""
        self._stop_waiting()
        self._opening_since = time.monotonic()
        self._held = []
        self._hold_timer = self.set_timer(HOLD_S, self.release_keys)

    def release_keys(self) -> None:
        """It has come, or will not: give the keys that waited to whatever is on the screen now."""
        self._stop_waiting()
        if self._opening_since is not None:
            self._opening_since = None
            for event in self._held:
                self.post_message(event)
            self._held = []

    def _stop_waiting(self) -> None:
        # An earlier wait's end would be one of this wait too.
        if self._hold_timer is not None:
            self._hold_timer.stop()
            self._hold_timer = None

    async def on_event(self, event: events.Event) -> None:
        """Run the bindings of a screen at once; inside an input line, in a dialog and while a pane is jumped to they wait."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            if self._opening_since is not None:
                self._held.append(event)
                return
            if self._answers(event.key):
                self.hold_keys()
            elif self._takes() in ("text", "line") and self.focused is not None:
                if any(found.priority for _node, found in self._bound_to(event.key)):
                    # The letters before it wait in the field's own queue; a binding that goes first would overtake them.
                    self.hold_keys()
                    self.focused.call_later(self._press, event.key)
                    return
            elif self._runs_bindings_at_once() and await self._check_bindings(event.key):
                self.app_focus = True
                return
        await super().on_event(event)

    def _bound_to(self, key: str) -> list[tuple[DOMNode, Binding]]:
        return [
            (node, binding)
            for node, bindings in self.screen._binding_chain
            for binding in bindings.key_to_bindings.get(key, ())
        ]

    def _answers(self, key: str) -> bool:
        """Whether what has the keys may be gone after this one: the next ones wait to see what comes."""
        if not self.screen_stack:
            return False
        if isinstance(self.focused, PromptInput):
            return key in self._keys_that_end_a_line()
        return self._takes() == "key" or (key == "enter" and self._takes() == "line")

    async def _press(self, key: str) -> None:
        await self._check_bindings(key, priority=True)
        self.release_keys()

    def _keys_that_end_a_line(self) -> set[str]:
        # Sent, given up or completed, the line is another one: the keys that follow wait for it.
        found = {"enter"}
        for binding in keys.PROMPT_KEYS:
            if binding.id in ("prompt-cancel", "prompt-complete"):
                found.update(self.own_keys.get(binding.id, binding.key).split(","))
        return found

    def _runs_bindings_at_once(self) -> bool:
        screen = self.screen if self.screen_stack else None
        if not isinstance(screen, ModeScreen) or not screen.is_mounted:
            return False
        return not screen.jumping and not isinstance(self.focused, Input)

    def _takes(self) -> str:
        """What the dialog on top takes: a key, a line, a text; empty where none does. The dialogs are imported on use: 17 ms."""
        return str(getattr(self.screen, "takes", ""))
