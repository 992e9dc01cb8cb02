"""What may stand after ':' and how it is completed. No widget; the application says what each command does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from trainflow_tui.errors import UsageError
from trainflow_tui.language import N_, _

Candidates = Sequence[str] | Awaitable[Sequence[str]]
MAX_SUGGESTIONS = 8
KINDS = (
    N_("task"),
    N_("node"),
    N_("run"),
    N_("trace"),
    N_("approval"),
    N_("screen"),
    N_("file"),
    N_("column"),
    N_("format"),
    N_("theme"),
    N_("alphabet"),
    N_("marker"),
    N_("language"),
)
"""What a command's argument may name, for the catalogue."""


@dataclass(frozen=True)
class Command:
    """A verb after ':', what it takes, what it does, and what may follow it."""

    name: str
    usage: str
    words: str
    run: Callable[[str], object]
    complete: Callable[[str], Candidates] | None = None
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suggestion:
    """A whole line that could be meant, and what it does."""

    line: str
    words: str


def find(commands: Sequence[Command], line: str) -> tuple[Command, str] | None:
    """The command of a line and what stands behind it; the longest name wins."""
    words = " ".join(line.split())
    best: tuple[Command, str] | None = None
    longest = -1
    for command in commands:
        for name in (command.name, *command.aliases):
            if (words == name or words.startswith(f"{name} ")) and len(name) > longest:
                # The words behind it keep their own blanks: a path may hold two.
                rest = line.split(maxsplit=len(name.split()))[len(name.split()) :]
                best, longest = (command, rest[0].strip() if rest else ""), len(name)
    return best


def unknown(commands: Sequence[Command], line: str) -> UsageError:
    """The refusal of a line that is no command, with what was perhaps meant."""
    from difflib import get_close_matches

    verb = line.split()[0] if line.split() else ""
    near = get_close_matches(verb, [c.name for c in commands], 3)
    hint = _("Near: {names}.").format(names=", ".join(near)) if near else _("tab lists them, ? explains.")
    words = _("There is no command {name}.").format(name=verb)
    return UsageError("command-unknown", words, subject=verb, next_step=hint)


async def suggestions(commands: Sequence[Command], line: str) -> list[Suggestion]:
    """What the line could become: arguments of its command, else commands, the best matches first."""
    found = find(commands, line)
    if found is not None and found[0].complete is not None and (found[1] or line.endswith(" ")):
        command, rest = found
        candidates = command.complete(rest) if command.complete else ()
        names = candidates if isinstance(candidates, Sequence) else await candidates
        return [Suggestion(f"{command.name} {name}", "") for name in ranked(names, rest)[:MAX_SUGGESTIONS]]
    wanted = " ".join(line.split())
    by_name = {c.name: c for c in commands}
    return [
        Suggestion(name, f"{by_name[name].usage}  {by_name[name].words}".strip())
        for name in ranked(list(by_name), wanted)[:MAX_SUGGESTIONS]
    ]


def ranked(names: Sequence[str], wanted: str) -> list[str]:
    """Names that begin with, contain, or hold the letters of what is wanted in their order; each group as it came."""
    low = wanted.casefold()
    groups: tuple[list[str], list[str], list[str]] = ([], [], [])
    for name in names:
        text = name.casefold()
        if text.startswith(low):
            groups[0].append(name)
        elif low in text:
            groups[1].append(name)
        elif _in_order(low, text):
            groups[2].append(name)
    return [*groups[0], *groups[1], *groups[2]]


def _in_order(letters: str, text: str) -> bool:
    rest = iter(text)
    return all(letter in rest for letter in letters)


def the_one(kind: str, names: Sequence[str], wanted: str) -> str:
    """The name that is meant: itself, else the only one that begins with or contains the words.

    Raises:
        UsageError: no word, none that fits, or several.
    """
    if wanted in names:
        return wanted
    what, known = _(kind), _("Known: {names}.").format(names=", ".join(names[:6]))
    none = _("There is no {kind} yet.").format(kind=what)
    if not wanted:
        words = _("Which {kind}?").format(kind=what)
        raise UsageError(f"{kind}-missing", words, subject=kind, next_step=known if names else none)
    low = wanted.casefold()
    for test in (str.startswith, str.__contains__):
        found = [name for name in names if test(name.casefold(), low)]
        if len(found) == 1:
            return found[0]
        if found:
            break
    if found:
        words = _("Several {kind}s match {name}: {names}.").format(kind=what, name=wanted, names=", ".join(found[:4]))
        raise UsageError(f"{kind}-unclear", words, subject=wanted, next_step=_("Type more of it."))
    words = _("There is no {kind} {name}.").format(kind=what, name=wanted)
    raise UsageError(f"{kind}-unknown", words, subject=wanted, next_step=known if names else none)
