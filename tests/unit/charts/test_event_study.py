"""What the charts of event studies and of payoffs draw and say."""

import numpy as np
import polars as pl
import pytest

from tests.unit.statistics.drawn_positions import drawn
from toolkit.charts import event_study_chart, payoff_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.events import study
from toolkit.statistics.events.positions import payoff

SOURCE = Source("simulated", "seed-7")


def studied(count=40, column="price", **options):
    rng = np.random.default_rng(51)
    values = np.exp(np.cumsum(rng.normal(0, 1e-3, 10_000)))
    bars = pl.DataFrame({"trajectory": "a", "ts": 60 * np.arange(10_000), column: values})
    ts = 7_200 * np.arange(1, count + 1)
    events = pl.DataFrame({"trajectory": "a", "ts": ts})
    return study(events, bars, column=column, before_s=600, after_s=1_200, every_s=300, **options)


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("price", "change from the price at detection (bps)"),
        ("spread_log_bps", "change from the median before (bps)"),
        ("differential_pct_8h", "change from the median before (% per 8 h)"),
        ("volume", "change from the median before"),
    ],
)
def test_a_path_from_the_detection_says_from_what_it_changes(column, change):
    figure = event_study_chart(studied(5, column, from_detection=True), source=SOURCE)
    assert figure.layout.xaxis.title.text == "minutes since the event"
    assert figure.layout.yaxis.title.text == change


def test_mean_median_and_both_bands_are_those_of_the_study():
    found = studied()
    figure = event_study_chart(found, source=SOURCE, subject="pumps")
    lines = {line.name: line for line in figure.data}
    assert list(lines) == ["half of the events", "95 % band of the mean", "mean", "median"]
    assert lines["mean"].x.tolist() == [-10, -5, 0, 5, 10, 15, 20]
    assert lines["mean"].y.tolist() == found["return_mean_log_bps"].to_list()
    assert lines["median"].y.tolist() == found["return_median_log_bps"].to_list()
    above, below = np.array_split(lines["half of the events"].y, 2)
    assert [*above] == found["return_q75_log_bps"].to_list()
    assert [*reversed(below)] == found["return_q25_log_bps"].to_list()
    upper = lines["95 % band of the mean"].y[: found.height]
    assert list(upper) == found["return_mean_upper_log_bps"].to_list()
    assert lines["mean"].customdata.tolist() == found["n"].to_list()
    subtitle = figure.layout.title.subtitle.text
    assert "n = 40 of 40 events" in subtitle
    assert "SIMULATED market, seed-7" in subtitle
    assert figure.layout.xaxis.title.text == "minutes since the first value known after the event"
    assert figure.layout.yaxis.title.text == "change (bps)"


def test_a_column_that_is_named_for_a_mean_is_drawn_as_any_other():
    found = studied(5, "rolling_mean")
    median = event_study_chart(found, source=SOURCE).data[-1]
    assert median.y.tolist() == found["rolling_mean_change_median"].to_list()


def test_without_a_band_it_says_that_events_are_too_few():
    figure = event_study_chart(studied(5, "spread_log_bps"), source=SOURCE)
    assert [line.name for line in figure.data] == ["half of the events", "mean", "median"]
    assert "too few events for a band" in figure.layout.title.subtitle.text


def test_nothing_known_is_a_sentence_and_another_frame_is_refused():
    found = studied(1).with_columns(pl.lit(None, pl.Float64).alias("return_mean_log_bps"))
    figure = event_study_chart(found, source=SOURCE)
    assert not figure.data
    assert "No price or spread is known" in figure.layout.annotations[0].text
    with pytest.raises(InputError, match="offset_s"):
        event_study_chart(found.drop("offset_s"), source=SOURCE)
    with pytest.raises(InputError, match="no q25"):
        event_study_chart(found.drop("return_q25_log_bps"), source=SOURCE)


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
