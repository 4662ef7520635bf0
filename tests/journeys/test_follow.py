"""Live capture under fault: nothing lost, nothing doubled, nothing claimed that is not held.

RAIL_SEEDS sets in how many seeds the worst case is run; `make soak` does it in 20.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.adversary import Adversary, ArchiveSettings, FaultyArchive, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import FollowResult, Pace, follow
from toolkit.market import EventFamily, EventLog, Trajectory
from toolkit.service import Clock, Config, Replay, running
from toolkit.service.events.lives import DetectorSettings, Rule
from toolkit.store import Store
from toolkit.store.file.maintenance import verify
from toolkit.tables import GapStatus
from toolkit.wire.socket_steps import ReconnectPolicy

from .conftest import RAIL, serving
from .kill_loop import KILLS

START = 1_767_225_600
DENSE = ArchiveSettings(
    DetectorSettings(
        spread=Rule(0.5, 0.3, step=0.2, every_s=0, max_age_s=60, lost_after_s=60),
        splash=Rule(1.8, 0.6, step=None, every_s=0, max_age_s=60, lost_after_s=60),
        splash_window_s=30,
    )
)
"""What counts as an event here: almost every move."""


def write_market(folder: Path, *, symbols: int, seconds: int) -> Path:
    """Bars of one second of so many symbols on two legs, in a file of their own."""
    draw = np.random.default_rng(1)
    ts = START + np.arange(seconds)
    frames = [
        pl.DataFrame({"ts": ts, "price": 100.0 * np.exp(draw.normal(0, 4e-3, seconds).round(6))})
        .with_columns(symbol=pl.lit(f"C{number}_USDT"), exchange=pl.lit(leg), market=pl.lit("spot"))
        .with_columns(interval_s=pl.lit(1, pl.Int32), dataset=pl.lit("dense"))
        for number in range(symbols)
        for leg in ("ALPHA", "BETA")
    ]
    folder.mkdir(exist_ok=True)
    pl.concat(frames).write_parquet(folder / "prices.parquet")
    return folder


class Truth:
    """Every document of a stretch, by family, as the service itself would show them."""

    def __init__(self, source: Replay) -> None:
        self.source = source
        self._archive = FaultyArchive(source, DENSE)

    def documents(self, family: EventFamily, start: int, end: int) -> list[bytes]:
        """In order of their bytes."""
        return sorted(body for _, body in self._archive.documents(family, start, end))


def held_documents(frame: pl.DataFrame) -> list[bytes]:
    """The bytes of documents as a store gives them, in order."""
    return sorted(text.encode() for text in frame["document"])


@dataclass(frozen=True)
class HeldClock(Clock):
    """Stands at ``start`` until it is let go, then runs ``speed`` times as fast as time."""

    start: int = START
    speed: float = 1.0
    let_go_at: list[float] = field(default_factory=list)

    def let_go(self) -> None:
        self.let_go_at.append(time.monotonic())

    def now(self) -> int:
        if not self.let_go_at:
            return self.start
        return int(self.start + (time.monotonic() - self.let_go_at[0]) * self.speed)


def warm(client: Client) -> None:
    """Let the service find the events of the market's day before the clock runs."""
    for family in (EventFamily.SPREAD, EventFamily.SPLASH):
        list(client.event_pages(family, Interval(START, START + 2)))


SEEDS = int(os.environ.get("RAIL_SEEDS", "1"))
FAMILIES = (EventFamily.SPREAD, EventFamily.SPLASH)
SPREADS = [Trajectory.parse(f"C{n}_USDT:ALPHA.spot:BETA.spot") for n in range(3)]
SPEED, STREAMED_S, SETTLING_S = 20.0, 180 if SEEDS >= 20 else 120, 70
IMPATIENT = ReconnectPolicy(first_wait_s=0.02, longest_wait_s=0.1)


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    folder = tmp_path_factory.mktemp("market")
    return Truth(Replay.read(write_market(folder, symbols=60, seconds=900)))


def config(truth: Truth, clock: HeldClock, fault: Adversary | None = None, port: int = 0) -> Config:
    fault = fault or Adversary()
    return Config(
        truth.source,
        port=port,
        clock=clock,
        events=DENSE.detectors,
        quota=10**6,
        application=adverse(fault),
    )


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock(start=START + 60, speed=SPEED)


def wait_until(clock: HeldClock, ts: int) -> None:
    while clock.now() < ts:
        time.sleep(0.05)


def captured(
    client: Client,
    store: Store,
    clock: HeldClock,
    policy: ReconnectPolicy = IMPATIENT,
    *,
    streamed_s: int = STREAMED_S,
) -> FollowResult:
    """A follow that is stopped when the archive has settled past what was streamed."""
    stop = threading.Event()

    def end() -> None:
        wait_until(clock, START + 60 + streamed_s + SETTLING_S)
        stop.set()

    ending = threading.Thread(target=end)
    ending.start()
    clock.let_go()
    try:
        return follow(
            client,
            store,
            [*SPREADS, *map(EventLog, FAMILIES)],
            stop=stop,
            pace=Pace(sweep_s=0.5),
            policy=policy,
        )
    finally:
        ending.join()


def assert_whole(truth: Truth, store: Store, start: int, end: int) -> int:
    """Every document and row of the stretch is held, once, as it is; gives how many documents."""
    count = 0
    for family in FAMILIES:
        wanted = truth.documents(family, start, end)
        assert held_documents(store.events(family, Interval(start, end))) == wanted, family
        count += len(wanted)
    for trajectory in SPREADS:
        assert store.series(trajectory, Interval(start, end))["ts"].to_list() == list(
            range(start, end)
        )
    with store.reading() as connection:
        for table in ("event", "spread"):
            revised = connection.sql(f"SELECT count(*) FROM {table} WHERE revision > 0").fetchall()
            assert revised == [(0,)], table
    return count


@pytest.mark.parametrize("seed", range(SEEDS))
def test_under_drops_duplicates_disorder_and_a_late_archive_nothing_is_lost_or_doubled(
    truth: Truth, clock: HeldClock, tmp_path: Path, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    fault = Adversary(
        seed=seed,
        drop_after_s=(0.2, 0.6),
        duplicate_share=0.1,
        reorder_share=0.1,
        archive_lag_s=round(0.25 * SPEED),
    )
    store = Store(tmp_path / "s.duckdb")
    with running(config(truth, clock, fault)) as service, Client(service.base_url, "demo-pro") as c:
        warm(c)
        result = captured(c, store, clock)
    start, end = result.window.start, START + 60 + STREAMED_S
    count = assert_whole(truth, store, start, end)
    assert count >= 30 * STREAMED_S
    assert result.findings == ()
    assert_gaps_tell_the_truth(store)
    with capsys.disabled():
        sys.stdout.write(f"\nseed {seed}: {count} documents, 0 lost; {result}\n")


def assert_gaps_tell_the_truth(store: Store) -> None:
    """There are gaps; one is repaired where the ledger answers for it all, and open elsewhere."""
    gaps = store.gaps().filter(pl.col("end_ts").is_not_null())
    assert gaps.height >= 5
    answered = {stream.key: held.answered for stream, held in store.ledger().items()}
    for stream, start, end, status in (
        gaps.filter(pl.col("stream").str.starts_with("events/"))
        .select("stream", "start_ts", "end_ts", "status")
        .iter_rows()
    ):
        whole = any(i.start <= start and end <= i.end for i in answered[stream])
        assert status == (GapStatus.REPAIRED if whole else GapStatus.OPEN)
    assert GapStatus.REPAIRED in gaps["status"].to_list()


def test_a_mute_socket_that_answers_pings_makes_way_for_one_that_is_heard_and_is_no_gap(
    truth: Truth, clock: HeldClock, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.duckdb")
    fault = Adversary(mute_sockets=3)
    policy = ReconnectPolicy(first_wait_s=0.02, silence_s=1.0)
    with running(config(truth, clock, fault)) as service, Client(service.base_url, "demo-pro") as c:
        warm(c)
        result = captured(c, store, clock, policy, streamed_s=100)
    assert store.gaps().is_empty()
    assert result.messages > 0
    assert_whole(truth, store, result.window.start, START + 160)


def test_accepted_and_closed_at_once_a_follow_tries_fewer_than_twenty_times_a_minute(
    truth: Truth, clock: HeldClock, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.duckdb")
    seconds = 60.0 if SEEDS >= 20 else 6.0
    with (
        running(config(truth, clock, Adversary(accept_then_close=1001))) as service,
        Client(service.base_url, "demo-pro") as client,
    ):
        result = follow(client, store, [EventLog(EventFamily.SPREAD)], duration_s=seconds)
    assert 2 <= result.attempts < 20
    assert {*store.gaps()["cause"]} == {"closed with 1001"}


def test_a_service_restarted_in_the_middle_costs_nothing(
    truth: Truth, clock: HeldClock, tmp_path: Path
) -> None:
    store = Store(tmp_path / "s.duckdb")
    with ThreadPoolExecutor(1) as pool:
        with running(config(truth, clock)) as service:
            client = Client(service.base_url, "demo-pro")
            warm(client)
            capturing = pool.submit(captured, client, store, clock)
            wait_until(clock, START + 120)
        wait_until(clock, START + 140)
        port = int(service.base_url.rpartition(":")[2])
        with running(config(truth, clock, port=port)):
            result = capturing.result()
            client.close()
    assert_whole(truth, store, result.window.start, START + 60 + STREAMED_S)
    assert result.gaps


@pytest.fixture
def streaming(truth: Truth, clock: HeldClock) -> Iterator[dict[str, str]]:
    """A service whose clock runs, and the settings that lead to it."""
    with running(config(truth, clock)) as service, Client(service.base_url, "demo-pro") as client:
        warm(client)
        clock.let_go()
        yield os.environ | {"RAIL_BASE_URL": service.base_url, "RAIL_API_KEY": "demo-pro"}


FOLLOW = [RAIL, "follow", "--since", "2m"]
WATCHLIST = f"""
[follow]
streams = ["{SPREADS[0].key}", "events/spread"]
snapshots = []
sweep_s = 1
"""


def started(environment: dict[str, str], store: Store) -> subprocess.Popen[str]:
    """`rail follow`, when it has held documents for a while."""
    store.path.with_name("rail.toml").write_text(WATCHLIST, encoding="utf-8")
    process = subprocess.Popen(
        [*FOLLOW, "--store", store.path],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not store.path.exists() or not store.ledger():
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_the_command_ends_cleanly_on_a_signal_with_a_last_sweep_and_a_summary(
    streaming: dict[str, str], tmp_path: Path, number: signal.Signals, code: int
) -> None:
    store = Store(tmp_path / "s.duckdb")
    process = started(streaming, store)
    process.send_signal(number)
    said, complained = process.communicate(timeout=300)
    assert process.returncode == code, complained
    (line,) = said.splitlines()
    assert re.fullmatch(r"[\d,]+ new, .* of the archive, 0 snapshots, no gaps; .* dense-.*", line)
    assert store.loads()["finished_at"].null_count() == 0


def test_the_command_ends_by_itself_after_the_time_asked_for(
    streaming: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "rail.toml").write_text(WATCHLIST, encoding="utf-8")
    done = subprocess.run(
        [*FOLLOW, "--for", "1s", "--store", tmp_path / "s.duckdb"],
        env=streaming,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stderr.splitlines()
    assert re.search(r"UTC .*: \d streams? live, \d polled; [\d,]+ rows? new; .* open gaps", line)


def test_a_follow_killed_again_and_again_claims_nothing_that_it_does_not_hold(
    streaming: dict[str, str], truth: Truth, tmp_path: Path
) -> None:
    store, moments = Store(tmp_path / "s.duckdb", wait_s=60), random.Random(20_261_127)
    log = EventLog(EventFamily.SPREAD)
    for _ in range(KILLS):
        process = started(streaming, store)
        while not store.ledger()[log].answered:
            time.sleep(0.1)
        time.sleep(moments.uniform(0, 4))
        process.kill()
        process.communicate()
        claimed = store.ledger()[log].answered
        assert claimed
        for stretch in claimed:
            held = held_documents(store.events(EventFamily.SPREAD, Interval(*stretch)))
            assert held == truth.documents(EventFamily.SPREAD, *stretch)
    assert verify(store) == []


def test_of_two_follows_with_one_lease_one_asks_and_the_other_goes_on_when_it_ends(
    tmp_path: Path,
) -> None:
    lease = tmp_path / "follow.lease"

    def wait_for_rows(store: Store, process: subprocess.Popen[str]) -> None:
        while not (store.path.exists() and store.catalogue()["rows"].sum()):
            assert process.poll() is None
            time.sleep(0.2)

    with serving() as base_url, contextlib.ExitStack() as ending:

        def begun(store: Store) -> subprocess.Popen[str]:
            asked = ("follow", "BTC_USDT:AURORA.spot", "--since", "1h", "--lease", lease)
            where = ("--store", store.path, "--base-url", base_url)
            process = subprocess.Popen([RAIL, *asked, *where], stderr=subprocess.PIPE, text=True)
            ending.enter_context(process)
            ending.callback(process.terminate)
            return process

        stores = [Store(tmp_path / name) for name in ("first.duckdb", "second.duckdb")]
        first = begun(stores[0])
        wait_for_rows(stores[0], first)
        second = begun(stores[1])
        assert second.stderr is not None
        assert f"{lease} is held by " in second.stderr.readline()
        assert not stores[1].path.exists()
        first.terminate()
        assert first.wait(60) == 0
        wait_for_rows(stores[1], second)
    assert second.returncode == 0
