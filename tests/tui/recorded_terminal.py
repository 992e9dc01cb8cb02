"""A terminal for tests: what an app writes is kept, and drawn by a terminal emulator as an operator would see it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pyte
from textual.app import App
from textual.drivers.headless_driver import HeadlessDriver
from textual.pilot import Pilot


class RecordingDriver(HeadlessDriver):
    """Takes no input; unlike Textual's headless driver it is written to."""

    @property
    def is_headless(self) -> bool:
        return False

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self.written: list[str] = []

    def write(self, data: str) -> None:
        self.written.append(data)


class RecordedTerminal:
    """What has been written since the last `forget`, and the grid that all of it has drawn."""

    def __init__(self, pilot: Pilot, size: tuple[int, int]) -> None:
        self.pilot = pilot
        self._driver = pilot.app._driver
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._fed = 0
        self._forgotten = 0

    async def settle(self) -> None:
        await self.pilot.pause()
        await self.pilot.wait_for_scheduled_animations()
        await self.pilot.pause()

    @property
    def written(self) -> str:
        return "".join(self._driver.written[self._forgotten :])

    def forget(self) -> None:
        self._forgotten = len(self._driver.written)

    @property
    def rows(self) -> list[str]:
        self._draw()
        return list(self._screen.display)

    @property
    def picture(self) -> list[list[tuple]]:
        """Every cell with its colours and attributes; of a blank only those that can be seen."""
        self._draw()
        screen = self._screen
        return [[_seen(screen.buffer[y][x]) for x in range(screen.columns)] for y in range(screen.lines)]

    def _draw(self) -> None:
        for chunk in self._driver.written[self._fed :]:
            self._stream.feed(chunk)
        self._fed = len(self._driver.written)


def _seen(cell: pyte.screens.Char) -> tuple:
    blank = cell.data == " " and not (cell.reverse or cell.underscore or cell.strikethrough)
    return (" ", cell.bg) if blank else tuple(cell)


@asynccontextmanager
async def recorded(app: App, size: tuple[int, int] = (80, 24), **options) -> AsyncIterator[RecordedTerminal]:
    app.driver_class = RecordingDriver
    async with app.run_test(headless=False, size=size, **options) as pilot:
        terminal = RecordedTerminal(pilot, size)
        await terminal.settle()
        yield terminal
