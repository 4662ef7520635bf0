"""What a chart of a trajectory draws and says."""

import base64
import json

import numpy as np
import plotly.io as pio
import polars as pl
import pytest

from toolkit.charts import price_chart, spread_chart
from toolkit.charts.series import distribution_bars
from toolkit.charts.theme import COLOURS
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory

PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
LEG = Trajectory.parse("BTC_USD:KRAKEN.futures")
REPLAY = Source("replay", "depeg-77aa")
START = 1_678_406_400  # 2023-03-10 00:00 UTC


def spread_rows(n=5, *, gap_after=None, gap_s=6000):
    ts = START + 60 * np.arange(n)
    if gap_after is not None:
        ts[gap_after:] += gap_s
    buy = 20_000.0 + np.arange(n)
    sell = buy * np.exp(1e-4 * np.sin(np.arange(n)))
    return pl.DataFrame(
        {"ts": ts, "buy_price": buy, "sell_price": sell, "spread_log_bps": 1e4 * np.log(sell / buy)}
    )


def minute(number):
    """The text of a minute after START."""
    return str(np.datetime64(START + 60 * int(number), "s")).replace("T", " ")[:16]


def chart(frame, **more):
    window = {"start": START, "end": START + 86_400}
    return spread_chart(frame, **{"trajectory": PAIR, "source": REPLAY, **window, **more})


def test_a_spread_chart_draws_both_legs_above_and_the_spread_below():
    rows = spread_rows()
    figure = chart(rows)
    assert [(line.type, line.name, line.yaxis) for line in figure.data] == [
        ("scatter", "buy COINBASE.spot", "y"),
        ("scatter", "sell KRAKEN.spot", "y"),
        ("scatter", "log spread, sell over buy", "y2"),
    ]
    columns = ("buy_price", "sell_price", "spread_log_bps")
    for line, column in zip(figure.data, columns, strict=True):
        assert line.mode == "lines"
        assert line.y.tolist() == rows[column].to_list()
        assert list(line.x) == [f"2023-03-10 00:0{minute}" for minute in range(5)]
    assert figure.layout.yaxis.domain[0] > figure.layout.yaxis2.domain[1]


def test_the_spread_is_on_top_where_the_legs_are_below_or_left_out():
    rows = spread_rows(gap_after=3)
    below, apart, alone = (chart(rows, legs=legs) for legs in ("below", "from_mean", "none"))
    names = ["log spread, sell over buy", "buy COINBASE.spot", "sell KRAKEN.spot"]
    assert [line.name for line in below.data] == [line.name for line in apart.data] == names
    assert below.data[0].yaxis == "y2"
    assert below.layout.yaxis2.domain[0] > below.layout.yaxis.domain[1]
    for line, column in zip(apart.data[1:], ("buy_price", "sell_price"), strict=True):
        price = rows[column].to_numpy()
        known = np.delete(line.y, 3)  # a gap
        assert known == pytest.approx(1e4 * np.log(price / price.mean()), abs=1e-9)
    assert apart.layout.yaxis.title.text == "from mean (bps)"
    assert [line.name for line in alone.data] == names[:1]
    assert not alone.layout.yaxis.visible


def test_the_mean_of_the_legs_is_that_of_the_rows_shown_and_legs_of_no_kind_are_refused():
    rows = spread_rows(10)
    part = {"start": START, "end": START + 300}
    whole, same = (chart(each, legs="from_mean", **part) for each in (rows, rows[:5]))
    assert whole.data[1].y.tolist() == same.data[1].y.tolist()
    with pytest.raises(InputError, match="legs"):
        chart(spread_rows(), legs="beside")


def test_titles_axes_and_units_say_what_is_drawn_over_which_window_and_from_where():
    layout = chart(spread_rows()).layout
    assert layout.title.text == "BTC_USD: prices and spread"
    assert layout.title.subtitle.text.split("<br>") == [
        "BTC_USD:COINBASE.spot:KRAKEN.spot",
        "2023-03-10 00:00 to 2023-03-11 00:00 UTC",
        "n = 5, coverage 0.35 %",
        "Replay of recorded data, depeg-77aa",
    ]
    assert layout.xaxis.title.text == "time (UTC)"
    assert layout.yaxis.title.text == "price (USD)"
    assert layout.yaxis2.title.text == "spread (log bps)"
    axis = chart(spread_rows()).layout.xaxis
    assert axis.type == "date"
    assert axis.range == ("2023-03-10 00:00", "2023-03-11 00:00")
    figure = chart(spread_rows(), source=Source("live", "<b>bold</b>"))
    assert "&lt;b&gt;bold&lt;/b&gt;" in figure.layout.title.subtitle.text


@pytest.mark.parametrize(
    ("kind", "marks"),
    [("simulated", ["SIMULATED"]), ("replay", ["REPLAY"]), ("live", []), ("unknown", [])],
)
def test_what_is_not_live_is_marked_in_the_corner(kind, marks):
    for frame in (spread_rows(), spread_rows(9000)):
        notes = chart(frame, source=Source(kind, "x")).layout.annotations
        assert [note.text for note in notes] == marks


def test_a_downsampled_chart_says_so_and_keeps_the_extremes():
    rows = spread_rows(9000).with_columns(
        spread_log_bps=pl.when(pl.col("ts") == START + 60 * 4321)
        .then(77.0)
        .otherwise("spread_log_bps")
    )
    figure = chart(rows, end=START + 60 * 9000)
    drawn = len(figure.data[2].y)
    assert drawn <= 2000
    assert f"{drawn:,} of 9,000 points" in figure.layout.title.subtitle.text
    assert np.nanmax(figure.data[2].y) == 77.0
    assert len(figure.to_json()) < 200_000


def test_rows_outside_the_half_open_window_are_neither_drawn_nor_counted():
    figure = chart(spread_rows(10), start=START + 60, end=START + 180)
    assert list(figure.data[0].x) == ["2023-03-10 00:01", "2023-03-10 00:02"]
    assert "n = 2, coverage 100.00 %" in figure.layout.title.subtitle.text
    spec = json.loads(pio.to_json(chart(spread_rows())))
    assert spec["data"][0]["x"][:2] == ["2023-03-10 00:00", "2023-03-10 00:01"]
    assert spec["layout"]["xaxis"]["range"][0] == "2023-03-10 00:00"
    y = spec["data"][0]["y"]
    assert y["dtype"] == "f8"
    assert np.frombuffer(base64.b64decode(y["bdata"]))[0] == 20_000.0


@pytest.mark.parametrize("n", [10, 50_000])
def test_a_gap_breaks_every_line_before_and_after_downsampling(n):
    figure = chart(spread_rows(n, gap_after=n // 2), end=START + 60 * n + 6000)
    for line in figure.data:
        broken = np.flatnonzero(np.isnan(line.y))
        assert len(broken) == 1
        before, after = line.x[broken[0] - 1], line.x[broken[0] + 1]
        assert before <= minute(n // 2 - 1) < minute(n // 2) <= after


def test_a_stretch_of_nulls_breaks_a_downsampled_line():
    n = 50_000
    hollow = pl.col("ts").is_between(START + 60 * 20_000, START + 60 * 20_100)
    rows = spread_rows(n).with_columns(sell_price=pl.when(~hollow).then("sell_price"))
    buy, sell, _ = chart(rows, end=START + 60 * n).data
    assert not np.isnan(buy.y).any()
    (at,) = np.flatnonzero(np.isnan(sell.y))
    assert sell.x[at - 1] < minute(20_000) <= minute(20_100) < sell.x[at + 1]


def test_a_row_is_joined_to_the_next_up_to_one_and_a_half_of_the_most_frequent_steps():
    frame = spread_rows(4).with_columns(ts=pl.Series([0, 60, 150, 241]) + START)
    assert np.isnan(chart(frame, step_s=60).data[0].y).tolist() == [0, 0, 0, 1, 0]
    frame = spread_rows(6).with_columns(ts=START + pl.Series([0, 60, 120, 180, 3600, 7200]))
    assert np.isnan(chart(frame).data[0].y).sum() == 2
    assert np.isnan(chart(frame, step_s=3600).data[0].y).sum() == 0


def test_gaps_too_short_to_see_are_counted_and_do_not_tear_a_downsampled_line():
    n = 50_000
    rows = spread_rows(n).filter(pl.int_range(pl.len()) % 500 != 250)
    whole = chart(rows, end=START + 60 * n, points=n)
    thin = chart(rows, end=START + 60 * n)
    for dense, sparse in zip(whole.data, thin.data, strict=True):
        assert np.isnan(dense.y).sum() == 100
        assert not np.isnan(sparse.y).any()
    assert "gap" not in whole.layout.title.subtitle.text
    assert ", 100 gaps too short to see" in thin.layout.title.subtitle.text


@pytest.mark.parametrize("hole", [None, float("nan"), float("inf")])
@pytest.mark.parametrize("n", [5, 500])
def test_a_null_in_one_column_breaks_that_columns_line_alone(hole, n):
    at = n // 2
    values = spread_rows(n)["sell_price"].to_list()
    values[at] = hole
    frame = spread_rows(n).with_columns(sell_price=pl.Series(values))
    buy, sell, _ = chart(frame, end=START + 60 * n).data
    assert not np.isnan(buy.y).any()
    assert np.isnan(sell.y).sum() == 1
    assert minute(at) not in sell.x[~np.isnan(sell.y)]


def test_a_row_with_gaps_on_both_sides_is_a_visible_dot():
    frame = spread_rows(5).with_columns(ts=START + pl.Series([0, 60, 600, 1200, 1260]))
    line = chart(frame, step_s=60).data[0]
    assert line.mode == "lines+markers"
    assert line.marker.size.tolist() == [0, 0, 0, 4, 0, 0, 0]
    assert np.isnan(line.y).tolist() == [0, 0, 1, 0, 1, 0, 0]


def test_the_axis_shows_the_chosen_zones_clock_and_names_it():
    figure = chart(spread_rows(), timezone="Asia/Tokyo")
    assert figure.data[0].x[0] == "2023-03-10 09:00"
    assert figure.layout.xaxis.title.text == "time (Asia/Tokyo)"
    assert "2023-03-10 09:00 to 2023-03-11 09:00 Asia/Tokyo" in figure.layout.title.subtitle.text


def test_the_hour_that_comes_twice_is_not_joined_to_itself():
    autumn = 1_698_541_200  # 2023-10-29 01:00 UTC: London goes from 02:00 back to 01:00
    frame = spread_rows(4).with_columns(ts=pl.Series([-120, -60, 0, 60]) + autumn)
    window = {"start": autumn - 3600, "end": autumn + 3600}
    assert not np.isnan(chart(frame, **window).data[0].y).any()
    london = chart(frame, **window, timezone="Europe/London").data[0]
    assert np.isnan(london.y).tolist() == [0, 0, 1, 0, 0]
    assert list(london.x[:2]) == ["2023-10-29 01:58", "2023-10-29 01:59"]
    assert list(london.x[3:]) == ["2023-10-29 01:00", "2023-10-29 01:01"]


@pytest.mark.parametrize("rows", [0, 5])
def test_no_rows_in_the_window_say_what_to_do(rows):
    figure = chart(spread_rows(rows), start=0, end=60)
    (note,) = figure.layout.annotations
    words = note.text.replace("<br>", " ")
    assert words == (
        f"No rows of {PAIR} from 1970-01-01 00:00 to 1970-01-01 00:01 UTC. "
        f"Choose another window, or load this one with: rail sync {PAIR} "
        "--start 1970-01-01T00:00:00Z --end 1970-01-01T00:01:00Z"
    )
    assert len(figure.data) == 0


def test_one_row_and_all_null_rows_draw_without_an_exception():
    assert len(chart(spread_rows(1)).data[0].y) == 1
    hollow = spread_rows(3).with_columns(pl.lit(None).alias("spread_log_bps"))
    figure = chart(hollow)
    assert len(figure.data[2].y) == 0
    assert not np.isnan(figure.data[0].y).any()
    assert "n = 0, coverage 0.00 %, 3 rows without a value" in figure.layout.title.subtitle.text


@pytest.mark.parametrize("theme", COLOURS)
def test_lines_take_their_colours_from_the_template(theme):
    figure = chart(spread_rows(), theme=theme)
    assert figure.layout.template.layout.colorway == COLOURS[theme]
    assert all(line.line.color is None for line in figure.data)


def test_a_price_chart_draws_the_mark_price_where_one_is_known():
    frame = pl.DataFrame({"ts": [START, START + 60], "price": [1.0, 2.0]})
    window = {"start": START, "end": START + 120}
    marked = frame.with_columns(mark_price=pl.Series([None, 2.5]))
    unmarked = frame.with_columns(mark_price=pl.Series([None, None], dtype=pl.Float64))
    for rows, names in (
        (frame, ["price"]),
        (unmarked, ["price"]),
        (marked, ["price", "mark price"]),
    ):
        figure = price_chart(rows, trajectory=LEG, source=REPLAY, **window)
        assert [line.name for line in figure.data] == names
    assert figure.layout.title.text == "BTC_USD: price"
    assert figure.layout.yaxis.title.text == "price (USD)"
    assert figure.data[1].y.tolist() == [2.5]


@pytest.mark.parametrize(
    ("wrong", "names"),
    [
        ({"trajectory": LEG}, "trajectory"),
        ({"end": START}, "window"),
        ({"theme": "blue"}, "theme"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"points": 5}, "points"),
        ({"step_s": 0}, "step_s"),
    ],
)
def test_a_parameter_that_is_not_allowed_is_named(wrong, names):
    with pytest.raises(InputError) as caught:
        chart(spread_rows(), **wrong)
    assert caught.value.parameter == names


def test_a_missing_column_and_two_rows_of_one_time_are_named():
    with pytest.raises(InputError, match="spread_log_bps"):
        chart(spread_rows().drop("spread_log_bps"))
    with pytest.raises(InputError, match="ts"):
        chart(pl.concat([spread_rows(), spread_rows()]))


KEY = "BTC_USD:COINBASE.spot:KRAKEN.spot"


def rows(count: int) -> pl.DataFrame:
    bps = np.random.default_rng(7).normal(3, 20, count)
    return pl.DataFrame(
        {
            "ts": 60 * np.arange(count),
            "buy_price": np.full(count, 100.0),
            "sell_price": 100 * np.exp(bps / 1e4),
            "spread_log_bps": bps,
        }
    )


def test_each_bar_is_the_share_of_all_rows_in_its_step_however_few_are_drawn():
    frame, window = rows(5_000), Interval(0, 60 * 4_000)
    figure = spread_chart(
        frame,
        trajectory=KEY,
        start=window.start,
        end=window.end,
        source=Source("replay", "x"),
        legs="none",
        distribution=True,
        points=100,
    )
    bars = figure.data[-1]
    counts, edges = np.histogram(frame["spread_log_bps"][:4_000], 60)
    assert np.allclose(bars.x, counts / 4_000)
    assert np.allclose(bars.y, (edges[1:] + edges[:-1]) / 2)
    assert (bars.xaxis, bars.yaxis, bars.orientation) == ("x2", "y2", "h")
    assert figure.layout.xaxis.domain[1] < figure.layout.xaxis2.domain[0]
    assert figure.layout.xaxis2.fixedrange


def test_what_is_no_number_is_not_counted():
    frame = pl.DataFrame({"ts": range(4), "bps": [1.0, None, float("nan"), float("inf")]})
    bars = distribution_bars(frame, "bps", Interval(0, 4), "y2")
    assert sum(bars.x) == 1
    figure = spread_chart(
        rows(50), trajectory=KEY, start=0, end=3_000, source=Source("replay", "x")
    )
    assert figure.layout.xaxis.domain is None
    assert len(figure.data) == 3


@pytest.mark.parametrize("end", [198.0, np.nextafter(198.0, 0), 198.0 + 1e-12])
def test_one_value_but_for_its_last_digits_is_one_bar(end):
    frame = pl.DataFrame({"ts": range(2), "bps": [198.0, end]})
    bars = distribution_bars(frame, "bps", Interval(0, 9), "y2")
    assert sorted(bars.x)[-2:] in ([0.0, 1.0], [0.5, 0.5])
    assert np.ptp(bars.y) < 1


@pytest.mark.parametrize("values", [[], [None], [float("nan")]])
def test_without_a_value_there_is_no_bar(values):
    frame = pl.DataFrame(
        {"ts": range(len(values)), "bps": values}, schema_overrides={"bps": pl.Float64}
    )
    assert len(distribution_bars(frame, "bps", Interval(0, 9), "y2").x) == 0
