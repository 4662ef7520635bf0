from __future__ import annotations

import math

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel, net_edge

from .test_fee_table import JANUARY, MARCH, NOW, PERP, SPOT, TABLE


@pytest.fixture
def fees() -> FeeModel:
    return FeeModel.parse(TABLE)


def rows(values: list[float | None], trajectory: str = SPOT, start: int = NOW) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trajectory": [trajectory] * len(values),
            "ts": [start + 60 * k for k in range(len(values))],
            "spread_bps": values,
        },
        schema_overrides={"spread_bps": pl.Float64},
    )


def test_the_example_says_that_it_is_one():
    example = FeeModel.example()
    assert "EXAMPLE" in example.name
    row = net_edge(rows([50.0]), example, notional=1e4).row(0, named=True)
    assert row["fee_model"] == example.name
    assert row["edge_bps"] is not None


def test_an_edge_is_what_the_spread_leaves_on_either_side(fees):
    net = net_edge(rows([100.0, -100.0, 10.0, None]), fees, notional=1e4)
    assert net["gross_bps"].to_list() == [100.0, 100.0, 10.0, None]
    assert net["cost_bps"].to_list() == [58.0] * 4
    assert net["edge_bps"].to_list() == [42.0, 42.0, -48.0, None]
    assert net["edge_at_half_cost_bps"].to_list() == [71.0, 71.0, -19.0, None]
    assert net["edge_at_twice_cost_bps"].to_list() == [-16.0, -16.0, -106.0, None]
    assert net["breakeven_bps"].to_list() == [25.0, 25.0, 2.5, None]
    assert net["gross_reason"].to_list() == [None, None, None, "empty"]
    assert net["edge_reason"].to_list() == [None, None, None, "empty"]
    assert set(net["fee_model_hash"]) == {fees.hash}


def test_the_level_at_which_it_closes_is_taken_off(fees):
    net = net_edge(rows([100.0, -20.0]), fees, notional=1e4, exit_bps=-10)
    assert net["gross_bps"].to_list() == [110.0, 10.0]


def test_a_transfer_earns_on_one_side_only(fees):
    net = net_edge(rows([100.0, -100.0], start=JANUARY), fees, notional=1e4, style="transfer")
    assert net["edge_bps"].to_list() == [63.0, -137.0]
    assert net["breakeven_bps"].to_list() == [50.0, -50.0]


def test_what_is_held_on_both_sides_earns_on_either_and_has_no_exit(fees):
    frame = rows([100.0, -100.0], start=JANUARY)
    net = net_edge(frame, fees, style="prefunded", exit_bps=50)
    assert net["edge_bps"].to_list() == [75.0, 75.0]
    assert net["breakeven_bps"].to_list() == [50.0, 50.0]


def test_breakeven_is_the_cost_a_fill_at_which_nothing_is_left():
    row = net_edge(rows([100.0]), FeeModel("none", ()), notional=1e4).row(0, named=True)
    told = TABLE.replace("slippage_bps = 0.5", "slippage_bps = 0")
    told = told.replace("slippage_bps = 1.5", "slippage_bps = 0")
    for rate in ("taker_bps = 4.0", "taker_bps = 8.0", "taker_bps = 20.0"):
        told = told.replace(rate, f"taker_bps = {row['breakeven_bps']}")
    exact = net_edge(rows([100.0]), FeeModel.parse(told), notional=1e4)
    assert exact["edge_bps"].item() == 0.0


def test_an_unknown_fee_leaves_the_gross_figures_and_no_edge(fees):
    frame = pl.concat(
        [rows([80.0]), rows([80.0], "BTC_USDT:BYBIT.spot:KRAKEN.spot"), rows([80.0], start=0)]
    )
    net = net_edge(frame, fees, notional=1e4)
    assert net["gross_bps"].to_list() == [80.0] * 3
    assert net["edge_bps"].to_list() == [22.0, None, None]
    assert net["edge_reason"].to_list() == [None, "unknown_fee", "unknown_fee"]
    assert net["cost_reason"].to_list() == net["edge_reason"].to_list()


def test_fees_are_those_of_the_time_of_the_row_in_any_order_of_rows(fees):
    frame = pl.concat(
        [rows([100.0] * 4, trajectory, start=MARCH - 120) for trajectory in (SPOT, PERP)]
    ).sample(fraction=1, shuffle=True, seed=4)
    net = net_edge(frame.lazy(), fees, notional=1e4)
    assert net.select(frame.columns).equals(frame)
    for key, ts, cost in net.select("trajectory", "ts", "cost_bps").rows():
        assert cost == fees.round_trip_bps(key, 1e4, at=ts)
    assert net["cost_bps"].n_unique() == 3


def test_spreads_are_computed_from_prices_where_the_frame_has_only_those(fees):
    frame = pl.DataFrame(
        {"trajectory": [SPOT], "ts": [NOW], "buy_price": [100.0], "sell_price": [101.0]}
    )
    assert net_edge(frame, fees, notional=1e4)["gross_bps"].item() == pytest.approx(100)


def test_rows_that_name_no_legs_are_refused(fees):
    numbered = rows([1.0]).with_columns(trajectory=pl.lit(7))
    with pytest.raises(InputError, match="trajectory is Int32"):
        net_edge(numbered, fees, notional=1e4)
    with pytest.raises(InputError, match="SYMBOL:"):
        net_edge(rows([1.0], "a"), fees, notional=1e4)
    with pytest.raises(InputError, match=r"BUY\.market:SELL\.market"):
        net_edge(rows([1.0], "BTC_USDT:KRAKEN.spot"), fees, notional=1e4)
    with pytest.raises(InputError, match="exit_bps"):
        net_edge(rows([1.0]), fees, notional=1e4, exit_bps=math.nan)
