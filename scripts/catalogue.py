"""Collect the messages of the source, bring the catalogues up to date, and compile them: `make catalogue`.

Babel does the work. A catalogue is complete when no message is missing or marked fuzzy; a test holds that.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

PACKAGE = Path(__file__).resolve().parents[1] / "trainflow_tui"
LOCALES = {"zh_CN": PACKAGE / "locale" / "zh_CN" / "LC_MESSAGES" / "trainflow.po"}
_KEYWORDS = {"_": None, "N_": None}


def collected() -> Catalog:
    """Every message of the source. Places are left out: they would change the file with every line that moves."""
    catalog = Catalog(charset="utf-8")
    found = extract_from_dir(str(PACKAGE), [("**.py", "python")], keywords=_KEYWORDS, comment_tags=("i18n:",))
    for _file, _line, message, comments, _context in sorted(found, key=lambda entry: str(entry[2])):
        catalog.add(message, auto_comments=comments)
    return catalog


def updated(path: Path, locale: str) -> Catalog:
    """A catalogue with the source's messages and the translations that it had."""
    catalog = Catalog(locale=locale, charset="utf-8")
    if path.exists():
        with path.open("rb") as stream:
            catalog = read_po(stream, locale=locale)
    catalog.update(collected(), no_fuzzy_matching=True)
    catalog.obsolete.clear()
    return catalog


def compiled(catalog: Catalog) -> bytes:
    """The catalogue as gettext reads it."""
    stream = io.BytesIO()
    write_mo(stream, catalog)
    return stream.getvalue()


def missing(catalog: Catalog) -> list[str]:
    """Messages without a translation."""
    return [str(m.id) for m in catalog if m.id and (not m.string or m.fuzzy)]


def main() -> int:
    """Update and compile; say what is missing."""
    lacking = 0
    for locale, path in LOCALES.items():
        catalog = updated(path, locale)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            write_po(stream, catalog, width=120, omit_header=False, sort_output=True, no_location=True)
        path.with_suffix(".mo").write_bytes(compiled(catalog))
        lost = missing(catalog)
        lacking += len(lost)
        print(f"{locale}: {len(catalog)} messages, {len(lost)} missing")
        for message in lost:
            print(f"  {message!r}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
