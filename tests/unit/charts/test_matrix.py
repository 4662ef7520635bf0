"""What the matrices of funding rates and of spreads draw and say."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import FUNDING_UNITS, funding_matrix, in_unit, spread_matrix
from toolkit.charts.theme import COLOURS
from toolkit.errors import InputError
from toolkit.market import Source

from .test_theme import contrast

TS = 1_678_406_400  # 2023-03-10 00:00 UTC
RATES = pl.DataFrame(
    {
        "symbol": ["BTC_USDT", "BTC_USDT", "ETH_USDT"],
        "exchange": ["AURORA", "BOREAS", "BOREAS"],
        "market": ["futures"] * 3,
        "rate": [1e-4, -2e-4, 3e-5],
        "interval_hours": [8, 4, 1],
        "next_funding_time": [TS + 28_800, TS + 14_400, TS + 3600],
    }
)


def chart(frame=RATES, **more):
    fixed = {"unit": "% per 8 h", "ts": TS, "source": Source("simulated", "seed-7")}
    return funding_matrix(frame, **{**fixed, **more})


def test_rates_stand_by_symbol_and_exchange_the_first_symbol_on_top():
    for frame in (RATES, RATES.reverse()):
        cells = chart(frame).data[0]
        assert cells.x == ("AURORA", "BOREAS")
        assert cells.y == ("ETH_USDT", "BTC_USDT")
        assert np.allclose(cells.z, [[np.nan, 0.024], [0.01, -0.04]], equal_nan=True)
    cells = chart().data[0]
    assert np.isnan(cells.z[0][0])
    assert cells.hoverongaps is False
    assert chart(RATES.with_columns(market=pl.lit("dex"))).data[0].x[0] == "AURORA.dex"


@pytest.mark.parametrize(
    ("unit", "values", "level"),
    [
        ("% per 1 h", [0.00125, -0.005, 0.003], "0.00625"),
        ("% per 8 h", [0.01, -0.04, 0.024], "0.05"),
        ("% per 24 h", [0.03, -0.12, 0.072], "0.15"),
        ("% per year (APR)", [10.95, -43.8, 26.28], "54.75"),
    ],
)
def test_every_rate_is_brought_to_the_unit_with_one_colour_in_every_store(unit, values, level):
    assert unit in FUNDING_UNITS
    assert in_unit(RATES, unit)["value"].to_list() == pytest.approx(values)
    figure = chart(unit=unit)
    assert figure.layout.title.text == f"Funding rates in force ({unit})"
    drawn = figure.data[0].z
    assert sorted(drawn[np.isfinite(drawn)]) == pytest.approx(sorted(values))
    assert f"full colour from ±{level} {unit}" in figure.layout.title.subtitle.text
    assert figure.data[0].zmax == pytest.approx(float(level))
    alone = chart(RATES[:1], unit=unit).data[0]
    extreme = RATES.with_columns(rate=pl.Series([1e-4, 1.0, 3e-5]))
    shares = [
        float(cells.z[-1][0]) / cells.zmax for cells in (alone, chart(extreme, unit=unit).data[0])
    ]
    assert shares == pytest.approx([0.2, 0.2])  # 0.01 % per 8 h, full colour from 0.05
    assert alone.zmin == -alone.zmax


def test_the_hover_has_the_rate_as_given_its_interval_and_the_next_settlement():
    text = chart(timezone="Asia/Tokyo").data[0].hovertext[1][1]
    assert text.split("<br>") == [
        "BTC_USDT BOREAS",
        "-0.04 % per 8 h",
        "as the service gave it: -0.02 % per 4 h",
        "next settlement: 2023-03-10 13:00 Asia/Tokyo",
    ]
    frame = RATES.with_columns(next_funding_time=pl.lit(None, pl.Int64))
    assert chart(frame).data[0].hovertext[1][0].endswith("next settlement: not known")


def test_few_cells_have_their_number_and_many_do_not():
    assert chart().data[1].text == ("0.0100", "-0.0400", "0.0240")
    many = pl.concat([RATES[:1].with_columns(symbol=pl.lit(f"S{i}_USDT")) for i in range(301)])
    figure = chart(many)
    assert len(figure.data) == 1
    assert len(figure.to_json()) < 150_000


@pytest.mark.parametrize(
    "unknown",
    [{"rate": None}, {"rate": float("nan")}, {"interval_hours": None}, {"interval_hours": 0}],
)
def test_a_rate_that_cannot_be_brought_to_a_unit_is_counted_and_not_drawn(unknown):
    ((name, value),) = unknown.items()
    last = pl.int_range(pl.len()) == 2
    replaced = pl.when(last).then(pl.lit(value, RATES.schema[name])).otherwise(name).alias(name)
    figure = chart(RATES.with_columns(replaced))
    assert figure.data[0].y == ("BTC_USDT",)
    assert "n = 2 rates, 1 without a rate or an interval" in figure.layout.title.subtitle.text


def test_title_moment_sign_source_and_mark_are_there_and_without_rates_what_to_do():
    layout = chart().layout
    assert layout.title.subtitle.text.split("<br>") == [
        "all symbols with a rate",
        "as of 2023-03-10 00:00 UTC",
        "n = 3 rates",
        "+: longs pay shorts",
        "full colour from ±0.05 % per 8 h",
        "SIMULATED market, seed-7",
    ]
    assert [note.text for note in layout.annotations] == ["SIMULATED"]
    (note,) = chart(RATES[:0]).layout.annotations
    assert "rail sync snapshot/funding" in note.text.replace("<br>", " ")


def test_two_rows_of_one_leg_and_another_unit_are_refused():
    with pytest.raises(InputError, match="BTC_USDT at AURORA twice"):
        chart(pl.concat([RATES, RATES[:1]]))
    with pytest.raises(InputError, match="% per 24 h"):
        chart(unit="bps")


@pytest.mark.parametrize("column", RATES.columns)
def test_a_missing_column_is_named(column):
    with pytest.raises(InputError, match=column):
        chart(RATES.drop(column))


@pytest.mark.parametrize("theme", COLOURS)
def test_numbers_read_on_every_cell_in_either_theme(theme):
    cells, numbers = chart(theme=theme).data
    assert cells.colorscale[1][0] == 0.5
    for _, colour in cells.colorscale:
        assert contrast(numbers.textfont.color, colour) > 6


PRICES = {"X.spot": 100.0, "Y.dex": 101.0, "Z.futures": 99.5}


def pairs(*legs, ts=0):
    return pl.DataFrame(
        {
            "buy": [buy for buy, _ in legs],
            "sell": [sell for _, sell in legs],
            "ts": [ts] * len(legs),
            "last_bps": [1e4 * np.log(PRICES[sell] / PRICES[buy]) for buy, sell in legs],
        }
    )


def spreads(frame, **more):
    source = Source("simulated", "seed-7")
    return spread_matrix(frame, symbol="A_B", ts=60, source=source, **more)


def test_every_cell_is_the_spread_of_its_prices_whatever_pairs_are_held():
    for held in (
        [("X.spot", "Y.dex"), ("X.spot", "Z.futures")],
        [("X.spot", "Y.dex"), ("Y.dex", "Z.futures")],
        [("Z.futures", "X.spot"), ("X.spot", "Y.dex"), ("Y.dex", "X.spot")],
    ):
        cells = spreads(pairs(*held)).data[0]
        for row, buy in zip(cells.z, cells.y, strict=True):
            for cell, sell in zip(row, cells.x, strict=True):
                known = 1e4 * np.log(PRICES[sell] / PRICES[buy]) if buy != sell else np.nan
                assert cell == pytest.approx(known, nan_ok=True)


def test_pairs_of_two_times_are_not_added_up():
    two = pl.concat([pairs(("X.spot", "Y.dex")), pairs(("Y.dex", "Z.futures"), ts=60)])
    cells = spreads(two).data[0]
    assert np.isnan(cells.z[cells.y.index("X.spot")][cells.x.index("Z.futures")])
    hovered = {tuple(each) for row in cells.customdata for each in row}
    assert hovered == {("",), ("as stored",), ("stored the other way round",)}


def test_without_filling_a_cell_is_a_pair_that_was_given():
    held = pairs(("X.spot", "Y.dex"), ("Y.dex", "Z.futures")).with_columns(more=pl.lit(1))
    cells = spreads(held, filled=False).data[0]
    shown = {
        (buy, sell): cell
        for row, buy in zip(cells.z, cells.y, strict=True)
        for cell, sell in zip(row, cells.x, strict=True)
        if not np.isnan(cell)
    }
    given = held.select("buy", "sell", "last_bps").rows()
    assert shown == {(buy, sell): pytest.approx(value) for buy, sell, value in given}


def test_the_heading_names_the_symbol_and_the_source_or_is_left_out():
    held = pairs(("X.spot", "Y.dex"))
    named = spreads(held).layout
    assert "A_B" in named.title.subtitle.text
    bare = spreads(held, heading=False).layout
    assert bare.title.text is None
    assert bare.height < named.height
    for layout in (named, bare):
        assert [note.text for note in layout.annotations] == ["SIMULATED"]


def test_nothing_known_is_a_sentence_and_a_pair_twice_is_refused():
    held = pairs(("X.spot", "Y.dex"))
    empty = spreads(held.with_columns(last_bps=pl.lit(None, pl.Float64)))
    assert "No spread of A_B is known" in empty.layout.annotations[0].text
    with pytest.raises(InputError, match=r"X.spot to Y.dex twice"):
        spreads(pl.concat([held, held]))
    with pytest.raises(InputError, match="columns sell"):
        spreads(held.drop("sell"))
