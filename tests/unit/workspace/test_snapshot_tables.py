"""Kept dashboards as tables: what is not as expected is null or left out, never an error."""

from __future__ import annotations

import itertools
import json

import polars as pl
import pytest

from toolkit.client import Client
from toolkit.service import Clock, Config, Simulated, running
from toolkit.workspace.snapshot_tables import (
    each_pair_once,
    funding_rates,
    held_stream,
    open_spreads,
    shown_as_held,
    widest_differentials,
)

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


KEY, TURNED = "A_B:X.spot:Y.spot", "A_B:Y.spot:X.spot"
WAYS = (KEY, TURNED, f"snapshot-spread/{KEY}", f"snapshot-spread/{TURNED}")


@pytest.mark.parametrize("kept", list(itertools.product([False, True], repeat=4)))
def test_what_was_loaded_comes_first_and_the_way_asked_for_where_both_are_held(kept):
    held = {way for way, is_held in zip(WAYS, kept, strict=True) if is_held}
    first = next((way for way in WAYS if way in held), None)
    assert held_stream(KEY, held) == (None if first is None else (first, first.endswith(TURNED)))


def test_a_row_is_turned_with_its_legs_and_signs_where_its_pair_is_held_the_other_way():
    rows = pl.DataFrame(
        {
            "trajectory": [KEY, "C_D:X.spot:Y.spot", "E_F:X.spot:Y.spot"],
            "buy": ["X.spot"] * 3,
            "sell": ["Y.spot"] * 3,
            "bps": [30.0, 20.0, None],
        }
    )
    held = {TURNED, "C_D:X.spot:Y.spot", "C_D:Y.spot:X.spot"}
    found = shown_as_held(rows, held, "bps")
    assert found.rows() == [
        (TURNED, "Y.spot", "X.spot", -30.0, TURNED),
        ("C_D:X.spot:Y.spot", "X.spot", "Y.spot", 20.0, "C_D:X.spot:Y.spot"),
        ("E_F:X.spot:Y.spot", "X.spot", "Y.spot", None, None),
    ]
    assert shown_as_held(rows.clear(), held, "bps").is_empty()


def test_funding_is_found_either_way_round_and_prices_are_not_turned():
    funding = "funding/A_B:X.futures:Y.futures"
    assert held_stream("funding/A_B:Y.futures:X.futures", {funding}) == (funding, True)
    assert held_stream("A_B:X.spot", {"A_B:X.spot"}) == ("A_B:X.spot", False)


def test_of_two_rows_of_a_pair_the_newer_stays_and_of_equal_times_the_first():
    rows = pl.DataFrame(
        {
            "symbol": ["A_B"] * 2,
            "buy": ["X.spot", "Y.spot"],
            "sell": ["Y.spot", "X.spot"],
            "ts": [60, 60],
        }
    )
    assert each_pair_once(rows, "ts")["buy"].to_list() == ["X.spot"]
    newer = rows.with_columns(ts=pl.Series([60, 120]))
    assert each_pair_once(newer, "ts")["buy"].to_list() == ["Y.spot"]
