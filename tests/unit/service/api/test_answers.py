from __future__ import annotations

from typing import Any

import httpx
import pytest

from .test_registry import PRICE, SPREAD

NOW = 1_700_000_400


def found(pro: httpx.Client, **query: object) -> dict[str, Any]:
    answer = pro.get("symbols/search", params=query)  # type: ignore[arg-type] # plain values
    assert answer.status_code == 200
    document: dict[str, Any] = answer.json()
    assert document["type"] == "symbols_page"
    return document


def test_an_empty_search_lists_everything_in_order(pro: httpx.Client) -> None:
    assert found(pro) == found(pro, q="")
    assert [item["symbol"] for item in found(pro)["items"]] == ["BTC_USDT", "ETH_BTC"]


def test_a_symbol_is_listed_with_all_its_venues(pro: httpx.Client) -> None:
    (item,) = found(pro, q="btc_usdt")["items"]
    assert (item["symbol"], item["base"], item["quote"]) == ("BTC_USDT", "BTC", "USDT")
    assert item["updated_at"] == NOW
    assert [(v["exchange"], v["market"], v["dex_network"]) for v in item["venues"]] == [
        ("ALPHA", "spot", None),
        ("BETA", "futures", None),
        ("DEX-SOLARIS", "dex", "SOLARIS"),
        ("SLOW", "spot", None),
    ]
    assert {v["funding_interval_hours"] for v in item["venues"]} == {None}


@pytest.mark.parametrize(
    ("q", "symbols"),
    [
        ("btc", ["BTC_USDT", "ETH_BTC"]),
        ("Eth", ["ETH_BTC"]),
        ("beta", ["BTC_USDT"]),
        ("dex-sol", ["BTC_USDT"]),
        ("ALPHA", ["BTC_USDT", "ETH_BTC"]),
        ("BTC_USD%", []),
        ("nothing", []),
    ],
)
def test_a_search_finds_parts_of_symbols_and_of_exchanges(pro, q, symbols) -> None:
    page = found(pro, q=q)
    assert [item["symbol"] for item in page["items"]] == symbols
    assert page["truncated"] is False


def test_a_search_says_when_more_would_match(pro: httpx.Client) -> None:
    assert found(pro, limit=2)["truncated"] is False
    cut = found(pro, limit=1)
    assert ([item["symbol"] for item in cut["items"]], cut["truncated"]) == (["BTC_USDT"], True)


@pytest.mark.parametrize(
    ("changes", "parameter", "detail"),
    [
        ({"symbol": "BTC_USX"}, "symbol", "'BTC_USX' is not listed; search symbols/search"),
        ({"symbol": "btc_usdt"}, "symbol", "'btc_usdt' is not listed; search symbols/search"),
        ({"symbol": "BTCUSDT"}, "symbol", "'BTCUSDT' is not listed; search symbols/search"),
        (
            {"exchange": "OMEGA"},
            "exchange",
            "'OMEGA' does not list BTC_USDT; search symbols/search",
        ),
        (
            {"exchange": "alpha"},
            "exchange",
            "'alpha' does not list BTC_USDT; search symbols/search",
        ),
        (
            {"exchange": "BETA"},
            "market",
            "BETA lists BTC_USDT on futures only; search symbols/search",
        ),
    ],
)
def test_a_price_that_is_not_listed_is_a_400_naming_the_parameter(pro, changes, parameter, detail):
    answer = pro.get("history/price", params=PRICE | changes)
    assert answer.status_code == 400
    assert answer.json()["errors"] == [{"parameter": parameter, "detail": detail}]
    assert detail in answer.json()["detail"]


def test_both_legs_of_a_spread_are_checked_at_once(pro: httpx.Client) -> None:
    query = SPREAD | {"buy_market": "dex", "sell_exchange": "OMEGA"}
    answer = pro.get("history/spread", params=query)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == [
        "buy_market",
        "sell_exchange",
    ]


def test_a_spread_of_a_leg_with_itself_is_refused(pro: httpx.Client) -> None:
    query = SPREAD | {"sell_exchange": "ALPHA", "sell_market": "spot"}
    answer = pro.get("history/spread", params=query)
    assert answer.status_code == 400
    assert [error["parameter"] for error in answer.json()["errors"]] == ["sell_exchange"]


@pytest.mark.parametrize(("exchange", "market"), [("SLOW", "spot"), ("DEX-SOLARIS", "dex")])
def test_legs_whose_bars_differ_in_length_make_no_spread(pro, exchange, market) -> None:
    query = SPREAD | {"sell_exchange": exchange, "sell_market": market}
    answer = pro.get("history/spread", params=query)
    assert answer.status_code == 400
    (error,) = answer.json()["errors"]
    assert error["parameter"] == "sell_exchange"
    assert "the buy leg's 60 s" in error["detail"]
