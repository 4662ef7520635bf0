"""Section 4.3, WebSockets, and what sections 1, 4.1, 4.5, 5, 6 and 8 say of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx
import pytest

from toolkit.market import Plan
from toolkit.service import Config, Owner, Simulated, SpedClock, running

from .conftest import DATA, LEG, LEGS
from .sockets import MARKET, PATHS, STREAMS, heard, upgraded

OWNERS = (
    Owner("ann", Plan.PRO, ("ann-1", "ann-2")),
    *(Owner(plan, plan, (f"demo-{plan}",)) for plan in Plan),
)


@pytest.fixture(scope="module")
def clock() -> SpedClock:
    return SpedClock(start=1_795_046_400, speed=300.0)


@pytest.fixture(scope="module")
def address(clock: SpedClock) -> Iterator[str]:
    """A service over a simulated market whose minutes last a fifth of a second."""
    config = Config(Simulated(7), port=0, clock=clock, owners=OWNERS, quota=1_000_000)
    with running(config) as service:
        yield service.base_url


@pytest.mark.parametrize("path", PATHS)
def test_a_standard_server_side_client_gets_through_without_a_browser_check(
    address: str, path: str
) -> None:
    with upgraded(address, path) as socket:
        assert socket.response is not None
        assert socket.response.status_code == 101
        assert socket.ping().wait(10)


@pytest.mark.parametrize(
    ("channel", "query"), [("price", LEG), ("spread", {**LEGS, "sell_exchange": "AURORA"})]
)
def test_the_market_socket_serves_subscriptions(
    address: str, channel: str, query: dict[str, str]
) -> None:
    query = {**query, "sell_market": "futures"} if channel == "spread" else query
    with upgraded(address, MARKET) as socket:
        socket.send(json.dumps({"action": "subscribe", "id": 1, "channel": channel, **query}))
        assert heard(socket) == {"type": "subscribed", "id": 1}
        said = heard(socket)
    assert (said["type"], said["id"]) == (channel, 1)
    assert said["item"]["ts"] % 60 == 0


def test_history_actions_take_the_query_fields_of_rest_and_give_its_typed_messages(
    address: str,
) -> None:
    query = {**LEG, "end_time": 1_795_046_400, "limit": 3}
    rest = httpx.get(
        f"{address}{DATA}/history/price", params=query, headers={"apikey": "demo-pro"}
    ).json()
    with upgraded(address, MARKET) as socket:
        socket.send(json.dumps({"action": "history/price", "id": "h", **query}))
        said = heard(socket)
    assert len(said["items"]) == 3
    assert said == {**rest, "id": "h"}


def test_every_rest_route_is_an_action_whose_message_is_the_rest_body(
    rail: httpx.Client, route: tuple[str, dict[str, str]]
) -> None:
    path, query = route
    body = rail.get(path, params=query, headers={"apikey": "demo-pro"}).json()
    with upgraded(str(rail.base_url).rstrip("/"), MARKET) as socket:
        action = {"action": path.removeprefix(f"{DATA}/"), "id": 7, **query}
        socket.send(json.dumps(action))
        assert heard(socket) == {**body, "id": 7}


@pytest.mark.parametrize(("path", "schema"), STREAMS.items())
@pytest.mark.slow
def test_each_event_stream_carries_the_canonical_documents_of_its_family(
    path: str, schema: str
) -> None:
    clock = SpedClock(start=1_795_046_400, speed=10_000.0)
    with (
        running(Config(Simulated(7), port=0, clock=clock)) as service,
        upgraded(service.base_url, path) as socket,
    ):
        documents = [heard(socket) for _ in range(3)]
        family = schema.split(".")[1]
        window = {"start_time": documents[0]["ts"], "end_time": documents[-1]["ts"] + 1}
        log = httpx.get(
            f"{service.base_url}{DATA}/history/{family}-events",
            params={**window, "limit": 500},
            headers={"apikey": "demo-pro"},
            timeout=60,
        ).json()["items"]
    assert {document["schema"] for document in documents} == {schema}
    assert all(document in log for document in documents)
    assert not any("trace" in document for document in documents)


@pytest.mark.slow
def test_open_events_of_spreads_are_delayed_30_s_on_builder_and_live_on_pro(
    address: str, clock: SpedClock
) -> None:
    youngest = {}
    for plan in ("builder", "pro"):
        ages = []
        with upgraded(address, "/api/v1/spreadbot/ws", [("apikey", f"demo-{plan}")]) as socket:
            while len(ages) < 5:
                document = heard(socket)
                if document["event_type"] == "spread.opened":
                    ages.append(clock.now() - document["ts"])
        youngest[plan] = min(ages)
    assert youngest["builder"] >= 30
    assert youngest["pro"] < youngest["builder"]
