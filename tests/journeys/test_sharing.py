"""`rail app --share` over sockets: nothing of the store without the password, all of it with it."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from toolkit.dashboard.link import PAGES

from .conftest import RAIL
from .dashboard_process import App, app_over

PASSWORD = "correct horse battery staple"
KEY = "key-that-no-browser-may-see"
STORE = Path("rail.duckdb")
HELD = b"BTC_USDT"
"""What every page with data shows, and what no answer before the login may hold."""


@pytest.fixture(scope="module")
def folder(day_of_market: Path) -> Path:
    """The folder of the store, and of the hash of the password."""
    environment = os.environ | config(day_of_market)
    argv = [RAIL, "app", "--set-password"]
    subprocess.run(argv, input=f"{PASSWORD}\n", text=True, env=environment, check=True)
    return day_of_market


def config(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "config"), "HOME": str(folder)}


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[App]:
    given = config(folder) | {"RAIL_API_KEY": KEY}
    named = ("--share", "--host", "127.0.0.1", "--name", "desk.example", "--proxy", "127.0.0.1")
    with app_over(STORE, folder, *named, **given) as app:
        yield app


def ask(
    app: App, method: str, path: str, body: str | None = None, **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """What the dashboard answers: the status, the headers and the body."""
    connection = http.client.HTTPConnection(app.address.removeprefix("http://"), timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        named["Content-Type"] = "application/x-www-form-urlencoded"
    try:
        connection.request(method, path, body, named)
        answer = connection.getresponse()
        return answer.status, {n.lower(): v for n, v in answer.getheaders()}, answer.read()
    finally:
        connection.close()


def log_in(app: App, password: str, target: str = "/", **headers: str) -> tuple[int, str, str]:
    """Send the form: the status, the cookie and where it leads."""
    form = urlencode({"password": password, "next": target})
    status, answered, body = ask(app, "POST", "/login", form, **headers)
    assert HELD not in body
    cookie = answered.get("set-cookie", "").partition(";")[0]
    return status, cookie, answered.get("location", "")


def socket_of(app: App, cookie: str = "", **headers: str) -> ClientConnection:
    address = app.address.replace("http://", "ws://") + "/_stcore/stream"
    return connect(
        address,
        origin=None,
        subprotocols=[Subprotocol("streamlit")],
        additional_headers={"Cookie": cookie, **headers},
        max_size=None,
    )


def frames_of(socket: ClientConnection, page: str) -> bytes:
    """All that a page's script sends to a browser, until it has ended."""
    asked = BackMsg()
    asked.rerun_script.query_string = ""
    asked.rerun_script.page_name = page
    socket.send(asked.SerializeToString())
    seen = b""
    while True:
        frame = socket.recv(timeout=120)
        assert isinstance(frame, bytes)
        seen += frame
        if ForwardMsg.FromString(frame).WhichOneof("type") == "script_finished":
            return seen


@pytest.fixture(scope="module")
def cookie(shared: App) -> str:
    status, found, _ = log_in(shared, PASSWORD)
    assert status == 303
    return found


PATHS = ["/", *(f"/{name}" for name in PAGES), "/media/x.csv", "/_stcore/host-config", "/static/x"]


@pytest.mark.parametrize("path", PATHS)
def test_without_a_login_every_address_answers_with_the_form(shared: App, path: str) -> None:
    status, headers, body = ask(shared, "GET", f"{path}?symbols=A")
    assert status == 401
    assert b'type="password"' in body
    assert HELD not in body
    assert f'value="{path}?symbols=A"'.encode() in body
    assert headers["cache-control"] == "no-store"
    assert "default-src 'none'" in headers["content-security-policy"]


@pytest.mark.parametrize("cookie", ["", "rail_session=guess", "rail_session=", "x"])
def test_without_a_login_no_socket_opens(shared: App, cookie: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        socket_of(shared, cookie)
    assert refused.value.response.status_code == 403
    assert HELD not in (refused.value.response.body or b"")


def test_no_interface_of_agents_and_no_wrong_password_opens_anything(shared: App) -> None:
    status, _, body = ask(shared, "POST", "/_stcore/agent/interact", json.dumps({"page": ""}))
    assert (status, body) == (401, b"log in first")
    assert log_in(shared, "wrong horse battery staple")[:2] == (401, "")


def test_the_password_opens_every_page_and_no_frame_has_the_key(shared: App, cookie: str) -> None:
    seen = b""
    with socket_of(shared, cookie) as socket:
        for name in PAGES:
            seen += frames_of(socket, "" if name == "overview" else name)
    assert HELD in seen
    assert KEY.encode() not in seen
    assert PASSWORD.encode() not in seen
    status, _, body = ask(shared, "GET", "/", Cookie=cookie)
    assert status == 200
    assert b"<title>Streamlit</title>" in body


def test_a_login_leads_to_a_page_and_nowhere_else_and_its_cookie_is_for_this_site_alone(
    shared: App,
) -> None:
    assert log_in(shared, PASSWORD, "/spreads?symbols=BTC_USDT")[2] == "/spreads?symbols=BTC_USDT"
    assert log_in(shared, PASSWORD, "//evil.example")[2] == "/"
    form = urlencode({"password": PASSWORD, "next": "/"})
    plain = ask(shared, "POST", "/login", form)[1]["set-cookie"]
    behind = ask(shared, "POST", "/login", form, X_Forwarded_Proto="https")[1]["set-cookie"]
    flags = {"path=/", "max-age=43200", "httponly", "samesite=lax"}
    assert set(plain.lower().split("; ")[1:]) == flags
    assert set(behind.lower().split("; ")[1:]) == flags | {"secure"}


def test_logging_out_ends_the_session_and_its_sockets(shared: App) -> None:
    cookie = log_in(shared, PASSWORD)[1]
    with socket_of(shared, cookie) as socket:
        frames_of(socket, "")
        page = ask(shared, "GET", "/logout", Cookie=cookie)[2].decode()
        token = page.partition('name="token" value="')[2].partition('"')[0]
        assert ask(shared, "POST", "/logout", "token=guess", Cookie=cookie)[0] == 403
        assert ask(shared, "POST", "/logout", f"token={token}", Cookie=cookie)[0] == 303
        with pytest.raises(ConnectionClosed):
            frames_of(socket, "")
    assert ask(shared, "GET", "/", Cookie=cookie)[0] == 401


def test_names_origins_and_forms_of_others_are_refused(shared: App, cookie: str) -> None:
    assert ask(shared, "GET", "/", Host="evil.example", Cookie=cookie)[0] == 421
    assert ask(shared, "GET", "/", Host="desk.example", Cookie=cookie)[0] == 200
    for origin in ("https://evil.example", "http://["):
        assert ask(shared, "GET", "/", Origin=origin, Cookie=cookie)[0] == 403
    with pytest.raises(InvalidStatus):
        socket_of(shared, cookie, Origin="https://evil.example")
    there = {"X_Forwarded_For": "203.0.113.11"}
    assert ask(shared, "GET", "//[", **there)[0] == 401
    assert ask(shared, "POST", "/login", "a=1&b=2&c=3&d=4&e=5", **there)[0] == 401
    assert log_in(shared, "wrong password", "http://[", **there)[0] == 401


def test_an_address_that_is_wrong_five_times_has_to_wait_and_others_have_not(shared: App) -> None:
    there = {"X_Forwarded_For": "203.0.113.9"}
    tries = [log_in(shared, f"wrong password {n}", **there)[0] for n in range(5)]
    assert tries == [401] * 5
    assert log_in(shared, PASSWORD, **there)[0] == 429
    assert log_in(shared, PASSWORD, X_Forwarded_For="203.0.113.10")[0] == 303


def test_what_an_address_says_of_itself_counts_from_a_named_proxy_alone(folder: Path) -> None:
    with app_over(STORE, folder, "--share", "--host", "127.0.0.1", **config(folder)) as app:
        tries = [
            log_in(app, f"wrong password {n}", X_Forwarded_For=f"203.0.113.{n}")[0]
            for n in range(6)
        ]
    assert tries == [401] * 5 + [429]


@pytest.mark.parametrize("begun", ["GET / HT", "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_request_that_does_not_come_whole_is_dropped(shared: App, begun: str) -> None:
    if begun.startswith("POST"):
        begun += "Content-Length: 100\r\n\r\npassword="
    host, _, port = shared.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(begun.encode())
        assert connection.recv(1) == b""


def test_no_answer_of_the_command_or_its_output_has_the_password(shared: App) -> None:
    argv = Path(f"/proc/{shared.process.pid}/cmdline").read_bytes()
    assert PASSWORD.encode() not in argv
    said = shared.output.read_text()
    assert PASSWORD not in said
    assert KEY not in said
    assert "http is read on the way: put TLS in front" in said


def test_a_dashboard_of_this_machine_opens_without_a_login_and_under_its_own_names(
    folder: Path,
) -> None:
    with app_over(STORE, folder) as app:
        assert ask(app, "GET", "/")[0] == 200
        with socket_of(app) as socket:
            assert HELD in frames_of(socket, "spreads")
        with pytest.raises(InvalidStatus):
            socket_of(app, Host="evil.example")
