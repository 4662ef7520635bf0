"""Alerts as batches are committed: once each, over restarts, late rows and failed deliveries."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.alerts import read_alerts
from toolkit.alerts.channels import Alert, AlertSender, Sent, Webhook
from toolkit.alerts.watch import AlertPlan, AlertWatch, Rulebook
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, SnapshotLog, Source, Stream, Trajectory
from toolkit.statistics.fees import FeeModel
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.store.writing import alerts
from toolkit.tables import SERIES
from toolkit.wire.event_log import document_frame

from .conftest import Receiver, event_rows

NOW = 1_795_046_400
PAIR = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
ORIGIN = LoadOrigin("http://127.0.0.1:8700", NOW, None, "0.1.0")
LOAD = 1
WIDE = {"name": "wide", "kind": "spread", "above_bps": 50, "for": "5m"}
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@dataclass
class Kept:
    """A channel that keeps what it is sent."""

    name: str = "chat"
    waits_s: tuple[float, ...] = ()
    kept_s: float = 3_600.0
    sent: list[Alert] = field(default_factory=list)

    def send(self, alert: Alert) -> Sent:
        self.sent.append(alert)
        if alert.rule == "faulty":
            raise ZeroDivisionError
        return Sent(taken=True)


class Run:
    """A follow of a store as far as alerts go: batches in, alerts out."""

    def __init__(
        self,
        store: Store,
        tables: list[dict[str, Any]],
        channels: Mapping[str, Any],
        *,
        load_id: int | None,
        **book: Any,
    ) -> None:
        self.now, self.tables, self.notes, self.book = NOW, tables, list[str](), book
        self.followed: list[Stream] = [PAIR]
        self.writer = StoreWriter(store)
        self.load_id = load_id or self.writer.start_load(ORIGIN)
        self.watch = AlertWatch(
            AlertPlan(self.read, channels),
            self.writer,
            self.load_id,
            clock=lambda: self.now,
            followed=lambda: self.followed,
            note=self.notes.append,
        )

    def read(self) -> Rulebook:
        return Rulebook(read_alerts(self.tables), **self.book)

    def commit(self, batch: Batch) -> None:
        also = self.watch.committing(batch)
        self.writer.commit(self.load_id, batch, also=also)
        self.watch.committed()

    def minutes(self, bps: list[float | None], start: int | None = None) -> None:
        """Commit a spread of so many bps a minute, from a time on."""
        begin = self.now if start is None else start
        rows = [
            (begin + 60 * n, 100.0, None if each is None else 100 * (1 + each / 1e4))
            for n, each in enumerate(bps)
        ]
        names = ["ts", "buy_price", "sell_price"]
        frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
            spread_pct=pl.lit(None, pl.Float64), extra=pl.lit(None, pl.String)
        )
        schema = SERIES[PAIR.family].schema
        batch = Batch()
        edge = Edge(served_at=begin + 60 * len(bps), step_s=60)
        cast = [pl.col(name).cast(schema[name]) for name in frame.columns]
        batch.add(PAIR, frame.select(cast), Interval(begin, begin + 60 * len(bps)), edge)
        self.now = max(self.now, begin + 60 * len(bps))
        self.commit(batch)

    def documents(self, *rows: tuple[str, str, int, float]) -> None:
        self.commit(Batch(documents=[document_frame(event_rows(*rows))]))

    def look(self) -> None:
        self.watch._looked = self.watch._loss_looked = -1e9
        self.watch.look()

    @property
    def changes(self) -> list[tuple[str, str, int]]:
        rows = alerts.read_alerts(self.writer.store).reverse()
        return rows.select("rule", "change", pl.col("ts") - NOW).rows()


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """Where the store of each test is, so that one engine serves all, and what is in it."""
    store = empty_store(tmp_path_factory.mktemp("watch") / "s.duckdb", Source("replay", "example"))
    assert StoreWriter(store).start_load(ORIGIN) == LOAD
    return store.path, store.path.read_bytes()


@pytest.fixture
def store(begun: tuple[Path, bytes]) -> Store:
    """A store in which a load has begun."""
    path, content = begun
    path.unlink()
    path.write_bytes(content)
    return Store(path)


@pytest.fixture
def begin(store: Store) -> Iterator[Callable[..., Run]]:
    begun: list[Run] = []

    def start(
        *tables: dict[str, Any], channels: Mapping[str, Any] | None = None, **book: Any
    ) -> Run:
        load_id = None if begun else LOAD
        begun.append(Run(store, list(tables), channels or {}, load_id=load_id, **book))
        return begun[-1]

    yield start
    for each in begun:
        each.watch.end()


@pytest.mark.slow
def test_a_spread_that_stays_above_opens_once_and_is_over_at_its_clear_level(
    begin: Callable[..., Run],
) -> None:
    chat = Kept()
    run = begin(WIDE, channels={"chat": chat})
    for each in [60.0] * 8 + [45.0, 55.0] * 3 + [39.0]:  # a row a commit, as a socket brings them
        run.minutes([each])
    assert run.changes == [("wide", "opened", 300), ("wide", "cleared", 14 * 60)]
    run.watch.end()
    assert [alert.change for alert in chat.sent] == ["opened", "cleared"]
    delivery = alerts.read_alerts(run.writer.store)["delivery"].to_list()
    assert delivery == ["chat delivered", "chat delivered"]
    assert "alert opened: wide: BTC_USDT:AURORA.spot:BOREAS.spot at 5" in run.notes[0]


def test_a_restart_opens_nothing_again_and_counts_the_rows_before_it(
    begin: Callable[..., Run],
) -> None:
    run = begin(WIDE)
    run.minutes([60.0] * 4)
    for _ in range(2):  # killed between any two rows
        run = begin(WIDE)
        run.now = NOW + 240
        run.minutes([60.0] * 3, NOW + 240)
    assert run.changes == [("wide", "opened", 300)]


def test_the_archive_bringing_the_same_rows_again_changes_nothing(
    begin: Callable[..., Run],
) -> None:
    run = begin(WIDE)
    run.minutes([60.0] * 7 + [10.0])
    run.minutes([60.0] * 7 + [10.0], NOW)
    assert run.changes == [("wide", "opened", 300), ("wide", "cleared", 420)]


def test_rows_that_the_archive_brings_late_count_as_above(begin: Callable[..., Run]) -> None:
    run = begin(WIDE)
    run.minutes([60.0] * 2)
    run.minutes([60.0], NOW + 300)  # a gap before it
    assert run.changes == []
    run.minutes([60.0] * 3, NOW + 120)
    run.minutes([60.0], NOW + 360)
    assert run.changes == [("wide", "opened", 360)]


def test_history_that_is_loaded_first_is_no_news(begin: Callable[..., Run]) -> None:
    run = begin(WIDE)
    run.minutes([60.0] * 100 + [0.0] * 3, NOW - 86_400)
    assert run.changes == []


def test_what_is_found_late_is_kept_and_not_sent(begin: Callable[..., Run]) -> None:
    chat = Kept()
    begin(WIDE).minutes([10.0])
    run = begin(WIDE, channels={"chat": chat})
    run.now = NOW + 2 * 86_400
    run.minutes([60.0] * 6 + [10.0], NOW + 60)
    run.watch.end()
    assert [change for _, change, _ in run.changes] == ["opened", "cleared"]
    assert chat.sent == []
    assert alerts.read_alerts(run.writer.store)["delivery"].to_list() == ["chat late"] * 2


def test_a_rule_that_is_added_while_it_follows_begins_then(begin: Callable[..., Run]) -> None:
    run = begin()
    run.minutes([60.0] * 10 + [10.0] + [60.0] * 3)
    run.tables.append(WIDE)
    run.look()
    run.minutes([60.0] * 3)
    assert run.changes == [("wide", "opened", 16 * 60)]
    run.tables.clear()
    run.look()
    assert [change for _, change, _ in run.changes] == ["opened", "cleared"]


def test_rules_that_become_unreadable_leave_those_from_before(begin: Callable[..., Run]) -> None:
    run = begin(WIDE)
    run.tables[:] = [{"name": "wide"}]
    run.look()
    run.look()
    assert len([note for note in run.notes if "could not be read" in note]) == 1
    run.minutes([60.0] * 6)
    assert [change for _, change, _ in run.changes] == ["opened"]


def test_an_event_opens_once_however_often_its_document_comes(begin: Callable[..., Run]) -> None:
    run = begin({"name": "pumps", "kind": "event", "at_least_pct": 5})
    for _ in range(2):
        run.documents(("e1", "splash.pump", NOW + 5, 6.0), ("e2", "splash.pump", NOW + 5, 1.0))
    run.documents(("e1", "splash.faded", NOW + 60, 6.0))
    run.documents(("e1", "splash.pump", NOW + 5, 6.0))
    assert run.changes == [("pumps", "opened", 5), ("pumps", "cleared", 60)]


def test_an_event_whose_document_comes_long_after_a_restart_opens(
    begin: Callable[..., Run],
) -> None:
    pumps = {"name": "pumps", "kind": "event", "at_least_pct": 5, "late": "1d"}
    first = begin()
    first.documents(("e0", "splash.pump", NOW - 90_000, 9.0), ("e1", "splash.pump", NOW, 9.0))
    again = begin(pumps)
    again.documents(("e1", "splash.pump", NOW, 9.0))  # held before
    again.documents(("e2", "splash.pump", NOW - 3_000, 6.0))  # late
    again.documents(("e3", "splash.pump", NOW - 99_000, 6.0))  # history
    assert again.changes == [("pumps", "opened", -3_000)]


def test_an_event_that_came_before_its_rule_is_no_news_when_it_comes_again(
    begin: Callable[..., Run],
) -> None:
    run = begin()
    run.documents(("e1", "splash.pump", NOW, 9.0))
    run.tables.append({"name": "pumps", "kind": "event", "at_least_pct": 5})
    run.look()
    time.sleep(1.1)  # a commit is known by its second
    run.documents(("e1", "splash.pump", NOW, 9.0), ("e2", "splash.pump", NOW - 60, 9.0))
    assert run.changes == [("pumps", "opened", -60)]


def snapshots(run: Run, kind: str, items: list[dict[str, Any]]) -> None:
    """Commit an answer a minute, each with one item."""
    log = SnapshotLog.named(kind)
    for item in items:
        batch = Batch()
        answer = msgspec.json.encode({"ts": run.now, "items": [item]})
        batch.add_snapshot(Snapshot(log, run.now, answer, 60), Edge(run.now))
        run.commit(batch)
        run.now += 60


def test_a_spread_that_snapshots_show_opens_and_is_over(begin: Callable[..., Run]) -> None:
    kept = WIDE | {"streams": ["snapshot-spread/*"], "for": "2m"}
    net = kept | {"name": "net", "net": True}
    fees = FeeModel.example(["X", "Y"])
    run = begin(kept, net, WIDE | {"name": "default"}, fees=fees)
    legs = {"symbol": "A_B", "buy_exchange": "X", "buy_market": "spot"}
    legs |= {"sell_exchange": "Y", "sell_market": "futures"}
    prices = [{"buy_price": 100.0, "sell_price": 100.0 + each} for each in (5, 5, 5, 5, 0)]
    snapshots(run, "spread", [legs | {"spread_pct": None} | each for each in prices])
    changes = [
        (name, change, ts)
        for change, ts in (("opened", 120), ("cleared", 240))
        for name in ("wide", "net")
    ]
    assert run.changes == changes  # the default rule watches the pair itself, which is followed


def test_a_rule_without_streams_catches_a_pair_that_only_snapshots_show(
    begin: Callable[..., Run],
) -> None:
    run = begin(WIDE | {"for": "1m"})
    run.followed = []
    legs = {"symbol": "A_B", "buy_exchange": "X", "buy_market": "spot", "spread_pct": None}
    legs |= {"sell_exchange": "Y", "sell_market": "futures", "buy_price": 100.0}
    snapshots(run, "spread", [legs | {"sell_price": 100.0 + each} for each in (5, 5, 0)])
    assert run.changes == [("wide", "opened", 60), ("wide", "cleared", 120)]


def test_a_rate_that_snapshots_show_opens_and_is_over(begin: Callable[..., Run]) -> None:
    rule = {"name": "high", "kind": "funding", "above_apr_pct": 30}
    run = begin(rule | {"streams": ["snapshot-funding/*"]})
    leg = {"symbol": "A_B", "exchange": "X", "market": "futures", "interval_hours": 8}
    leg |= {"next_funding_time": NOW}
    snapshots(run, "funding", [leg | {"rate": rate} for rate in (-0.001, -0.001, 0.0)])
    assert run.changes == [("high", "opened", 0), ("high", "cleared", 120)]


def test_old_data_is_told_of_once_and_over_with_a_new_row(begin: Callable[..., Run]) -> None:
    run = begin({"name": "old", "kind": "stale", "older_than": "10m"})
    run.minutes([1.0])
    run.look()
    run.now += 601
    run.look()
    run.look()
    assert run.changes == [("old", "opened", 661)]
    run.minutes([1.0], run.now)
    run.look()
    run.followed = []
    assert [change for _, change, _ in run.changes] == ["opened", "cleared"]


def test_what_the_archive_is_about_to_drop_is_told_of(begin: Callable[..., Run]) -> None:
    run = begin({"name": "lost", "kind": "loss", "within": "1h"})
    log = EventLog(EventFamily.SPREAD)
    run.followed = [log]
    run.writer.ask({log: Interval(NOW - 86_400, NOW)})
    edge = Edge(served_at=NOW, retention_s=86_400)
    batch = Batch()
    batch.add_documents(log, document_frame([]), Interval(NOW - 80_000, NOW), edge)
    run.commit(batch)
    run.look()
    assert run.changes == [("lost", "opened", 0)]


def test_a_net_rule_says_once_for_which_spreads_it_cannot_open(begin: Callable[..., Run]) -> None:
    run = begin(WIDE | {"net": True}, fees=FeeModel.example(["AURORA"]))
    run.minutes([60.0] * 6)
    (note,) = [each for each in run.notes if "cannot open" in each]
    assert f"{PAIR}: the fee table has no cost" in note


def test_a_webhook_that_is_away_gets_what_waited_when_it_is_back_oldest_first_with_the_same_ids(
    begin: Callable[..., Run], receiver: Receiver
) -> None:
    channel = Webhook(f"http://{receiver.address}/", SECRET)
    channel.waits_s = (3_600.0,)
    run = begin(WIDE, channels={"webhook": channel})
    receiver.answers = [503] * 2
    run.minutes([60.0] * 6)
    receiver.wait_for(1)
    run.watch.end()
    assert alerts.read_alerts(run.writer.store)["reason"].to_list() == ["status 503"]
    run = begin(WIDE, channels={"webhook": channel})  # as if killed: the queue is in the store
    receiver.wait_for(2)
    run.minutes([60.0, 0.0], NOW + 360)
    receiver.wait_for(4)
    run.watch.end()
    history = alerts.read_alerts(run.writer.store)
    opened, cleared = history.reverse()["alert_id"]
    assert receiver.ids == [opened, opened, opened, cleared]
    assert history["delivery"].to_list() == ["webhook delivered"] * 2
    assert history["reason"].to_list() == [None, None]
    assert [note for note in run.notes if "by webhook" in note] == [
        "alerts by webhook wait until it takes them: status 503",
        "alerts by webhook are taken again",
    ]


def test_a_webhook_that_refuses_for_good_is_not_tried_again(
    begin: Callable[..., Run], receiver: Receiver
) -> None:
    receiver.answers = [404]
    run = begin(WIDE, channels={"webhook": Webhook(f"http://{receiver.address}/", SECRET)})
    run.minutes([60.0] * 6)
    run.watch.end()
    assert alerts.read_alerts(run.writer.store)["delivery"].to_list() == ["webhook failed"]
    assert any("was not delivered by webhook: status 404" in note for note in run.notes)


def test_of_more_than_may_wait_the_oldest_are_given_up_and_so_is_what_waited_too_long(
    begin: Callable[..., Run], store: Store
) -> None:
    names = [f"wide {n}" for n in range(5)]
    run = begin(*(WIDE | {"name": name} for name in names), channels={"chat": Kept()})
    run.watch._senders["chat"].end(60.0)  # as if killed before anything was sent
    run.minutes([60.0] * 6)
    chat = Kept()
    AlertSender(chat, run.writer, run.notes.append, most=2).end(60.0)
    assert [alert.rule for alert in chat.sent] == names[-2:]
    rows = alerts.read_alerts(store).reverse().select("delivery", "reason").rows()
    assert rows == [("chat late", "more than 2 waited")] * 3 + [("chat delivered", None)] * 2
    run.minutes([0.0])
    AlertSender(Kept(kept_s=-10.0), run.writer, run.notes.append).end(60.0)
    assert set(alerts.read_alerts(store)["delivery"].head(5)) == {"chat late"}


def test_a_channel_that_raises_is_a_failed_delivery(begin: Callable[..., Run]) -> None:
    run = begin(WIDE | {"name": "faulty"}, channels={"chat": Kept()})
    run.minutes([60.0] * 6)
    run.watch.end()
    assert alerts.read_alerts(run.writer.store)["reason"].to_list() == ["ZeroDivisionError"]


@pytest.mark.parametrize(("name", "waits_s", "again"), [("chat", (), 1), ("webhook", (9.0,), 2)])
def test_what_was_being_sent_when_a_follow_was_killed_is_sent_again_where_its_id_makes_it_safe(
    begin: Callable[..., Run], store: Store, name: str, waits_s: tuple[float, ...], again: int
) -> None:
    rules = WIDE, WIDE | {"name": "other"}
    run = begin(*rules, channels={name: Kept(name, waits_s)})
    run.watch._senders[name].end(60.0)  # as if killed before anything was sent
    run.minutes([60.0] * 6)
    other, one = alerts.read_alerts(store)["alert_id"]
    assert alerts.claim(run.writer, one, name)
    kept = Kept(name, waits_s)
    begin(*rules, channels={name: kept}).watch.end()
    assert [alert.alert_id for alert in kept.sent] == [one, other][-again:]
    known = {f"{name} delivered", f"{name} unknown"} if again == 1 else {f"{name} delivered"}
    assert set(alerts.read_alerts(store)["delivery"]) == known


def test_a_rule_is_sent_where_it_names(begin: Callable[..., Run]) -> None:
    chat, mail = Kept(), Kept("webhook")
    run = begin(WIDE | {"send": ["chat"]}, channels={"chat": chat, "webhook": mail})
    run.minutes([60.0] * 6)
    run.watch.end()
    assert (len(chat.sent), len(mail.sent)) == (1, 0)
