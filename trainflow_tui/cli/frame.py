"""What every verb shares: global options before and after it, one JSON object or a readable summary, the exit codes."""

from __future__ import annotations

import importlib
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from trainflow_tui import language
from trainflow_tui.cli.streams import emit, is_terminal
from trainflow_tui.errors import TrainflowError

if TYPE_CHECKING:
    # Loaded where a call needs it: 40 ms that a shell completing a word, `help` and `--version` do not wait for.
    from click.shell_completion import CompletionItem

    from trainflow_tui.workspace import Workspace

COMPLETION_VARIABLE: Final = "_TRAINFLOW_COMPLETE"
"""What a shell's script sets when it asks for completions (click's name for it)."""

NEW_INPUT, DECISION, ATTENTION, BUSY, USAGE, INTERNAL, INTERRUPTED = 10, 11, 20, 30, 64, 70, 130
STATUS: Final = {
    0: "ok",
    NEW_INPUT: "new_input",
    DECISION: "decision_needed",
    ATTENTION: "attention",
    BUSY: "busy",
    USAGE: "usage",
    INTERNAL: "error",
    INTERRUPTED: "interrupted",
}
_PRECEDENCE: Final = (INTERNAL, USAGE, INTERRUPTED, BUSY, DECISION, ATTENTION, NEW_INPUT, 0)


class Reason(msgspec.Struct, frozen=True):
    """One cause of an exit code."""

    code: str
    text: str
    subject: str = ""
    exit: int = ATTENTION


class Reply(msgspec.Struct, kw_only=True):
    """What a verb answers: its own keys, the reasons, and lines for a person."""

    schema: str
    body: dict[str, Any] = {}
    reasons: list[Reason] = []
    lines: list[str] = []

    @property
    def exit_code(self) -> int:
        """The first that applies, by the fixed order."""
        found = {reason.exit for reason in self.reasons} | {0}
        return next(code for code in _PRECEDENCE if code in found)


class Call:
    """The global options of one call, and the workspace that they name."""

    def __init__(self) -> None:
        self.directory: str | None = None
        self.json: bool | None = None
        self.flags: dict[str, Any] = {}
        self._workspace: Workspace | None = None

    @property
    def wants_json(self) -> bool:
        """As asked for, else whether standard output is no terminal."""
        return (not is_terminal(sys.stdout)) if self.json is None else self.json

    @property
    def root(self) -> Path:
        """The directory that the call is about."""
        from trainflow_tui.workspace import locate

        return locate(self.directory)

    def open(self, *, create: bool = False) -> Workspace:
        """The workspace, opened once for the call."""
        if self._workspace is None:
            from trainflow_tui.workspace import Workspace

            self._workspace = Workspace.open(self.root, create=create, flags=self.flags)
            language.use(self._workspace.settings.language)
        return self._workspace

    def close(self) -> None:
        """Close what the call opened."""
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None

    def created_reason(self) -> list[Reason]:
        """Says so when this call made the state directory."""
        if self._workspace is None or not self._workspace.created:
            return []
        return [
            Reason("workspace-created", f"Made a workspace in {self._workspace.root}.", str(self._workspace.root), 0)
        ]

    def ledger_reasons(self) -> list[Reason]:
        """What a reader of any answer has to know about the ledger that it comes from."""
        if self._workspace is None:
            return []
        ledger, reasons = self._workspace.ledger, []
        if ledger.newer:
            text = "The ledger was written by a newer version: it is only read, and something may be missing here."
            reasons.append(Reason("ledger-newer", text, str(ledger.path)))
        if ledger.loss is not None:
            text = (
                f"Event {ledger.loss.seq} was recorded and is not in the ledger any more: its newest part was deleted or "
                f"cut. Put a copy back, or remove {ledger.loss.path} to go on with what is left."
            )
            reasons.append(Reason("events-lost", text, str(ledger.path)))
        return reasons


def _remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is None:
            return
        call: Call = context.find_root().ensure_object(Call)
        if name in ("directory", "json"):
            setattr(call, name, value)
        else:
            call.flags[name] = value

    return callback


def global_options() -> list[click.Option]:
    """Options that every verb takes, before or after its name."""
    return [
        click.Option(
            ["--workspace"],
            metavar="DIR",
            expose_value=False,
            callback=_remember("directory"),
            help="The workspace's directory.",
        ),
        click.Option(
            ["--json/--no-json"],
            default=None,
            expose_value=False,
            callback=_remember("json"),
            help="One JSON object, or lines to read.",
        ),
        click.Option(
            ["--readonly"],
            is_flag=True,
            default=None,
            expose_value=False,
            callback=_remember("readonly"),
            help="Change nothing.",
        ),
        click.Option(
            ["--lang", "language"],
            metavar="TAG",
            expose_value=False,
            callback=_remember("language"),
            help="Language of what is read: auto, en or zh-CN.",
        ),
    ]


class Word(click.types.StringParamType):
    """Text of which the metavar says what it names (TASK, ID, FILE, …): from that a shell completes it."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """What may stand here and begins as given."""
        from trainflow_tui.cli.candidates import candidates

        return candidates(ctx, param, incomplete)


def _let_shells_complete(parameters: Iterable[click.Parameter]) -> None:
    for parameter in parameters:
        if parameter.type is click.STRING:
            parameter.type = Word()


class Verb(click.Command):
    """A command that returns a `Reply` and takes the global options too."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params.extend(global_options())
        _let_shells_complete(self.params)


class Noun(click.Group):
    """A group of verbs."""

    command_class = Verb

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params.extend(global_options())
        _let_shells_complete(self.params)


class LazyNouns(click.Group):
    """The root: each noun's module is imported when it is called."""

    def __init__(self, *arguments: Any, nouns: dict[str, tuple[str, str]], **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.params.extend(global_options())
        _let_shells_complete(self.params)
        self._nouns = nouns

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All nouns, in the order of the table."""
        return list(self._nouns)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of one noun."""
        if cmd_name not in self._nouns:
            return None
        module, attribute = self._nouns[cmd_name][0].split(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of nouns, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in self._nouns.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Nouns by the table, without importing any; options as every command completes them."""
        from click.shell_completion import CompletionItem

        found = [CompletionItem(n, help=about) for n, (_, about) in self._nouns.items() if n.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)


def run(root: click.Command, arguments: Sequence[str]) -> int:
    """Run one call, print its answer, return the exit code."""
    call = Call()
    if os.environ.get(COMPLETION_VARIABLE):
        from trainflow_tui.cli.completion import complete

        return complete(root, call)
    try:
        reply = _answer(root, arguments, call)
        if isinstance(reply, Reply):
            reply.reasons = [*reply.reasons, *call.ledger_reasons()]
    finally:
        call.close()
    if not isinstance(reply, Reply):
        return reply or 0
    return print_reply(reply, as_json=call.wants_json if call.json is not None else _guess_json(arguments))


def _answer(root: click.Command, arguments: Sequence[str], call: Call) -> Reply | int | None:
    try:
        answer: Reply | int | None = root.main(list(arguments), prog_name="trainflow", standalone_mode=False, obj=call)
        return answer
    except (click.exceptions.Abort, KeyboardInterrupt):
        return failure("interrupted", "Interrupted.", exit_code=INTERRUPTED)
    except click.UsageError as problem:
        where = problem.ctx.command_path if problem.ctx else "trainflow"
        step = f"`{where} --help` shows how."
        return failure("usage", problem.format_message(), subject=where, next_step=step, exit_code=USAGE)
    except click.ClickException as problem:
        return failure("usage", problem.format_message(), exit_code=USAGE)
    except TrainflowError as problem:
        return failed(problem)
    except OSError as problem:
        _log_handled("the system refused")
        subject = str(problem.filename or "")
        text = f"The system refused{f' {subject}' if subject else ''}: {problem.strerror or problem}."
        return failure("system-refused", text, subject=subject, exit_code=ATTENTION)
    except Exception as problem:
        if _log_handled("unexpected failure"):
            step = "`trainflow logs` holds the details."
        else:
            step = "The details stand above."
            sys.excepthook(*sys.exc_info())
        return failure("internal", f"{type(problem).__name__}: {problem}"[:500], next_step=step, exit_code=INTERNAL)


def _log_handled(text: str) -> bool:
    """Log the exception that is being handled; False where no workspace is open, and so no log."""
    import logging

    logger = logging.getLogger("trainflow_tui")
    if logger.handlers:
        logger.getChild("cli").exception(text)
    return bool(logger.handlers)


def _guess_json(arguments: Sequence[str]) -> bool:
    # A usage error may come before the parser has reached --json.
    return "--json" in arguments or ("--no-json" not in arguments and not is_terminal(sys.stdout))


def failed(problem: TrainflowError) -> Reply:
    """The answer of a call that a rule, a file or another process stopped."""
    return failure(
        problem.code,
        problem.message,
        subject=problem.subject,
        next_step=problem.next_step,
        exit_code=problem.exit_code,
    )


def failure(code: str, text: str, *, subject: str = "", next_step: str = "", exit_code: int) -> Reply:
    """The answer of a call that could not be done."""
    sentence = f"{text} {next_step}".strip()
    body = {"error": {"code": code, "message": text, "subject": subject, "next_step": next_step}}
    return Reply(schema="error/1", body=body, reasons=[Reason(code, sentence, subject, exit_code)], lines=[])


def print_reply(reply: Reply, *, as_json: bool) -> int:
    """Write the answer: one JSON object on standard output, or lines, with the reasons on standard error.

    Returns the exit code; 20 where the answer could not be written and nothing worse happened.
    """
    code = reply.exit_code
    if as_json:
        reasons = [{"code": r.code, "text": r.text, "subject": r.subject} for r in reply.reasons]
        envelope = {"schema": reply.schema, "status": STATUS[code], "reasons": reasons}
        document = finite(msgspec.to_builtins(envelope | reply.body | envelope))
        delivered = emit(json.dumps(document, ensure_ascii=True, allow_nan=False) + "\n", "")
    else:
        from trainflow_tui.text import display  # its tables cost 6 ms, which a program's call need not pay

        lines = "".join(f"{display(line)}\n" for line in reply.lines)
        delivered = emit(lines, "".join(f"{display(reason.text)}\n" for reason in reply.reasons))
    return code if delivered else min(code, ATTENTION, key=_PRECEDENCE.index)


def finite(value: Any) -> Any:
    """The same value with non-finite numbers as the strings NaN, Infinity and -Infinity."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [finite(item) for item in value]
    return value
