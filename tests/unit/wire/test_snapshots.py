"""What is understood of a dashboard's items, and what is said of the rest."""

from __future__ import annotations

import json

import pytest

from toolkit.wire.rows.snapshot_rows import activity_of_day, snapshot_items

ITEM = {
    "symbol": "BTC_USD",
    "buy_exchange": "X",
    "buy_market": "spot",
    "sell_exchange": "Y",
    "sell_market": "futures",
    "spread_pct": 1.5,
    "opened_at": None,
}
RATE = {"symbol": "A_B", "exchange": "X", "market": "futures", "rate": 1e-4, "interval_hours": 8}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"items": []}, ""),
        ({"items": [ITEM]}, ""),
        ({"items": [ITEM | {"spread_pct": 1, "opened_at": 60, "more": []}]}, ""),
        ({"rows": [ITEM]}, "not understood: no list of items"),
        ([ITEM], "not understood: no list of items"),
        ({"items": None}, "not understood: no list of items"),
        ({"items": ["text"]}, "not understood: items that are not objects"),
        ({"items": [ITEM | {"spread_pct": "1.5"}]}, "not understood: spread_pct of another type"),
        (
            {"items": [ITEM, ITEM | {"symbol": None}]},
            "1 of 2 not understood: symbol of another type",
        ),
    ],
)
def test_a_spread_dashboard_is_understood_or_what_is_not_is_named(answer, words) -> None:
    assert snapshot_items("spread", json.dumps(answer)).words == words


def test_a_renamed_field_makes_nothing_understood() -> None:
    del (item := ITEM | {"since": 60})["opened_at"]
    found = snapshot_items("spread", json.dumps({"items": [item] * 3}))
    assert (found.nothing, found.odd, found.why) == (True, 3, "no opened_at")


def test_a_rate_without_its_next_time_is_understood() -> None:
    assert snapshot_items("funding", json.dumps({"items": [RATE]})).words == ""
    assert snapshot_items("funding", json.dumps({"items": [RATE | {"rate": "0.01"}]})).nothing


def test_no_json_is_not_understood_and_an_activity_without_counts_neither() -> None:
    assert snapshot_items("spread", "<html>").words == "not understood: no JSON"
    assert snapshot_items("activity", "{}").words == "not understood: no counts of a day"


def test_an_item_whose_name_is_not_printable_or_too_long_is_odd() -> None:
    rate = {"exchange": "X", "market": "futures", "rate": 0.1, "interval_hours": 8}
    symbols = ("A\u202e_B", "A" * 65, "--store=x", "A_B")
    document = json.dumps({"items": [rate | {"symbol": symbol} for symbol in symbols]})
    found = snapshot_items("funding", document)
    assert [item["symbol"] for item in found.understood] == ["A_B"]
    assert found.words == "3 of 4 not understood: symbol that is not a name"


@pytest.mark.parametrize(
    "document",
    [
        "no json",
        "[]",
        '{"windows": null}',
        '{"windows": [1, {"window_s": 3600, "spread": 1, "splash": 1, "funding": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": 1, "splash": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": "1", "splash": 1, "funding": 1}]}',
        '{"windows": [{"window_s": 86400, "spread": -1, "splash": 1, "funding": true}]}',
    ],
)
def test_counts_of_a_day_that_are_not_understood_are_none_and_never_zero(document: str) -> None:
    assert activity_of_day(document) is None
