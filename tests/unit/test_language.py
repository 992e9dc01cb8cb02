"""The catalogues: complete, with the same fields, compiled from what is committed; and how a language is chosen."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from babel.messages.pofile import read_po

from trainflow_tui import language

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("catalogue", ROOT / "scripts" / "catalogue.py")
catalogue = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(catalogue)


@pytest.fixture(params=catalogue.LOCALES)
def committed(request):
    path = catalogue.LOCALES[request.param]
    with path.open("rb") as stream:
        return path, read_po(stream, locale=request.param)


@pytest.fixture(autouse=True)
def english():
    yield
    language.use("en")


def test_every_message_of_the_source_is_translated_and_no_other(committed):
    _path, translated = committed
    assert {m.id for m in translated if m.id} == {m.id for m in catalogue.collected() if m.id}
    assert catalogue.missing(translated) == []


def test_a_translation_has_the_fields_the_blanks_and_the_keys_of_its_message(committed):
    for message in committed[1]:
        if message.id:
            for pattern in (r"\{[a-z_]*\}", r"`[^`]*`", r"\bctrl\+\w", r"\bGUIDANCE\.md|QUESTIONS\.md"):
                assert sorted(re.findall(pattern, message.string)) == sorted(re.findall(pattern, message.id)), (
                    message.id
                )
            assert message.string.startswith(" ") == message.id.startswith(" ") or message.string.startswith("（")


def test_the_compiled_catalogue_is_made_of_the_committed_one(committed):
    path, translated = committed
    assert path.with_suffix(".mo").read_bytes() == catalogue.compiled(translated), "run make catalogue"


@pytest.mark.parametrize(
    ("variables", "tag"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh-CN"),
        ({"LANG": "zh"}, "zh-CN"),
        ({"LANG": "zh_CN.GBK"}, "zh-CN"),
        ({"LANG": "zh_TW.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "en_US.UTF-8", "LC_MESSAGES": "zh_CN"}, "zh-CN"),
        ({"LC_ALL": "", "LANG": "de_DE@euro"}, "en"),
    ],
)
def test_the_language_follows_the_locale_in_the_order_of_posix(variables, tag):
    assert language.use("auto", variables) == tag
    assert language.current() == tag


def test_a_message_is_translated_where_it_is_shown_and_an_unknown_one_stays():
    marked = language.N_("Board")
    assert language._(marked) == "Board"
    language.use("zh-CN")
    assert language._(marked) == "看板"
    assert language._("no such message") == "no such message"
    assert language._("") == ""
    assert language.translator("en")("Board") == "Board"


def test_a_language_without_catalogue_is_refused():
    with pytest.raises(KeyError):
        language.use("xx")
