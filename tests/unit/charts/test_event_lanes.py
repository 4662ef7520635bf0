"""What the lanes of events draw: each event in some bar, however many there are."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import event_lanes
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import EventFamily

from .test_events import DAY, HOUR, START, life, lines, lives


def drawn(*rows, **more):
    frame = lives(*rows).with_columns(event_id=pl.format("e{}", pl.int_range(pl.len())))
    return event_lanes(frame, **{**DAY, **more})


def bars(figure):
    return figure.data[len(EventFamily) :]


def test_a_symbol_has_a_lane_and_what_has_no_end_is_counted_and_not_drawn():
    figure = drawn(life(1, 2), life(3, 4), life(5, 6, symbol="ETH_USDT"), life(7, 8))
    assert list(figure.layout.yaxis.ticktext) == ["BTC_USDT", "ETH_USDT"]
    (spreads,) = bars(figure)
    assert {round(float(y)) for y in spreads.y} == {0, 1}
    assert spreads.x.tolist() == [1000 * HOUR] * 4
    figure = drawn(life(1, 2), life(None, None, "orphan_update"))
    assert lines(figure)[2] == "n = 2 events, 1 without an end to draw"


def test_the_legend_counts_the_events_of_the_stretch_by_family_as_the_subtitle_does():
    figure = drawn(life(-1, 2), life(3, 4), life(3, 4, family="splash"))
    assert [strip.name for strip in figure.data[:3]] == ["spread (2)", "splash (1)", "funding (0)"]
    assert "n = 3 events" in figure.layout.title.subtitle.text
    assert sum(figure.data[0].y) == 1


def test_events_that_open_together_are_one_bar_that_opens_the_largest():
    figure = drawn(life(1, 2, peak=1.0), life(1.001, 3, peak=-9.0), life(8, 9))
    (spreads,) = bars(figure)
    assert list(spreads.customdata) == ["e1", "e2"]
    assert spreads.x[0] == 1000 * 2 * HOUR
    assert "2 spread events" in spreads.hovertext[0]
    assert "-9.000 %" in spreads.hovertext[0]
    assert lines(figure)[2] == "n = 3 events, in 2 bars"


def test_of_fifty_thousand_events_no_time_with_one_is_left_blank():
    rng = np.random.default_rng(7)
    n = 50_000
    opened = rng.uniform(0, 24, n)
    frame = pl.DataFrame(
        {
            "family": rng.choice(["spread", "splash"], n),
            "symbol": pl.Series(rng.integers(0, 40, n)).cast(pl.String),
            "legs": "X.spot",
            "t_open": (START + HOUR * opened).astype(int),
            "t_close": (START + HOUR * opened).astype(int) + 60,
            "duration_s": 60.0,
            "kind": "closed",
            "peak": 1.0,
            "event_id": "e",
        }
    )
    figure = event_lanes(frame, **DAY)
    count = sum(len(trace.x) for trace in bars(figure))
    assert count <= 600
    assert len(figure.to_json()) < 1_000_000
    assert list(figure.layout.yaxis.ticktext)[-1] == "21 others"
    for trace in bars(figure):
        since = np.array(trace.base, dtype="datetime64[s]").astype(int)
        until = since + trace.x / 1000
        for lane in range(20):
            mine = np.rint(trace.y) == lane
            assert until[mine].max() - since[mine].min() > 0.95 * 24 * HOUR
    assert sum(sum(strip.y) for strip in figure.data[:3]) == n


def test_a_zoom_shows_its_part_and_marks_it_in_the_strip():
    zoom = Interval(START + 2 * HOUR, START + 5 * HOUR)
    figure = drawn(life(1, 3), life(3, 4), life(7, 8), zoom=zoom, at=START + 3 * HOUR)
    (spreads,) = bars(figure)
    assert sorted(spreads.customdata) == ["e0", "e1"]
    assert figure.layout.xaxis.range == ("2023-03-10 02:00", "2023-03-10 05:00")
    marked = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert [(shape.x0, shape.x1) for shape in marked] == [("2023-03-10 02:00", "2023-03-10 05:00")]
    assert "2023-03-10 03:00" in [shape.x0 for shape in figure.layout.shapes]


def test_no_event_is_a_sentence_and_a_zoom_without_one_is_not():
    assert "Choose another window" in drawn(life(30, 31)).layout.annotations[0].text
    assert not bars(drawn(life(1, 2), zoom=Interval(START + 8 * HOUR, START + 9 * HOUR)))


@pytest.mark.parametrize(
    "wrong", [{"zoom": Interval(START - 1, START + HOUR)}, {"lanes": 0}, {"bars": 0.5}]
)
def test_what_is_not_allowed_is_refused(wrong):
    with pytest.raises(InputError):
        drawn(life(1, 2), **wrong)
    with pytest.raises(InputError, match="event_id"):
        event_lanes(lives(life(1, 2)), **DAY)
