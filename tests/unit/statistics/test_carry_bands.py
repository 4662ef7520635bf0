"""The bands of overlapping holdings. How often they hold the truth is in `tests/calibration`."""

from __future__ import annotations

import numpy as np
import pytest

from toolkit.reasons import Reason
from toolkit.statistics.funding.carry_figures import (
    Ranked,
    at_places,
    band,
    cell_sums,
    quantiles,
    skewness_of_sum,
)
from toolkit.statistics.numeric.long_run import Memory

HOUR = 3600
SHORT = Memory(None, 1.0)


def rates(phi: float, settlements: int, runs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    shocks = rng.standard_normal((settlements, runs))
    found = np.empty_like(shocks)
    found[0] = shocks[0] / np.sqrt(1 - phi**2)
    for at in range(1, settlements):
        found[at] = phi * found[at - 1] + shocks[at]
    return found.T


def holdings(paths: np.ndarray, horizon_h: int, every_h: int) -> tuple[np.ndarray, np.ndarray]:
    """What each holding of settlements 8 h apart received: entries, and one row per path."""
    level = np.concatenate([np.zeros((len(paths), 1)), np.cumsum(paths, axis=1)], axis=1)
    entries = np.arange(0, paths.shape[1] * 8 - horizon_h + 1, every_h)
    return entries * HOUR, level[:, (entries + horizon_h) // 8] - level[:, entries // 8]


def test_an_interval_of_independent_entries_is_too_narrow():
    ts, values = holdings(rates(0.7, 270, 300, 20261123), 24, 4)
    reach = 1.96 * values.std(axis=1) / np.sqrt(ts.size)
    assert (np.abs(values.mean(axis=1)) <= reach).mean() < 0.6


def test_the_band_moves_and_scales_with_the_values_and_is_the_same_each_time():
    ts, (values,) = holdings(rates(0.5, 300, 1, 1), 24, 4)
    asked = (24 * HOUR, 4 * HOUR, SHORT)
    found, again = (band(ts, Ranked.of(values.copy()), *asked) for _ in range(2))
    assert found == again
    moved = band(ts, Ranked.of(2 * values + 5), *asked)
    assert moved.mean == pytest.approx([2 * end + 5 for end in found.mean])
    assert moved.median == pytest.approx([2 * end + 5 for end in found.median])


@pytest.mark.parametrize(("days", "found"), [(12, False), (13, True)])
def test_fewer_than_twelve_horizons_have_no_band(days, found):
    ts, (values,) = holdings(rates(0.0, 3 * days, 1, 2), 24, 1)
    given = band(ts, Ranked.of(values), 24 * HOUR, HOUR, SHORT)
    assert (given != Reason.TOO_FEW) is found


def test_values_that_remember_more_than_their_time_have_no_band():
    ts, (values,) = holdings(rates(0.0, 300, 1, 2), 24, 4)
    asked = (ts, Ranked.of(values), 24 * HOUR, 4 * HOUR)
    assert band(*asked, Memory(Reason.LONG_MEMORY, 1.0)) == Reason.LONG_MEMORY
    once, fourfold = (band(*asked, Memory(None, excess)) for excess in (1.0, 4.0))
    mean = values.mean()
    assert np.subtract(fourfold.mean, mean) == pytest.approx(2 * np.subtract(once.mean, mean))


def test_entries_with_more_holes_than_time_have_no_band():
    ts, (values,) = holdings(rates(0.0, 900, 1, 2), 24, 1)
    third = ts[::3], Ranked.of(values[::3]), 24 * HOUR
    assert band(*third, HOUR, SHORT) == Reason.TOO_FEW
    assert band(*third, 3 * HOUR, SHORT) != Reason.TOO_FEW


def test_values_that_are_all_the_same_have_a_band_of_no_width():
    found = band(np.arange(500) * HOUR, Ranked.of(np.full(500, 3.0)), 8 * HOUR, HOUR, SHORT)
    assert (found.mean, found.median) == ((3.0, 3.0), (3.0, 3.0))


def test_the_skewness_of_a_sum_is_that_of_drawing_blocks_one_by_one():
    rng = np.random.default_rng(20261125)
    cells, of_cells = 4, rng.gamma(0.5, 1.0, 12)
    drawn = np.zeros(200_000)
    for _ in range(3):
        begins = rng.integers(0, 12, drawn.size)
        drawn += sum(of_cells[(begins + step) % 12] for step in range(cells))
    assert skewness_of_sum(of_cells, cells) == pytest.approx(
        ((drawn - drawn.mean()) ** 3).mean() / drawn.std() ** 3, abs=0.03
    )


def test_cells_without_entries_sum_to_nothing():
    found = cell_sums(np.array([[1.0, 2.0, 4.0, 0.0]]), np.array([0, 1, 1, 1, 3, 3]))
    assert found.tolist() == [[1.0, 0.0, 0.0, 6.0, 0.0, 0.0]]


def test_the_band_of_the_median_is_between_quantiles_of_the_values():
    ts, (values,) = holdings(rates(0.5, 300, 1, 1), 24, 4)
    cubed = values**3
    (below, above), (low, high) = (
        band(ts, Ranked.of(each), 24 * HOUR, 4 * HOUR, SHORT).median for each in (values, cubed)
    )
    assert below < np.median(values) < above
    # a quantile of cubes is the cube of a quantile, but for the line between two values
    assert (low, high) == pytest.approx((below**3, above**3), rel=0.02)


@pytest.mark.parametrize("size", [1, 2, 7, 400])
def test_a_few_quantiles_and_places_are_those_of_all_values_sorted(size):
    rng = np.random.default_rng(size)
    values = rng.normal(0, 1, size).round(1)
    values[rng.random(size) < 0.2] = np.inf
    places = sorted(rng.integers(0, size, 5).tolist())
    assert at_places(values, places) == np.sort(values)[places].tolist()
    finite = np.where(np.isinf(values), 0.0, values)
    ranked = Ranked.of(finite)
    assert quantiles(finite, 0.05, 0.5, 0.95) == [ranked.quantile(q) for q in (0.05, 0.5, 0.95)]
    assert quantiles(finite, 0.5, 0.95) == pytest.approx(np.quantile(finite, [0.5, 0.95]).tolist())
