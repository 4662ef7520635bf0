"""What /schemas declares of signs and keys: read where it can be, and never without a word."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolkit.market import Family
from toolkit.wire.profile.history_route import HistoryRoute
from toolkit.wire.profile.profile import BUILT_IN, is_reversed, with_schemas

PRICE, SPREAD = BUILT_IN.histories[Family.PRICE], BUILT_IN.histories[Family.SPREAD]


def declared(
    route: HistoryRoute, key: object = None, **fields: dict[str, Any]
) -> tuple[HistoryRoute, list[tuple[str, str]]]:
    """Return the route after a /schemas document, and the findings on its tool."""
    record: dict[str, Any] = {
        "fields": {rule.wire: {"unit": rule.unit} for rule in route.fields} | fields
    }
    if key is not None:
        record["key"] = key
    body = json.dumps({"tools": {route.tool: {"route": route.path, "record": record}}}).encode()
    profile = with_schemas(BUILT_IN, body)
    found = [(f.kind, f.where) for f in profile.findings if f.where.startswith(route.tool)]
    return profile.histories[route.family], found


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("positive: long the buy leg, short the sell leg", False),
        ("what a position that is short the buy leg and long the sell leg earns", True),
        ("what a position that is long the buy leg and short the sell leg pays", True),
        ("Positive where the sell leg's price is above the buy leg's.", False),
        ("the buy price is higher than the sell price", True),
        ("buy leg cheaper than sell leg", False),
        ("100 * (sell_price / buy_price - 1)", False),
        ("100 * (buy_price/sell_price - 1)", True),
        ("buy - sell", True),
        ("sell rate minus buy rate", False),
        ("LONG BUY / SHORT SELL", False),
        ("the usual one", None),
        ("Negative where the sell leg is above the buy leg", None),
        ("sell / buy - 1, or buy / sell - 1", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("where", ["sign", "positive_means"])
def test_a_sign_of_two_legs_is_read_from_either_sentence(where, sentence, found) -> None:
    assert is_reversed({where: sentence}, "spread_pct") is found
    assert is_reversed({where: sentence}, "differential_pct_8h") is found


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("Positive where longs pay shorts.", False),
        ("what a short position receives", False),
        ("the long side pays", False),
        ("shorts pay longs", True),
        ("what a long position receives, per interval", True),
        ("as on the venue", None),
        ("sell above buy", None),
    ],
)
def test_the_sign_of_a_rate_is_read_by_who_pays(sentence, found) -> None:
    assert is_reversed({"sign": sentence}, "buy_rate") is found


def test_sentences_that_contradict_each_other_are_not_understood() -> None:
    both = {"sign": "sell / buy - 1", "positive_means": "long the sell leg, short the buy leg"}
    assert is_reversed(both, "spread_pct") is None


def test_a_reversed_sign_turns_the_factor_and_is_a_finding() -> None:
    route, findings = declared(SPREAD, spread_pct={"unit": "bps", "sign": "buy / sell - 1"})
    assert route.fields[-1].factor == -0.01
    assert findings == [
        ("unit_converted", f"{SPREAD.tool}.spread_pct"),
        ("sign_reversed", f"{SPREAD.tool}.spread_pct"),
    ]


def test_a_sign_that_is_not_understood_is_taken_as_ours_with_a_finding() -> None:
    route, findings = declared(SPREAD, spread_pct={"unit": "percent", "sign": "green is good"})
    assert route.fields == SPREAD.fields
    assert findings == [("sign_unclear", f"{SPREAD.tool}.spread_pct")]


def test_a_sign_as_ours_or_none_or_of_a_field_without_one_is_no_finding() -> None:
    assert declared(SPREAD, spread_pct={"unit": "percent", "sign": "sell / buy"}) == (SPREAD, [])
    assert declared(SPREAD, spread_pct={"unit": "percent", "sign": None}) == (SPREAD, [])
    assert declared(SPREAD, buy_price={"unit": "quote", "sign": "buy / sell"}) == (SPREAD, [])


@pytest.mark.parametrize("key", [["ts"], ["symbol", "exchange", "market", "ts"], None, "ts", [1]])
def test_a_key_of_the_time_alone_is_as_built_in(key) -> None:
    assert declared(PRICE, key) == (PRICE, [])


def test_a_key_with_another_field_of_the_record_allows_ties() -> None:
    route, findings = declared(PRICE, ["symbol", "ts", "seq"], seq={"type": "integer"})
    assert route.key == ("ts", "seq")
    assert findings == [
        ("field_unknown", f"{PRICE.tool}.seq"),
        ("ties_allowed", f"{PRICE.tool}.key"),
    ]


def test_an_empty_key_promises_nothing() -> None:
    route, findings = declared(PRICE, [])
    assert (route.key, findings) == ((), [("ties_allowed", f"{PRICE.tool}.key")])


def test_a_key_of_a_field_that_no_record_has_is_a_finding_and_not_used() -> None:
    route, findings = declared(PRICE, ["ts", "lot"])
    assert (route.key, findings) == (("ts",), [("key_unusable", f"{PRICE.tool}.key")])
