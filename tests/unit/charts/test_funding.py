"""What the chart of a funding trajectory draws and says."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import funding_chart
from toolkit.charts.theme import COLOURS
from toolkit.errors import InputError
from toolkit.market import Family, Source, Trajectory

PAIR = Trajectory.parse("BTC_USDT:AURORA.futures:BOREAS.futures", Family.FUNDING)
START = 1_678_406_400  # 2023-03-10 00:00 UTC
EIGHT = 8 * 3600


def settled(buy=(1e-4, 1e-4, 1e-4), sell=(3e-4, 1e-4, 0.0), *, first=1):
    n = len(buy)
    return pl.DataFrame(
        {
            "ts": [START + EIGHT * (first + k) for k in range(n)],
            "buy_rate": buy,
            "sell_rate": sell,
            "buy_interval_hours": [8.0] * n,
            "sell_interval_hours": [8.0] * n,
        },
        schema_overrides={"buy_rate": pl.Float64, "sell_rate": pl.Float64},
    )


def chart(frame=None, **more):
    window = {"start": START, "end": START + 3 * EIGHT}
    source = Source("simulated", "seed-7")
    frame = settled() if frame is None else frame
    only = {"funding_only": "prices" not in more}
    return funding_chart(frame, **{"trajectory": PAIR, "source": source, **window, **only, **more})


def test_the_differential_stands_in_steps_above_and_the_carry_below_in_any_order_of_rows():
    differential, carry = chart().data
    assert differential.x == ("2023-03-10 08:00", "2023-03-10 16:00", "2023-03-11 00:00")
    assert differential.y.tolist() == pytest.approx([0.02, 0.0, 0.0])
    assert carry.x[0] == "2023-03-10 00:00"
    assert carry.y.tolist() == pytest.approx([0.0, 2.0, 2.0, 1.0])
    assert {line.line.shape for line in (differential, carry)} == {"hv"}
    assert (differential.yaxis, carry.yaxis) == ("y", "y2")
    assert chart().data[0].hovertext[0] == " (buy 0.01, sell 0.03)"
    assert chart().data[1].hovertext[1] == " (2.0 then)"
    for drawn, again in zip(chart().data, chart(settled().reverse()).data, strict=True):
        assert drawn.x == again.x
        assert drawn.y.tolist() == again.y.tolist()


def test_the_differential_is_in_the_unit_and_the_carry_also_less_a_cost():
    differential, carry, net = chart(unit="% per 24 h", cost_bps=1.5).data
    assert differential.y.tolist() == pytest.approx([0.06, 0.0, 0.0])
    assert net.y.tolist() == pytest.approx([each - 1.5 for each in carry.y])
    with pytest.raises(InputError, match="unit"):
        chart(unit="% a week")
    with pytest.raises(InputError, match="cost_bps"):
        chart(cost_bps="free")
    axis = chart(unit="% per year (APR)").layout.yaxis
    assert axis.title.text == "differential (% per year)"
    with pytest.raises(InputError, match="points"):
        chart(points=3)
    with pytest.raises(InputError, match="sell_rate"):
        chart(settled().drop("sell_rate"))


def test_a_rate_from_before_the_window_stands_at_its_start_and_pays_nothing():
    rates = (1e-4, 1e-4, 1e-4, 1e-4), (3e-4, 1e-4, 0.0, 1e-4)
    differential, carry = chart(settled(*rates, first=0)).data
    assert differential.x[0] == "2023-03-10 00:00"
    assert differential.y.tolist() == pytest.approx([0.02, 0.0, -0.01, -0.01])
    assert carry.y.tolist() == pytest.approx([0.0, 0.0, -1.0, -1.0])


def test_titles_say_what_which_units_how_many_and_what_it_came_to():
    layout = chart().layout
    assert layout.title.text == "BTC_USDT: funding differential and what it paid"
    assert layout.title.subtitle.text.split("<br>") == [
        PAIR.legs_key,
        "2023-03-10 00:00 to 2023-03-11 00:00 UTC",
        "settlements 3, coverage 100.00 %",
        "funding 1.00 bps, funding APR 3.65 %, without prices",
        "+: long buy, short sell receives",
        "SIMULATED market, seed-7",
    ]
    assert layout.yaxis.title.text == "differential (% per 8 h)"
    assert layout.yaxis2.title.text == "cumulative (bps)"
    assert [note.text for note in layout.annotations] == ["SIMULATED"]


def test_a_rate_that_ran_out_ends_its_line_there_and_the_missed_settlement_is_counted():
    gappy = settled((1e-4,) * 9, (3e-4,) * 9)[[0, 1, 2, 7, 8]]
    figure = chart(gappy, end=START + 9 * EIGHT)
    differential, _ = figure.data
    assert differential.x[3:6] == ("2023-03-11 16:00", "2023-03-11 16:00", "2023-03-12 16:00")
    assert np.isnan(differential.y).tolist() == [0, 0, 0, 0, 1, 0, 0]
    assert "missed 8" in figure.layout.title.subtitle.text


def test_a_carry_that_is_not_known_is_not_drawn_and_says_why():
    frame = settled(sell=(None, None, None)).with_columns(sell_interval_hours=8.0)
    figure = chart(frame)
    assert len(figure.data[1].x) == 0
    assert np.isnan(figure.data[0].y).all()
    assert "funding not known: one leg has nothing to compare" in figure.layout.title.subtitle.text
    frame = settled((1e-4,) * 6, (None,) * 3 + (3e-4,) * 3)
    figure = chart(frame, end=START + 6 * EIGHT)
    assert len(figure.data[1].x) == 0
    words = figure.layout.title.subtitle.text
    assert "coverage 50.00 %" in words
    assert "funding not known: too little of the window is covered on both legs" in words


@pytest.mark.parametrize("frame", [settled(), settled()[:0]])
def test_a_window_without_a_settlement_says_what_to_do(frame):
    figure = chart(frame, start=0, end=60)
    assert not figure.data
    words = figure.layout.annotations[0].text.replace("<br>", " ")
    assert f"rail sync {PAIR} --start 1970-01-01T00:00:00Z" in words


def test_where_only_a_differential_is_sent_it_is_drawn_and_named_as_the_service_s():
    sent = pl.DataFrame(
        {"ts": [START, START + 3600, START + 7200], "differential_pct_8h": [0.02, -0.01, 0.03]}
    )
    rates = ("buy_rate", "sell_rate", "buy_interval_hours", "sell_interval_hours")
    figure = chart(sent.with_columns(pl.lit(None, pl.Float64).alias(name) for name in rates))
    (line,) = figure.data
    assert [value for value in line.y if value is not None] == [0.02, -0.01, 0.03]
    assert line.name == "differential, as the service sends it"
    assert (
        "sent by the service: no carry without settled rates" in figure.layout.title.subtitle.text
    )
    assert figure.layout.yaxis.title.text == "differential (% per 8 h)"


def test_a_long_history_is_drawn_in_fewer_points_and_says_so():
    n = 20_000
    spike = np.where(np.arange(n) == 12_345, 5e-2, 1e-4)
    figure = chart(settled((0.0,) * n, spike), end=START + (n + 1) * EIGHT)
    assert "points" in figure.layout.title.subtitle.text
    assert np.nanmax(figure.data[0].y) == pytest.approx(5.0)
    assert len(figure.to_json()) < 400_000


@pytest.mark.parametrize("theme", COLOURS)
def test_it_shows_in_either_theme_and_in_the_zones_clock(theme):
    figure = chart(theme=theme, timezone="Asia/Tokyo")
    assert figure.layout.template.layout.colorway == COLOURS[theme]
    assert figure.data[1].x[0] == "2023-03-10 09:00"


def test_with_prices_the_carry_is_a_line_of_its_own_less_the_cost_and_without_it_has_a_reason():
    known = {"ts": [START - EIGHT + EIGHT * k for k in range(4)], "trajectory": PAIR.legs_key}
    prices = pl.DataFrame(known | {"spread_log_bps": [10.0, 12.0, 9.0, 4.0]})
    figure = chart(prices=prices, cost_bps=1.5)
    _, paid, carry, net = figure.data
    assert (paid.name, carry.name) == ("cumulative funding", "carry: funding and prices")
    gained = [0.0, -2.0, 1.0, 6.0]
    assert carry.y.tolist() == pytest.approx([a + b for a, b in zip(paid.y, gained, strict=True)])
    assert net.y.tolist() == pytest.approx([each - 1.5 for each in carry.y])
    assert "basis 6.00 bps, carry 7.00 bps" in figure.layout.title.subtitle.text
    figure = chart(prices=None, cost_bps=1.5)
    assert [line.name for line in figure.data][1:] == ["cumulative funding"]
    words = figure.layout.title.subtitle.text
    assert "funding 1.00 bps" in words
    assert "carry not known: the prices of both legs that it needs are not held" in words
