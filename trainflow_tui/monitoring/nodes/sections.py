"""The collector's framed output to sections. Robust against text before it, missing ends and output that was cut."""

from __future__ import annotations

import re

import msgspec

_FRAME = re.compile(rb"^\x1e([<>]) ([a-z0-9_]{1,40})(?: (\d{1,3}))?\r?\n", re.MULTILINE)


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one part of the collector printed."""

    name: str
    text: str
    exit_code: int | None
    """None: the output ended before the section did."""

    @property
    def is_complete(self) -> bool:
        """Whether the section ran to its end and succeeded."""
        return self.exit_code == 0


def parse_sections(output: bytes) -> dict[str, Section]:
    """The sections by name; of two with one name the first counts. Anything outside of a frame is ignored."""
    sections: dict[str, Section] = {}
    open_name: str | None = None
    body_start = 0
    for frame in _FRAME.finditer(output):
        kind, name = frame[1], frame[2].decode("ascii")
        if kind == b">":
            if open_name is not None:
                _keep(sections, open_name, output[body_start : frame.start()], None)
            open_name, body_start = name, frame.end()
        elif name == open_name:
            exit_code = int(frame[3]) if frame[3] else None
            _keep(sections, name, output[body_start : frame.start()], exit_code)
            open_name = None
    if open_name is not None:
        _keep(sections, open_name, output[body_start:], None)
    return sections


def _keep(sections: dict[str, Section], name: str, body: bytes, exit_code: int | None) -> None:
    if name not in sections:
        text = body.decode("utf-8", "replace").strip("\n")
        sections[name] = Section(name=name, text=text, exit_code=exit_code)
