"""The remembered view comes back as it was, and no file can bring in anything else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainflow_tui.app import TrainflowApp
from trainflow_tui.screens import view_state
from trainflow_tui.screens.view_state import CHARTS, MODES, ModeState, PaneState, ViewState, load, path_for, save
from trainflow_tui.text import display

NAMES = st.from_regex(r"[a-z][a-z0-9_-]{0,20}", fullmatch=True)
TEXTS = st.text(max_size=60).map(lambda text: str(display(text, whole=True)))
PANES = st.builds(
    PaneState,
    sort_key=NAMES | st.just(""),
    reverse=st.booleans(),
    filter=TEXTS,
    filter_is_regex=st.booleans(),
)
HISTORIES = st.lists(TEXTS.filter(str.strip), unique=True, max_size=50).map(tuple)
STATES = st.builds(
    ViewState,
    version=st.just(1),
    mode=st.sampled_from(MODES),
    task=NAMES | st.just(""),
    theme=st.sampled_from([*view_state.THEMES, ""]),
    chart=st.sampled_from(CHARTS),
    modes=st.dictionaries(
        st.sampled_from(MODES),
        st.builds(
            ModeState,
            focused=NAMES | st.just(""),
            zoomed=NAMES | st.just(""),
            panes=st.dictionaries(NAMES, PANES, max_size=4),
        ),
    ),
    filters=HISTORIES,
    commands=HISTORIES,
)
KEYS = st.sampled_from(
    [
        *("version", "mode", "task", "theme", "chart", "modes", "filters", "commands", "focused", "zoomed", "panes"),
        *("sort_key", "reverse", "filter", "filter_is_regex", "overview", "live", "pane"),
    ]
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["live", "log"]),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS | st.text(max_size=8), inner, max_size=6),
    max_leaves=30,
)
ON_DISK = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
"""Each example waits for the disk."""


def is_within_bounds(state):
    """Checked by the types' own decoder, and by the figures of the interface."""
    msgspec.convert(msgspec.to_builtins(state), ViewState, strict=True)
    names = [state.task]
    texts = [*state.filters, *state.commands]
    for mode in state.modes.values():
        assert len(mode.panes) <= 32
        names += [mode.focused, mode.zoomed, *mode.panes, *(pane.sort_key for pane in mode.panes.values())]
        texts += [pane.filter for pane in mode.panes.values()]
    assert set(state.modes) <= set(MODES)
    assert state.mode in MODES
    assert state.theme in ("", *view_state.THEMES)
    assert all(len(name) <= 64 and name.isascii() for name in names)
    assert all(len(text) <= 400 and display(text, whole=True) == text for text in texts)
    assert len(state.filters) == len(set(state.filters)) <= 50
    assert len(state.commands) == len(set(state.commands)) <= 100
    return True


@ON_DISK
@given(STATES)
def test_what_is_saved_is_loaded(tmp_path, state):
    path = tmp_path / "views" / "x.json"
    assert save(path, state)
    assert load(path) == (state, "")


@ON_DISK
@given(VALUES)
def test_any_json_gives_a_state_within_its_bounds(tmp_path, value):
    path = tmp_path / "x.json"
    path.write_text(json.dumps(value))
    state, note = load(path)
    assert is_within_bounds(state)
    assert bool(note) == (not isinstance(value, dict))


@ON_DISK
@given(st.binary(max_size=200))
def test_any_bytes_give_a_state(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert is_within_bounds(load(path)[0])


@ON_DISK
@given(STATES, st.data())
def test_any_bytes_in_a_good_file_give_a_state(tmp_path, state, data):
    path = tmp_path / "views" / "x.json"
    save(path, state)
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place : place + data.draw(st.integers(0, 9))] = data.draw(st.binary(max_size=9))
    path.write_bytes(content)
    assert is_within_bounds(load(path)[0])


def test_too_much_of_anything_is_cut():
    long = [f"words {n}" for n in range(300)]
    raw = {
        "filters": [*long, "x" * 401, "a\x1b[2J", 7],
        "commands": [*long, long[250]],
        "modes": {"live": {"panes": {f"pane-{n}": {} for n in range(100)}}, "unknown": {}},
        "task": "x" * 65,
        "chart": "pie",
        "mode": "nowhere",
    }
    state = view_state._bounded(raw)
    assert is_within_bounds(state)
    assert state.filters == tuple(long[-50:])
    assert state.commands == (*[words for words in long[-100:] if words != long[250]], long[250])
    assert len(state.modes["live"].panes) == 32
    assert (state.task, state.chart, state.mode) == ("", "linear", "overview")


def test_the_largest_state_is_still_read(tmp_path):
    words = [f"{n}{chr(0x20000) * 390}" for n in range(100)]
    panes = {f"{n}{'p' * 60}": PaneState(sort_key="k" * 64, reverse=True, filter=words[n]) for n in range(32)}
    modes = {mode: ModeState(focused="f" * 64, zoomed="z" * 64, panes=panes) for mode in MODES}
    state = ViewState(task="t" * 64, modes=modes, filters=tuple(words[:50]), commands=tuple(words))
    assert save(tmp_path / "views" / "x.json", state)
    assert load(tmp_path / "views" / "x.json") == (state, "")


def test_one_bad_value_costs_only_itself():
    state = view_state._bounded({"mode": 7, "task": "adapt-7b", "modes": {"live": {"focused": [], "zoomed": "loss"}}})
    assert state == ViewState(task="adapt-7b", modes={"live": ModeState(zoomed="loss")})


def test_the_modes_and_themes_are_the_applications():
    assert set(MODES) == set(TrainflowApp.MODES)
    assert MODES[0] == TrainflowApp.DEFAULT_MODE


# Files


def test_the_file_is_private_by_workspace_and_in_the_state_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "ws").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "ws")
    path = path_for(tmp_path / "ws")
    assert path == path_for(tmp_path / "link")
    assert path != path_for(tmp_path / "other")
    if os.uname().sysname == "Linux":
        assert path.parent == tmp_path / "state" / "trainflow" / "views"
    assert len(path.stem) == 16
    assert path.suffix == ".json"
    old = os.umask(0)
    try:
        assert save(tmp_path / "s" / "views" / "x.json", ViewState())
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "s" / "views" / "x.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "s" / "views").stat().st_mode) == 0o700


def test_a_missing_file_gives_the_defaults_without_a_word(tmp_path):
    assert load(tmp_path / "views" / "x.json") == (ViewState(), "")
    assert load(None) == (ViewState(), "")


def test_a_file_that_is_not_ours_to_read_is_noted(tmp_path, monkeypatch):
    huge, linked, pipe, deep, foreign = (tmp_path / name for name in ("huge", "linked", "pipe", "deep", "foreign"))
    huge.write_text(json.dumps({"task": "t", "filters": ["x" * 1_100_000]}))
    foreign.write_text('{"task": "t"}')
    linked.symlink_to(foreign)
    os.mkfifo(pipe)
    deep.write_text('{"modes":' * 20_000)
    for path in (huge, linked, pipe, deep):
        state, note = load(path)
        assert state == ViewState()
        assert str(path) in note
    monkeypatch.setattr(os, "geteuid", lambda: foreign.stat().st_uid + 1)
    state, note = load(foreign)
    assert (state, "another user" in note) == (ViewState(), True)


def test_where_nothing_can_be_saved_nothing_happens(tmp_path):
    (tmp_path / "views").write_text("in the way")
    assert not save(tmp_path / "views" / "x.json", ViewState())
    assert not save(None, ViewState())
    if Path("/proc/self").exists():
        assert not save(Path("/proc/trainflow/views/x.json"), ViewState())
    assert load(tmp_path / "views" / "x.json") == (ViewState(), "")


def test_a_torn_save_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "views" / "x.json"
    save(path, ViewState(task="old"))

    def refuse(*_given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("trainflow_tui.files.os.write", refuse)
        assert not save(path, ViewState(task="new"))
    assert load(path) == (ViewState(task="old"), "")
    assert [p.name for p in path.parent.iterdir()] == ["x.json"]


# Histories


@pytest.mark.parametrize(
    ("remember", "kept", "most"), [("with_filter", "filters", 50), ("with_command", "commands", 100)]
)
def test_a_history_has_the_newest_last_and_each_once(remember, kept, most):
    state = ViewState()
    for words in [*(f"w{n}" for n in range(200)), "w150", "", "  ", "w199\n"]:
        state = getattr(state, remember)(words)
    history = getattr(state, kept)
    assert len(history) == most
    assert history[-1] == "w199"
    assert history[-2] == "w150"
    assert is_within_bounds(state)


def test_a_history_keeps_no_secret_and_nothing_that_cannot_be_shown():
    state = ViewState().with_command("guide use password=hunter2").with_command("a\x1b[2J").with_filter("x" * 401)
    assert state.commands == ("guide use password=[redacted:password]",)
    assert state.filters == ()
