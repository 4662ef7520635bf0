"""Rates in force and differentials, by hand and by random intervals."""

from __future__ import annotations

from collections.abc import Sequence

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given

from toolkit.statistics import funding
from toolkit.statistics.funding.differentials import service_differential, without_rates

HOUR, DAY = 3600, 86400
START = 1_700_006_400  # a midnight, UTC
WEEK = (START, START + 7 * DAY)
SHOWN = ("funding_bps", "funding_apr_pct", "funding_reason", "funding_apr_reason")


def rows_of(
    times: Sequence[int] | np.ndarray,
    rates: Sequence[float] | np.ndarray,
    hours: float | Sequence[float] | None,
) -> pl.DataFrame:
    """A spot leg bought, and a leg sold with these rows."""
    sell_hours = hours if isinstance(hours, list) else [hours] * len(times)
    return pl.DataFrame(
        {
            "trajectory": ["a"] * len(times),
            "ts": list(map(int, times)),
            "buy_rate": [0.0] * len(times),
            "sell_rate": list(map(float, rates)),
            "buy_interval_hours": [None] * len(times),
            "sell_interval_hours": sell_hours,
        },
        schema_overrides={"sell_interval_hours": pl.Float64},
    )


def filled(settled: Sequence[float], hours: int, step_s: int, told: float | None) -> pl.DataFrame:
    """Rows each step from START, each with the rate that was settled last."""
    times = np.arange(START, START + HOUR * hours * len(settled), step_s)
    return rows_of(times, [settled[(t - START) // (HOUR * hours)] for t in times], told)


def measured(frame: pl.DataFrame, window: tuple[int, int] = WEEK) -> dict:
    return funding.summary(frame, *window).row(0, named=True)


@pytest.mark.parametrize(("step_s", "more"), [(HOUR, 8), (60, 480)])
def test_rows_denser_than_settlements_are_not_each_paid(step_s, more):
    row = measured(filled([2e-4] * 22, 8, step_s, 8.0))
    assert row["funding_apr_pct"] == pytest.approx(21.9)
    assert (row["n"], row["n_in_force"], row["coverage"]) == (21, 21 * (more - 1), 1.0)


@given(
    hours=st.sampled_from([4, 8]),
    step_s=st.sampled_from([60, 900, 1800, HOUR]),
    settled=st.lists(st.floats(-1e-3, 1e-3), min_size=3, max_size=5),
    lost=st.sets(st.integers(1, 6)),
)
def test_the_rate_in_force_each_step_gives_what_the_settlements_give(hours, step_s, settled, lost):
    dense = filled(settled, hours, step_s, float(hours))
    between = [k for k in lost if k % 4]  # rows of the first interval, never a settlement
    dense = dense.filter(~((pl.col("ts") - START) // step_s).is_in(between))
    times = [START + HOUR * hours * k for k in range(len(settled))]
    sparse = rows_of(times, settled, float(hours))
    assert funding.intervals(dense)["ts"].to_list() == times
    window = START, times[-1]
    of_dense, of_sparse = measured(dense, window), measured(sparse, window)
    for name in ("n", "coverage", "n_missed", *SHOWN):
        assert of_dense[name] == of_sparse[name]


@pytest.mark.parametrize("step_s", [60, 900, HOUR])
@pytest.mark.parametrize("changing", [False, True])
def test_without_a_declared_interval_nobody_knows(step_s, changing):
    settled = np.random.default_rng(1).normal(0, 1e-4, 22) if changing else [2e-4] * 22
    row = measured(filled(settled, 8, step_s, None))
    assert [row[name] for name in SHOWN] == [None, None, "dense_rows", "dense_rows"]
    assert row["coverage"] == 0.0
    steps = funding.differential(filled(settled, 8, step_s, None))
    assert set(steps["differential_reason"]) == {"dense_rows"}


def test_hourly_rates_that_change_each_hour_against_a_declared_8_hours_are_undecided():
    times = START + HOUR * np.arange(170)
    frame = rows_of(times, np.random.default_rng(2).normal(0, 1e-4, 170), 8.0)
    row = measured(frame)
    assert [row[name] for name in SHOWN] == [None, None, "dense_rows", "dense_rows"]
    found = funding.intervals(frame)
    assert set(found["interval_reason"]) == {"dense_rows"}
    assert found["interval_hours"].null_count() == found.height == 170


def test_minute_rates_that_change_each_minute_are_settled_by_the_calendar():
    times = START + 60 * np.arange(1440 * 7 + 1)
    rates = np.random.default_rng(2).normal(0, 1e-4, len(times))
    row = measured(rows_of(times, rates, 8.0))
    due = rates[480::480]
    assert row["n"] == len(due) == 21
    assert row["funding_bps"] == pytest.approx(1e4 * due.sum())


@pytest.mark.parametrize("told", ["right", "lagging", "not at all"])
def test_an_interval_that_gets_shorter_is_followed_whatever_is_declared(told):
    hours = [8] * 6 + [4] * 12 + [1] * 40
    rates = np.random.default_rng(3).normal(0, 1e-4, len(hours))
    declared = {"right": list(map(float, hours)), "lagging": 8.0, "not at all": None}[told]
    frame = rows_of(START + HOUR * np.cumsum(hours), rates, declared)
    assert funding.intervals(frame)["interval_hours"].to_list()[1:] == hours[1:]
    row = measured(frame, (START + 8 * HOUR, START + 136 * HOUR))
    assert row["funding_bps"] == pytest.approx(1e4 * rates[1:].sum())
    assert (row["n_in_force"], row["coverage"]) == (0, 1.0)
    assert row["n_declared_differs"] == (52 if told == "lagging" else 0)


def test_rows_that_become_rates_in_force_are_not_an_interval_that_gets_shorter():
    settled = np.random.default_rng(4).normal(0, 1e-4, 22)
    dense = filled(settled, 8, HOUR, 8.0)
    since = START + 3 * DAY
    frame = dense.filter((pl.col("ts") % (8 * HOUR) == 0) | (pl.col("ts") >= since))
    row = measured(frame)
    assert row["funding_bps"] == pytest.approx(1e4 * settled[1:].sum())
    assert row["n_in_force"] == 7 * 12


def test_settlements_at_other_hours_than_the_calendars_are_settlements():
    times = START + 4 * HOUR + 8 * HOUR * np.arange(-1, 21)
    row = measured(rows_of(times, [1e-4] * len(times), 8.0))
    assert (row["n"], row["n_in_force"], row["funding_bps"]) == (21, 0, pytest.approx(21.0))


def test_single_settlements_off_their_hours_are_settlements():
    hours = [0, 8, 18, 24, 32, 37, 40, 48, 56, 64]  # as one venue has them on record
    row = measured(
        rows_of(START + HOUR * np.array(hours), [1e-4] * 10, 8.0), (START, START + 64 * HOUR)
    )
    assert (row["n"], row["n_in_force"], row["funding_bps"]) == (9, 0, pytest.approx(9.0))


def test_a_leg_that_lost_seven_of_eight_rows_has_not_changed_its_interval():
    rates = np.random.default_rng(5).normal(1e-5, 1e-6, 21)
    frame = rows_of(START + 8 * HOUR * np.arange(21), rates, 1.0)
    row = measured(frame, (START, START + 160 * HOUR))
    assert [row[name] for name in SHOWN] == [None, None, "low_coverage", "low_coverage"]
    assert row["coverage"] == pytest.approx(1 / 8)
    assert row["n_missed"] == 7 * 20
    low = funding.summary(frame, START, START + 160 * HOUR, min_coverage=0.1).row(0, named=True)
    assert low["funding_apr_pct"] == pytest.approx(876_000 * rates[1:].mean())


def test_an_interval_declared_one_settlement_early_is_followed_from_the_next():
    hours = [8] * 6 + [1] * 20 + [8] * 6
    declared = [*map(float, hours[1:]), 8.0]
    rates = np.random.default_rng(6).normal(0, 1e-4, len(hours))
    frame = rows_of(START + HOUR * np.cumsum(hours), rates, declared)
    assert funding.intervals(frame)["interval_hours"].to_list()[1:] == hours[1:]
    assert funding.intervals(frame)["missed"].sum() == 0


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
