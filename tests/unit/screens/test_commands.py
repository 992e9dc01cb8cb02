"""The command line's grammar and completion, without a screen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui.errors import UsageError
from trainflow_tui.screens.commands import MAX_SUGGESTIONS, Command, find, ranked, suggestions, the_one, unknown


async def _paths(rest):
    return [f"{rest}x.json", f"{rest}dir/"]


COMMANDS = (
    Command("task", "ID", "open", lambda _: None, lambda _r: ["adapt-7b", "profile-moe", "7"]),
    Command("add trace", "FILE", "read", lambda _: None, _paths),
    Command("add log", "FILE", "follow", lambda _: None),
    Command("at", "TIME", "then", lambda _: None),
    Command("quit", "", "leave", lambda _: None, None, ("q",)),
)


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("task 7", "task", "7"),
        ("  task   7 ", "task", "7"),
        ("add trace /a b/c.json", "add trace", "/a b/c.json"),
        ("at 14:05", "at", "14:05"),
        ("q", "quit", ""),
        ("task", "task", ""),
    ],
)
def test_the_longest_name_wins_and_the_rest_is_its_argument(line, name, rest):
    found = find(COMMANDS, line)
    assert found is not None
    assert (found[0].name, found[1]) == (name, rest)


@pytest.mark.parametrize("line", ["", "tasks", "add", "att 1", "quitq"])
def test_what_is_no_command_finds_none(line):
    assert find(COMMANDS, line) is None


def test_an_unknown_command_names_what_is_near():
    assert "task" in unknown(COMMANDS, "tusk 7").next_step


async def test_a_name_is_completed_and_then_its_argument():
    assert [s.line for s in await suggestions(COMMANDS, "ta")] == ["task", "add trace"]
    assert [s.line for s in await suggestions(COMMANDS, "adt")] == ["add trace"]
    assert [s.line for s in await suggestions(COMMANDS, "task ")] == ["task adapt-7b", "task profile-moe", "task 7"]
    assert [s.line for s in await suggestions(COMMANDS, "task 7")] == ["task 7", "task adapt-7b"]
    assert [s.line for s in await suggestions(COMMANDS, "add trace /r/")] == [
        "add trace /r/x.json",
        "add trace /r/dir/",
    ]
    assert len(await suggestions(COMMANDS, "")) == min(MAX_SUGGESTIONS, len(COMMANDS))


@given(st.lists(st.text("abc-7", max_size=6), max_size=12, unique=True), st.text("abc-7", max_size=4))
def test_ranking_keeps_only_what_holds_the_letters_in_order_and_the_best_kind_first(names, wanted):
    found = ranked(names, wanted)
    assert len(set(found)) == len(found)
    kinds = [0 if n.startswith(wanted) else 1 if wanted in n else 2 for n in found]
    assert kinds == sorted(kinds)
    for name in names:
        rest = iter(name)
        assert (name in found) == all(letter in rest for letter in wanted)


def test_one_name_is_meant_by_itself_or_by_a_part_that_no_other_has():
    names = ["adapt-7b", "adapt-70b", "profile"]
    assert the_one("task", names, "adapt-7b") == "adapt-7b"
    assert the_one("task", names, "prof") == "profile"
    assert the_one("task", names, "70") == "adapt-70b"
    with pytest.raises(UsageError, match="Several tasks"):
        the_one("task", names, "adapt")
    with pytest.raises(UsageError, match="no task x"):
        the_one("task", names, "x")
    with pytest.raises(UsageError, match="no task x"):
        the_one("task", [], "x")
