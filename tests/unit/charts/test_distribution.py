"""Bars beside a line: how its values are distributed, over all rows of the window."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.charts import spread_chart
from toolkit.charts.series import distribution_bars
from toolkit.intervals import Interval
from toolkit.market import Source

PAIR = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def rows(count: int) -> pl.DataFrame:
    bps = np.random.default_rng(7).normal(3, 20, count)
    return pl.DataFrame(
        {
            "ts": 60 * np.arange(count),
            "buy_price": np.full(count, 100.0),
            "sell_price": 100 * np.exp(bps / 1e4),
            "spread_log_bps": bps,
        }
    )


def test_each_bar_is_the_share_of_all_rows_in_its_step_however_few_are_drawn():
    frame, window = rows(5_000), Interval(0, 60 * 4_000)
    figure = spread_chart(
        frame,
        trajectory=PAIR,
        start=window.start,
        end=window.end,
        source=Source("replay", "x"),
        legs="none",
        distribution=True,
        points=100,
    )
    bars = figure.data[-1]
    counts, edges = np.histogram(frame["spread_log_bps"][:4_000], 60)
    assert np.allclose(bars.x, counts / 4_000)
    assert np.allclose(bars.y, (edges[1:] + edges[:-1]) / 2)
    assert (bars.xaxis, bars.yaxis, bars.orientation) == ("x2", "y2", "h")
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.xaxis2.fixedrange


def test_what_is_no_number_is_not_counted():
    frame = pl.DataFrame({"ts": range(4), "bps": [1.0, None, float("nan"), float("inf")]})
    bars = distribution_bars(frame, "bps", Interval(0, 4), "y2")
    assert sum(bars.x) == 1


@pytest.mark.parametrize("end", [198.0, np.nextafter(198.0, 0), 198.0 + 1e-12])
def test_one_value_but_for_its_last_digits_is_one_bar(end):
    frame = pl.DataFrame({"ts": range(2), "bps": [198.0, end]})
    bars = distribution_bars(frame, "bps", Interval(0, 9), "y2")
    assert sorted(bars.x)[-2:] in ([0.0, 1.0], [0.5, 0.5])
    assert np.ptp(bars.y) < 1


@pytest.mark.parametrize("values", [[], [None], [float("nan")]])
def test_without_a_value_there_is_no_bar(values):
    frame = pl.DataFrame(
        {"ts": range(len(values)), "bps": values}, schema_overrides={"bps": pl.Float64}
    )
    assert len(distribution_bars(frame, "bps", Interval(0, 9), "y2").x) == 0


def test_without_it_the_lines_take_the_width():
    figure = spread_chart(
        rows(50), trajectory=PAIR, start=0, end=3_000, source=Source("replay", "x")
    )
    assert figure.layout.xaxis.domain is None
    assert len(figure.data) == 3
