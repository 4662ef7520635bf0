"""Which window a series is read over, and as known when."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.dated import date_load
from tests.empty_store import empty_store
from tests.unit.store.conftest import frame_of
from toolkit.errors import EmptyWindowError, InputError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.market import Source, Trajectory
from toolkit.series.reading import read_series
from toolkit.store import Batch, Edge, LoadOrigin, StoreWriter
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


def test_a_workspace_as_of_a_time_says_so_takes_no_rows_and_is_not_published(
    rail: Workspace, tmp_path: Path
) -> None:
    then = rail.as_of(int(time.time()))
    series = then.prices(PRICE, *WINDOW)
    assert "as of" in repr(series)
    assert series.origin.notes == ()
    assert then.sql("from prices").height == rail.sql("from prices").height
    with pytest.raises(InputError, match="as_of"):
        then.sync(PRICE)
    with pytest.raises(InputError, match="a store is published as it is"):
        then.publish(tmp_path)


def test_a_load_from_before_commits_were_dated_that_went_on_is_named_on_the_series(
    tmp_path: Path,
) -> None:
    writer = StoreWriter(empty_store(tmp_path / "rail.duckdb", Source("replay", "example")))
    load_id = writer.start_load(LoadOrigin("http://h", NOW, None, "0"))
    batch, trajectory = Batch(), Trajectory.parse(PRICE)
    batch.add(trajectory, frame_of([(0, 1.0)]), Interval(0, 60), Edge(NOW, step_s=60))
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
