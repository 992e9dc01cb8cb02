"""The last gate before the terminal: no control character leaves through Textual's strip renderer.

`text.display()` is the first gate and the one that makes text readable; this one holds where somebody forgot it.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MARK: Final = "_controls_replaced"


def install() -> None:
    """Wrap `Strip.render`, the one place where Textual turns cells into bytes (textual 8.2.8). Again is harmless."""
    if hasattr(Strip.render, _MARK):
        return
    original = Strip.render

    @functools.wraps(original)
    def render(self: Strip, console: Console) -> str:
        if self._render_cache is None and (harmless := _harmless(self)) is not self:
            self._render_cache = original(harmless, console)
        return original(self, console)

    setattr(render, _MARK, True)
    Strip.render = render  # type: ignore[method-assign]


def _harmless(strip: Strip) -> Strip:
    """The strip itself, or one with U+FFFD for every control, without the links that hold one, in the same cells."""
    if not any(_UNSAFE.search(text) or _bad_link(style) for text, style, _ in strip):
        return strip
    segments = [
        # Controls were laid out as no cells at all: the marks push the line to the right, and its end is cut.
        Segment(
            _UNSAFE.sub("\ufffd", text), style.update_link(None) if style is not None and _bad_link(style) else style
        )
        for text, style, _ in strip
    ]
    return Strip(segments).adjust_cell_length(strip.cell_length)


def _bad_link(style: Style | None) -> bool:
    return style is not None and bool(style.link) and _UNSAFE.search(style.link or "") is not None
