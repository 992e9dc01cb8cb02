"""The generated documents stand as the tables of the program would make them, and what they show works."""

from __future__ import annotations

import importlib.util
import re
import shlex
import tomllib
from pathlib import Path

import pytest

from trainflow_tui.cli.frame import STATUS
from trainflow_tui.cli.main import NOUNS
from trainflow_tui.config import FIELDS, load
from trainflow_tui.screens.keys import checked_keymap

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("reference_script", ROOT / "scripts" / "reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)


@pytest.mark.parametrize("name", list(reference.PAGES))
def test_a_generated_document_is_what_the_program_says_now(name):
    found = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert found == reference.PAGES[name](), f"docs/{name} is out of date: run `make docs`, or scripts/reference.py"


def test_every_example_of_a_setting_is_accepted_and_changes_it(tmp_path):
    text = reference.configuration()
    examples = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert len(examples) == len(FIELDS)
    for field, example in zip(FIELDS, examples, strict=True):
        assert list(tomllib.loads(example)) == [field.key]
        (tmp_path / "trainflow.toml").write_text(example)
        settings, _ = load(workspace=tmp_path, environment={})
        assert getattr(settings, field.key) != field.default, field.key


def test_every_example_of_a_variable_is_accepted_and_changes_its_setting():
    calls = re.findall(r"^(TRAINFLOW_\w+=.*) trainflow$", reference.configuration(), re.MULTILINE)
    assert len(calls) == len(FIELDS)
    for field, call in zip(FIELDS, calls, strict=True):
        (assignment,) = shlex.split(call)
        name, _, value = assignment.partition("=")
        settings, _ = load(environment={name: value})
        assert getattr(settings, field.key) != field.default, field.key


def test_the_example_in_the_readme_is_accepted(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "trainflow.toml").write_text(example)
    settings, _ = load(workspace=tmp_path, environment={})
    assert checked_keymap(settings.keys)


def test_the_commands_list_every_noun_and_every_exit_code():
    text = reference.commands()
    assert re.findall(r"^## trainflow (\S+)$", text, re.MULTILINE) == list(NOUNS)
    assert reference.MEANING.keys() == STATUS.keys()


def test_every_key_has_an_id_and_no_id_is_there_twice():
    ids = re.findall(r"\| `([a-z0-9-]+)` \|$", reference.key_map().partition("## Commands")[0], re.MULTILINE)
    rows = [line for line in reference.key_map().partition("## Commands")[0].split("\n") if line.startswith("| `")]
    assert len(ids) == len(rows) == len(set(ids))


def test_links_between_the_documents_lead_somewhere():
    for page in (*(ROOT / "docs").glob("*.md"), ROOT / "README.md"):
        for link in re.findall(r"\]\(([^)#:]+\.md)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "](GUIDANCE" not in link and "*" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
