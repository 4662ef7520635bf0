"""What comes and is not kept: named, counted, and missing in the coverage until it can be kept."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from tests.listening import listening
from toolkit.client import Client
from toolkit.intervals import Interval, difference
from toolkit.loader import follow, sync
from toolkit.loader.sync.progress import LoadResult
from toolkit.market import EventFamily, EventLog, Source, Trajectory, format_ts
from toolkit.store import Batch, Inserted, LoadOrigin, Store, StoreWriter
from toolkit.wire.event_log import document_frame, read_document
from toolkit.wire.findings import Finding, Findings
from toolkit.wire.limits import LIMITS, Limits
from toolkit.wire.profile.event_routes import BUILT_IN_EVENTS

SPLASHES = EventLog(EventFamily.SPLASH)
START = int(time.time()) // 604_800 * 604_800 - 604_800  # a week of Unix time begins
WINDOW = Interval(START, START + 3_600)


def document(event: str, ts: int, pad: int = 0) -> bytes:
    said = {"schema": "svc.splash.v1", "event_type": "splash.pump", "event_id": event, "ts": ts}
    return json.dumps(said | {"ts_ms": 1000 * ts, "pct": 2.0, "pad": "x" * pad}).encode()


def row(ts: int, pad: int = 0) -> str:
    return json.dumps({"ts": ts, "price": ts % 1_000, "mark_price": None, "pad": "x" * pad})


class Log:
    """A service whose splash log has these documents, two to a page, and sends these messages.

    Its prices are these rows of each symbol, three to a page.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[int, str]] = {}
        self.documents: list[tuple[int, bytes]] = []
        self.messages: list[bytes] = []
        self.asked: list[Interval] = []
        self.asked_rows: list[tuple[str, int]] = []
        self.over = threading.Event()

    def answer(self, _: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Upgrade"):
            return None
        body = b'{"source":{"kind":"live","id":"x"}}'
        query = {k: v[0] for k, v in parse_qs(urlsplit(request.path).query).items()}
        if "splash-events" in request.path:
            window = Interval(int(query["start_time"]), int(query["end_time"]))
            first = int(query.get("cursor", 0))
            self.asked += [window] if not first else []
            found = [d for ts, d in sorted(self.documents)[::-1] if window.start <= ts < window.end]
            more = len(found) > first + 2
            ends = b'"has_more":%b,"next_cursor":%b' % (
                b"true" if more else b"false",
                b'"%d"' % (first + 2) if more else b"null",
            )
            body = b'{"items":[%b],%b}' % (b",".join(found[first : first + 2]), ends)
        if "symbols" in request.path:
            venue = {"exchange": "X", "market": "spot"}
            items = [{"symbol": symbol, "venues": [venue]} for symbol in self.rows]
            body = json.dumps({"items": items}).encode()
        if "history/price" in request.path:
            rows, end = self.rows[query["symbol"]], int(query["end_time"])
            before = [ts for ts in sorted(rows)[::-1] if ts < end]
            self.asked_rows += [(query["symbol"], end)] if before else []
            page = ",".join(rows[ts] for ts in before[:3])
            body = (
                f'{{"items":[{page}],"next_end_time":{min(before[:3], default="null")}}}'.encode()
            )
        headers = {"Date": formatdate(usegmt=True), "Content-Length": str(len(body))}
        return Response(200, "OK", Headers(headers | {"Connection": "close"}), body)

    def send(self, socket: ServerConnection) -> None:
        try:
            for message in self.messages:
                socket.send(message)
            self.over.wait()
        except ConnectionClosed:
            pass


@contextmanager
def serving(log: Log) -> Iterator[str]:
    with listening(serve(log.send, "127.0.0.1", 0, process_request=log.answer)) as address:
        try:
            yield address
        finally:
            log.over.set()


def loaded(log: Log, store: Store, limits: Limits = LIMITS) -> LoadResult:
    with serving(log) as base_url, Client(base_url, "key", limits=limits) as client:
        return sync(client, store, [SPLASHES], WINDOW)


def held(store: Store) -> list[int]:
    return store.events(EventFamily.SPLASH, WINDOW)["ts"].to_list()


def missing(store: Store) -> list[Interval]:
    return difference([WINDOW], store.ledger([SPLASHES])[SPLASHES].answered)


def test_a_document_too_large_is_named_and_missing_and_the_rest_of_the_log_is_loaded(
    store: Store,
) -> None:
    log, large = Log(), document("e3", START + 300, pad=20_000)
    log.documents = [(START + 60 * n, document(f"e{n}", START + 60 * n)) for n in range(1, 7)]
    log.documents[2] = (START + 300, large)
    done = loaded(log, store)
    assert not done.refused
    assert held(store) == [START + 60, START + 120, START + 240, START + 300, START + 360]
    assert missing(store) == [Interval(START + 300, START + 301)]
    (named,) = [f for f, _ in done.findings if f.kind == "document_too_large"]
    assert "event e3 at " in named.says
    assert f"has {len(large):,} bytes, and at most 16,384 are kept" in named.says
    log.asked, log.over = [], threading.Event()
    loaded(log, store)
    assert log.asked == [Interval(START + 300, START + 302)], "it is asked for again, alone"
    assert missing(store) == [Interval(START + 300, START + 301)]
    log.over = threading.Event()
    assert loaded(log, store, Limits(document_bytes=30_000)).rows.new == 1
    assert len(held(store)) == 6
    assert missing(store) == []


LARGE = {
    "INSIDE_B": [4],
    "FIRST_B": [0],
    "LAST_B": [6],
    "EDGE_B": [3, 4],
    "ALL_B": [*range(7)],
}


def test_a_row_too_large_is_named_and_missing_and_the_rest_of_its_trajectory_is_loaded(
    store: Store,
) -> None:
    log, window, times = Log(), Interval(START, START + 420), range(START, START + 420, 60)
    large = {name: {START + 60 * n for n in numbers} for name, numbers in LARGE.items()}
    prices = {name: Trajectory.parse(f"{name}:X.spot") for name in LARGE}
    log.rows = {
        name: {ts: row(ts, pad=20_000 if ts in gone else 0) for ts in times}
        for name, gone in large.items()
    }

    def loaded(limits: Limits = LIMITS) -> LoadResult:
        log.asked_rows, log.over = [], threading.Event()
        with serving(log) as base_url, Client(base_url, "key", limits=limits) as client:
            return sync(client, store, [*prices.values()], window)

    def held() -> dict[str, list[int]]:
        return {name: store.series(price)["ts"].to_list() for name, price in prices.items()}

    def unanswered() -> dict[str, list[Interval]]:
        known = store.ledger([*prices.values()])
        return {n: difference([window], known[price].answered) for n, price in prices.items()}

    done = loaded()
    assert not done.refused
    assert held() == {name: [ts for ts in times if ts not in large[name]] for name in LARGE}
    alone = {name: [Interval(ts, ts + 1) for ts in sorted(gone)] for name, gone in large.items()}
    assert unanswered() == alone
    named = [f.says for f, _ in done.findings if f.kind == "row_too_large"]
    assert len(named) == sum(map(len, large.values()))
    for name, gone in large.items():
        at = f"{prices[name]} at {format_ts(min(gone))}"
        what = f"{at} has unknown fields of 20,005 bytes, and at most 16,384"
        assert any(says.startswith(what) for says in named)
    loaded()
    for name, end in log.asked_rows:
        assert end in {ts + 1 for ts in large[name]} | {START}, "it alone"
    assert unanswered() == alone
    assert loaded(Limits(document_bytes=30_000)).rows.new == len(named)
    assert held() == {key: [*times] for key in LARGE}
    assert unanswered() == {key: [] for key in LARGE}


def test_a_large_document_without_a_time_leaves_all_of_its_window_missing(store: Store) -> None:
    log = Log()
    log.documents = [(START + 60, document("e1", START + 60))]
    log.documents += [(START + 120, b'{"event_id":"e2","pad":"' + b"x" * 20_000 + b'"}')]
    done = loaded(log, store)
    assert held(store) == [START + 60]
    assert missing(store) == [WINDOW]
    (says,) = [f.says for f, _ in done.findings if f.kind == "document_too_large"]
    assert says.startswith("event e2 has ")


def test_very_many_documents_too_large_are_one_missing_stretch(store: Store) -> None:
    log = Log()
    log.documents = [
        (START + 10 * n, document(f"e{n}", START + 10 * n, pad=20_000)) for n in range(17)
    ]
    loaded(log, store)
    assert missing(store) == [Interval(START, START + 161)]


def test_an_event_in_ever_new_versions_at_ever_new_times_is_bounded_and_missing(
    store: Store,
) -> None:
    log, limits = Log(), Limits(event_documents=4)
    log.documents = [(START + 60 * n, document("e1", START + 60 * n)) for n in range(6)]
    log.documents += [(START + 600, document("e2", START + 600))]
    done = loaded(log, store, limits)
    assert done.rows == Inserted(new=5, unkept={"events/splash e1": 2})
    assert ("versions_not_kept", "events/splash e1", 2) in [
        (f.kind, f.where, times) for f, times in done.findings
    ]
    kept = held(store)
    gone = [ts for ts, _ in log.documents if ts not in kept]
    assert (len(kept), len(gone)) == (5, 2)
    assert missing(store) == [Interval(ts, ts + 1) for ts in gone]
    log.over = threading.Event()
    assert loaded(log, store).rows.new == 2
    assert missing(store) == []


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> tuple[StoreWriter, int]:
    made = StoreWriter(Store(tmp_path_factory.mktemp("weeks") / "s.duckdb"))
    made.bind(Source("live", "x"))
    return made, made.start_load(LoadOrigin("http://x", 1, None, "0"))


RUNS = itertools.count()


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30))), max_size=4))
def test_no_event_has_more_documents_in_a_week_than_are_kept(
    bound: tuple[StoreWriter, int], batches: list[list[tuple[str, int]]]
) -> None:
    writer, load_id = bound
    run = f"{next(RUNS)}-"
    total, expected, came = Inserted(), set[tuple[str, int]](), 0
    for batch in filter(None, batches):
        sent = [(run + event, START + 86_400 * day) for event, day in batch]
        rows = [
            read_document(BUILT_IN_EVENTS[SPLASHES.family], document(event, ts), [])
            for event, ts in sent
        ]
        frame = document_frame(rows)
        total += writer.commit(load_id, Batch(documents=[frame]), Limits(event_documents=3))
        came += len(sent)
        for event, ts in sent:
            week = [
                each
                for each in expected
                if each[0] == event and each[1] // 604_800 == ts // 604_800
            ]
            if len(week) < 3:
                expected.add((event, ts))
    found = writer.store.events(EventFamily.SPLASH, Interval(START, START + 40 * 86_400))
    of_run = found.filter(pl.col("event_id").str.starts_with(run))
    assert sorted(of_run.select("event_id", "ts").rows()) == sorted(expected)
    assert total.new + total.repeated + sum(total.unkept.values()) == came


@pytest.mark.slow
def test_the_findings_of_a_capture_are_bounded_in_number(store: Store) -> None:
    log = Log()
    log.messages = [document(f"e{n}", START, pad=20_000) for n in range(20)]
    with serving(log) as base_url, Client(base_url, "key", limits=Limits(findings=5)) as client:
        done = follow(client, store, [SPLASHES], duration_s=1.0)
    named = [(f, times) for f, times in done.findings if f.kind == "document_too_large"]
    assert done.messages == 20
    assert len(done.findings) <= 5 + len({finding.kind for finding, _ in done.findings})
    assert sum(times for _, times in named) == 20
    (others,) = [times for finding, times in named if finding.where == "others"]
    assert others >= 15


@given(st.lists(st.lists(st.tuples(st.sampled_from("kl"), st.integers(0, 9)))), st.integers(1, 12))
def test_findings_are_bounded_and_every_one_is_counted(
    batches: list[list[tuple[str, int]]], most: int
) -> None:
    found = Findings(Limits(findings=most))
    for batch in batches:
        found.add([Finding(kind, "/p", str(says)) for kind, says in batch])
    came = list(itertools.chain.from_iterable(batches))
    listed = found.listed()
    assert len(listed) <= most + 2
    assert sum(times for _, times in listed) == len(came)
    for kind in "kl":
        counted = sum(times for finding, times in listed if finding.kind == kind)
        assert counted == sum(each == kind for each, _ in came)
