"""Draws no more than the line to the terminal takes: one frame at a time, what a person did before what arrived by itself.

A frame that the line cannot take now is remembered as spans of cells and drawn later from the widgets as they are then:
none is lost, none is drawn twice. The event loop never waits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual import events
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual._context import visible_screen_stack
from textual.drivers.linux_driver import LinuxDriver
from textual.geometry import Offset, Region

from trainflow_tui.screens import frugal_frames
from trainflow_tui.screens.frugal_frames import Change, Picture, as_chops
from trainflow_tui.screens.line_pace import DataPace
from trainflow_tui.screens.paced_driver import PacedDriver
from trainflow_tui.screens.words import _, say
from trainflow_tui.text import Display

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver
    from textual.screen import Screen

    _App = App[Any]
else:
    _App = object

TICK_S: Final = 1.0
Span = tuple[int, int, int]
"""Line, first cell, cell behind the last."""
_LEAST_BYTES_A_LINE: Final = 40
_FEWEST_LINES: Final = 4


class Owed:
    """Cells of the terminal that do not show what they should: first those that a person waits for, then the others."""

    def __init__(self) -> None:
        self._parts: tuple[dict[int, tuple[int, int]], ...] = ({}, {})

    def __bool__(self) -> bool:
        return any(self._parts)

    def add(self, spans: Iterable[Span], *, first: bool) -> None:
        """Remember cells; of two stretches in a line, all between them too."""
        part = self._parts[0 if first else 1]
        for y, x1, x2 in spans:
            left, right = part.get(y, (x1, x2))
            part[y] = min(left, x1), max(right, x2)

    def take(self, lines: int | None) -> tuple[list[Span], bool]:
        """The next cells, of so many lines at most, from the top; and whether a person waits for them."""
        first = bool(self._parts[0])
        part = self._parts[0 if first else 1]
        taken = [(y, *part.pop(y)) for y in sorted(part)[:lines]]
        return taken, first

    def clear(self) -> None:
        """Everything will be drawn anew."""
        for part in self._parts:
            part.clear()


class SlowLink(_App):
    """Mix in before `App`. Textual 8.2.8 draws in `App._display` alone; a driver that is not a `PacedDriver` is left alone."""

    def __init__(self, *args: Any, **options: Any) -> None:
        frugal_frames.install()
        super().__init__(*args, **options)
        self.data_pace = DataPace(TICK_S)
        self._owed = Owed()
        self._picture = Picture()
        self._screen_shown: Screen[Any] | None = None
        self._cursor_shown: Offset | None = None
        self._person_waits = False
        self._data_waits = False
        """Data came that was not given to the widgets yet."""
        self._data_begins = False

    def get_driver_class(self) -> type[Driver]:
        """Ours in place of Textual's for a terminal of this machine; a browser's and a test's stay."""
        found = super().get_driver_class()
        return PacedDriver if found is LinuxDriver else found

    @property
    def _paced(self) -> PacedDriver | None:
        return self._driver if isinstance(self._driver, PacedDriver) else None

    # Frames

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        driver = self._driver
        if (
            driver is None
            or driver.is_headless
            or self._batch_count
            or not isinstance(renderable, ChopsUpdate | LayoutUpdate)
        ):
            super()._display(screen, renderable)
        else:
            self._take_update(screen, renderable)

    def _take_update(self, screen: Screen[Any], update: ChopsUpdate | LayoutUpdate) -> None:
        if isinstance(update, LayoutUpdate):
            self._owed.clear()
            update = as_chops(update)
            if screen is not self._screen_shown and self._is_quick:
                # It costs nobody anything and repairs what another program wrote on the terminal.
                self._picture.forget()
            self._screen_shown = screen
        if not self._owed and self._is_quick:
            self._send(screen, update)
        else:
            self._owed.add(update.spans, first=self._person_waits)
            self._pay()

    @property
    def _is_quick(self) -> bool:
        driver = self._paced
        return driver is None or (not driver.holds and driver.pace.portion_bytes is None)

    def _send(self, screen: Screen[Any], update: ChopsUpdate, portion: int | None = None) -> list[Span]:
        """Write a frame of what the terminal does not show, of a portion's length; returns what did not fit."""
        changes = self._picture.differing(update, self.console._color_system or ColorSystem.TRUECOLOR)
        rest: list[Span] = []
        if portion is not None:
            changes, rest = _fitting(update, changes, portion, self.console)
        if not changes and self.cursor_position == self._cursor_shown:
            self.post_display_hook()
            return rest
        self._picture.drawn(changes)
        self._cursor_shown = self.cursor_position
        spans = [(y, x1, x2) for y, x1, x2, _cells in changes]
        super()._display(screen, ChopsUpdate(update.chops, spans, update.chop_ends))
        if self._paced is not None:
            self._paced.end_frame()
            if self._data_begins:
                self._data_begins = False
                self.data_pace.began(time.monotonic())
        return rest

    def _pay(self) -> None:
        """Draw what is owed, as much as the line takes now."""
        driver = self._paced
        while driver is not None and self._owed and not driver.holds and not self._batch_count and self.screen_stack:
            portion = driver.pace.portion_bytes
            lines = max(_FEWEST_LINES, portion // _LEAST_BYTES_A_LINE) if portion is not None else None
            spans, first = self._owed.take(lines)
            update = self._rendered(spans)
            if update is not None:
                self._owed.add(self._send(self.screen, update, portion), first=first)
        if not self._owed:
            self._person_waits = False

    def _rendered(self, spans: list[Span]) -> ChopsUpdate | None:
        """These cells as the widgets are now; None where the screen has none of them (it became smaller)."""
        compositor = self.screen._compositor
        width, height = compositor.size
        cells = {Region(x1, y, min(x2, width) - x1, 1) for y, x1, x2 in spans if y < height and x1 < width}
        if not cells:
            return None
        kept, compositor._dirty_regions = compositor._dirty_regions, cells
        try:
            visible_screen_stack.set(self._background_screens)
            return compositor.render_partial_update()
        finally:
            compositor._dirty_regions = kept

    def draw_anew(self) -> None:
        """Nobody knows what the terminal shows: draw everything."""
        self._owed.clear()
        self._picture.forget()
        self.data_pace.forget()
        if self.screen_stack:
            self.screen.refresh(layout=True)

    def on_paced_driver_answered(self, message: PacedDriver.Answered) -> None:
        """The terminal drew a frame."""
        if self._paced is not None:
            self._paced.answered(message.at)
        self._line_moved()

    def on_paced_driver_written(self) -> None:
        """The kernel took a frame, or found nobody to give it to."""
        self._line_moved()

    def _line_moved(self) -> None:
        self._pay()
        driver = self._paced
        if driver is None or self._owed or driver.holds:
            return
        if driver.is_drawn and not self._data_begins:
            was_slow = self.data_pace.slow
            self.data_pace.drawn(time.monotonic())
            self._tell_pace(was_slow)
        self._paint_waiting()

    # Data

    def _repaint(self) -> None:
        """Give what is newest to the widgets that are shown. The application implements it."""
        raise NotImplementedError

    def paint_data(self) -> None:
        """Data came by itself: paint it now, or with what comes later, when the line and the eyes are there."""
        self._data_waits = True
        self._paint_waiting()

    def line_tick(self) -> None:
        """A second passed."""
        was_slow = self.data_pace.slow
        self.data_pace.tick(time.monotonic())
        self._tell_pace(was_slow)
        self._pay()
        self._paint_waiting()

    def _paint_waiting(self) -> None:
        now, driver = time.monotonic(), self._paced
        if not self._data_waits or self._owed or (driver is not None and driver.holds):
            return
        if self.data_pace.may_paint(now, focused=self.app_focus):
            self._data_waits = False
            self._data_begins, self._person_waits = driver is not None, False
            self.data_pace.painted(now)
            self._repaint()

    def _tell_pace(self, was_slow: bool) -> None:
        if self.data_pace.slow != was_slow:
            self.show_badge()

    def show_badge(self) -> None:
        """The header's badge came or went."""

    def watch_app_focus(self, focus: bool) -> None:
        """The window got the focus back: show at once what it left out."""
        if focus and self._data_waits:
            self.data_pace.painted(float("-inf"))
            self._paint_waiting()

    async def on_event(self, event: events.Event) -> None:
        """What is drawn after a key is what the person waits for. In another size the terminal shows something else."""
        if isinstance(event, events.Resize):
            self._picture.forget()
        if isinstance(
            event, events.Key | events.Paste | events.MouseDown | events.MouseScrollUp | events.MouseScrollDown
        ):
            self._person_waits = True
        await super().on_event(event)


def badge(app: object) -> Display | None:
    """What the header says about the line, if anything."""
    if not isinstance(app, SlowLink) or not app.data_pace.slow:
        return None
    return say(_("slow line, every {n} s"), n=f"{DataPace.SELDOM_S:g}")


def _fitting(
    update: ChopsUpdate, changes: list[Change], portion: int, console: Console
) -> tuple[list[Change], list[Span]]:
    """The first changes that so many bytes hold, one at least, and where the others are."""
    size = 0
    for number, (y, x1, x2, _cells) in enumerate(changes):
        size += len(ChopsUpdate(update.chops, [(y, x1, x2)], update.chop_ends).render_segments(console).encode())
        if number and size > portion:
            return changes[:number], [(y, x1, x2) for y, x1, x2, _cells in changes[number:]]
    return changes, []
