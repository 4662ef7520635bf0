"""What the charts of leagues and of survival draw and say, and events by hour of the week."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from toolkit.charts import event_hours_chart, league_chart, survival_chart
from toolkit.charts.theme import FAMILY_COLOURS
from toolkit.errors import InputError
from toolkit.market import EventFamily, Source
from toolkit.statistics.events import league, rates_by_hour, survival_curve

SOURCE = Source("simulated", "seed-7")
WEEK = 604_800


def lives(counts: list[int], family: str = "spread", end: int = 5 * WEEK) -> pl.DataFrame:
    names = [f"S{k:02}" for k, count in enumerate(counts) for _ in range(count)]
    opened = [(k * 7_919) % end for k in range(len(names))]
    frame = pl.DataFrame({"family": family, "symbol": names, "t_open": opened, "duration_s": 30.0})
    return watched(frame, end).with_columns(observed=pl.lit(1, pl.Int64))


def watched(frame: pl.DataFrame, end: int) -> pl.DataFrame:
    """Lives from their opening on, in a window that is known to its end."""
    whole = pl.lit(end, pl.Int64)
    return frame.with_columns(
        entry_s=pl.lit(0.0),
        kind=pl.lit("closed"),
        known_until=whole,
        window_start=pl.lit(0, pl.Int64),
        window_end=whole,
    )


def test_bars_have_the_exact_interval_and_marks_the_rates_drawn_to_the_mean():
    found = league(lives([3, 40, 5, 9, 1, 2, 8, 4, 6, 7, 30]), ["symbol"], cluster="none")
    figure = league_chart(found, source=SOURCE, limit=4)
    bars, marks = figure.data
    shown = found.head(4)
    assert list(bars.y) == shown["symbol"].to_list() == [*figure.layout.yaxis.categoryarray][::-1]
    assert bars.x.tolist() == shown["rate_per_day"].to_list()
    assert (bars.x + bars.error_x.array).tolist() == pytest.approx(
        shown["rate_upper_per_day"].to_list()
    )
    assert (bars.x - bars.error_x.arrayminus).tolist() == pytest.approx(
        shown["rate_lower_per_day"].to_list()
    )
    assert bars.marker.color == FAMILY_COLOURS[EventFamily.SPREAD]
    assert marks.x.tolist() == shown["rate_shrunk_per_day"].to_list()
    assert "n = 115 events of 11 groups, 4 shown" in figure.layout.title.subtitle.text


def test_families_are_apart_and_without_a_rate_it_is_a_sentence():
    both = pl.concat([lives([3, 4]), lives([5], "splash")])
    figure = league_chart(league(both, ["symbol"]), source=SOURCE)
    assert [trace.name for trace in figure.data] == ["splash", "spread"]
    assert list(figure.data[0].y) == ["splash S00"]
    nothing = league_chart(league(both.clear(), ["symbol"]), source=SOURCE)
    assert "No group has a known rate" in nothing.layout.annotations[0].text
    with pytest.raises(InputError, match="rank"):
        league_chart(league(both, ["symbol"]).drop("rank"), source=SOURCE)


def test_each_hour_of_the_week_is_a_cell_with_monday_on_top():
    found = rates_by_hour(lives([400]))
    figure = event_hours_chart(found, source=SOURCE)
    (cells,) = figure.data
    assert (cells.y[0], cells.y[-1], cells.x[0]) == ("Sunday", "Monday", "00")
    monday = found.filter(weekday=1)["events_per_h_mean"].to_numpy()
    assert np.array_equal(cells.z[-1], monday)
    assert cells.zmin == 0
    assert cells.zmax == found["events_per_h_mean"].max()
    assert cells.customdata[-1][0][0] == "5"
    assert "n = 840 hours, coverage 100.00 %" in figure.layout.title.subtitle.text


def test_several_groups_and_nothing_held_have_no_hours():
    several = rates_by_hour(lives([40, 50]), ["symbol"])
    with pytest.raises(InputError, match="168 hours of one group"):
        event_hours_chart(several, source=SOURCE)
    short = rates_by_hour(lives([4], end=1_800))
    nothing = event_hours_chart(short, source=SOURCE)
    assert "The log covers no hour of the week" in nothing.layout.annotations[0].text


def curve(symbols: int = 2, rows: int = 40) -> pl.DataFrame:
    count = symbols * rows
    lives = pl.DataFrame(
        {
            "family": "spread",
            "symbol": [f"S{k % symbols}" for k in range(count)],
            "t_open": [0] * count,
            "duration_s": [60.0 * (1 + k // symbols) for k in range(count)],
            "observed": [int(k % 5 > 0) for k in range(count)],
        }
    )
    return survival_curve(watched(lives, 60 * rows), ["symbol"])


def test_each_group_is_a_line_of_steps_from_all_with_a_band_and_its_counts_below():
    found = curve()
    figure = survival_chart(found, source=SOURCE, subject="spread events")
    lines = [trace for trace in figure.data if trace.mode != "text" and trace.name]
    assert [line.name for line in lines] == ["S0", "S1"]
    own = found.filter(symbol="S0")
    assert lines[0].x.tolist() == [0.0, *(own["life_s"] / 60).to_list()]
    assert lines[0].y.tolist() == [1.0, *own["survival"].to_list()]
    assert lines[0].line.shape == "hv"
    counts = [trace for trace in figure.data if trace.mode == "text"]
    expected = [own.filter(pl.col("life_s") >= 60 * age)["n"].max() for age in counts[0].x]
    assert [int(text) for text in counts[0].text] == expected
    assert counts[0].text[0] == "40"
    bands = [trace for trace in figure.data if trace.fill == "tonexty"]
    assert len(bands) == 2
    subtitle = figure.layout.title.subtitle.text
    assert "n = 80 events at risk, 64 seen to end" in subtitle
    assert "log coverage at least 100.00 %" in subtitle
    assert "SIMULATED market, seed-7" in subtitle
    assert figure.layout.xaxis.title.text == "age (min)"


def test_a_line_ends_where_the_share_is_not_known_and_many_ages_are_thinned():
    broken = curve(1).with_columns(
        pl.when(pl.col("life_s") < 600).then("survival").alias("survival")
    )
    figure = survival_chart(broken, source=SOURCE)
    line = next(trace for trace in figure.data if trace.name)
    assert line.x.max() < 10
    many = survival_chart(curve(1, 900), source=SOURCE)
    line = next(trace for trace in many.data if trace.name)
    assert len(line.x) == 301
    assert line.x.max() == 900 * 60 / 3_600
    assert "drawn at 300 of the ages of a group" in many.layout.title.subtitle.text


def test_nothing_known_is_a_sentence_and_too_many_groups_are_refused():
    nothing = survival_chart(curve().clear(), source=SOURCE)
    assert "Survival is not known" in nothing.layout.annotations[0].text
    with pytest.raises(InputError, match="at most 6 groups"):
        survival_chart(curve(7), source=SOURCE)
    with pytest.raises(InputError, match="survival_lower"):
        survival_chart(curve().drop("survival_lower"), source=SOURCE)
    assert np.isfinite(survival_chart(curve(6), source=SOURCE).layout.height)
