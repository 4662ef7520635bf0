"""machine-rail.md, section 6: families and channels of events, and their delays."""

from __future__ import annotations

import httpx
import pytest

from tests.unit.service.transports.sockets import heard, opened
from toolkit.service import Config, Simulated, SpedClock, running

from .conftest import DATA, FAMILIES, NOW, tools_listed
from .sockets import STREAMS

LIVE = "/api/v1/spreadbot/ws"


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_its_schema_in_its_log_its_tool_and_its_stream(
    market: httpx.Client, family: str
) -> None:
    window = {"start_time": NOW - 86_400, "end_time": NOW, "limit": 5}
    items = market.get(f"history/{family}-events", params=window).json()["items"]
    assert {item["schema"] for item in items} == {f"svc.{family}.v1"}
    base_url = str(market.base_url).split("/api")[0]
    listed = tools_listed(market, {"apikey": "demo-pro"}, f"{base_url}/mcp").json()
    names = [tool["name"] for tool in listed["result"]["tools"]]
    assert f"data.get_{family}_events" in names
    assert f"svc.{family}.v1" in STREAMS.values()


@pytest.mark.slow
def test_of_a_builder_s_stream_the_open_events_alone_are_delayed_and_of_a_pro_s_none() -> None:
    """It goes on until each kind of document was heard often enough to tell."""
    clock = SpedClock(start=1_795_046_400, speed=60.0)
    with running(Config(Simulated(7), port=0, clock=clock)) as service:
        for plan, openings_are_late in (("builder", True), ("pro", False)):
            openings: list[int] = []
            others: list[int] = []
            prompt = others if openings_are_late else openings
            with opened(service.base_url, LIVE, f"demo-{plan}") as socket:
                while not openings or min(prompt, default=30) >= 30:
                    document = heard(socket)
                    ages = openings if document["event_type"] == "spread.opened" else others
                    ages.append(clock.now() - document["ts"])
            assert (min(openings) >= 30) is openings_are_late


@pytest.mark.parametrize("path", ["webhooks", "events", "deliveries", "history/webhooks"])
def test_what_webhooks_push_is_not_polled_through_the_public_api(
    market: httpx.Client, path: str
) -> None:
    assert market.get(path).status_code == 404
    routes = [tool["route"] for tool in market.get("schemas").json()["tools"].values()]
    assert f"{DATA}/{path}" not in routes
