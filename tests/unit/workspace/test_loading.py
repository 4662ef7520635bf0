"""Which streams a follow and the rules of its watchlist name, checked before a service is asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import miniature
from toolkit.client import Client
from toolkit.errors import InputError
from toolkit.loader.follow.reader import Message, Messages
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Source
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.wire.profile.profile import BUILT_IN
from toolkit.workspace import Workspace
from toolkit.workspace.loading import Rules, named_streams, wanted_watchlist
from toolkit.workspace.rail_toml import Watchlist

PRICE = "BTC_USDT:AURORA.spot"


@pytest.fixture
def rail(service: str, tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(Client(service, "demo-pro"), Store(tmp_path / "rail.duckdb")) as rail:
        yield rail


def test_a_watchlist_of_ones_own_is_followed_as_far_back_as_it_says(rail: Workspace) -> None:
    wanted = Watchlist(streams=[PRICE], snapshots=["spread"], back="1h")
    done = rail.follow(watchlist=wanted, once=True)
    assert done.snapshots == 1
    assert rail.prices(PRICE).df["ts"].min() == miniature.END - 3_600


def test_a_follow_that_is_stopped_before_it_begins_leaves_a_whole_store(rail: Workspace) -> None:
    stop = threading.Event()
    stop.set()
    rail.follow(PRICE, since="1h", stop=stop)
    assert rail.store.loads()["finished_at"].null_count() == 0


def test_without_streams_the_default_watchlist_is_meant(rail: Workspace) -> None:
    named = named_streams(rail.client, rail.store, wanted_watchlist(rail.store))
    assert EventLog(EventFamily.SPREAD) in named
    assert set(named.values()) == {"streams watchlist", "streams watchlist, snapshots spread",
                                   "streams watchlist, snapshots funding"}  # fmt: skip


def test_what_makes_no_sense_is_refused_before_the_service_is_asked(tmp_path: Path) -> None:
    nobody = Workspace(Client("http://127.0.0.1:9", "key"), Store(tmp_path / "none.duckdb"))
    for options in ({"since": "soon"}, {"streams": "BTC"}, {"watchlist": tmp_path / "none.toml"}):
        with pytest.raises(InputError):
            nobody.follow(**options)
    with pytest.raises(InputError, match="a past state takes no rows"):
        nobody.as_of("2026-11-01").follow(PRICE)


NOW = miniature.END
ORIGIN = LoadOrigin("http://h", NOW, None, "0")
PAIR = "BTC_USDT:AURORA.spot:BOREAS.spot"


@pytest.fixture
def client(service: str) -> Iterator[Client]:
    with Client(service, "demo-pro") as client:
        client.discover()
        yield client


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "rail.duckdb")


def spreads(*items: tuple[str, float, int | None]) -> str:
    """A spread dashboard: of each pair its size (percent), and when an event opened it."""
    rows = []
    for key, pct, opened_at in items:
        symbol, *legs = key.split(":")
        (buy, sold), (sell, bought) = (leg.split(".") for leg in legs)
        row = {"symbol": symbol, "buy_exchange": buy, "buy_market": sold}
        row |= {"sell_exchange": sell, "sell_market": bought}
        rows.append(row | {"spread_pct": pct, "opened_at": opened_at})
    return json.dumps({"items": rows})


def keys(watchlist: Watchlist, client: Client, store: Store, spread: str = "{}") -> dict[str, str]:
    found = Rules(watchlist, client, store)({SnapshotKind.SPREAD: spread})
    return {stream.key: rule for stream, rule in found.items()}


def test_each_rule_names_its_streams_and_what_two_name_has_both(
    client: Client, store: Store
) -> None:
    document = spreads((PAIR, 2.0, 60), ("ETH_USDT:AURORA.spot:BOREAS.spot", 3.0, None))
    wanted = Watchlist(streams=["events/*", PAIR], open_now=True, snapshots=["spread"])
    assert keys(wanted, client, store, document) == {
        "events/spread": "streams events/*",
        "events/splash": "streams events/*",
        "events/funding": "streams events/*",
        PAIR: f"streams {PAIR}, open_now",
        "snapshot/spread": "snapshots spread",
    }


def test_symbols_exchanges_and_families_are_one_rule(client: Client, store: Store) -> None:
    wanted = Watchlist(
        symbols=["BTC_USDT"],
        exchanges=["AURORA", "BOREAS"],
        families=["price", "spread"],
        snapshots=[],
    )
    assert keys(wanted, client, store) == dict.fromkeys(
        ["BTC_USDT:AURORA.spot", "BTC_USDT:BOREAS.spot", PAIR], "symbols and exchanges and families"
    )


def test_the_widest_of_the_open_spreads_are_as_many_as_asked_for(
    client: Client, store: Store
) -> None:
    eth = "ETH_USDT:AURORA.spot:BOREAS.spot"
    document = spreads((PAIR, 2.0, 60), (eth, 3.0, 60), ("BTC_USDT:A.spot:B.spot", 9.0, None))
    wanted = Watchlist(top_open=1, snapshots=[])
    assert keys(wanted, client, store, document) == {eth: "top_open 1"}
    assert Rules(wanted, client, store).snapshots == (SnapshotLog(SnapshotKind.SPREAD),)


def test_pairs_with_a_spread_event_of_that_size_are_named_from_the_log_that_is_held(
    client: Client, store: Store
) -> None:
    wanted = Watchlist(events_above_pct=1.0, events_within="2h", snapshots=[])
    log = {"events/spread": "events_above_pct 1 within 2h"}
    assert keys(wanted, client, store) == log
    writer = StoreWriter(store)
    writer.bind(Source("replay", "example"))
    pending = Messages(BUILT_IN)
    for ago_s, pct, sell in ((600, 1.5, "BOREAS"), (600, 0.5, "SMALL"), (9_000, 3.0, "EARLIER")):
        document = {"event_id": f"{pct}", "ts": NOW - ago_s, "instrument": {"symbol": "BTC_USDT"}}
        document |= {"buy": {"exchange": "AURORA", "market": "spot"}, "spread": {"pct": pct}}
        document |= {"sell": {"exchange": sell, "market": "spot"}}
        pending.add(Message(EventLog(EventFamily.SPREAD), json.dumps(document).encode()))
    writer.commit(writer.start_load(ORIGIN), pending.batch_of_all()[0])
    assert keys(wanted, client, store) == log | {PAIR: log["events/spread"]}


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (
            Watchlist(symbols=["BTC_USDX"]),
            "watchlist symbols: 'BTC_USDX' is not allowed; .*nearest",
        ),
        (Watchlist(exchanges=["AURORE"]), "nearest: AURORA"),
        (Watchlist(streams=["XRP_*"]), "a pattern that matches something listed"),
    ],
)
def test_a_name_of_which_nothing_is_listed_is_refused(
    client: Client, store: Store, wanted: Watchlist, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        keys(wanted, client, store)


def test_what_was_open_lately_is_read_from_the_snapshots_that_are_held(
    client: Client, store: Store
) -> None:
    rules = Rules(Watchlist(open_now=True, keep="1h"), client, store)
    assert rules.lately(NOW) == {}
    writer = StoreWriter(store)
    writer.bind(Source("replay", "example"))
    assert rules.lately(NOW) == {}
    load_id = writer.start_load(ORIGIN)
    batch = Batch()
    for ago_s in (7_200, 1_800):
        document = spreads((f"BTC_USDT:AURORA.spot:X{ago_s}.spot", 1.0, 60)).encode()
        at = NOW - ago_s
        batch.add_snapshot(Snapshot(SnapshotLog(SnapshotKind.SPREAD), at, document), Edge(at))
    writer.commit(load_id, batch)
    ((stream, said),) = rules.lately(NOW).items()
    assert (stream.key, said) == ("BTC_USDT:AURORA.spot:X1800.spot", ("open_now", NOW - 1_800))
