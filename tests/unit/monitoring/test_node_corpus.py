"""The node outputs of the corpus: exact where a parser exists, a clear refusal where none does yet."""

import json
from pathlib import Path

import pytest

from trainflow_tui.errors import DamagedError
from trainflow_tui.monitoring.nodes.parse import PARSERS, node_parse_json, parse_tool_output

CORPUS = Path(__file__).resolve().parents[4] / "shared" / "corpus" / "health"

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"the corpus of node outputs is not at {CORPUS}")

READ_EXACTLY = [
    "nvidia_smi_csv_placeholders.csv",
    "nvidia_smi_device_lost.txt",
    "nvidia_smi_no_driver.txt",
    "nvidia_smi_query.csv",
]
NOT_ASKED = {"kind", "origin", "rules"}


def agrees(expected, given):
    """Whether every expected key has its value in `given`; lists are equal in length and order."""
    if isinstance(expected, dict):
        return isinstance(given, dict) and all(key in given and agrees(expected[key], given[key]) for key in expected)
    if isinstance(expected, list):
        return (
            isinstance(given, list)
            and len(expected) == len(given)
            and all(agrees(one, other) for one, other in zip(expected, given, strict=True))
        )
    return expected == given and type(expected is None) is type(given is None)


@pytest.mark.parametrize("name", READ_EXACTLY)
def test_the_output_reads_as_expected(name):
    expected = json.loads((CORPUS / f"{name}.expected.json").read_text())
    given = node_parse_json(parse_tool_output((CORPUS / name).read_bytes(), name))
    assert given["schema"] == "node-parse/1"
    for key in expected.keys() - NOT_ASKED:
        assert agrees(expected[key], given[key]), (key, expected[key], given[key])
    assert {"devices", "ports", "events", "warnings"} <= given.keys()


def test_the_comparison_sees_a_difference():
    assert agrees({"a": [{"b": 1}]}, {"a": [{"b": 1, "c": 2}]})
    assert not agrees({"a": [{"b": 1}]}, {"a": [{"b": 2}]})
    assert not agrees({"a": [1]}, {"a": [1, 2]})
    assert not agrees({"a": None}, {})
    assert not agrees({"a": 0}, {"a": None})


OTHERS = sorted(
    path.name.removesuffix(".expected.json")
    for path in CORPUS.glob("*.expected.json")
    if path.name.removesuffix(".expected.json") not in READ_EXACTLY
)


@pytest.mark.parametrize("name", OTHERS)
def test_another_tools_output_is_refused_and_the_known_tools_are_named(name):
    with pytest.raises(DamagedError) as refusal:
        parse_tool_output((CORPUS / name).read_bytes(), name)
    assert refusal.value.code == "node-output-unknown"
    assert all(tool in refusal.value.next_step for tool in PARSERS)
