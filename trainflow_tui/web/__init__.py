"""The screen in a browser: a loopback server, and one process of the screen for each tab."""

from __future__ import annotations

from typing import Final

WEB_DRIVER: Final = "textual.drivers.web_driver:WebDriver"
"""What TEXTUAL_DRIVER names in a process that draws into a tab: packets on its standard streams, and no terminal."""
