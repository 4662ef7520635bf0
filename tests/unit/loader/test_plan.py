"""What a load asks for, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.counting import SetClock, counted
from tests.unit.loader.test_idle import END, HOUR_S, START, Market, served
from toolkit.client import Client
from toolkit.errors import QuotaError
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.sync.plan import ClockReading, plan
from toolkit.market import EventLog, SnapshotLog, Stream
from toolkit.service import Config
from toolkit.store import Edge, Ledger, Store
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.profile.profile import BUILT_IN

DAY_S = 86_400
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


def test_a_load_whose_quota_ends_has_brought_what_would_have_been_lost(tmp_path: Path) -> None:
    store, market = Store(tmp_path / "rail.duckdb"), Market(2)
    first, second = market.prices
    clock, window = SetClock(moments=[END]), Interval(START, END + 4 * HOUR_S)
    with counted(served(market, clock)) as service, Client(service.base_url, "demo-pro") as client:
        sync(client, store, [first], window)  # the second one has all of it still to come
    clock.moments.append(END + HOUR_S)
    limited = Config(market, port=0, clock=clock, retention_s=3 * HOUR_S, quota=3)  # type: ignore[arg-type]  # a test's own
    impatient = RetryPolicy(attempts=1)
    with (
        counted(limited) as service,
        Client(service.base_url, "demo-pro", retries=impatient) as client,
        pytest.raises(QuotaError),
    ):
        sync(client, store, [first, second], window, workers=1)
    assert store.counts(window) == {first: 60, second: 120}
