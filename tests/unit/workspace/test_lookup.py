"""A key asked of the store: held, held the other way round, or refused with the nearest one."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from tests.unit.workspace.conftest import NOW
from toolkit.errors import UnknownTrajectoryError
from toolkit.statistics.spread import turned, with_spread
from toolkit.workspace import Workspace

PAIR, SWAPPED = "BTC_USDT:AURORA.spot:CORONA.futures", "BTC_USDT:CORONA.futures:AURORA.spot"
RATES, SWAPPED_RATES = (
    "BTC_USDT:AURORA.futures:CORONA.futures",
    "BTC_USDT:CORONA.futures:AURORA.futures",
)
prices = st.floats(0.5, 2e5)


@pytest.fixture(scope="module")
def rail(simulated: Workspace) -> Workspace:
    simulated.sync(PAIR, NOW - 7_200, NOW - 3_600)
    simulated.sync(f"funding/{RATES}", NOW - 2 * 86_400, NOW)
    return simulated


@pytest.mark.parametrize(
    "key",
    [PAIR.replace("CORONA", "CORNA"), PAIR.replace("BTC", "BTX"), PAIR.replace("futures", "spot")],
)
def test_a_key_that_is_not_held_names_the_nearest_and_the_command_that_loads_it(
    rail: Workspace, key: str
) -> None:
    with pytest.raises(UnknownTrajectoryError) as refused:
        rail.spread(key)
    assert refused.value.nearest == (PAIR,)
    assert str(refused.value) == (
        f"{key} is not held by {rail.store.path}; nearest: {PAIR}; `rail sync {key} "
        f"--store {rail.store.path} --base-url {rail.client.base_url}` loads it"
    )


def test_a_window_that_was_answered_and_had_no_row_is_an_empty_series(rail: Workspace) -> None:
    early = (NOW - 29 * 86_400, NOW - 29 * 86_400 + 60)
    rail.sync(["events/splash"], *early)
    assert len(rail.events("splash", *early)) == 0
    assert "answered 100.00 %" in repr(rail.events("splash", *early))


def test_a_spread_held_the_other_way_round_is_turned_and_named(rail: Workspace) -> None:
    with pytest.warns(UserWarning, match=f"{SWAPPED} is held as {PAIR}: legs and signs are turned"):
        asked = rail.spread(SWAPPED)
    asked, held = asked.df, rail.spread(PAIR).df
    assert asked.height == held.height > 0
    assert asked["trajectory"].unique().to_list() == [SWAPPED]
    assert asked["buy_price"].equals(held["sell_price"].alias("buy_price"))
    assert asked["spread_log_bps"].equals(-held["spread_log_bps"])


def test_funding_held_the_other_way_round_is_turned(rail: Workspace) -> None:
    with pytest.warns(UserWarning, match="legs and signs are turned"):
        asked = rail.funding(SWAPPED_RATES)
    asked, held = asked.df, rail.funding(RATES).df
    assert asked["buy_rate"].equals(held["sell_rate"].alias("buy_rate"))
    assert asked["differential_pct_8h"].equals(-held["differential_pct_8h"])


@given(st.lists(st.tuples(prices, prices), min_size=1, max_size=5))
def test_turned_rows_are_those_that_the_other_pair_would_have(
    legs: list[tuple[float, float]],
) -> None:
    there, back = (
        pl.DataFrame(
            {
                "buy_price": [pair[buy] for pair in legs],
                "sell_price": [pair[1 - buy] for pair in legs],
                "spread_pct": [100 * (pair[1 - buy] / pair[buy] - 1) for pair in legs],
            }
        )
        for buy in (0, 1)
    )
    assert_frame_equal(with_spread(turned(there)), with_spread(back), rel_tol=1e-9, abs_tol=1e-6)
    assert_frame_equal(turned(turned(there)), there, rel_tol=1e-9, abs_tol=1e-6)
