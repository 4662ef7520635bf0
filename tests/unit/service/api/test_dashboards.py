from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import polars as pl
import pytest

from toolkit.market import EventFamily, Leg, Market
from toolkit.service import Clock, Config, Replay, Simulated, running
from toolkit.service.api.bodies import last_prices, rate_in_force, tracked_spreads
from toolkit.service.events.archive import EventArchive

from ..transports.sockets import PAIR, PRICE

DAY_S = 86_400
NOW = DAY_S * 20_786 + 43_207
ROUTES: dict[str, dict[str, str]] = {
    "dashboards/spread": {},
    "dashboards/funding-overview": {},
    "event-activity": {},
    "symbols/search": {},
    "history/price": PRICE,
    "history/spread": PAIR,
    "history/funding": PAIR,
}


def get(client: httpx.Client, route: str, key: str = "demo-pro", **query: str) -> dict[str, Any]:
    answer = client.get(route, params=query, headers={"apikey": key})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("route", ROUTES)
def test_items_have_the_fields_that_schemas_states(simulated: httpx.Client, route: str) -> None:
    tools = get(simulated, "schemas")["tools"].values()
    (record,) = [tool["record"] for tool in tools if tool["route"].endswith(route)]
    document = get(simulated, route, **ROUTES[route])
    items = document.get("items") or document["windows"]
    assert items
    for item in items:
        assert list(item) == list(record["fields"])
        nulls = {name for name, value in item.items() if value is None}
        assert all(record["fields"][name]["nullable"] for name in nulls)
    keys = [tuple(item[name] for name in record["key"]) for item in items]
    assert len(keys) == len(set(keys))


def test_the_spread_dashboard_shows_wide_spreads_and_open_events_widest_first(market, simulated):
    document = get(simulated, "dashboards/spread")
    assert (document["type"], document["ts"]) == ("spread_dashboard", NOW)
    opened = EventArchive(market).open_at(EventFamily.SPREAD, NOW)
    shown = {}
    for item in document["items"]:
        legs = [f"{item[f'{side}_exchange']}.{item[f'{side}_market']}" for side in ("buy", "sell")]
        key = ":".join([item["symbol"], *legs])
        shown[key] = item["opened_at"]
        assert item["spread_type"] == f"{item['buy_market']}/{item['sell_market']}"
        expected = 100.0 * (item["sell_price"] / item["buy_price"] - 1.0)
        assert item["spread_pct"] == expected
        assert item["spread_pct"] >= 0.5 or item["opened_at"] is not None
    assert {key: ts for key, ts in shown.items() if ts is not None} == opened
    assert None in shown.values()
    spreads = [item["spread_pct"] for item in document["items"]]
    assert spreads == sorted(spreads, reverse=True)


def test_the_spread_dashboard_is_thirty_seconds_late_on_builder(market: Simulated) -> None:
    """At eleven seconds past a minute, Builder still sees the minute before."""
    minute = NOW // 60 * 60
    clock = Clock(fixed_at=minute + 11)
    with (
        running(Config(market, port=0, clock=clock)) as service,
        httpx.Client(base_url=f"{service.base_url}/api/v1/data/", timeout=60) as client,
    ):
        builder, pro = (
            get(client, "dashboards/spread", key) for key in ("demo-builder", "demo-pro")
        )
    assert (builder["ts"], pro["ts"]) == (minute - 19, minute + 11)
    for document, over in ((builder, minute - 60), (pro, minute)):
        prices = {symbol: last_prices(market, symbol, over) for symbol in market.listing}
        assert document["items"]
        for item in document["items"]:
            buy = Leg.parse(f"{item['buy_exchange']}.{item['buy_market']}")
            assert item["buy_price"] == prices[item["symbol"]][buy]
    assert builder["items"] != pro["items"]


def test_a_leg_without_a_price_of_late_makes_no_spread(market: Simulated) -> None:
    """CORONA.futures has outages of hours, and BOREAS.spot quiet minutes."""
    bars = market.bars("BTC_USDT", Leg.parse("CORONA.futures"))
    ts = bars.between(NOW - 40 * DAY_S, NOW).ts
    (last, *_) = [int(one) for one, other in pairwise(ts) if other - one > 3_600]
    corona = Leg.parse("CORONA.futures")
    assert corona in last_prices(market, "BTC_USDT", last + 660)
    assert corona not in last_prices(market, "BTC_USDT", last + 661)
    found = tracked_spreads(market, last + 661, {}, 0.0)
    assert not [each for each in found if each.symbol == "BTC_USDT" and corona in each[1:4:2]]


def test_every_pair_of_a_symbol_is_looked_at_and_the_cheaper_leg_bought(market: Simulated) -> None:
    found = [each for each in tracked_spreads(market, NOW, {}, 0.0) if each.symbol == "SOL_USDT"]
    legs = len(market.listing["SOL_USDT"])
    assert len(found) == legs * (legs - 1) // 2
    assert all(each.buy_price <= each.sell_price for each in found)


def test_an_open_event_is_shown_in_its_own_direction_however_narrow(market: Simulated) -> None:
    prices = last_prices(market, "SOL_USDT", NOW)
    dear, cheap = (choose(prices, key=prices.__getitem__) for choose in (max, min))
    opened = {f"SOL_USDT:{dear}:{cheap}": NOW - 99}
    (spread,) = tracked_spreads(market, NOW, opened, 10_000.0)
    assert (spread.buy, spread.sell, spread.opened_at) == (dear, cheap, NOW - 99)
    assert spread.pct < 0


def test_the_funding_overview_shows_the_rate_in_force_of_every_futures_leg(market, simulated):
    document = get(simulated, "dashboards/funding-overview")
    assert (document["type"], document["ts"]) == ("funding_overview", NOW)
    shown = {(item["symbol"], item["exchange"]): item for item in document["items"]}
    futures = [
        (symbol, leg)
        for symbol, legs in market.listing.items()
        for leg in legs
        if leg.market is Market.FUTURES
    ]
    assert len(document["items"]) == len(futures)
    for symbol, leg in futures:
        item = shown[symbol, leg.exchange]
        settled = market.settlements(symbol, leg, NOW - 2 * DAY_S, NOW)
        assert item["rate"] == settled.rate[-1]
        assert item["interval_hours"] == settled.interval_hours[-1]
        assert item["next_funding_time"] == market.next_settlement(symbol, leg, NOW)
        assert item["next_funding_time"] > NOW


def test_a_rate_that_is_in_force_no_more_is_not_shown(tmp_path: Path, market: Simulated) -> None:
    frame = pl.DataFrame({"ts": [0, 28_800], "rate": [1e-4, 2e-4]}).with_columns(
        symbol=pl.lit("BTC_USDT"),
        exchange=pl.lit("ALPHA"),
        interval_hours=pl.lit(8),
        dataset=pl.lit("one"),
    )
    frame.write_parquet(tmp_path / "funding.parquet")
    replay, leg = Replay.read(tmp_path), Leg.parse("ALPHA.futures")
    assert rate_in_force(replay, "BTC_USDT", leg, -1) is None
    for now, found in ((0, (1e-4, 8, 28_800)), (28_799, (1e-4, 8, 28_800))):
        assert rate_in_force(replay, "BTC_USDT", leg, now) == found
    assert rate_in_force(replay, "BTC_USDT", leg, 86_400) == (2e-4, 8, 115_200)
    assert rate_in_force(replay, "BTC_USDT", leg, 86_401) is None
    assert rate_in_force(market, "BTC_USDT", Leg.parse("AURORA.spot"), NOW) is None


def test_activity_counts_the_documents_of_each_log(simulated: httpx.Client) -> None:
    document = get(simulated, "event-activity")
    assert (document["type"], document["ts"]) == ("event_activity", NOW)
    assert [window["window_s"] for window in document["windows"]] == [3_600, 86_400, 604_800]
    of_symbols: dict[str, Counter[str]] = {}
    for family in EventFamily:
        query: dict[str, Any] = {"start_time": NOW - DAY_S, "end_time": NOW, "limit": 500}
        stamps: list[int] = []
        counted = of_symbols.setdefault(family, Counter())
        while True:
            page = simulated.get(f"history/{family}-events", params=query).json()
            stamps += [item["ts"] for item in page["items"]]
            counted.update(item["instrument"]["symbol"] for item in page["items"])
            if not page["has_more"]:
                break
            query["cursor"] = page["next_cursor"]
        hour, day, week = (window[family] for window in document["windows"])
        assert hour == sum(ts >= NOW - 3_600 for ts in stamps)
        assert day == len(stamps)
        assert week >= day
    total = sum(of_symbols.values(), Counter())
    for item in document["top_symbols"]:
        counts = {family: of_symbols[family][item["symbol"]] for family in EventFamily}
        assert {family: item[family] for family in EventFamily} == counts
    top = [total[item["symbol"]] for item in document["top_symbols"]]
    assert top == [count for _, count in total.most_common(10)]
