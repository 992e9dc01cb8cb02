"""Filtering and sorting of rows, without a widget."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from trainflow_tui.screens.pane_view import Cell, PaneView, RowFilter, Sorting, row
from trainflow_tui.screens.widgets.patched_table import Column
from trainflow_tui.text import display

COLUMNS = (Column("", 1), Column("Name", 9, "name"), Column("N", 5, "n"))
VALUES = st.one_of(st.none(), st.integers(-5, 5), st.floats(), st.text(max_size=3))


def rows(*pairs):
    return tuple(
        row(f"{i}", Text("●"), Cell(Text(str(name)), name), Cell(Text(str(n)), n)) for i, (name, n) in enumerate(pairs)
    )


def names(found):
    return [r.values[1] for r in found]


ROWS = rows(("rank 3 NaN", 3), ("Rank 12", 12), ("loss spike", None), ("idle", 7))


@pytest.mark.parametrize(
    ("text", "is_regex", "expected"),
    [
        ("", False, ["rank 3 NaN", "Rank 12", "loss spike", "idle"]),
        ("RANK", False, ["rank 3 NaN", "Rank 12"]),
        ("!rank", False, ["loss spike", "idle"]),
        ("!", False, ["rank 3 NaN", "Rank 12", "loss spike", "idle"]),
        ("rank.", False, []),
        (r"rank \d+$", True, ["Rank 12"]),
        (r"!rank|idle", True, ["loss spike"]),
        ("[bold]", False, []),
    ],
)
def test_a_filter_keeps_what_its_words_or_its_pattern_say(text, is_regex, expected):
    assert names(RowFilter(text, is_regex).keep(ROWS)) == expected


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2,1}", "(?P<1>x)", "\\"])
def test_a_wrong_pattern_keeps_every_row_and_says_what_is_wrong(pattern):
    found = RowFilter(pattern, True)
    assert found.keep(ROWS) == ROWS
    assert found.problem


def test_a_pattern_that_backtracks_without_end_is_stopped():
    slow = RowFilter("(a|a)+$", True)
    many = rows(*(("a" * 60 + "b", n) for n in range(1000)))
    started = time.monotonic()
    assert slow.keep(many) == many
    assert slow.problem == "too slow"
    assert time.monotonic() - started < 5  # without the limit: longer than anyone lives


@given(st.lists(st.tuples(st.text(max_size=4), VALUES), max_size=12), st.booleans())
def test_sorting_loses_no_row_orders_numbers_before_words_and_puts_the_unknown_last(pairs, reverse):
    given_rows = rows(*pairs)
    found = Sorting("n", reverse).sort(COLUMNS, given_rows)
    assert sorted(r.key for r in found) == sorted(r.key for r in given_rows)
    values = [r.values[2] for r in found]
    unknown = [v is None or v != v for v in values]
    assert unknown == sorted(unknown)
    known = [v for v, lost in zip(values, unknown, strict=True) if not lost]
    numbers = [v for v in known if not isinstance(v, str)]
    assert numbers == sorted(numbers, reverse=reverse)
    words = [v.casefold() for v in known if isinstance(v, str)]
    assert words == sorted(words, reverse=reverse)
    kinds = [isinstance(v, str) for v in known]
    assert kinds == sorted(kinds, reverse=reverse)


def test_equal_rows_keep_their_order_from_either_end():
    same = rows(("a", 1), ("b", 1), ("c", 0))
    assert names(Sorting("n").sort(COLUMNS, same)) == ["c", "a", "b"]
    assert names(Sorting("n", True).sort(COLUMNS, same)) == ["a", "b", "c"]


def test_a_column_that_is_gone_sorts_nothing_and_without_one_reverse_turns_the_order():
    assert Sorting("gone").sort(COLUMNS, ROWS) == ROWS
    assert Sorting("", True).sort(COLUMNS, ROWS) == ROWS[::-1]


def test_fewer_columns_keep_the_values_of_those_that_stay():
    view = PaneView(display("T"), COLUMNS, ROWS, display("")).only(0, 2)
    assert [c.key for c in view.columns] == ["", "n"]
    assert [r.values for r in view.rows] == [(None, 3), (None, 12), (None, None), (None, 7)]
