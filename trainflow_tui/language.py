"""Words in the reader's language, through gettext: English is the source, a catalogue beside this file holds each other language."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

DOMAIN: Final = "trainflow"
CATALOGUES: Final = Path(__file__).with_name("locale")
LANGUAGES: Final = {"en": "English", "zh-CN": "简体中文"}
"""Every language with a complete catalogue, by its tag, in its own name."""


def _itself(message: str) -> str:
    return message


_translations: dict[str, Callable[[str], str]] = {"en": _itself}
_current = "en"


def N_(message: str) -> str:  # noqa: N802  gettext's own name for a message that is translated where it is shown
    """Mark a message of a table for the catalogue; `_` translates it where it is shown."""
    return message


def _(message: str) -> str:
    """The message in the current language, or itself where the catalogue has none."""
    return _translations[_current](message) if message else ""


def current() -> str:
    """The tag of the language in use."""
    return _current


def use(language: str, environment: Mapping[str, str] | None = None) -> str:
    """Speak a language from now on; `auto` takes it from the locale variables. Returns the tag that is in use."""
    global _current
    tag = from_locale(os.environ if environment is None else environment) if language == "auto" else language
    translator(tag)
    _current = tag
    return tag


def translator(language: str) -> Callable[[str], str]:
    """What translates into one language, whatever the current one is. Read once a process.

    Raises:
        KeyError: there is no such language.
    """
    if language not in LANGUAGES:
        raise KeyError(language)
    if language not in _translations:
        import gettext

        name = language.replace("-", "_")
        _translations[language] = gettext.translation(DOMAIN, str(CATALOGUES), [name], fallback=True).gettext
    return _translations[language]


def from_locale(environment: Mapping[str, str]) -> str:
    """The language that the locale variables name: LC_ALL before LC_MESSAGES before LANG, as in POSIX."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        value = environment.get(name, "")
        if value:
            place = value.split(".")[0].split("@")[0]
            return "zh-CN" if place == "zh" or place.startswith(("zh_CN", "zh_SG", "zh_Hans")) else "en"
    return "en"
