"""The symbol listing: what is listed, what cannot be read, what is nearest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import WireError
from toolkit.market import Symbol, Trajectory
from toolkit.wire.exchange import Answer, Request, RetryPolicy, Send
from toolkit.wire.listing import (
    Listing,
    list_symbols,
    nearest_keys,
    price_trajectories,
    spread_trajectories,
)
from toolkit.wire.profile import BUILT_IN


def listing(body: bytes, text: str = "") -> Listing:
    """The listing of one answer to one question."""
    flow = list_symbols(BUILT_IN, text, RetryPolicy())
    query = {"q": text, "limit": BUILT_IN.symbols_limit}
    assert next(flow) == Send(Request.get(BUILT_IN.symbols_path, query))
    with pytest.raises(StopIteration) as stop:
        flow.send(Answer(200, {}, body, "http://h/s"))
    found: Listing = stop.value.value
    return found


def page(*items: object, **more: object) -> bytes:
    return json.dumps({"items": items, **more}).encode()


def item(symbol: str, *legs: str) -> dict[str, object]:
    venues = [dict(zip(("exchange", "market"), leg.split("."), strict=True)) for leg in legs]
    return {"symbol": symbol, "venues": venues, "updated_at": 1}


def test_every_symbol_is_listed_with_its_legs() -> None:
    found = listing(page(item("BTC_USD", "KRAKEN.spot", "DEX-BASE.dex"), item("A_B"), x=1))
    legs = {str(symbol): list(map(str, each)) for symbol, each in found.legs.items()}
    assert legs == {"BTC_USD": ["KRAKEN.spot", "DEX-BASE.dex"], "A_B": []}
    assert (found.truncated, found.findings) == (False, ())


@pytest.mark.parametrize(("said", "truncated"), [(True, True), (False, False), (None, False)])
def test_a_listing_says_whether_there_is_more(said, truncated) -> None:
    assert listing(page(truncated=said)).truncated is truncated


def test_a_symbol_listed_in_two_places_has_the_legs_of_both_each_once() -> None:
    found = listing(
        page(item("BTC_USD", "KRAKEN.spot", "KRAKEN.spot"), item("BTC_USD", "COINBASE.spot"))
    )
    assert list(map(str, found.legs[Symbol("BTC", "USD")])) == ["KRAKEN.spot", "COINBASE.spot"]
    assert [t.key for t in spread_trajectories(found)] == ["BTC_USD:COINBASE.spot:KRAKEN.spot"]


@pytest.mark.parametrize(
    "odd", [7, None, "BTC_USD", [], {}, {"symbol": 7}, {"symbol": "BTCUSD"}, {"symbol": None}]
)
def test_an_item_that_is_no_symbol_is_recorded_and_the_others_are_listed(odd) -> None:
    found = listing(page(odd, item("BTC_USD", "KRAKEN.spot")))
    assert list(map(str, found.legs)) == ["BTC_USD"]
    assert [f.kind for f in found.findings] == ["symbol_unreadable"]


@pytest.mark.parametrize(
    "odd",
    [
        7,
        None,
        {},
        {"exchange": "KRAKEN"},
        {"exchange": None, "market": "spot"},
        {"exchange": "kraken", "market": "spot"},
        {"exchange": "KRAKEN", "market": "swap"},
    ],
)
def test_a_venue_that_is_no_leg_is_recorded_and_the_others_are_listed(odd) -> None:
    good = {"exchange": "KRAKEN", "market": "spot"}
    found = listing(page({"symbol": "BTC_USD", "venues": [odd, good]}))
    assert list(map(str, found.legs[Symbol("BTC", "USD")])) == ["KRAKEN.spot"]
    assert [(f.kind, f.where) for f in found.findings] == [
        ("leg_unreadable", "/api/v1/data/symbols/search BTC_USD")
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>\n",
        b"[]",
        b"{}",
        b'{"items":',
        b'{"items":null}',
        b'{"items":{}}',
        b'{"items":[],"truncated":"no"}',
        b'{"items":["\xff"]}x',
        b'{"items":' + b"[" * 100_000,
    ],
)
def test_a_body_that_is_no_listing_is_a_wire_error_of_one_line(body) -> None:
    flow = list_symbols(BUILT_IN, "", RetryPolicy())
    next(flow)
    with pytest.raises(WireError, match=r"^http://h/s answered 200") as caught:
        flow.send(Answer(200, {}, body, "http://h/s"))
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_no_item_breaks_the_listing(piece) -> None:
    flow = list_symbols(BUILT_IN, "", RetryPolicy())
    next(flow)
    with pytest.raises((WireError, StopIteration)):
        flow.send(Answer(200, {}, b'{"items":[{"symbol":"A_B","venues":[' + piece + b"]}]}"))


def test_trajectories_come_in_order_of_their_keys_and_each_pair_once() -> None:
    found = listing(
        page(item("ETH_USD", "B.spot", "A.spot", "A.futures"), item("BTC_USD", "A.dex"))
    )
    assert [t.key for t in price_trajectories(found)] == [
        "BTC_USD:A.dex",
        "ETH_USD:A.futures",
        "ETH_USD:A.spot",
        "ETH_USD:B.spot",
    ]
    pairs = {frozenset(t.legs) for t in spread_trajectories(found)}
    assert len(pairs) == len(spread_trajectories(found)) == 3


def test_a_trajectory_is_listed_with_all_its_legs_in_either_order() -> None:
    found = listing(page(item("BTC_USD", "A.spot", "B.spot"), item("ETH_USD", "C.spot")))
    assert found.lists(Trajectory.parse("BTC_USD:B.spot:A.spot"))
    assert not found.lists(Trajectory.parse("BTC_USD:A.spot:C.spot"))
    assert not found.lists(Trajectory.parse("SOL_USD:A.spot"))


def test_the_nearest_keys_are_of_the_same_family() -> None:
    found = listing(page(item("BTC_USD", "KRAKEN.spot", "COINBASE.spot")))
    assert nearest_keys(Trajectory.parse("BTC_USX:KRAKEN.spot"), found)[0] == "BTC_USD:KRAKEN.spot"
    assert nearest_keys(Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEM.spot"), found) == [
        "BTC_USD:COINBASE.spot:KRAKEN.spot"
    ]
    assert nearest_keys(Trajectory.parse("XYZ_QQQ:ZZZ.dex"), Listing({}, truncated=False)) == []
