"""What spreads leave after costs over a window: by hand, by a loop, and laws."""

from __future__ import annotations

import random

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from toolkit.errors import InputError
from toolkit.statistics.fees import FILLS, FeeModel, net_edge
from toolkit.statistics.spread import coverage, net_summary, time_above

from .test_fee_table import JANUARY, MARCH, PERP, SPOT, TABLE

TURNED = "BTC_USDT:KRAKEN.spot:BINANCE.spot"
LACKING = "BTC_USDT:BYBIT.spot:KRAKEN.spot"
AT = {"": 1.0, "_at_half_cost": 0.5, "_at_twice_cost": 2.0}


@pytest.fixture
def fees() -> FeeModel:
    return FeeModel.parse(TABLE)


def spreads(values: list[float | None], key: str = SPOT, start: int = JANUARY) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "trajectory": [key] * len(values),
            "ts": [start + 60 * k for k in range(len(values))],
            "spread_bps": values,
        },
        schema_overrides={"spread_bps": pl.Float64},
    )


def test_four_values_and_their_cost_give_what_a_hand_computes(fees):
    row = net_summary(spreads([100.0, -100.0, 30.0, 70.0]), fees=fees).row(0, named=True)
    assert (row["n"], row["net_n"], row["cost_bps"], row["cost_changes"]) == (4, 4, 50.0, 0)
    assert (row["gross_mean_bps"], row["breakeven_bps"]) == (75.0, 18.75)
    assert [row[f"net_share{at}"] for at in AT] == [0.75, 1.0, 0.0]
    assert [row[f"net_mean{at}_bps"] for at in AT] == [40.0, 50.0, None]
    assert row["net_mean_reason"] == "nothing_left"
    assert row["net_share_reason"] is row["cost_reason"] is row["cost_lacks"] is None
    assert row["net_q50_bps"] == 35.0
    assert (row["fee_model"], row["fee_model_hash"]) == ("mine", fees.hash)
    assert (row["style"], row["notional"]) == ("taker", 10_000.0)


def test_a_cost_that_nobody_states_leaves_the_gross_figures_and_names_what_is_missing(fees):
    frame = pl.concat([spreads([80.0] * 3, LACKING), spreads([80.0] * 3), spreads([None], PERP)])
    none, known, lacking = net_summary(frame, fees=fees).iter_rows(named=True)
    assert (lacking["gross_mean_bps"], lacking["net_n"]) == (80.0, 0)
    assert lacking["cost_lacks"] == "an entry for BYBIT.spot"
    reasons = ("cost_reason", "net_share_reason", "net_mean_reason", "net_quantiles_reason")
    assert {lacking[name] for name in reasons} == {"unknown_fee"}
    assert {none[name] for name in (*reasons, "gross_reason")} == {"empty"}
    assert known["cost_lacks"] is None
    assert known["net_share"] == 1.0


def test_time_before_the_table_begins_counts_for_gross_alone(fees):
    found = net_summary(spreads([100.0] * 10, start=JANUARY - 300), fees=fees).row(0, named=True)
    assert (found["n"], found["net_n"], found["cost_changes"]) == (10, 5, 1)
    assert found["net_share"] == 1.0
    assert found["cost_lacks"] == "an entry for BINANCE.spot, an entry for KRAKEN.spot"


def test_one_observation_has_no_time_but_quantiles(fees):
    row = net_summary(spreads([100.0]), fees=fees).row(0, named=True)
    assert (row["net_share"], row["net_share_reason"]) == (None, "too_few")
    assert (row["gross_reason"], row["net_q50_bps"]) == ("too_few", 50.0)


def by_loop(frame: pl.DataFrame, fees: FeeModel, asked: dict) -> dict[str, float | None]:
    """The figures of one trajectory from `net_edge`, in numpy."""
    rows = net_edge(frame, fees, **asked).sort("ts").drop_nulls("gross_bps")
    ts = rows["ts"].to_numpy()
    step = int(frame.sort("ts")["ts"].diff().drop_nulls().mode().min())
    end = int(frame["ts"].max()) + step
    weight = np.minimum(np.append(np.diff(ts), end - ts[-1]), 3 * step)
    gross = rows["gross_bps"].to_numpy()
    cost = rows["cost_bps"].to_numpy().astype(float)
    known = ~np.isnan(cost)
    found = {"gross_mean_bps": np.average(gross, weights=weight), "net_n": known.sum()}
    found["breakeven_q95_bps"] = np.quantile(gross, 0.95) / FILLS[asked["style"]]
    for at, multiple in AT.items():
        net = (gross - multiple * cost)[known]
        time = weight[known]
        above = net > 0
        found[f"net_share{at}"] = time[above].sum() / time.sum()
        left = np.average(net[above], weights=time[above]) if above.any() else None
        found[f"net_mean{at}_bps"] = left
        for percent in (5, 50, 95, 99):
            found[f"net_q{percent:02}{at}_bps"] = np.quantile(net, percent / 100)
    return found


@pytest.mark.parametrize("style", FILLS)
def test_the_figures_are_those_of_a_loop_over_rows_with_gaps_and_changes_of_fees(style, fees):
    draw = random.Random(style)
    frame = pl.concat(
        spreads([draw.gauss(0, 80) for _ in range(400)], key, MARCH - 9_000)
        for key in (SPOT, PERP, TURNED)
    )
    frame = frame.sample(fraction=0.8, seed=3, shuffle=True)
    asked = {"style": style, "notional": 2_500.0, "exit_bps": 5.0}
    found = net_summary(frame, fees=fees, **asked)
    for row in found.iter_rows(named=True):
        mine = frame.filter(trajectory=row["trajectory"])
        alone = net_summary(mine, row["window_start"], row["window_end"], fees=fees, **asked)
        assert alone.row(0, named=True) == row
        if row["net_n"]:
            own = net_summary(mine, fees=fees, **asked).row(0, named=True)
            expected = by_loop(mine, fees, asked)
            assert {name: own[name] for name in expected} == pytest.approx(expected, rel=1e-9)
    assert_frame_equal(net_summary(frame.lazy(), fees=fees, **asked), found, check_exact=True)


def test_the_share_is_that_of_the_time_in_which_the_size_is_above_the_cost(fees):
    draw = random.Random(5)
    frame = spreads([draw.gauss(0, 60) for _ in range(500)]).sample(fraction=0.7, seed=1)
    net = net_summary(frame, fees=fees)
    above = time_above(frame, threshold_bps=50.0, absolute=True, column="spread_bps")
    assert net["net_share"].item() == above["time_abs_above_share"].item()
    assert_frame_equal(
        net.select(coverage(frame, column="spread_bps").columns[:-2]),
        coverage(frame, column="spread_bps").drop("method", "params_hash"),
    )


def test_what_cannot_be_asked_is_refused(fees):
    frame = spreads([1.0, 2.0])
    for wrong, words in (
        ({"fees": "fees.toml"}, "a fee table"),
        ({"fees": fees, "notional": 0}, "above 0"),
        ({"fees": fees, "style": "both"}, "prefunded"),
        ({"fees": fees, "exit_bps": float("nan")}, "exit_bps"),
    ):
        with pytest.raises(InputError, match=words):
            net_summary(frame, **wrong)
    with pytest.raises(InputError, match=r"BUY\.market:SELL\.market"):
        net_summary(spreads([1.0], "BTC_USDT:KRAKEN.spot"), fees=fees)
