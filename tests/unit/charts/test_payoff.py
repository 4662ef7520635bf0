"""What the chart of payoffs draws and says."""

import numpy as np
import polars as pl
import pytest

from tests.unit.statistics.drawn_positions import drawn
from toolkit.charts import payoff_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.events.positions import payoff

SOURCE = Source("simulated", "seed-7")


def test_boxes_are_the_quantiles_and_bands_those_of_the_mean_before_and_after_fees():
    found = payoff(drawn())
    figure = payoff_chart(found, source=SOURCE, subject="BTC_USDT")
    names = [trace.name for trace in figure.data]
    mean = "mean with its 95 % band"
    assert names == ["gross", mean, "net", mean, "mean of all events, gross"]
    for box, means, side in ((*figure.data[:2], "gross"), (*figure.data[2:4], "net")):
        quantiles = (box.lowerfence, box.q1, box.median, box.q3, box.upperfence)
        for values, name in zip(quantiles, ("q05", "q25", "median", "q75", "q95"), strict=True):
            assert values.tolist() == found[f"{side}_{name}_bps"].to_list()
        assert means.y.tolist() == found[f"{side}_mean_bps"].to_list()
        upper = means.y + means.error_y.array
        np.testing.assert_allclose(upper, found[f"{side}_mean_upper_bps"])
        np.testing.assert_allclose(
            means.y - means.error_y.arrayminus, found[f"{side}_mean_lower_bps"]
        )
    assert figure.data[4].y.tolist() == found["gross_per_event_bps"].to_list()
    title = figure.layout.title.subtitle.text
    assert "net of mine" in title
    assert "SIMULATED market, seed-7" in title
    row = found.row(1, named=True)
    words = f"after 5 min<br>n = {row['n']}<br>{100 * row['taken_share']:.2f} % still there"
    assert figure.layout.xaxis.ticktext[1] == words


def test_without_costs_there_is_gross_alone_and_without_a_band_no_bar():
    few = payoff(drawn(30, priced=0.0))
    figure = payoff_chart(few, source=SOURCE)
    assert [type(trace).__name__ for trace in figure.data] == ["Box", "Scatter", "Scatter"]
    assert np.isnan(figure.data[1].error_y.array.astype(float)).all()
    assert "before fees" in figure.layout.title.subtitle.text


def test_nothing_known_is_a_sentence_and_rows_of_several_groups_are_refused():
    rows = drawn()
    nothing = payoff(rows.filter(pl.col("gross_bps").is_null()))
    figure = payoff_chart(nothing, source=SOURCE)
    assert not figure.data
    assert "a known entry and exit" in figure.layout.annotations[0].text
    assert not payoff_chart(payoff(rows.clear()), source=SOURCE).data
    with pytest.raises(InputError, match="rows of one group"):
        payoff_chart(payoff(rows, by="symbol"), source=SOURCE)
    with pytest.raises(InputError, match="gross_q05_bps"):
        payoff_chart(payoff(rows).drop("gross_q05_bps"), source=SOURCE)
    with pytest.raises(InputError, match="theme"):
        payoff_chart(payoff(rows), source=SOURCE, theme="blue")
