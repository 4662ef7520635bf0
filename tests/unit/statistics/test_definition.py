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
    assert added.row(0)[2:] == (None, None, None)
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
    assert added.columns == [*frame.columns, "spread_log_bps", "spread_bps", "spread_basis"]
    lazy = spread.with_spread(frame.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect().equals(added)


def test_with_spread_refuses_prices_that_are_no_floats():
    frame = pl.DataFrame({"buy_price": [1], "sell_price": ["1"]})
    with pytest.raises(InputError, match=r"buy_price is Int64, sell_price is String"):
        spread.with_spread(frame)


def of_service(*given: float | None, price: float | None = None) -> pl.DataFrame:
    """Add what with_spread adds to rows with the service's own spread."""
    frame = pl.DataFrame(
        {"buy_price": [price] * len(given), "sell_price": [None] * len(given), "spread_pct": given},
        schema=dict.fromkeys(("buy_price", "sell_price", "spread_pct"), pl.Float64),
    )
    return spread.with_spread(frame)


def test_without_both_prices_the_services_own_spread_counts_and_is_marked():
    for price in (None, 100.0):
        added = of_service(1.0, -0.5, 0.0, price=price)
        assert added["spread_log_bps"].to_list() == pytest.approx(
            [1e4 * math.log(1.01), 1e4 * math.log(0.995), 0.0], rel=1e-12
        )
        assert added["spread_bps"].to_list() == [100.0, -50.0, 0.0]
        assert added["spread_basis"].to_list() == ["service"] * 3


@pytest.mark.parametrize("given", [None, NAN, INF, -100.0, -101.0])
def test_a_service_that_sends_no_spread_that_can_be_has_none(given):
    assert of_service(given).row(0)[3:] == (None, None, None)


def test_both_prices_win_over_the_services_own_spread_also_where_they_are_none_of_use():
    frame = legs((100.0, 101.0), (0.0, 101.0)).with_columns(spread_pct=pl.lit(-7.0))
    added = spread.with_spread(frame)
    assert added["spread_bps"].to_list() == [100.0, None]
    assert added["spread_basis"].to_list() == ["legs", None]


def test_a_frame_with_nothing_but_the_services_spread_has_the_same_spreads():
    frame = pl.DataFrame({"spread_pct": [1.0, -0.5]})
    assert spread.with_spread(frame).drop("spread_pct").equals(of_service(1.0, -0.5)[:, 3:])
    assert spread.with_spread(frame.lazy()).collect().equals(spread.with_spread(frame))


def test_every_figure_of_a_trajectory_names_what_it_rests_on():
    rows = {"trajectory": ["a"] * 3 + ["b"] * 3 + ["c"] * 3, "ts": [0, 60, 120] * 3}
    buy = [100.0] * 3 + [None, 100.0, 100.0] + [None] * 3
    frame = pl.DataFrame(rows).with_columns(
        buy_price=pl.Series(buy), sell_price=pl.lit(101.0), spread_pct=pl.lit(1.0)
    )
    bases = {"a": "legs", "b": "legs and service", "c": "service"}
    for given in (frame, frame.lazy(), spread.with_spread(frame)):
        found = spread.summary(given, 0, 180)
        assert dict(found.select("trajectory", "spread_basis").rows()) == bases
        assert found["n"].to_list() == [3, 3, 3]
        assert found["spread_mean_log_bps"].to_list() == pytest.approx([99.503308531681] * 3)
    assert spread.summary(frame, 60, 180)["spread_basis"].to_list() == ["legs", "legs", "service"]
    assert spread.summary(frame, 600, 660)["spread_basis"].to_list() == [None] * 3
    assert spread.episodes(frame, 0, 180, enter_bps=50)["spread_basis"].to_list() == [
        *bases.values()
    ]
