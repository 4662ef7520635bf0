"""Calendar and memory of funding, against loops and known processes."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.fft import dct

from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics import funding
from toolkit.statistics.core.contract import Question
from toolkit.statistics.funding.persistence import funding_memories
from toolkit.statistics.funding.settlements import settlements
from toolkit.statistics.numeric.long_run import memories

from .test_hour_of_week import pooled_skewness, skewed_ends

HOUR, DAY, WEEK = 3600, 86400, 604_800
MONDAY = 1_700_438_400


def hourly(rates: np.ndarray, trajectory: str = "a") -> pl.DataFrame:
    """A leg of 1 h against spot, from a Monday on."""
    return pl.DataFrame(
        {
            "trajectory": trajectory,
            "ts": MONDAY + HOUR * (1 + np.arange(rates.size)),
            "buy_rate": 0.0,
            "sell_rate": rates,
            "buy_interval_hours": None,
            "sell_interval_hours": 1,
        }
    )


def test_a_heatmap_has_the_mean_of_each_bucket_and_its_coverage():
    rates = np.random.default_rng(1).normal(1e-5, 1e-5, 48)
    frame = hourly(rates).filter(~pl.col("ts").is_between(MONDAY + 9 * HOUR, MONDAY + 28 * HOUR))
    found = funding.heatmap(frame, MONDAY, MONDAY + 2 * DAY)
    hours = [np.r_[0:8], np.r_[0:0], np.r_[0:0], np.r_[28:32], np.r_[32:40], np.r_[40:48]]
    assert found["ts"].to_list() == [MONDAY + 8 * HOUR * k for k in range(6)]
    assert found["coverage"].to_list() == [1.0, 0.0, 0.0, 0.5, 1.0, 1.0]
    for row, of in zip(found.iter_rows(named=True), hours, strict=True):
        if of.size:
            assert row["funding_apr_pct"] == pytest.approx(876_000 * rates[of].mean())
        else:
            assert (row["funding_apr_pct"], row["heatmap_reason"]) == (None, "empty")
    assert funding.heatmap(frame, MONDAY + 1, MONDAY + 8 * HOUR).is_empty()
    with pytest.raises(InputError, match="bucket"):
        funding.heatmap(frame, bucket="5h")


@pytest.mark.parametrize(("function", "part"), [("by_hour", "hour"), ("by_weekday", "weekday")])
def test_a_profile_is_the_mean_over_the_weeks_with_the_error_of_its_slow_waves(function, part):
    rates = np.random.default_rng(2).normal(1e-5, 1e-5, 6 * 168)
    found = getattr(funding, function)(hourly(rates), MONDAY, MONDAY + 6 * WEEK)
    table = 876_000 * rates.reshape(6, 7, 24)
    weekly = table.mean(axis=1) if part == "hour" else table.mean(axis=2)
    assert found[part].to_list() == list(range(24) if part == "hour" else range(1, 8))
    assert found["n"].unique().to_list() == [6]
    assert found["coverage"].to_list() == pytest.approx([1.0] * found.height)
    slow = dct(weekly, norm="ortho", axis=0)[1:4]  # 6^(2/3) is nearest to three
    means, errors = weekly.mean(axis=0), np.sqrt((slow**2).mean(axis=0) / 6)
    lower, upper = np.transpose(
        [
            mean + error * skewed_ends(of, 3, pooled_skewness(list(weekly.T)))
            for mean, error, of in zip(means, errors, weekly.T, strict=True)
        ]
    )
    for name, values in (
        ("funding_apr_pct", means),
        ("error_apr_pct", errors),
        ("lower_apr_pct", lower),
        ("upper_apr_pct", upper),
    ):
        assert found[name].to_numpy() == pytest.approx(values, rel=1e-9)


def test_few_weeks_and_equal_weeks_have_no_interval():
    short = funding.by_hour(hourly(np.arange(3 * 168) * 1e-7), MONDAY, MONDAY + 3 * WEEK)
    flat = funding.by_weekday(hourly(np.full(5 * 168, 1e-5)), MONDAY, MONDAY + 5 * WEEK)
    part = funding.by_weekday(hourly(np.full(24, 1e-5)), MONDAY, MONDAY + 5 * WEEK)
    assert short["error_reason"].unique().to_list() == ["too_few"]
    assert flat["error_reason"].unique().to_list() == ["degenerate"]
    assert short["lower_apr_pct"].null_count() == 24
    assert part["mean_reason"].to_list() == [None, *["empty"] * 6]
    assert part["coverage"].to_list() == pytest.approx([0.2, *[0.0] * 6])


def test_swapped_legs_turn_the_profile():
    frame = hourly(np.random.default_rng(3).normal(1e-5, 1e-5, 5 * 168))
    turned = frame.rename(
        {
            "buy_rate": "sell_rate",
            "sell_rate": "buy_rate",
            "buy_interval_hours": "sell_interval_hours",
            "sell_interval_hours": "buy_interval_hours",
        }
    )
    window = MONDAY, MONDAY + 5 * WEEK
    found, other = funding.by_hour(frame, *window), funding.by_hour(turned, *window)
    assert found["lower_apr_pct"].to_list() == pytest.approx((-other["upper_apr_pct"]).to_list())


def test_funding_that_remembers_more_than_the_window_has_means_without_an_interval():
    noise = np.random.default_rng(4).normal(0, 1e-6, 8 * 168)
    window = MONDAY, MONDAY + 8 * WEEK
    for rates, reason in ((noise, None), (np.cumsum(noise), "long_memory")):
        found = funding.by_hour(hourly(rates), *window)
        assert found["error_reason"].unique().to_list() == [reason]
        assert found["funding_apr_pct"].null_count() == 0
        assert found["lower_apr_pct"].null_count() == (24 if reason else 0)


MEMORY_HOUR = 3_600
RATES = np.random.default_rng(1).standard_normal(300) * 1e-4


def pair(buy: np.ndarray, sell: np.ndarray, buy_h: int, sell_h: int) -> pl.DataFrame:
    """Rates of two legs, the rate of each paid at the end of its interval."""
    legs = [
        pl.DataFrame(
            {
                "ts": hours * MEMORY_HOUR * (1 + np.arange(rates.size)),
                f"{leg}_rate": rates,
                f"{leg}_interval_hours": hours,
            }
        )
        for leg, rates, hours in (("buy", buy, buy_h), ("sell", sell, sell_h))
    ]
    both = legs[0].join(legs[1], on="ts", how="full", coalesce=True).sort("ts")
    return both.with_columns(trajectory=pl.lit("a"))


def judged(frame: pl.DataFrame, hours: int = 2_400):
    return funding_memories(settlements(frame), Question("rows/1", 0, hours * MEMORY_HOUR))["a"]


def test_the_memory_of_a_pair_is_that_of_what_it_is_paid_each_settlement():
    frame = pair(RATES, RATES[::-1], 8, 8)
    by_day = ((RATES[::-1] - RATES) / 8).reshape(-1, 3)
    (expected,) = memories([(by_day - by_day.mean(axis=0)).ravel()])
    found = judged(frame)
    assert found.reason == expected.reason
    assert found.excess == pytest.approx(expected.excess)


def test_legs_of_different_intervals_are_judged_at_the_longer_one():
    hourly = np.repeat(RATES / 8, 8)
    assert judged(pair(hourly, 0 * RATES, 1, 8)).excess == pytest.approx(
        judged(pair(RATES, 0 * RATES, 8, 8)).excess
    )


def test_an_interval_that_grew_shorter_leaves_no_steps_that_pay_nothing():
    first = pl.DataFrame(
        {"ts": 8 * MEMORY_HOUR * (1 + np.arange(150)), "rate": RATES[:150], "hours": 8}
    )
    second = pl.DataFrame(
        {
            "ts": 1_200 * MEMORY_HOUR + MEMORY_HOUR * (1 + np.arange(1_200)),
            "rate": np.repeat(RATES[150:] / 8, 8),
            "hours": 1,
        }
    )
    rows = pl.concat([first, second]).select(
        pl.lit("a").alias("trajectory"),
        "ts",
        pl.lit(0.0).alias("buy_rate"),
        pl.col("rate").alias("sell_rate"),
        pl.lit(None).alias("buy_interval_hours"),
        pl.col("hours").alias("sell_interval_hours"),
    )
    # at steps of an hour 7 in 8 of the first settlements' steps would be unknown
    assert judged(rows).excess == pytest.approx(judged(pair(0 * RATES, RATES, 8, 8)).excess)


def test_a_season_of_the_day_is_no_memory():
    season = np.resize([-5e-4, 0.0, 5e-4], RATES.size)
    plain, with_season = (pair(0 * RATES, rates, 8, 8) for rates in (RATES, RATES + season))
    assert judged(with_season).reason is None
    assert judged(with_season).excess == pytest.approx(judged(plain).excess)


def test_a_long_window_of_hours_is_judged_at_parts_of_a_day_and_years_at_days():
    rates = np.random.default_rng(2).standard_normal(24 * 900) * 1e-5
    assert judged(pair(0 * rates, rates, 1, 1), hours=rates.size).reason is None
    daily = rates.reshape(-1, 24).mean(axis=1)
    (expected,) = memories([daily])
    assert judged(pair(0 * rates, rates, 1, 1), hours=rates.size).excess == pytest.approx(
        expected.excess
    )


def test_a_window_without_settlements_is_too_short():
    assert judged(pair(RATES, RATES, 8, 8), hours=1).reason == Reason.TOO_FEW
