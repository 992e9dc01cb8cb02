"""What wakes the collector early: a supervised thread around watchfiles. Its own scan is the truth; this only shortens the wait."""

from __future__ import annotations

import logging
import os
import queue
import threading
from pathlib import Path
from typing import Final

from trainflow_tui.collaboration import collector

_log = logging.getLogger(__name__)
RETRY_S: Final = 5.0
"""After which it is started again; each start wakes, so that where it cannot start the files are looked at so often."""

_Watched = tuple[tuple[Path, tuple[int, int]], ...]
"""Directories, and which ones they were: one that was renamed and made anew tells nothing to who watches the old one. A new
one may even have the number of the one that was removed; that shows in the last event of the old one.
"""


class ChangeWatcher:
    """Puts a wake into the queue where a human file or the spool changes. A badly named file or a full inotify table ends
    watchfiles; then it is started again.
    """

    def __init__(self, wakes: queue.SimpleQueue[None]) -> None:
        self._wakes = wakes
        self._watched: _Watched = ()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._has_lost_one = False
        self.trouble = ""
        """Why no change is reported at present, in words; empty where changes are."""

    def watch(self, directories: tuple[Path, ...]) -> None:
        """Watch these from now on; nothing where they are watched already."""
        wanted = tuple((folder, found) for folder in directories if (found := _identity(folder)) is not None)
        lives = self._thread is not None and self._thread.is_alive() and not self._has_lost_one
        if lives and wanted == self._watched:
            return
        self.stop()
        self._watched, self._has_lost_one = wanted, False
        if wanted:
            self._stop = threading.Event()
            folders = tuple(folder for folder, _ in wanted)
            self._thread = threading.Thread(target=self._run, args=(folders, self._stop), name="watcher", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=2)
            self._thread = None

    def _run(self, directories: tuple[Path, ...], stop: threading.Event) -> None:
        import watchfiles

        said = ""
        while not stop.is_set():
            started = False
            self._wakes.put(None)  # for what changed while nobody watched
            try:
                changes = watchfiles.watch(
                    *directories,
                    stop_event=stop,
                    recursive=False,
                    watch_filter=None,
                    raise_interrupt=False,
                    rust_timeout=1000,
                    yield_on_timeout=True,
                )
                for found in changes:
                    started, self.trouble = True, ""
                    gone = {Path(name) for change, name in found if change is watchfiles.Change.deleted}
                    if gone.intersection(directories) and not stop.is_set():
                        self._has_lost_one = True
                    if any(is_news(Path(name)) for _, name in found):
                        self._wakes.put(None)
            except Exception as problem:
                words = str(problem).split(" (Error", 1)[0]
                if not started:
                    self.trouble = words
                if words != said:
                    said = words
                    _log.warning("the watcher ended and starts again: %s", words)
                stop.wait(RETRY_S)


def is_news(path: Path) -> bool:
    """Whether a change of this path is one of a human file or of the spool."""
    return path.name in collector.WATCHED_NAMES or path.parent.name == "spool"


def _identity(folder: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino
