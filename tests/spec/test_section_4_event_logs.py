"""machine-rail.md, section 4.1: retained event logs, activity and dashboards."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

NOW = 1_795_953_607
DAY_S = 86_400
DAY = {"start_time": NOW - DAY_S, "end_time": NOW}
FAMILIES = ["spread", "splash", "funding"]
MINUTE_S = 60
FREE, BUILDER, PRO = ({"apikey": f"demo-{plan}"} for plan in ("free", "builder", "pro"))


def log(
    market: httpx.Client, family: str = "spread", *, key: dict[str, str] = PRO, **query: Any
) -> httpx.Response:
    return market.get(f"history/{family}-events", params=DAY | query, headers=key)


def whole(market: httpx.Client, family: str, **query: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    page = log(market, family, **query).json()
    found += page["items"]
    while page["has_more"]:
        page = log(market, family, **query, cursor=page["next_cursor"]).json()
        found += page["items"]
    return found


def test_spread_events_give_free_a_delayed_one_hour_lane(market: httpx.Client) -> None:
    free = whole(market, "spread", key=FREE)
    full = whole(market, "spread")
    assert free == [item for item in full if NOW - 3_600 <= item["ts"] < NOW - 60]
    assert free


def test_spread_events_are_wider_by_plan(market: httpx.Client) -> None:
    for key in (BUILDER, PRO):
        assert len(whole(market, "spread", key=key)) > len(whole(market, "spread", key=FREE))


def test_routes_above_free_refuse_a_free_key(
    rail: httpx.Client, builder_route: tuple[str, dict[str, str]]
) -> None:
    path, query = builder_route
    assert rail.get(path, params=query, headers=FREE).status_code == 403
    for key in (BUILDER, PRO):
        assert rail.get(path, params=query, headers=key).status_code == 200


@pytest.mark.parametrize("name", ["start_time", "end_time"])
@pytest.mark.parametrize("family", FAMILIES)
def test_start_time_and_end_time_are_required(market: httpx.Client, family: str, name: str) -> None:
    query = {other: value for other, value in DAY.items() if other != name}
    answer = market.get(f"history/{family}-events", params=query)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == [name]


def test_lifecycle_filters_the_events(market: httpx.Client) -> None:
    full = whole(market, "spread")
    for lifecycle in ("open", "closed"):
        found = whole(market, "spread", lifecycle=lifecycle)
        assert found == [item for item in full if item["lifecycle"] == lifecycle]
        assert 0 < len(found) < len(full)


def test_the_default_page_is_200_events_and_the_largest_500(market: httpx.Client) -> None:
    assert len(log(market).json()["items"]) == 200
    assert len(log(market, limit=500).json()["items"]) == 500
    assert log(market, limit=501).status_code == 400


def test_a_request_covers_at_most_seven_days(market: httpx.Client) -> None:
    week = NOW - 7 * DAY_S
    assert log(market, "funding", start_time=week).status_code == 200
    assert log(market, "funding", start_time=week - 1).status_code == 400


@pytest.mark.parametrize("family", FAMILIES)
def test_pagination_is_lossless_across_equal_timestamps(market: httpx.Client, family: str) -> None:
    """Page edges fall between documents of one second again and again: the limit is a prime."""
    full = whole(market, family, limit=500)
    seconds = [item["ts"] for item in full]
    assert max(map(seconds.count, set(seconds))) > 1
    assert whole(market, family, limit=13) == full
    known = [(item["event_id"], item["event_type"], item["ts_ms"]) for item in full]
    assert len(known) == len(set(known))


def test_a_cursor_is_good_for_the_same_window_filters_and_limit_alone(market: httpx.Client) -> None:
    cursor = log(market, limit=5, lifecycle="open").json()["next_cursor"]
    same: dict[str, Any] = {"limit": 5, "lifecycle": "open", "cursor": cursor}
    assert log(market, **same).status_code == 200
    for change in ({"limit": 6}, {"lifecycle": "closed"}, {"end_time": NOW - 60}):
        assert log(market, **(same | change)).status_code == 400


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_page_is_the_end_of_the_window(market: httpx.Client, family: str) -> None:
    ahead = {"start_time": NOW + DAY_S, "end_time": NOW + 2 * DAY_S}
    page = log(market, family, **ahead).json()
    assert page == {"type": f"{family}_events_page", "items": [], "has_more": False}


@pytest.mark.slow
def test_event_activity_is_market_wide(market: httpx.Client) -> None:
    activity = market.get("event-activity").json()
    day = next(each for each in activity["windows"] if each["window_s"] == DAY_S)
    assert {name: day[name] for name in FAMILIES} == {
        family: len(whole(market, family, limit=500)) for family in FAMILIES
    }
    assert len({item["symbol"] for item in activity["top_symbols"]}) > 5


def test_free_uses_delayed_spread_history_instead_of_the_dashboard(market: httpx.Client) -> None:
    refusal = market.get("dashboards/spread", headers=FREE)
    assert (refusal.status_code, refusal.json()["minimum_plan"]) == (403, "builder")
    legs = {"buy_exchange": "AURORA", "buy_market": "spot"}
    legs |= {"sell_exchange": "BOREAS", "sell_market": "spot"}
    asked = {"symbol": "BTC_USDT"} | legs
    history = market.get("history/spread", params=asked, headers=FREE).json()["items"]
    live = market.get("history/spread", params=asked, headers=PRO).json()["items"]
    assert history[0]["ts"] + MINUTE_S <= NOW - 60
    assert history[0] == next(row for row in live if row["ts"] + MINUTE_S <= NOW - 60)


LEG = {"symbol": "BTC_USDT", "exchange": "AURORA", "market": "spot"}
PAIR = {"symbol": "BTC_USDT", "buy_exchange": "AURORA", "sell_exchange": "DRACO"}
PAIR |= {"buy_market": "futures", "sell_market": "futures"}


@pytest.mark.parametrize(
    ("history", "query", "plan", "delay_s"),
    [
        ("price", LEG, FREE, 0),
        ("price", LEG, BUILDER, 0),
        ("price", LEG, PRO, 0),
        ("spread", PAIR, FREE, 60),
        ("spread", PAIR, BUILDER, 0),
        ("spread", PAIR, PRO, 0),
        ("funding", PAIR, BUILDER, 0),
        ("funding", PAIR, PRO, 0),
    ],
)
def test_the_newest_row_of_a_history_is_as_old_as_its_plan_says_and_no_older(
    market: httpx.Client, history: str, query: dict[str, str], plan: dict[str, str], delay_s: int
) -> None:
    stated = market.get("schemas", headers=plan).json()["tools"][f"data.get_{history}_history"]
    assert stated["delay_s"] == delay_s
    row_s = 0 if history == "funding" else MINUTE_S
    for end_time in ({}, {"end_time": NOW}, {"end_time": NOW + DAY_S}):
        page = market.get(f"history/{history}", params=query | end_time, headers=plan).json()
        newest_s = NOW - (page["items"][0]["ts"] + row_s)
        assert newest_s >= delay_s
        assert history == "funding" or newest_s < delay_s + MINUTE_S


def test_the_funding_overview_is_a_snapshot_of_every_futures_leg(market: httpx.Client) -> None:
    futures = {
        (symbol["symbol"], venue["exchange"])
        for symbol in market.get("symbols/search").json()["items"]
        for venue in symbol["venues"]
        if venue["market"] == "futures"
    }
    overview = market.get("dashboards/funding-overview").json()
    assert overview["ts"] == NOW
    assert {(item["symbol"], item["exchange"]) for item in overview["items"]} == futures


def test_history_funding_is_of_one_selected_trajectory_paged_backwards(
    market: httpx.Client,
) -> None:
    legs = {"buy_exchange": "AURORA", "buy_market": "futures"}
    legs |= {"sell_exchange": "DRACO", "sell_market": "futures", "symbol": "BTC_USDT"}
    pages = 0
    stamps: list[int] = []
    end: dict[str, Any] = {}
    while True:
        page = market.get("history/funding", params={**legs, "limit": 50, **end}).json()
        assert {name: page[name] for name in legs} == legs
        pages += 1
        stamps += [item["ts"] for item in page["items"]]
        if page["next_end_time"] is None:
            break
        end = {"end_time": page["next_end_time"]}
    assert stamps == sorted(set(stamps), reverse=True)
    assert len(stamps) == 30 * 6
    assert pages == 4
