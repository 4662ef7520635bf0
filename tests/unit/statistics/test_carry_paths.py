"""Extremes and first passages of stretches of a path, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.statistics.funding.carry_paths import (
    Moments,
    Path,
    Stretches,
    counted,
    gross_bps,
    held,
    merged,
)


def moments(path: Path, at: np.ndarray, mark: np.ndarray, scale: float = 1.0) -> Moments:
    """Times at which a mark is known, and what a unit of the path is to what is opened then."""
    place = np.searchsorted(path.ts, at, side="right")
    level, scales = path.level[place], np.full(at.size, scale)
    return Moments(at, place, level, level + mark, scales, scales)


@pytest.mark.parametrize(("seed", "apart"), [*((seed, None) for seed in range(20)), (20, 3)])
def test_stretches_have_the_extremes_of_a_loop(seed: int, apart: int | None) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 70)) if apart is None else 90
    ts = np.cumsum(rng.integers(1, 5, size) if apart is None else np.full(size, apart))
    level = np.append(0.0, np.cumsum(rng.normal(0, 1, size).round(1)))
    mark = rng.normal(0, 0.3, size).round(1)
    path = Path(ts, level, mark)
    at, horizon = np.arange(0, 200, 3), 40
    opened = moments(path, at, rng.normal(0, 0.3, at.size), scale=2.0)
    closed = moments(path, at + horizon, rng.normal(0, 0.3, at.size))
    cost = rng.uniform(0, 6, at.size)
    found = held(path, opened, closed, gross_bps(opened, closed), cost)
    for k, entry in enumerate(at):
        inside = [i for i in range(size) if entry < ts[i] <= entry + horizon]
        at_settlements = (level[i + 1] + mark[i] for i in inside)
        values = np.array([opened.worth[k], *at_settlements, closed.worth[k]])
        values = 2 * (values - values[0])
        fall = max(values[: i + 1].max() - value for i, value in enumerate(values))
        even = [ts[i] for i, value in zip(inside, values[1:], strict=False) if value >= cost[k]]
        assert found.gross_bps[k] == pytest.approx(values[-1])
        assert found.drawdown_bps[k] == pytest.approx(fall)
        assert found.breakeven_h[k] == (pytest.approx((even[0] - entry) / 3600) if even else np.inf)


def test_a_price_that_is_missing_at_the_entry_or_the_exit_makes_the_holding_unknown() -> None:
    path = Path(np.array([10, 20]), np.zeros(3), np.zeros(2))
    at = np.array([0, 5, 20])
    opened = moments(path, at, np.array([np.nan, 0.0, 0.0]))
    closed = moments(path, at + 15, np.array([0.0, 0.0, np.nan]))
    assert np.isnan(gross_bps(opened, closed)).tolist() == [True, False, True]


def test_a_cost_that_is_not_known_is_never_earned_and_the_rest_is_known() -> None:
    path = Path(np.array([10]), np.array([0.0, 5.0]), np.zeros(1))
    opened, closed = (moments(path, np.array([at]), np.zeros(1)) for at in (0, 15))
    found = held(path, opened, closed, gross_bps(opened, closed), np.array([np.nan]))
    assert (found.gross_bps[0], found.drawdown_bps[0]) == (5.0, 0.0)
    assert np.isnan(found.breakeven_h[0])


def test_an_exact_bound_is_reached_where_it_is_and_not_after() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, 300).astype(float)
    first = rng.integers(0, 300, 500)
    last = np.minimum(first + rng.integers(0, 130, 500), 300)
    least = rng.integers(5, 10, 500).astype(float)
    found = Stretches(values).first_at_least(first, last, least)
    for begin, end, bound, at in zip(first, last, least, found, strict=True):
        assert at == next((i for i in range(begin, end) if values[i] >= bound), end)


def test_stretches_that_touch_are_one() -> None:
    begins, ends = np.array([0.0, 10, 20, 50]), np.array([10.0, 30, 25, 60])
    assert [each.tolist() for each in merged(begins, ends)] == [[0, 50], [30, 60]]


@pytest.mark.parametrize(("size", "entries"), [(0, 5), (9, 0), (9, 1), (60, 40)])
def test_settlements_by_each_of_equally_distant_times_are_those_of_a_search(
    size: int, entries: int
) -> None:
    rng = np.random.default_rng(size + entries)
    times = np.unique(rng.integers(-300, 900, size))
    ts = 7 + 15 * np.arange(entries)
    assert counted(times, ts).tolist() == np.searchsorted(times, ts, side="right").tolist()
