"""`trainflow completion`: the script that lets a shell complete words, and what that script asks for at each tab."""

from __future__ import annotations

import os
from typing import Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    add_completion_class,
    get_completion_class,
    shell_complete,
    split_arg_string,
)

from trainflow_tui.cli.frame import COMPLETION_VARIABLE, Call, Reply, Verb
from trainflow_tui.cli.streams import emit

PROGRAM: Final = "trainflow"

INSTALL: Final = {
    "bash": 'Put  eval "$(trainflow completion bash)"  into ~/.bashrc. Bash 4.4 or newer is needed.',
    "zsh": 'Put  eval "$(trainflow completion zsh)"  into ~/.zshrc, after the line with compinit.',
    "fish": "Run  trainflow completion fish > ~/.config/fish/completions/trainflow.fish",
}

_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n'
    local line=${COMP_LINE:0:COMP_POINT} word cut="" type value files="" found
    word=${line##*[[:space:]]}
    [[ $word == --*=* ]] && word=${word#*=}
    # What bash takes for the current word begins behind its last colon: ids such as q:k3f9qz are given from there on.
    [[ $COMP_WORDBREAKS == *:* ]] && cut=${word%%"${word##*:}"}
    COMPREPLY=()
    while IFS=',' read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) files=yes ;;
            plain) COMPREPLY+=("${value#"$cut"}") ;;
        esac
    done < <(COMP_WORDS=$line COMP_CWORD=0 %(complete_var)s=bash_complete "$1" 2>/dev/null)
    if [[ $files && ${#COMPREPLY[@]} -eq 0 ]]; then
        compopt -o default
    elif [[ $files ]]; then
        compopt -o filenames
        mapfile -t found < <(compgen -f -- "$word")
        COMPREPLY+=("${found[@]}")
    fi
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class BashLine(BashComplete):
    """As click's, and right for words with a colon: the script hands over the line up to the cursor, not bash's pieces of it."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """The finished words behind the program's name, and the one that the cursor stands in."""
        end = "\0"  # stays with the last word, so that an empty one and one with an open quote are told apart
        words = split_arg_string(os.environ["COMP_WORDS"] + end)
        return words[1:-1], words[-1].removesuffix(end)


class FishLine(FishComplete):
    """As click's, with descriptions that hold a comma shown whole."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')

    def format_completion(self, item: CompletionItem) -> str:
        """One line: kind, value, description."""
        return super().format_completion(item).replace("\n", " ")


add_completion_class(BashLine)
add_completion_class(FishLine)


def complete(root: click.Command, call: Call) -> int:
    """Answer a shell that completes a word. Silent whatever happens: a message would land in the line that is being typed."""
    try:
        extra: dict[str, Any] = {"obj": call}
        return shell_complete(root, extra, PROGRAM, COMPLETION_VARIABLE, os.environ[COMPLETION_VARIABLE])
    except Exception:
        return 0
    finally:
        call.close()


_HELP: Final = (
    "Print the completion script of a shell. Printed as it is, to a pipe too, unless --json is given.\n\n\b\n"
)


@click.command(
    cls=Verb,
    short_help="A script that completes commands, options and ids in your shell.",
    help=_HELP + "\n".join(f"{shell}: {words}" for shell, words in INSTALL.items()),
)
@click.argument("shell", type=click.Choice(tuple(INSTALL)))
@click.pass_obj
def completion(call: Call, shell: str) -> Reply | int:
    """Print a script."""
    found = get_completion_class(shell)
    assert found is not None
    script = found(click.Command(PROGRAM), {}, PROGRAM, COMPLETION_VARIABLE).source()
    if call.json:
        return Reply(schema="completion/1", body={"shell": shell, "script": script, "install": INSTALL[shell]})
    return 0 if emit(script, "") else 20
