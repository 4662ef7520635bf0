"""What the timeline and the activity of events draw and say."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import activity_chart, event_timeline
from toolkit.charts.theme import COLOURS, FAMILY_COLOURS
from toolkit.errors import InputError
from toolkit.market import EventFamily, Source

START = 1_678_406_400  # 2023-03-10 00:00 UTC
HOUR = 3600
DAY = {"start": START, "end": START + 24 * HOUR, "source": Source("simulated", "seed-7")}


def life(opened, closed, kind="closed", *, family="spread", symbol="BTC_USDT", peak=1.0):
    """An event by the hours of its ends, as `lifecycles` gives it."""
    t_open, t_end = (
        None if hour is None else int(START + HOUR * hour) for hour in (opened, closed)
    )
    lasted = None if None in {t_open, t_end} else float(t_end - t_open)
    return {
        "family": family,
        "symbol": symbol,
        "legs": "buy X.spot, sell Y.spot",
        "t_open": t_open,
        "t_close": t_end if kind in {"closed", "orphan_close"} else None,
        "duration_s": lasted,
        "kind": kind,
        "peak": peak,
    }


def lives(*rows):
    types = {"t_open": pl.Int64, "t_close": pl.Int64, "duration_s": pl.Float64, "peak": pl.Float64}
    return pl.DataFrame(rows or [life(0, 1)], schema_overrides=types)[: len(rows)]


def timeline(*rows, **more):
    return event_timeline(lives(*rows), **{**DAY, **more})


def documents(*rows):
    return pl.DataFrame(
        [(family, kind, START + int(HOUR * hour)) for family, kind, hour in rows],
        schema={"family": pl.String, "event_type": pl.String, "ts": pl.Int64},
        orient="row",
    )


def activity(*rows, **more):
    return activity_chart(documents(*rows), **{**DAY, **more})


def lines(figure):
    return figure.layout.title.subtitle.text.split("<br>")


# -- the timeline --------------------------------------------------------------------------------


def test_a_bar_lies_where_its_event_lived_in_its_familys_colour_below_title_and_mark():
    figure = timeline(life(2, 5), life(6, 7, family="funding", symbol="ETH_USDT"))
    spread, funding = figure.data
    assert (spread.base[0], spread.x.tolist()) == ("2023-03-10 02:00", [3 * HOUR * 1000])
    assert (funding.base[0], funding.x.tolist()) == ("2023-03-10 06:00", [HOUR * 1000])
    assert [bar.name for bar in figure.data] == ["spread (1)", "funding (1)"]
    assert spread.marker.color == FAMILY_COLOURS[EventFamily.SPREAD]
    assert funding.marker.color == FAMILY_COLOURS[EventFamily.FUNDING]
    figure = timeline(life(1, 2), subject="BTC_USDT, spread events")
    assert figure.layout.title.text == "Events from opening to close"
    assert lines(figure) == [
        "BTC_USDT, spread events",
        "2023-03-10 00:00 to 2023-03-11 00:00 UTC",
        "n = 1 event",
        "all seen from opening to close",
        "SIMULATED market, seed-7",
    ]
    assert [note.text for note in figure.layout.annotations] == ["SIMULATED"]


def test_ends_that_were_not_seen_have_a_pattern_and_are_counted():
    figure = timeline(
        life(1, 2),
        life(3, 24, "open"),
        life(4, 6, "reopened"),
        life(None, 5, "orphan_close"),
        life(None, None, "orphan_update"),
    )
    (bars,) = figure.data
    by_pattern = dict(
        zip(bars.marker.pattern.shape, zip(bars.base, bars.x, strict=True), strict=True)
    )
    assert by_pattern == {
        "": ("2023-03-10 01:00", HOUR * 1000),
        "/": ("2023-03-10 03:00", 21 * HOUR * 1000),
        "x": ("2023-03-10 04:00", 2 * HOUR * 1000),
        "\\": ("2023-03-10 00:00", 5 * HOUR * 1000),
    }
    assert lines(figure)[2:4] == [
        "4 of 5 events, of each family the largest",
        (
            "of all: 1 still open (hatch /), 1 close lost (hatch x), "
            "1 opened before (hatch \\), 1 only updated, not drawn"
        ),
    ]


def test_the_hover_has_legs_size_times_and_length():
    rows = (
        life(2, 5, peak=-1.25),
        life(3, 24, "open", symbol="ETH_USDT"),
        life(1, 2, family="funding", peak=None),
    )
    spread, funding = timeline(*rows).data
    assert spread.hovertext[0].split("<br>") == [
        "spread BTC_USDT",
        "buy X.spot, sell Y.spot",
        "peak -1.250 %",
        "2023-03-10 02:00 to 2023-03-10 05:00 UTC",
        "3 h",
    ]
    assert spread.hovertext[1].endswith("still open at 2023-03-11 00:00<br>at least 21 h")
    assert "peak –" in funding.hovertext[0]
    funding = timeline(life(1, 2, family="funding")).data[0]
    assert "peak 1.0000 % per 8 h" in funding.hovertext[0]


def test_events_of_a_symbol_lie_together_and_none_covers_another():
    rows = [life(h, h + 3, symbol=s) for s in ("B_C", "A_C") for h in (0, 1, 2, 8)]
    figure = timeline(*rows)
    (bars,) = figure.data
    assert figure.layout.yaxis.ticktext == ("A_C", "B_C")
    assert figure.layout.yaxis.tickvals == (1.0, 4.0)
    lanes = {}
    for base, lane in zip(bars.base, bars.y, strict=True):
        lanes.setdefault(int(lane), []).append(base[11:])
    assert lanes == {
        0: ["00:00", "08:00"],
        1: ["01:00"],
        2: ["02:00"],
        3: ["00:00", "08:00"],
        4: ["01:00"],
        5: ["02:00"],
    }
    assert [shape.y0 for shape in figure.layout.shapes] == [2.5]


def test_a_bar_stays_in_its_lane_however_far_apart_the_lanes_of_its_family_are():
    rows = [life(1, 5, symbol=f"{letter}_U") for letter in "ABCDEF"]
    rows += [life(6, 9, family="splash", symbol=f"{letter}_V") for letter in "AF"]
    rows += [life(10, 12, family="splash", symbol=f"{letter}_U") for letter in "AF"]
    for bars in timeline(*rows).data:
        # Without a width plotly takes the distance of the trace's two nearest lanes.
        assert bars.width is not None
        assert 0 < bars.width < 1


def test_of_many_events_the_largest_of_each_family_are_drawn_and_it_says_so():
    spreads = [life(k / 100, k / 100 + 1, peak=float(k)) for k in range(800)]
    splashes = [life(k, k + 1, family="splash", peak=-0.1 - k / 1000) for k in range(12)]
    figure = timeline(*spreads, *splashes, limit=20)
    assert [bar.name for bar in figure.data] == ["spread (10)", "splash (10)"]
    assert lines(figure)[2] == "20 of 812 events, of each family the largest"
    drawn = {float(text.split("peak ")[1].split(" ")[0]) for text in figure.data[0].hovertext}
    assert drawn == set(map(float, range(790, 800)))
    assert len(figure.to_json()) < 20_000
    figure = timeline(*[life(k, k + 1) for k in range(9)], life(1, 2, family="splash"), limit=8)
    assert [bar.name for bar in figure.data] == ["spread (7)", "splash (1)"]
    rows = [life(k % 5, k % 5 + 2, symbol=f"S{k % 3}_U", peak=k % 4) for k in range(30)]
    one, other = timeline(*rows, limit=10), timeline(*reversed(rows), limit=10)
    assert one.to_json() == other.to_json()


def test_bars_are_cut_to_the_window_and_openings_outside_are_not_counted():
    figure = timeline(life(-2, 1), life(23, 30), life(-5, -4), life(25, 26))
    (bars,) = figure.data
    assert sorted(zip(bars.base, bars.x.tolist(), strict=True)) == [
        ("2023-03-10 00:00", HOUR * 1000),
        ("2023-03-10 23:00", HOUR * 1000),
    ]
    assert lines(figure)[2:4] == ["n = 2 events", "all seen from opening to close"]
    figure = activity(
        ("spread", "spread.opened", -0.1),
        ("spread", "spread.opened", 23.9),
        ("spread", "spread.opened", 24),
    )
    assert figure.data[0].y.tolist() == [1]


def test_the_axis_shows_the_zones_clock_over_its_change():
    autumn = 1_698_541_200  # 2023-10-29 01:00 UTC: London goes from 02:00 back to 01:00
    row = life(0, 0) | {"t_open": autumn - HOUR, "t_close": autumn + HOUR, "duration_s": 7200.0}
    window = {"start": autumn - 4 * HOUR, "end": autumn + 4 * HOUR}
    (bars,) = timeline(row, **window, timezone="Europe/London").data
    assert bars.base == ("2023-10-29 01:00",)
    assert bars.x.tolist() == [HOUR * 1000]


@pytest.mark.parametrize("rows", [[], [life(30, 31)], [life(None, None, "orphan_update")]])
def test_nothing_to_draw_says_what_to_do(rows):
    figure = timeline(*rows)
    assert not figure.data
    words = figure.layout.annotations[0].text.replace("<br>", " ")
    assert "rail sync events/spread events/splash events/funding --start 2023-03-10" in words


def test_another_kind_and_a_missing_column_are_refused():
    with pytest.raises(InputError, match="limit"):
        timeline(life(1, 2), limit=0)
    with pytest.raises(InputError, match="window"):
        timeline(life(1, 2), end=START)
    with pytest.raises(InputError, match="orphan_close"):
        timeline(life(1, 2, "vanished"))
    with pytest.raises(InputError, match="legs"):
        event_timeline(lives(life(1, 2)).drop("legs"), **DAY)
    with pytest.raises(InputError, match="event_type"):
        activity_chart(documents(("spread", "spread.opened", 1)).drop("event_type"), **DAY)


# -- activity ------------------------------------------------------------------------------------


def test_the_week_before_is_one_line_of_all_families_with_its_empty_hours():
    before = documents(
        ("spread", "a.opened", 1), ("splash", "splash.dump", 2), ("spread", "a.closed", 3)
    )
    *bars, line = activity(("spread", "a.opened", 1), before=before).data
    assert len(bars) == len(EventFamily)
    assert line.name == "a week before (2)"
    assert len(line.y) == 24
    assert sum(line.y) == 2
    assert activity(("spread", "a.opened", 1)).data[-1].type == "bar"


def test_openings_are_counted_by_hour_and_family_and_stacked():
    figure = activity(
        ("spread", "spread.opened", 0),
        ("spread", "spread.updated", 0.2),
        ("spread", "spread.opened", 0.9),
        ("spread", "spread.closed", 3),
        ("splash", "splash.pump", 3),
        ("splash", "splash.dump", 3.5),
        ("splash", "splash.faded", 4),
        ("funding", "funding.opened", 5),
    )
    assert figure.layout.barmode == "stack"
    assert [bar.name for bar in figure.data] == ["spread (2)", "splash (2)", "funding (1)"]
    assert [(list(bar.x), bar.y.tolist()) for bar in figure.data] == [
        (["2023-03-10 00:30"], [2]),
        (["2023-03-10 03:30"], [2]),
        (["2023-03-10 05:30"], [1]),
    ]
    assert figure.data[0].marker.color == FAMILY_COLOURS[EventFamily.SPREAD]
    assert figure.data[0].width == HOUR * 1000
    assert figure.layout.title.text == "Events that opened in each hour"
    assert lines(figure)[2] == "n = 5 events"
    assert figure.layout.yaxis.title.text == "events per hour"


def test_a_long_window_counts_longer_stretches_and_stays_small():
    hours = np.arange(0, 24 * 365)
    rows = [("spread", "spread.opened", int(hour)) for hour in hours]
    figure = activity(*rows, end=START + 365 * 24 * HOUR)
    assert figure.layout.yaxis.title.text == "events per day"
    assert set(figure.data[0].y.tolist()) == {24}
    assert len(figure.to_json()) < 60_000


@pytest.mark.parametrize("rows", [[], [("spread", "spread.closed", 1)]])
def test_no_openings_say_what_to_do(rows):
    (note,) = activity(*rows).layout.annotations
    assert "rail sync events/spread" in note.text.replace("<br>", " ")


@pytest.mark.parametrize("theme", COLOURS)
def test_both_charts_carry_their_theme(theme):
    for figure in (
        timeline(life(1, 2), theme=theme),
        activity(("spread", "a.opened", 1), theme=theme),
    ):
        assert figure.layout.template.layout.colorway == COLOURS[theme]
