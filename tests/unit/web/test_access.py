"""Who is answered by the server of the screen in a browser."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainflow_tui.web.access import Access

PORT = 8765


def token_of(access):
    return parse_qs(urlsplit(access.first_url).query)["token"][0]


def test_the_token_is_traded_once_for_another_secret():
    access = Access(PORT)
    token = token_of(access)
    session = access.trade(token)
    assert session
    assert session != token
    assert access.trade(token) is None
    assert access.first_url == ""
    assert access.is_in_session(session)
    assert not access.is_in_session(token)


def test_both_secrets_hold_at_least_128_bits_and_no_two_are_alike():
    tokens = [token_of(Access(PORT)) for _ in range(50)]
    sessions = [access.trade(token_of(access)) for access in (Access(PORT) for _ in range(50))]
    assert len({*tokens, *sessions}) == 100
    assert min(len(secret) for secret in (*tokens, *sessions)) * 6 >= 128  # six bits a character of base64


@settings(max_examples=30, database=None)
@given(st.text())
def test_no_other_text_is_the_token_or_the_session(text):
    access = Access(PORT)
    assert access.trade(text) is None
    assert not access.is_in_session(text)
    session = access.trade(token_of(access))
    assert access.is_in_session(text) is (text == session)
    assert access.trade(text) is None


def test_nobody_is_in_a_session_that_was_not_begun():
    access = Access(PORT)
    for cookie in (None, "", "None"):
        assert not access.is_in_session(cookie)


@pytest.mark.parametrize(
    ("hosts", "ours"),
    [
        ([f"127.0.0.1:{PORT}"], True),
        ([f"localhost:{PORT}"], True),
        ([f"LOCALHOST:{PORT}"], True),
        ([], False),
        ([""], False),
        ([f"127.0.0.1:{PORT}", f"127.0.0.1:{PORT}"], False),
        (["127.0.0.1"], False),
        ([f"127.0.0.1:{PORT + 1}"], False),
        ([f"127.0.0.2:{PORT}"], False),
        ([f"localhost.:{PORT}"], False),
        ([f"localhost.evil.example:{PORT}"], False),
        ([f"evil.example:{PORT}"], False),
        ([f"[::1]:{PORT}"], False),
    ],
)
def test_only_our_own_names_are_answered(hosts, ours):
    assert Access(PORT).is_our_host(hosts) is ours


@pytest.mark.parametrize(
    ("origins", "ours"),
    [
        ([f"http://127.0.0.1:{PORT}"], True),
        ([], False),
        (["null"], False),
        ([f"https://127.0.0.1:{PORT}"], False),
        ([f"http://localhost:{PORT}"], False),
        ([f"http://127.0.0.1:{PORT + 1}"], False),
        ([f"http://127.0.0.1:{PORT}.evil.example"], False),
        ([f"http://127.0.0.1:{PORT}", "http://evil.example"], False),
    ],
)
def test_only_a_page_of_the_same_name_and_port_opens_a_screen(origins, ours):
    assert Access(PORT).is_our_origin(origins, f"127.0.0.1:{PORT}") is ours


def test_two_servers_have_two_cookies():
    assert Access(PORT).cookie != Access(PORT + 1).cookie
