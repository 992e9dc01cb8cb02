"""One directory on disk: finding it, refusing a foreign one, its layout; opens the ledger at once and the store on first query."""

from __future__ import annotations

import contextlib
import os
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trainflow_tui import log
from trainflow_tui.clock import Clock, SystemClock
from trainflow_tui.config import Setting, Settings, load
from trainflow_tui.errors import RefusedError, UsageError
from trainflow_tui.files import ensure_private_directory, filesystem_kind
from trainflow_tui.ledger.artifacts import Artifacts
from trainflow_tui.ledger.database import Ledger

if TYPE_CHECKING:
    from trainflow_tui.store.query import Store

STATE_DIRECTORY: Final = ".trainflow"
_FOLDERS: Final = ("objects", "metrics", "traces", "runs", "cache", "spool", "log")


def locate(explicit: str | os.PathLike[str] | None = None) -> Path:
    """The workspace's directory: the flag, else TRAINFLOW_WORKSPACE, else the nearest parent with a state directory, else here.

    Raises:
        UsageError: the name is empty or leads nowhere.
    """
    chosen = os.environ.get("TRAINFLOW_WORKSPACE") or None if explicit is None else explicit
    try:
        if chosen is not None:
            if not os.fspath(chosen):
                raise _no_name(chosen, "the name is empty")
            return Path(chosen).expanduser().absolute()
        here = Path.cwd()
        return next((d for d in (here, *here.parents) if (d / STATE_DIRECTORY).is_dir()), here)
    except RuntimeError as problem:
        raise _no_name(chosen, "there is no such home directory") from problem
    except OSError as problem:
        raise _no_name(chosen, problem.strerror or str(problem)) from problem


def is_workspace(root: Path) -> bool:
    """Whether the directory has a ledger, which makes it a workspace rather than a new place.

    Raises:
        UsageError: the system does not let it be told.
    """
    try:
        return (root / STATE_DIRECTORY / "ledger.db").exists()
    except OSError as problem:
        raise _no_name(root, problem.strerror or str(problem)) from problem


def log_directory(root: Path) -> Path:
    """Where the program's own log of a workspace is.

    Raises:
        UsageError: there is no workspace in the directory.
    """
    if not is_workspace(root):
        raise _no_workspace(root)
    return root / STATE_DIRECTORY / "log"


def _no_name(chosen: object, reason: str) -> UsageError:
    return UsageError(
        "workspace-name",
        f"The workspace cannot be looked for: {reason}.",
        subject=str(chosen or "")[:200],
        next_step="Name a directory with --workspace DIR.",
    )


class Workspace:
    """An opened workspace. One object belongs to one thread; opening a second one on the same directory is cheap."""

    def __init__(
        self, root: Path, ledger: Ledger, *, clock: Clock, settings: Settings, origins: list[Setting], created: bool
    ) -> None:
        self.root = root
        self.state = root / STATE_DIRECTORY
        self.ledger = ledger
        self.clock = clock
        self.settings = settings
        self.origins = origins
        self.created = created
        self.filesystem = filesystem_kind(self.state)
        self.artifacts = Artifacts(self.state / "objects")
        self.spool = self.state / "spool"
        self.logs = log_directory(root)

    @classmethod
    def open(
        cls, root: Path, *, create: bool = False, clock: Clock | None = None, flags: dict[str, object] | None = None
    ) -> Workspace:
        """Open the workspace, or make its state directory when `create` is set.

        Raises:
            UsageError: there is no workspace in the directory and none is to be made.
            RefusedError: the directory is foreign: another owner, writable by others, a symlinked state directory.
        """
        os.umask(0o077)
        clock = clock or SystemClock()
        state = root / STATE_DIRECTORY
        created = not is_workspace(root)
        if created and not create:
            raise _no_workspace(root)
        _refuse_foreign(root, state)  # before anything is made in it, or read from it
        settings, origins = load(workspace=root, flags=flags)
        if created and settings.readonly:
            raise _no_workspace(root)
        if created:
            _make(root)
            _refuse_foreign(root, state)
        ledger = _open_ledger(state, clock, readonly=settings.readonly)
        log.start(log_directory(root))
        return cls(root, ledger, clock=clock, settings=settings, origins=origins, created=created)

    def close(self) -> None:
        """Close what was opened."""
        self.ledger.close()
        if "store" in self.__dict__:
            self.store.close()

    @property
    def collaboration(self) -> Path:
        """Where the folders of the tasks are."""
        return self.root / "collaboration"

    def task_folder(self, task: str) -> Path:
        """Where the human files of a task are."""
        return self.collaboration / task

    def is_linked_away(self, task: str) -> bool:
        """Whether a link stands in the place of a task's folder. What it leads to is neither read nor written."""
        return stat.S_ISLNK(_mode(self.task_folder(task))) or stat.S_ISLNK(_mode(self.collaboration))

    def has_task_folder(self, task: str) -> bool:
        """Whether the task's folder is there, as a directory of this workspace."""
        return not self.is_linked_away(task) and stat.S_ISDIR(_mode(self.task_folder(task)))

    def is_displaced(self) -> bool:
        """Whether the ledger that is open is not the one at its path any more: the workspace was moved, removed or unmounted."""
        return self.ledger.is_displaced()

    def reopen(self) -> bool:
        """Open what stands at the workspace's path now, in place of what was open; False where nothing stands there yet.

        Raises:
            RefusedError: it is foreign.
            DamagedError: it is no ledger.
        """
        if not is_workspace(self.root):
            return False
        _refuse_foreign(self.root, self.state)
        fresh, old = _open_ledger(self.state, self.clock, readonly=self.settings.readonly), self.ledger
        self.ledger = fresh
        with contextlib.suppress(
            Exception
        ):  # its disk may be gone; SQLite leaves files alone that are not its own any more
            old.close()
        if "store" in self.__dict__:
            self.__dict__.pop("store").close()
        self.filesystem = filesystem_kind(self.state)
        log.start(self.logs)
        return True

    @cached_property
    def store(self) -> Store:
        """The measured facts; DuckDB is loaded here and not before."""
        from trainflow_tui.store.query import Store

        return Store(self.state)


def _open_ledger(state: Path, clock: Clock, *, readonly: bool) -> Ledger:
    for name in () if readonly else _FOLDERS:
        ensure_private_directory(state / name, parents=False)
    local = filesystem_kind(state).local
    return Ledger.open(state / "ledger.db", clock=clock, local_filesystem=local, readonly=readonly)


def _mode(path: Path) -> int:
    """What stands there, a link itself; 0 where nothing does or it may not be looked at."""
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _no_workspace(root: Path) -> UsageError:
    return UsageError(
        "no-workspace",
        f"There is no workspace in {root}.",
        subject=str(root),
        next_step="Make one with `trainflow task create TITLE`, or name another with --workspace DIR.",
    )


def _make(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
        ensure_private_directory(root / STATE_DIRECTORY)
    except OSError as problem:
        raise UsageError(
            "workspace-not-made",
            f"{root} cannot hold a workspace: {problem.strerror}.",
            subject=str(root),
            next_step="Name another directory.",
        ) from problem


def _refuse_foreign(root: Path, state: Path) -> None:
    try:
        os.fsencode(root).decode()
    except UnicodeDecodeError as problem:
        raise _foreign(root, "its name is not UTF-8, which SQLite needs", "Rename it, or use another.") from problem
    if state.is_symlink():
        raise _foreign(state, "the state directory is a symbolic link", "Remove the link, or work where it points to.")
    for directory in (root, state):
        try:
            found = directory.stat()
        except (FileNotFoundError, NotADirectoryError):
            return  # not made yet
        if found.st_uid != os.getuid():
            raise _foreign(
                directory,
                f"it belongs to uid {found.st_uid}, not to you ({os.getuid()})",
                "Use a directory of your own.",
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise _foreign(directory, "others may write to it", f"Run `chmod go-w {directory}` if that was not meant.")


def _foreign(directory: Path, reason: str, next_step: str) -> RefusedError:
    return RefusedError(
        "foreign-workspace", f"{directory} is refused: {reason}.", subject=str(directory), next_step=next_step
    )
