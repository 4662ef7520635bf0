"""The service over a market that goes on being read: its clock, pages, what was lost, sockets."""

from __future__ import annotations

import json
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.market import EventFamily, Trajectory
from toolkit.service import Config, running
from toolkit.service.api.calls import Pages
from toolkit.service.api.registry import TOOLS
from toolkit.service.api.tools import body_schema
from toolkit.service.events.archive import EventArchive
from toolkit.service.market.source import LostRows

from ...conftest import examples
from .revealed import END, LEGS, START, Revealed
from .transports.sockets import ask, heard, opened

HOUR_S = 3_600
NOON = START + 36 * HOUR_S
KEYS = ["BTC_USDT:ALPHA.spot", "BTC_USDT:ALPHA.spot:BETA.futures"]
KEYS += ["funding/ETH_USDT:ALPHA.futures:BETA.futures"]
WHOLE = Pages(Revealed(END + HOUR_S))
OUTAGE = LostRows(NOON - 2 * HOUR_S, NOON - HOUR_S, "no answer for 90 s")
SETTLED = LostRows(NOON - 10 * HOUR_S, NOON - HOUR_S, "not published in 130 s")
LOST = {
    (("BTC_USDT", LEGS[1]), "bars"): (OUTAGE,),
    (("BTC_USDT", LEGS[2]), "bars"): (OUTAGE, LostRows(START, START + HOUR_S, "beyond reach")),
    (("BTC_USDT", LEGS[0]), "funding"): (SETTLED,),
}
PAIR = {"symbol": "BTC_USDT", "buy_exchange": "ALPHA", "buy_market": "futures"}
PAIR |= {"sell_exchange": "BETA", "sell_market": "futures"}
SPOT = {"symbol": "BTC_USDT", "exchange": "ALPHA", "market": "spot"}


def whole_page(pages: Pages, key: str, now: int, limit: int = 10_000) -> object:
    return pages.page(Trajectory.parse(key), before=now, limit=limit, now=now, since=None)


@examples(40)
@given(st.lists(st.integers(1, 54_000), min_size=1, max_size=12), st.sampled_from([0, 60, 5_400]))
def test_pages_of_any_step_are_those_of_the_whole_truth(steps: list[int], ahead: int) -> None:
    source = Revealed(ahead_s={LEGS[0]: ahead})
    pages = Pages(source)
    for now in (START + np.cumsum(steps)).tolist():
        source.known_until = now
        for key in KEYS:
            assert whole_page(pages, key, now) == whole_page(WHOLE, key, now)


def test_rows_that_were_found_late_are_served_as_soon_as_the_source_has_them() -> None:
    source = Revealed(NOON, lost_rows=LOST)
    pages = Pages(source)
    assert whole_page(pages, KEYS[0], NOON) != whole_page(WHOLE, KEYS[0], NOON)
    source.find(OUTAGE)
    assert whole_page(pages, KEYS[0], NOON) == whole_page(WHOLE, KEYS[0], NOON)


@pytest.fixture
def source() -> Revealed:
    return Revealed(NOON, lost_rows=LOST)


@pytest.fixture
def base_url(source: Revealed) -> Iterator[str]:
    with running(Config(source, port=0, retention_s=10**10, quota=10**6)) as service:
        yield service.base_url


@pytest.fixture
def client(base_url: str) -> Iterator[httpx.Client]:
    url = f"{base_url}/api/v1/data/"
    with httpx.Client(base_url=url, headers={"apikey": "demo-pro"}, timeout=60) as client:
        yield client


def page(client: httpx.Client, route: str, **query: object) -> dict[str, Any]:
    answer = client.get(f"history/{route}", params=query)  # type: ignore[arg-type] # plain values
    (tool,) = (tool for tool in TOOLS if tool.path == f"history/{route}")
    jsonschema.validate(answer.json(), body_schema(tool))
    found: dict[str, Any] = answer.json()
    return found


def test_the_service_is_at_what_its_source_knows_and_goes_on_with_it(source, client) -> None:
    for now in (NOON, NOON + 60):
        source.known_until = now
        answer = client.get("dashboards/spread")
        assert parsedate_to_datetime(answer.headers["date"]).timestamp() == now
        assert answer.json()["ts"] == now
        delayed = client.get("dashboards/spread", headers={"apikey": "demo-builder"}).json()
        assert delayed["ts"] == now - 30


def test_schemas_name_the_exchanges_of_a_live_source(client: httpx.Client) -> None:
    said = client.get("schemas").json()
    assert said["source"] == {"kind": "live", "id": "revealed", "exchanges": ["ALPHA", "BETA"]}
    jsonschema.validate(said, body_schema(TOOLS[0]))


def test_a_page_says_what_was_lost_of_its_legs_cut_to_what_it_covers(source, client) -> None:
    shown = OUTAGE._asdict()
    assert page(client, "price", **SPOT)["lost"] == [shown]
    assert "lost" not in page(client, "price", **SPOT, limit=5)
    assert "lost" not in page(client, "price", **SPOT, end_time=OUTAGE.start)
    middle = OUTAGE.start + 600
    ended = page(client, "price", **SPOT, end_time=middle, limit=5)
    assert ended["next_end_time"] < OUTAGE.start
    assert ended["lost"] == [shown | {"end": middle}]
    whole = page(client, "spread", **PAIR, limit=10_000)
    first = {"start": START, "end": START + HOUR_S, "why": "beyond reach"}
    assert whole["next_end_time"] is None
    assert whole["lost"] == [shown, first]
    source.find(OUTAGE)
    assert page(client, "spread", **PAIR, limit=10_000)["lost"] == [first]
    assert "lost" not in page(client, "price", **SPOT)


def test_a_page_of_funding_says_what_was_lost_of_the_settlements_of_either_leg(client) -> None:
    assert page(client, "funding", **PAIR)["lost"] == [SETTLED._asdict()]


def test_a_clock_that_jumps_brings_every_row_and_document_once_and_nothing_that_came_late(
    source: Revealed, base_url: str
) -> None:
    archive, later = EventArchive(Revealed(END, lost_rows=LOST)), NOON + 6 * HOUR_S
    expected = [body for _, body in archive.documents(EventFamily.SPREAD, NOON, later)]
    with (
        opened(base_url, "/api/v1/data/ws") as rows,
        opened(base_url, "/api/v1/spreadbot/ws") as events,
    ):
        assert ask(rows, action="subscribe", id=1, channel="price", **SPOT)["type"] == "subscribed"
        source.known_until = later
        fresh = WHOLE.fresh(Trajectory.parse(KEYS[0]), NOON, later)
        assert [heard(rows)["item"] for _ in fresh] == [json.loads(row) for row in fresh]
        assert [heard(events) for _ in expected] == [json.loads(body) for body in expected]
        source.find(OUTAGE)
        source.known_until = later + 180
        fresh = WHOLE.fresh(Trajectory.parse(KEYS[0]), later, later + 180)
        assert [heard(rows)["item"] for _ in fresh] == [json.loads(row) for row in fresh]
    assert len(fresh) >= 2
    assert expected
