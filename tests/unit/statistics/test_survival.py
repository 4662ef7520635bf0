"""The median of lives, some of which were still going on, against a loop and statsmodels."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from statsmodels.duration.survfunc import SurvfuncRight

from toolkit.statistics.survival import median_life


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


def test_events_still_open_lengthen_the_median():
    """1,000 lives of a mean of an hour, watched from 0 to 90 minutes: the ended are the short."""
    rng = np.random.default_rng(3)
    ends, watched = rng.exponential(3600, 1000), rng.uniform(0, 5400, 1000)
    frame = lives(np.minimum(ends, watched).tolist(), (ends <= watched).astype(int).tolist())
    assert median_life(frame)["median_life_s"].item() == pytest.approx(3600 * np.log(2), rel=0.15)
    assert frame.filter(observed=1)["duration_s"].median() < 1500


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
