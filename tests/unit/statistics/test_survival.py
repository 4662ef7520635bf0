"""The median of lives, some of which were still going on, against a loop and statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from statsmodels.duration.survfunc import SurvfuncRight

from toolkit.statistics.survival import life_quantiles, median_life


def lives(durations: list[float | None], observed: list[int]) -> pl.DataFrame:
    return pl.DataFrame(
        {"duration_s": durations, "observed": observed},
        schema={"duration_s": pl.Float64, "observed": pl.Int64},
    )


def by_loop(durations: np.ndarray, observed: np.ndarray) -> float | None:
    share = 1.0
    for time in np.unique(durations[observed == 1]):
        ended = ((durations == time) & (observed == 1)).sum()
        share *= 1 - ended / (durations >= time).sum()
        if share <= 0.5 + 1e-12:
            return float(time)
    return None


@pytest.mark.parametrize("seed", range(30))
def test_the_median_equals_a_loop_and_statsmodels(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 60))
    ends = rng.exponential(1000, count).round(int(rng.integers(-2, 1)))
    watched = rng.exponential(1500, count).round(0)
    durations, observed = np.minimum(ends, watched), (ends <= watched).astype(int)
    row = median_life(lives(durations.tolist(), observed.tolist())).row(0, named=True)
    expected = by_loop(durations, observed)
    assert (row["n_lives"], row["n_ended"]) == (count, observed.sum())
    assert row["median_life_s"] == expected
    assert row["median_life_reason"] == (None if expected is not None else "censored")
    reference = SurvfuncRight(durations, observed)
    if not np.isclose(reference.surv_prob, 0.5).any():  # there statsmodels takes the next time
        found = reference.quantile(0.5)
        assert (None if np.isnan(found) else found) == expected


def test_groups_are_apart_and_one_without_a_duration_is_empty():
    frame = pl.concat(
        [
            lives([5.0, 7.0, 9.0], [1, 1, 1]).with_columns(family=pl.lit("b")),
            lives([None], [0]).with_columns(family=pl.lit("a")),
            lives([5.0, 7.0], [0, 0]).with_columns(family=pl.lit("c")),
        ]
    )
    assert median_life(frame, ["family"]).rows() == [
        ("a", 0, 0, None, "empty"),
        ("b", 3, 3, 7.0, None),
        ("c", 2, 0, None, "censored"),
    ]
    assert median_life(frame.clear(), ["family"]).is_empty()


def watched_lives(rng: np.random.Generator, count: int, runs: int) -> pl.DataFrame:
    """Lives of a mean of an hour in whole minutes, of which about a third are still going on."""
    ends = np.ceil(rng.exponential(3600, (runs, count)) / 60) * 60
    watched = rng.uniform(0, 4 * 3600, (runs, count)).round()
    return pl.DataFrame(
        {
            "duration_s": np.minimum(ends, watched).ravel(),
            "observed": (ends <= watched).astype(int).ravel(),
            "run": np.repeat(np.arange(runs), count),
        }
    )


def test_the_interval_of_the_median_is_that_of_statsmodels():
    frame = watched_lives(np.random.default_rng(8), 40, 25)
    for run, row in enumerate(life_quantiles(frame, ["run"]).iter_rows(named=True)):
        own = frame.filter(run=run)
        reference = SurvfuncRight(own["duration_s"].to_numpy(), own["observed"].to_numpy())
        with np.errstate(divide="ignore", invalid="ignore"):
            lower, upper = reference.quantile_ci(0.5)
        assert row["life_lower_s"] == lower
        assert row["life_upper_s"] == (None if np.isinf(upper) else upper)
        for percent in (25, 75, 90):
            times = reference.surv_times[reference.surv_prob <= 1 - percent / 100 + 1e-12]
            assert row[f"life_q{percent}_s"] == (times[0] if len(times) else None)


def test_few_ends_give_no_interval_and_all_ends_at_once_a_closed_one():
    few = life_quantiles(lives([1.0] * 9, [1] * 9)).row(0, named=True)
    assert (few["life_lower_s"], few["life_lower_reason"]) == (None, "too_few")
    once = life_quantiles(lives([60.0] * 20, [1] * 20)).row(0, named=True)
    assert (once["life_lower_s"], once["median_life_s"], once["life_upper_s"]) == (60, 60, 60)
    open_ended = life_quantiles(lives([60.0] * 12 + [90.0] * 12, [1] * 12 + [0] * 12))
    assert open_ended["life_upper_reason"].item() == "censored"
