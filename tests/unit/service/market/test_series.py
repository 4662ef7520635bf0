from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.market import Family, Leg, Trajectory
from toolkit.service import Simulated
from toolkit.service.market.source import SettledRates, Unfunded, in_force, series

HOUR_S = 3_600
NOW = 1_795_046_400


def settlements(*rows: tuple[int, float, int]) -> SettledRates:
    ts, rate, hours = zip(*rows, strict=True) if rows else ((), (), ())
    return SettledRates(
        np.array(ts, dtype=np.int64), np.array(rate, dtype=float), np.array(hours, dtype=np.int64)
    )


def by_hand(leg: SettledRates, ts: int) -> tuple[float, float, float]:
    """The rate settled at a moment, interval and rate per 8 h in force, row by row."""
    rate, interval, per_8h = math.nan, math.nan, math.nan
    for at, settled, hours in zip(
        leg.ts.tolist(), leg.rate.tolist(), leg.interval_hours.tolist(), strict=True
    ):
        if at > ts:
            break
        rate = settled if at == ts else math.nan
        old = ts - at > 2 * hours * HOUR_S
        interval = math.nan if old else float(hours)
        per_8h = math.nan if old else settled * 8.0 / hours
    return rate, interval, per_8h


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.lists(
        st.tuples(
            st.integers(0, 200),
            st.floats(-0.01, 0.01, allow_subnormal=False),
            st.sampled_from([1, 2, 4, 8, 24]),
        ),
        unique_by=lambda row: row[0],
    ),
    st.lists(st.integers(0, 300 * HOUR_S), max_size=20),
)
def test_the_rate_in_force_is_that_of_a_search_by_hand(rows, moments) -> None:
    leg = settlements(*sorted((hour * HOUR_S, rate, hours) for hour, rate, hours in rows))
    ts = np.array(sorted({*moments, *leg.ts.tolist()}), dtype=np.int64)
    found = in_force(leg, ts)
    for index, moment in enumerate(ts.tolist()):
        expected = by_hand(leg, moment)
        shown = [float(column[index]) for column in found]
        assert np.array_equal(shown, expected, equal_nan=True), (moment, shown, expected)


def test_a_leg_that_never_settles_is_at_0_and_one_of_which_nothing_is_known_at_nothing() -> None:
    ts = np.array([0, 60])
    spot, unknown = in_force(Unfunded.NEVER, ts), in_force(Unfunded.UNKNOWN, ts)
    assert spot.settled_rate.tolist() == spot.per_8h.tolist() == [0.0, 0.0]
    assert np.isnan(spot.interval_hours).all()
    assert all(np.isnan(column).all() for column in unknown)


def test_a_rate_is_in_force_for_exactly_two_of_its_intervals() -> None:
    leg = settlements((0, 2e-4, 4))
    edge = 8 * HOUR_S
    assert in_force(leg, np.array([edge, edge + 1])).per_8h.tolist()[0] == 4e-4
    assert np.isnan(in_force(leg, np.array([edge + 1])).per_8h).all()


@pytest.mark.parametrize(
    "legs",
    [
        ("AURORA.futures", "DRACO.futures"),
        ("AURORA.spot", "EQUINOX.futures"),
        ("GALENE.futures", "DEX-SOLARIS.dex"),
        ("BOREAS.futures", "EQUINOX.futures"),
    ],
)
def test_funding_rows_are_all_settlements_of_either_leg(market, legs) -> None:
    """Whatever stretch is asked for: what came before it is looked up."""
    key = Trajectory.parse(f"BTC_USDT:{legs[0]}:{legs[1]}", Family.FUNDING)
    found = series(market, key)
    settled = [market.funding("BTC_USDT", leg) for leg in key.legs]
    start, end = NOW + 7 * HOUR_S, NOW + 100 * HOUR_S
    stretch = found.between(start, end)
    known = [leg.between(start, end).ts.tolist() for leg in settled if leg is not None]
    assert stretch.ts.tolist() == sorted({ts for times in known for ts in times})
    early = found.between(start - 30 * HOUR_S, end)
    skipped = len(early.ts) - len(stretch.ts)
    for name, column in stretch.columns.items():
        late, whole = (np.asarray(each, float) for each in (column, early.columns[name]))
        assert np.array_equal(late, whole[skipped:], equal_nan=True), name


def test_the_differential_is_sell_less_buy_and_changes_sign_with_the_legs(market) -> None:
    there = Trajectory.parse("BTC_USDT:GALENE.futures:EQUINOX.futures", Family.FUNDING)
    back = Trajectory.parse("BTC_USDT:EQUINOX.futures:GALENE.futures", Family.FUNDING)
    one, other = (
        series(market, key).between(NOW, NOW + 48 * HOUR_S).columns for key in (there, back)
    )
    assert np.array_equal(one["differential_pct_8h"], -np.array(other["differential_pct_8h"]))
    assert np.array_equal(one["buy_rate"], other["sell_rate"], equal_nan=True)
    legs = [market.funding("BTC_USDT", leg) for leg in there.legs]
    galene, equinox = (leg.between(NOW, NOW + 1) for leg in legs if leg is not None)
    expected = 100.0 * (equinox.rate[0] * 8.0 - galene.rate[0] * 2.0)
    assert one["differential_pct_8h"][0] == pytest.approx(expected, rel=1e-12)  # type: ignore[index] # a column of numbers


def test_a_leg_that_is_unknown_leaves_the_differential_null(market: Simulated) -> None:
    class Silent(Simulated):
        """A market that knows nothing of one leg's funding."""

        def funding(self, symbol: str, leg: Leg) -> Any:
            return None if leg.exchange == "GALENE" else super().funding(symbol, leg)

    key = Trajectory.parse("BTC_USDT:GALENE.futures:CORONA.futures", Family.FUNDING)
    columns = series(Silent(7), key).between(NOW, NOW + 24 * HOUR_S).columns
    assert np.isnan(np.array(columns["differential_pct_8h"])).all()
    assert np.isnan(np.array(columns["buy_rate"])).all()
    assert not np.isnan(np.array(columns["sell_rate"])).any()
    assert len(series(market, key).between(NOW, NOW + 24 * HOUR_S).ts) == 6
