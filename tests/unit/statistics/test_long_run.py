"""The error of means over time and the memory of series, against scipy and known processes."""

from __future__ import annotations

import functools
import math

import numpy as np
import polars as pl
import pytest
from scipy import fft, optimize, stats
from scipy.signal import lfilter

from toolkit.reasons import Reason
from toolkit.statistics.numeric.long_run import WAVES, memories, moments_of, slow_variance, unskewed

SETTLEMENTS = 270  # 90 days of 8 h


def decaying(rng: np.random.Generator, left: float, count: int) -> np.ndarray:
    shocks = rng.standard_normal(count) * math.sqrt(1 - left**2)
    return lfilter([1.0], [1.0, -left], shocks, zi=[left * rng.standard_normal()])[0]


def fractional(rng: np.random.Generator, order: float, count: int) -> np.ndarray:
    """A fractional difference, by its infinite moving average cut after 20,000 shocks."""
    size = 20_000 + count - 1
    length = fft.next_fast_len(size, real=True)
    shocks = fft.rfft(rng.standard_normal(size), length)
    return fft.irfft(shocks * averaged(order, length), length)[20_000 - 1 : size]


@functools.cache
def averaged(order: float, length: int) -> np.ndarray:
    steps = np.arange(1, 20_000)
    return fft.rfft(np.cumprod([1.0, *((steps - 1 + order) / steps)]), length)


def share_without(series: list[np.ndarray], reason: Reason | None) -> float:
    return float(np.mean([found.reason == reason for found in memories(series)]))


def test_the_variance_of_a_sum_is_that_of_its_slowest_cosine_sums():
    cells = np.random.default_rng(1).standard_normal((3, 120))
    slow = fft.dct(cells, norm="ortho", axis=1)[:, 1 : WAVES + 1]
    assert slow_variance(cells) == pytest.approx(120 * (slow**2).mean(axis=1))


def test_what_windows_take_from_the_waves_is_put_back():
    rng, length = np.random.default_rng(2), 100
    values = rng.standard_normal((2000, 1200 + length - 1))
    sums = np.cumsum(values, axis=1)
    means = (sums[:, length - 1 :] - np.c_[np.zeros(2000), sums[:, :-length]]) / length
    cells = means.reshape(2000, 120, 10).sum(axis=2)
    found = slow_variance(cells, length / 1200)
    assert found.mean() == pytest.approx(means.sum(axis=1).var(), rel=0.1)
    assert slow_variance(cells).mean() < 0.9 * means.sum(axis=1).var()


@pytest.mark.parametrize("count", [4, 9, 30])
def test_the_error_of_a_mean_is_from_as_many_waves_as_its_count_has(count):
    values = np.random.default_rng(count).standard_normal(count)
    frame = pl.DataFrame({"value": values}).select(moments_of("mean", pl.col("value"), count + 2))
    slow = fft.dct(values, norm="ortho")[1 : round(count ** (2 / 3)) + 1]
    assert frame["mean_error"].item() == pytest.approx(math.sqrt((slow**2).mean() / count))
    assert frame["mean_second"].item() == pytest.approx(values.var(ddof=1))
    assert frame["mean_third"].item() == pytest.approx(stats.kstat(values, 3))
    assert (
        pl.DataFrame({"value": values[:3]}).select(moments_of("mean", pl.col("value"), 3)).row(0)[0]
        is None
    )


@pytest.mark.parametrize("skewness", [-0.8, 0.05, 0.6])
def test_a_quantile_without_skewness_is_the_root_of_the_cubic(skewness):
    for quantile in (-2.5, 0.0, 2.5):

        def cubic(t: float, end: float = quantile) -> float:
            return t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6 - end

        root = optimize.brentq(cubic, -50, 50)
        found = unskewed(np.array([quantile]), np.array([skewness]))
        assert found[0] == pytest.approx(root)


@pytest.mark.parametrize("left", [0.0, 0.8, 0.9])
def test_the_mean_of_a_series_that_forgets_within_days_has_an_interval(left):
    rng = np.random.default_rng(7)
    series = [decaying(rng, left, SETTLEMENTS) for _ in range(200)]
    assert share_without(series, None) >= 0.9
    assert share_without([np.exp(each) for each in series], None) >= 0.9


@pytest.mark.parametrize(("order", "count"), [(0.3, 270), (0.4, 270), (0.45, 270), (0.3, 1095)])
def test_the_mean_of_a_series_with_long_memory_has_none(order, count):
    rng = np.random.default_rng(8)
    series = [fractional(rng, order, count) for _ in range(100)]
    assert share_without(series, Reason.LONG_MEMORY) >= 0.88  # of 100 runs, where 0.93 are expected


def test_a_walk_and_a_shift_of_level_have_none():
    rng = np.random.default_rng(9)
    noise = [decaying(rng, 0.5, SETTLEMENTS) for _ in range(100)]
    assert share_without([np.cumsum(each) for each in noise], Reason.LONG_MEMORY) == 1
    shifted = [each + 2 * (np.arange(SETTLEMENTS) > 130) for each in noise]
    assert share_without(shifted, Reason.LONG_MEMORY) >= 0.95


def test_the_mean_varies_more_than_the_waves_by_what_a_decay_says():
    rng, left, count = np.random.default_rng(10), 0.9, SETTLEMENTS
    series = [decaying(rng, left, count) for _ in range(300)]
    slow = np.mean([(fft.dct(each, norm="ortho")[1 : WAVES + 1] ** 2).mean() for each in series])
    lags = np.arange(1, count)
    of_mean = 1 + 2 * ((1 - lags / count) * left**lags).sum()
    excess = np.mean([found.excess for found in memories(series)])
    assert excess == pytest.approx(of_mean / slow, rel=0.15)


def test_gaps_unknown_ends_and_spikes_hardly_move_what_a_series_remembers():
    rng = np.random.default_rng(11)
    series = [decaying(rng, 0.8, SETTLEMENTS) for _ in range(100)]
    holes = [np.where(rng.random(each.size) < 0.1, np.nan, each) for each in series]
    padded = [np.concatenate([np.full(50, np.nan), each]) for each in series]
    spikes = [each + 1e6 * (np.arange(each.size) % 90 == 0) for each in series]
    assert memories(padded) == memories(series)
    assert share_without(holes, None) >= 0.9
    assert share_without(spikes, None) >= 0.9


def test_few_scattered_or_equal_values_are_not_judged():
    values = np.arange(23.0)
    sparse = np.where(np.arange(300) % 3 == 0, np.sin(np.arange(300.0)), np.nan)
    equal, nearly = np.full(100, 0.1), np.where(np.arange(300) == 7, 1.0, 0.1)
    found = memories([values, sparse, np.array([]), equal, nearly])
    assert [each.reason for each in found] == [Reason.TOO_FEW] * 3 + [None] * 2
    assert found[3].excess == 1.0


def test_a_series_is_judged_alike_alone_and_among_others_whatever_its_unit():
    rng = np.random.default_rng(12)
    series = [decaying(rng, 0.7, count) for count in (100, 270, 270, 3000)]
    together = memories(series)
    assert [memories([each])[0] for each in series] == together
    scaled = memories([1e-6 * each + 3e-4 for each in series])
    assert [each.excess for each in scaled] == pytest.approx([each.excess for each in together])
