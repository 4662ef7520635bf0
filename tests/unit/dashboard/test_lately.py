"""The newest value of a stream, its line over a day and how unusual it is, by plain arithmetic."""

from __future__ import annotations

import math
from statistics import fmean

import polars as pl
import pytest

from toolkit.dashboard.lately import (
    funding_lately,
    newest_spread_end,
    percentile,
    spread_levels,
    spreads_lately,
)
from toolkit.dashboard.reading import read_held, store_version

from .conftest import HOLE, MINUTES, PAIR, SERVED_AT

KNOWN = [m for m in range(MINUTES) if m != 1 and not HOLE[0] <= m < HOLE[1]]


def bps(minute):
    return 1e4 * math.log(1 + 1e-4 * (minute % 5))


@pytest.fixture
def look(held):
    return read_held(held.path, store_version(held.path))


def test_the_line_has_the_mean_of_each_half_hour_up_to_the_newest_row(look):
    assert newest_spread_end(look.streams) == SERVED_AT
    (row,) = spreads_lately(look, [PAIR.key]).to_dicts()
    assert (row["ts"], row["last"]) == (SERVED_AT - 60, pytest.approx(bps(MINUTES - 1)))
    assert len(row["line"]) == 48
    halves = [[bps(m) for m in KNOWN if m // 30 == half] for half in range(MINUTES // 30)]
    expected = [fmean(values) if values else None for values in halves]
    assert row["line"][:28] == [None] * 28
    assert row["line"][28:] == [each and pytest.approx(each) for each in expected]


def test_without_keys_it_is_of_all_spreads(look):
    assert spreads_lately(look)["trajectory"].to_list() == [PAIR.key]
    assert spreads_lately(look, []).is_empty()
    assert funding_lately(look, []).is_empty()


def test_the_levels_are_all_values_that_were_seen(look):
    (row,) = spread_levels(look, [PAIR.key]).to_dicts()
    assert row["n"] == len(KNOWN)
    assert row["levels"] == pytest.approx(sorted(bps(m) for m in KNOWN))


def test_a_percentile_counts_half_of_what_is_equal():
    levels = pl.Series([float(value % 10) for value in range(200)])
    assert percentile(levels, 200, 9.0) == pytest.approx(95.0)
    assert percentile(levels, 200, -1.0) == 0.0
    assert percentile(levels, 99, 9.0) is None
