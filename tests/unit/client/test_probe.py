"""The upgrade probe: whether a socket opens, and why not."""

from __future__ import annotations

import socket

from tests import miniature
from toolkit.client import Client
from toolkit.client.stream import upgrade
from toolkit.service import Config, running
from toolkit.wire.exchange import Failure, Response
from toolkit.wire.limits import Limits

MARKET = "/api/v1/data/ws"


def test_a_socket_that_opens_a_plan_without_it_a_wrong_key_and_a_path_without_one() -> None:
    with running(Config(miniature.source(), port=0)) as service:
        statuses = []
        for key, path in (
            ("demo-pro", MARKET),
            ("demo-free", MARKET),
            ("wrong", MARKET),
            ("demo-pro", "/api/v1/data/none/ws"),
            ("demo-pro", "/api/v1/data/schemas"),
        ):
            with Client(service.base_url, key) as client:
                found = upgrade(client, path)
            assert isinstance(found, Response)
            statuses.append(found.status)
    assert statuses[:4] == [101, 403, 401, 404]
    assert statuses[4] != 101


def test_the_key_is_struck_out_of_what_a_service_says_back(scripted) -> None:
    scripted.answer(403, {"detail": "sekrit-4711 may not"}, headers={"X-Key": "sekrit-4711"})
    with Client(scripted.base_url, "sekrit-4711") as client:
        found = upgrade(client, MARKET)
    assert isinstance(found, Response)
    assert scripted.asked[0].headers["authorization"] == "Bearer sekrit-4711"
    assert b"*** may not" in found.body
    assert found.headers["x-key"] == "***"


def test_no_answer_is_a_failure_with_its_reason(scripted) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client(f"http://127.0.0.1:{port}", "k") as client:
        nobody = upgrade(client, MARKET)
    assert isinstance(nobody, Failure)
    assert "refused" in nobody.reason
    assert nobody.url == f"http://127.0.0.1:{port}{MARKET}"
    scripted.answer(status=0)
    with Client(scripted.base_url, "k") as client:
        cut = upgrade(client, MARKET)
    assert isinstance(cut, Failure)
    scripted.replies.clear()
    scripted.answer(body=b"{" * 100, sent=0, stalls=True, headers={"Transfer-Encoding": "chunked"})
    with Client(scripted.base_url, "k", limits=Limits(silence_s=0.2)) as client:
        mute = upgrade(client, MARKET)
    assert isinstance(mute, Failure)
    assert "timed out" in mute.reason
