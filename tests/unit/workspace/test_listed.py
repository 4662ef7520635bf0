"""Which streams a key, a pattern or the watchlist means."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.market import Leg, Pair, Stream, Symbol
from toolkit.wire.listing import Listing
from toolkit.workspace.listed import chosen_streams

LEGS = tuple(map(Leg.parse, ("X.spot", "X.futures", "Y.futures")))
LISTING = Listing({Symbol("BTC", "USD"): LEGS, Symbol("ETH", "USD"): LEGS[:1]}, False)


def keys(*asked: Stream | str) -> list[str]:
    return [stream.key for stream in chosen_streams(list(asked), lambda: LISTING)]


def never() -> Listing:
    raise AssertionError("the service was asked")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("ETH_USD:*", ["ETH_USD:X.spot"]),
        ("*:X.spot", ["BTC_USD:X.spot", "ETH_USD:X.spot", "BTC_USD:X.futures:X.spot",
                      "BTC_USD:Y.futures:X.spot"]),
        ("BTC_USD:Y.futures:*", ["BTC_USD:Y.futures:X.futures", "BTC_USD:Y.futures:X.spot"]),
        ("funding/*", ["funding/BTC_USD:X.futures:Y.futures"]),
        ("events/*", ["events/spread", "events/splash", "events/funding"]),
    ],
)  # fmt: skip
def test_a_pattern_means_the_listed_keys_that_match(pattern: str, meant: list[str]) -> None:
    assert sorted(keys(pattern)) == sorted(meant)


def test_a_pair_is_meant_once_and_the_first_leg_bought_where_both_ways_match() -> None:
    found = keys("BTC_USD:*:*")
    assert len(found) == 3
    assert all(key.split(":")[1] < key.split(":")[2] for key in found)


def test_keys_and_patterns_mix_and_each_stream_is_once() -> None:
    assert keys("ETH_USD:X.spot", "ETH_USD:*", Stream.parse("events/splash"), "events/splash") == [
        "ETH_USD:X.spot",
        "events/splash",
    ]


def test_the_key_of_a_pair_means_the_prices_that_it_is_computed_from() -> None:
    key = "pair/BTC_USD:X.spot/BTC_USDT:Y.spot/USDT_USD:X.spot"
    prices = ["BTC_USD:X.spot", "BTC_USDT:Y.spot", "USDT_USD:X.spot"]
    assert keys(key, prices[0], "events/splash") == [*prices, "events/splash"]
    assert keys(Pair.parse(key)) == prices
    with pytest.raises(InputError, match=r"^fx: .*USDT_USD:Y.spot, in a key after a third /"):
        keys("pair/BTC_USD:X.spot/BTC_USDT:Y.spot")


def test_the_watchlist_is_meant_by_its_name() -> None:
    assert "snapshot/symbols" in keys("watchlist")


def test_plain_keys_ask_no_service() -> None:
    assert chosen_streams("BTC_USD:X.spot", never)[0].key == "BTC_USD:X.spot"


@pytest.mark.parametrize("asked", [[], "BTC", ["BTC_USD:*", "BTC"], "", "events/pump"])
def test_what_is_no_key_is_refused_before_the_service_is_asked(asked: list[str] | str) -> None:
    with pytest.raises(InputError):
        chosen_streams(asked, never)


def test_a_pattern_that_matches_nothing_names_the_nearest_symbols() -> None:
    with pytest.raises(InputError, match="nearest symbols: BTC_USD"):
        keys("BTC_USX:*")
