"""The one table of keys: ids, collisions, the user's own."""

from __future__ import annotations

import pytest

from trainflow_tui.errors import UsageError
from trainflow_tui.screens import keys

# Tables whose keys are live at the same time.
TOGETHER = [
    (keys.APP_KEYS, keys.SCREEN_KEYS, keys.TABLE_KEYS),
    (keys.APPROVAL_KEYS,),
    (keys.READING_KEYS,),
    (keys.WRITING_KEYS,),
    (keys.PROMPT_KEYS,),
]


def test_every_binding_has_an_id_of_its_own_and_a_description():
    found = list(keys.all_bindings())
    assert len({b.id for b in found}) == len(found)
    assert all(b.id and b.description for b in found)


@pytest.mark.parametrize("tables", TOGETHER)
def test_no_key_has_two_meanings_at_once(tables):
    pressed = [key for table in tables for binding in table for key in binding.key.split(",")]
    assert len(set(pressed)) == len(pressed)


def test_no_primary_key_is_one_that_a_terminal_or_a_multiplexer_takes():
    taken = {"ctrl+h", "ctrl+i", "ctrl+j", "ctrl+m", "ctrl+s", "ctrl+z", "ctrl+b", "ctrl+a"}
    assert not taken & {key for b in keys.all_bindings() for key in b.key.split(",")}


def test_the_footer_and_the_list_of_changing_keys_name_bindings_that_exist():
    known = {b.id for b in keys.all_bindings()}
    assert set(keys.FOOTER) <= known
    assert known >= keys.MUTATING


def test_the_users_keys_take_the_place_of_ours_under_names_that_people_write():
    assert keys.checked_keymap({"quit": "Q, ctrl+q", "help": "?", "filter": "/"}) == {
        "quit": "Q,ctrl+q",
        "help": "question_mark",
        "filter": "slash",
    }
    binding = next(b for b in keys.APP_KEYS if b.id == "quit")
    assert keys.shown_keys(binding, {"quit": "Q,ctrl+q"}) == ["Q", "ctrl+q"]
    assert keys.shown_keys(binding, {}) == ["q"]


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ({"qiut": "x"}, "Near: quit"),
        ({"quit": " , "}, "expected one or more keys"),
        ({"approval-approve": "enter"}, "may not decide"),
        ({"approval-deny": "d,space"}, "space may not decide"),
        ({"writing-send": "s"}, "s is typed there"),
    ],
)
def test_a_key_that_cannot_be_is_refused_with_the_reason(own, words):
    with pytest.raises(UsageError, match=words):
        keys.checked_keymap(own)
