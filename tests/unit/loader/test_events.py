"""The event logs against a running service: every document once, none more."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from tests.adversary import ArchiveSettings, FaultyArchive, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import Progress, sync
from toolkit.market import EventFamily, EventLog, Family, Trajectory
from toolkit.service import Clock, Config, Running, Simulated, running
from toolkit.service.events.archive import EventArchive, EventFilters
from toolkit.store import Store

NOW = 1_795_000_000
START = NOW - 2 * 86_400
SETTINGS = ArchiveSettings(burst=700)
DELAY_S = 90
"""What is younger than the archive's settling time may still change."""


@pytest.fixture(scope="module")
def source() -> Simulated:
    return Simulated(7)


@pytest.fixture(scope="module")
def service(source: Simulated) -> Iterator[Running]:
    config = Config(source, port=0, clock=Clock(fixed_at=NOW), application=adverse(events=SETTINGS))
    with running(config) as found:
        yield found


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    with Client(service.base_url, "demo-pro") as found:
        yield found


@pytest.fixture(scope="module")
def archive(source: Simulated) -> EventArchive:
    return FaultyArchive(source, SETTINGS)


def documents(archive: EventArchive, family: EventFamily, start: int, end: int) -> list[str]:
    """What the archive holds of a window, newest first."""
    found, _ = archive.page(
        family, start, end, filters=EventFilters(), limit=10**6, visible_until=NOW
    )
    return [body.decode() for body in found]


@pytest.mark.parametrize("family", list(EventFamily))
@pytest.mark.slow
def test_every_document_of_a_window_is_held_once_byte_for_byte(
    client: Client, store: Store, archive: EventArchive, family: EventFamily
) -> None:
    result = sync(client, store, [EventLog(family)], Interval(START, NOW))
    wanted = documents(archive, family, START, NOW)
    held = store.events(family, Interval(START, NOW))["document"].to_list()
    assert sorted(held) == sorted(wanted)
    assert result.rows.new == len(wanted) == len(set(wanted))
    assert len(wanted) >= 700
    if family is EventFamily.SPREAD:
        frame = store.events(family, Interval(START, NOW))
        assert frame.group_by("ts").len()["len"].max() >= 700, "more than a page has"
        types = frame.group_by("event_id").agg(pl.col("event_type").unique().sort())
        assert ["spread.closed", "spread.opened"] in types["event_type"].to_list()


@pytest.mark.slow
def test_an_interrupted_load_is_completed_by_the_next(
    client: Client, store: Store, archive: EventArchive
) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.pages == 4:
            raise KeyboardInterrupt

    logs, window = [EventLog(EventFamily.SPREAD)], Interval(START, NOW)
    with pytest.raises(KeyboardInterrupt):
        sync(client, store, logs, window, workers=1, on_progress=interrupt)
    part = store.events(EventFamily.SPREAD, window).height
    sync(client, store, logs, window)
    held = store.events(EventFamily.SPREAD, Interval(START, NOW))["document"].to_list()
    assert 0 < part < len(held)
    assert sorted(held) == sorted(documents(archive, EventFamily.SPREAD, START, NOW))


def test_a_log_with_nothing_in_the_window_is_named_as_silent(client: Client, store: Store) -> None:
    before = NOW - 60 * 86_400
    result = sync(client, store, [EventLog(EventFamily.SPLASH)], Interval(before, before + 3600))
    assert result.silent == (EventLog(EventFamily.SPLASH),)


def test_settled_rates_are_held_as_the_market_settled_them(
    client: Client, store: Store, source: Simulated
) -> None:
    key = "BTC_USDT:AURORA.futures:BOREAS.futures"
    trajectory = Trajectory.parse(key, Family.FUNDING)
    sync(client, store, [trajectory], Interval(START, NOW))
    held = store.series(trajectory)
    for side, leg in (("buy", trajectory.buy), ("sell", trajectory.sell)):
        truth = source.settlements("BTC_USDT", leg, START, NOW)
        rates = held.filter(pl.col(f"{side}_rate").is_not_null())
        assert rates["ts"].to_list() == truth.ts.tolist()
        assert rates[f"{side}_rate"].to_list() == truth.rate.tolist()
