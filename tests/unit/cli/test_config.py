"""`trainflow config` and `--version`: origins, files, checks, misspelt variables, versions."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from pathlib import Path

import apsw
import pytest

import trainflow_tui
from trainflow_tui.cli.config import OTHER_VARIABLES, strangers
from trainflow_tui.cli.frame import run
from trainflow_tui.cli.main import root
from trainflow_tui.config import FIELDS

PACKAGE = Path(trainflow_tui.__file__).parent


@pytest.fixture
def answer(capfd, monkeypatch, tmp_path):
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))

    def ask(*words):
        code = run(root, [*words, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return ask


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_each_setting_names_its_origin(answer, monkeypatch, tmp_path):
    user = write(tmp_path / "user" / "trainflow" / "trainflow.toml", 'theme = "light"\nnode_seconds = 30\n')
    own = write(tmp_path / "here" / "trainflow.toml", "node_seconds = 40\n")
    monkeypatch.setenv("TRAINFLOW_POLL_SECONDS", "9")
    code, found = answer("config", "--readonly")
    assert code == 0
    origins = {s["key"]: (s["value"], s["origin"]) for s in found["settings"]}
    assert origins.keys() == {f.key for f in FIELDS}
    assert origins["theme"] == ("light", str(user))
    assert origins["node_seconds"] == (40, str(own))
    assert origins["poll_seconds"] == (9, "TRAINFLOW_POLL_SECONDS")
    assert origins["readonly"] == (True, "--readonly")
    assert origins["glyphs"] == ("unicode", "default")


def test_the_paths_of_both_files_are_named_and_whether_they_are_there(answer, tmp_path):
    own = write(tmp_path / "here" / "trainflow.toml", "this is [ not toml")  # which need not be readable
    code, found = answer("config", "path")
    assert (code, found["schema"]) == (0, "config-path/1")
    user = str(tmp_path / "user" / "trainflow" / "trainflow.toml")
    assert found["files"] == [
        {"place": "user", "path": user, "exists": False},
        {"place": "workspace", "path": str(own), "exists": True},
    ]


def test_a_good_file_is_said_to_be_good(answer, tmp_path):
    file = write(tmp_path / "a.toml", 'theme = "light"\nmouse = false\n[keys]\nquit = "Q"\n')
    code, found = answer("config", "check", str(file))
    assert (code, found["schema"]) == (0, "config-check/1")
    assert found["settings"] == {"theme": "light", "mouse": False, "keys": {"quit": "Q"}}


@pytest.mark.parametrize(
    ("text", "code", "word"),
    [
        ("theme = [", "settings-unreadable", "a.toml"),
        ("colour = 1", "setting-unknown", "colour"),
        ("poll_seconds = 0", "setting-value", "from 1 to 3600"),
        ('theme = "pink"', "setting-value", "dark, light"),
        ('[keys]\nqut = "Q"', "key-unknown", "quit"),
        ('[keys]\napproval-approve = "enter"', "key-refused", "enter"),
        ("keys = 3", "setting-value", "a table"),
    ],
)
def test_a_bad_file_ends_with_64_and_the_reason(answer, tmp_path, text, code, word):
    file = write(tmp_path / "a.toml", text)
    status, found = answer("config", "check", str(file))
    assert (status, found["error"]["code"]) == (64, code)
    assert str(file) in found["error"]["message"]
    assert word in found["reasons"][0]["text"]


@pytest.mark.parametrize("name", ["missing.toml", "", "."])
def test_what_is_no_file_cannot_be_checked(answer, name):
    assert answer("config", "check", name)[0] == 64


def test_a_misspelt_variable_is_named_with_the_one_that_was_meant(answer, monkeypatch):
    monkeypatch.setenv("TRAINFLOW_THEM", "light")
    monkeypatch.setenv("TRAINFLOW_THEME", "light")
    code, found = answer("config")
    assert code == 0
    (reason,) = found["reasons"]
    assert (reason["code"], reason["subject"]) == ("variable-unknown", "TRAINFLOW_THEM")
    assert "TRAINFLOW_THEME" in reason["text"]


def test_variables_of_ours_and_of_others_are_no_strangers():
    known = {f"TRAINFLOW_{f.key.upper()}": "x" for f in FIELDS} | dict.fromkeys(OTHER_VARIABLES, "x")
    assert strangers(known | {"PATH": "/", "_TRAINFLOW_COMPLETE": "x", "TRAINFLOW": "x"}) == []
    assert [r.subject for r in strangers({"TRAINFLOW_XYZZY": ""})] == ["TRAINFLOW_XYZZY"]


def test_every_variable_that_the_program_reads_is_known():
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    read = set(re.findall(r"[\"']TRAINFLOW_[A-Z_]+[\"']", source))
    assert {name.strip("\"'") for name in read} <= OTHER_VARIABLES.keys() | {
        f"TRAINFLOW_{f.key.upper()}" for f in FIELDS
    } | {"TRAINFLOW_"}


def test_the_version_is_one_line_also_in_a_pipe(capfd):
    assert run(root, ["--version"]) == 0
    assert capfd.readouterr().out == f"trainflow {trainflow_tui.__version__}\n"


@pytest.mark.parametrize("words", [("--version",), ("--json", "--version")])
def test_the_version_as_an_object_names_what_it_stands_on(answer, words):
    code, found = answer(*words)
    assert (code, found["schema"]) == (0, "version/1")
    assert (found["name"], found["version"]) == ("trainflow", trainflow_tui.__version__)
    assert found["textual"] == version("textual")
    assert found["duckdb"] == version("duckdb")
    assert found["sqlite"] == apsw.sqlitelibversion()


def test_the_version_stands_alone(answer):
    assert answer("--version", "task", "list")[0] == 64


def test_the_themes_that_the_help_names_are_those_that_can_be_set():
    option = next(p for p in root.params if p.name == "theme")
    choices = next(f.choices for f in FIELDS if f.key == "theme")
    assert re.findall(r"[a-z][a-z-]+", option.help.replace(" or ", " ")) == list(choices)
