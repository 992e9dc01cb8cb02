"""The last gate before the terminal: no control character leaves through Textual's strip renderer, and on request no sign of ours
beyond ASCII.

`text.display()` is the first gate and the one that makes text readable; this one holds where somebody forgot it.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from textual._styles_cache import StylesCache
from textual.strip import Strip

from trainflow_tui.screens import looks

_UNSAFE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_LOOKALIKES: Final = (
    ("●", "*"), ("◐", "o"), ("◉", "@"), ("✓", "v"), ("✗", "x"), ("★", "*"), ("■", "#"), ("‖", "="), ("◌", "."),
    ("▲", "^"), ("▼", "v"), ("▸→╶", ">"), ("✎", "~"), ("↺←", "<"), ("✚", "+"), ("⌁⚠", "!"), ("◷", "t"), ("…", "~"),
    ("—–─━╸╺▁▔", "-"), ("│┃▎▏▕▌▐╹╻", "|"), ("·", "."), ("×", "x"), ("█▀▄▂▃▅▆▇", "#"), ("┌┐└┘╭╮╰╯├┤┬┴┼", "+"),
)  # fmt: skip
_ASCII: Final = str.maketrans({sign: plain for signs, plain in _LOOKALIKES for sign in signs})
"""One ASCII character for each sign and line that we draw, each as wide as what it stands for. Words of people stay as they are."""
_SIGNS: Final = re.compile(f"[{''.join(map(chr, _ASCII))}]")
_MARK: Final = "_controls_replaced"


def install() -> None:
    """Wrap `Strip.render`, the one place where Textual turns cells into bytes (textual 8.2.8). Again is harmless."""
    if hasattr(Strip.render, _MARK):
        return
    # textual 8.2.8 caches a method with its object as part of the key: a thousand dead widgets keep all that they drew.
    method = StylesCache.get_inner_outer
    StylesCache.get_inner_outer = getattr(method, "__wrapped__", method)  # type: ignore[method-assign]
    original = Strip.render

    @functools.wraps(original)
    def render(self: Strip, console: Console) -> str:
        if self._render_cache is None and (harmless := _harmless(self)) is not self:
            self._render_cache = original(harmless, console)
        return original(self, console)

    setattr(render, _MARK, True)
    Strip.render = render  # type: ignore[method-assign]


def as_drawn(strip: Strip) -> Strip:
    """What the terminal is sent of a strip."""
    return _harmless(strip)


def _harmless(strip: Strip) -> Strip:
    """The strip itself, or one with U+FFFD for every control, without the links that hold one, in the same cells."""
    if looks.glyphs() == "ascii" and any(_SIGNS.search(text) for text, _, _ in strip):
        strip = Strip([Segment(text.translate(_ASCII), style) for text, style, _ in strip], strip.cell_length)
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
