"""Entries and closes against a loop over the rows."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics.spread import time_to_close


def lives_by_loop(
    ts: np.ndarray, sizes: np.ndarray, *, enter: float, leave: float, end: int
) -> tuple[list[tuple[float, int]], int]:
    """(duration, closed) of each entry seen, and how many were not seen. Steps of 60 s."""
    lives, truncated, since, seen, before = [], 0, None, True, None
    for k, (at, size) in enumerate(zip(ts, sizes, strict=True)):
        after_gap = k == 0 or at - ts[k - 1] > 90
        if after_gap and since is not None:
            lives += [(min(ts[k - 1] + 180, at) - since, 0)] if seen else []
            since = None
        if since is not None and size <= leave:
            lives += [(at - since, 1)] if seen else []
            since = None
        elif since is None and size >= enter:
            since, seen = at, not after_gap
            truncated += after_gap
        before = at
    if since is not None and seen:
        lives.append((min(before + 180, end) - since, 0))
    return lives, truncated


@pytest.mark.parametrize("seed", range(6))
def test_entries_and_closes_are_those_of_a_loop(seed, autoregressive, series, start):
    rng = np.random.default_rng(seed)
    values = 3 * autoregressive(0.9, 900, seed=seed)[0] + 2
    kept = rng.random(900) >= 0.03
    ts, values = (start + 60 * np.arange(900))[kept], values[kept]
    level, end = float(rng.choice([0, 2])), start + 54_000
    frame = series(values, ts=ts)
    asked = {"enter_bps": 8.0, "exit_bps": 1.5, "toward": level}
    row = time_to_close(frame, start, end, **asked).row(0, named=True)
    lives, truncated = lives_by_loop(ts, abs(values - level), enter=8, leave=1.5, end=end)
    assert (row["entries"], row["closed"]) == (len(lives), sum(closed for _, closed in lives))
    assert row["truncated"] == truncated
    share, median = 1.0, None
    for time in sorted({duration for duration, closed in lives if closed}):
        ended = sum(closed for duration, closed in lives if duration == time)
        share *= 1 - ended / sum(duration >= time for duration, _ in lives)
        if share <= 0.5 + 1e-12 and median is None:
            median = time
    assert row["close_median_s"] == median


def test_without_entries_there_is_no_time_and_a_reason(series, start):
    frame = pl.concat([series([1.0] * 9), series([None] * 9, trajectory="b")])
    found = time_to_close(frame, start, start + 600, enter_bps=5, exit_bps=1)
    assert found["close_median_reason"].to_list() == ["too_few", "empty"]
    assert found["entries"].to_list() == [0, 0]
    begun_before = time_to_close(series([9.0, 0.0]), start, start + 600, enter_bps=5, exit_bps=1)
    assert begun_before.select("truncated", "entries").row(0) == (1, 0)
    never = time_to_close(series([0.0, 9.0, 9.0]), start, start + 600, enter_bps=5, exit_bps=1)
    assert never.select("entries", "closed", "close_median_reason").row(0) == (1, 0, "censored")


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("enter_bps", {"enter_bps": 0, "exit_bps": 0}),
        ("exit_bps", {"enter_bps": 5, "exit_bps": 5}),
        ("toward", {"enter_bps": 5, "exit_bps": 1, "toward": math.nan}),
        ("column", {"enter_bps": 5, "exit_bps": 1, "column": "buy_price"}),
    ],
)
def test_levels_that_make_no_sense_are_refused(name, asked, series):
    with pytest.raises(InputError, match=name):
        time_to_close(series([1.0]), **asked)
