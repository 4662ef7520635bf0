"""A plan against the requests that a load then makes, as the service counts them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import miniature
from tests.counting import Counted, SetClock, counted
from tests.unit.loader.test_idle import END, HOUR_S, START, Market, served
from toolkit.client import Client
from toolkit.errors import InputError, QuotaError, StoreSourceError, UnknownTrajectoryError
from toolkit.intervals import Interval
from toolkit.loader import PlannedLoad, plan_load, sync
from toolkit.loader.sync.plan import ClockReading, plan
from toolkit.loader.sync.planned import Bound, pages_of_rows
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Stream, Trajectory
from toolkit.service import Bars, Config
from toolkit.store import Edge, Ledger, Store
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.wire.profile.user_profile import UserProfile

DAY_S = 86_400
FIRST_HOUR = Interval(END - 12 * DAY_S, END - 12 * DAY_S + HOUR_S)


class Long(Market):
    """Twelve days of minutes until `END`."""

    def bars(self, symbol: str, _leg: object) -> Bars:
        ts = np.arange(END - 12 * DAY_S, self.ends.get(symbol, END), 60)
        return Bars(ts=ts, price=1.0 + np.arange(ts.size), interval_s=60)


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moments=[END])


def made(service: Counted) -> int:
    """Requests of streams since the last look."""
    return sum(n for path, n in service.taken().items() if path not in ("schemas", "search"))


def planned_and_made(
    service: Counted,
    store: Store,
    streams: list[Stream],
    window: Interval,
    profile: UserProfile | None = None,
) -> tuple[PlannedLoad, int]:
    with Client(service.base_url, "demo-pro", profile=profile) as client:
        planned = plan_load(client, store, streams, window)
        assert made(service) == 0, "a plan loads nothing"
        sync(client, store, streams, window)
    return planned, made(service)


PAGE = 50


def test_a_closed_window_takes_exactly_the_requests_planned(store: Store, clock: SetClock) -> None:
    """Also where a page is full at the edge, exactly when the pager finds so."""
    market, end = Long(2), END - HOUR_S - 30
    few_a_page = UserProfile.parsed(Path("p.toml"), f"history.price.limit = {PAGE}")
    rows = (1, PAGE - 1, PAGE, 2 * PAGE - 1, 10 * PAGE + 7)  # the last ones in two slices
    windows = {n: Interval(end - 60 * n, end) for n in rows} | {0: Interval(end, end + 29)}
    with counted(served(market, clock)) as service:
        planned_and_made(service, store, market.prices, FIRST_HOUR)
        begun = store.path.read_bytes()
        for n, window in windows.items():
            for each in store.path.parent.iterdir():
                each.unlink()
            store.path.write_bytes(begun)
            planned, requests = planned_and_made(
                service, store, market.prices, window, profile=few_a_page
            )
            found = (planned.bound, planned.rows, planned.requests)
            assert found == (Bound.EXACT, 2 * n, requests), f"{n} rows"
            assert str(planned).startswith(f"{requests} requests, ")


def test_where_the_archive_may_begin_in_the_window_it_is_a_bound(
    store: Store, clock: SetClock
) -> None:
    market = Long(1)
    with counted(served(market, clock)) as service:
        first, _ = planned_and_made(
            service, store, market.prices, Interval(END - DAY_S, END - HOUR_S)
        )
        planned, requests = planned_and_made(
            service, store, market.prices, Interval(START - 14 * DAY_S, END - HOUR_S)
        )
    assert (first.bound, first.rows, first.requests) == (Bound.AT_LEAST, None, 1)
    assert planned.bound is Bound.AT_MOST
    assert requests <= planned.requests <= requests + 2


def test_a_window_that_is_not_over_and_rows_that_are_absent_are_bounds(
    store: Store, clock: SetClock
) -> None:
    gappy = Trajectory.parse("BTC_USDT:BOREAS.spot")
    clock.moments.append(miniature.END)
    with counted(served(miniature.source(), clock)) as service:
        window = Interval(miniature.START, miniature.START + DAY_S)
        planned_and_made(service, store, [gappy], window)
        later = Interval(miniature.START, miniature.END - HOUR_S)
        closed, requests = planned_and_made(service, store, [gappy], later)
        assert closed.bound is Bound.AT_MOST
        assert requests <= closed.requests
        still = Interval(miniature.START, miniature.END)
        assert planned_and_made(service, store, [gappy], still)[0].bound is Bound.ABOUT


def test_logs_and_snapshots(store: Store, clock: SetClock) -> None:
    clock.moments.append(miniature.END)
    log = EventLog(EventFamily.SPREAD)
    snapshot = SnapshotLog(SnapshotKind.SPREAD)
    with counted(served(miniature.source(), clock)) as service:
        window = Interval(miniature.START, miniature.START + DAY_S)
        first, requests = planned_and_made(service, store, [log, snapshot], window)
        assert first.bound is Bound.AT_LEAST
        assert first.requests <= requests
        assert first.df["rows"].to_list() == [None, 1]
        wider = Interval(miniature.START, miniature.END)
        second, requests = planned_and_made(service, store, [log, snapshot], wider)
    assert second.bound is Bound.ABOUT
    assert second.requests == pytest.approx(requests, abs=1)
    assert second.df["stretches"].to_list()[1] == 0


def test_a_window_that_is_held_takes_nothing_and_loses_nothing(
    store: Store, clock: SetClock
) -> None:
    market = Long(2)
    window = Interval(END - DAY_S, END - HOUR_S)
    with counted(replace(served(market, clock), retention_s=DAY_S)) as service:
        planned_and_made(service, store, market.prices, Interval(window.start, END))
        planned, requests = planned_and_made(service, store, market.prices, window)
    assert (planned.requests, planned.bound, requests) == (0, Bound.EXACT, 0)
    assert planned.leaving_words.startswith("2 streams, up to 4 rows, from")  # not final yet


def test_what_leaves_the_archive_within_a_day_is_named_also_outside_of_the_window(
    store: Store, clock: SetClock
) -> None:
    market = Long(2)
    with counted(replace(served(market, clock), retention_s=10 * DAY_S)) as service:
        oldest = END - 10 * DAY_S
        one = Interval(oldest, oldest + 6 * HOUR_S)
        planned_and_made(service, store, market.prices, one)
        planned, _ = planned_and_made(service, store, market.prices, Interval(END - DAY_S, END))
    for held in planned.df.to_dicts():
        assert (held["leaves_start_ts"], held["leaves_end_ts"]) == (one.end, oldest + DAY_S)
        assert (held["leaves_at"], held["leaves_rows"]) == (END + 6 * HOUR_S, 18 * 60)
    assert "2 streams, up to 2,160 rows" in planned.leaving_words
    assert "the first second in 6 h" in planned.leaving_words
    assert "leaves the archive in 24 h" in str(planned.card)


def test_what_was_never_asked_for_is_lost_only_where_it_is_asked_for_now(
    store: Store, clock: SetClock
) -> None:
    oldest, market = END - 10 * DAY_S, Long(2)
    with (
        counted(replace(served(market, clock), retention_s=10 * DAY_S)) as service,
        Client(service.base_url, "demo-pro") as client,
    ):
        sync(client, store, market.prices[:1], Interval(END - DAY_S, END))
        younger = plan_load(client, store, market.prices, Interval(END - DAY_S, END))
        older = plan_load(client, store, market.prices, Interval(oldest + 3_600, END))
    assert younger.df["leaves_start_ts"].to_list() == [oldest, None]
    assert younger.leaving_words.startswith("1 stream, up to ")
    assert older.df["leaves_start_ts"].to_list() == [oldest, oldest + 3_600]
    assert older.df["leaves_at"].to_list() == [END, END + 3_600]


def test_a_plan_says_how_long_the_quota_makes_it_wait(store: Store, clock: SetClock) -> None:
    market = Long(9)
    config = Config(market, port=0, clock=clock, quota=6)
    with counted(config) as service, Client(service.base_url, "demo-pro") as client:
        planned = plan_load(client, store, market.prices, Interval(END - HOUR_S, END - 600))
    left, reset_s = planned.allowance.left, planned.allowance.reset_s
    assert (planned.requests, planned.schemas, left) == (9, 2, 4)
    assert planned.wait_s == reset_s + 60
    assert planned.takes_s >= planned.wait_s
    assert "6 per 1 min, 4 left" in planned.quota_words


def test_what_a_load_refuses_before_it_asks_a_plan_refuses_too(
    store: Store, clock: SetClock
) -> None:
    with counted(served(Long(1), clock)) as service, Client(service.base_url, "demo-pro") as client:
        window = Interval(END - HOUR_S, END)
        with pytest.raises(UnknownTrajectoryError):
            plan_load(client, store, [Stream.parse("S1_USDT:AURORA.spot")], window)
        with pytest.raises(InputError, match="1 to 64"):
            plan_load(client, store, [], window, workers=0)
        assert not store.path.exists()
        sync(client, store, [Stream.parse("S0_USDT:AURORA.spot")], window)
    with (
        counted(served(miniature.source(), clock)) as service,
        Client(service.base_url, "demo-pro") as client,
        pytest.raises(StoreSourceError),
    ):
        plan_load(client, store, [Stream.parse("BTC_USDT:AURORA.spot")], window)


def test_a_stream_outside_of_the_plan_is_named(store: Store, clock: SetClock) -> None:
    log = EventLog(EventFamily.SPLASH)
    with (
        counted(served(Long(1), clock)) as service,
        Client(service.base_url, "demo-free") as client,
    ):
        planned = plan_load(client, store, [log], Interval(END - HOUR_S, END))
    assert list(planned.refused) == [log]
    assert planned.requests == 0
    assert planned.df["refused"].item().startswith("events/splash is not in the key's plan")


def test_pages_of_rows_end_where_a_page_shows_an_older_row() -> None:
    assert [pages_of_rows(n, 2, first=False) for n in (0, 1, 2, 3)] == [1, 1, 2, 3]
    assert [pages_of_rows(n, 500, first=True) for n in (0, 1, 500, 501)] == [2, 2, 2, 3]


NOW = 40 * DAY_S
KEYS = ("A_USD:X.spot", "B_USD:X.spot", "events/splash", "events/spread", "snapshot/spread")
STREAMS = [Stream.parse(key) for key in KEYS]
HELD = st.lists(st.tuples(st.integers(0, 39), st.integers(1, 9)), max_size=3)


@given(st.permutations(STREAMS), st.lists(HELD, min_size=4, max_size=4))
def test_what_leaves_the_archive_first_is_asked_for_first(
    streams: list[Stream], held: list[list[tuple[int, int]]]
) -> None:
    edge = Edge(NOW - DAY_S, retention_s=30 * DAY_S, step_s=60)
    ledger = {
        stream: Ledger(edge, [Interval(s * DAY_S, (s + n) * DAY_S) for s, n in parts])
        for stream, parts in zip(STREAMS, held, strict=False)
    }
    wanted = {stream: [Interval(0, NOW)] for stream in streams}
    tasks = plan(BUILT_IN, ledger, wanted, ClockReading(NOW, NOW)).tasks
    logs = [task.deadline for task in tasks if isinstance(task.stream, EventLog)]
    assert logs == sorted(logs), "the archive keeps 30 days of events"
    assert isinstance(tasks[-1].stream, SnapshotLog)
    later = [task.deadline is None for task in tasks]
    assert later == sorted(later), "the histories of this service are kept for ever"


def test_a_load_whose_quota_ends_has_brought_what_would_have_been_lost(
    store: Store, clock: SetClock
) -> None:
    market = Market(2)
    first, second = market.prices
    window = Interval(START, END + 4 * HOUR_S)
    with counted(served(market, clock)) as service, Client(service.base_url, "demo-pro") as client:
        sync(client, store, [first], window)  # the second one has all of it still to come
    clock.moments.append(END + HOUR_S)
    limited = Config(market, port=0, clock=clock, retention_s=3 * HOUR_S, quota=3)
    impatient = RetryPolicy(attempts=1)
    with (
        counted(limited) as service,
        Client(service.base_url, "demo-pro", retries=impatient) as client,
        pytest.raises(QuotaError),
    ):
        sync(client, store, [first, second], window, workers=1)
    assert store.counts(window) == {first: 60, second: 120}
