"""Episodes beyond the cost in force: arithmetic, the plain episodes, and what is not known."""

from __future__ import annotations

import datetime as dt

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import episodes, net_episodes, net_time_to_close, time_to_close

PAIR = "BTC_USDT:BINANCE.spot:KRAKEN.spot"
MINUTE = 60


def table(*entries: tuple[str, str, float]) -> FeeModel:
    """Fees of (exchange, valid from, taker bps), with no slippage."""
    lines = ['name = "mine"']
    for exchange, since, taker in entries:
        lines += ["[[fee]]", f'exchange = "{exchange}"', f"valid_from = {since}"]
        lines += [f"taker_bps = {taker}", "slippage_bps = 0"]
    return FeeModel.parse("\n".join(lines))


@pytest.fixture
def spreads(series, autoregressive) -> pl.DataFrame:
    values = 12 * autoregressive(0.95, 3000, seed=4)[0]
    return series(values, trajectory=PAIR).rename({"spread_log_bps": "spread_bps"})


def test_at_a_constant_cost_they_are_the_episodes_beyond_it(spreads):
    fees = table(("BINANCE", "2020-01-01", 5), ("KRAKEN", "2020-01-01", 10))
    row = net_episodes(spreads, fees=fees, enter_bps=10, leave_bps=-5).row(0, named=True)
    plain = episodes(spreads, enter_bps=40, leave_bps=25, column="spread_bps", absolute=True)
    assert (row["cost_lowest_bps"], row["cost_highest_bps"]) == (30, 30)
    assert row["net_episodes"] == plain.height > 20
    assert row["net_duration_s"] == plain["duration_s"].sum()
    gross, hours = plain["area_bps_h"].sum(), plain["n"].sum() * MINUTE / 3600
    assert row["net_area_bps_h"] == pytest.approx(gross - 30 * hours, rel=1e-9)
    assert row["net_peak_bps"] == pytest.approx(plain["peak_bps"].abs().max() - 30, rel=1e-12)
    at_entry = spreads.join(plain, left_on="ts", right_on="start_ts")["spread_bps"].abs() - 30
    assert row["net_entry_bps"] == pytest.approx(at_entry.sum(), rel=1e-9)
    assert row["begun"] == plain.filter(~pl.col("censored_left")).height
    assert row["fee_model_hash"] == fees.hash


def test_legs_swapped_without_cost_or_in_a_transfer(spreads):
    free = table(("BINANCE", "2020-01-01", 0), ("KRAKEN", "2020-01-01", 0))
    turned = spreads.with_columns(-pl.col("spread_bps"))
    one, other = (net_episodes(each, fees=free, enter_bps=9) for each in (spreads, turned))
    assert one.drop("params_hash").equals(other.drop("params_hash"))
    fees = FeeModel.example()
    sides = [net_episodes(each, fees=fees, style="transfer") for each in (spreads, turned)]
    both = net_episodes(spreads, fees=fees, style="prefunded")
    assert 0 < sides[0]["net_episodes"].item() < both["net_episodes"].item() + 1
    assert sides[0]["net_peak_bps"].item() != sides[1]["net_peak_bps"].item()


def test_the_cost_is_that_of_the_row_and_unknown_costs_give_no_figure(series):
    day = 1_577_836_800  # 2020-01-01
    frame = series([60.0] * 4, trajectory=PAIR, ts=[day + 43_200 * k for k in range(-1, 3)])
    frame = frame.rename({"spread_log_bps": "spread_bps"})
    both = [
        (name, since, fee)
        for name in ("BINANCE", "KRAKEN")
        for since, fee in (("2020-01-01", 20.0), ("2020-01-02", 10.0))
    ]
    row = net_episodes(frame, fees=table(*both)).row(0, named=True)
    assert (row["n"], row["net_n"]) == (4, 3)
    assert (row["cost_lowest_bps"], row["cost_highest_bps"]) == (40, 80)
    assert (row["net_episodes"], row["net_peak_bps"]) == (1, 20)
    unknown = net_episodes(frame, fees=table(("BYBIT", "2020-01-01", 1))).row(0, named=True)
    assert (unknown["net_episodes"], unknown["net_entry_bps"]) == (None, None)
    assert unknown["cost_reason"] == unknown["net_episodes_reason"] == "unknown_fee"
    with pytest.raises(InputError, match="leave_bps"):
        net_episodes(frame, fees=table(*both), enter_bps=1, leave_bps=2)
    with pytest.raises(InputError, match="enter_bps"):
        net_episodes(frame, fees=table(*both), enter_bps=-1)


def test_at_a_constant_cost_the_time_to_close_is_that_from_beyond_it(spreads):
    fees = table(("BINANCE", "2020-01-01", 5), ("KRAKEN", "2020-01-01", 10))
    net = net_time_to_close(spreads, fees=fees, enter_bps=10, exit_bps=5, toward=2)
    plain = time_to_close(spreads, enter_bps=40, exit_bps=5, toward=2, column="spread_bps")
    shared = [name for name in plain.columns if name not in ("method", "params_hash")]
    assert net.select(shared).equals(plain.select(shared))
    assert net["entries"].item() > 20
    assert net.select("net_n", "cost_highest_bps").row(0) == (3000, 30)


def test_entries_follow_the_cost_in_force_and_need_one_that_is_known(series, start):
    frame = series([0.0, 25.0, 1.0, 25.0, 1.0], trajectory=PAIR, step_s=86_400)
    frame = frame.rename({"spread_log_bps": "spread_bps"})
    row = net_time_to_close(frame, fees=rising(start), exit_bps=2).row(0, named=True)
    assert (row["entries"], row["closed"], row["close_median_s"]) == (1, 1, 86_400)
    unknown = table(("BYBIT", "2020-01-01", 1))
    row = net_time_to_close(frame, fees=unknown, exit_bps=2).row(0, named=True)
    assert (row["entries"], row["close_median_s"]) == (0, None)
    assert row["close_median_reason"] == row["cost_reason"] == "unknown_fee"


def rising(start: int) -> FeeModel:
    """Fees of 20 bps a round trip, and from the third day on of 40."""
    third = dt.datetime.fromtimestamp(start + 2 * 86_400, dt.UTC).date()
    each = [
        (name, since, bps)
        for since, bps in (("2020-01-01", 5), (str(third), 10))
        for name in ("BINANCE", "KRAKEN")
    ]
    return table(*each)


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("exit_bps", {"exit_bps": -1}),
        ("enter_bps", {"exit_bps": 1, "enter_bps": -1}),
        ("style", {"exit_bps": 1, "style": "prefunded"}),
    ],
)
def test_what_makes_no_sense_of_a_net_time_to_close_is_refused(spreads, name, asked):
    with pytest.raises(InputError, match=name):
        net_time_to_close(spreads, fees=FeeModel.example(), **asked)
