"""The door's memory: sessions that end, tries that are counted, names and ways that are its own."""

from __future__ import annotations

import re

import httpx
import pytest
from argon2 import PasswordHasher
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.counting import Ticks
from toolkit.dashboard.door import SESSION_S, TRIES, TRIES_S, Door, Tries, _is_known, _own_page
from toolkit.serving import ServerSettings, run_in_thread
from toolkit.workspace.login import PasswordFile

PASSWORD = "correct horse battery staple"


async def inside(scope, receive, send):
    """What is behind the door: it says its own name, and echoes on a socket."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            await send({"type": "websocket.send", "text": message["text"]})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"inside"})


@pytest.fixture
def clock():
    return Ticks()


@pytest.fixture
def client(tmp_path, clock):
    kept = tmp_path / "password"
    cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # the usual takes 0.15 s
    kept.write_text(cheap.hash(PASSWORD))
    door = Door(inside, PasswordFile(kept), ["desk.example"], clock)
    settings = ServerSettings(door, grace_s=1, websockets=True)
    with run_in_thread(settings, "127.0.0.1", 0) as url, httpx.Client(base_url=url) as client:
        yield client


def log_in(client):
    answer = client.post("/login", data={"password": PASSWORD, "next": "/"})
    assert answer.status_code == 303
    return client.cookies["rail_session"]


def log_out(client, token=None):
    """Send the form that the page of leaving has, or one with another token."""
    found = re.search('name="token" value="([^"]+)"', client.get("/logout").text)
    return client.post("/logout", data={"token": token or found[1]}).status_code


def test_a_session_ends_after_twelve_hours_and_its_socket_with_it(client, clock):
    token = log_in(client)
    address = str(client.base_url).replace("http://", "ws://")
    clock.now += SESSION_S - 1
    assert client.get("/").text == "inside"
    with connect(address, additional_headers={"Cookie": f"rail_session={token}"}) as socket:
        socket.send("a")
        assert socket.recv() == "a"
        clock.now += 1
        socket.send("b")
        with pytest.raises(ConnectionClosed):
            socket.recv()
    assert client.get("/").status_code == 401


def test_a_page_of_another_site_logs_nobody_out_and_what_was_ended_opens_nothing(client):
    token = log_in(client)
    assert client.post("/logout").status_code == 403
    assert log_out(client, "guess") == 403
    assert client.get("/").text == "inside"
    assert log_out(client) == 303
    assert "rail_session" not in client.cookies
    client.cookies.set("rail_session", token)
    assert client.get("/").status_code == 401
    assert client.post("/logout").status_code == 401


def test_each_login_has_a_session_of_its_own_and_none_that_was_brought_along(client):
    client.cookies.set("rail_session", "brought-along", "127.0.0.1")
    first = log_in(client)
    assert client.get("/").text == "inside"
    second = log_in(client)
    assert len({"brought-along", first, second}) == 3


@pytest.mark.parametrize("forged", ["", "x", "null", "e30=.aaaa.bbbb"])
def test_what_the_door_has_not_signed_is_no_session(client, forged):
    signed = log_in(client)
    for cookie in (forged, signed[:-1], "e30=" + signed[4:]):
        client.cookies.clear()
        client.cookies.set("rail_session", cookie)
        assert client.get("/").status_code == 401


def test_every_answer_says_what_a_page_may_do_and_who_may_frame_it(client):
    asked = client.get("/")
    log_in(client)
    for answer, framed in ((asked, "'none'"), (client.get("/"), "'self'")):
        assert f"frame-ancestors {framed}" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "x-frame-options" in answer.headers


def test_a_form_that_is_too_long_is_none_of_the_dashboard(client):
    form = {"password": PASSWORD, "next": "x" * 10_000}
    assert client.post("/login", data=form).status_code == 401


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
    tries = Tries(Ticks())
    for _ in range(3 * TRIES):
        tries.wrong("10.0.0.1")
        tries.right("10.0.0.1")
    assert tries.wait_s("10.0.0.1") == 0


def test_addresses_of_one_network_count_as_one_and_their_memory_is_bounded():
    tries = Tries(Ticks())
    for n in range(TRIES):
        tries.wrong(f"2001:db8::{n}")
    assert tries.wait_s("2001:db8::ffff") > 0
    assert tries.wait_s("2001:db8:0:1::1") == 0
    for n in range(10_001):
        tries.wrong(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}")
    assert len(tries._at) == 10_000


def test_own_names_and_addresses_alone_are_known_and_a_login_leads_nowhere_else():
    own = frozenset({"desk.example"})
    for host in ("", "evil.example", "127.0.0.1.evil.example", "[", "a b", "user@evil.example"):
        assert not _is_known(host, own)
    for host in ("localhost:8501", "desk.example.", "DESK.example", "192.168.1.2", "[::1]:8501"):
        assert _is_known(host, own)
    elsewhere = ("https://evil.example", "//evil.example", "//[", "/\\evil", "javascript:x")
    assert _own_page("/spreads?symbol=BTC") == "/spreads?symbol=BTC"
    assert {_own_page(target) for target in ("", *elsewhere, "/a\nb", "x[")} == {"/"}
