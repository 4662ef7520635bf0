"""What the matrix of one symbol's spreads draws, against the prices that the spreads are of."""

import numpy as np
import polars as pl
import pytest

from toolkit.charts import spread_matrix
from toolkit.errors import InputError
from toolkit.market import Source

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


def chart(frame, **more):
    source = Source("simulated", "seed-7")
    return spread_matrix(frame, symbol="A_B", ts=60, source=source, **more)


def test_every_cell_is_the_spread_of_its_prices_whatever_pairs_are_held():
    for held in (
        [("X.spot", "Y.dex"), ("X.spot", "Z.futures")],
        [("X.spot", "Y.dex"), ("Y.dex", "Z.futures")],
        [("Z.futures", "X.spot"), ("X.spot", "Y.dex"), ("Y.dex", "X.spot")],
    ):
        cells = chart(pairs(*held)).data[0]
        for row, buy in zip(cells.z, cells.y, strict=True):
            for cell, sell in zip(row, cells.x, strict=True):
                known = 1e4 * np.log(PRICES[sell] / PRICES[buy]) if buy != sell else np.nan
                assert cell == pytest.approx(known, nan_ok=True)


def test_pairs_of_two_times_are_not_added_up():
    two = pl.concat([pairs(("X.spot", "Y.dex")), pairs(("Y.dex", "Z.futures"), ts=60)])
    cells = chart(two).data[0]
    assert np.isnan(cells.z[cells.y.index("X.spot")][cells.x.index("Z.futures")])
    hovered = {tuple(each) for row in cells.customdata for each in row}
    assert hovered == {("",), ("as stored",), ("stored the other way round",)}


def test_without_filling_a_cell_is_a_pair_that_was_given():
    held = pairs(("X.spot", "Y.dex"), ("Y.dex", "Z.futures")).with_columns(more=pl.lit(1))
    cells = chart(held, filled=False).data[0]
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
    named = chart(held).layout
    assert "A_B" in named.title.subtitle.text
    bare = chart(held, heading=False).layout
    assert bare.title.text is None
    assert bare.height < named.height
    for layout in (named, bare):
        assert [note.text for note in layout.annotations] == ["SIMULATED"]


def test_nothing_known_is_a_sentence_and_a_pair_twice_is_refused():
    held = pairs(("X.spot", "Y.dex"))
    empty = chart(held.with_columns(last_bps=pl.lit(None, pl.Float64)))
    assert "No spread of A_B is known" in empty.layout.annotations[0].text
    with pytest.raises(InputError, match=r"X.spot to Y.dex twice"):
        chart(pl.concat([held, held]))
    with pytest.raises(InputError, match="columns sell"):
        chart(held.drop("sell"))
