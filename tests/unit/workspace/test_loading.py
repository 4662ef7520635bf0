"""`Workspace.follow`: streams or a watchlist, checked before the service is asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.market import EventFamily, EventLog, Stream
from toolkit.store import Store
from toolkit.workspace import Workspace
from toolkit.workspace.loading import named_streams, wanted_watchlist
from toolkit.workspace.rules import Watchlist

PRICE = "BTC_USDT:AURORA.spot"


@pytest.fixture
def rail(service: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(Client(service, "demo-pro"), Store(tmp_path / "rail.duckdb")) as rail:
        yield rail


def test_once_brings_streams_up_to_now_from_the_moment_asked_for(rail: Workspace) -> None:
    done = rail.follow([Stream.parse(PRICE), "events/splash"], since="2h", once=True)
    assert [stream.key for stream in done.followed] == [PRICE, "events/splash"]
    assert rail.prices(PRICE).df["ts"].min() == miniature.END - 7_200
    again = rail.follow(PRICE, since=miniature.END - 7_200, once=True)
    assert (again.rows.new, again.sweeps) == (0, 1)


def test_a_watchlist_of_ones_own_is_followed_as_far_back_as_it_says(rail: Workspace) -> None:
    wanted = Watchlist(streams=[PRICE], snapshots=["spread"], back="1h")
    done = rail.follow(watchlist=wanted, once=True)
    assert done.snapshots == 1
    assert rail.prices(PRICE).df["ts"].min() == miniature.END - 3_600


def test_a_follow_that_is_stopped_before_it_begins_leaves_a_whole_store(rail: Workspace) -> None:
    stop = threading.Event()
    stop.set()
    rail.follow(PRICE, since="1h", stop=stop)
    assert rail.store.loads()["finished_at"].null_count() == 0


def test_without_streams_the_default_watchlist_is_meant(rail: Workspace) -> None:
    named = named_streams(rail.client, rail.store, wanted_watchlist(rail.store))
    assert EventLog(EventFamily.SPREAD) in named
    assert set(named.values()) == {"streams watchlist", "streams watchlist, snapshots spread",
                                   "streams watchlist, snapshots funding"}  # fmt: skip


def test_what_makes_no_sense_is_refused_before_the_service_is_asked(tmp_path: Path) -> None:
    nobody = Workspace(Client("http://127.0.0.1:9", "key"), Store(tmp_path / "none.duckdb"))
    for options in ({"since": "soon"}, {"streams": "BTC"}, {"watchlist": tmp_path / "none.toml"}):
        with pytest.raises(InputError):
            nobody.follow(**options)
    with pytest.raises(InputError, match="a past state takes no rows"):
        nobody.as_of("2026-11-01").follow(PRICE)
