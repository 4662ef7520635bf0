"""The key: sent in one header to one host, and found nowhere else."""

from __future__ import annotations

import json
import logging
import socket
import threading
import traceback
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.client import Client
from toolkit.errors import InputError, KeyRefusedError, RailError, ServiceError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Trajectory
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.secrets import SHORTEST_STRUCK, Secrets
from toolkit.workspace import Settings

KEY = 'k_"live"/7Q\\x'  # one that JSON has to escape
SCHEMAS = {"source": {"kind": "live", "id": "x"}}
ONCE = RetryPolicy(attempts=1)


def forms_of(key: str) -> list[str]:
    """The key as it may stand in a text: plainly, in JSON's two common spellings, in a repr."""
    plain = json.dumps(key)[1:-1]
    return [key, plain, plain.replace("/", "\\/"), repr(key)[1:-1]]


def shown_in(text: str, key: str) -> list[str]:
    return [form for form in forms_of(key) if form in text]


def test_the_key_travels_as_a_bearer_and_nowhere_else(scripted, ask) -> None:
    scripted.answer(body=SCHEMAS)
    ask(api_key=f" {KEY}\n").client.profile()
    (asked,) = scripted.asked
    assert asked.headers.pop("authorization") == f"Bearer {KEY}"
    assert "apikey" not in asked.headers
    assert not shown_in(f"{asked.headers} {asked.path} {asked.query}", KEY)


SPELLINGS = {
    "plain": lambda key: json.dumps(key)[1:-1],
    "slashes escaped": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "in hex": lambda key: "".join(f"\\u{ord(c):04X}" for c in key),
}
ECHOES = {name: f'{{"detail":"no such key: {of(KEY)}"}}'.encode() for name, of in SPELLINGS.items()}
ECHOES |= {
    "in an error": json.dumps({"errors": [{"parameter": KEY, "detail": KEY}]}).encode(),
    "in a title": json.dumps({"title": KEY * 3}).encode(),
    "no json": f"<p>{KEY}</p>".encode(),
    "cut": json.dumps({"detail": KEY}).encode()[:-1],
    "not utf-8": b"\xff" + KEY.encode(),
}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Everything that is logged, by whomever, at DEBUG."""
    for name in ("", "httpx", "httpcore", "httpcore.http11", "httpcore.connection"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.mark.parametrize("echo", ECHOES)
@pytest.mark.parametrize("status", [200, 301, 400, 401, 429, 503])
def test_no_record_repr_url_or_traceback_has_the_key_also_where_the_service_echoes_it(
    scripted, ask, logged, status, echo
) -> None:
    scripted.answer(body=SCHEMAS)
    scripted.answer(status, ECHOES[echo])
    client = ask(retries=ONCE, api_key=KEY).client
    with pytest.raises(ServiceError) as caught:
        client.history(Trajectory.parse("BTC_USD:A.spot"), 0, 60)
    error = caught.value
    texts = [
        "".join(traceback.format_exception(error)),
        repr(error),
        repr(vars(error)),
        repr(client),
        str(client),
        error.url,
        *(f"{r.getMessage()} {r.args!r} {r.exc_text}" for r in logged.records),
    ]
    assert [form for text in texts for form in shown_in(text, KEY)] == []
    assert any(r.name.startswith("httpcore") for r in logged.records), "nothing was logged"
    if status == 400 and echo in SPELLINGS:
        assert error.detail == "no such key: ***"


def test_an_answer_that_is_not_http_is_told_without_the_key_it_echoes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = f"HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n".encode()
        thread = threading.Thread(target=answer_once, args=(listener, line))
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with Client(address, KEY, retries=ONCE) as client, pytest.raises(RailError) as caught:
            client.profile()
        thread.join()
    assert "RemoteProtocolError" in str(caught.value)
    assert not shown_in("".join(traceback.format_exception(caught.value)), KEY)


def answer_once(listener: socket.socket, answer: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(answer)


@settings(deadline=None)
@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=12))
def test_every_spelling_of_a_key_is_found(key) -> None:
    for form in (*forms_of(key)[:3], "".join(f"\\u{ord(c):04x}" for c in key)):
        assert Secrets([key]).hidden(f"é{form}é") == "é***é"
        struck = Secrets([key]).struck(f"é{form}é".encode()).decode()
        assert struck == ("é***é" if len(key) >= SHORTEST_STRUCK else f"é{form}é")


@pytest.mark.parametrize(
    "key",
    ["", "   ", "\n", "s3cret two", "s3cret\nX-Evil: 1", "s3\rcret", "s3crét", "s3cret\0", "🔑"],
)
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(key) -> None:
    with pytest.raises(InputError, match=r"^api_key: '\*\*\*' is not allowed") as caught:
        Client("http://127.0.0.1:9", key)
    shown = traceback.format_exception_only(caught.value), repr(vars(caught.value))
    assert "s3" not in str(shown)
    assert "🔑" not in str(shown)


def test_a_refused_key_names_the_setting_and_not_the_key(scripted, ask) -> None:
    scripted.answer(401, {"detail": f"{KEY} is not valid"})
    with pytest.raises(KeyRefusedError, match="RAIL_API_KEY") as caught:
        ask(api_key=KEY).client.profile()
    assert caught.value.detail == "*** is not valid"


def test_an_address_that_no_request_can_be_made_of_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"^base_url: ") as caught:
        Client("http://é\u0301\u0300\ufffd.example", KEY)
    assert not shown_in("".join(traceback.format_exception(caught.value)), KEY)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_that_comes_back_in_rows_documents_and_snapshots_is_struck_out_before_it_is_kept(
    scripted, ask, caplog, spelling
) -> None:
    echo = SPELLINGS[spelling](KEY)
    row = f'{{"ts":60,"price":1.5,"mark_price":null,"volume":2,"asked_by":"{echo}"}}'
    event = f'{{"event_id":"e1","ts":60,"trace":"key {echo}"}}'
    scripted.answer(body=SCHEMAS)
    scripted.answer(body=f'{{"items":[{row}],"next_end_time":null}}'.encode())
    client = ask(retries=ONCE, api_key=KEY).client
    frame = next(client.pages(Trajectory.parse("BTC_USD:A.spot"), Interval(0, 120))).frame
    assert frame["extra"].to_list() == ['{"asked_by":"***"}']
    scripted.answer(body=f'{{"items":[{event}],"has_more":false}}'.encode())
    scripted.replies.popleft()
    page = next(client.event_pages(EventFamily.SPREAD, Interval(0, 120)))
    assert page.frame["document"].to_list() == ['{"event_id":"e1","ts":60,"trace":"key ***"}']
    scripted.answer(body=f'{{"by":"{echo}"}}'.encode())
    scripted.replies.popleft()
    assert client.snapshot("activity") == b'{"by":"***"}'
    assert len([r for r in caplog.records if "sends the key back" in r.getMessage()]) == 1


def test_data_in_which_no_key_is_stays_as_it_came() -> None:
    data = b'{"note":"\\u006b and \\/ and \xff"}'
    assert Secrets([KEY, "short"]).struck(data) is data
    assert Secrets(["short"]).struck(b"short") == b"short"
    assert Secrets([]).struck(data) is data
    assert Secrets([]).hidden("text") == "text"
    assert Secrets(["abcd-1234"]).struck(rb'"\\abcd-1234"') == rb'"\\***"'


def failing(case: str) -> None:
    """Have the client fail, with the key in this frame alone."""
    client = Client("http://127.0.0.1:9", KEY, retries=ONCE)
    works: dict[str, Callable[[], object]] = {
        "no address": lambda: Client("https://rail.invalid:99999", KEY),
        "no key": lambda: Client("https://rail.invalid", f"{KEY} {KEY}"),
        "no proxy": lambda: Client("https://rail.invalid", KEY),
        "no answer": client.profile,
        "no settings": lambda: Settings.read(
            {"RAIL_API_KEY": KEY}, base_url="https://rail.invalid", profile="none.toml"
        ),
        "no environment": lambda: Settings.read(base_url="ftp://rail.invalid"),
    }
    works[case]()


@pytest.mark.parametrize(
    "case", ["no address", "no key", "no proxy", "no answer", "no settings", "no environment"]
)
def test_no_variable_of_a_frame_of_ours_shows_the_key(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAIL_API_KEY", KEY)
    if case == "no proxy":
        monkeypatch.setenv("https_proxy", "socks5://h")
    with pytest.raises(RailError) as caught:
        failing(case)
    told = traceback.TracebackException.from_exception(caught.value, capture_locals=True)
    ours = [frame for frame in told.stack if frame.filename != __file__]
    variables = "".join(f"{frame.locals}" for frame in ours if frame.name != "<lambda>")
    assert ours
    assert not shown_in(variables, KEY)


def test_no_variable_of_a_client_shows_the_key() -> None:
    client = Client("http://127.0.0.1:9", KEY)
    assert not shown_in(f"{vars(client)} {vars(client._http)} {client._key}", KEY)
