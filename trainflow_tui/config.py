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

FILE_NAME: Final = "trainflow.toml"
THEMES: Final = ("dark", "ansi")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What may be set. A file is never required."""

    poll_seconds: int = 300
    """Between two scans of the human files, 1 to 3600."""
    node_seconds: int = 60
    """Between two checks of a node, 5 to 3600."""
    theme: str = "dark"
    """dark, or ansi: the terminal's own sixteen colours."""
    readonly: bool = False
    """Nothing that changes anything is offered."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One value and where it came from."""

    key: str
    value: int | str | bool
    origin: str
    """default, the path of a file, the name of a variable, or the flag."""


_RANGES: Final = {"poll_seconds": (1, 3600), "node_seconds": (5, 3600)}


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
    """Merge all sources.

    Raises:
        UsageError: a file is not TOML, a key is unknown, a value is out of range; names the origin, the key and what was expected.
    """
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}

    def take(found: Mapping[str, Any], origin: str) -> None:
        for key, value in found.items():
            values[key] = _checked(key, value, origin)
            origins[key] = origin

    for path in (user_file(), workspace / FILE_NAME if workspace else None):
        if path is not None:
            take(_read_file(path), str(path))
    for name, text in sorted((os.environ if environment is None else environment).items()):
        key = name.removeprefix("TRAINFLOW_").lower()
        if name.startswith("TRAINFLOW_") and key in Settings.__struct_fields__:
            take({key: text}, name)
    for key, value in (flags or {}).items():
        if value is not None:
            take({key: value}, f"--{key.replace('_', '-')}")
    settings = Settings(**values)
    return settings, [
        Setting(key=key, value=getattr(settings, key), origin=origins.get(key, "default"))
        for key in Settings.__struct_fields__
    ]


def _read_file(path: Path) -> Mapping[str, Any]:
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


def _checked(key: str, value: Any, origin: str) -> int | str | bool:
    if key not in Settings.__struct_fields__:
        known = ", ".join(Settings.__struct_fields__)
        raise UsageError("setting-unknown", f"{origin}: there is no setting {key!r}. Known: {known}.", subject=key)
    if key in _RANGES:
        low, high = _RANGES[key]
        number = _integer(value)
        if number is None or not low <= number <= high:
            raise _refused(origin, key, value, f"a whole number from {low} to {high}")
        return number
    if key == "theme":
        if value not in THEMES:
            raise _refused(origin, key, value, " or ".join(THEMES))
        return str(value)
    flag = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False, "": False}.get(
        str(value).lower()
    )
    if flag is None:
        raise _refused(origin, key, value, "true or false")
    return flag


def _integer(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    try:
        return int(str(value))
    except ValueError:
        return None


def _refused(origin: str, key: str, value: Any, expected: str) -> UsageError:
    return UsageError(
        "setting-value",
        f"{origin}: {key} = {str(value)[:80]!r}; expected {expected}.",
        subject=key,
        next_step="Correct the value.",
    )
