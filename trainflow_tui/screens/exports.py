r"""What a pane shows, written down: CSV, JSON, Markdown, SVG. Every form names its source, time and filter; the file is private and new.

Each form is made harmless for what reads it, and loses its secrets. JSON keeps every other character exactly, those that
are not seen as `\u` escapes. CSV and Markdown have no escapes, so there `text.display(whole=True)` shows them as pictures.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan
from pathlib import Path
from typing import Final

from trainflow_tui.errors import TrainflowError
from trainflow_tui.files import create_exclusive, ensure_private_directory
from trainflow_tui.redaction import redact
from trainflow_tui.text import display

__all__ = ["ExportTable", "Value", "row_as_markdown", "safe_stem", "svg_with_facts", "write_export"]

Value = str | int | float | None

SCHEMA: Final = "export/1"
_WHOLE_CELLS: Final = 10_000_000
"""Of one value; a copy is whole, unlike a cell on screen."""
_STEM_BYTES: Final = 100

_FORMULA_START: Final = "=+-@\t\r＝＋－＠"
"""What a spreadsheet takes for the start of a formula, also in full width (OWASP, CSV injection)."""
_NUMBER: Final = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?")
_FORMULA_INSIDE: Final = re.compile(rf"([,;|\t]\s*\"*\s*)(?=[{re.escape(_FORMULA_START)}])")
_UNSEEN: Final = re.compile(
    # DEL and C1, bidi and zero-width characters, separators, lone surrogates, tags: in JSON as escapes (RFC 8259 §7).
    "[\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ud800-\udfff\ufeff\uffa0\ufff0-\uffff\U000e0000-\U000e0fff]"
)
_MARKDOWN_SIGNS: Final = re.compile(r"[*\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;", "`": "&#96;", "\\": "&#92;"})
_TOKENS: Final = re.compile(r"([\s|\\`]+)")
_LINK_LIKE: Final = re.compile(r"://|@|#\d|(?i:mailto:)|[\w-]\.[A-Za-z]{2}")
_UNSAFE_IN_NAME: Final = re.compile(r"[^\w.-]+")


@dataclass(frozen=True)
class ExportTable:
    """Rows of raw values, and what one has to know about them.

    `keys` name the columns for programs, with units (`window_ns`); `labels` for people. `as_of` is since when the
    source is known (ISO, UTC, or empty), `exported_at` when this was taken. Of `total_rows` the filter left `rows`.
    """

    title: str
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    source: str
    as_of: str
    exported_at: str
    filter: str
    sorting: str
    total_rows: int

    @property
    def secrets(self) -> int:
        """How many secrets the written forms leave out."""
        texts = [cell for row in self.rows for cell in row if isinstance(cell, str)]
        return sum(redact(text)[1] for text in [*texts, self.title, self.source, self.filter, self.sorting])

    def as_csv(self) -> str:
        """CSV (RFC 4180) under leading `#` lines with the facts; texts in quotes, numbers bare, nothing for an unknown.

        A text that a spreadsheet would run as a formula has an apostrophe before it; numbers have none.
        """
        head = [f"# {name}: {_FORMULA_INSIDE.sub(_apostrophe, _shown(str(value)))}" for name, value in self._facts()]
        lines = [",".join(map(_csv_field, self.keys)), *(",".join(map(_csv_field, row)) for row in self.rows)]
        return "".join(f"{line}\r\n" for line in [*head, *lines])

    def as_json(self) -> str:
        """One object, schema `export/1`, the rows as objects by key; non-finite numbers are the strings of §6."""
        rows = [dict(zip(self.keys, map(_json_value, row), strict=True)) for row in self.rows]
        facts = {name: _json_value(value) for name, value in self._facts()}
        text = json.dumps({"schema": SCHEMA, **facts, "rows": rows}, ensure_ascii=False, allow_nan=False, indent=1)
        return _UNSEEN.sub(_json_escape, text) + "\n"

    def as_markdown(self) -> str:
        """A table of GitHub's Markdown between its title and one line of facts; columns of numbers set to the right."""
        heads = [_heading(label.strip(), key) for label, key in zip(self.labels, self.keys, strict=True)]
        columns = range(len(self.keys))
        rules = ["---:" if _is_numeric([row[n] for row in self.rows]) else "---" for n in columns]
        lines = [_markdown_row(heads), "|" + "|".join(rules) + "|", *(_markdown_row(row) for row in self.rows)]
        count = f"{len(self.rows)} of {self.total_rows} rows"
        facts = [f"{name.replace('_', ' ')}: {_markdown(str(value))}" for name, value in self._facts() if value]
        return f"**{_markdown(self.title)}**\n\n" + "\n".join(lines) + f"\n\n{count} · {' · '.join(facts[1:-1])}\n"

    def _facts(self) -> Iterator[tuple[str, Value]]:
        for name in ("title", "source", "as_of", "exported_at", "filter", "sorting", "total_rows"):
            yield name, getattr(self, name)


def row_as_markdown(labels: Sequence[str], texts: Sequence[str]) -> str:
    """One row as a list of `- **label**: text`, without what is empty.

    A list, not a table: it reads the same in a chat, in a mail and in GUIDANCE.md, and a long text does not break it.
    """
    lines = []
    for label, text in zip(labels, texts, strict=True):
        words = _markdown(text.strip())
        if words and label.strip():
            lines.append(f"- **{_markdown(label.strip())}**: {words}\n")
        elif words:
            # A sign without a heading; at the start of an item it must not become a heading or another list.
            lines.append(f"- &#{ord(words[0])};{words[1:]}\n" if words[0] in "#+-=0123456789" else f"- {words}\n")
    return "".join(lines)


def svg_with_facts(svg: str, facts: Mapping[str, str]) -> str:
    """Textual's screenshot with a title, a description and metadata from `facts`, and nothing that reaches outside.

    The title is `facts["title"]`. Web fonts, links, scripts and comments go; secrets in its texts too, where they
    stand in one piece of one line. The result is well-formed XML whatever the screen showed.

    Raises:
        TrainflowError: it is no SVG.
    """
    from trainflow_tui.screens.svg_facts import with_facts

    shown = {name: _shown(value) for name, value in facts.items() if value}
    return with_facts(svg, shown, schema=SCHEMA)


def write_export(folder: Path, stem: str, suffix: str, data: str, *, now: datetime) -> Path:
    """Write a new private file (0600) in a private folder (made with 0700) and return its path. Nothing is overwritten.

    The name is the stem, made safe, with the UTC time: `hotspots-20260304T120000Z.csv`, then `…-2.csv`. It appears
    whole and durable, or not at all.

    Raises:
        TrainflowError: the folder is not private (`RefusedError`), or it cannot be written; names the path.
    """
    name = f"{safe_stem(stem)}-{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    ending = _UNSAFE_IN_NAME.sub("", suffix.lstrip(".")) or "txt"
    content = data.encode("utf-8", "backslashreplace")
    path = folder / f"{name}.{ending}"
    number = 1
    try:
        ensure_private_directory(folder)
        while not create_exclusive(path, content):
            number += 1
            path = folder / f"{name}-{number}.{ending}"
    except OSError as problem:
        full = problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        raise TrainflowError(
            "export-not-written",
            f"{display(str(path))} cannot be written: {problem.strerror or problem}.",
            subject=str(path),
            next_step=f"Make room on the disk of {display(str(folder))}."
            if full
            else "Export to a folder that you may write to.",
        ) from problem
    return path


def safe_stem(stem: str) -> str:
    """A file name's first part from any words: letters, digits, `.`, `-` and `_`, at most 100 bytes, never empty."""
    safe = _UNSAFE_IN_NAME.sub("-", stem).strip(".-_")
    return safe.encode("utf-8", "ignore")[:_STEM_BYTES].decode("utf-8", "ignore").strip(".-_") or "export"


def _shown(raw: str) -> str:
    """One line without secrets, every character seen."""
    return redact(display(raw, max_cells=_WHOLE_CELLS, whole=True))[0]


def _csv_field(value: Value) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(_json_value(value))
    text = redact(display(value, max_cells=_WHOLE_CELLS, multiline=True, whole=True))[0]
    # The raw text decides too: a tab or a carriage return before the rest is no longer one in what is shown.
    risky = (value.lstrip(" \n") or " ")[0] in _FORMULA_START or (text.lstrip() or " ")[0] in _FORMULA_START
    if risky and not _NUMBER.fullmatch(text):
        text = f"'{text}"
    return '"' + text.replace('"', '""').replace("\n", "\r\n") + '"'


def _apostrophe(match: re.Match[str]) -> str:
    return f"{match[1]}'"


def _json_value(value: Value) -> Value:
    if isinstance(value, str):
        return redact(value)[0]
    if isinstance(value, float) and (isnan(value) or value in (float("inf"), float("-inf"))):
        return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _json_escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]


def _heading(label: str, key: str) -> str:
    """What people call the column, with the key beside it where only that one names the unit."""
    return f"{label} ({key})" if label and label.casefold() != key.casefold() else key


def _is_numeric(values: Sequence[Value]) -> bool:
    known = [value for value in values if value is not None]
    return bool(known) and not any(isinstance(value, str) for value in known)


def _markdown_row(values: Sequence[Value]) -> str:
    return "| " + " | ".join("" if v is None else _markdown(str(_json_value(v))) for v in values) + " |"


def _markdown(raw: str) -> str:
    """Foreign text for the inside of a line or a cell: it starts nothing, ends nothing and links nowhere.

    What GitHub would turn into a link, a mention or a reference becomes code; the other signs are escaped.
    """
    return "".join(_markdown_token(token) for token in _TOKENS.split(_shown(raw)))


def _markdown_token(token: str) -> str:
    if _LINK_LIKE.search(token):
        return f"`{token}`"
    return _MARKDOWN_SIGNS.sub(lambda sign: f"\\{sign[0]}", token.translate(_ENTITIES))
