"""What the chart of an event study draws and says."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import event_study_chart
from toolkit.errors import InputError
from toolkit.market import Source
from toolkit.statistics.events import study

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
    upper = lines["95 % band of the mean"].y[: found.height]
    assert list(upper) == found["return_mean_upper_log_bps"].to_list()
    assert lines["mean"].customdata.tolist() == found["n"].to_list()
    subtitle = figure.layout.title.subtitle.text
    assert "n = 40 of 40 events" in subtitle
    assert "SIMULATED market, seed-7" in subtitle
    assert figure.layout.xaxis.title.text == "minutes since the first value known after the event"
    assert figure.layout.yaxis.title.text == "change (bps)"


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
