"""Sums over triples against loops, the table of critical values against simulation."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from toolkit.statistics.numeric.lags import Observations
from toolkit.statistics.spread.half_life import CRITICAL, reversion


def rows_of(parts: list[tuple[list[int], list[float]]], step_s: int = 60) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "number": [k for k, (ts, _) in enumerate(parts) for _ in ts],
            "ts": [t for ts, _ in parts for t in ts],
            "value": [v for _, values in parts for v in values],
            "step_s": [step_s for ts, _ in parts for _ in ts],
        },
        schema={"number": pl.UInt32, "ts": pl.Int64, "value": pl.Float64, "step_s": pl.Int64},
    )


def loop(ts: list[int], values: list[float], lag: int, step_s: int = 60) -> list[float]:
    """Triples, span, and the block sums of the definition, one observation at a time."""
    held = dict(zip(ts, values, strict=True))
    found = [
        (t, held[t], held[t + step_s], held[t + (1 + lag) * step_s])
        for t in ts
        if t + step_s in held and t + (1 + lag) * step_s in held
    ]
    if not found:
        return [0.0, 1.0 + lag, *[0.0] * 5]
    means = np.mean(np.array(found), axis=0)
    blocks: dict[int, list[float]] = {}
    for t, *three in found:
        z, near, far = (value - mean for value, mean in zip(three, means[1:], strict=True))
        block = blocks.setdefault((t - ts[0]) // ((5 * lag + 10) * step_s), [0.0, 0.0])
        block[0] += z * far
        block[1] += z * near
    a, b = np.array(list(blocks.values())).T
    apart = np.diff([t for t, *_ in found]) / step_s
    span = np.minimum(apart, 1 + lag).sum() + 1 + lag
    return [len(found), span, a.sum(), b.sum(), (a * a).sum(), (a * b).sum(), (b * b).sum()]


@pytest.mark.parametrize("lag", [1, 9])
def test_sums_over_triples_equal_a_loop(lag):
    """With gaps, hours among minutes, minutes off the step, one row, and none that match."""
    rng = np.random.default_rng(3)
    minutes = [60 * k for k in range(600) if rng.random() < 0.8]
    hours = [60_000 + 3600 * k for k in range(40)]
    off = [60 * k + (k % 7 == 0) for k in range(400)]
    times = [minutes + hours, off, [5], [0, 61, 200], minutes]
    parts = [(ts, (1e3 + rng.standard_normal(len(ts))).tolist()) for ts in times]
    held = Observations.of(rows_of(parts))
    decay = held.decay(held.later(1), held.later(1 + lag), lag)
    for k, (ts, values) in enumerate(parts):
        found = [float(column[k]) for column in decay[1:8]]
        assert found == pytest.approx(loop(ts, values, lag), rel=1e-9, abs=1e-9)


def test_no_rows_give_no_sums():
    held = Observations.of(rows_of([]))
    decay = held.decay(held.later(1), held.later(2), 1)
    assert [len(column) for column in decay[1:8]] == [0] * 7
    assert len(reversion(decay, np.zeros(0)).steps) == 0


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.0, 5.0, 50.0, 200.0])
def test_the_table_is_that_of_a_regression_over_simulated_paths(c):
    """4,000 paths of 2,000 steps; the tails of 60,000 are within what so few can show."""
    rng = np.random.default_rng(11)
    length, paths = 2000, 4000
    phi = math.exp(-c / length)
    level = rng.standard_normal(paths) / math.sqrt(1 - phi**2) if c else np.zeros(paths)
    levels = np.empty((length, paths))
    shocks = rng.standard_normal((length, paths))
    for at in range(length):
        levels[at] = level
        level = phi * level + shocks[at]
    levels -= levels.mean(axis=0)
    statistic = (levels * shocks).sum(axis=0) / np.sqrt((levels**2).sum(axis=0))
    expected = CRITICAL[CRITICAL[:, 0] == c][0, 1:]
    found = np.quantile(statistic, [0.025, 0.5, 0.975])
    assert found == pytest.approx(expected, abs=0.15)
