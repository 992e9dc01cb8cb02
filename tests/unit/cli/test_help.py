"""`trainflow help`: its pages hold together and name only what exists; topics, commands, languages, the pager."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys

import click
import pytest

from trainflow_tui import language
from trainflow_tui.cli import help as help_module
from trainflow_tui.cli import reference, topics
from trainflow_tui.cli.frame import STATUS, run
from trainflow_tui.cli.help import through_pager
from trainflow_tui.cli.main import NOUNS, root
from trainflow_tui.config import FIELDS
from trainflow_tui.screens import keys
from trainflow_tui.text import cell_len

SECTIONS = {
    "en": ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "SEE ALSO"],
    "zh-CN": ["名称", "用法", "说明", "示例", "另见"],
}
PAGES = sorted(topics.FOLDER.glob("*.md"))


@pytest.fixture(autouse=True)
def _english(monkeypatch):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    yield
    language.use("en")


@pytest.fixture
def answer(capfd, monkeypatch, tmp_path):
    """Run a call in an empty directory: its exit code and its object."""
    monkeypatch.chdir(tmp_path)

    def ask(*words):
        code = run(root, [*words, "--json"])
        return code, json.loads(capfd.readouterr().out)

    return ask


def tag_of(path):
    return path.name.split(".")[1] if path.name.count(".") == 2 else "en"


def calls_in(text):
    """The words of every call of the program that a page shows, in backticks or on a line of its own."""
    whole = text.replace("\\\n", " ")
    shown = re.findall(r"`(trainflow [^`]+)`", whole.replace("\n", " "))
    shown += re.findall(r"^ {4}[^`\n]*?(?<![.\w])(trainflow [^`\n]+)$", whole, re.MULTILINE)
    return [re.split(r"[|>';…]|\s\(|\s{2}", call)[0].split()[1:] for call in shown]


# The pages


def test_every_page_is_a_topic_and_every_topic_a_page():
    assert {path.name.split(".")[0] for path in PAGES} == set(topics.TOPICS)
    assert {path.stem for path in PAGES if tag_of(path) == "en"} == set(topics.TOPICS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_has_its_sections_and_fits_eighty_columns(path):
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == SECTIONS[tag_of(path)]
    assert text.split("\n")[2].startswith(f"{path.name.split('.')[0]} - ")
    assert [line for line in text.split("\n") if cell_len(line) > reference.WIDTH] == []
    assert not re.search(r"\w!|！", text)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_refers_to_other_pages_only(path):
    text = path.read_text(encoding="utf-8")
    named = re.split(r"[,，、\s]+", text.split("\n## ")[-1].split("\n", 1)[1].strip())
    assert set(named) <= set(topics.TOPICS) - {path.name.split(".")[0]}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_names_only_commands_and_options_that_exist(path):
    for words in calls_in(path.read_text(encoding="utf-8")):
        context = click.Context(root, info_name="trainflow")
        for word in words:
            command = context.command
            option = word.split("=")[0]
            if option.startswith("--"):
                options = {o for parameter in command.params for o in (*parameter.opts, *parameter.secondary_opts)}
                assert option in options, words
            elif isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+", word):
                found = command.get_command(context, word)
                assert found is not None, words
                context = click.Context(found, info_name=word, parent=context)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_page_sets_only_what_can_be_set(path):
    ids = {binding.id for binding in keys.all_bindings()}
    in_keys = False
    for line in path.read_text(encoding="utf-8").split("\n"):
        in_keys = line.strip() == "[keys]" or (in_keys and line.startswith("    "))
        found = re.match(r" {4}([a-z_-]+) = (\S+)", line)
        if found and in_keys:
            assert found[1] in ids
        elif found:
            field = next(f for f in FIELDS if f.key == found[1])
            value = found[2].strip('"')
            assert value in field.choices or (field.high and field.low <= int(value) <= field.high)


def test_the_page_of_exit_codes_names_each_with_its_word(answer):
    text = answer("help", "exit-codes")[1]["text"]
    assert dict(re.findall(r"^ {8}(\d+) +(\w+)", text, re.MULTILINE)) == {str(c): s for c, s in STATUS.items()}


def test_the_page_of_settings_holds_every_setting(answer):
    text = answer("help", "configuration")[1]["text"]
    for field in FIELDS:
        assert f"    {field.key}  (default: " in text
        assert f"TRAINFLOW_{field.key.upper()}" in text


def test_the_page_of_keys_holds_every_binding_and_marks_those_that_change_something(answer):
    text = answer("help", "keys")[1]["text"]
    marked = {line.split()[-1] for line in text.split("\n") if re.match(r" {8}.* \* \w.*  [a-z0-9-]+$", line)}
    assert {b.id for b in keys.all_bindings()} <= set(text.split())
    assert marked == keys.MUTATING
    assert [line for line in text.split("\n") if cell_len(line) > 80] == []


def test_the_page_of_keys_shows_the_users_own(answer, tmp_path):
    (tmp_path / "trainflow.toml").write_text('[keys]\nquit = "f9"\n')
    text = answer("help", "keys")[1]["text"]
    assert re.search(r"^ +f9 +Quit +quit$", text, re.MULTILINE)


# What is answered


def test_without_a_word_topics_and_commands_are_listed(answer):
    code, found = answer("help")
    assert (code, found["schema"]) == (0, "help-list/1")
    assert [t["topic"] for t in found["topics"]] == list(topics.TOPICS)
    assert all(t["title"] for t in found["topics"])
    assert [c["command"] for c in found["commands"]] == list(NOUNS)


def test_a_topic_is_an_object_with_topic_title_and_text(answer):
    code, found = answer("help", "start")
    assert code == 0
    assert {"topic", "title", "text"} <= found.keys()
    assert found["topic"] == "start"
    assert found["text"].startswith(f"NAME\n    start - {found['title']}\n\nSYNOPSIS\n        mkdir run")


def test_a_command_has_its_own_page(answer):
    code, found = answer("help", "task", "create")
    assert (code, found["topic"]) == (0, "task create")
    assert "trainflow task create [OPTIONS] TITLE" in found["text"]
    assert "--objective TEXT" in found["text"]


def test_a_name_that_is_both_has_both(answer):
    text = answer("help", "logs")[1]["text"]
    assert text.startswith("NAME")
    assert "Usage: trainflow logs [OPTIONS]" in text


@pytest.mark.parametrize(
    ("words", "near"),
    [(["stort"], "start"), (["approvls"], "approvals"), (["tsk"], "task"), (["task", "creat"], "create")],
)
def test_an_unknown_word_is_refused_with_what_is_near(answer, words, near):
    code, found = answer("help", *words)
    assert (code, found["error"]["code"]) == (64, "help-unknown")
    assert near in found["error"]["next_step"]


def test_a_word_like_none_is_refused_without_a_guess(answer):
    code, found = answer("help", "xyzzy")
    assert (code, "Near" in found["error"]["next_step"]) == (64, False)


def test_broken_settings_do_not_keep_help_away(answer, tmp_path):
    (tmp_path / "trainflow.toml").write_text("theme = [")
    assert answer("help", "configuration")[0] == 0


def test_help_makes_nothing(answer, tmp_path):
    answer("help", "keys")
    assert list(tmp_path.iterdir()) == []


# Languages


def test_a_page_is_read_in_the_language_of_the_settings(answer, monkeypatch):
    monkeypatch.setenv("TRAINFLOW_LANGUAGE", "zh-CN")
    assert answer("help", "start")[1]["text"].startswith("名称\n    start - ")


def test_a_page_is_read_in_the_language_of_the_call(answer):
    assert answer("help", "approvals", "--lang", "zh-CN")[1]["text"].startswith("名称\n    approvals - ")
    assert answer("help", "approvals", "--lang", "xx")[0] == 64


def test_a_page_that_is_not_translated_is_english_and_says_so(tmp_path):
    (tmp_path / "only.md").write_text("## NAME\n\nonly - one\n")
    language.use("zh-CN")
    text = topics.page("only", own_keys={}, folder=tmp_path).text
    assert text.split("\n")[0].strip() == language._("This page is not translated yet.")
    assert "NAME\n    only - one\n" in text
    language.use("en")
    assert topics.page("only", own_keys={}, folder=tmp_path).text == "NAME\n    only - one\n"


def test_a_translated_page_shows_the_same_commands():
    for topic in topics.TOPICS:
        original = (topics.FOLDER / f"{topic}.md").read_text(encoding="utf-8")
        for path in topics.FOLDER.glob(f"{topic}.*.md"):
            wanted = {tuple(w for w in call if re.fullmatch(r"[a-z-]+", w)) for call in calls_in(original)}
            found = {
                tuple(w for w in call if re.fullmatch(r"[a-z-]+", w))
                for call in calls_in(path.read_text(encoding="utf-8"))
            }
            assert found == wanted, path.name


def test_wide_text_is_broken_between_characters_and_never_before_a_full_stop():
    lines = reference.wrapped("每一次扫描之间的秒数，范围是 1 到 3600。" * 3, 20)
    assert all(cell_len(line) <= 20 for line in lines)
    assert "".join(lines).replace(" ", "") == ("每一次扫描之间的秒数，范围是 1 到 3600。" * 3).replace(" ", "")
    assert not [line for line in lines if line[0] in "，。"]


# The pager


def test_the_pager_gets_the_text_as_it_is(monkeypatch, tmp_path, capfd):
    out = tmp_path / "a file"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", f"tee '{out}'")
    assert through_pager("one\n二\n")
    assert out.read_text(encoding="utf-8") == "one\n二\n"


@pytest.mark.parametrize("pager", ["", "   ", "no-such-pager-anywhere", "cat; touch made", "'unfinished"])
def test_a_pager_that_does_not_run_leaves_the_text_to_be_printed_and_no_shell_reads_it(monkeypatch, tmp_path, pager):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", pager)
    assert not through_pager("text")
    assert list(tmp_path.iterdir()) == []


def test_a_dumb_terminal_has_no_pager(monkeypatch):
    monkeypatch.setenv("PAGER", "cat")
    monkeypatch.setenv("TERM", "dumb")
    assert not through_pager("text")


def test_a_pager_that_leaves_early_is_no_fault(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("PAGER", "true")
    assert through_pager("line\n" * 200_000)


def test_no_pager_is_asked_where_the_output_is_no_terminal(monkeypatch, capfd, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(help_module, "through_pager", lambda text: pytest.fail("a pager"))
    assert run(root, ["help", "start", "--no-json"]) == 0
    assert capfd.readouterr().out.startswith("NAME\n    start - ")


def test_on_a_terminal_the_page_goes_through_the_pager(tmp_path):
    ours, theirs = pty.openpty()
    environment = os.environ | {"PAGER": "sed s/^NAME/PAGED/", "TERM": "xterm", "LANG": "C.UTF-8"}
    words = [sys.executable, "-m", "trainflow_tui", "help", "start"]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=tmp_path) as started:
        os.close(theirs)
        text = b""
        try:
            while piece := os.read(ours, 65536):
                text += piece
        except OSError:
            pass  # the terminal's end on Linux
    os.close(ours)
    assert started.returncode == 0
    assert text.startswith(b"PAGED")
