"""Settings: defaults, then the user's file, the workspace's file, the environment, the flags. Each value knows its origin."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from trainflow_tui.errors import UsageError
from trainflow_tui.language import N_

FILE_NAME: Final = "trainflow.toml"

Value = int | str | bool | dict[str, str]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One setting: what it takes, and what it does. `docs/configuration.md` and the checks are made from these."""

    key: str
    default: Value
    about: str
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        if self.choices:
            return f"{', '.join(self.choices[:-1])} or {self.choices[-1]}"
        if self.high:
            return f"a whole number from {self.low} to {self.high}"
        return "a table of binding = keys" if isinstance(self.default, dict) else "true or false"


FIELDS: Final = (
    Field(key="poll_seconds", default=300, low=1, high=3600, about=N_("Seconds between two scans of the human files.")),
    Field(key="node_seconds", default=60, low=5, high=3600, about=N_("Seconds between two checks of a node.")),
    Field(
        key="metrics_days",
        default=7,
        low=1,
        high=3650,
        about=N_("Days for which samples are kept as they were logged. Their 60 s and 600 s roll-ups stay for ever."),
    ),
    Field(
        key="theme",
        default="dark",
        choices=("dark", "light", "ansi", "high-contrast", "colour-blind"),
        about=N_("Colours. ansi is the terminal's own sixteen; colour-blind says ok in blue and bad in orange."),
    ),
    Field(
        key="glyphs",
        default="unicode",
        choices=("unicode", "ascii"),
        about=N_("Signs of states and lines. ascii draws nothing beyond what every font has."),
    ),
    Field(
        key="markers",
        default="braille",
        choices=("braille", "blocks", "ascii"),
        about=N_("How charts are drawn. `:fonts` shows which ones your font has."),
    ),
    Field(
        key="language",
        default="auto",
        choices=("auto", "en", "zh-CN"),
        about=N_("Language of screens, help and headless pages. auto follows LC_ALL, LC_MESSAGES and LANG."),
    ),
    Field(
        key="files_language",
        default="en",
        choices=("en", "zh-CN"),
        about=N_("Language of the generated files BOARD.md and RECEIPTS.md."),
    ),
    Field(
        key="mouse", default=True, about=N_("Whether the screen takes the mouse. Without it the terminal selects text.")
    ),
    Field(
        key="clipboard",
        default="osc52",
        choices=("osc52", "file"),
        about=N_(
            "Where copied text goes: to the terminal's clipboard, or into a file where the terminal has no OSC 52."
        ),
    ),
    Field(key="readonly", default=False, about=N_("Nothing that changes anything is offered.")),
    Field(key="keys", default={}, about=N_('Keys by binding id, as `docs/keys.md` lists them: quit = "Q,ctrl+q".')),
)
_BY_KEY: Final = {field.key: field for field in FIELDS}


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be set; `FIELDS` says what each is. A file is never required."""

    poll_seconds: int = 300
    node_seconds: int = 60
    metrics_days: int = 7
    theme: str = "dark"
    glyphs: str = "unicode"
    markers: str = "braille"
    language: str = "auto"
    files_language: str = "en"
    mouse: bool = True
    clipboard: str = "osc52"
    readonly: bool = False
    keys: dict[str, str] = {}


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One value and where it came from."""

    key: str
    value: Value
    origin: str
    """default, the path of a file, the name of a variable, or the flag."""


def user_file() -> Path | None:
    """The user's settings file, by the platform's convention (XDG on Linux); None for an account without a home."""
    import platformdirs

    try:
        return Path(platformdirs.user_config_dir("trainflow")) / FILE_NAME
    except RuntimeError:
        return None


def load(
    *,
    workspace: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[Setting]]:
    """Merge all sources. The tables of keys are merged binding by binding.

    Raises:
        UsageError: a file is not TOML, a key is unknown, a value is out of range; names the origin, the key and what was expected.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def take(found: Mapping[str, Any], origin: str) -> None:
        for key, value in found.items():
            found_value = checked(key, value, origin)
            values[key] = {**values.get(key, {}), **found_value} if isinstance(found_value, dict) else found_value
            origins[key] = origin

    for path in (user_file(), workspace / FILE_NAME if workspace else None):
        if path is not None:
            take(read_file(path), str(path))
    for name, text in sorted((os.environ if environment is None else environment).items()):
        key = name.removeprefix("TRAINFLOW_").lower()
        if name.startswith("TRAINFLOW_") and key in _BY_KEY:
            take({key: text}, name)
    for key, value in (flags or {}).items():
        if value is not None:
            take({key: value}, f"--{key.replace('_', '-')}")
    settings = Settings(**values)
    return settings, [
        Setting(key=key, value=getattr(settings, key), origin=origins.get(key, "default"))
        for key in Settings.__struct_fields__
    ]


def read_file(path: Path) -> Mapping[str, Any]:
    """The settings of a file as they are written; none where there is no file.

    Raises:
        UsageError: it is no regular file, unreadable, or not TOML.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would be waited for
            raise OSError("it is no regular file")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as problem:
        raise UsageError(
            "settings-unreadable",
            f"{path}: {problem}.",
            subject=str(path),
            next_step="Correct the file, or move it aside.",
        ) from problem


def checked(key: str, value: Any, origin: str) -> Value:
    """The value of a setting in its own type.

    Raises:
        UsageError: no such setting, or not what it takes; names the origin, the value and what was expected.
    """
    field = _BY_KEY.get(key)
    if field is None:
        known = ", ".join(_BY_KEY)
        raise UsageError("setting-unknown", f"{origin}: there is no setting {key!r}. Known: {known}.", subject=key)
    found: Value | None
    if field.choices:
        found = value if value in field.choices else None
    elif field.high:
        number = _integer(value)
        found = number if number is not None and field.low <= number <= field.high else None
    elif isinstance(field.default, dict):
        found = _table(value)
    else:
        found = _FLAGS.get(str(value).lower())
    if found is None:
        raise UsageError(
            "setting-value",
            f"{origin}: {key} = {str(value)[:80]!r}; expected {field.expected}.",
            subject=key,
            next_step="Correct the value.",
        )
    return found


_FLAGS: Final = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return int(str(value))
    except ValueError:
        return None


def _table(value: Any) -> dict[str, str] | None:
    """A table of texts; from a variable in the form `id=keys;id=keys`."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(";") if part.strip()]
        value = {name: keys for name, sign, keys in pairs if sign} if all(sign for _, sign, _ in pairs) else None
    if not isinstance(value, dict) or not all(isinstance(keys, str) for keys in value.values()):
        return None
    return {name.strip(): keys.strip() for name, keys in value.items()}
