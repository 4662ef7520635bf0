"""Which streams of a store a watchlist names."""

from __future__ import annotations

import pytest

from toolkit.reports.plans import watched_streams
from toolkit.workspace import Workspace
from toolkit.workspace.rail_toml import Watchlist

from .conftest import LEGS, OTHER, PAIR, RATES

ALL = {*LEGS, PAIR, OTHER, RATES, "events/spread"}


@pytest.mark.parametrize(
    ("watchlist", "named"),
    [
        (
            Watchlist(streams=["*:CORONA.futures", "events/*"]),
            {*LEGS[1:], PAIR, RATES, "events/spread"},
        ),
        (Watchlist(streams=["BTC_USDT:CORONA.futures:*"]), {PAIR}),  # held the other way round
        (Watchlist(symbols=["BTC_USDT"], families=["funding"]), {RATES}),
        (Watchlist(exchanges=["AURORA", "BOREAS"]), {LEGS[0], OTHER}),
        (Watchlist(symbols=["ETH_USDT"]), set()),
        (Watchlist(open_now=True), ALL),
        (Watchlist.default(), ALL),
    ],
)
def test_a_watchlist_names_what_is_held_of_it(
    rail: Workspace, watchlist: Watchlist, named: set[str]
) -> None:
    assert {stream.key for stream in watched_streams(rail.store, watchlist)} == named
