from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from toolkit.client import Client
from toolkit.errors import (
    InputError,
    KeyRefusedError,
    PlanRefusedError,
    StoreSourceError,
    UnknownTrajectoryError,
)
from toolkit.intervals import Interval
from toolkit.loader import FollowProgress, Pace, Since, follow, sync
from toolkit.loader.follow.sweep import Sweeper
from toolkit.loader.sync.sync import Piece
from toolkit.market import EventFamily, EventLog, Family, Source, Stream, Trajectory
from toolkit.service import Config, Simulated, SpedClock, running
from toolkit.store import ARCHIVE, SOCKET, Batch, Gap, LoadOrigin, Store, StoreWriter
from toolkit.tables import GapStatus
from toolkit.wire.exchange import RetryPolicy

from .conftest import QUICK, client_of, until

pytestmark = pytest.mark.slow

START = 1_795_046_400 + 7 * 3_600
SOURCE = Simulated(7)
PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:DRACO.futures")
FUNDING = Trajectory.parse("BTC_USDT:AURORA.spot:DRACO.futures", Family.FUNDING)


def config(source: Simulated = SOURCE, **options: object) -> Config:
    """A service whose minutes last a quarter of a second."""
    settings = {"port": 0, "clock": SpedClock(start=START, speed=240.0), "quota": 10**6, **options}
    return Config(source, **settings)


@pytest.fixture
def base_url() -> Iterator[str]:
    with running(config()) as service:
        yield service.base_url


@pytest.fixture
def client(base_url: str) -> Iterator[Client]:
    with Client(base_url, "demo-pro") as client:
        yield client


def test_rows_and_documents_of_every_kind_are_held_as_a_load_would_hold_them(
    client: Client, store: Store, tmp_path: Path
) -> None:
    trajectories = [PRICE, SPREAD, FUNDING]
    until(lambda p: p.messages >= 40, client, store, [*trajectories, *map(EventLog, EventFamily)])
    loaded = Store(tmp_path / "loaded.duckdb")
    first = store.loads()["served_at"][0]
    last = min(known.answered[-1].end for t, known in store.ledger().items() if known.answered)
    sync(client, loaded, trajectories, Interval(first, last))
    sync(client, loaded, [*map(EventLog, EventFamily)], Interval(first, last))
    for trajectory in trajectories:
        assert store.series(trajectory, Interval(first, last)).equals(
            loaded.series(trajectory, Interval(first, last))
        )
    for family in EventFamily:
        assert store.events(family, Interval(first, last)).equals(
            loaded.events(family, Interval(first, last))
        )
        came = store.arrivals(family, Interval(first, last))
        assert set(came["event_id"]) == set(store.events(family, (first, last))["event_id"])
        assert set(came["channel"]) <= {ARCHIVE, SOCKET}
    assert store.series(PRICE, Interval(first, last)).height > 0


def test_what_a_stream_brought_is_held_before_the_archive_is_asked_again_and_not_claimed(
    client: Client, store: Store
) -> None:
    seen: list[tuple[int, int, int]] = []

    def look(progress: FollowProgress) -> bool:
        if progress.messages >= 8 and not seen:
            claimed = [stretch.end for stretch in store.ledger()[PRICE].answered]
            asked_at = store.ledger()[PRICE].edge.served_at
            seen.append((store.series(PRICE)["ts"].max(), max(claimed, default=0), asked_at))
        return bool(seen)

    until(look, client, store, [PRICE], pace=Pace(sweep_s=600.0))
    ((held, claimed, asked_at),) = seen
    assert held > asked_at >= claimed


def test_loading_after_a_follow_finds_everything_there(client: Client, store: Store) -> None:
    wanted = [PRICE, SPREAD, EventLog(EventFamily.SPREAD)]
    result = until(lambda p: p.messages >= 20, client, store, wanted)
    swept_at = min(known.edge.served_at for known in store.ledger().values())
    window = result.window.start, swept_at - 120  # the service has more of the rest by now
    again = sync(client, store, [PRICE, SPREAD], Interval(*window))
    events = sync(client, store, [EventLog(EventFamily.SPREAD)], Interval(*window))
    assert (again.rows.new, again.rows.revised) == (0, 0)
    assert (events.rows.new, events.rows.revised) == (0, 0)


def test_a_follow_that_comes_back_fills_its_absence(client: Client, store: Store) -> None:
    until(lambda progress: progress.new >= 3, client, store, [PRICE])
    (known,) = store.ledger([PRICE]).values()
    while client.discover() and client.served_at() < known.answered[-1].end + 1_200:
        pass
    until(lambda progress: progress.new >= 25, client, store, [PRICE])
    times = store.series(PRICE)["ts"].to_list()
    assert times == list(range(times[0], times[0] + 60 * len(times), 60))


def test_since_fills_up_what_lies_before_the_beginning(client: Client, store: Store) -> None:
    since = START - 3_600
    until(lambda p: p.new > 60, client, store, [PRICE], since=Since(since))
    times = store.series(PRICE)["ts"].to_list()
    assert times == list(range(since, since + 60 * len(times), 60))


def test_a_sweep_whose_pages_are_not_wanted_any_more_asks_for_no_others(
    client: Client, store: Store
) -> None:
    StoreWriter(store).bind(Source(SOURCE.kind, SOURCE.id))
    came: list[Piece] = []

    def refuse(page: Piece) -> bool:
        came.append(page)
        return False

    sweeper = Sweeper(client, StoreWriter(store), Since(START - 86_400), refuse, workers=1)
    sweeper.sweep([PRICE, SPREAD])
    assert len(came) == 1


def test_a_stream_that_is_still_lost_when_a_follow_ends_has_a_gap_with_an_end(store: Store) -> None:
    stop, listening, lost = (threading.Event() for _ in range(3))

    def look(progress: FollowProgress) -> None:
        if progress.messages:
            listening.set()
        if progress.gaps:
            lost.set()

    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as closing:
        with running(config()) as service:
            impatient = RetryPolicy(attempts=1)
            client = Client(service.base_url, "demo-pro", retries=impatient)
            closing.enter_context(client)
            capturing = pool.submit(
                follow,
                client,
                store,
                [EventLog(EventFamily.SPREAD)],
                stop=stop,
                on_progress=look,
                **QUICK,
            )
            assert listening.wait(60)
        assert lost.wait(60)
        stop.set()
        result = capturing.result()
    (gap,) = store.gaps().iter_rows(named=True)
    assert gap["end_ts"] > gap["start_ts"]
    assert result.gaps == {GapStatus.OPEN: 1}


def held_gap(store: Store, of: Stream, start: int, end: int | None) -> None:
    """A gap that an earlier follow left in the store."""
    writer = StoreWriter(store)
    writer.bind(Source(SOURCE.kind, SOURCE.id))
    load_id = writer.start_load(LoadOrigin("http://h", START, None, "0"))
    batch = Batch()
    batch.gaps[1] = Gap(1, of, start, end, "killed")
    writer.commit(load_id, batch)


@pytest.mark.parametrize("of", [EventLog(EventFamily.SPREAD), PRICE], ids=str)
@pytest.mark.parametrize("end", [START - 1_800, None])
def test_an_open_gap_of_an_earlier_follow_is_asked_for_and_repaired(
    client: Client, store: Store, of: Stream, end: int | None
) -> None:
    held_gap(store, of, START - 2_400, end)

    def repaired(_: FollowProgress) -> bool:
        return store.gaps()["status"].to_list() == [GapStatus.REPAIRED]

    result = until(repaired, client, store, [of])
    assert result.gaps == {}
    (gap,) = store.gaps().iter_rows(named=True)
    assert gap["end_ts"] == end if end else gap["end_ts"] >= START
    assert gap["repaired_load_id"] == store.loads()["load_id"][0]
    known = store.ledger()[of]
    assert any(i.start <= gap["start_ts"] and gap["end_ts"] <= i.end for i in known.answered)


def test_a_plain_load_repairs_a_gap_as_well(client: Client, store: Store) -> None:
    held_gap(store, PRICE, START - 2_400, START - 1_800)
    sync(client, store, [PRICE], Interval(START - 2_400, START - 1_800))
    assert store.gaps()["status"].to_list() == [GapStatus.REPAIRED]


def test_a_gap_that_reaches_beyond_the_plans_depth_is_unrepairable(store: Store) -> None:
    held_gap(store, PRICE, START - 2_400, START - 1_200)
    with client_of(config(retention_s=1_800)) as client:
        sync(client, store, [PRICE], Interval(START - 2_400, START - 1_200))
    (gap,) = store.gaps().iter_rows(named=True)
    assert (gap["status"], gap["repaired_load_id"]) == (GapStatus.UNREPAIRABLE, None)


def held_by_another_process(store: Store, seconds: float) -> threading.Timer:
    """Return when another process holds the store, which it does for so long."""
    holding = (
        "import duckdb, sys, time\n"
        "while True:\n"
        "    try: held = duckdb.connect(sys.argv[1]); break\n"
        "    except duckdb.IOException: time.sleep(0.001)\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", holding, str(store.path)]
    other = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout is not None
    assert other.stdout.readline() == "held\n"
    releasing = threading.Timer(seconds, other.communicate)
    releasing.start()
    return releasing


def test_a_store_that_is_held_when_a_follow_ends_is_waited_for_as_well(
    client: Client, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.duckdb", wait_s=0.1)
    others: list[threading.Timer] = []
    came: list[int] = []

    def look(progress: FollowProgress) -> bool:
        if came:
            others.append(held_by_another_process(store, 0.5))
        came.extend([progress.messages] if progress.messages else [])
        return bool(came)

    until(look, client, store, [PRICE])
    for releasing in others:
        releasing.join()
    assert others
    assert store.loads()["finished_at"].null_count() == 0


def test_a_store_that_another_process_holds_is_waited_for_and_nothing_is_lost(
    client: Client, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.duckdb", wait_s=0.2)
    others: list[threading.Timer] = []

    def look(progress: FollowProgress) -> bool:
        if progress.messages and not others:
            others.append(held_by_another_process(store, 1.5))
        return progress.messages >= 40

    result = until(look, client, store, [PRICE])
    assert {"store_locked"} <= {finding.kind for finding, _ in result.findings}
    times = store.series(PRICE)["ts"].to_list()
    assert times == list(range(times[0], times[0] + 60 * len(times), 60))
    assert len(times) >= 30


def test_another_source_behind_the_address_ends_the_follow_before_it_is_heard(store: Store) -> None:
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as closing:
        with running(config()) as service:
            client = closing.enter_context(Client(service.base_url, "demo-pro"))
            listening = threading.Event()
            capturing = pool.submit(
                follow,
                client,
                store,
                [PRICE, EventLog(EventFamily.SPREAD)],
                **QUICK,
                on_progress=lambda p: listening.set() if p.messages else None,
            )
            assert listening.wait(60)
        port = int(service.base_url.rpartition(":")[2])
        with running(config(Simulated(8), port=port)), pytest.raises(StoreSourceError):
            capturing.result()


@pytest.mark.parametrize(
    ("key", "what", "error"),
    [
        ("demo-free", ["snapshot/spread", "snapshot/funding"], PlanRefusedError),
        ("wrong", [PRICE.key], KeyRefusedError),
        ("demo-pro", ["BTC_USDT:NOWHERE.spot"], UnknownTrajectoryError),
        ("demo-pro", [], InputError),
    ],
)
def test_what_waiting_does_not_mend_ends_a_follow(
    base_url: str, store: Store, key: str, what: list[str], error: type[Exception]
) -> None:
    with Client(base_url, key) as client, pytest.raises(error):
        follow(client, store, [*map(Stream.parse, what)])
    assert not store.path.exists() or store.gaps().is_empty()
    for thread in threading.enumerate():
        if thread.name == "rail-sweeps":  # it may still wait for an answer
            thread.join(60)
            assert not thread.is_alive()
