"""The loader against a running service: what is missing, all of it, once."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.errors import (
    InputError,
    StoreSourceError,
    UnavailableError,
    UnknownTrajectoryError,
    UnreachableError,
)
from toolkit.intervals import Interval
from toolkit.loader import Progress, sync
from toolkit.market import Family, Trajectory
from toolkit.service import Clock, Config, Running, running
from toolkit.store import Store
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.listing import spread_trajectories
from toolkit.wire.profile.user_profile import UserProfile

from .conftest import Line, client_of

START, END = miniature.START, miniature.END
PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:CORONA.futures")
IMPATIENT = RetryPolicy(attempts=1)


def config(**changes: object) -> Config:
    given: dict[str, object] = {
        "source": miniature.source(),
        "port": 0,
        "clock": Clock(fixed_at=END),
        "quota": 1_000_000,
    }
    return Config(**(given | changes))  # type: ignore[arg-type]  # checked by the call


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    with running(config()) as found:
        yield found


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with Client(service.base_url, "demo-free") as found:
        yield found


def wanted_rows(start: int, end: int) -> pl.DataFrame:
    frame = miniature.rows().filter(
        (pl.col("symbol") == "BTC_USDT") & (pl.col("exchange") == "AURORA")
    )
    return frame.filter((pl.col("ts") >= start) & (pl.col("ts") < end)).select("ts", "price")


def sync_line(
    source: Line,
    now: int,
    store: Store,
    start: int = 0,
    end: int = 10**6,
    *,
    profile: UserProfile | None = None,
) -> int:
    with client_of(config(source=source, clock=Clock(fixed_at=now)), profile=profile) as client:
        return sync(client, store, [PRICE], Interval(start, end)).rows.new


def test_every_row_of_the_window_is_held_once_and_progress_tells_pages_and_share_until_one(
    client: Client, store: Store
) -> None:
    told: list[Progress] = []
    result = sync(client, store, [PRICE, SPREAD], Interval(START, END), on_progress=told.append)
    held = store.series(PRICE)
    assert held.select("ts", "price").equals(wanted_rows(START, END))
    assert result.rows.new == held.height + store.series(SPREAD).height
    assert result.rows.revised == 0
    assert result.silent == ()
    assert result.unrecoverable == {}
    assert {t.family for t in store.ledger()} == {Family.PRICE, Family.SPREAD}
    assert store.counts(Interval(START, START + 3600)) == {PRICE: 60, SPREAD: 60}
    assert [p.pages for p in told] == list(range(1, result.pages + 1))
    assert [p.fraction for p in told] == sorted(p.fraction for p in told)
    assert (told[-1].fraction, told[-1].eta_s, told[-1].rows) == (1.0, 0.0, result.rows.new)


def test_a_trajectory_given_twice_is_loaded_once(client: Client, store: Store) -> None:
    result = sync(client, store, [PRICE, PRICE], Interval(START, START + 3600))
    assert (result.asked, result.rows.new, result.rows.repeated) == ((PRICE,), 60, 0)


def test_what_the_plan_no_longer_reaches_is_named(store: Store) -> None:
    with client_of(config(retention_s=86_400)) as client:
        result = sync(client, store, [PRICE], Interval(START, END))
    assert result.unrecoverable == {PRICE: [Interval(START, END - 86_400)]}
    assert store.coverage(PRICE, Interval(START, END))["state"].to_list() == [
        "unrecoverable",
        "held",
        "not yet known",
    ]


def test_held_rows_stay_held_when_the_plan_reaches_less(store: Store) -> None:
    for retention_s in (None, 86_400):
        with client_of(config(retention_s=retention_s)) as client:
            result = sync(client, store, [PRICE], Interval(START, END))
    assert result.unrecoverable == {}
    assert store.series(PRICE).height == wanted_rows(START, END).height


def test_a_row_revised_before_it_was_final_is_kept_in_both_versions(store: Store) -> None:
    sync_line(Line(10, tail={9: 99.0}), 600, store)
    sync_line(Line(20), 1200, store)
    assert store.series(PRICE)["price"].to_list() == [1.0 + i for i in range(20)]
    catalogue = store.catalogue().row(0, named=True)
    assert (catalogue["rows"], catalogue["revisions"]) == (20, 1)


def test_a_row_that_changes_for_longer_is_met_by_the_profile(store: Store) -> None:
    profile = UserProfile.parsed(Path("p.toml"), "[history.price]\nsettle_s = 600")
    sync_line(Line(20, tail={12: 99.0}), 1200, store, profile=profile)
    states = store.coverage(PRICE, Interval(0, 1200)).rows()
    assert states == [(0, 540, "held"), (540, 1200, "not yet known")]
    sync_line(Line(30), 1800, store, profile=profile)
    assert store.series(PRICE)["price"].to_list() == [1.0 + i for i in range(30)]
    assert store.loads()["profile_hash"].to_list() == [profile.hash] * 2


def test_rows_that_a_late_service_fills_in_are_loaded_by_the_next_sync(store: Store) -> None:
    sync_line(Line(5), 600, store)
    sync_line(Line(10), 660, store)
    assert store.series(PRICE)["ts"].to_list() == [i * 60 for i in range(10)]


@pytest.mark.slow
def test_two_rows_beside_a_hole_do_not_make_the_hole_a_held_stretch(store: Store) -> None:
    sync_line(Line(20), 1_200, store)
    sync_line(Line(22, without=[20]), 1_380, store)
    known = store.coverage(PRICE, Interval(0, 1_320)).rows()
    assert known[0] == (0, 1_200, "held")
    assert known[1][:2] == (1_200, 1_260)
    assert known[1][2] != "held"


@pytest.mark.slow
def test_a_service_that_dies_leaves_what_came_and_the_next_sync_completes_it(store: Store) -> None:
    with contextlib.ExitStack() as dying:
        service = dying.enter_context(running(config()))
        client = Client(service.base_url, "demo-free", retries=IMPATIENT)
        everything = spread_trajectories(client.symbols())  # more pages than can be under way

        def die_after_two(progress: Progress) -> None:
            if progress.pages == 2:
                dying.close()

        window = Interval(START, END)
        with client, pytest.raises((UnreachableError, UnavailableError)):
            sync(client, store, everything, window, workers=1, on_progress=die_after_two)
    kept = sum(store.counts(window).values())
    with client_of(config(), "demo-free") as fresh:
        rest = sync(fresh, store, everything, Interval(START, END))
        wanted = sum(fresh.history(t, START, END).height for t in everything)
    assert 0 < kept < wanted
    assert kept + rest.rows.new == wanted == sum(store.counts(Interval(START, END)).values())


def test_an_interrupted_sync_keeps_whole_pages_with_their_ledger(
    client: Client, store: Store
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.pages == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sync(client, store, [PRICE], Interval(START, END), workers=1, on_progress=interrupt)
    (answered,) = store.ledger()[PRICE].answered
    held = store.series(PRICE)
    assert (
        held.filter(pl.col("ts") >= answered.start)
        .select("ts", "price")
        .equals(wanted_rows(answered.start, END))
    )
    assert store.loads()["finished_at"].to_list() == [None]


def test_a_trajectory_nobody_lists_is_refused_with_the_nearest_ones(
    client: Client, store: Store
) -> None:
    with pytest.raises(UnknownTrajectoryError) as refused:
        sync(client, store, [Trajectory.parse("BTC_USDT:AURORRA.spot")], Interval(START, END))
    assert refused.value.nearest[0] == "BTC_USDT:AURORA.spot"
    assert store.ledger() == {}


def test_a_silent_trajectory_is_named(client: Client, store: Store) -> None:
    outage = miniature.OUTAGE[0]
    corona = Trajectory.parse("BTC_USDT:CORONA.futures")
    result = sync(client, store, [PRICE, corona], Interval(outage, outage + 3600))
    assert result.silent == (corona,)
    assert store.coverage(corona, Interval(outage, outage + 3600))["state"].to_list() == ["empty"]


def test_a_store_of_another_source_is_left_alone(client: Client, store: Store) -> None:
    sync_line(Line(5), 600, store)
    with pytest.raises(StoreSourceError, match="never mixes sources"):
        sync(client, store, [PRICE], Interval(START, END))
    assert store.loads().height == 1


def test_a_load_records_where_from_under_which_schemas_and_plan_and_when(
    client: Client, store: Store
) -> None:
    result = sync(client, store, [PRICE], Interval(START, END))
    (load,) = store.loads().to_dicts()
    assert load["base_url"] == client.base_url
    assert load["served_at"] == END
    assert load["schema_hash"] == client.profile().schema_hash
    assert load["finished_at"] >= load["started_at"]
    with store.reading() as connection:
        ids = connection.execute("SELECT DISTINCT load_id FROM price").fetchall()
    assert ids == [(load["load_id"],)]
    assert (load["plan"], load["quota"], load["quota_window_s"]) == ("free", 1_000_000, 60)
    assert result.pages > 1
    assert load["quota_left"] == client.allowance.left


@pytest.mark.parametrize(
    ("ends", "workers", "says"),
    [
        ((START, END), 0, "1 to 64"),
        ((START, END), 65, "1 to 64"),
        ((END, START), 4, "a start before its end"),
    ],
)
def test_workers_out_of_range_and_an_empty_window_are_refused(
    client: Client, store: Store, ends: tuple[int, int], workers: int, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        sync(client, store, [PRICE], Interval(*ends), workers=workers)
