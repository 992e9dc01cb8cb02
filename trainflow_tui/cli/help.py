"""`trainflow help`: a page about a topic, or about a command."""

from __future__ import annotations

import contextlib
import difflib
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping

import click
import msgspec
from click.shell_completion import CompletionItem

from trainflow_tui import language
from trainflow_tui.cli import topics
from trainflow_tui.cli.frame import Call, Reply, Verb
from trainflow_tui.cli.streams import is_terminal
from trainflow_tui.cli.topics import Page
from trainflow_tui.errors import TrainflowError, UsageError


def _offered(context: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    root = context.find_root()
    before: tuple[str, ...] = context.params.get("words") or ()
    known: dict[str, str] = {}
    if not before:
        known = {name: topics.title(name) for name in topics.TOPICS} | _nouns(root)
    elif len(before) == 1 and isinstance(root.command, click.Group):
        noun = root.command.get_command(root, before[0])
        known = dict.fromkeys(noun.list_commands(context), "") if isinstance(noun, click.Group) else {}
    return [CompletionItem(name, help=about or None) for name, about in known.items() if name.startswith(incomplete)]


@click.command(cls=Verb, short_help="Pages to read: a topic, or a command.")
@click.argument("words", nargs=-1, metavar="[TOPIC | COMMAND…]", shell_complete=_offered)
@click.pass_context
def help_(context: click.Context, words: tuple[str, ...]) -> Reply | int:
    """Show a page: of a topic, or of a command as in `trainflow help task create`. Without a word, list the topics.

    On a terminal a page goes through $PAGER, or less. Elsewhere it is one JSON object; --no-json prints the text.
    """
    call: Call = context.obj
    root = context.find_root()
    own_keys = _speak(call)
    reply = _listed(root) if not words else _replied(_page(root, words, own_keys))
    if not call.wants_json and is_terminal(sys.stdout) and through_pager("\n".join([*reply.lines, ""])):
        return 0
    return reply


def _replied(found: Page) -> Reply:
    return Reply(schema="help/1", body=msgspec.structs.asdict(found), lines=found.text.splitlines())


def _speak(call: Call) -> Mapping[str, str]:
    """Use the language of the settings; returns the user's keys. Help does without both where a file or variable is broken."""
    from trainflow_tui import config

    try:
        settings, _ = config.load(workspace=call.root, flags=call.flags)
    except TrainflowError as problem:
        if call.flags.get(problem.subject) is not None:
            raise  # an option of this very call
        language.use("auto")
        return {}
    language.use(settings.language)
    return settings.keys


def _nouns(root: click.Context) -> dict[str, str]:
    from trainflow_tui.cli.main import NOUNS

    return {name: about for name, (_, about) in NOUNS.items()}


def _listed(root: click.Context) -> Reply:
    pages = {name: topics.title(name) for name in topics.TOPICS}
    nouns = _nouns(root)
    lines = ["TOPICS", *(f"    {name:18} {title}" for name, title in pages.items()), ""]
    lines += ["COMMANDS", *(f"    {name:18} {about}" for name, about in nouns.items()), ""]
    lines.append("trainflow help TOPIC, trainflow help COMMAND")
    body = {
        "topics": [{"topic": name, "title": title} for name, title in pages.items()],
        "commands": [{"command": name, "title": about} for name, about in nouns.items()],
    }
    return Reply(schema="help-list/1", body=body, lines=lines)


def _page(root: click.Context, words: tuple[str, ...], own_keys: Mapping[str, str]) -> Page:
    """The page of a topic, of a command, or of both where they share a name.

    Raises:
        UsageError: there is none; names what is near.
    """
    topic = topics.page(words[0], own_keys=own_keys) if len(words) == 1 and words[0] in topics.TOPICS else None
    command = _of_command(root, words, required=topic is None)
    if topic is None or command is None:
        found = topic or command
        assert found is not None
        return found
    return Page(topic=topic.topic, title=topic.title, text=f"{topic.text}\n{command.text}")


def _of_command(root: click.Context, words: tuple[str, ...], *, required: bool) -> Page | None:
    context = root
    for place, word in enumerate(words):
        group = context.command
        command = group.get_command(context, word) if isinstance(group, click.Group) else None
        if command is None:
            if not required:
                return None
            known = group.list_commands(context) if isinstance(group, click.Group) else []
            raise _unknown(words[: place + 1], [*topics.TOPICS, *known] if place == 0 else known)
        context = click.Context(command, info_name=word, parent=context)
    return Page(
        topic=" ".join(words),
        title=context.command.get_short_help_str(limit=200),
        text=f"{context.command.get_help(context)}\n",
    )


def _unknown(words: tuple[str, ...], known: list[str]) -> UsageError:
    name = " ".join(words)[:120]
    near = difflib.get_close_matches(words[-1], known, 3)
    hint = f"Near: {', '.join(near)}. " if near else ""
    return UsageError(
        "help-unknown",
        f"There is no page about {name!r}.",
        subject=name,
        next_step=f"{hint}`trainflow help` lists the topics.",
    )


def through_pager(text: str) -> bool:
    """Show a text in $PAGER, or less. False where neither runs, or the terminal cannot do it: then it is to be printed.

    The pager's words are split as a shell would and given to the system; no shell reads them.
    """
    try:
        words = shlex.split(os.environ.get("PAGER", "less"))
    except ValueError:
        return False
    if not words or os.environ.get("TERM", "dumb") == "dumb":
        return False
    # less leaves a short page on the screen, as git has it; the user's own LESS stays.
    environment = {"LESS": "FRX", "LESSCHARSET": "utf-8"} | dict(os.environ)
    try:
        pager = subprocess.Popen(words, stdin=subprocess.PIPE, env=environment)
    except OSError:
        return False
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl+c is the pager's
    try:
        with contextlib.suppress(OSError):  # the reader may leave before the end
            pager.communicate(text.encode())
        pager.wait()
    finally:
        signal.signal(signal.SIGINT, before)
    return True
