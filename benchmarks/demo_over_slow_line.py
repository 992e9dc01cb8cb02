"""The demo over a line of 4 KB/s, from its start to two decisions that the ledger confirms. It waits for what the picture shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from benchmarks.line import SLOW, Line, opened, shows
from benchmarks.measure import TRAINFLOW, conditions

PATIENCE_S: Final = 120.0
REASON: Final = "Lower the rate."
QUESTION: Final = "The loss jumped at step 130"
APPROVAL: Final = "Restart from step 150"
CLEANUP: Final = "Remove old checkpoints"
ARGUMENTS: Final = 40


class NotSeenError(Exception):
    """What a step waits for did not come."""


class Course:
    """The steps of a session with the time and the bytes of each."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._last, self._place = line.begun, 0

    def step(self, name: str, condition: Callable[[], object], keys: str = "", *, look_s: float = PATIENCE_S) -> None:
        """Press keys and wait until a condition holds; the picture is looked at as each piece comes, others every `look_s`.

        Raises:
            NotSeenError: with the picture.
        """
        line = self._line
        begin = line.clock() if keys else self._last
        if keys:
            line.send(keys)
        line.draw()
        held = bool(condition())
        while not held and line.clock() - begin < PATIENCE_S:
            if look_s < PATIENCE_S:
                line.pump(look_s)
                held = bool(condition())
            else:
                held = line.await_first(condition, line.here, PATIENCE_S) is not None
        if not held:
            raise NotSeenError(f"{name}: not seen in {PATIENCE_S:.0f} s; the screen shows\n{line.text}")
        now = line.clock()
        sent, self._place, self._last = line.bytes_between(self._place), line.here, now
        print(f"{name:50} {now - begin:7.2f} s {sent:8} B   at {now - line.begun:7.2f} s", flush=True)


def run(*, rate: int = SLOW, size: tuple[int, int] = (120, 40)) -> None:
    """Drive it and print each step; a step that does not come ends the run with the picture."""
    print(f"the demo at {size[0]}x{size[1]} over {rate} bytes a second, {conditions()}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "demo"
        with opened([*TRAINFLOW, "demo", str(root)], size=size, rate=rate) as line:
            course = Course(line)
            try:
                _until_the_question(course, line)
                _answer(course, line)
                _approve(course, line, root)
                _approve_what_cannot_be_undone(course, line, root)
                _leave(course, line)
            except NotSeenError as problem:
                print(problem)
        print(f"at the end: {conditions()}")


def _until_the_question(course: Course, line: Line) -> None:
    course.step("start to the word that it is set up", shows(line, "Setting the simulated job"))
    course.step("set up, then the first useful paint", shows(line, "trainflow", "adapt-7b", "Needs you"))
    course.step("the question that blocks is seen", shows(line, QUESTION))


def _answer(course: Course, line: Line) -> None:
    course.step("question opened", shows(line, f"? {QUESTION}", "ctrl+d"), "a")
    course.step("answer typed", shows(line, REASON), REASON)
    course.step("answer sent, list without it", _decided(line, QUESTION), "\x04")


def _approve(course: Course, line: Line, root: Path) -> None:
    course.step("the agent's request is seen", shows(line, f"! {APPROVAL}"))
    course.step("approval opened", shows(line, "torchrun", "Command,", "digest", "approve once"), "a")
    course.step("approved by a key, list without it", _decided(line, APPROVAL), "a")
    course.step("`approval list` confirms it, with the terminal", lambda: _approved(root) == 1, look_s=0.2)


def _approve_what_cannot_be_undone(course: Course, line: Line, root: Path) -> None:
    _request_cleanup(root)
    course.step("a request that cannot be undone is seen", shows(line, "HIGH", CLEANUP))
    course.step("approval opened", shows(line, "HIGH IMPACT", "0 rm", "esc back"), "a")
    is_at_end = shows(line, "digest")
    while not is_at_end():
        before = _first_argument(line)
        moved = lambda before=before: is_at_end() or _first_argument(line) > before  # noqa: E731
        course.step("payload, a page on", moved, " ")
    found = re.search(r"digest \S*?([0-9a-f]{4})\s", line.text)
    token = found[1] if found else ""
    course.step("the token is asked for", shows(line, "type the last four"), "a")
    course.step("token typed", shows(line, f"│ {token} "), token)
    course.step("decided, list without it", _decided(line, CLEANUP), "\r")
    course.step("`approval list` confirms it, with the terminal", lambda: _approved(root) == 2, look_s=0.2)


def _decided(line: Line, words: str) -> Callable[[], bool]:
    """Dialog and row are gone. That it was recorded is said for four seconds, which on a slow line may be over before it is drawn."""
    return lambda: words not in line.look() and "╰──" not in line.look()


def _request_cleanup(root: Path) -> None:
    argv = ["rm", "-r", "--", *(f"/simulated/ckpt/step-{number:04}" for number in range(3, ARGUMENTS))]
    payload = json.dumps({"argv": argv, "hosts": ["dcu-01"]})
    words = ["approval", "request", "adapt-7b", "--title", CLEANUP, "--kind", "cleanup", "--reversible", "no"]
    words += ["--why", "The disk is 94 % full (simulated)", "--payload", "-", "--json"]
    call = [*TRAINFLOW, "--workspace", str(root), *words]
    agent = os.environ | {"TRAINFLOW_AGENT": "demo-agent (simulated)"}
    done = subprocess.run(call, input=payload, capture_output=True, text=True, check=False, env=agent)
    if done.returncode not in (0, 11):
        raise NotSeenError(f"the request was refused: {done.stdout}")


def _first_argument(line: Line) -> int:
    found = re.search(r"│ +(\d+)  \S", line.look())
    return int(found[1]) if found else -1


def _approved(root: Path) -> int:
    call = [*TRAINFLOW, "--workspace", str(root), "approval", "list", "--json"]
    told = json.loads(subprocess.run(call, capture_output=True, text=True, check=False).stdout)
    approvals: list[dict[str, Any]] = told["approvals"]
    return sum(a["state"] in ("approved", "consumed") and bool(a["decision"]["by"]["tty"]) for a in approvals)


def _leave(course: Course, line: Line) -> None:
    course.step("quit asks about the collector", shows(line, "Quit, the collector ends"), "q")
    course.step("left", lambda: not line.alive, "q", look_s=0.1)


if __name__ == "__main__":
    run()
