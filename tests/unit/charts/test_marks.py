"""Thresholds and events on a spread chart."""

import json

import numpy as np
import polars as pl
import pytest

from toolkit.charts import spread_chart
from toolkit.charts.theme import COLOURS, FAMILY_COLOURS
from toolkit.errors import InputError
from toolkit.market import EventFamily, Source, Trajectory
from toolkit.statistics.spread import episodes

PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
START = 1_678_406_400  # 2023-03-10 00:00 UTC
LEGS = ("COINBASE", "spot", "KRAKEN", "spot")


def rows(n=60):
    ts = START + 60 * np.arange(n)
    spread = np.sin(np.arange(n))
    return pl.DataFrame(
        {"ts": ts, "buy_price": 100.0, "sell_price": 100.0, "spread_log_bps": spread}
    )


def document(event_id, kind, minute, *, pct=1.0, legs=LEGS, symbol="BTC_USD", family="spread"):
    return {
        "family": family,
        "event_id": event_id,
        "event_type": f"{family}.{kind}",
        "lifecycle": "closed" if kind == "closed" else "open",
        "ts": START + 60 * minute,
        "ts_ms": 1000 * (START + 60 * minute),
        "arrival": minute,
        "symbol": symbol,
        **dict(
            zip(("buy_exchange", "buy_market", "sell_exchange", "sell_market"), legs, strict=True)
        ),
        "magnitude_pct": pct,
    }


def events(*documents):
    return pl.DataFrame(documents)


def chart(frame=None, **more):
    window = {"start": START, "end": START + 3600}
    source = Source("replay", "depeg")
    frame = rows() if frame is None else frame
    return spread_chart(frame, **{"trajectory": PAIR, "source": source, **window, **more})


def stretches(figure):
    return [(shape.x0[11:], shape.x1[11:]) for shape in figure.layout.shapes]


def test_thresholds_are_one_dashed_line_over_the_window_named_with_their_values():
    line = chart(thresholds_bps=[-25, 12.5]).data[3]
    assert line.name == "threshold -25, +12.5 bps"
    assert (line.line.dash, line.yaxis) == ("dash", "y2")
    assert line.y == (-25.0, -25.0, None, 12.5, 12.5, None)
    assert line.x == ("2023-03-10 00:00", "2023-03-10 01:00", None) * 2
    figure = chart(thresholds_bps=[], events=events(document("a", "opened", 1))[:0])
    assert len(figure.data) == 3
    assert not figure.layout.shapes


def test_episodes_of_the_statistics_are_shaded_and_those_a_few_pixels_apart_joined():
    found = episodes(rows().with_columns(trajectory=pl.lit(PAIR.key)), enter_bps=0.8)
    figure = chart(episodes=found)
    assert 0 < len(figure.layout.shapes) <= found.height
    assert stretches(figure)[0] == ("00:01", "00:03")
    many = pl.DataFrame({"start_ts": range(START, START + 3600, 6)})
    dense = chart(episodes=many.with_columns(end_ts=pl.col("start_ts") + 3))
    assert stretches(dense) == [("00:00", "00:59:57")]
    assert not chart(episodes=found.clear()).layout.shapes
    with pytest.raises(InputError, match="start_ts"):
        chart(episodes=found.drop("start_ts"))


@pytest.mark.parametrize("wrong", [float("nan"), float("inf")])
def test_a_threshold_that_is_no_number_is_refused(wrong):
    with pytest.raises(InputError, match="thresholds_bps"):
        chart(thresholds_bps=[10.0, wrong])


def test_a_life_is_shaded_from_opening_to_close_on_the_spreads_plot():
    life = events(document("a", "opened", 10), document("a", "closed", 20))
    for shuffled in (life, life.reverse()):
        figure = chart(events=shuffled)
        assert stretches(figure) == [("00:10", "00:20")]
        (shape,) = figure.layout.shapes
        assert (shape.yref, shape.layer) == ("y2 domain", "below")
        assert shape.fillcolor == FAMILY_COLOURS[EventFamily.SPREAD]


def test_lives_are_shaded_to_their_ends_or_those_of_the_window():
    seen = events(
        document("a", "closed", 5), document("b", "opened", 50), document("c", "updated", 51)
    )
    assert stretches(chart(events=seen[:2])) == [("00:00", "00:05"), ("00:50", "01:00")]
    assert stretches(chart(events=seen[2:])) == [("00:00", "01:00")]
    seen = events(document("a", "opened", -30), document("a", "closed", -10))
    assert stretches(chart(events=seen)) == []
    seen = events(document("a", "opened", -30), document("a", "closed", 10))
    figure = chart(events=seen)
    assert stretches(figure) == [("00:00", "00:10")]
    assert figure.data[3].name == "0 events opened"


def test_nothing_is_shaded_from_where_the_logs_own_answers_end():
    seen = events(
        document("a", "opened", 10), document("a", "closed", 20), document("b", "opened", 40)
    )
    log = {"family": ["spread", "splash"], "known_until": [START + 2700, START + 3600]}
    assert stretches(chart(events=seen, logs=pl.DataFrame(log))) == [
        ("00:10", "00:20"),
        ("00:40", "00:45"),
    ]
    updated = events(document("c", "updated", 30))
    assert stretches(chart(events=updated, logs=pl.DataFrame(log))) == [("00:00", "00:45")]
    before = pl.DataFrame({"family": ["spread"], "known_until": [START - 60]})
    assert stretches(chart(events=events(document("a", "opened", -5)), logs=before)) == []


def test_an_opening_is_marked_at_its_size_turned_where_its_legs_are():
    figure = chart(events=events(document("a", "opened", 10, pct=2.0)))
    marks = figure.data[3]
    assert marks.x == ("2023-03-10 00:10",)
    assert marks.y.tolist() == pytest.approx([1e4 * np.log(1.02)])
    assert marks.hovertext == ("spread.opened 2 %",)
    assert marks.name == "1 event opened"
    legs = (*LEGS[2:], *LEGS[:2])
    marks = chart(events=events(document("a", "opened", 10, pct=2.0, legs=legs))).data[3]
    assert marks.y.tolist() == pytest.approx([-1e4 * np.log(1.02)])
    assert marks.hovertext == ("spread.opened 2 %, buying the sell leg",)
    seen = events(document("a", "opened", 10, pct=None), document("b", "opened", 20))
    figure = chart(events=seen)
    assert figure.data[3].name == "1 of 2 events opened"
    assert stretches(figure) == [("00:10", "01:00")]
    seen = events(document("a", "opened", 10))
    with pytest.raises(InputError, match="events: 'no sell_market'"):
        chart(events=seen.drop("sell_market"))


@pytest.mark.parametrize(
    "other",
    [
        {"symbol": "ETH_USD"},
        {"family": "funding"},
        {"legs": ("COINBASE", "spot", "KRAKEN", "futures")},
        {"legs": ("COINBASE", "spot", None, None)},
    ],
)
def test_events_of_other_legs_symbols_and_families_are_left_out(other):
    figure = chart(events=events(document("a", "opened", 10, **other)))
    assert len(figure.data) == 3
    assert not figure.layout.shapes


def test_ten_thousand_events_stay_a_small_figure_that_says_how_many_it_shows():
    seen = events(
        *(
            document(str(i), kind, at, pct=1 + i % 7)
            for i in range(10_000)
            for kind, at in (("opened", 20 * i), ("closed", 20 * i + 10))
        )
    )
    day = {"start": START, "end": START + 60 * 20 * 10_000}
    figure = chart(events=seen, **day)
    assert len(figure.layout.shapes) <= 1000
    assert len(figure.data[3].x) <= 2000
    assert figure.data[3].name.endswith(" of 10,000 events opened")
    assert max(figure.data[3].y) == pytest.approx(1e4 * np.log(1.07))
    assert len(figure.to_json()) < 600_000


@pytest.mark.parametrize("theme", COLOURS)
def test_times_are_the_chosen_zones_in_either_theme(theme):
    seen = events(document("a", "opened", 10), document("a", "closed", 20))
    figure = chart(events=seen, thresholds_bps=[5], timezone="Asia/Tokyo", theme=theme)
    assert stretches(figure) == [("09:10", "09:20")]
    assert figure.data[3].x[0] == "2023-03-10 09:00"
    assert figure.data[4].x == ("2023-03-10 09:10",)
    assert json.loads(figure.to_json())["layout"]["shapes"][0]["line"] == {"width": 0}
