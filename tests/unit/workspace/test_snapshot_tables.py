"""Kept dashboards as tables: what is not as expected is null or left out, never an error."""

from __future__ import annotations

import json

import pytest

from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.workspace.snapshot_tables import funding_rates, open_spreads, widest_differentials

ITEM = {
    "symbol": "BTC_USD",
    "buy_exchange": "X",
    "buy_market": "spot",
    "sell_exchange": "Y",
    "sell_market": "futures",
    "spread_pct": 1.5,
    "opened_at": 60,
}


def rate(exchange, value, hours, symbol="BTC_USD"):
    return {
        "symbol": symbol,
        "exchange": exchange,
        "market": "futures",
        "rate": value,
        "interval_hours": hours,
        "next_funding_time": 0,
    }


@pytest.mark.parametrize(
    "items",
    [
        None,
        [],
        ["text", 3],
        [{}],
        [ITEM | {"spread_pct": "wide"}],
        [ITEM | {"spread_pct": True}],
        [{k: v for k, v in ITEM.items() if k != "buy_exchange"}],
    ],
)
def test_an_answer_of_another_shape_has_no_rows(items):
    assert open_spreads(json.dumps({"items": items})).is_empty()
    assert open_spreads(json.dumps(items)).is_empty()


def test_an_item_that_does_not_say_whether_it_is_open_is_left_out():
    del (item := dict(ITEM))["opened_at"]
    (row,) = open_spreads(json.dumps({"items": [item, ITEM, ITEM | {"opened_at": 60.5}]}))[
        :1
    ].to_dicts()
    assert row["opened_at"] == 60
    assert row["trajectory"] == "BTC_USD:X.spot:Y.futures"


def test_rates_of_different_intervals_are_brought_to_one_unit():
    items = [rate("X", 0.0001, 8), rate("Y", 0.0001, 1), rate("Z", 0.0, 0)]
    rates = funding_rates(json.dumps({"items": items}))
    assert rates["exchange"].to_list() == ["Y", "X"]
    assert rates["rate_pct_8h"].to_list() == pytest.approx([0.08, 0.01])
    assert rates["apr_pct"].to_list() == pytest.approx([87.6, 10.95])


def test_a_symbol_on_one_leg_is_not_apart_from_anything():
    items = [rate("X", 0.0001, 8), rate("X", 0.0002, 8, "A_B"), rate("Y", 0.0004, 8, "A_B")]
    (row,) = widest_differentials(funding_rates(json.dumps({"items": items}))).to_dicts()
    assert (row["trajectory"], row["legs"]) == ("funding/A_B:X.futures:Y.futures", 2)
    assert row["differential_pct_8h"] == pytest.approx(0.02)


@pytest.mark.parametrize("turned", [False, True])
def test_of_equal_rates_the_first_by_name_is_named_in_any_order_of_the_answer(turned):
    items = [rate(name, 1e-4 if name in "ZX" else -1e-4, 8) for name in "ZXMK"]
    rates = funding_rates(json.dumps({"items": items[::-1] if turned else items}))
    assert widest_differentials(rates)["trajectory"].item() == "funding/BTC_USD:K.futures:X.futures"


def test_where_all_rates_are_equal_two_legs_are_still_two():
    items = [rate(name, 1e-4, 8) for name in "ZXM"]
    (row,) = widest_differentials(funding_rates(json.dumps({"items": items}))).to_dicts()
    assert (row["trajectory"], row["differential_apr_pct"]) == (
        "funding/BTC_USD:M.futures:X.futures",
        0,
    )


@pytest.mark.slow
def test_the_local_services_dashboards_are_read_in_full():
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=1_795_132_800))
    with running(config) as service, Client(service.base_url, "demo-pro") as client:
        spreads, funding = (client.snapshot(kind).decode() for kind in ("spread", "funding"))
    assert open_spreads(spreads).height == len(json.loads(spreads)["items"]) > 0
    rates = funding_rates(funding)
    assert rates.height == len(json.loads(funding)["items"]) > 0
    assert rates.null_count().sum_horizontal().item() == 0
    widest = widest_differentials(rates)["differential_apr_pct"]
    assert widest.is_sorted(descending=True)
