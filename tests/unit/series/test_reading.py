"""Which window a series is read over, and as known when."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl
import pytest

from tests.dated import date_load
from tests.empty_store import empty_store
from toolkit.client import Client
from toolkit.errors import EmptyWindowError, InputError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.series.reading import read_series
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Batch, Edge, LoadOrigin, Store, StoreWriter
from toolkit.workspace import Workspace

from .conftest import NOW, PAIR, PRICE, WINDOW


def test_a_named_window_is_relative_to_the_services_clock(rail: Workspace) -> None:
    hour = rail.prices(PRICE, "2h").window
    assert hour.length_s == 7_200
    assert 0 <= hour.end - NOW < 600  # the time since the load goes on
    assert rail.prices(PRICE, "yesterday").window == (NOW - 86_400, NOW)
    assert rail.prices(PRICE, "2026-11").window == (NOW - 3 * 86_400, NOW + 27 * 86_400)


@pytest.mark.parametrize("start", ["7 days", "last week", "2026-13", "BTC", 1_793_750_400_000, 0.5])
def test_what_is_no_time_and_no_window_is_refused_with_both_forms(
    rail: Workspace, start: object
) -> None:
    with pytest.raises(InputError, match=r"start: .*2023-03-01.*7d, 12h, today"):
        rail.prices(PRICE, start)  # type: ignore[arg-type]  # what is refused


def test_a_window_of_which_nothing_is_known_names_what_is_held(rail: Workspace) -> None:
    with pytest.raises(EmptyWindowError, match=r"held: 2026-11-03 18:00 to .*` asks"):
        rail.spread(PAIR, "2026-01-01", "2026-01-02")


def test_a_log_that_was_never_asked_for_is_not_an_empty_one(rail: Workspace) -> None:
    with pytest.raises(UnknownTrajectoryError, match=r"events/splash is not held.*rail sync"):
        rail.events("splash")


@pytest.mark.slow
def test_rows_are_those_that_were_known_as_of_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "rail.duckdb")
    before = int(time.time()) - 5
    config = Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW), quota=10**6)
    with running(config) as service, Workspace(Client(service.base_url, "demo-pro"), store) as rail:
        rail.sync([PRICE, "events/splash"], WINDOW[0], WINDOW[0] + 3_600, progress=False)
        between = int(time.time())
        while int(time.time()) == between:
            time.sleep(0.05)
        rail.sync([PRICE, "events/splash"], *WINDOW, progress=False)

        then, now = rail.as_of(between), rail
        assert len(then.prices(PRICE, *WINDOW)) == 60 < len(now.prices(PRICE, *WINDOW))
        assert len(then.events("splash", *WINDOW)) <= len(now.events("splash", *WINDOW))
        assert "as of" in repr(then.prices(PRICE, *WINDOW))
        with pytest.raises(EmptyWindowError, match=r"held nothing as of .*the first load began"):
            rail.as_of(before).prices(PRICE)
        with pytest.raises(InputError, match="as_of"):
            then.sync(PRICE)
        assert then.prices(PRICE, *WINDOW).origin.notes == ()
        assert then.prices(PRICE).window.end < now.prices(PRICE).window.end
        gaps = [r.prices(PRICE, *WINDOW).gaps() for r in (then, now)]
        assert [each["state"].to_list() for each in gaps] == [["not yet known"]] * 2
        # the last two minutes may still change
        assert [each["length_s"].item() for each in gaps] == [5 * 3_600, 120]
        shares = [r.events("splash", *WINDOW).coverage()["coverage"].item() for r in (then, now)]
        assert shares[0] < 0.2
        assert shares[1] > 0.9
        shares = [r.status().filter(stream=PRICE)["rows"].item() for r in (then, now)]
        assert shares[0] == 60 < shares[1]
        assert then.sql("from prices").height == 60
        with pytest.raises(InputError, match="a store is published as it is"):
            then.publish(tmp_path)


def test_a_load_from_before_commits_were_dated_that_went_on_is_named_on_the_series(
    tmp_path: Path,
) -> None:
    writer = StoreWriter(empty_store(tmp_path / "rail.duckdb", Source("replay", "example")))
    load_id = writer.start_load(LoadOrigin("http://h", NOW, None, "0"))
    batch, trajectory = Batch(), Trajectory.parse(PRICE)
    row = {"ts": [0], "price": [1.0], "mark_price": [None], "volume": [None], "extra": [None]}
    types = {
        "price": pl.Float64,
        "mark_price": pl.Float64,
        "volume": pl.Float64,
        "extra": pl.String,
    }
    rows = pl.DataFrame(row, schema={"ts": pl.Int64, **types})
    batch.add(trajectory, rows, Interval(0, 60), Edge(NOW, step_s=60))
    writer.commit(load_id, batch)
    date_load(writer.store, load_id, NOW)

    def notes() -> tuple[str, ...]:
        return read_series(writer.store, trajectory, 0, 60, as_of=NOW).origin.notes

    assert notes() == ()
    with writer.writing() as connection:
        connection.execute("UPDATE price SET committed_at = NULL")
    assert notes() == ("what these loads brought after that time is here too: 1",)
    writer.finish_load(load_id, [])
    assert notes() == ("what these loads brought after that time is here too: 1",)
    with writer.writing() as connection:
        connection.execute("UPDATE load SET finished_at = started_at")
    assert notes() == ()
