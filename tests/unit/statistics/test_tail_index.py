"""The index of Hill against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from toolkit.statistics.spread import tail_index


def test_the_index_is_that_of_a_pareto_fitted_beyond_x_min(series):
    rng = np.random.default_rng(3)
    values = rng.standard_t(3, 7321) * 10
    row = tail_index(series(values)).row(0, named=True)
    sizes = np.sort(np.abs(values))[::-1]
    for percent in (1, 2, 5, 10):
        k = 7321 * percent // 100
        fitted = stats.pareto.fit(sizes[:k], floc=0, fscale=sizes[k])[0]
        assert row[f"tail_{percent}pct_n"] == k
        assert row[f"spread_tail_{percent}pct_x_min_log_bps"] == sizes[k]
        assert row[f"tail_{percent}pct_index"] == pytest.approx(fitted, rel=1e-9)
        assert row[f"tail_{percent}pct_error"] == pytest.approx(fitted / math.sqrt(k), rel=1e-9)


def test_few_equal_or_no_sizes_have_no_index_but_a_reason(series):
    few = tail_index(series(np.arange(1.0, 1001.0))).row(0, named=True)
    assert (few["tail_2pct_n"], few["tail_2pct_index"], few["tail_2pct_reason"]) == (
        20,
        None,
        "too_few",
    )
    assert few["tail_5pct_n"] == 50
    assert few["tail_5pct_reason"] == "too_few", "one day has no interval"
    assert few["tail_5pct_index"] is not None
    flat = tail_index(series([7.0] * 2000)).row(0, named=True)
    zeros = tail_index(series([0.0] * 1990 + [5.0] * 10)).row(0, named=True)
    assert flat["tail_10pct_reason"] == zeros["tail_10pct_reason"] == "degenerate"
    assert tail_index(series([None]))["tail_10pct_reason"].item() == "empty"


def test_scale_legs_and_order_change_nothing_but_x_min(series):
    values = np.random.default_rng(1).standard_t(4, 6000)
    one = tail_index(series(values))
    other = tail_index(series(-4 * values).sample(fraction=1, shuffle=True, seed=2))
    names = [name for name in one.columns if name.endswith(("index", "_n", "_days"))]
    for name in names:
        assert other[name].item() == pytest.approx(one[name].item(), rel=1e-12)
    x_min = "spread_tail_5pct_x_min_log_bps"
    assert other[x_min].item() == 4 * one[x_min].item()


def test_the_interval_is_students_of_what_each_day_moves_the_inverse_index_by(series):
    rng = np.random.default_rng(8)
    ts = 900 * np.flatnonzero(rng.random(40 * 96) >= 0.1)
    sizes, days = rng.pareto(3, len(ts)) + 1, ts // 86_400
    row = tail_index(series(sizes, ts=ts, step_s=900)).row(0, named=True)
    for percent in (2, 5, 10):
        k = len(ts) * percent // 100
        x_min = np.sort(sizes)[::-1][k]
        logs, whose = np.log(sizes[sizes > x_min] / x_min), days[sizes > x_min]
        moved = [logs.mean() - logs[whose != day].mean() for day in np.unique(whose)]
        squares = np.square(moved)
        freedom = squares.sum() ** 2 / np.square(squares).sum()
        whole = np.arange(1, 40)
        point = np.interp(-1 / freedom, -1 / whole, stats.t.ppf(0.975, whole))
        index = row[f"tail_{percent}pct_index"]
        reach = point * math.sqrt(squares.sum()) * index**2
        assert row[f"tail_{percent}pct_lower"] == pytest.approx(index - reach, rel=1e-9)
        assert row[f"tail_{percent}pct_upper"] == pytest.approx(index + reach, rel=1e-9)


def test_the_fewer_days_make_up_a_tail_the_wider_is_its_interval(series):
    sizes = np.random.default_rng(6).pareto(3, 30 * 96) + 1
    at_all_times = tail_index(series(sizes, step_s=900)).row(0, named=True)
    ranked = np.sort(sizes).reshape(30, 96)[7 * np.arange(30) % 30]  # the largest in days apart
    in_few_days = tail_index(series(ranked.ravel(), step_s=900)).row(0, named=True)
    assert at_all_times["tail_10pct_index"] == pytest.approx(in_few_days["tail_10pct_index"])
    assert in_few_days["tail_10pct_days"] <= 6  # a day of 96 values may lie in two of UTC
    lower, upper = (in_few_days[f"tail_10pct_{end}"] for end in ("lower", "upper"))
    assert lower == 0.0
    assert upper > 2 * at_all_times["tail_10pct_upper"]


def test_a_spread_that_stays_wide_for_days_has_an_index_but_no_interval(series):
    rng = np.random.default_rng(9)
    apart = rng.pareto(3, (40, 96)) + 1
    staying = apart * np.where(np.arange(40) % 20 < 5, 3, 1)[:, None]
    for sizes, reason in ((apart, None), (staying, "days_depend")):
        row = tail_index(series(sizes.ravel(), step_s=900)).row(0, named=True)
        assert row["tail_10pct_reason"] == reason
        assert row["tail_10pct_index"] is not None
        ends = row["tail_10pct_lower"], row["tail_10pct_upper"]
        assert [end is None for end in ends] == [reason is not None] * 2


def local(sizes: np.ndarray, first: int, last: int) -> float:
    """The inverse index of the sizes of these ranks, by the spacings of their logs (Renyi 1953)."""
    logs = np.log(np.sort(sizes)[::-1])
    ranks = np.arange(first + 1, last + 1)
    return float((ranks * (logs[ranks - 1] - logs[ranks])).mean())


@pytest.mark.parametrize("kind", ["pareto", "student", "lognormal"])
def test_a_tail_of_no_power_law_has_an_index_but_no_interval(series, kind):
    rng = np.random.default_rng(12)
    draws = {
        "pareto": rng.pareto(3, 60 * 96) + 1,
        "student": rng.standard_t(3, 60 * 96),
        "lognormal": np.exp(rng.normal(size=60 * 96)),
    }
    values = draws[kind]
    row = tail_index(series(values, step_s=900)).row(0, named=True)
    n, sizes = values.size, np.abs(values)
    assert row["tail_60pct_index"] == pytest.approx(1 / local(sizes, 0, n * 60 // 100), rel=1e-9)
    for percent, middle in {1: 8, 2: 11, 5: 17, 10: 25}.items():
        near = local(sizes, n * percent // 100, n * middle // 100)
        deep = local(sizes, n * middle // 100, n * 60 // 100)
        error = math.hypot(near / math.sqrt(n * (middle - percent) / 100), deep / math.sqrt(n / 3))
        assert (abs(near - deep) > 3 * error) == (kind != "pareto"), "else the draw is unusual"
        assert row[f"tail_{percent}pct_index"] is not None
        assert (row[f"tail_{percent}pct_lower"] is None) == (kind != "pareto")
        assert row[f"tail_{percent}pct_reason"] == (None if kind == "pareto" else "not_pareto")


def test_a_spread_that_is_0_most_of_the_time_is_compared_with_nothing(series):
    rng = np.random.default_rng(4)
    sizes = np.where(rng.random(60 * 96) < 0.3, rng.pareto(3, 60 * 96) + 1, 0.0)
    row = tail_index(series(sizes, step_s=900)).row(0, named=True)
    assert (row["tail_60pct_index"], row["tail_60pct_reason"]) == (None, "degenerate")
    assert row["tail_10pct_reason"] is None
    assert row["tail_10pct_lower"] < row["tail_10pct_index"] < row["tail_10pct_upper"]
