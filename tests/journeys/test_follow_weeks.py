"""`rail follow` left alone for weeks of the service's time, which a stepped clock makes short.

RAIL_FOLLOW_DAYS sets how long the long absence is told of (45; 2 by default), RAIL_POLLED_HOURS how
long snapshots are polled (168; 1 by default). `make soak` runs both in full.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.adversary import Accident, Adversary, RestSwitches, adverse
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import FollowResult, Pace, Since, follow
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Stream, Trajectory
from toolkit.service import Clock, Config, Replay, running
from toolkit.store import Store
from toolkit.tables import LedgerState
from toolkit.wire.exchange import Failure, Request, Response, RetryPolicy
from toolkit.workspace import Workspace

_LOOK_S = 0.002


@dataclass(frozen=True)
class SteppedClock(Clock):
    """Reads ``start`` (s) until all ``parties`` wait. Then it jumps to the first of their times."""

    start: int = 0
    parties: int = 2
    _moved: list[float] = field(default_factory=lambda: [0.0])
    _waiting: dict[int, float] = field(default_factory=dict)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def now(self) -> int:
        return int(self.start + self._moved[0])

    def seconds(self) -> float:
        """Seconds since it began."""
        return self._moved[0]

    def jump(self, seconds: float) -> None:
        """Let time pass in which nobody follows."""
        with self._changed:
            self._moved[0] += seconds

    def wait(self, event: threading.Event, seconds: float) -> None:
        """Wait for an event, or until the clock has come so far."""
        me = threading.get_ident()
        with self._changed:
            due = self._waiting[me] = self._moved[0] + seconds
            while self._moved[0] < due and not event.is_set():
                first = min(self._waiting.values())
                if len(self._waiting) >= self.parties and first > self._moved[0]:
                    self._moved[0] = first
                    self._changed.notify_all()
                else:
                    self._changed.wait(_LOOK_S)
            self._waiting.pop(me)

    def pace(self, **seconds: float) -> Pace:
        """The pace of a follow that waits by this clock."""
        return Pace(clock=self.seconds, wait=self.wait, **seconds)


def wait_until(clock: SteppedClock, ts: int) -> None:
    """Wait in another thread until the clock has come to a moment (s)."""
    while clock.now() < ts:
        time.sleep(_LOOK_S)


pytestmark = pytest.mark.slow

DAY_S = 86_400
START = 1_680_307_200
DAYS = int(os.environ.get("RAIL_FOLLOW_DAYS", "2"))
HOURS = int(os.environ.get("RAIL_POLLED_HOURS", "1"))
LEGS = ("ALPHA", "BETA", "GAMMA")
QUICK = RetryPolicy(first_wait_s=0.01, longest_wait_s=0.05)


class Counting(Client):
    """A client that counts what it asks for, by the last part of the path."""

    def __init__(self, base_url: str) -> None:
        super().__init__(base_url, "demo-builder", retries=QUICK)
        self.asked = Counter[str]()

    def _send(self, request: Request) -> Response | Failure:
        self.asked[request.path.rpartition("/")[2]] += 1
        return super()._send(request)


def market(folder: Path, *, seconds: int, step_s: int) -> Replay:
    """Bars of two symbols on three futures legs, and what each settles every eight hours."""
    draw = np.random.default_rng(7)
    ts = START + np.arange(0, seconds, step_s)
    settled = START + np.arange(0, seconds, 8 * 3_600)
    prices, rates = [], []
    for symbol in ("BTC_USDT", "ETH_USDT"):
        for leg in LEGS:
            names = {"symbol": pl.lit(symbol), "exchange": pl.lit(leg), "dataset": pl.lit("weeks")}
            walk = 100.0 * np.exp(draw.normal(0, 2e-3, len(ts)).round(6))
            prices.append(
                pl.DataFrame({"ts": ts, "price": walk}).with_columns(
                    market=pl.lit("futures"), interval_s=pl.lit(step_s, pl.Int32), **names
                )
            )
            drawn = draw.normal(0, 1e-4, len(settled)).round(8)
            rates.append(
                pl.DataFrame({"ts": settled, "rate": drawn}).with_columns(
                    interval_hours=pl.lit(8.0), **names
                )
            )
    pl.concat(prices).write_parquet(folder / "prices.parquet")
    pl.concat(rates).write_parquet(folder / "funding.parquet")
    return Replay.read(folder)


def followed(
    client: Client,
    store: Store,
    streams: list[Stream],
    clock: SteppedClock,
    end: int,
    **pace: float,
) -> FollowResult:
    """A follow from now on, until the service's clock has come to ``end`` (s)."""
    stop = threading.Event()

    def stop_then() -> None:
        wait_until(clock, end)
        stop.set()

    ending = threading.Thread(target=stop_then)
    ending.start()
    try:
        return follow(
            client, store, streams, since=Since(clock.now()), stop=stop, pace=clock.pace(**pace)
        )
    finally:
        ending.join()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "market"
    folder.mkdir()
    return folder


def test_after_weeks_of_absence_lost_is_exactly_what_the_archive_dropped_and_the_ledger_says_so(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = DAYS * DAY_S
    retention_s, down_at = seconds // 6, START + seconds * 2 // 9
    up_at = down_at + seconds * 4 // 9  # 20 days of 45
    source = market(folder, seconds=seconds + DAY_S, step_s=60)
    clock = SteppedClock(start=START + 3_600, parties=1)
    streams: list[Stream] = [
        Trajectory.parse("BTC_USDT:ALPHA.futures"),
        Trajectory.parse("BTC_USDT:ALPHA.futures:BETA.futures"),
    ]
    store = Store(tmp_path / "rail.duckdb")
    config = Config(source, port=0, clock=clock, quota=10**6, retention_s=retention_s)
    with running(config) as service, Counting(service.base_url) as client:
        before = followed(client, store, streams, clock, down_at, sweep_s=3_600)
        held_to = {s: known.answered[-1].end for s, known in store.ledger().items()}
        clock.jump(up_at - clock.now())
        back_at = clock.now()
        after = followed(client, store, streams, clock, START + seconds, sweep_s=3_600)
        end = min(known.answered[-1].end for known in store.ledger().values())
        lost = {each: Interval(held_to[each], back_at - retention_s) for each in streams}
        for each in streams:
            assert after.lost_s[each] == lost[each].length_s
            states = store.coverage(each, Interval(before.window.start, end))
            gone = states.filter(state=LedgerState.UNRECOVERABLE.value)
            assert gone.select("start_ts", "end_ts").rows() == [tuple(lost[each])]
            assert set(states["state"]) == {"held", "unrecoverable"}
            every = range(-(-before.window.start // 60) * 60, end, 60)
            wanted = [ts for ts in every if not lost[each].start <= ts < lost[each].end]
            held = store.series(each, Interval(before.window.start, end))["ts"]
            inside = held.is_between(*lost[each], closed="left")
            assert held.filter(~inside).to_list() == wanted
            assert (held.filter(inside) < down_at + 3_600).all()  # seen once, and never final
    with capsys.disabled():
        gone = lost[streams[0]].length_s
        sys.stdout.write(f"\n{DAYS} days, {gone:,} s lost of {back_at - down_at:,} s down\n")


def test_a_week_of_snapshots_covers_each_tracked_spread_and_rate_at_two_requests_per_minute(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = market(folder, seconds=HOURS * 3_600 + 2 * DAY_S, step_s=60)
    clock = SteppedClock(start=START + DAY_S)
    kinds = (SnapshotKind.SPREAD, SnapshotKind.FUNDING)
    streams = [*map(EventLog, EventFamily), *map(SnapshotLog, kinds)]
    store = Store(tmp_path / "rail.duckdb")
    fault = RestSwitches(
        accidents=(
            Accident("503", every=97, retry_after="none"),
            Accident("500", every=2_000, routes=("dashboards/spread",)),
        )
    )
    config = Config(
        source, port=0, clock=clock, quota=10**6, application=adverse(Adversary(rest=fault))
    )
    end = clock.now() + HOURS * 3_600
    began = clock.now()
    with running(config) as service, Counting(service.base_url) as client:
        result = followed(client, store, streams, clock, end, sweep_s=900)
        asked = client.asked
    due = (clock.now() - began) // 60 + 1
    lines = []
    catalogue, rail = store.catalogue(), Workspace(client, store)
    for kind in kinds:
        polls = store.polls(kind)
        assert set(polls["period_s"]) == {60}
        minutes = {(at - began) // 60 for at in polls["ts"]}
        assert len(minutes) == polls.height <= due
        keys = catalogue.filter(kind=f"snapshot-{kind}")["stream"].to_list()
        assert keys
        series = [rail.series(key, began, clock.now() + 1).coverage() for key in keys]
        of_each = pl.concat(series)
        assert (of_each["n"] + of_each["not_tracked"]).unique().to_list() == [len(minutes)]
        assert of_each["n_expected"].unique().to_list() == [due]
        assert of_each["coverage"].min() >= 0.999
        lines.append(
            f"{kind}: {len(keys)} tracked, {len(minutes):,} of {due:,} polls answered "
            f"({len(minutes) / due:.3%}), each tracked in {of_each['n'].min():,} of them or more"
        )
    polls = asked.pop("spread") + asked.pop("funding-overview")
    assert polls <= 2 * due * 1.02  # what a fault made it ask again
    assert result.missed <= 2 * due // 1_000
    assert not result.lost_s
    with capsys.disabled():
        others = ", ".join(f"{count:,} {name}" for name, count in sorted(asked.items()))
        rate = f"{polls / due:.3f} snapshots per minute; besides {others}"
        sys.stdout.write("\n" + "\n".join([*lines, rate, str(result), ""]))
