from __future__ import annotations

import itertools
import json
import logging
import socket as sockets
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.adversary import Adversary, RestSwitches, adverse
from toolkit.market import EventFamily, Plan, Trajectory
from toolkit.service import Config, Owner, Simulated, SpedClock, running
from toolkit.service.accounts import DEMO_OWNERS
from toolkit.service.api.calls import Pages
from toolkit.service.events.archive import EventArchive
from toolkit.service.transports.sockets import KEPT_MESSAGES, MOST_SUBSCRIPTIONS, STREAMS, Listener

from .sockets import PAIR, PRICE, ask, close_code, heard, opened

MARKET = "/api/v1/data/ws"
SPREADS, SPLASHES = "/api/v1/spreadbot/ws", "/api/v1/xbot/ws"
START = 1_795_046_400
SOURCE = Simulated(7)


def config(**options: object) -> Config:
    """A service whose minutes last a tenth of a second."""
    settings = {"clock": SpedClock(start=START, speed=600.0), "quota": 10**6, **options}
    return Config(SOURCE, port=0, **settings)


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with running(config()) as service:
        yield service.base_url


@pytest.mark.parametrize("path", [MARKET, *STREAMS])
@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("", (401, "unauthorized")),
        ("wrong", (401, "unauthorized")),
        ("demo-free", (403, "tier_required")),
    ],
)
def test_a_refused_upgrade_is_a_plain_http_answer_and_no_complaint_in_the_log(
    base_url, path, key, told, caplog
) -> None:
    with pytest.raises(InvalidStatus) as refused, opened(base_url, path, key):
        pass
    response = refused.value.response
    assert (response.status_code, json.loads(response.body)["code"]) == told
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["www-authenticate"].startswith('Bearer realm="machine-rail"')
    assert [record.message for record in caplog.records if record.levelname != "DEBUG"] == []


@pytest.mark.slow
def test_at_debug_level_the_service_never_logs_the_key_of_an_upgrade(caplog, capfd) -> None:
    caplog.set_level(logging.DEBUG)
    owners = (Owner("ann", Plan.PRO, ("very-secret-77",)),)
    with running(config(owners=owners)) as service:
        with opened(service.base_url, SPREADS, "very-secret-77") as socket:
            heard(socket)
        for path in (SPREADS, f"{SPREADS}?apikey=very-secret-77"):
            with pytest.raises(InvalidStatus), opened(service.base_url, path, "very-secret-78"):
                pass
    theirs = [r.getMessage() for r in caplog.records if r.name != "websockets.client"]
    assert not [line for line in theirs if "very-secret" in line]
    assert "very-secret" not in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("channel", "fields"), [("price", PRICE), ("spread", PAIR), ("funding", PAIR)]
)
@pytest.mark.slow
def test_a_subscription_brings_each_row_when_it_is_over_as_history_shows_it(channel, fields):
    clock = SpedClock(start=START + 3_000, speed=600.0 if channel != "funding" else 30_000.0)
    with (
        running(config(clock=clock)) as service,
        opened(service.base_url, MARKET) as socket,
        httpx.Client(base_url=service.base_url, headers={"apikey": "demo-pro"}) as client,
    ):
        asked = {"action": "subscribe", "id": "mine", "channel": channel, **fields}
        assert ask(socket, **asked) == {"type": "subscribed", "id": "mine"}
        messages = [heard(socket) for _ in range(3)]
        query = {**fields, "end_time": str(messages[-1]["item"]["ts"] + 1), "limit": "3"}
        items = client.get(f"/api/v1/data/history/{channel}", params=query).json()["items"]
    assert messages == [{"type": channel, "id": "mine", "item": item} for item in items[::-1]]


def test_an_ended_subscription_brings_nothing_more(base_url: str) -> None:
    with opened(base_url, MARKET) as socket:
        ask(socket, action="subscribe", id=1, channel="price", **PRICE)
        heard(socket)
        socket.send(json.dumps({"action": "unsubscribe", "id": 1}))
        while (said := heard(socket))["type"] != "unsubscribed":
            assert said["type"] == "price"
        with pytest.raises(TimeoutError):
            socket.recv(timeout=0.5)


def test_an_action_spends_quota_as_a_request_does() -> None:
    with running(config(quota=2)) as service, opened(service.base_url, MARKET) as socket:
        assert ask(socket, action="schemas", id=1)["type"] == "schemas"
        refused = ask(socket, action="schemas", id=2)
    assert (refused["type"], refused["id"], refused["status"]) == ("error", 2, 429)
    assert refused["code"] == "quota_exhausted"


SUBSCRIBE = {"action": "subscribe", "id": 1, "channel": "price", **PRICE}


@pytest.mark.parametrize(
    ("message", "parameter"),
    [
        ({"action": "dance", "id": 1}, "action"),
        ({"id": 1}, "action"),
        ({**SUBSCRIBE, "id": None}, "id"),
        ({**SUBSCRIBE, "id": [1]}, "id"),
        ({**SUBSCRIBE, "channel": "news"}, "channel"),
        ({**SUBSCRIBE, "channel": ["price"]}, "channel"),
        ({**SUBSCRIBE, "exchange": "NOWHERE"}, "exchange"),
        ({**SUBSCRIBE, "symbol": {"base": "BTC"}}, "symbol"),
        ({"action": "subscribe", "id": 1, "channel": "spread", **PAIR, "buy_market": "x"}, "buy_m"),
        ({"action": "unsubscribe", "id": 9}, "id"),
        ({"action": "history/price", "id": 1, **PRICE, "limit": 10**9}, "limit"),
    ],
)
def test_a_message_that_is_wrong_is_answered_with_what_is_wrong_and_the_socket_lives(
    base_url: str, message: dict[str, object], parameter: str
) -> None:
    with opened(base_url, MARKET) as socket:
        said = ask(socket, **message)
        assert (said["type"], said["status"], said["id"]) == ("error", 400, message["id"])
        assert said["errors"][0]["parameter"].startswith(parameter)
        assert ask(socket, action="schemas")["type"] == "schemas"


@pytest.mark.parametrize("text", ["", "x", "[]", "1", '{"a":', "[" * 100_000, b"\xff\xfe"])
def test_what_is_no_json_object_is_answered_as_a_bad_request(base_url, text) -> None:
    with opened(base_url, MARKET) as socket:
        socket.send(text)
        said = heard(socket)
        assert (said["type"], said["code"], said["id"]) == ("error", "bad_request", None)
        assert ask(socket, action="schemas")["type"] == "schemas"


def test_a_connection_has_so_many_subscriptions_and_no_more(base_url: str) -> None:
    with opened(base_url, MARKET, max_queue=None) as socket:
        for number in range(MOST_SUBSCRIPTIONS + 1):
            socket.send(json.dumps({**SUBSCRIBE, "channel": "funding", "id": number, **PAIR}))
        confirmed = 0
        while (said := heard(socket))["type"] != "error":
            confirmed += said["type"] == "subscribed"
    assert confirmed == MOST_SUBSCRIPTIONS
    assert (said["id"], said["errors"][0]["parameter"]) == (MOST_SUBSCRIPTIONS, "id")


@pytest.mark.parametrize(
    ("path", "family"),
    [(SPREADS, "spread"), (SPLASHES, "splash"), ("/api/v1/fundingbot/ws", "funding")],
)
@pytest.mark.slow
def test_an_event_stream_sends_each_document_of_the_archive_once_and_in_order(path, family) -> None:
    clock = SpedClock(start=START, speed=20_000.0)
    with running(config(clock=clock)) as service, opened(service.base_url, path) as socket:
        said = [socket.recv(timeout=60, decode=False) for _ in range(20)]
    first = json.loads(said[0])["ts"]
    documents = EventArchive(SOURCE).documents(EventFamily(family), first, first + 8 * 86_400)
    bodies = [body for _, body in documents]
    begin = bodies.index(said[0])
    assert said == bodies[begin : begin + 20]


@pytest.mark.slow
def test_who_does_not_read_is_closed_with_1013_and_costs_nobody_else_anything() -> None:
    clock = SpedClock(start=START, speed=60_000.0)
    with running(config(clock=clock)) as service:
        small = sockets.socket()
        small.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
        address = service.base_url.removeprefix("http://").split(":")
        small.connect((address[0], int(address[1])))
        with (
            opened(service.base_url, SPREADS) as quick,
            opened(service.base_url, MARKET, sock=small, max_queue=1, compression=None) as slow,
        ):
            history = {"action": "history/price", **PRICE, "limit": 10_000}
            for number in range(8):  # answers of a megabyte each, which nobody reads
                slow.send(json.dumps({**history, "id": number}))
            for number in range(500):
                slow.send(json.dumps({**SUBSCRIBE, "id": number}))
            for _ in range(500):
                heard(quick)
            assert close_code(slow) == 1013


def test_what_waits_for_one_reader_is_bounded() -> None:
    listener = Listener(DEMO_OWNERS[2], "demo-pro")
    listener.offer([b"{}"] * KEPT_MESSAGES)
    assert not listener.too_slow
    listener.offer([b"{}"])
    assert listener.too_slow
    assert listener.waiting.qsize() == KEPT_MESSAGES


def test_what_is_known_of_a_reader_does_not_show_the_key() -> None:
    assert "s3cret" not in repr(Listener(DEMO_OWNERS[2], "s3cret"))


def test_a_revoked_key_ends_its_open_sockets_with_1008(tmp_path: Path) -> None:
    file = tmp_path / "owners.toml"
    text = '[owners.ann]\nplan = "pro"\nkeys = ["k1", "k2"]\n'
    file.write_text(text)
    with (
        running(config(owners_file=file)) as service,
        opened(service.base_url, SPREADS, "k1") as revoked,
        opened(service.base_url, SPREADS, "k2") as kept,
    ):
        heard(revoked)
        file.write_text(text.replace('"k1", ', ""))
        assert close_code(revoked) == 1008
        heard(kept)


def test_a_service_that_stops_tells_its_readers() -> None:
    with running(config()) as service:
        connection = opened(service.base_url, SPREADS)
        socket = connection.__enter__()
    assert close_code(socket) in (1001, 1012)
    connection.__exit__(None, None, None)


@pytest.mark.slow
def test_an_adversary_closes_at_once_is_mute_or_drops() -> None:
    closing = config(application=adverse(Adversary(accept_then_close=4001)))
    with running(closing) as service, opened(service.base_url, SPREADS) as socket:
        assert close_code(socket) == 4001
    fault = Adversary(mute_sockets=1, drop_after_s=(0.5, 0.6))
    with running(config(application=adverse(fault))) as service:
        with opened(service.base_url, MARKET) as mute:
            mute.send('{"action":"schemas"}')
            assert close_code(mute) == 1011
        with opened(service.base_url, MARKET) as socket:
            assert ask(socket, action="schemas")["type"] == "schemas"
            assert close_code(socket) == 1011


@pytest.mark.slow
def test_an_adversary_repeats_and_shuffles_documents_but_loses_none() -> None:
    fault = Adversary(duplicate_share=0.3, reorder_share=0.3)
    clock = SpedClock(start=START, speed=3_000.0)
    faulty = config(clock=clock, application=adverse(fault))
    with running(faulty) as service, opened(service.base_url, SPREADS) as socket:
        said = [socket.recv(timeout=60, decode=False) for _ in range(500)]
    times = [json.loads(body)["ts_ms"] for body in said]
    whole_until = max(times) // 1000 - 3_600  # what is younger may still be on its way
    documents = EventArchive(SOURCE).documents(
        EventFamily.SPREAD, min(times) // 1000 + 1, whole_until
    )
    assert times != sorted(times)
    assert len({*said}) < len(said)
    assert len(documents) > 20
    assert {body for _, body in documents} <= {*said}


def test_a_row_is_fresh_in_the_look_in_which_it_is_over_and_in_no_other() -> None:
    pages = Pages(SOURCE)
    key = Trajectory.parse("BTC_USDT:AURORA.spot")
    looks = [START, START + 1, START + 59, START + 60, START + 61, START + 200]
    found = [pages.fresh(key, after, now) for after, now in itertools.pairwise(looks)]
    times = [[json.loads(row)["ts"] - START for row in rows] for rows in found]
    assert times == [[], [], [0], [], [60, 120]]


def test_an_adversary_of_rest_answers_history_actions_in_its_own_way_too() -> None:
    switches = RestSwitches(page_cap=2, renamed_fields={"price": "last"}, tie_s=120)
    query = {**PRICE, "end_time": START, "limit": 5}
    with (
        running(config(application=adverse(Adversary(rest=switches)))) as service,
        opened(service.base_url, MARKET) as socket,
    ):
        rest = httpx.get(
            f"{service.base_url}/api/v1/data/history/price",
            params=query,
            headers={"apikey": "demo-pro"},
        ).json()
        said = ask(socket, action="history/price", id=1, **query)
        subscribed = ask(socket, action="subscribe", id=2, channel="price", **PRICE)
    assert [item.keys() & {"price", "last"} for item in rest["items"]] == [{"last"}] * 2
    assert said == {**rest, "id": 1}
    assert subscribed == {"type": "subscribed", "id": 2}
