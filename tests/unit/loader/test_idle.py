"""A load of which little or nothing is new asks little or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from tests import miniature
from tests.counting import Counted, SetClock, counted
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import LoadResult, sync
from toolkit.market import EventFamily, EventLog, Leg, Stream, Trajectory
from toolkit.service import Bars, Config
from toolkit.service.market.source import Whole
from toolkit.store import Store
from toolkit.wire.quota import Requests
from toolkit.workspace.holdings import stream_states

START, HOUR_S = 1_767_225_600, 3_600
END = START + HOUR_S
LEG = Leg.parse("AURORA.spot")


@dataclass(frozen=True)
class Market(Whole):
    """So many symbols on one leg, a bar every ``interval_s`` until ``until``.

    Some end at a time of their own, and some have no bar for ten minutes.
    """

    symbols: int
    interval_s: int = 60
    until: int = END + HOUR_S
    kind: str = "simulated"
    id: str = "many"
    ends: dict[str, int] = field(default_factory=dict)
    holes: tuple[str, ...] = ()

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        return {f"S{n}_USDT": (LEG,) for n in range(self.symbols)}

    def bars(self, symbol: str, _leg: Leg) -> Bars:
        before = START - 2 * HOUR_S
        ts = np.arange(before, self.ends.get(symbol, self.until), self.interval_s)
        if symbol in self.holes:
            ts = ts[(ts < END - 1_800) | (ts >= END - 1_200)]
        return Bars(ts=ts, price=1.0 + np.arange(ts.size), interval_s=self.interval_s)

    @property
    def prices(self) -> list[Trajectory]:
        return [Trajectory.parse(f"{symbol}:{LEG}") for symbol in self.listing]


@pytest.fixture
def clock() -> SetClock:
    return SetClock(moments=[END + 17])


def served(source: object, clock: SetClock) -> Config:
    return Config(source, port=0, clock=clock, quota=1_000_000)


def load(service: Counted, store: Store, streams: list[Stream], window: Interval) -> LoadResult:
    service.taken()
    with Client(service.base_url, "demo-pro") as client:
        return sync(client, store, streams, window)


@pytest.mark.parametrize("symbols", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_a_repeated_load_asks_nothing_at_one_clock_and_one_page_each_after_a_minute(
    store: Store, clock: SetClock, symbols: int
) -> None:
    market, window = Market(symbols), Interval(START, END + HOUR_S)
    with counted(served(market, clock)) as service:
        first = load(service, store, market.prices, window)
        asked = service.taken()
        assert (asked["search"], asked["price"]) == (1, symbols)
        same = load(service, store, market.prices, window)
        assert service.taken() == {"schemas": 1}
        clock.moments.append(clock.now() + 60)
        later = load(service, store, market.prices, window)
        assert service.taken()["price"] == symbols
    assert first.requests == Requests(history=symbols, symbols=1, schemas=asked["schemas"])
    assert (same.requests, same.pages, same.rows.new) == (Requests(schemas=1), 0, 0)
    assert (later.requests.history, later.re_asked, later.rows.new) == (symbols, 0, symbols)


HOURLY = ((43, False), (44, True), (3_582, False), (3_583, True), (3_643, False), (3_644, True))


@pytest.mark.parametrize(
    ("interval_s", "looks"),
    [(60, ((42, False), (43, True))), pytest.param(HOUR_S, HOURLY, marks=pytest.mark.slow)],
)
def test_nothing_is_asked_before_the_next_bar_is_due_or_one_becomes_final(
    store: Store, clock: SetClock, interval_s: int, looks: tuple[tuple[int, bool], ...]
) -> None:
    market, window = Market(2, interval_s), Interval(START - HOUR_S, END + 2 * HOUR_S)
    with counted(served(market, clock)) as service:
        load(service, store, market.prices, window)
        for later_s, asked in looks:
            clock.moments.append(END + 17 + later_s)
            load(service, store, market.prices, window)
            assert ("price" in service.taken()) == asked
            assert stream_states(store)["answered_share"].to_list() == [1.0, 1.0]


def test_a_trajectory_whose_rows_are_late_is_asked_for_at_each_new_second(
    store: Store, clock: SetClock
) -> None:
    market = Market(2, ends={"S1_USDT": END - 600})
    with counted(served(market, clock)) as service:
        for later_s, asked in ((0, 2), (0, 0), (1, 1)):
            clock.moments.append(clock.now() + later_s)
            load(service, store, market.prices, Interval(START, END + HOUR_S))
            assert service.taken().get("price", 0) == asked


def test_what_was_outside_of_the_window_before_is_asked_for(store: Store, clock: SetClock) -> None:
    market = Market(1)
    with counted(served(market, clock)) as service:
        for end, rows in ((END - 103, 59), (END, 1), (END, 0)):  # the first ends with what is final
            assert load(service, store, market.prices, Interval(START, end)).rows.new == rows
    assert store.series(market.prices[0]).height == HOUR_S // 60


@pytest.mark.parametrize(
    "before", [[(START, END + 10)], [(START, END - 30), (END, END + 17)]], ids=["after", "between"]
)
def test_what_loads_left_out_of_the_newest_minutes_makes_nothing_missing(
    store: Store, clock: SetClock, before: list[tuple[int, int]]
) -> None:
    market = Market(1)
    with counted(served(market, clock)) as service:
        for window in before:
            load(service, store, market.prices, Interval(*window))
        clock.moments.append(clock.now() + 8)
        load(service, store, market.prices, Interval(START, END + 25))
    states = store.coverage(market.prices[0], Interval(START, END + 25))["state"].to_list()
    assert states == ["held", "not yet known"]


def test_a_log_asks_nothing_at_one_clock_and_one_page_after_a_minute_also_at_midnight(
    store: Store, clock: SetClock
) -> None:
    log = [EventLog(EventFamily.SPREAD)]
    clock.moments.append(miniature.END - 90)
    window = Interval(miniature.START, miniature.END)
    with counted(served(miniature.source(), clock)) as service:
        load(service, store, log, window)
        asked = []
        for later_s in (0, 60):
            clock.moments.append(clock.now() + later_s)
            load(service, store, log, window)
            asked.append(service.taken().get("spread-events", 0))
    assert asked == [0, 1]


def test_what_may_have_arrived_late_is_asked_for_again_and_counted_apart(
    store: Store, clock: SetClock
) -> None:
    market = Market(3, holes=("S1_USDT",))
    window = Interval(START, END - 600)
    with counted(served(market, clock)) as service:
        load(service, store, market.prices, window)
        clock.moments.append(clock.now() + 130)
        again = load(service, store, market.prices, window)
    assert (again.requests.history, again.pages, again.re_asked) == (1, 1, 1)
    assert again.requests_counted.endswith("; 1 page asked for again")
