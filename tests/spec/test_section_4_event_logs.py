"""machine-rail.md, section 4.1: retained event logs, activity and dashboards."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .conftest import BUILDER, DAY, DAY_S, FAMILIES, FREE, LEG, NOW, PRO

MINUTE_S = 60


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


def test_routes_above_free_refuse_a_free_key_and_serve_the_others(
    rail: httpx.Client, builder_route: tuple[str, dict[str, str]]
) -> None:
    path, query = builder_route
    refused = rail.get(path, params=query, headers=FREE)
    assert (refused.status_code, refused.json()["code"]) == (403, "tier_required")
    assert "insufficient_scope" in refused.headers["www-authenticate"]
    for key in (BUILDER, PRO):
        assert rail.get(path, params=query, headers=key).status_code == 200


def test_the_default_page_is_200_events_and_the_largest_500(market: httpx.Client) -> None:
    assert len(log(market).json()["items"]) == 200
    assert len(log(market, limit=500).json()["items"]) == 500
    assert log(market, limit=501).status_code == 400


@pytest.mark.parametrize("family", FAMILIES)
def test_an_empty_page_is_the_end_of_the_window(market: httpx.Client, family: str) -> None:
    ahead = {"start_time": NOW + DAY_S, "end_time": NOW + 2 * DAY_S}
    page = log(market, family, **ahead).json()
    assert page == {"type": f"{family}_events_page", "items": [], "has_more": False}


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
