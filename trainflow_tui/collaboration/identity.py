"""Who is acting, as the operating system tells it, and whether an agent stands behind the call.

One account proves nothing about which of its programs acted: an agent that runs under the operator's uid can remove its own
variable and leave its server's process tree. What is recorded here makes that visible, it does not make it impossible.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from trainflow_tui.ledger.events import Actor

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"
_INTERPRETERS: Final = frozenset(
    ("python", "pypy", "node", "bun", "deno", "bash", "dash", "zsh", "fish", "sh", "ruby", "perl")
)
_OF_NAMES: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+-")


def new_id(prefix: str, *, length: int = 6) -> str:
    """A random id such as `ap-k3f9qz`: never positional, so it cannot come to mean another thing."""
    return f"{prefix}-" + "".join(_ALPHABET[byte % 32] for byte in os.urandom(length))


def current_actor(door: str, environment: Mapping[str, str] | None = None) -> Actor:
    """The account, terminal, SSH origin and parent of this process."""
    env = os.environ if environment is None else environment
    return Actor(
        door=door,
        uid=os.getuid(),
        user=_user(),
        host=socket.gethostname(),
        tty=_terminal(),
        ssh_from=_text(" ".join(env.get("SSH_CONNECTION", "").split()[:2]))[:100],
        parent=program_name(_command(os.getppid())),
        agent=_text(env.get("TRAINFLOW_AGENT", ""))[:100],
    )


def program_name(command: Sequence[str]) -> str:
    """A command without its arguments, which may hold passwords: the program and, of an interpreter, the script or module."""
    program = _file_name(command[0].split()[0]) if command and command[0].strip() else ""
    runs = _script(command) if program.rstrip("0123456789.") in _INTERPRETERS else ""
    return _text(f"{program} {runs}".strip())[:200]


def _script(command: Sequence[str]) -> str:
    """What an interpreter runs; empty where its code stands in the command itself."""
    for option, word in pairwise(command):
        is_short = option[:1] == "-" and option[1:].isalpha()
        if option in ("--eval", "--print") or (is_short and option[-1] in "ce"):
            return ""
        if not word.startswith("-"):
            return _file_name(word) if _OF_NAMES.issuperset(word) else ""
    return ""


def _file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _text(value: str) -> str:
    # The environment and a command line may hold any bytes; a record holds Unicode.
    return value.encode(errors="replace").decode()


def agent_behind(
    environment: Mapping[str, str] | None = None, *, ancestors: Callable[[], list[list[str]]] | None = None
) -> str | None:
    """Why this process counts as an agent's: its variable, or an agent's server among its ancestors; None for neither."""
    env = os.environ if environment is None else environment
    if env.get("TRAINFLOW_AGENT"):
        return "TRAINFLOW_AGENT is set"
    for command in (ancestors or _ancestors)():
        words = " ".join(command).split()
        if "mcp" in words and any("trainflow" in word for word in words):
            return f"an agent's server is an ancestor ({program_name(command)})"
    return None


def _user() -> str:
    # Not getpass: it believes LOGNAME and USER before it asks the system.
    try:
        return _text(pwd.getpwuid(os.getuid()).pw_name)
    except (KeyError, OSError):
        return str(os.getuid())


def _terminal() -> str:
    for stream in (sys.__stdin__, sys.__stderr__, sys.__stdout__):
        try:
            if stream is not None and stream.isatty():
                return os.ttyname(stream.fileno())
        except (OSError, ValueError):
            continue
    return ""


def _ancestors() -> list[list[str]]:
    commands, pid = [], os.getppid()
    for _ in range(64):
        if pid <= 1:
            break
        commands.append(_command(pid))
        pid = _parent(pid)
    return commands


def _command(pid: int) -> list[str]:
    try:
        return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")]
    except OSError:
        return _ps(pid, "command=").split()


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError, ValueError):
        found = _ps(pid, "ppid=")
        return int(found) if found.isdigit() else 0


def _ps(pid: int, column: str) -> str:
    # Only where there is no /proc (macOS).
    if Path("/proc/self").exists():
        return ""
    try:
        done = subprocess.run(
            ["ps", "-o", column, "-p", str(pid)], capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
