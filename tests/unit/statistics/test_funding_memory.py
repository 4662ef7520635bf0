"""What the memory of funding is judged from."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Question
from toolkit.statistics.funding.memory import funding_memories
from toolkit.statistics.funding.settlements import settlements
from toolkit.statistics.numeric.long_run import memories

HOUR = 3_600
RATES = np.random.default_rng(1).standard_normal(300) * 1e-4


def pair(buy: np.ndarray, sell: np.ndarray, buy_h: int, sell_h: int) -> pl.DataFrame:
    """Rates of two legs, the rate of each paid at the end of its interval."""
    legs = [
        pl.DataFrame(
            {
                "ts": hours * HOUR * (1 + np.arange(rates.size)),
                f"{leg}_rate": rates,
                f"{leg}_interval_hours": hours,
            }
        )
        for leg, rates, hours in (("buy", buy, buy_h), ("sell", sell, sell_h))
    ]
    both = legs[0].join(legs[1], on="ts", how="full", coalesce=True).sort("ts")
    return both.with_columns(trajectory=pl.lit("a"))


def judged(frame: pl.DataFrame, hours: int = 2_400):
    return funding_memories(settlements(frame), Question("rows/1", 0, hours * HOUR))["a"]


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
    first = pl.DataFrame({"ts": 8 * HOUR * (1 + np.arange(150)), "rate": RATES[:150], "hours": 8})
    second = pl.DataFrame(
        {
            "ts": 1_200 * HOUR + HOUR * (1 + np.arange(1_200)),
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
