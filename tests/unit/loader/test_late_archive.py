"""An archive that is late, quiet or of another day loses nothing that it shows in the end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path

import polars as pl
import pytest

from tests import counting
from tests.adversary import Adversary, adverse
from toolkit.intervals import Interval
from toolkit.loader import sync
from toolkit.loader.sync.sync import load_origin
from toolkit.market import EventFamily, EventLog, Stream
from toolkit.service import Config, Replay
from toolkit.service.events.archive import EventArchive
from toolkit.store import Batch, Store, StoreWriter

from .conftest import client_of

SPREADS = EventLog(EventFamily.SPREAD)
PRICE = Stream.parse("BTC_USDT:KRAKEN.spot")
START = 1_767_225_600
HOURS = 10
HOUR_S, DAY_S = 3_600, 86_400


def market(folder: Path, start: int) -> Replay:
    """Two legs of ten hours whose spread opens and closes every other minute."""
    ts = range(start, start + HOURS * HOUR_S, 60)
    far = [103.0 if ts // 120 % 2 else 100.0 for ts in ts]
    legs = {"KRAKEN": [100.0] * len(ts), "COINBASE": far}
    same = {"symbol": "BTC_USDT", "market": "spot", "interval_s": 60, "dataset": "square"}
    rows = [
        {"ts": at, "exchange": name, "price": price, **same}
        for name, prices in legs.items()
        for at, price in zip(ts, prices, strict=True)
    ]
    path = folder / "prices.parquet"
    pl.DataFrame(rows).with_columns(pl.col("interval_s").cast(pl.Int32)).write_parquet(path)
    return Replay.read(path)


@dataclass(frozen=True)
class SetClock(counting.SetClock):
    """A clock that shows the last of its moments, and a Date header that may be wrong."""

    date_off_s: list[int] = field(default_factory=lambda: [0])

    def http_date(self) -> str:
        return formatdate(self.now() + self.date_off_s[-1], usegmt=True)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Replay:
    return market(tmp_path_factory.mktemp("market"), START)


def truth(source: Replay, start: int, end: int) -> list[str]:
    found = EventArchive(source).documents(EventFamily.SPREAD, start, end)
    return sorted(body.decode() for _, body in found)


def held(store: Store, start: int, end: int) -> list[str]:
    return sorted(store.events(EventFamily.SPREAD, Interval(start, end))["document"])


@pytest.mark.parametrize(
    ("lag_s", "every_s", "times"),
    [
        (600, HOUR_S, 5),
        pytest.param(120, 60, 15, marks=pytest.mark.slow),
        pytest.param(300, 600, 12, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_late_archive_loses_nothing_however_often_it_is_asked(
    lag_s: int, every_s: int, times: int, store: Store, source: Replay
) -> None:
    clock, end = SetClock([START]), START + every_s * times
    config = Config(
        source, port=0, clock=clock, application=adverse(Adversary(archive_lag_s=lag_s))
    )
    with client_of(config) as client:
        for now in range(START + every_s, end + 1, every_s):
            clock.moments.append(now)
            sync(client, store, [SPREADS], Interval(START, now))
        clock.moments.append(end + 5_000)
        sync(client, store, [SPREADS], Interval(START, end))
    assert len(truth(source, START, end)) > 5
    assert held(store, START, end) == truth(source, START, end)


@pytest.mark.slow
def test_an_archive_that_shows_everything_a_day_late_is_asked_until_then(
    store: Store, source: Replay
) -> None:
    clock, end = SetClock(moments=[START + HOUR_S]), START + HOUR_S
    lag = Adversary(archive_lag_s=20 * HOUR_S)
    with client_of(Config(source, port=0, clock=clock, application=adverse(lag))) as client:
        for after_s in (0, 60, 120, 700, 4_000, 22_000, 86_500):
            clock.moments.append(end + after_s)
            sync(client, store, [SPREADS], Interval(START, end))
    assert held(store, START, end) == truth(source, START, end)
    assert Store(store.path).ledger()[SPREADS].edge.late_s > 5 * HOUR_S


@pytest.mark.slow
def test_an_empty_answer_is_asked_for_again_at_growing_ages_and_not_in_between(
    store: Store, source: Replay
) -> None:
    clock = SetClock(moments=[START + 2 * DAY_S])
    asked = []
    with client_of(Config(source, port=0, clock=clock)) as client:
        for after_s in (0, 60, 130, 300, 700, 2_000, 4_000, 22_000, 30_000, 87_000, 10 * DAY_S):
            clock.moments.append(START + 2 * DAY_S + after_s)
            done = sync(client, store, [PRICE], Interval(START - DAY_S, START))
            asked.append((after_s, done.pages > 0))
    assert [after_s for after_s, pages in asked if pages] == [
        0, 130, 700, 4_000, 22_000, 87_000, 10 * DAY_S
    ]  # fmt: skip


@pytest.mark.slow
def test_a_wrong_date_header_closes_nothing_of_the_future(store: Store, tmp_path: Path) -> None:
    now = int(time.time()) // 120 * 120
    source = market(tmp_path, now - 5 * HOUR_S)
    clock = SetClock(moments=[now], date_off_s=[5 * DAY_S])
    wanted = Interval(now - 5 * HOUR_S, now + 5 * HOUR_S)
    with client_of(Config(source, port=0, clock=clock)) as client:
        sync(client, store, [PRICE, SPREADS], wanted)
        clock.date_off_s.append(0)
        clock.moments.append(now + 6 * HOUR_S)
        sync(client, store, [PRICE, SPREADS], wanted)
    assert store.series(PRICE)["ts"].to_list() == list(range(*wanted, 60))
    assert held(store, *wanted) == truth(source, *wanted)


def test_a_clock_that_jumps_is_a_finding_and_closes_nothing(store: Store, tmp_path: Path) -> None:
    now = int(time.time()) // 120 * 120
    source = market(tmp_path, now - 5 * HOUR_S)
    clock = SetClock(moments=[now])
    early, late = Interval(now - 5 * HOUR_S, now - 4 * HOUR_S), Interval(now - HOUR_S, now + DAY_S)
    with client_of(Config(source, port=0, clock=clock)) as client:
        first = sync(client, store, [SPREADS], early)
        clock.date_off_s.append(5 * DAY_S)
        jumped = sync(client, store, [SPREADS], late)
    newest = store.events(EventFamily.SPREAD, late)["ts"].max()
    assert [finding.kind for finding, _ in first.findings] == []
    assert [finding.kind for finding, _ in jumped.findings] == ["clock_jumped"]
    assert store.ledger()[SPREADS].answered[-1].end <= newest


@pytest.mark.slow
def test_again_asks_for_all_of_the_window(store: Store, source: Replay) -> None:
    clock, window = SetClock(moments=[START + 2 * DAY_S]), Interval(START, START + HOUR_S)
    with client_of(Config(source, port=0, clock=clock)) as client:
        done = [
            sync(client, store, [PRICE, SPREADS], window, again=again).rows
            for again in (False, False, True)
        ]
    first, second, third = done
    assert (second.new, second.repeated) == (0, 0)
    assert (third.new, third.revised, third.repeated) == (0, 0, first.new)


def test_a_document_that_only_a_stream_brought_keeps_the_archive_s_answer_open(
    store: Store, source: Replay
) -> None:
    end = START + HOUR_S
    clock = SetClock(moments=[end + HOUR_S])
    with client_of(Config(source, port=0, clock=clock)) as client:
        pages = list(client.event_pages(EventFamily.SPREAD, Interval(START, end)))
    heard = pl.concat([page.frame for page in pages]).sort("ts")[-3:]
    lag = Adversary(archive_lag_s=HOUR_S + 1_000)
    writer = StoreWriter(store)
    with client_of(Config(source, port=0, clock=clock, application=adverse(lag))) as client:
        writer.bind(client.profile().source)
        batch = Batch(documents=[heard])
        writer.commit(writer.start_load(load_origin(client, clock.now())), batch)
        sync(client, store, [SPREADS], Interval(START, end))
    assert store.ledger()[SPREADS].answered == [(START, heard["ts"][0])]
