"""The tables of settings and keys as plain text, as `trainflow help` shows them; `scripts/reference.py` makes the documents of them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from trainflow_tui.cli.config import PREFIX
from trainflow_tui.config import FIELDS, Field
from trainflow_tui.language import _
from trainflow_tui.text import cell_len

if TYPE_CHECKING:
    from textual.binding import Binding

WIDTH: Final = 76
"""Cells of a page's line: with its margin a page fits a terminal of 80 columns."""
_KEYS_WIDTH: Final = 18
_ID_WIDTH: Final = 20

_OWN_EXAMPLE: Final = 'quit = "Q,ctrl+q"'


def variable(field: Field) -> str:
    """The variable that sets a field."""
    return PREFIX + field.key.upper()


def default(field: Field) -> str:
    """The default as it would stand in a file."""
    return "none" if isinstance(field.default, dict) else _toml(field.default)


def example(field: Field) -> str:
    """Lines of a file that set the field to something else than its default."""
    if isinstance(field.default, dict):
        return f"[{field.key}]\n{_OWN_EXAMPLE}"
    if isinstance(field.default, bool):
        return f"{field.key} = {_toml(not field.default)}"
    if isinstance(field.default, int):
        return f"{field.key} = {min(field.high, field.default * 2)}"
    return f"{field.key} = {_toml(next(c for c in field.choices if c != field.default))}"


def variable_example(field: Field) -> str:
    """The same as a variable."""
    if isinstance(field.default, dict):
        return f'{variable(field)}="quit=Q,ctrl+q;help=H"'
    return f"{variable(field)}={example(field).partition(' = ')[2].strip(chr(34))}"


def _toml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value) if isinstance(value, int) else f'"{value}"'


def settings_text() -> str:
    """Every setting: its name and default, what it takes, its variable, what it does."""
    blocks = []
    for field in FIELDS:
        lines = [f"{field.key}  ({_('default')}: {default(field)})"]
        lines += [f"    {line}" for line in wrapped(_(field.about), WIDTH - 8)]
        takes = f"{_('takes')}: {field.expected} · {variable(field)}"
        lines += [f"    {line}" for line in wrapped(takes, WIDTH - 8)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def keys_text(own: Mapping[str, str]) -> str:
    """Every binding by group: keys, what they do, the id by which `[keys]` names it. `*` marks those that change something."""
    from trainflow_tui.screens import keys  # 40 ms of Textual's bindings, which no other page needs

    lines: list[str] = []
    for title, bindings in keys.GROUPS:
        lines += ["", _(title), ""]
        for binding in bindings:
            lines += _key_lines(binding, " ".join(keys.shown_keys(binding, own)), changes=is_changing(binding))
    return "\n".join(lines[1:])


def is_changing(binding: Binding) -> bool:
    """Whether a binding changes something, and so does nothing in read-only mode and in the past."""
    from trainflow_tui.screens import keys

    return binding.id in keys.MUTATING


def _key_lines(binding: Binding, shown: str, *, changes: bool) -> list[str]:
    room = WIDTH - 4 - _KEYS_WIDTH - 2 - _ID_WIDTH
    first, *rest = wrapped(_(binding.description), room)
    head = f"    {_padded(shown, _KEYS_WIDTH)}{'*' if changes else ' '} {_padded(first, room)}  {binding.id}"
    return [head, *(f"    {' ' * (_KEYS_WIDTH + 2)}{line}" for line in rest)]


def _padded(text: str, cells: int) -> str:
    return text + " " * max(0, cells - cell_len(text))


def wrapped(text: str, cells: int) -> list[str]:
    """Lines of at most so many cells. Text with wide characters may be broken between any two of them."""
    if cell_len(text) == len(text):
        return textwrap.wrap(text, cells, break_on_hyphens=False) or [""]
    lines = [""]
    for word in _breakable(text):
        if cell_len(lines[-1] + word.rstrip()) > cells and lines[-1]:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += word.lstrip() if not lines[-1] else word
    return lines


_NEVER_FIRST: Final = frozenset("，。、；：？！）」』…")


def _breakable(text: str) -> list[str]:
    """Pieces between which a line may end: words with the blank behind them, and single wide characters."""
    pieces: list[str] = []
    for letter in text:
        joins = pieces and (
            letter in _NEVER_FIRST
            or letter == " "
            or (cell_len(letter) == 1 and cell_len(pieces[-1][-1]) == 1 and pieces[-1][-1] != " ")
        )
        if joins:
            pieces[-1] += letter
        else:
            pieces.append(letter)
    return pieces
