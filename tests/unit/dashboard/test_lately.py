"""The newest value of a stream, its line over a day and how unusual it is, by plain arithmetic."""

from __future__ import annotations

import math
from statistics import fmean

import polars as pl
import pytest
from scipy.stats import percentileofscore

from tests.empty_store import empty_store
from toolkit.dashboard.parts.lately import (
    funding_lately,
    newest_end,
    spread_percentiles,
    spreads_lately,
)
from toolkit.dashboard.parts.spread_table import measure_figures
from toolkit.dashboard.reading import read_held
from toolkit.intervals import Interval
from toolkit.market import Family, Source, Trajectory
from toolkit.store.file.engine import version_of

from .conftest import HOLE, MINUTES, PAIR, SERVED_AT, bring

KNOWN = [m for m in range(MINUTES) if m != 1 and not HOLE[0] <= m < HOLE[1]]


def bps_of(minute):
    return 1e4 * math.log(1 + 1e-4 * (minute % 5))


@pytest.fixture
def look(held):
    return read_held(held.path, version_of(held.path))


def test_the_line_has_the_mean_of_each_half_hour_up_to_the_newest_row(look):
    assert newest_end(look.streams, "spread") == SERVED_AT
    (row,) = spreads_lately(look, [PAIR.key]).to_dicts()
    assert (row["ts"], row["last"]) == (SERVED_AT - 60, pytest.approx(bps_of(MINUTES - 1)))
    assert len(row["line"]) == 48
    halves = [[bps_of(m) for m in KNOWN if m // 30 == half] for half in range(MINUTES // 30)]
    expected = [fmean(values) if values else None for values in halves]
    assert row["line"][:28] == [None] * 28
    assert row["line"][28:] == [each and pytest.approx(each) for each in expected]


def compared(look, bps, key=PAIR.key):
    values = pl.DataFrame({"stream": [key], "bps": [bps]}, schema_overrides={"bps": pl.Float64})
    return spread_percentiles(look, values).to_dicts()


def test_a_percentile_is_the_share_of_what_was_below(look):
    seen = [bps_of(m) for m in KNOWN]
    for bps in (-1.0, 0.5, 2.5, 3.9, 100.0):
        (row,) = compared(look, bps)
        assert row["n"] == len(KNOWN)
        assert row["percentile"] == pytest.approx(percentileofscore(seen, bps, kind="mean")), bps


def test_a_percentile_of_the_newest_value_is_that_of_the_page_of_spreads(look):
    window = Interval(SERVED_AT - 7 * 86_400, SERVED_AT)
    (figures,) = measure_figures(look, "spread", window).to_dicts()
    (row,) = compared(look, figures["spread_last_log_bps"])
    assert row["percentile"] == figures["last_percentile"]
    assert compared(look, 1.0, "ETH_USD:X.spot:Y.spot") == []
    assert spreads_lately(look)["trajectory"].to_list() == [PAIR.key]
    assert spreads_lately(look, []).is_empty()
    assert funding_lately(look, []).is_empty()


def test_a_month_of_funding_begins_with_what_accrued_to_its_first_settlement(tmp_path):
    pair = Trajectory.parse("BTC_USDT:X.futures:Y.futures", Family.FUNDING)
    last = 4_000 * 28_800
    rows = pl.DataFrame({"ts": range(last - 40 * 86_400, last + 1, 28_800), "buy_rate": 1e-4})
    none = dict.fromkeys(("buy_interval_hours", "sell_interval_hours", "differential_pct_8h"))
    rows = rows.with_columns(sell_rate=3e-4, **{each: pl.lit(None, pl.Float64) for each in none})
    path = tmp_path / "rail.duckdb"
    store = empty_store(path, Source("simulated", "seed-7"))
    bring(store, pair, rows.with_columns(extra=pl.lit(None, pl.String)), Interval(0, last + 1))
    (row,) = funding_lately(read_held(path, version_of(path)), [pair.key]).to_dicts()
    assert row["days"] == 30
