"""One look at the machine that we run on: the collector script through `sh`, its output judged."""

from __future__ import annotations

from importlib import resources
from typing import Protocol

from trainflow_tui.clock import Clock
from trainflow_tui.executors import local
from trainflow_tui.monitoring.nodes.node_status import node_status
from trainflow_tui.monitoring.nodes.records import NodeStatus
from trainflow_tui.monitoring.nodes.sections import parse_sections

TIMEOUT_S = 30.0
MAX_OUTPUT_BYTES = 4 << 20


class Runner(Protocol):
    """How a command is run; `executors.local.run` is one."""

    def __call__(self, argv: list[str], *, stdin: bytes, timeout_s: float, max_output_bytes: int) -> local.Outcome:
        """Run `argv` with `stdin` as its input and tell how it ended."""
        ...


def collector_script() -> bytes:
    """The POSIX script that every node is asked with; its parts are bounded, and it changes nothing."""
    return resources.files(__package__).joinpath("collector.sh").read_bytes()


def check_this_node(*, clock: Clock, run: Runner = local.run) -> NodeStatus:
    """The state of this machine, in at most 30 s. What could not be learnt is unknown; nothing is raised for it."""
    outcome = run(["sh", "-s"], stdin=collector_script(), timeout_s=TIMEOUT_S, max_output_bytes=MAX_OUTPUT_BYTES)
    return node_status(parse_sections(outcome.stdout), collected_at=clock.now(), source="local", note=_trouble(outcome))


def _trouble(outcome: local.Outcome) -> str:
    if outcome.state == "timed_out":
        return f"the collector did not end within {TIMEOUT_S:.0f} s"
    if outcome.truncated:
        return f"the collector printed more than {MAX_OUTPUT_BYTES} bytes"
    if outcome.state == "failed":
        return f"the collector ended with {outcome.exit_code}: {outcome.stderr[:200].decode('utf-8', 'replace')}"
    return ""
