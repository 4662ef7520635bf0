"""The profile over the week against numpy and scipy."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import fft, stats

from toolkit.statistics.spread import hour_of_week

MONDAY = 4 * 86_400
WEEK = 604_800


def profile_by_loop(ts: np.ndarray, values: np.ndarray) -> dict[int, dict[int, float]]:
    """The mean of each hour of the week and week, by a loop over the hours."""
    hours = ts // 3_600
    found: dict[int, dict[int, float]] = {}
    for hour in np.unique(hours):
        cell = (int(hour) + 72) % 168
        found.setdefault(cell, {})[(int(hour) + 72) // 168] = values[hours == hour].mean()
    return found


def test_means_and_intervals_are_those_of_the_weeks(series):
    rng = np.random.default_rng(6)
    ts = MONDAY + 1_800 * np.flatnonzero(rng.random(336 * 7) < 0.6)  # half-hours, seven weeks
    values = rng.standard_normal(len(ts)) + 3
    found = hour_of_week(series(values, ts=ts), MONDAY, MONDAY + 7 * WEEK, step_s=1_800)
    assert found.height == 168
    assert found.select("weekday", "hour").rows() == [
        (d, h) for d in range(1, 8) for h in range(24)
    ]
    cells = profile_by_loop(ts, values)
    weeks = {w: np.mean([c[w] for c in cells.values() if w in c]) for w in range(1, 8)}
    for cell, row in enumerate(found.iter_rows(named=True)):
        of = cells.get(cell, {})
        level, own = np.array(list(of.values())), np.array([of[w] - weeks[w] for w in of])
        assert row["weeks"] == len(of)
        assert row["spread_mean_log_bps"] == pytest.approx(level.mean(), rel=1e-12)
        assert row["spread_median_log_bps"] == pytest.approx(np.median(level), rel=1e-12)
        if len(of) < 4:
            assert (row["spread_mean_lower_log_bps"], row["mean_reason"]) == (None, "too_few")
            continue
        for name, numbers in (("mean", level), ("deviation", own)):
            waves = round(len(of) ** (2 / 3))
            slow = fft.dct(numbers, norm="ortho")[1 : waves + 1]
            error = np.sqrt(np.mean(slow**2) / len(of))
            bounds = stats.t.interval(0.95, waves, loc=numbers.mean(), scale=error)
            ends = [row[f"spread_{name}_{end}_log_bps"] for end in ("lower", "upper")]
            assert ends == pytest.approx(bounds, rel=1e-9)
        assert row["differs"] == (bounds[0] > 0 or bounds[1] < 0)


def test_hours_without_weeks_enough_and_series_without_rows_are_null_with_a_reason(series):
    frame = pl.concat([series([1.0], ts=[MONDAY]), series([None], ts=[MONDAY], trajectory="b")])
    found = hour_of_week(frame, MONDAY, MONDAY + WEEK)
    assert found["trajectory"].to_list() == ["a"] * 168 + ["b"] * 168
    first = found.row(0, named=True)
    assert (first["spread_mean_log_bps"], first["mean_reason"]) == (1.0, "too_few")
    assert set(found[1:]["mean_reason"]) == {"empty"}
    assert found["differs"].null_count() == 336
    frozen = hour_of_week(series([0.1] * 840, step_s=3_600, ts=MONDAY + 3_600 * np.arange(840)))
    assert set(frozen["mean_reason"]) == set(frozen["deviation_reason"]) == {"degenerate"}


def test_a_week_that_is_high_throughout_moves_no_deviation(series):
    rng = np.random.default_rng(1)
    values = rng.standard_normal((6, 168)) + 2 * (np.arange(168) == 12)
    ts = MONDAY + 3_600 * np.arange(6 * 168)
    calm = hour_of_week(series(values.ravel(), ts=ts))
    shifted = hour_of_week(series((values + 100 * np.arange(6)[:, None]).ravel(), ts=ts))
    assert np.allclose(calm["spread_deviation_log_bps"], shifted["spread_deviation_log_bps"])
    assert shifted.filter(weekday=1, hour=12)["differs"].item()
    assert shifted["spread_mean_error_log_bps"].min() > 50


def test_figures_of_the_same_rows_are_the_same_to_the_last_digit(series):
    rng = np.random.default_rng(7)
    frame = series(rng.standard_normal(2_000), ts=MONDAY + 600 * np.arange(2_000))
    first = hour_of_week(frame)
    assert all(hour_of_week(frame).equals(first) for _ in range(20))
