"""What is loaded when nobody names anything, and what the first page lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.errors import EmptyWindowError
from toolkit.market import Family, Leg, Symbol, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Store
from toolkit.wire.listing import Listing
from toolkit.workspace import Workspace, front_page, watchlist

NOW = 1_793_750_400


def test_the_funding_of_each_futures_leg_is_taken_over_the_first_and_no_other_pair() -> None:
    legs = tuple(map(Leg.parse, ("A.futures", "B.futures", "C.futures", "A.spot")))
    found = watchlist(Listing({Symbol("BTC", "USDT"): legs}, False))
    assert [s.key for s in found if s.kind == "funding"] == [
        "funding/BTC_USDT:A.futures:B.futures",
        "funding/BTC_USDT:A.futures:C.futures",
    ]


def test_the_first_page_lists_open_spreads_and_one_funding_pair_of_each_symbol(
    tmp_path: Path,
) -> None:
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW))
    store = Store(tmp_path / "rail.duckdb")
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync("snapshot/spread", progress=False)
        with pytest.raises(EmptyWindowError, match="holds no snapshot/funding"):
            front_page(store)
        rail.sync("snapshot/funding", progress=False)
        found, listing = front_page(store), rail.symbols()
    assert all(isinstance(each, Trajectory) and listing.lists(each) for each in found)
    pairs = [each.symbol for each in found if each.family is Family.FUNDING]
    assert len(set(pairs)) == len(pairs) > 5
    assert {each.family for each in found} == {Family.SPREAD, Family.FUNDING}
