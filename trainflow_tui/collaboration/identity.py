"""Who is acting, as the operating system tells it, and whether an agent stands behind the call.

One account proves nothing about which of its programs acted: an agent that runs under the operator's uid can remove its own
variable and leave its server's process tree. What is recorded here makes that visible, it does not make it impossible.
"""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from trainflow_tui.ledger.events import Actor

_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz234567"


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
        ssh_from=" ".join(env.get("SSH_CONNECTION", "").split()[:2]),
        parent=_command_line(os.getppid())[:200],
        agent=env.get("TRAINFLOW_AGENT", "")[:100],
    )


def agent_behind(
    environment: Mapping[str, str] | None = None, *, ancestors: Callable[[], list[str]] | None = None
) -> str | None:
    """Why this process counts as an agent's: its variable, or an agent's server among its ancestors; None for neither."""
    env = os.environ if environment is None else environment
    if env.get("TRAINFLOW_AGENT"):
        return "TRAINFLOW_AGENT is set"
    for line in (ancestors or _ancestor_lines)():
        words = line.split()
        if "mcp" in words and any("trainflow" in word for word in words):
            return f"an agent's server is an ancestor ({line[:120]})"
    return None


def _user() -> str:
    try:
        return getpass.getuser()
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


def _ancestor_lines() -> list[str]:
    lines, pid = [], os.getppid()
    for _ in range(64):
        if pid <= 1:
            break
        lines.append(_command_line(pid))
        pid = _parent(pid)
    return lines


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return _ps(pid, "command=")


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
