"""Shortcuts that are often taken, beside the figure that is right.

Others are shown where their figure is tested:

- An interval that changes, in `test_funding.py`:
  `test_an_interval_that_changes_is_weighted_by_what_it_was_and_not_by_a_shortcut`.
- Noisy quotes: `test_a_known_half_life_is_recovered_beneath_noise` in `test_half_life.py`.
- Missing data: `test_phi_equals_a_regression_on_the_pairs_one_step_apart` in `test_half_life.py`.
- Gross figures sold as yield, and one word for two numbers: `test_net_funding.py` and
  `test_net_spread.py`, whose net columns stand beside the gross ones.
- Look-ahead: `test_later_rows_change_no_earlier_figure` in `test_scores.py`, and
  `test_nothing_known_later_changes_a_row` in `test_pairs.py`.
- Ticker collisions: `test_a_ticker_of_another_coin_is_levels_apart` and
  `test_a_contract_of_a_power_of_ten_is_named` in `test_flags.py`.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from statsmodels.tsa.stattools import acf

from toolkit.statistics import funding
from toolkit.statistics.spread import half_life, hayashi_yoshida, hour_of_week
from toolkit.statistics.spread.pairs import pair
from toolkit.statistics.survival import median_life

HOUR, DAY = 3600, 86400
MIDNIGHT = 1_700_006_400


@pytest.mark.parametrize(("hours", "wrong_by"), [(4, 2), (1, 8)])
def test_a_rate_of_another_interval_is_no_rate_of_8_hours(hours, wrong_by, joined, every):
    frame = joined(None, every(hours, [1e-4] * (240 // hours + 1)))
    apr_pct = funding.summary(frame, MIDNIGHT, MIDNIGHT + 10 * DAY)["funding_apr_pct"].item()
    assert apr_pct == pytest.approx(wrong_by * 1e-4 * 3 * 365 * 100)


def test_three_hundredths_of_a_percent_each_8_hours_are_a_third_each_year(joined, every):
    frame = joined(None, every(8, [3e-4] * 31))
    apr_pct = funding.summary(frame, MIDNIGHT, MIDNIGHT + 10 * DAY)["funding_apr_pct"].item()
    assert apr_pct == pytest.approx(32.85)
    in_fractions = 3e-4 * 3 * 365
    assert apr_pct / in_fractions == pytest.approx(100)


def test_bars_that_meet_one_settlement_of_three_lose_two_thirds(joined, every):
    frame = joined(None, every(8, [1e-4] * 31))
    row = funding.summary(frame, MIDNIGHT, MIDNIGHT + 10 * DAY).row(0, named=True)
    in_bars = frame.filter(pl.col("ts") > MIDNIGHT, (pl.col("ts") - MIDNIGHT) % (6 * HOUR) == 0)
    assert row["funding_bps"] == pytest.approx(30)
    assert 1e4 * in_bars["sell_rate"].sum() / row["funding_bps"] - 1 == pytest.approx(-2 / 3)


def test_an_autocorrelation_over_gaps_divided_by_all_rows_shortens_the_half_life(
    autoregressive, series, start
):
    phi, length = 0.98, 20_000
    values = autoregressive(phi, length, seed=5)[0]
    values[np.random.default_rng(6).random(length) < 0.2] = math.nan
    row = half_life(series(values), start, start + 60 * length).row(0, named=True)
    shortcut = acf(values, nlags=1, missing="conservative")[1]
    assert -math.log(2) / math.log(shortcut) < 4  # minutes, of 34
    assert row["half_life_ar1_s"] / 60 == pytest.approx(-math.log(2) / math.log(phi), rel=0.15)


def test_a_short_sample_is_too_low_and_its_interval_shows_it(autoregressive, start):
    phi, length, count = 0.99, 500, 60
    paths = autoregressive(phi, length, seed=9, paths=count)
    frame = pl.DataFrame(
        {
            "trajectory": np.repeat(np.arange(count), length),
            "ts": np.tile(start + 60 * np.arange(length), count),
            "spread_log_bps": paths.ravel(),
        }
    )
    found = half_life(frame, start, start + 60 * length)
    true_s = -math.log(2) * 60 / math.log(phi)
    assert found["half_life_ar1_s"].median() < 0.75 * true_s
    assert (found["half_life_upper_s"].fill_null(math.inf) > true_s).mean() > 0.85


def test_hours_of_a_week_differ_by_errors_of_minutes_and_not_by_those_of_weeks(
    autoregressive, series
):
    weeks, monday = 8, MIDNIGHT - MIDNIGHT % (7 * DAY) + 4 * DAY
    values = autoregressive(0.99, weeks * 10_080, seed=12)[0]
    ts = monday + 60 * np.arange(values.size)
    found = hour_of_week(series(values, ts=ts), monday, monday + weeks * 7 * DAY)
    cells = values.reshape(weeks, 168, 60).swapaxes(0, 1).reshape(168, -1)
    reach = 1.96 * cells.std(axis=1, ddof=1) / math.sqrt(cells.shape[1])
    assert (np.abs(cells.mean(axis=1) - values.mean()) > reach).mean() > 0.6
    assert found["differs"].mean() < 0.15


def test_lives_that_ended_within_the_archive_are_the_short_ones():
    rng = np.random.default_rng(3)
    began, lives = rng.uniform(0, 720, 4000), rng.exponential(240, 4000)
    watched = np.minimum(lives, 720 - began) * HOUR
    frame = pl.DataFrame({"duration_s": watched, "observed": (lives <= 720 - began).astype(int)})
    closed_h = frame.filter(observed=1)["duration_s"].mean() / HOUR
    assert closed_h == pytest.approx(146, rel=0.1)
    found_s = median_life(frame)["median_life_s"].item()
    assert found_s / HOUR == pytest.approx(240 * math.log(2), rel=0.08)


def test_prices_carried_to_a_grid_lose_a_correlation_that_overlapping_returns_keep():
    """The effect of Epps: one walk, seen each 5 and each 13 seconds on average."""
    rng, length = np.random.default_rng(9), 40_000
    walk = np.cumsum(1e-4 * rng.standard_normal(length))
    seen = [np.sort(rng.choice(length, length // every, replace=False)) for every in (5, 13)]
    grid = np.arange(100, length, 5)
    carried = [walk[ts[np.searchsorted(ts, grid, side="right") - 1]] for ts in seen]
    shortcut = np.corrcoef(*(np.diff(each) for each in carried))[0, 1]
    buy, sell = (
        pl.DataFrame({"ts": ts, leg: np.exp(walk[ts])})
        for leg, ts in zip(("buy_price", "sell_price"), seen, strict=True)
    )
    rows = buy.join(sell, on="ts", how="full", coalesce=True).with_columns(trajectory=pl.lit("a"))
    found = hayashi_yoshida(rows, lags_s=[0])["correlation"].item()
    assert shortcut < 0.5
    assert found == pytest.approx(1, abs=0.1)


def test_one_price_seen_at_other_times_has_a_spread_with_its_age_beside_it():
    """With a volatility of 100 % a year, 10 s are 5.6 bps and 50 s 12.6."""
    rng, minutes = np.random.default_rng(4), 5000
    walk = np.cumsum(rng.standard_normal(60 * minutes) / math.sqrt(365 * DAY))
    seen = [np.arange(59, 60 * minutes, 60), np.arange(49, 60 * minutes, 60)]
    buy, sell = (
        pl.DataFrame({"trajectory": f"A_USD:{venue}.spot", "ts": ts, "price": np.exp(walk[ts])})
        for venue, ts in zip("XY", seen, strict=True)
    )
    found = pair(buy, sell).with_columns(age_s=pl.max_horizontal("buy_age_s", "sell_age_s"))
    for age_s, deviation_bps in ((10, 5.6), (50, 12.6)):
        stale = found.filter(pl.col("age_s") == age_s)
        assert stale["spread_log_bps"].std() == pytest.approx(deviation_bps, rel=0.05)
    assert pair(buy, sell, max_stale_s=0)["spread_log_bps"].null_count() == 2 * minutes


def test_pairs_that_are_left_earned_more_than_all_that_there_were():
    """Rates of mean 0, by which nobody earns. A pair that has lost 10 bps is delisted."""
    rng, pairs, settlements = np.random.default_rng(8), 400, 90
    rates = rng.normal(0, 2e-4, (pairs, settlements))
    lost = np.cumsum(rates, axis=1) < -1e-3
    held = np.cumsum(lost, axis=1) - lost == 0  # the settlement that loses too much is the last
    ts = MIDNIGHT + 8 * HOUR * np.arange(1, settlements + 1)
    rows = pl.DataFrame(
        {
            "trajectory": np.broadcast_to(np.arange(pairs)[:, None], held.shape)[held],
            "ts": np.broadcast_to(ts, held.shape)[held],
            "sell_rate": rates[held],
        }
    ).with_columns(buy_rate=0.0, buy_interval_hours=None, sell_interval_hours=8)
    window = MIDNIGHT, MIDNIGHT + 30 * DAY + 1
    left, every = funding.summary(rows, *window), funding.summary(rows, *window, min_coverage=0.01)
    gone = left.filter(pl.col("funding_bps").is_null())
    assert (left.height, gone["funding_reason"].unique().to_list()) == (pairs, ["low_coverage"])
    assert gone.height > 0.4 * pairs
    error = every["funding_bps"].std() / math.sqrt(pairs)
    assert every["funding_bps"].null_count() == 0
    assert every["funding_bps"].mean() == pytest.approx(0, abs=3 * error)
    assert left["funding_bps"].mean() > 10 * error
