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


def skewed_ends(numbers: np.ndarray, waves: int, skewness: float) -> np.ndarray:
    """Student's two ends with as many waves, moved by skewness: the roots of Hall's cubic."""
    a, far = skewness / np.sqrt(len(numbers)), stats.t.ppf(0.975, waves)
    roots = [np.roots([a**2 / 27, a / 3, 1.0, a / 6 - end]) for end in (far, -far)]
    return -np.array([each[np.abs(each.imag).argmin()].real for each in roots])


def pooled_skewness(cells: list[np.ndarray]) -> float:
    """The skewness of numbers about the mean of their own cell, over the cells of four or more."""
    cells = [each for each in cells if len(each) >= 4]
    third = [stats.kstat(each, 3) for each in cells]
    return float(np.mean(third) / np.mean([each.var(ddof=1) for each in cells]) ** 1.5)


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
    levels = {cell: np.array(list(of.values())) for cell, of in cells.items()}
    owns = {cell: np.array([of[w] - weeks[w] for w in of]) for cell, of in cells.items()}
    skewed = {
        name: pooled_skewness(list(of.values()))
        for name, of in (("mean", levels), ("deviation", owns))
    }
    for cell, row in enumerate(found.iter_rows(named=True)):
        of = cells.get(cell, {})
        level, own = levels[cell], owns[cell]
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
            bounds = numbers.mean() + error * skewed_ends(numbers, waves, skewed[name])
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
    values = rng.standard_normal((9, 168)) + 3 * (np.arange(168) == 12)
    ts = MONDAY + 3_600 * np.arange(9 * 168)
    calm = hour_of_week(series(values.ravel(), ts=ts))
    shifted = hour_of_week(series((values + 100 * np.arange(9)[:, None]).ravel(), ts=ts))
    assert np.allclose(calm["spread_deviation_log_bps"], shifted["spread_deviation_log_bps"])
    assert shifted.filter(weekday=1, hour=12)["differs"].item()
    assert set(shifted["mean_reason"]) == {"long_memory"}


def test_figures_of_the_same_rows_are_the_same_to_the_last_digit(series):
    rng = np.random.default_rng(7)
    frame = series(rng.standard_normal(2_000), ts=MONDAY + 600 * np.arange(2_000))
    first = hour_of_week(frame)
    assert all(hour_of_week(frame).equals(first) for _ in range(20))


def test_a_spread_that_remembers_more_than_its_weeks_has_an_interval_of_the_deviation_alone(series):
    rng = np.random.default_rng(4)
    noise = rng.standard_normal(8 * 168)
    walk = series(np.cumsum(noise), ts=MONDAY + 3_600 * np.arange(noise.size))
    forgets = series(noise, ts=MONDAY + 3_600 * np.arange(noise.size), trajectory="b")
    found = hour_of_week(pl.concat([walk, forgets]), MONDAY, MONDAY + 8 * WEEK)
    reasons = found.group_by("trajectory", maintain_order=True).agg(pl.col("mean_reason").unique())
    assert reasons["mean_reason"].to_list() == [["long_memory"], [None]]
    of_walk = found.filter(trajectory="a")
    assert of_walk["spread_mean_log_bps"].null_count() == 0
    assert of_walk["spread_mean_lower_log_bps"].null_count() == 168
    assert of_walk["spread_deviation_lower_log_bps"].null_count() == 0


def test_rows_of_every_eighth_hour_are_judged_at_their_own_steps(series):
    values = np.random.default_rng(5).standard_normal(6 * 21)
    found = hour_of_week(series(values, ts=MONDAY + 28_800 * np.arange(values.size)))
    assert found.filter(pl.col("weeks") > 0)["mean_reason"].to_list() == [None] * 21
