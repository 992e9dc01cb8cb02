"""Textual's SVG screenshot: facts go in, what reaches outside goes out. Knows no screen and no file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final
from xml.dom import minidom
from xml.parsers.expat import ExpatError

from trainflow_tui.errors import InternalError
from trainflow_tui.redaction import redact

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 §2.2 has no character for."""
_FONT_FACE: Final = re.compile(r"@font-face\s*\{[^}]*\}|@import[^;]*;")
_OUTSIDE: Final = re.compile(r"url\(\s*[\"']?(?!#)[^)]*\)")
_REMOVED: Final = frozenset({"script", "foreignObject", "image", "use", "iframe"})
_NO_BREAK_SPACE: Final = "\u00a0"


def with_facts(svg: str, facts: Mapping[str, str], *, schema: str) -> str:
    """The same picture with `<title>`, `<desc>` and JSON in `<metadata>`; without fonts, links and scripts from outside.

    The window's buttons and the picture stay as Rich drew them; `Fira Code` is used where the reader has it, else the
    reader's own monospaced font. Secrets are taken out of each piece of text; one that lies over two is not seen.

    Raises:
        InternalError: it is no SVG.
    """
    try:
        document = minidom.parseString(_NOT_XML.sub("\ufffd", svg).encode())
    except ExpatError as problem:
        raise InternalError("not-an-svg", f"The screenshot is not well formed: {problem}.") from problem
    root = document.documentElement
    if root is None or root.tagName != "svg":
        raise InternalError("not-an-svg", "The screenshot has no <svg>.")
    _clean(root)
    words = json.dumps({"schema": schema, **facts}, ensure_ascii=False)
    description = "\n".join(f"{name}: {value}" for name, value in facts.items() if name != "title")
    first = root.firstChild
    for name, text in (("title", facts.get("title", "")), ("desc", description), ("metadata", words)):
        element = document.createElement(name)
        element.appendChild(document.createTextNode(_NOT_XML.sub("\ufffd", text)))
        root.insertBefore(element, first)
        root.insertBefore(document.createTextNode("\n"), first)
    return str(root.toxml()) + "\n"


def _clean(element: minidom.Element) -> None:
    for name in list(element.attributes.keys()):
        value = element.getAttribute(name)
        linked = name.split(":")[-1] == "href" and not value.startswith("#")
        if linked or name.lower().startswith("on"):
            element.removeAttribute(name)
        elif "url(" in value:
            element.setAttribute(name, _OUTSIDE.sub("none", value))
    for child in list(element.childNodes):
        if isinstance(child, minidom.Element):
            if child.tagName in _REMOVED:
                element.removeChild(child)
            else:
                _clean(child)
        elif not isinstance(child, minidom.Text):
            element.removeChild(child)
        elif element.tagName == "style":
            child.data = _OUTSIDE.sub("none", _FONT_FACE.sub("", child.data))
        elif child.data.strip():
            # Rich writes every blank as a no-break space.
            child.data = redact(child.data.replace(_NO_BREAK_SPACE, " "))[0].replace(" ", _NO_BREAK_SPACE)
