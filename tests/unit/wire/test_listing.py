"""The symbol listing: what is listed, what cannot be read, what is nearest."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.errors import WireError
from toolkit.market import Symbol, Trajectory
from toolkit.wire.exchange import Request, Response, RetryPolicy, Send
from toolkit.wire.listing import (
    Listing,
    guessed_listing,
    list_symbols,
    nearest_keys,
    price_trajectories,
    spread_trajectories,
)
from toolkit.wire.profile.profile import BUILT_IN


def listing(body: bytes, text: str = "") -> Listing:
    """The listing of one answer to every question."""
    return searched(lambda _: body, text)


def searched(answer: Callable[[str], bytes], text: str = "", limit: int = 1_000) -> Listing:
    """The listing of a service that answers each text."""
    profile = replace(BUILT_IN, symbols_limit=limit)
    flow = list_symbols(profile, text, RetryPolicy())
    step = next(flow)
    assert step == Send(Request.get(profile.symbols_path, {"q": text, "limit": limit}))
    while True:
        assert isinstance(step, Send)
        body = answer(dict(step.request.query)["q"])
        try:
            step = flow.send(Response(200 if body else 204, {}, body, "http://h/s"))
        except StopIteration as stop:
            found: Listing = stop.value
            return found


def page(*items: object, **more: object) -> bytes:
    return json.dumps({"items": items, "truncated": False, **more}).encode()


def item(symbol: str, *legs: str) -> dict[str, object]:
    venues = [dict(zip(("exchange", "market"), leg.split("."), strict=True)) for leg in legs]
    return {"symbol": symbol, "venues": venues, "updated_at": 1}


@pytest.mark.parametrize(("said", "truncated"), [(True, True), (False, False), (None, False)])
def test_a_listing_says_whether_there_is_more(said, truncated) -> None:
    assert listing(page(truncated=said)).truncated is truncated


BASES = ("BTC", "ETH", "SOL", "XRP", "ADA", "1INCH", "A", "SAND", "ZEC", "MANA", "S", "DOT")
EVERY = [f"{base}_USDT" for base in BASES]


def served(
    cap: int, matches: Callable[[str, str], bool], asked: list[str] | None = None, **more: object
) -> Callable[[str], bytes]:
    """A service that lists no more than a few of the symbols that match a text."""

    def answer(text: str) -> bytes:
        if asked is not None:
            asked.append(text)
        found = [symbol for symbol in EVERY if matches(symbol, text)]
        items = [item(symbol, "X.spot") for symbol in found[:cap]]
        return json.dumps({"items": items, **more}).encode()

    return answer


def at_random(_symbol: str, _text: str) -> bool:
    return True


@pytest.mark.parametrize("matches", [str.__contains__, str.startswith])
@pytest.mark.parametrize(("cap", "limit"), [(5, 1_000), (5, 5), (11, 1_000)])
def test_a_listing_cut_without_a_word_is_searched_for_the_rest(matches, cap, limit) -> None:
    found = searched(served(cap, matches), limit=limit)
    assert sorted(map(str, found.legs)) == sorted(EVERY)
    assert not found.truncated
    assert [f.kind for f in found.findings] == ["listing_cut"]
    assert f"{cap} symbols came of {limit} asked for; searched by letter there are 12" in (
        found.findings[0].says
    )


def test_a_listing_that_says_it_is_cut_is_searched_as_well() -> None:
    def answer(text: str) -> bytes:
        found = [symbol for symbol in EVERY if text in symbol]
        return page(*(item(symbol) for symbol in found[:5]), truncated=len(found) > 5)

    found = searched(answer, limit=5)
    assert sorted(map(str, found.legs)) == sorted(EVERY)


def test_a_listing_that_no_search_completes_is_truncated() -> None:
    found = searched(served(5, at_random), limit=5)
    assert (len(found.legs), found.truncated) == (5, True)
    assert "5 symbols came of 5 asked for; there are more" in found.findings[0].says


def test_a_listing_of_a_text_is_truncated_where_it_is_full() -> None:
    asked: list[str] = []
    found = searched(served(5, str.__contains__, asked), "_USDT", limit=5)
    assert (len(found.legs), found.truncated, asked) == (5, True, ["_USDT"])
    assert [f.kind for f in found.findings] == ["listing_cut"]


def test_a_listing_that_states_that_it_is_whole_costs_one_question() -> None:
    asked: list[str] = []
    found = searched(served(99, str.__contains__, asked, truncated=False), limit=12)
    assert (len(found.legs), found.truncated, asked) == (12, False, [""])


def test_a_whole_listing_without_the_flag_is_compared_with_36_searches() -> None:
    asked: list[str] = []
    found = searched(served(99, str.__contains__, asked))
    assert (len(found.legs), found.truncated, len(asked)) == (12, False, 37)
    assert found.findings == ()


def test_a_listing_that_states_nothing_where_searches_show_nothing_has_a_finding() -> None:
    asked: list[str] = []
    found = searched(served(9, at_random, asked))
    assert (len(found.legs), found.truncated, len(asked)) == (9, False, 3)
    assert [f.kind for f in found.findings] == ["listing_unstated"]
    assert "9 symbols came of 1000 asked for; nothing shows if" in found.findings[0].says


def test_no_content_lists_nothing() -> None:
    found = searched(lambda _: b"")
    assert (found.legs, found.truncated, found.findings) == ({}, False, ())


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
        flow.send(Response(200, {}, body, "http://h/s"))
    assert "\n" not in str(caught.value)


@settings(deadline=None)
@given(st.binary(max_size=40))
def test_no_item_breaks_the_listing(piece) -> None:
    body = b'{"truncated":false,"items":[{"symbol":"A_B","venues":[' + piece + b"]}]}"
    with contextlib.suppress(WireError):
        listing(body)


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


@pytest.mark.parametrize(
    "sent",
    [
        {"A_B": {"X": ["spot", "futures"]}, "C_D": {"Y": "dex"}},
        {"instruments": ["A_B@X.spot", "A_B@X.futures", "C_D@Y.dex"]},
        [["A_B", "X", "spot"], ["A_B", "X", "futures"], ["C_D", "Y", "dex"]],
        {
            "result": {
                "rows": [{"s": "A_B", "at": ["X/SPOT", "X/swap"]}, {"s": "C_D", "at": ["Y/amm"]}]
            }
        },
        [
            {"at": [{"kind": "spot", "on": "x"}, {"kind": "Perp", "on": "x"}], "s": "A_B"},
            {"at": [{"kind": "dex", "on": "y"}], "s": "C_D"},
        ],
    ],
)
def test_the_shape_of_a_listing_is_found_by_which_all_of_it_is_read(sent: object) -> None:
    answer = Response(200, {}, json.dumps(sent).encode())
    found = guessed_listing(BUILT_IN, answer)
    assert found is not None
    profile = replace(BUILT_IN, listing=found[0], spelling=found[1])
    flow = list_symbols(profile, "A", RetryPolicy())
    next(flow)
    with pytest.raises(StopIteration) as ended:
        flow.send(answer)
    legs = {str(symbol): [*map(str, of)] for symbol, of in ended.value.value.legs.items()}
    assert legs == {"A_B": ["X.spot", "X.futures"], "C_D": ["Y.dex"]}


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b"3", b"<html>", b'[["A_B","X","margin"]]', b"[{}]"]
)
def test_a_listing_that_no_shape_reads_is_not_guessed(body: bytes) -> None:
    assert guessed_listing(BUILT_IN, Response(200, {}, body)) is None
