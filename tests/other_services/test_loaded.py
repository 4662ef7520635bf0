"""A service of another kind loads whole by one profile file, and the statistics are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl
import pytest
from polars.testing import assert_series_equal

from tests.other_services.data import NOW, Data, sample
from tests.other_services.kinds import KINDS, profile_of, running_other
from tests.other_services.server import API_KEY
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.market import Family, Trajectory
from toolkit.statistics import funding, spread
from toolkit.store import Store
from toolkit.wire.profile.user_profile import UserProfile
from toolkit.workspace import Workspace

WINDOW = Interval(NOW - 12 * 86_400, NOW)
LEGS = ("buy_price", "sell_price")
RATES = ("buy_rate", "sell_rate", "buy_interval_hours", "sell_interval_hours")
ABSENT = {"opposite": LEGS + RATES, "opposite-unsaid": LEGS + RATES}
"""What a kind does not send, of the columns of its rows."""


@dataclass(frozen=True)
class Loaded:
    """A store that was loaded from a service of a kind, and what the service had."""

    kind: str
    rail: Workspace
    data: Data

    def of(self, *families: Family) -> list[tuple[Trajectory, pl.DataFrame]]:
        """The trajectories of some families, with the rows that the service had."""
        named = ((Trajectory.parse(key), frame.sort("ts")) for key, frame in self.data.rows.items())
        return [(each, frame) for each, frame in named if each.family in families]


@pytest.fixture(params=KINDS, scope="module")
def loaded(request, tmp_path_factory) -> Iterator[Loaded]:
    kind, data = request.param, sample()
    store = Store(tmp_path_factory.mktemp("other") / "store.duckdb")
    with (
        running_other(kind, data) as base_url,
        Client(base_url, API_KEY, profile=UserProfile.read(profile_of(kind))) as client,
    ):
        rail = Workspace(client, store)
        keys = [*data.rows, *(f"events/{family}" for family in data.events)]
        rail.sync(keys, *WINDOW, progress=False)
        yield Loaded(kind, rail, data)


def assert_equal(held: pl.DataFrame, sent: pl.DataFrame, absent: tuple[str, ...] = ()) -> None:
    """All rows and values are the same, to the last bit."""
    columns = [name for name in sent.columns if name in held.columns]
    assert {"ts", "ts_ms"} & set(columns)
    assert all(held[name].null_count() == held.height for name in absent if name in columns)
    for name in set(columns) - set(absent):
        assert_series_equal(held[name], sent[name], check_dtypes=False, check_exact=True)


def test_every_row_of_every_trajectory_is_held_as_it_was_served(loaded: Loaded) -> None:
    families = [Family.PRICE, Family.SPREAD]
    families += [] if loaded.kind == "inforce" else [Family.FUNDING]
    for trajectory, frame in loaded.of(*families):
        held = loaded.rail.store.series(trajectory, WINDOW)
        assert_equal(held, frame, ABSENT.get(loaded.kind, ()))


def test_every_document_fills_its_columns(loaded: Loaded) -> None:
    for family, frame in loaded.data.events.items():
        held = loaded.rail.store.events(family, WINDOW)
        sent = frame.drop("document", "schema_id", "event_type")
        by = ["ts_ms", "event_id", "lifecycle"]
        assert_equal(held.sort(by), sent.sort(by))


def test_the_statistics_are_those_of_the_rows_themselves(loaded: Loaded) -> None:
    """To the last bit, where legs are sent and rates are settled."""
    exact = [] if loaded.kind.startswith("opposite") else [Family.SPREAD]
    exact += [Family.FUNDING] if loaded.kind in ("nested", "oldest", "rows") else []
    for trajectory, frame in loaded.of(*exact):
        of = spread if trajectory.family is Family.SPREAD else funding
        held = loaded.rail.store.series(trajectory, WINDOW)
        sent = frame.select(pl.lit(trajectory.key).alias("trajectory"), pl.all())
        assert of.summary(held).equals(of.summary(sent))


def test_the_listing_names_every_leg_of_the_trajectories(loaded: Loaded) -> None:
    listing = loaded.rail.client.symbols()
    assert listing.findings == ()
    assert all(listing.lists(Trajectory.parse(key)) for key in loaded.data.rows)


@pytest.mark.parametrize("loaded", ["inforce"], indirect=True)
def test_rates_in_force_are_no_settlements_and_their_differential_is_held(loaded: Loaded) -> None:
    [(trajectory, settled)] = loaded.of(Family.FUNDING)
    held = loaded.rail.store.series(trajectory, WINDOW)
    assert held["ts"].diff().drop_nulls().unique().to_list() == [3_600]
    assert all(held[name].null_count() == held.height for name in RATES)
    both = settled.join(held, on="ts", suffix="_held").drop_nulls("differential_pct_8h_held")
    assert both.height > 20
    tolerance = {"rel_tol": 1e-12, "abs_tol": 0}
    sent, kept = both["differential_pct_8h"], both["differential_pct_8h_held"]
    assert_series_equal(kept, sent, check_names=False, **tolerance)
