"""Extremes and first passages of stretches of a path, against a loop."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.statistics.carry_paths import Entries, Path, first_at_least, held, merged


@pytest.mark.parametrize("seed", range(20))
def test_stretches_have_the_extremes_of_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 70))
    ts = np.cumsum(rng.integers(1, 5, size))
    level = np.append(0.0, np.cumsum(rng.normal(0, 1, size).round(1)))
    mark = rng.normal(0, 0.3, size).round(1)
    at = np.arange(0, 200, 3)
    entries = Entries(at, rng.normal(0, 0.3, at.size), np.full(at.size, 2.0), np.full(at.size, 2.0))
    closing = rng.normal(0, 0.3, at.size)
    horizon, cost = 40, rng.uniform(0, 6, at.size)
    found = held(Path(ts, level, mark), entries, closing, horizon, cost)
    for k, entry in enumerate(at):
        inside = [i for i in range(size) if entry < ts[i] <= entry + horizon]
        opened = level[np.searchsorted(ts, entry, side="right")] + entries.mark[k]
        last = level[np.searchsorted(ts, entry + horizon, side="right")] + closing[k]
        values = 2 * (np.array([opened, *(level[i + 1] + mark[i] for i in inside), last]) - opened)
        fall = max(values[: i + 1].max() - value for i, value in enumerate(values))
        even = [ts[i] for i, value in zip(inside, values[1:], strict=False) if value >= cost[k]]
        assert found.gross_bps[k] == pytest.approx(values[-1])
        assert found.drawdown_bps[k] == pytest.approx(fall)
        assert found.breakeven_h[k] == (pytest.approx((even[0] - entry) / 3600) if even else np.inf)


def test_a_price_that_is_missing_within_the_horizon_makes_the_holding_unknown() -> None:
    path = Path(np.array([10, 20]), np.zeros(3), np.array([0.0, np.nan]))
    entries = Entries(np.array([0, 5, 20]), np.zeros(3), np.ones(3), np.ones(3))
    found = held(path, entries, np.zeros(3), 15, np.ones(3))
    assert np.isnan(found.gross_bps).tolist() == [False, True, False]
    assert np.isnan(found.breakeven_h).tolist() == [False, True, False]


def test_a_cost_that_is_not_known_is_never_earned_and_the_rest_is_known() -> None:
    path = Path(np.array([10]), np.array([0.0, 5.0]), np.zeros(1))
    entries = Entries(np.array([0]), np.zeros(1), np.ones(1), np.ones(1))
    found = held(path, entries, np.zeros(1), 15, np.array([np.nan]))
    assert (found.gross_bps[0], found.drawdown_bps[0]) == (5.0, 0.0)
    assert np.isnan(found.breakeven_h[0])


def test_an_exact_bound_is_reached_where_it_is_and_not_after() -> None:
    rng = np.random.default_rng(3)
    values = rng.integers(0, 9, 300).astype(float)
    first = rng.integers(0, 300, 500)
    last = np.minimum(first + rng.integers(0, 130, 500), 300)
    least = rng.integers(5, 10, 500).astype(float)
    found = first_at_least(values, first, last, least)
    for begin, end, bound, at in zip(first, last, least, found, strict=True):
        assert at == next((i for i in range(begin, end) if values[i] >= bound), end)


def test_stretches_that_touch_are_one() -> None:
    begins, ends = np.array([0.0, 10, 20, 50]), np.array([10.0, 30, 25, 60])
    assert [each.tolist() for each in merged(begins, ends)] == [[0, 50], [30, 60]]
