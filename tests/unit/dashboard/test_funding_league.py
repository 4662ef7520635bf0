"""What pairs kept: until when they are measured, which way round, and the largest fall."""

import random

import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.dashboard.fee_choice import Net
from toolkit.dashboard.pages.funding.league import league_rows
from toolkit.dashboard.pages.funding.measured import (
    largest_falls,
    measure_carried,
    measure_time,
    settled_until,
)
from toolkit.dashboard.pages.funding.page import heat_rows
from toolkit.dashboard.reading import read_held
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.statistics.core.definition import turned
from toolkit.statistics.fees import FeeModel
from toolkit.statistics.funding import carry, heatmap, holdings, legs
from toolkit.store import Edge
from toolkit.store.file.engine import version_of

from .conftest import loading

HOUR, DAY = 3_600, 86_400
START = 1_678_406_400  # 2023-03-10 00:00 UTC
PAYS, COSTS, OLD = (
    Trajectory.parse(f"{symbol}:AURORA.futures:BOREAS.futures", Family.FUNDING)
    for symbol in ("BTC_USDT", "ETH_USDT", "SOL_USDT")
)


def settlements(days, sell_rate, seed=None):
    """Rows of a leg that settles each hour at 0 and of one that does so each 8 h."""
    drawn = random.Random(seed)
    hours = range(24 * days + 4)  # the last of the slower leg is four hours before the end
    return pl.DataFrame(
        {
            "ts": [START + HOUR * hour for hour in hours],
            "buy_rate": 0.0 if seed is None else [drawn.gauss(0, 1e-4) for _ in hours],
            "sell_rate": [sell_rate if hour % 8 == 0 else None for hour in hours],
            "buy_interval_hours": 1.0,
            "sell_interval_hours": 8.0,
            "differential_pct_8h": None,
            "extra": None,
        },
        schema_overrides={
            "differential_pct_8h": pl.Float64,
            "extra": pl.String,
            "sell_rate": pl.Float64,
        },
    )


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """Ten days of two pairs, and of a third one that ended five days before."""
    store = empty_store(tmp_path_factory.mktemp("league") / "held.duckdb", Source("replay", "x"))
    end = START + 11 * DAY
    edge = Edge(served_at=end, delay_s=0, retention_s=None, step_s=HOUR)
    with loading(store, end) as batch:
        for pair, days, rate in ((PAYS, 10, 2e-4), (COSTS, 10, -3e-4), (OLD, 5, 9e-4)):
            batch.add(pair, settlements(days, rate), Interval(START, end), edge)
    return read_held(store.path, version_of(store.path))


def test_a_pair_is_measured_until_both_legs_have_settled_and_turned_so_that_it_received(held):
    carried = measure_carried(held, funding_only=True)
    (named,) = carried.filter(trajectory=PAYS.key, days=1).to_dicts()
    assert named["window_end"] == START + 10 * DAY
    assert named["coverage"] == 1
    assert named["funding_bps"] == pytest.approx(3 * 2.0)
    gross = league_rows(carried, None, 1e4)
    (old,) = gross.filter(trajectory=OLD.key).to_dicts()
    assert (old["kept_1d"], old["kept_7d"], old["kept_30d"]) == (None, None, None)
    assert old["words_1d"] == "no observation in the window, coverage 0.00 %"
    assert gross["trajectory"].to_list()[0] == turned_key(COSTS)
    assert gross["is_turned"].to_list()[:2] == [True, False]
    assert gross["kept_7d"].to_list()[:2] == pytest.approx([63.0, 42.0])
    fees = FeeModel.example(["AURORA", "BOREAS"])
    net = league_rows(carried, Net(fees, "maker_buy"), 1e4)
    cost = fees.round_trip_bps(turned_key(COSTS), style="maker_buy", at=START)
    assert net["kept_7d"][0] == pytest.approx(63.0 - cost)


@pytest.mark.parametrize("funding_bps", [0.0, None, 5.0])
def test_a_pair_that_is_held_both_ways_round_is_one_row(held, funding_bps):
    """Also where it received nothing, or what it received is not known."""
    first = measure_carried(held, funding_only=True).filter(trajectory=PAYS.key)
    bps = pl.lit(funding_bps, pl.Float64)
    one = first.with_columns(funding_bps=bps, funding_reason=pl.lit("empty"))
    other = one.with_columns(funding_bps=-bps, trajectory=pl.lit(turned_key(PAYS)))
    for carried in (pl.concat([one, other]), pl.concat([other, one])):
        (row,) = league_rows(carried, None, 1e4).to_dicts()
        assert (row["trajectory"], row["stream"], row["is_turned"]) == (PAYS.key, PAYS.key, False)
        assert row["kept_7d"] == funding_bps


def test_of_a_pair_held_both_ways_round_the_stream_with_a_figure_stays(held):
    first = measure_carried(held, funding_only=True).filter(trajectory=PAYS.key)
    unknown = pl.lit(None, pl.Float64)
    silent = first.with_columns(funding_bps=unknown, funding_reason=pl.lit("empty"))
    other = first.with_columns(-pl.col("funding_bps"), trajectory=pl.lit(turned_key(PAYS)))
    (row,) = league_rows(pl.concat([silent, other]), None, 1e4).to_dicts()
    assert (row["trajectory"], row["stream"], row["is_turned"]) == (
        PAYS.key,
        turned_key(PAYS),
        True,
    )


def turned_key(pair):
    buy, sell = pair.legs
    return f"funding/{pair.symbol}:{sell}:{buy}"


def test_legs_and_symbols_through_time_are_those_of_the_statistics(held):
    """Against the heat map of the legs themselves, and the plain mean of a symbol's legs."""
    window = Interval(START, START + 5 * DAY)
    measured = measure_time(held, window, "8h")
    found = heat_rows(measured, "legs").filter(symbol="BTC_USDT")
    rows = settlements(10, 2e-4).with_columns(trajectory=pl.lit(PAYS.key))
    own = heatmap(legs(rows), *window, bucket="8h").sort("trajectory", "ts")
    assert found["funding_apr_pct"].to_list() == pytest.approx(own["funding_apr_pct"].to_list())
    mean = heat_rows(measured, "symbols").filter(symbol="BTC_USDT")["funding_apr_pct"]
    halves = [each.to_list() for each in (own["funding_apr_pct"][:15], own["funding_apr_pct"][15:])]
    assert mean.to_list() == pytest.approx([(a + b) / 2 for a, b in zip(*halves, strict=True)])


@pytest.mark.parametrize("seed", range(5))
def test_the_largest_fall_and_rise_are_those_of_a_position_held_all_the_time(seed):
    """Against the drawdown of one holding, and of the pair turned round."""
    rows = settlements(10, 1e-4, seed).with_columns(trajectory=pl.lit(PAYS.key))
    window = (START, START + 10 * DAY)
    (_, fall, rise) = largest_falls(carry(rows, *window)).row(0)
    asked = {"horizons": [10 * DAY], "every": DAY, "funding_only": True}
    held_once = holdings(rows, *window, **asked)["funding_only_drawdown_median_bps"].item()
    other = turned(rows, turned_key(PAYS))
    turned_once = holdings(other, *window, **asked)["funding_only_drawdown_median_bps"].item()
    assert (fall, rise) == pytest.approx((held_once, turned_once))


def test_a_leg_that_never_settles_does_not_hold_the_end_back():
    rows = pl.DataFrame(
        {
            "trajectory": ["a"] * 2,
            "ts": [0, 60],
            "buy_rate": [None, None],
            "sell_rate": [1e-4, float("nan")],
        },
        schema_overrides={"buy_rate": pl.Float64},
    )
    assert settled_until(rows)["end"].to_list() == [0]
