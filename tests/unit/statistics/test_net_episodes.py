"""Episodes beyond the cost in force: arithmetic, the plain episodes, and what is not known."""

from __future__ import annotations

import datetime as dt
import random
from itertools import pairwise

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.spread import (
    episodes,
    net_episodes,
    net_summary,
    net_time_to_close,
    time_to_close,
)
from toolkit.statistics.spread.net_episodes import LEVEL_BPS, Level

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


START, STEPS = 1_700_000_000, 600
WINDOW = (START, START + 60 * STEPS)
FEES = FeeModel.example(["BINANCE", "KRAKEN"])


@pytest.fixture
def rows():
    drawn = random.Random(3)
    values = [drawn.gauss(0, 40) for _ in range(STEPS)]
    ts = [START + 60 * k for k in range(STEPS)]
    return pl.DataFrame(
        {"trajectory": [PAIR] * STEPS, "ts": ts, "spread_bps": values}
    ).with_columns(spread_log_bps=1e4 * (pl.col("spread_bps") / 1e4).log1p())


def runs(values, beyond):
    """How many stretches begin within the values."""
    return sum(beyond(b) and not beyond(a) for a, b in pairwise(values))


@pytest.mark.parametrize("absolute", [False, True])
def test_without_fees_it_is_the_number_of_rows_at_or_above_the_level(rows, absolute):
    level = Level(30, absolute)
    row = level.measure(rows, *WINDOW).row(0, named=True)
    values = rows["spread_log_bps"].to_list()

    def beyond(value):
        return (abs(value) if absolute else value) >= 30

    assert row["level_share"] == pytest.approx(sum(map(beyond, values)) / STEPS)
    assert row["level_begun"] == runs(values, beyond)
    assert row["level_per_day"] == pytest.approx(runs(values, beyond) * 1440 / STEPS)
    assert level.sides == ((1, -1) if absolute else (1,))
    drawn = level.stretches(rows, *WINDOW)
    assert drawn is not None
    assert drawn[1]["n"].sum() == sum(map(beyond, values))


@pytest.mark.parametrize("style", ["taker", "transfer"])
def test_with_fees_it_is_what_is_beyond_the_cost(rows, style):
    level = Level(fees=FEES, style=style, notional=1e4)
    row = level.measure(rows, *WINDOW).row(0, named=True)
    asked = {"fees": FEES, "style": style}
    net = net_summary(rows, *WINDOW, **asked).row(0, named=True)
    count = net_episodes(rows, *WINDOW, **asked).row(0, named=True)
    assert (row["level_share"], row["level_begun"]) == (net["net_share"], count["begun"])
    drawn = level.stretches(rows, *WINDOW)
    if net["cost_bps"] is None:
        assert (row["level_share"], row["level_reason"], drawn) == (None, "unknown_fee", None)
        assert (row["level_per_day"], row["per_day_reason"]) == (None, "unknown_fee")
        return
    assert drawn is not None
    assert drawn[0] == net["cost_bps"]
    assert drawn[1].height == count["net_episodes"]
    either = style != "transfer"
    assert level.words == ("|spread| > cost" if either else "spread > cost")
    assert (set(drawn[1]["side"]) == {"positive", "negative"}) is either


def test_a_spread_without_a_row_or_a_known_step_says_why():
    nothing = pl.DataFrame({"trajectory": [PAIR], "ts": [START], "spread_log_bps": [None]})
    nothing = nothing.cast({"spread_log_bps": pl.Float64})
    row = Level().measure(nothing, *WINDOW).row(0, named=True)
    assert (row["level_share"], row["level_reason"]) == (None, "empty")
    assert (row["level_per_day"], row["per_day_reason"]) == (None, "empty")
    alone = pl.DataFrame({"trajectory": [PAIR], "ts": [START], "spread_log_bps": [50.0]})
    row = Level().measure(alone, *WINDOW).row(0, named=True)
    assert (row["level_reason"], row["per_day_reason"]) == ("too_few", "too_few")


def test_the_level_of_all_faces_is_named():
    assert Level().words == f"≥ {LEVEL_BPS:g} bps"
