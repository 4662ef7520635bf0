from __future__ import annotations

from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from toolkit.market import Family, Leg, Trajectory
from toolkit.service import Simulated
from toolkit.service.api.calls import Pages
from toolkit.service.market.simulator.processes import DAY_S, END, EPOCH

DAY = 20_786
NOW = DAY_S * DAY + 43_207
AURORA, BOREAS = Leg.parse("AURORA.spot"), Leg.parse("BOREAS.spot")
CORONA = Leg.parse("CORONA.futures")
KEYS = [
    Trajectory.parse("BTC_USDT:BOREAS.spot"),
    Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures"),
    Trajectory.parse("BTC_USDT:AURORA.futures:DRACO.futures", Family.FUNDING),
]


def rows(pages: Pages, key: Trajectory, **changes: Any) -> list[dict[str, Any]]:
    query: dict[str, Any] = {"before": NOW, "limit": 500, "now": NOW, "since": None}
    found = pages.page(key, **(query | changes))
    items: list[dict[str, Any]] = msgspec.json.decode(b"[%b]" % found.items)
    return items


def read_all(pages: Pages, key: Trajectory, limit: int, since: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    before: int | None = NOW
    while before is not None:
        page = pages.page(key, before=before, limit=limit, now=NOW, since=since)
        found += msgspec.json.decode(b"[%b]" % page.items)
        before = page.next_end_time
    return found


def test_prices_are_the_simulators_minutes_across_days_and_blocks(market: Simulated) -> None:
    since = DAY_S * (DAY - 9)
    items = read_all(Pages(market), KEYS[0], 777, since)
    days = [market.day("BTC_USDT", BOREAS, day) for day in range(DAY - 9, DAY + 1)]
    ts = np.concatenate([day.ts for day in days])
    over = ts <= NOW - 60
    assert [item["ts"] for item in items] == ts[over][::-1].tolist()
    for name in ("price", "volume"):
        values = np.concatenate([getattr(day, name) for day in days])[over][::-1]
        assert [item[name] for item in items] == values.tolist()
    assert {item["mark_price"] for item in items} == {None}


def test_futures_have_a_mark_price(market: Simulated) -> None:
    items = rows(Pages(market), Trajectory.parse("BTC_USDT:CORONA.futures"))
    day = market.day("BTC_USDT", CORONA, DAY)
    assert day.mark_price is not None
    marks = dict(zip(day.ts.tolist(), day.mark_price.tolist(), strict=True))
    assert len(items) == 500
    assert all(item["mark_price"] == marks[item["ts"]] for item in items)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_page_does_not_depend_on_what_was_asked_before(market, key) -> None:
    """Nor on the limit: any two ways over the same rows show the same rows."""
    seasoned = Pages(market)
    for other in KEYS:
        for before in (NOW - 40 * DAY_S, NOW - 3_000, NOW - 8 * DAY_S):
            rows(seasoned, other, before=before)
    since = NOW - 12 * DAY_S
    assert read_all(seasoned, key, 77, since) == read_all(Pages(Simulated(7)), key, 5_000, since)


def test_the_market_has_a_first_minute_and_a_last(market: Simulated) -> None:
    pages = Pages(market)
    first = rows(pages, KEYS[0], before=EPOCH + 600)
    assert EPOCH <= first[-1]["ts"] < EPOCH + 300
    assert rows(pages, KEYS[0], before=EPOCH) == []
    last = rows(pages, KEYS[0], before=END + 10 * DAY_S, now=END + 10 * DAY_S)
    assert END - 300 < last[0]["ts"] < END
    for start, end in ((0, EPOCH), (END, END + DAY_S), (EPOCH + 60, EPOCH + 60), (9, 3)):
        assert len(market.bars("BTC_USDT", BOREAS).between(start, end).ts) == 0
        funding = market.funding("BTC_USDT", CORONA)
        assert funding is not None
        assert len(funding.between(start, end).ts) == 0
        assert funding.next_after(EPOCH - 1) is None


def test_every_listed_leg_and_pair_is_served(market: Simulated, simulated: httpx.Client) -> None:
    items = simulated.get("symbols/search", params={"limit": 100}).json()["items"]
    assert {item["symbol"] for item in items} == market.listing.keys()
    for item in items:
        venue, other = item["venues"][0], item["venues"][-1]
        query = {"symbol": item["symbol"], "limit": 2}
        leg = {name: venue[name] for name in ("exchange", "market")}
        pair = {
            f"{side}_{name}": leg[name]
            for side, leg in (("buy", venue), ("sell", other))
            for name in ("exchange", "market")
        }
        price = simulated.get("history/price", params={**query, **leg}).json()
        spread = simulated.get("history/spread", params={**query, **pair}).json()
        assert (len(price["items"]), len(spread["items"])) == (2, 2)


def test_futures_are_listed_with_their_funding_interval(simulated: httpx.Client) -> None:
    items = simulated.get("symbols/search", params={"q": "BTC_USDT"}).json()["items"]
    hours = {
        f"{venue['exchange']}.{venue['market']}": venue["funding_interval_hours"]
        for venue in items[0]["venues"]
    }
    assert hours["EQUINOX.futures"] == 1
    assert hours["GALENE.futures"] == 4
    assert hours["CORONA.futures"] == 8
    assert {value for leg, value in hours.items() if not leg.endswith("futures")} == {None}


def test_schemas_names_the_seed_as_the_source(simulated: httpx.Client, market: Simulated) -> None:
    source = simulated.get("schemas").json()["source"]
    assert source == {"kind": "simulated", "id": market.id}
    assert source["id"].startswith("seed-7-")
    assert Simulated(8).id != market.id
