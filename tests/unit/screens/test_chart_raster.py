"""The raster, held against the position of every single point and against what bad numbers must not do."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainflow_tui.screens.widgets.chart_raster import ASCII_MARKERS, Axes, fit_axes, rasterise, tick_row

COLUMNS, ROWS = 40, 8
ANY_NUMBER = st.one_of(
    st.none(), st.floats(), st.integers(-5, 5), st.sampled_from([0.0, -0.0, 1e308, -1e308, 5e-324, math.inf, math.nan])
)
FINITE = st.floats(-1e6, 1e6).map(lambda value: round(value, 6))
# Braille dots by their bit, as (column, row) in the cell: Unicode §21.1.
DOTS = {0x01: (0, 0), 0x02: (0, 1), 0x04: (0, 2), 0x08: (1, 0), 0x10: (1, 1), 0x20: (1, 2), 0x40: (0, 3), 0x80: (1, 3)}


def dots(picture):
    found = set()
    for row, (text, _) in enumerate(picture):
        for column, character in enumerate(text):
            if character != " ":
                for bit, (x, y) in DOTS.items():
                    if (ord(character) - 0x2800) & bit:
                        found.add((column * 2 + x, row * 4 + y))
    return found


def place(x, y, axes, columns=COLUMNS, rows=ROWS):
    """Where a point belongs, by the definition of the axes alone."""
    width = axes.x_high - axes.x_low
    across = (x - axes.x_low) / width * (columns * 2 - 1) if width else 0
    down = (axes.y_high - y) / (axes.y_high - axes.y_low) * (rows * 4 - 1)
    return across, down


@given(
    st.lists(st.lists(st.tuples(ANY_NUMBER, ANY_NUMBER), max_size=30), max_size=3),
    st.booleans(),
    st.booleans(),
    st.integers(0, 30),
    st.integers(0, 12),
)
def test_no_number_raises_hangs_or_changes_the_shape(lines, log, ascii_only, columns, rows):
    series = [([x for x, _ in line], [y for _, y in line]) for line in lines]
    axes = fit_axes(series, log=log, rows=rows)
    if axes is None:
        return
    assert all(map(math.isfinite, (axes.x_low, axes.x_high, axes.y_low, axes.y_high)))
    assert axes.y_low < axes.y_high
    picture = rasterise(series, axes, columns=columns, rows=rows, markers="ascii" if ascii_only else "blocks")
    assert len(picture) == (rows if columns else 0)
    for text, owners in picture:
        assert len(text) == len(owners) == columns
        assert all((a == " ") == (b == " ") for a, b in zip(text, owners, strict=True))


@given(st.lists(st.tuples(FINITE, FINITE), min_size=1, max_size=120))
def test_every_point_is_a_dot_and_every_dot_lies_between_points_of_its_neighbourhood(points):
    points.sort(key=lambda point: point[0])
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    axes = fit_axes([(xs, ys)], log=False, rows=ROWS)
    found = dots(rasterise([(xs, ys)], axes, columns=COLUMNS, rows=ROWS))
    for x, y in points:
        across, down = place(x, y, axes)
        assert any(abs(a - across) <= 0.51 and abs(d - down) <= 0.51 for a, d in found)
    heights = [place(x, y, axes)[1] for x, y in points]
    assert min(d for _, d in found) >= min(heights) - 0.51
    assert max(d for _, d in found) <= max(heights) + 0.51


def test_one_spike_among_ten_thousand_points_survives():
    ys = [1.0] * 10_000
    ys[4321] = 9.0
    axes = fit_axes([(range(10_000), ys)], log=False, rows=ROWS)
    found = dots(rasterise([(range(10_000), ys)], axes, columns=COLUMNS, rows=ROWS))
    across, down = place(4321, 9.0, axes)
    assert (round(across), round(down)) in found


@pytest.mark.parametrize("missing", [None, math.nan, math.inf, -math.inf])
def test_missing_values_leave_a_gap_that_is_not_bridged(missing):
    ys = [1.0] * 20 + [missing] * 20 + [2.0] * 20
    axes = fit_axes([(range(60), ys)], log=False, rows=ROWS)
    drawn = {across for across, _ in dots(rasterise([(range(60), ys)], axes, columns=COLUMNS, rows=ROWS))}
    left, right = place(19, 1.0, axes)[0], place(40, 1.0, axes)[0]
    assert not {a for a in drawn if left + 0.51 < a < right - 0.51}
    assert any(a <= left + 0.51 for a in drawn)
    assert any(a >= right - 0.51 for a in drawn)


def test_without_a_gap_neighbours_are_joined_without_a_hole():
    xs, ys = [0.0, 1.0], [0.0, 1.0]
    axes = fit_axes([(xs, ys)], log=False, rows=ROWS)
    found = sorted(dots(rasterise([(xs, ys)], axes, columns=COLUMNS, rows=ROWS)))
    assert {a for a, _ in found} == set(range(COLUMNS * 2))
    assert all(abs(b[1] - a[1]) <= 1 for a, b in itertools.pairwise(found))


def test_a_restarted_run_is_not_joined_backwards():
    xs, ys = [0, 1, 2, 100, 0, 1], [1.0, 1.0, 1.0, 1.0, 5.0, 5.0]
    axes = fit_axes([(xs, ys)], log=False, rows=ROWS)
    found = dots(rasterise([(xs, ys)], axes, columns=COLUMNS, rows=ROWS))
    top = {a for a, d in found if abs(d - place(0, 5.0, axes)[1]) <= 0.51}
    assert max(top) <= 1
    assert not {d for _, d in found} - {round(place(0, 5.0, axes)[1]), round(place(0, 1.0, axes)[1])}


@given(st.lists(st.one_of(st.floats(1e-9, 1e9), st.floats(-10, 0)), min_size=1, max_size=40))
def test_a_logarithmic_axis_stands_on_positive_values_alone(ys):
    axes = fit_axes([(range(len(ys)), ys)], log=True, rows=ROWS)
    positive = [y for y in ys if y > 0]
    if not positive:
        assert axes is None
        return
    assert axes.y_low <= math.log10(min(positive)) + 1e-9
    assert axes.y_high >= math.log10(max(positive)) - 1e-9
    found = dots(rasterise([(range(len(ys)), ys)], axes, columns=COLUMNS, rows=ROWS))
    for x, y in enumerate(ys):
        if y > 0:
            across, down = place(x, math.log10(y), axes)
            assert any(abs(a - across) <= 0.51 and abs(d - down) <= 0.51 for a, d in found)


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20), st.integers(1, 40), st.booleans())
def test_ticks_are_ordered_told_apart_and_say_where_they_stand(ys, rows, log):
    axes = fit_axes([(range(len(ys)), ys)], log=log, rows=rows)
    if axes is None:
        return
    heights = [height for height, _ in axes.y_ticks]
    labels = [label for _, label in axes.y_ticks]
    assert heights == sorted(heights)
    assert len(set(labels)) == len(labels) >= 1
    span = axes.y_high - axes.y_low
    for height, label in axes.y_ticks:
        assert axes.y_low - span * 1e-9 <= height <= axes.y_high + span * 1e-9
        said = math.log10(float(label)) if log else float(label)
        assert abs(said - height) <= span * 0.01
        assert 0 <= tick_row(height, axes, max(1, rows)) < max(1, rows)


def test_new_points_within_the_capacity_change_no_cell_that_was_drawn_before_them():
    xs, ys = list(range(1001)), [math.sin(n / 50) for n in range(1001)]
    axes = fit_axes([(xs[:900], ys[:900])], log=False, rows=ROWS)
    axes = fit_axes([(xs[:901], ys[:901])], log=False, rows=ROWS, before=axes)
    assert axes.x_high == 900 * 1.25
    before = rasterise([(xs[:901], ys[:901])], axes, columns=COLUMNS, rows=ROWS)
    for count in (902, 950, 1001):
        again = fit_axes([(xs[:count], ys[:count])], log=False, rows=ROWS, before=axes)
        assert again == axes
        after = rasterise([(xs[:count], ys[:count])], again, columns=COLUMNS, rows=ROWS)
        drawn = int(place(900, 0, axes)[0] / 2)
        assert [text[:drawn] for text, _ in after] == [text[:drawn] for text, _ in before]


def test_y_limits_stay_while_points_fill_them_and_move_when_they_do_not():
    axes = fit_axes([((0, 1), (0.0, 9.0))], log=False, rows=12)
    assert fit_axes([((0, 1), (1.0, 8.0))], log=False, rows=12, before=axes).y_high == axes.y_high
    assert fit_axes([((0, 1), (0.0, 90.0))], log=False, rows=12, before=axes).y_high >= 90
    assert fit_axes([((0, 1), (0.1, 0.2))], log=False, rows=12, before=axes).y_high < 1


def test_another_run_with_a_shorter_x_gets_its_own_axis():
    axes = fit_axes([((0, 10_000), (0.0, 1.0))], log=False, rows=12)
    assert fit_axes([((0, 100), (0.0, 1.0))], log=False, rows=12, before=axes).x_high == 100


def test_the_later_series_is_on_top():
    one, two = ((0, 1), (0.0, 1.0)), ((0, 1), (0.0, 1.0))
    axes = Axes(0, 1, 0, 1, (), False)
    assert {o for _, owners in rasterise([one, two], axes, columns=9, rows=4) for o in owners} == {" ", "1"}
    assert {c for text, _ in rasterise([one], axes, columns=9, rows=4, markers="ascii") for c in text} == {
        " ",
        ASCII_MARKERS[0],
    }


def test_x_and_y_of_different_length_are_refused():
    with pytest.raises(ValueError, match="2 x for 1 y"):
        fit_axes([((0, 1), (0.0,))], log=False, rows=4)
