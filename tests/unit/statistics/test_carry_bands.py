"""Bands and paths of holdings, against loops and known processes."""

from __future__ import annotations

from collections.abc import Callable

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
from toolkit.statistics.funding.carry_marks import (
    Moments,
    Path,
    Stretches,
    counted,
    gross_bps,
    held,
    merged,
)
from toolkit.statistics.numeric.long_run import Memory

HOUR = 3600
SHORT = Memory(None, 1.0)


@pytest.fixture
def holdings(autoregressive: Callable[..., np.ndarray]) -> Callable[..., tuple]:
    """The entries and what each holding of 24 h received, with settlements 8 h apart."""

    def build(phi: float, settlements: int, every_h: int = 4) -> tuple[np.ndarray, np.ndarray]:
        level = np.append(0.0, np.cumsum(autoregressive(phi, settlements, seed=1)[0]))
        entries = np.arange(0, settlements * 8 - 23, every_h)
        return entries * HOUR, level[(entries + 24) // 8] - level[entries // 8]

    return build


def test_the_band_moves_and_scales_with_the_values_and_is_the_same_each_time(holdings):
    ts, values = holdings(0.5, 300)
    asked = (24 * HOUR, 4 * HOUR, SHORT)
    found, again = (band(ts, Ranked.of(values.copy()), *asked) for _ in range(2))
    assert found == again
    moved = band(ts, Ranked.of(2 * values + 5), *asked)
    assert moved.mean == pytest.approx([2 * end + 5 for end in found.mean])
    assert moved.median == pytest.approx([2 * end + 5 for end in found.median])


@pytest.mark.parametrize(("days", "found"), [(12, False), (13, True)])
def test_fewer_than_twelve_horizons_have_no_band(days, found, holdings):
    ts, values = holdings(0.0, 3 * days, 1)
    given = band(ts, Ranked.of(values), 24 * HOUR, HOUR, SHORT)
    assert (given != Reason.TOO_FEW) is found


def test_values_that_remember_more_than_their_time_have_no_band(holdings):
    ts, values = holdings(0.0, 300)
    asked = (ts, Ranked.of(values), 24 * HOUR, 4 * HOUR)
    assert band(*asked, Memory(Reason.LONG_MEMORY, 1.0)) == Reason.LONG_MEMORY
    once, fourfold = (band(*asked, Memory(None, excess)) for excess in (1.0, 4.0))
    mean = values.mean()
    assert np.subtract(fourfold.mean, mean) == pytest.approx(2 * np.subtract(once.mean, mean))


def test_entries_with_more_holes_than_time_have_no_band(holdings):
    ts, values = holdings(0.0, 900, 1)
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


def test_the_band_of_the_median_is_between_quantiles_of_the_values(holdings):
    ts, values = holdings(0.5, 300)
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
