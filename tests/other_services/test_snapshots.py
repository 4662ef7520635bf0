"""Snapshots of a service of another kind are read by its profile, and nothing of them is lost."""

from __future__ import annotations

import pytest

from tests.other_services.data import sample
from tests.other_services.kinds import KINDS, profile_of, running_other
from tests.other_services.server import API_KEY
from toolkit.client import Client
from toolkit.market import EventFamily
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.wire.rows.snapshot_rows import activity_of_day, snapshot_items
from toolkit.workspace.snapshot_tables import funding_rates, open_spreads

SPREADS = ["BTC_USDT:AURORA.spot:CORONA.futures", "BTC_USDT:CORONA.futures:AURORA.spot"]
RATES = "funding/BTC_USDT:CORONA.futures:DRACO.futures"


@pytest.mark.parametrize("kind", KINDS)
def test_snapshots_of_another_shape_are_read_by_the_profile(kind: str) -> None:
    users, data = UserProfile.read(profile_of(kind)), sample()
    with running_other(kind, data) as base_url, Client(base_url, API_KEY, profile=users) as client:
        answers = {
            name: client.snapshot(name).decode()
            for name in ("symbols", "spread", "funding", "activity")
        }
        listing = client.symbols()
    listed = snapshot_items("symbols", answers["symbols"])
    assert listed.words == ""
    assert {
        item["symbol"]: [f"{leg['exchange']}.{leg['market']}" for leg in item["venues"]]
        for item in listed.understood
    } == {str(symbol): [*map(str, legs)] for symbol, legs in listing.legs.items()}
    spreads = open_spreads(answers["spread"])
    found = dict(spreads.select("trajectory", "spread_pct").iter_rows())
    assert found == {key: data.rows[key].sort("ts")["spread_pct"][-1] for key in SPREADS}
    assert activity_of_day(answers["activity"]) == dict.fromkeys(EventFamily, 42)
    if kind == "inforce":  # a rate of an hour without an interval is no rate of an interval
        assert snapshot_items("funding", answers["funding"]).words == (
            "not understood: no rate, no interval_hours"
        )
        assert '"pct_h":"0.00125"' in answers["funding"]
        return
    newest = data.rows[RATES].sort("ts")
    rates = dict(funding_rates(answers["funding"]).select("leg", "rate").iter_rows())
    sides = {"CORONA.futures": "buy_rate", "DRACO.futures": "sell_rate"}
    assert rates == {leg: newest[side].drop_nulls()[-1] for leg, side in sides.items()}
