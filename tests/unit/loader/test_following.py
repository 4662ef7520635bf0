"""A follow that nobody watches: rules that change, a service that fails, a file that is gone."""

from __future__ import annotations

import queue
import resource
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests import miniature
from tests.adversary import Accident, Adversary, RestSwitches, adverse
from tests.unit.store.conftest import faults_of
from toolkit.client import Client
from toolkit.errors import (
    InputError,
    KeyRefusedError,
    PlanRefusedError,
    StoreError,
    StoreSourceError,
    UnavailableError,
)
from toolkit.loader import FollowProgress, FollowResult, Pace, Since, follow
from toolkit.loader.follow.capture import Inbox
from toolkit.loader.follow.follow import Followed
from toolkit.loader.follow.reader import Message
from toolkit.loader.follow.sweep import SnapshotPolls
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Stream, Trajectory
from toolkit.service import Clock, Config, SpedClock
from toolkit.store import Store, StoreWriter
from toolkit.wire.exchange import RetryPolicy
from toolkit.wire.findings import Finding
from toolkit.wire.limits import Limits

from . import conftest
from .conftest import QUICK, client_of

NOW = miniature.END
FIRST, SECOND = (Trajectory.parse(f"BTC_USDT:{leg}.spot") for leg in ("AURORA", "BOREAS"))
SPREADS = SnapshotLog(SnapshotKind.SPREAD)
RETRIES = RetryPolicy(attempts=2, first_wait_s=0.01)


def config(**options: object) -> Config:
    settings = {"port": 0, "clock": Clock(fixed_at=NOW), "quota": 10**6, **options}
    return Config(miniature.source(), **settings)


def failing(*accidents: Accident) -> Adversary:
    return Adversary(rest=RestSwitches(accidents=accidents))


@pytest.fixture
def client() -> Iterator[Client]:
    with client_of(config(), "demo-builder") as client:
        yield client


class Changing:
    """Rules that name one stream, then another as well, then the other alone."""

    snapshots = (SPREADS,)

    def __init__(self) -> None:
        self.read = 0

    def __call__(self, documents: Mapping[SnapshotKind, str]) -> dict[Stream, str]:
        assert "items" in documents[SnapshotKind.SPREAD]
        self.read += 1
        named = {1: [FIRST], 2: [FIRST, SECOND]}.get(self.read, [SECOND])
        return dict.fromkeys([SPREADS, *named], f"reading {self.read}")

    def lately(self, now: int) -> dict[Stream, tuple[str, int]]:
        assert now > miniature.START
        return {}


def until(*how: object) -> tuple[FollowResult, list[str]]:
    """A follow of the last hour that is stopped when it has come far enough, and what it said."""
    said: list[str] = []
    return conftest.until(*how, since=Since(back_s=3_600), on_note=said.append), said


@pytest.mark.slow
def test_what_a_rule_names_later_is_followed_and_what_none_names_any_more_stays_for_its_time(
    client: Client, store: Store
) -> None:
    rules = Changing()
    done, said = until(lambda _: rules.read > 3, client, store, rules)
    assert set(done.followed) == {SPREADS, FIRST, SECOND}
    assert any("1 stream more is followed: BTC_USDT:BOREAS.spot" in line for line in said)
    assert any("named by no rule any more, followed until 2026-11-05" in line for line in said)
    held = dict(store.catalogue().select("stream", "rows").iter_rows())
    assert held[FIRST.key] == 60
    assert held[SECOND.key] > 30
    assert done.snapshots > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["500", "429", "reset"])
def test_a_service_that_fails_for_a_while_is_waited_for_and_that_is_said_once(
    store: Store, kind: str
) -> None:
    routes = ("history/price", "dashboards/spread")
    fault = failing(Accident(kind, times=4, routes=routes))
    once = RetryPolicy(attempts=1)
    with client_of(config(application=adverse(fault)), "demo-builder", retries=once) as client:
        done, said = until(
            lambda p: p.behind_s == 0 and p.snapshots > 0, client, store, [FIRST, SPREADS]
        )
    assert store.catalogue().filter(stream=FIRST.key)["rows"].item() == 60
    assert done.missed > 0
    assert len(said) == len(set(said)) <= 3
    assert {"snapshot_missed", "sweep_failed"} >= {finding.kind for finding, _ in done.findings}


def test_a_stream_that_is_refused_stops_no_other(store: Store) -> None:
    fault = failing(Accident("404", routes=("history/price",)))
    with client_of(config(application=adverse(fault)), "demo-builder") as client:
        pair = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
        done, said = until(lambda p: p.behind_s == 0, client, store, [FIRST, pair])
    assert list(done.refused) == [FIRST]
    assert sum("not asked for any more" in line for line in said) == 1
    assert store.catalogue().filter(stream=pair.key)["rows"].item() > 30


def test_once_raises_what_a_follow_would_wait_for(store: Store) -> None:
    fault = failing(Accident("503", retry_after="none", routes=("history/price",)))
    with (
        client_of(config(application=adverse(fault)), "demo-builder", retries=RETRIES) as client,
        pytest.raises(UnavailableError),
    ):
        follow(client, store, [FIRST], since=Since(back_s=600), once=True)


def test_a_key_that_is_refused_later_ends_the_follow(store: Store) -> None:
    fault = failing(Accident("401", routes=("dashboards/spread",)))
    with (
        client_of(config(application=adverse(fault)), "demo-builder") as client,
        pytest.raises(KeyRefusedError),
    ):
        follow(client, store, [SPREADS], **QUICK)


def test_a_sweep_asks_nothing_more_once_the_key_is_refused(store: Store) -> None:
    fault = failing(Accident("401", routes=("history/price",)))
    with client_of(config(application=adverse(fault)), "demo-builder") as client:
        with pytest.raises(KeyRefusedError):
            follow(client, store, [FIRST, SECOND], since=Since(back_s=600), once=True, workers=1)
        assert client.requests.history == 1


def test_a_snapshot_outside_the_plan_is_asked_for_once() -> None:
    found: list[Finding] = []
    with client_of(config(), "demo-free") as client:
        polls = SnapshotPolls(client, Pace(), found.append, patient=True)
        polls.ask_for([SPREADS])
        assert polls.poll() == polls.poll() == []
        polls.ask_for([SPREADS])
        assert polls.next_due is None
    assert [finding.kind for finding in found] == ["snapshot_refused"]
    assert isinstance(polls.refused[SPREADS], PlanRefusedError)


def test_polls_lie_on_a_grid_and_those_that_time_passed_over_are_missed(client: Client) -> None:
    now = [0.0]
    pace = Pace(poll_s=60.0, clock=lambda: now[0])
    polls = SnapshotPolls(client, pace, lambda _: None, patient=True)
    polls.ask_for([SPREADS])
    for at, due, missed in ((0.0, 60.0, 0), (61.0, 120.0, 0), (130.0, 180.0, 0), (400.0, 420.0, 3)):
        now[0] = at
        assert len(polls.poll()) == 1
        assert (polls.next_due, polls.missed) == (due, missed)


@pytest.mark.parametrize(("once", "period_s"), [(False, 40), (True, None)])
def test_an_answer_is_kept_with_the_period_asked_for_and_one_asked_for_once_without(
    client: Client, store: Store, *, once: bool, period_s: int | None
) -> None:
    until_one = (lambda progress: progress.snapshots > 0, client, store, [SPREADS])
    conftest.until(*until_one, once=once, pace=Pace(poll_s=40.4))
    assert store.polls("spread")["period_s"].to_list() == [period_s]


@pytest.mark.slow
def test_a_store_that_is_replaced_under_a_follow_ends_it_with_one_sentence_and_the_next_is_whole(
    client: Client, store: Store, tmp_path: Path
) -> None:
    other, undisturbed = (Store(tmp_path / f"{name}.duckdb") for name in ("other", "undisturbed"))
    StoreWriter(other).bind(client.discover().source)

    def replace(progress: FollowProgress) -> bool:
        if progress.behind_s == 0:
            shutil.copy(other.path, store.path)
        return False

    with pytest.raises(StoreSourceError) as ended:
        until(replace, client, store, [FIRST, SPREADS])
    assert "\n" not in str(ended.value)
    assert other.loads().is_empty()
    for each in (store, undisturbed):
        follow(client, each, [FIRST], since=Since(back_s=3_600), once=True)
    assert store.series(FIRST).equals(undisturbed.series(FIRST))
    assert store.series(FIRST).height == 60
    assert faults_of(store) == []


@pytest.mark.slow
def test_a_store_that_is_gone_ends_a_follow_with_one_sentence(client: Client, store: Store) -> None:
    def remove(progress: FollowProgress) -> bool:
        if progress.behind_s == 0:
            store.path.unlink(missing_ok=True)
        return False

    with pytest.raises(
        StoreError, match=r"there is no store at|is not the file that load 1 began in"
    ):
        until(remove, client, store, [FIRST, SPREADS])


def test_a_full_disk_ends_a_follow_with_one_sentence_and_the_next_one_goes_on(
    client: Client, store: Store
) -> None:
    follow(client, store, [FIRST], since=Since(back_s=600), once=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, hard))
    try:
        with pytest.raises(StoreError, match=r"the disk is full, .* free space in") as full:
            follow(client, store, [SECOND], since=Since(back_s=86_400), once=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "\n" not in str(full.value)
    done = follow(client, store, [FIRST, SECOND], since=Since(back_s=86_400), once=True)
    assert not done.refused
    assert store.catalogue().filter(stream=FIRST.key)["rows"].item() == 1_440


def test_no_time_at_all_is_refused(client: Client, store: Store) -> None:
    with pytest.raises(InputError, match="duration_s: 0"):
        follow(client, store, [FIRST], duration_s=0.0)
    with pytest.raises(InputError, match="sweep_s: 0"):
        Pace(sweep_s=0.0)


@pytest.mark.slow
def test_pairs_that_come_one_by_one_share_one_socket(store: Store) -> None:
    clock = SpedClock(start=miniature.START + 3_600, speed=60.0)
    rules = Changing()
    with client_of(config(clock=clock)) as client:
        done, _ = until(lambda p: p.live == 2 and p.sockets == 1, client, store, rules)
        log = EventLog(EventFamily.SPLASH)
        both, _ = until(lambda p: p.live == 2 and p.sockets == 2, client, store, [FIRST, log])
    assert done.attempts >= 1
    assert both.attempts >= 2


A, B, C = (Stream.parse(f"BTC_USD:{leg}.spot") for leg in "ABC")
HOUR_S = 3_600


def test_a_stream_that_no_rule_names_any_more_is_followed_for_its_time_and_that_is_said() -> None:
    followed = Followed(keep_s=HOUR_S)
    assert followed.renew({A: "open_now", B: "open_now"}, 0) == []
    (said,) = followed.renew({B: "open_now"}, 60)
    assert said.startswith("1 stream is named by no rule any more, followed until 1970-01-01")
    assert set(followed.rules) == {A, B}
    assert followed.renew({B: "open_now"}, HOUR_S + 59) == []
    (said,) = followed.renew({B: "open_now"}, HOUR_S + 60)
    assert "is followed no more, after 1 h without a rule" in said
    assert set(followed.rules) == {B}


def test_a_stream_that_is_named_again_in_time_stays_as_if_nothing_had_been() -> None:
    followed = Followed(keep_s=HOUR_S)
    followed.renew({A: "open_now"}, 0)
    followed.renew({}, 60)
    assert followed.renew({A: "top_open 5"}, 120) == []
    followed.renew({}, 4_000)
    assert set(followed.rules) == {A}
    assert followed.renew({}, 4_000 + HOUR_S)
    assert followed.rules == {}


def test_what_was_named_before_a_restart_is_followed_for_what_is_left_of_its_time() -> None:
    followed = Followed(keep_s=HOUR_S)
    followed.renew({A: "open_now"}, 10_000)
    (said,) = followed.remember({A: ("open_now", 9_000), B: ("open_now", 9_000)})
    assert said == "named within the last 1 h, and followed on: BTC_USD:B.spot"
    assert followed.rules == {A: "open_now", B: "open_now, lately"}
    assert len(followed.renew({A: "open_now", C: "open_now"}, 9_000 + HOUR_S)) == 2
    assert set(followed.rules) == {A, C}


MOST = 6_000
LOG = EventLog(EventFamily.SPLASH)


def test_messages_come_in_their_order_and_none_is_waited_for_in_vain() -> None:
    inbox = Inbox()
    for number in range(5):
        assert inbox.put(Message(LOG, b"%d" % number))
    taken = [inbox.get(1.0) for _ in range(5)]
    assert [message.body for message in taken if isinstance(message, Message)] == [
        *(b"%d" % number for number in range(5))
    ]
    assert inbox.empty
    with pytest.raises(queue.Empty):
        inbox.get(0.01)


def test_no_more_bytes_wait_than_are_allowed_and_a_larger_message_goes_alone() -> None:
    inbox = Inbox(Limits(waiting_bytes=MOST))
    bodies = [bytes(MOST // 3)] * 10 + [bytes(MOST + 1), b"x"]
    thread = threading.Thread(target=lambda: [inbox.put(Message(LOG, each)) for each in bodies])
    thread.start()
    waiting: list[int] = []
    for _ in bodies:
        inbox.get(30.0)
        waiting.append(sum(len(m.body) for m in list(inbox._items) if isinstance(m, Message)))
    thread.join()
    assert max(waiting) <= MOST + 1
    assert inbox.empty


def test_who_waits_to_put_ends_when_it_is_abandoned() -> None:
    inbox, said = Inbox(Limits(waiting_bytes=MOST)), list[bool]()
    assert inbox.put(Message(LOG, bytes(MOST)))
    thread = threading.Thread(target=lambda: said.append(inbox.put(Message(LOG, b"x"))))
    thread.start()
    inbox.abandoned.set()
    thread.join()
    assert said == [False]
