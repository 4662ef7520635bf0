"""The service's own spread and differential beside what the legs of the row give."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from toolkit.market import Family
from toolkit.wire.agreement import disagreements
from toolkit.wire.profile.profile import BUILT_IN

SPREAD, FUNDING = BUILT_IN.histories[Family.SPREAD], BUILT_IN.histories[Family.FUNDING]
SPREADS = ("buy_price", "sell_price", "spread_pct")
RATES = ("buy_rate", "buy_interval_hours", "sell_rate", "sell_interval_hours")


def spreads(*rows: tuple[float | None, ...]) -> list[tuple[str, str]]:
    """Return kind and count of what is found in rows of buy, sell and percent."""
    frame = pl.DataFrame(rows, dict.fromkeys(SPREADS, pl.Float64), orient="row")
    found = disagreements(SPREAD, frame.with_row_index("ts"))
    assert all(finding.where == f"{SPREAD.path}.spread_pct" for finding in found)
    return [(finding.kind, finding.says.split(" rows")[0]) for finding in found]


def rates(*rows: tuple[float | None, ...]) -> list[str]:
    """Return the kinds found in rows of buy rate and hours, sell rate and hours, differential."""
    names = (*RATES, "differential_pct_8h")
    frame = pl.DataFrame(rows, dict.fromkeys(names, pl.Float64), orient="row")
    return [finding.kind for finding in disagreements(FUNDING, frame.with_row_index("ts"))]


def test_another_value_is_found_and_counted_among_the_rows_with_both() -> None:
    rows = [(100.0, 101.0, 1.0), (100.0, 101.0, 1.5), (None, 101.0, 7.0), (100.0, 101.0, None)]
    assert spreads(*rows) == [("value_disagrees", "in 1 of 2")]


def test_another_sign_is_found_also_where_the_legs_are_swapped() -> None:
    rows = [(100.0, 110.0, -10.0), (100.0, 110.0, 100 * (100 / 110 - 1)), (100.0, 100.0, 0.0)]
    assert spreads(*rows) == [("sign_disagrees", "in 2 of 3")]


def test_a_percentage_rounded_to_two_decimals_or_more_agrees_and_one_further_off_does_not() -> None:
    pairs = [(97.0 + n / 7, 97.3 + n / 11) for n in range(50)]
    for decimals in (2, 3, 6):
        rows = [(b, s, round(100 * (s / b - 1), decimals)) for b, s in pairs]
        assert spreads(*rows) == []
    rows = [(b, s, round(100 * (s / b - 1), 4) + 0.0002) for b, s in pairs]
    assert spreads(*rows) == [("value_disagrees", "in 50 of 50")]


def test_a_spread_of_zero_throughout_is_not_taken_for_rounding() -> None:
    assert spreads((100.0, 101.0, 0.0), (100.0, 102.0, 0.0)) == [("value_disagrees", "in 2 of 2")]


def test_prices_sent_rounded_agree_with_a_spread_of_the_exact_ones() -> None:
    exact = [(60_000.123 + n, 60_012.987 + n / 2) for n in range(50)]
    rows = [(round(b, 1), round(s, 1), 100 * (s / b - 1)) for b, s in exact]
    assert spreads(*rows) == []


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)), min_size=1, max_size=20))
@examples(50)
def test_what_the_legs_give_always_agrees_and_turned_round_never_has_another_value(pairs) -> None:
    rows = [(b, s, 100 * (s / b - 1)) for b, s in pairs]
    assert spreads(*rows) == []
    turned = spreads(*((b, s, -pct) for b, s, pct in rows))
    assert [kind for kind, _ in turned] in ([], ["sign_disagrees"])
    far = [(b, s, -p) for b, s, p in rows if abs(p) > 1]
    assert [kind for kind, _ in spreads(*far)] == ["sign_disagrees"] * bool(far)


@pytest.mark.parametrize("odd", [math.nan, math.inf, 0.0, -1.0])
def test_prices_that_give_no_spread_are_not_compared(odd) -> None:
    assert spreads((odd, 100.0, 1.0)) == []


def test_a_differential_is_compared_where_both_legs_settle_or_one_is_spot() -> None:
    agrees = (1e-4, 8.0, 1e-4, 4.0, 0.01)
    assert rates(agrees, (0.0, None, 1e-4, 1.0, 0.08), (None, 8.0, 1e-4, 8.0, 9.0)) == []
    assert rates((1e-4, 8.0, 3e-4, 8.0, -0.02)) == ["sign_disagrees"]
    assert rates((1e-4, 8.0, 3e-4, 8.0, 0.2)) == ["value_disagrees"]
    assert rates((0.0, None, 1e-4, 1.0, 0.01)) == ["value_disagrees"]


def test_a_price_has_nothing_to_compare() -> None:
    assert disagreements(BUILT_IN.histories[Family.PRICE], pl.DataFrame({"price": [1.0]})) == []
