"""The service's own differential: a mean over time that says whose it is."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.statistics.funding.differentials import service_differential, without_rates


def hours(values: list[float | None], trajectory: str = "a", step_s: int = 3600) -> pl.DataFrame:
    times = [step_s * k for k in range(len(values))]
    rows = {"trajectory": [trajectory] * len(values), "ts": times, "differential_pct_8h": values}
    return pl.DataFrame(rows, schema_overrides={"differential_pct_8h": pl.Float64})


def test_a_mean_over_time_is_a_year_of_8760_hours() -> None:
    values = np.random.default_rng(3).normal(0.01, 0.02, 200)
    row = service_differential(hours(list(values)), 0, 200 * 3600).row(0, named=True)
    assert row["differential_pct_8h_mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert row["differential_pct_8h_std"] == pytest.approx(values.std(ddof=1), rel=1e-12)
    assert row["differential_apr_pct"] == pytest.approx(values.mean() * 1095, rel=1e-12)
    assert (row["differential_basis"], row["coverage"], row["n"]) == ("service", 1.0, 200)


def test_uneven_rows_count_by_the_time_they_hold_and_a_gap_by_none() -> None:
    frame = hours([0.01] * 4).vstack(hours([0.04] * 2).with_columns(pl.col("ts") + 40 * 3600))
    row = service_differential(frame, 0, 43 * 3600).row(0, named=True)
    held = np.array([3 + 3, 3])  # hours: the row before the gap holds three
    wanted = (0.01 * held[0] + 0.04 * held[1]) / held.sum()
    assert row["differential_pct_8h_time_weighted_mean"] == pytest.approx(wanted, rel=1e-12)


def test_without_a_value_the_figure_is_null_with_its_reason() -> None:
    row = service_differential(hours([None, None]), 0, 7200).row(0, named=True)
    assert (row["differential_apr_pct"], row["moments_reason"]) == (None, "empty")


def test_only_trajectories_without_any_rate_have_it_in_the_place_of_rates() -> None:
    one = hours([0.1, 0.2]).with_columns(buy_rate=pl.lit(None, pl.Float64))
    bare = one.with_columns(sell_rate=pl.lit(None, pl.Float64))
    rated = bare.with_columns(trajectory=pl.lit("b"), sell_rate=pl.Series([None, 1e-4]))
    empty = bare.with_columns(trajectory=pl.lit("c"), differential_pct_8h=pl.lit(None, pl.Float64))
    found = without_rates(pl.concat([bare, rated, empty]))
    assert found["trajectory"].to_list() == ["a", "a"]
