"""What the chart of one symbol draws: a line a leg, its rate in the same colour, its events."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import symbol_chart
from toolkit.errors import InputError

from .test_events import DAY, HOUR, START, life, lives

LEGS = [f"X{number:02}.futures" for number in range(12)]


def prices(*legs, minutes=60):
    ts = [START + 60 * minute for minute in range(minutes)]
    frames = [
        pl.DataFrame({"leg": leg, "ts": ts, "price": [100.0 + at + m % 5 for m in range(minutes)]})
        for at, leg in enumerate(legs)
    ]
    return pl.concat(frames)


def funding(*rows):
    schema = {"leg": pl.String, "ts": pl.Int64, "apr_pct": pl.Float64}
    given = [(leg, int(START + HOUR * hour), apr) for leg, hour, apr in rows]
    return pl.DataFrame(given, schema=schema, orient="row")


def drawn(rows, rates=None, *events, **more):
    happened = lives(*events).with_columns(event_id=pl.format("e{}", pl.int_range(pl.len())))
    rates = funding() if rates is None else rates
    return symbol_chart(rows, rates, happened, symbol="BTC_USDT", **{**DAY, **more})


def test_a_leg_has_one_place_among_the_colours_in_both_plots_and_one_name():
    figure = drawn(prices(*LEGS), funding((LEGS[3], 1, 5.0), (LEGS[11], 1, 7.0)))
    places = {}
    for at, trace in enumerate(figure.data):
        if trace.name in LEGS:
            places.setdefault(trace.name, []).append((at % 10, trace.line.dash, trace.showlegend))
    assert len(places) == 12
    assert places[LEGS[3]] == [(3, "solid", True), (3, "solid", False)]
    assert places[LEGS[11]] == [(1, "dot", True), (1, "dot", False)]
    figure = drawn(prices("A.spot"), funding(("B.futures", 1, 5.0)))
    named = {trace.name: trace.showlegend for trace in figure.data if trace.name}
    assert named["B.futures"] is True


@pytest.mark.parametrize("events", [(), (life(1, 2),)])
def test_prices_take_the_room_of_rates_where_no_leg_has_one(events):
    without = drawn(prices("A.spot"), None, *events)
    among = drawn(prices("A.spot"), funding(("A.spot", 1, 5.0)), *events)
    assert "yaxis2" not in without.to_plotly_json()["layout"]
    assert "y2" not in {trace.yaxis for trace in without.data}
    assert without.layout.yaxis.domain[0] == among.layout.yaxis2.domain[0]


def test_the_time_is_below_the_lowest_plot_and_lanes_are_there_with_an_event_alone():
    rate = funding(("A.spot", 1, 5.0))
    for rates, events, lowest in [
        (rate, [life(1, 2)], "y3"),
        (rate, [], "y2"),
        (None, [], "y"),
        (None, [life(1, 2)], "y3"),
    ]:
        figure = drawn(prices("A.spot"), rates, *events)
        layout = figure.to_plotly_json()["layout"]
        assert layout["xaxis"]["anchor"] == lowest
        assert layout[lowest.replace("y", "yaxis")]["domain"][0] == 0
        assert ("yaxis3" in layout) == bool(events)
        assert {trace.yaxis or "y" for trace in figure.data} == {
            name.replace("axis", "") for name in layout if name.startswith("yaxis")
        }


def test_a_rate_is_in_force_from_before_the_window_to_its_next_change():
    (rate,) = [t for t in drawn(prices("A.spot"), funding(
        ("B.futures", -3, 5.0), ("B.futures", 6, None), ("B.futures", 9, 7.0)
    )).data if t.name == "B.futures"]  # fmt: skip
    assert list(rate.x) == [
        "2023-03-10 00:00",
        "2023-03-10 06:00",
        "2023-03-10 09:00",
        "2023-03-11 00:00",
    ]
    assert np.array_equal(rate.y, [5.0, np.nan, 7.0, 7.0], equal_nan=True)


def test_the_distance_from_the_median_is_in_bps_where_two_legs_have_a_price():
    rows = prices("A.spot", "B.spot", "C.spot", minutes=3)
    alone = pl.DataFrame({"leg": ["A.spot"], "ts": [START + 180], "price": [1.0]})
    figure = drawn(pl.concat([rows, alone]), shown="from_median")
    of = {trace.name: trace.y for trace in figure.data if trace.name}
    middle = np.array([101.0, 102.0, 103.0])
    assert np.allclose(of["A.spot"], 1e4 * np.log((middle - 1) / middle))
    assert np.allclose(of["B.spot"], 0)
    assert figure.layout.yaxis.title.text == "from median (bps)"


def test_events_are_bars_of_their_family_with_their_id():
    figure = drawn(prices("A.spot"), None, life(1, 2), life(3, 4, family="splash"))
    assert [list(trace.customdata or ()) for trace in figure.data[-3:]] == [["e0"], ["e1"], []]
    assert [trace.yaxis for trace in figure.data[-3:]] == ["y3"] * 3


def test_many_rows_are_thinned_and_nothing_is_a_sentence():
    figure = drawn(prices("A.spot", "B.spot", minutes=1440), points=400)
    assert sum(len(trace.x) for trace in figure.data if trace.name) <= 400
    nothing = drawn(prices("A.spot").clear())
    assert "No prices, rates and events" in nothing.layout.annotations[0].text
    with pytest.raises(InputError, match="from_median"):
        drawn(prices("A.spot"), shown="volume")
    with pytest.raises(InputError):
        drawn(prices("A.spot").drop("price"))
