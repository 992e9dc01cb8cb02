"""Charts as plain text: every number that ends or hangs plotext itself comes out as a picture or a sentence."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.analysis.plot_text import plot_series
from trainflow_tui.text import cell_len, display

ANY_NUMBER = st.one_of(
    st.none(), st.floats(), st.sampled_from([0.0, 1e308, -1e308, 1.7e308, 5e-324, math.nan, math.inf, -math.inf])
)
LINES = st.lists(st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), max_size=25), max_size=3)

NASTY = {
    "nan in the middle": [1.0, math.nan, 2.0],
    "nan first": [math.nan, 1.0, 2.0],
    "only nan": [math.nan] * 3,
    "none": [1.0, None, 2.0],
    "infinite": [math.inf, 1.0, -math.inf],
    "huge": [1e308, -1e308, 1.7e308],
    "tiny": [5e-324, 0.0, 1e-308],
    "not positive": [0.0, -1.0, 3.0],
    "constant": [4.0] * 5,
    "one": [4.0],
    "empty": [],
    "too close": [1e16, 1e16 + 2, 1e16],
}


@pytest.mark.parametrize("log", [False, True])
def test_numbers_that_hang_or_abort_plotext_are_drawn_or_refused_in_words(log):
    # In a process of its own, since native code that hangs cannot be interrupted from within.
    code = (
        "import sys, json; from trainflow_tui.analysis.plot_text import plot_series; cases, log = json.load(sys.stdin);"
        "out = {n: plot_series([('loss', list(range(len(ys))), ys)], width=60, height=12, title='t', log=log)"
        " for n, ys in cases.items()}; json.dump(out, sys.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([NASTY, log]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, picture in json.loads(done.stdout).items():
        finite = [y for y in NASTY[name] if y is not None and math.isfinite(y)]
        drawable = [y for y in finite if y > 0 or not log]
        assert ("There is no value" in picture) is (not drawable), name
        assert ("above zero" in picture) is bool(finite and not drawable), name


@settings(max_examples=60, deadline=None)
@given(LINES, st.booleans(), st.integers(1, 130), st.integers(1, 40))
def test_any_numbers_give_plain_text_of_the_asked_size(lines, log, width, height):
    series = [(f"s{n}", [x for x, _ in line], [y for _, y in line]) for n, line in enumerate(lines)]
    picture = plot_series(series, width=width, height=height, title="t", log=log)
    assert "\x1b" not in picture
    rows = picture.split("\n")
    if "There is no value" not in picture:
        assert len(rows) <= max(2, height)
        assert all(cell_len(row) <= width for row in rows)


def test_a_spike_among_ten_thousand_points_is_drawn():
    ys = [1.0] * 10_000
    ys[5050] = 9.0  # not the first of its column
    rows = plot_series([("loss", range(10_000), ys)], width=70, height=14, title="t").split("\n")
    left = rows[1].index("┌")
    top = rows[2][left + 1 :]
    spike = next(n for n, c in enumerate(top) if 0x2800 < ord(c) < 0x2900)
    assert abs(spike - (len(rows[1]) - left - 2) / 2) <= 2


def test_a_gap_is_not_bridged():
    ys = [1.0] * 30 + [None] * 30 + [2.0] * 30
    rows = plot_series([("loss", range(90), ys)], width=70, height=14, title="t").split("\n")
    left, right = rows[1].index("┌") + 1, rows[1].index("┐")
    width = right - left
    gap = slice(left + width * 31 // 89, left + width * 58 // 89)
    assert all(row[gap].strip() == "" for row in rows[2:-2])


def test_names_and_titles_are_made_harmless_and_stand_above_the_plot():
    picture = plot_series([("lo\x1b]0;x\x07ss", [1, 2], [3.0, 2.5])], width=60, height=8, title="a\x1b[31mb\u202e")
    assert picture.split("\n")[0] == display("ab·  loss 2.5")


def test_two_series_have_two_marks_and_their_names_beside_them():
    picture = plot_series([("a", [0, 1], [0, 0]), ("b", [0, 1], [1, 1])], width=60, height=10, title="t")
    rows = picture.split("\n")
    assert rows[0] == "t  * a 0  + b 1"
    assert "+" in rows[2]
    assert "*" in rows[-3]
    assert "*" not in rows[2]


def test_x_and_y_of_different_length_are_refused():
    with pytest.raises(ValueError, match="shorter"):
        plot_series([("a", [1, 2], [1.0])], width=40, height=8, title="t")


def test_importing_the_adapter_does_not_import_plotext():
    code = "import sys, trainflow_tui.analysis.plot_text; print('plotext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
