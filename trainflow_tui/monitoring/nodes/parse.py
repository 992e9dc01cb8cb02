"""Any tool's output, recognised by its content: what `trainflow node parse FILE --json` prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from trainflow_tui.errors import DamagedError
from trainflow_tui.monitoring.nodes import nvidia_smi
from trainflow_tui.monitoring.nodes.records import NodeParse

PARSERS: dict[str, Callable[[str, str], NodeParse | None]] = {
    "nvidia-smi (CSV of --query-gpu, or its failure)": nvidia_smi.parse
}
"""Each parser answers None for what is not its own."""


def parse_tool_output(output: bytes, file_name: str) -> NodeParse:
    """Read the output of one tool. `file_name` helps where the content alone does not tell the tool.

    Raises:
        DamagedError: the output is empty or no parser recognises it; the message names the tools that are known.
    """
    text = output.decode("utf-8", "replace").replace("\0", "")
    known = f"Known tools are: {', '.join(PARSERS)}."
    if not text.strip():
        raise DamagedError("node-output-empty", f"{file_name} holds no output.", subject=file_name, next_step=known)
    for parser in PARSERS.values():
        if (found := parser(text, file_name)) is not None:
            return found
    first = next(line.strip() for line in text.splitlines() if line.strip())
    raise DamagedError(
        "node-output-unknown",
        f"No parser recognises {file_name}: {len(text.splitlines())} lines, the first is {first[:80]!r}.",
        subject=file_name,
        next_step=known,
    )


def node_parse_json(parsed: NodeParse) -> dict[str, Any]:
    """The object `node-parse/1`. Keys that do not apply to the tool are absent."""
    return msgspec.json.decode(msgspec.json.encode(parsed), type=dict[str, Any])
