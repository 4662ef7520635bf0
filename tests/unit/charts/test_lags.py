"""What the chart of correlations by lag draws and says."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import lags_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.spread import cross_correlation, hayashi_yoshida

SOURCE = Source("simulated", "seed-7")
RNG = np.random.default_rng(19)
NEWS = np.exp(np.cumsum(RNG.normal(0, 1e-3, 600)))
BARS = pl.DataFrame(
    {"trajectory": "a", "ts": 60 * np.arange(599), "buy_price": NEWS[1:], "sell_price": NEWS[:-1]}
)


def test_lines_are_the_correlations_and_the_band_is_that_of_the_first_that_has_one():
    by_minute = cross_correlation(BARS, max_lag_steps=2)
    seldom = pl.when(pl.col("ts") % 120 == 0).then("sell_price").alias("sell_price")
    own = hayashi_yoshida(BARS.with_columns(seldom), 0, 36_000, lags_s=[0, 60])
    figure = lags_chart({"trades": own, "minutes": by_minute}, source=SOURCE, subject="a <b>")
    band, trades, minutes = figure.data
    assert (minutes.x[3], round(minutes.y[3], 6)) == (60, 1.0)
    assert list(minutes.y) == by_minute["correlation"].to_list()
    assert list(trades.y) == own["correlation"].to_list()
    assert list(band.y[:5]) == by_minute["null_band"].to_list()
    assert list(band.y[5:]) == [-each for each in reversed(band.y[:5])]
    assert (minutes.hovertext[3], trades.hovertext[0]) == ("597", "599 and 300")
    subtitle = figure.layout.title.subtitle.text
    assert "a &lt;b&gt;" in subtitle
    assert "1970-01-01 00:00 to 1970-01-01 10:00 UTC" in subtitle
    assert "trades: n = 599 and 300 prices<br>minutes: n = 596 pairs or more" in subtitle
    assert "SIMULATED market, seed-7" in subtitle


def test_too_few_returns_are_a_sentence_and_other_frames_are_refused():
    found = cross_correlation(BARS.head(20))
    figure = lags_chart({"minutes": found}, source=SOURCE)
    assert not figure.data
    assert "too few returns" in figure.layout.annotations[0].text
    for wrong, words in (
        ({}, "one frame or more"),
        ({"a": found.drop("lag_s")}, "lag_s"),
        ({"a": found.drop("pairs")}, "buy_n"),
        ({"a": pl.concat([found, found])}, "one trajectory each"),
    ):
        with pytest.raises(InputError, match=words):
            lags_chart(wrong, source=SOURCE)
