"""Keeping a run's segments few and its history cheap: samples into roll-ups, small files into larger ones, old samples dropped.

Every step writes its file first and records it in one transaction that also checks that nobody else did the same meanwhile.
A process may be killed anywhere, and any number of them may do this at once: at most a file is left that no row names.
"""

from __future__ import annotations

import itertools
import logging
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from trainflow_tui.clock import to_iso
from trainflow_tui.errors import BusyError, DamagedError, RefusedError, TrainflowError
from trainflow_tui.ledger import manifest
from trainflow_tui.ledger.manifest import NewSegment, OvertakenError, Segment
from trainflow_tui.store.metrics import SegmentGoneError
from trainflow_tui.workspace import Workspace

_log = logging.getLogger(__name__)
ROLL_FILES: Final = 10
ROLL_AFTER: Final = timedelta(minutes=10)
"""Sealed samples become roll-ups ten segments at a time, or when the oldest is ten minutes old: until then they are read as
they are."""
COMPACT_ABOVE: Final = {"raw": 60, "roll60": 12, "roll600": 12}
"""Files of one run that a reader opens without trouble. The footer of a roll-up, with its fifty columns, takes 0.5 ms."""
STEP_ROWS: Final = 500_000
"""What one step reads at most: half a second's work on an idle machine."""
STEP_FILES: Final = 200
SET_ASIDE_S: Final = 3600.0
"""A run whose segments cannot be read is passed over for so long; the others go on."""
PERIODS: Final = {"raw": (13, 10), "roll60": (13, 10, 7), "roll600": (13, 10, 7)}
"""Files are merged by what their first times have in common: an hour, then a day, and of roll-ups a month, as that many
characters of the stored time."""
ROLLUPS: Final = ("roll60", "roll600")


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do: `roll` samples, `compact` several files of a level into one, or `retain`: drop samples that are too old."""

    kind: str
    run: str
    level: str
    segments: list[Segment]

    @property
    def rows(self) -> int:
        """Rows of all its segments."""
        return sum(segment.rows or 0 for segment in self.segments)


def due(workspace: Workspace, *, run: str | None = None, eager: bool = False) -> list[Step]:
    """What is to be done now, at most one step of each kind a run and level; a run's roll-ups come before the rest.

    `eager` also takes what the loop leaves for later because it is little.
    """
    now = workspace.clock.now()
    by_run: dict[str, list[Segment]] = defaultdict(list)
    for segment in manifest.segments(workspace.ledger, run):
        by_run[segment.run].append(segment)
    found = []
    for name, segments in sorted(by_run.items()):
        found += _to_roll(name, segments, now=now, eager=eager)
        for level in PERIODS:
            found += _to_compact(name, level, segments, now=now, above=1 if eager else COMPACT_ABOVE[level])
    return found


def too_old(workspace: Workspace, *, run: str | None = None) -> list[Step]:
    """Samples older than the settings keep them, whose roll-ups exist; one step a run."""
    before = to_iso(workspace.clock.now() - timedelta(days=workspace.settings.metrics_days))
    old = [s for s in manifest.segments(workspace.ledger, run) if s.state == "rolled" and s.last_at < before]
    by_run = itertools.groupby(sorted(old, key=lambda s: (s.run, s.id)), key=lambda s: s.run)
    return [Step(kind="retain", run=name, level="raw", segments=list(group)) for name, group in by_run]


def do(workspace: Workspace, step: Step) -> bool:
    """Do one step; False where another process was first, and nothing was changed.

    Raises:
        DamagedError: a file of the manifest is missing; nothing was changed.
        RefusedError: the workspace is open read-only.
        BusyError: the ledger was not to be had.
    """
    if workspace.ledger.readonly:
        raise RefusedError("ledger-readonly", "The workspace is open read-only: its segments stay as they are.")
    work = {"roll": _roll, "compact": _compact, "retain": _retain}[step.kind]
    made: list[Path] = []
    try:
        work(workspace, step, made)
    except (OvertakenError, SegmentGoneError) as problem:
        _discard(made)
        was_swept = any(workspace.state / str(problem) == path for path in made)
        if isinstance(problem, OvertakenError) or was_swept or _is_overtaken(workspace, step):
            return False
        raise DamagedError(
            "segment-missing",
            f"{problem} is in the manifest of run {step.run} and not on disk.",
            subject=str(problem),
            next_step="Put the file back, if there is a copy.",
        ) from problem
    except BaseException:
        # Where the transaction did not say that it failed, it may have succeeded: then the files are somebody's.
        _discard_unknown(workspace, made)
        raise
    return True


class Upkeep:
    """The loop's part of this: one step at a time, and one damaged run holds up no other."""

    def __init__(self) -> None:
        self._aside: dict[str, float] = {}

    def step(self, workspace: Workspace) -> bool:
        """Do the next thing that is due; False where there is none.

        Raises:
            BusyError: the ledger was not to be had.
        """
        now = workspace.clock.monotonic()
        for step in itertools.chain(due(workspace), too_old(workspace)):
            if self._aside.get(step.run, now) > now:
                continue
            try:
                do(workspace, step)
            except BusyError:
                raise
            except Exception as problem:
                self._aside[step.run] = now + SET_ASIDE_S
                _log.warning(
                    "the segments of run %s are left as they are: %s",
                    step.run,
                    problem,
                    exc_info=not isinstance(problem, TrainflowError),
                )
            return True
        return False


def do_all(workspace: Workspace, steps: Callable[[], Iterable[Step]]) -> tuple[list[Step], list[TrainflowError]]:
    """Do what is due until nothing is; returns what was done, and why the rest of a run was left."""
    done: list[Step] = []
    troubles: dict[str, TrainflowError] = {}
    while step := next((s for s in steps() if s.run not in troubles), None):
        try:
            if do(workspace, step):
                done.append(step)
        except DamagedError as problem:
            troubles[step.run] = problem
    return done, list(troubles.values())


def _to_roll(run: str, segments: Sequence[Segment], *, now: datetime, eager: bool) -> list[Step]:
    # Always from the oldest on: two processes that roll at once then meet at it, and generations and offsets only grow.
    ready = [s for s in segments if s.state == "parquet"]
    if not ready:
        return []
    is_due = eager or len(ready) >= ROLL_FILES or ready[0].created_at <= to_iso(now - ROLL_AFTER)
    return [Step(kind="roll", run=run, level="raw", segments=_packs(ready)[0])] if is_due else []


def _to_compact(run: str, level: str, segments: Sequence[Segment], *, now: datetime, above: int) -> list[Step]:
    files = [s for s in segments if s.level == level and s.state in ("rolled", "rollup")]
    if len(files) <= above:
        return []
    for length in PERIODS[level]:
        # What is still going on will get more files, and is merged when it is over.
        over = [s for s in files if s.first_at[:length] < to_iso(now)[:length]]
        over.sort(key=lambda s: (s.first_at[:length], s.id))
        for _, group in itertools.groupby(over, key=lambda s: s.first_at[:length]):
            for pack in _packs(list(group)):
                if len(pack) > 1:
                    return [Step(kind="compact", run=run, level=level, segments=pack)]
    return []


def _packs(segments: Sequence[Segment]) -> list[list[Segment]]:
    """The segments in their order, in packs of what one step may write; a larger one stands alone."""
    packs: list[list[Segment]] = []
    rows = 0
    for segment in segments:
        rows += segment.rows or 0
        if not packs or rows > STEP_ROWS or len(packs[-1]) == STEP_FILES:
            packs.append([])
            rows = segment.rows or 0
        packs[-1].append(segment)
    return packs


def _roll(workspace: Workspace, step: Step, made: list[Path]) -> None:
    store, samples = workspace.store, [s.path for s in step.segments]
    others = [s.path for s in manifest.segments(workspace.ledger, step.run) if s.level == ROLLUPS[-1]]
    after = store.rolled_up_to(others)
    minutes, tens = (_new_path(step.run, level, step.segments[0].first_at) for level in ROLLUPS)
    made += [workspace.state / minutes, workspace.state / tens]
    new = [_segment(minutes, store.roll(samples, minutes, after=after)), _segment(tens, store.widen(minutes, tens))]
    kept = [segment for segment in new if segment.rows]
    with workspace.ledger.transaction() as transaction:
        _present(workspace, kept)
        manifest.roll(transaction, workspace.ledger, step.segments, kept)
    _discard(workspace.state / segment.path for segment in new if not segment.rows)


def _compact(workspace: Workspace, step: Step, made: list[Path]) -> None:
    path = _new_path(step.run, step.level, step.segments[0].first_at)
    made.append(workspace.state / path)
    new = _segment(path, workspace.store.merge([s.path for s in step.segments], path))
    with workspace.ledger.transaction() as transaction:
        _present(workspace, [new])
        manifest.replace(transaction, workspace.ledger, step.segments, new)


def _retain(workspace: Workspace, step: Step, made: list[Path]) -> None:
    for segment in manifest.segments(workspace.ledger, step.run):
        if segment.state == "rollup" and not (workspace.state / segment.path).exists():
            raise SegmentGoneError(segment.path)
    with workspace.ledger.transaction() as transaction:
        manifest.drop(transaction, workspace.ledger, step.segments)


def _present(workspace: Workspace, new: Sequence[NewSegment]) -> None:
    # After a long sleep of the machine the sweep of leftovers may have taken it for one. It sweeps inside a transaction too.
    for segment in new:
        if not (workspace.state / segment.path).exists():
            raise OvertakenError(segment.path)


def _is_overtaken(workspace: Workspace, step: Step) -> bool:
    listed = {segment.id for segment in manifest.segments(workspace.ledger, step.run)}
    return not listed.issuperset(segment.id for segment in step.segments)


def _segment(path: str, written: tuple[int, str, str]) -> NewSegment:
    rows, first, last = written
    return NewSegment(path=path, rows=rows, first_at=first, last_at=last)


def _new_path(run: str, level: str, first_at: str) -> str:
    # Never a name that was used before: a process that was stopped for long must not write over what another recorded.
    return f"metrics/{run}/{level}/{first_at.replace(':', '') or 'empty'}-{secrets.token_hex(8)}.parquet"


def _discard(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _discard_unknown(workspace: Workspace, made: Sequence[Path]) -> None:
    try:
        named = manifest.paths(workspace.ledger)
        _discard(path for path in made if str(path.relative_to(workspace.state)) not in named)
    except Exception:
        _log.warning("what a failed step wrote is left to be swept", exc_info=True)
