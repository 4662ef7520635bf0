"""Which streams a key, a pattern or the watchlist means, and what the first page lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.workspace.conftest import NOW
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import Family, Leg, Pair, Stream, Symbol, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.wire.listing import Listing
from toolkit.workspace import Workspace, front_page, watchlist
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


def test_the_watchlist_is_meant_by_its_name_and_plain_keys_ask_no_service() -> None:
    assert "snapshot/symbols" in keys("watchlist")
    assert chosen_streams("BTC_USD:X.spot", never)[0].key == "BTC_USD:X.spot"


@pytest.mark.parametrize(
    "asked",
    [
        *([], "BTC", ["BTC_USD:*", "BTC"], "", "events/pump"),
        *("BTC_USDT", "snapshot/prices", "pair/A_B:X.spot"),
    ],
)
def test_what_is_no_key_is_refused_before_the_service_is_asked(asked: list[str] | str) -> None:
    with pytest.raises(InputError):
        chosen_streams(asked, never)


def test_a_pattern_that_matches_nothing_names_the_nearest_symbols() -> None:
    with pytest.raises(InputError, match="nearest symbols: BTC_USD"):
        keys("BTC_USX:*")


def test_the_funding_of_each_futures_leg_is_taken_over_the_first_and_no_other_pair() -> None:
    legs = tuple(map(Leg.parse, ("A.futures", "B.futures", "C.futures", "A.spot")))
    found = watchlist(Listing({Symbol("BTC", "USDT"): legs}, False))
    assert [s.key for s in found if s.kind == "funding"] == [
        "funding/BTC_USDT:A.futures:B.futures",
        "funding/BTC_USDT:A.futures:C.futures",
    ]


def test_the_first_page_lists_open_spreads_and_one_funding_pair_of_each_symbol(
    tmp_path: Path,
) -> None:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW))
    store = Store(tmp_path / "rail.duckdb")
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync("snapshot/spread", progress=False)
        with pytest.raises(EmptyWindowError, match="holds no snapshot/funding"):
            front_page(store)
        rail.sync("snapshot/funding", progress=False)
        found, listing = front_page(store), rail.symbols()
    assert all(isinstance(each, Trajectory) and listing.lists(each) for each in found)
    pairs = [each.symbol for each in found if each.family is Family.FUNDING]
    assert len(set(pairs)) == len(pairs) > 5
    assert {each.family for each in found} == {Family.SPREAD, Family.FUNDING}
