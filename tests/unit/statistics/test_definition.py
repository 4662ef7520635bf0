from __future__ import annotations

import math
from fractions import Fraction

import polars as pl
import pytest

from toolkit.errors import InputError
from toolkit.statistics import spread

NAN, INF = float("nan"), float("inf")


def legs(*prices: tuple[float | None, float | None]) -> pl.DataFrame:
    return pl.DataFrame(
        prices, schema={"buy_price": pl.Float64, "sell_price": pl.Float64}, orient="row"
    )


@pytest.mark.parametrize(
    ("buy", "sell"),
    [
        (None, 100.0),
        (100.0, None),
        (NAN, 100.0),
        (100.0, NAN),
        (INF, 100.0),
        (100.0, INF),
        (INF, INF),
        (0.0, 100.0),
        (100.0, 0.0),
        (0.0, 0.0),
        (-100.0, 100.0),
        (-100.0, -101.0),
        (1e-300, 1e300),
        (1e300, 1e-300),
    ],
)
def test_a_price_that_is_none_makes_both_spreads_null(buy, sell):
    added = spread.with_spread(legs((buy, sell), (100.0, 101.0)))
    assert added.row(0)[2:] == (None, None)
    assert None not in added.row(1)


def test_the_spread_is_positive_where_selling_is_dearer():
    added = spread.with_spread(legs((100.0, 101.0), (101.0, 100.0), (100.0, 100.0)))
    assert added["spread_log_bps"].to_list() == pytest.approx(
        [1e4 * math.log(1.01), -1e4 * math.log(1.01), 0.0], rel=1e-15
    )
    assert added["spread_bps"].to_list() == pytest.approx([100.0, -1e4 / 101, 0.0], rel=1e-14)


def test_a_spread_far_below_a_hundredth_of_a_basis_point_keeps_its_digits():
    buy, sell = 60000.0, math.nextafter(60000.0, math.inf)
    added = spread.with_spread(legs((buy, sell)))
    exact = float(10000 * (Fraction(sell) - Fraction(buy)) / Fraction(buy))
    assert added["spread_bps"].item() == pytest.approx(exact, rel=1e-15)
    assert added["spread_log_bps"].item() == pytest.approx(exact, rel=1e-15)


def test_with_spread_keeps_the_kind_of_frame_and_every_other_column():
    frame = legs((100.0, 101.0)).with_columns(note=pl.lit("kept"))
    added = spread.with_spread(frame)
    assert added.columns == [*frame.columns, "spread_log_bps", "spread_bps"]
    lazy = spread.with_spread(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(added)


def test_with_spread_refuses_prices_that_are_no_floats():
    frame = pl.DataFrame({"buy_price": [1], "sell_price": ["1"]})
    with pytest.raises(InputError, match=r"buy_price is Int64, sell_price is String"):
        spread.with_spread(frame)
