"""What a leg that is known late makes of a spread, as it is said and as it comes about."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from .test_flags import START, flagged, pair, walk


@pytest.mark.parametrize(
    ("late_s", "sd_bps", "beyond_10_bps"), [(10, 5.6, 0.076), (60, 13.8, 0.47)]
)
def test_a_late_leg_of_one_price_makes_spreads_of_the_deviation_that_is_said(
    late_s: int, sd_bps: float, beyond_10_bps: float
) -> None:
    """Of no spread and a volatility of 100 % a year, as research measured it."""
    rng = np.random.default_rng(late_s)
    every_s, steps = late_s, 6_000
    moves = np.sqrt(every_s / (365 * 86_400)) * rng.standard_normal(steps + 1)
    price = 50 * np.exp(np.cumsum(moves))
    frame = pair(price[1:], price[:-1]).with_columns(
        ts=START + every_s * pl.int_range(pl.len()),
        buy_age_s=pl.lit(0, pl.Int64),
        sell_age_s=pl.lit(late_s, pl.Int64),
    )
    row = flagged(frame)
    assert row["late_s"] == late_s
    assert row["stale_sd_log_bps"] == pytest.approx(sd_bps, rel=0.03)
    spread = 1e4 * np.log(price[:-1] / price[1:])
    assert spread.std() == pytest.approx(row["stale_sd_log_bps"], rel=0.03)
    assert (abs(spread) > 10).mean() == pytest.approx(beyond_10_bps, abs=0.02)
    assert row["within_stale_sd_share"] == pytest.approx(0.954, abs=0.01)


def test_rows_without_ages_may_be_a_step_apart_and_equal_ages_are_not():
    prices = walk(1)
    frame = pair(prices, prices * 1.001)
    row = flagged(frame)
    assert row["late_s"] == 60
    assert row["stale_sd_log_bps"] == pytest.approx(10, rel=0.05)
    assert row["within_stale_sd_share"] == 1.0
    ages = frame.with_columns(buy_age_s=pl.lit(5, pl.Int64), sell_age_s=pl.lit(5, pl.Int64))
    row = flagged(ages)
    assert (row["late_s"], row["stale_sd_log_bps"], row["within_stale_sd_share"]) == (0, 0, 0)
    alone = flagged(frame.head(1), step_s=60)
    assert (alone["stale_sd_log_bps"], alone["stale_sd_reason"]) == (None, "too_few")
    one_leg = flagged(
        frame.with_columns(sell_price=pl.lit(None, pl.Float64), spread_pct=pl.lit(0.1))
    )
    assert (one_leg["late_s"], one_leg["stale_sd_reason"]) == (None, "missing_leg")
