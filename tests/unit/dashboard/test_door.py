"""The door's memory: sessions that end, tries that are counted, names and ways that are its own."""

from __future__ import annotations

import pytest

from tests.counting import Ticks
from toolkit.dashboard.door import (
    SESSION_S,
    TRIES,
    TRIES_S,
    LoginSessions,
    Tries,
    _is_known,
    _own_page,
)


def test_a_session_ends_after_twelve_hours():
    clock = Ticks()
    sessions = LoginSessions(clock)
    token = sessions.begin()
    clock.now += SESSION_S - 1
    assert sessions.holds(token)
    clock.now += 1
    assert not sessions.holds(token)


def test_of_very_many_sessions_the_oldest_ends():
    sessions = LoginSessions()
    first, second = sessions.begin(), sessions.begin()
    for _ in range(999):
        sessions.begin()
    assert not sessions.holds(first)
    assert sessions.holds(second)


@pytest.mark.parametrize("token", [None, "", "x"])
def test_what_is_no_token_is_no_session(token):
    assert not LoginSessions().holds(token)


def test_an_address_waits_until_its_oldest_try_is_a_minute_old():
    clock = Ticks()
    tries = Tries(clock)
    for _ in range(TRIES):
        assert tries.wait_s("10.0.0.1") == 0
        tries.wrong("10.0.0.1")
        clock.now += 5
    assert tries.wait_s("10.0.0.1") == TRIES_S - 5 * TRIES
    assert tries.wait_s("10.0.0.2") == 0
    clock.now += TRIES_S - 5 * TRIES
    assert tries.wait_s("10.0.0.1") == 0


def test_a_right_password_takes_its_count_back():
    tries = Tries(Ticks())
    for _ in range(3 * TRIES):
        tries.wrong("10.0.0.1")
        tries.right("10.0.0.1")
    assert tries.wait_s("10.0.0.1") == 0


def test_addresses_of_one_network_count_as_one():
    tries = Tries(Ticks())
    for n in range(TRIES):
        tries.wrong(f"2001:db8::{n}")
    assert tries.wait_s("2001:db8::ffff") > 0
    assert tries.wait_s("2001:db8:0:1::1") == 0


def test_the_memory_of_addresses_is_bounded():
    tries = Tries(Ticks())
    for n in range(10_001):
        tries.wrong(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(tries._at) == 10_000


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example", "[", "a b", "user@evil.example"]
)
def test_a_strange_name_is_not_known(host):
    assert not _is_known(host, frozenset({"desk.example"}))


@pytest.mark.parametrize("host", ["localhost:8501", "desk.example.", "192.168.1.2", "[::1]:8501"])
def test_own_names_and_addresses_are_known(host):
    assert _is_known(host, frozenset({"desk.example"}))


@pytest.mark.parametrize(
    "target",
    ["", "https://evil.example", "//evil.example", "//[", "/\\evil", "javascript:x", "/a\nb", "x["],
)
def test_a_login_leads_nowhere_else(target):
    assert _own_page(target) == "/"
