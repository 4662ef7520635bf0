"""From a log of events to what followed them, over a store of a SIMULATED market."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tests.adversary import Adversary, ArchiveSettings, adverse
from tests.unit.workspace.conftest import NOW
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError
from toolkit.market import swapped
from toolkit.service import Clock, Config, Simulated, running
from toolkit.statistics import events as event_statistics
from toolkit.statistics.fees import FeeModel
from toolkit.store import Store
from toolkit.workspace import Workspace

pytestmark = pytest.mark.slow  # days of events of the simulated market take seconds

WINDOW = ("2026-11-01", "2026-11-03")


@pytest.fixture(scope="module")
def held(simulated: Workspace) -> Workspace:
    simulated.sync(["events/splash", "events/spread"], *WINDOW, progress=False)
    return simulated


def test_without_any_trajectory_the_error_names_how_to_load_one(held: Workspace) -> None:
    with pytest.raises(EmptyWindowError, match=r"rail sync .* loads the first"):
        held.around(held.events("spread", *WINDOW))


def test_events_without_their_text_give_the_same_lifecycles(held: Workspace) -> None:
    events, short = (held.events("spread", *WINDOW, whole=whole) for whole in (True, False))
    assert set(events.df.columns) - set(short.df.columns) == {"document"}
    assert_frame_equal(events.lifecycles(), short.lifecycles())


def test_what_followed_pumps_is_one_line_after_the_events(held: Workspace) -> None:
    pumps = held.events("splash", *WINDOW)
    found = pumps.detections()
    assert found["ts"].is_between(*pumps.window, closed="left").all()
    keys = found["trajectory"].value_counts(sort=True)["trajectory"].head(3).to_list()
    held.sync(keys, *WINDOW, progress=False)
    rows = held.around(pumps)
    assert sorted(rows.select("trajectory").unique().collect().to_series()) == sorted(keys)
    after = event_statistics.follow_through(found, rows)
    assert after["n"].max() > 0
    assert after["n_events"].unique().to_list() == [found.height]
    judged = pumps.audit(rows, enter_bps=200, leave_bps=100).row(0, named=True)
    assert (judged["precision"], judged["recall"]) == (1.0, 1.0)
    assert judged["n_confirmed"] == judged["n_events_judged"] > 10


def test_a_pair_that_is_held_the_other_way_round_is_turned(held: Workspace) -> None:
    spreads = held.events("spread", *WINDOW)
    keys = spreads.detections()["trajectory"].unique().sort()
    key = keys.filter(~keys.map_elements(swapped, pl.String).is_in(keys.implode()))[0]
    held.sync([swapped(key)], *WINDOW, progress=False)
    rows = held.around(spreads).filter(trajectory=key).collect()
    with pytest.warns(match="held as"):
        own = held.spread(key, *WINDOW).rows
    assert_frame_equal(rows.select(own.columns), own)
    alone = held.around(spreads, on=key, margin_s=0).collect()
    assert_frame_equal(alone.select(own.columns), own)
    path = spreads.study(alone, on=key, every_s=600)
    symbol = pl.col("symbol") == key.partition(":")[0]
    assert path["n_events"][0] == spreads.detections().filter(symbol).height


def test_rows_reach_to_both_sides_of_the_window(held: Workspace) -> None:
    pumps = held.events("splash", "2026-11-02", "2026-11-02T12:00")
    found = pumps.detections()
    key = found["trajectory"][0]
    held.sync([key], *WINDOW, progress=False)
    wide = held.around(pumps, margin_s=3_600).select(pl.col("ts").min()).collect().item()
    narrow = held.around(pumps, margin_s=0).select(pl.col("ts").min()).collect().item()
    assert (wide, narrow) == (pumps.window.start - 3_600, pumps.window.start)
    with pytest.raises(InputError, match="margin_s"):
        held.around(pumps, margin_s=-1)


def test_what_spread_events_would_have_paid_is_net_of_the_tables_of_the_workspace(
    held: Workspace,
) -> None:
    spreads = held.events("spread", *WINDOW)
    keys = spreads.detections()["trajectory"].value_counts(sort=True)["trajectory"].head(3)
    held.sync(keys.to_list(), *WINDOW, progress=False)
    rows = held.around(spreads, margin_s=3_600)
    found = spreads.positions(rows, delays_s=[0, 300])
    expected = event_statistics.positions(spreads.lifecycles(), rows, delays_s=[0, 300])
    assert_frame_equal(found, expected)
    assert found["net_bps"].null_count() == found.height
    legs = {leg.split(".")[0] for key in found["trajectory"] for leg in key.split(":")[1:]}
    priced = Workspace(held.client, held.store, fees=FeeModel.example(sorted(legs)))
    again = priced.events("spread", *WINDOW)
    assert "fees" in dict(again.card.facts)
    net = again.positions(rows, delays_s=[0, 300])
    assert net["net_bps"].count() == net["gross_bps"].count() > 100
    assert "fees" not in dict(priced.events("splash", *WINDOW).card.facts)


def test_the_log_of_the_simulated_market_is_true_to_its_spreads(held: Workspace) -> None:
    spreads = held.events("spread", *WINDOW)
    keys = spreads.detections()["trajectory"].value_counts(sort=True)["trajectory"].head(8)
    held.sync(keys.to_list(), *WINDOW, progress=False)
    rows = held.around(spreads, margin_s=0)
    found = spreads.audited(rows, enter_bps=100)
    row = event_statistics.audit(found).row(0, named=True)
    assert row["n_events_judged"] > 50
    assert row["precision"] == 1.0
    assert row["recall"] > 0.95
    # an event opens within the bar at whose end its spread is known
    assert found["delay_s"].drop_nulls().is_between(-60, 0).all()
    assert str(row["peak_error_median_pct"]) == "0.0"


def test_a_log_that_loses_closes_and_is_an_hour_late_is_true_up_to_that_hour(
    tmp_path: Path,
) -> None:
    config = Config(
        Simulated(7),
        port=0,
        clock=Clock(fixed_at=NOW),
        quota=10**6,
        application=adverse(
            Adversary(archive_lag_s=3_600), events=ArchiveSettings(lost_close_share=0.3)
        ),
    )
    store = Store(tmp_path / "rail.duckdb")
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync("events/spread", NOW - 86_400, NOW, progress=False)
        keys = rail.events("spread").detections()["trajectory"].value_counts(sort=True)
        rail.sync(keys["trajectory"].head(6).to_list(), NOW - 86_400, NOW, progress=False)
    before = rail.events("spread", NOW - 86_400, NOW - 3_600)
    found = before.audited(rail.around(before, margin_s=0), enter_bps=100)
    row = event_statistics.audit(found).row(0, named=True)
    assert (row["precision"], row["recall"]) == (1.0, 1.0)
    assert row["n_seen"] > 50
    assert (
        found["audit_reason"].value_counts().filter(audit_reason="still_open")["count"].item() >= 10
    )
    everything = rail.events("spread", NOW - 86_400, NOW)
    later = everything.audited(rail.around(everything, margin_s=0), enter_bps=100)
    missed = later.filter(audit_reason="missed")
    assert (missed["episode_start"] > NOW - 3_600 - 60).all()
