"""A real store with two trajectories, events and snapshots where asked, and the pages over it."""

from __future__ import annotations

import functools
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from tests.empty_store import empty_store
from toolkit.dashboard.link import page_file
from toolkit.dashboard.settings import MAIN
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, SnapshotKind, SnapshotLog, Source, Trajectory
from toolkit.service import Clock, Config, Simulated, running
from toolkit.store import Batch, Edge, LoadOrigin, Snapshot, Store, StoreWriter
from toolkit.tables import BROUGHT, EVENT
from toolkit.wire.quota import Allowance

START = 1_678_406_400  # 2023-03-10 00:00 UTC
MINUTES = 600
HOLE = (200, 260)
"""Minutes that the service, asked, had no row for."""
LEG = Trajectory.parse("BTC_USD:KRAKEN.spot")
PAIR = Trajectory.parse("BTC_USD:COINBASE.spot:KRAKEN.spot")
SERVED_AT = START + 60 * MINUTES
NOW = 1_795_132_800
EDGE = Edge(served_at=SERVED_AT, delay_s=0, retention_s=None, step_s=60)
WHOLE = Interval(START, SERVED_AT)


@contextmanager
def loading(
    store: Store,
    served_at: int = SERVED_AT,
    *asked: Any,
    base_url: str = "http://127.0.0.1:1",
    allowance: Allowance | None = None,
    findings: Sequence[dict[str, object]] = (),
) -> Iterator[Batch]:
    """One load of what is added meanwhile, which ``asked`` for some streams over a window."""
    writer, batch = StoreWriter(store), Batch()
    load = writer.start_load(LoadOrigin(base_url, served_at, None, "0.1.0", allowance), *asked)
    yield batch
    writer.commit(load, batch)
    writer.finish_load(load, findings)


def bring(
    store: Store,
    trajectory: str | Trajectory,
    rows: pl.DataFrame,
    window: Interval = WHOLE,
    edge: Edge = EDGE,
) -> None:
    """One load of rows of a trajectory."""
    with loading(store, edge.served_at) as batch:
        batch.add(Trajectory.parse(str(trajectory)), rows, window, edge)


def keep_snapshot(store: Store, kind: str, document: bytes, served_at: int = SERVED_AT) -> None:
    """One load of a snapshot."""
    with loading(store, served_at) as batch:
        add_snapshot(batch, kind, document, served_at)


def add_snapshot(batch: Batch, kind: str, document: bytes, served_at: int = SERVED_AT) -> None:
    log = SnapshotLog(SnapshotKind(kind))
    batch.add_snapshot(Snapshot(log, served_at, document), Edge(served_at))


def price_rows() -> pl.DataFrame:
    """Minutes without the hole; the second has no price."""
    minutes = [m for m in range(MINUTES) if not HOLE[0] <= m < HOLE[1]]
    return pl.DataFrame(
        {
            "ts": [START + 60 * m for m in minutes],
            "price": [None if m == 1 else 20_000.0 + m % 7 for m in minutes],
            "mark_price": None,
            "volume": 1.5,
            "extra": None,
        },
        schema_overrides={"mark_price": pl.Float64, "extra": pl.String},
    )


def spread_rows() -> pl.DataFrame:
    prices = price_rows()
    return prices.select(
        "ts",
        pl.col("price").alias("buy_price"),
        (pl.col("price") * (1 + 1e-4 * (pl.col("ts") // 60 % 5))).alias("sell_price"),
        spread_pct=pl.when(pl.col("price").is_not_null()).then(0.01),
        extra=pl.lit(None, pl.String),
    )


def fill(store: Store, source: Source, allowance: Allowance | None = None) -> None:
    """One load of ten hours of a leg and a pair."""
    empty_store(store.path, source)
    with loading(store, allowance=allowance) as batch:
        batch.add(LEG, price_rows(), WHOLE, EDGE)
        batch.add(PAIR, spread_rows(), WHOLE, EDGE)


def documents(*rows: tuple[str, str, int, str, float]) -> pl.DataFrame:
    """Documents of BTC_USD between the pair's legs: id, type, minute, lifecycle and size (%)."""
    given = [
        {
            "family": kind.split(".")[0],
            "schema_id": f"svc.{kind.split('.')[0]}.v1",
            "event_id": event_id,
            "event_type": kind,
            "ts_ms": 1000 * (START + 60 * minute),
            "ts": START + 60 * minute,
            "lifecycle": lifecycle,
            "symbol": "BTC_USD",
            "buy_exchange": "COINBASE",
            "buy_market": "spot",
            "sell_exchange": None if kind.startswith("splash") else "KRAKEN",
            "sell_market": None if kind.startswith("splash") else "spot",
            "magnitude_pct": size,
            "document": f'{{"event_id": "{event_id}", "event_type": "{kind}"}}',
        }
        for event_id, kind, minute, lifecycle, size in rows
    ]
    columns = {n: t for n, t in EVENT.schema.items() if n not in ("revision", *BROUGHT)}
    return pl.DataFrame(given, schema=columns)


def add_events(store: Store) -> None:
    """One load of two logs: a spread that closed, one that stands open, and a pump."""
    spread = documents(
        ("closed-one", "spread.opened", 500, "open", 1.5),
        ("closed-one", "spread.closed", 520, "closed", 0.1),
        ("open-one", "spread.opened", 590, "open", 2.5),
    )
    pump = documents(("pump-one", "splash.pump", 595, "open", 3.25))
    edge = Edge(served_at=SERVED_AT, delay_s=30, retention_s=2_592_000, step_s=0)
    findings = [{"kind": "next_missing", "where": "x", "says": "y", "times": 2}]
    with loading(store, findings=findings) as batch:
        batch.add_documents(EventLog(EventFamily.SPREAD), spread, WHOLE, edge)
        batch.add_documents(EventLog(EventFamily.SPLASH), pump, WHOLE, edge)


def add_snapshots(store: Store) -> None:
    """One load of both dashboards: a spread held, one held swapped, one not held, one tracked."""
    legs = [("COINBASE", "KRAKEN", 2.5), ("KRAKEN", "COINBASE", 1.5), ("KRAKEN", "GEMINI", 1.25)]
    spreads = [
        {
            "symbol": "BTC_USD",
            "buy_exchange": buy,
            "buy_market": "spot",
            "sell_exchange": sell,
            "sell_market": "spot",
            "spread_pct": pct,
            "opened_at": SERVED_AT - 600,
        }
        for buy, sell, pct in legs
    ]
    spreads.append(spreads[0] | {"sell_exchange": "GEMINI", "spread_pct": 90.0, "opened_at": None})
    rates = [
        {"symbol": "BTC_USD", "exchange": name, "market": "futures", "rate": rate}
        | {"interval_hours": 8, "next_funding_time": SERVED_AT}
        for name, rate in (("KRAKEN", -0.0001), ("GEMINI", 0.0003))
    ]
    with loading(store) as batch:
        for kind, items in (("spread", spreads), ("funding", rates)):
            add_snapshot(batch, kind, json.dumps({"items": items}).encode())


@pytest.fixture(scope="session", autouse=True)
def components_looked_for_once() -> Iterator[None]:
    """Streamlit's search of all installed packages, by the same function, once instead of per page.

    It takes more than half of the time of a page.
    """
    search = manifest_scanner.scan_component_manifests
    manifest_scanner.scan_component_manifests = functools.cache(search)
    yield
    manifest_scanner.scan_component_manifests = search


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Write a store by `fill`, and add to it, once for each source, plan and what is added."""
    folder = tmp_path_factory.mktemp("filled")

    @functools.cache
    def write(source: Source, allowance: Allowance | None, *added: Callable[[Store], None]) -> Path:
        names = [each.__name__ for each in added]
        path = folder / "-".join([source.kind, source.id, str(allowance is not None), *names])
        if added:
            shutil.copy(write(source, allowance, *added[:-1]), path)
            added[-1](Store(path))
        else:
            fill(Store(path), source, allowance)
        return path

    return write


@pytest.fixture
def make_store(tmp_path: Path, filled: Callable[..., Path]) -> Callable[..., Store]:
    """A store of a source with one load of ten hours of a leg and a pair, and what is added."""

    def made(
        source: Source, allowance: Allowance | None = None, *added: Callable[[Store], None]
    ) -> Store:
        return Store(Path(shutil.copy(filled(source, allowance, *added), tmp_path / "held.duckdb")))

    return made


REPLAYED = Source("replay", "depeg-77aa")


@pytest.fixture
def held(make_store: Callable[..., Store]) -> Store:
    """A store that replays recorded data."""
    return make_store(REPLAYED)


@pytest.fixture
def full(make_store: Callable[..., Store]) -> Store:
    """The same with events and snapshots."""
    return make_store(REPLAYED, None, add_events, add_snapshots)


@pytest.fixture
def logged(make_store: Callable[..., Store]) -> Store:
    """The held store with its event logs, and no snapshot."""
    return make_store(REPLAYED, None, add_events)


@pytest.fixture
def gapped(held: Store) -> Store:
    """The leg asked again two hours later, of which only the last minutes were loaded."""
    edge = replace(EDGE, served_at=SERVED_AT + 7200)
    bring(held, LEG, price_rows().clear(), Interval(edge.served_at - 180, edge.served_at), edge)
    return held


@pytest.fixture
def aged(bare: Store) -> Store:
    """The pair and its log, answered for 20 minutes ago, when the newest row was a minute old."""
    asked_at = int(time.time()) - 1200
    rows = spread_rows().filter(pl.col("ts") < SERVED_AT - 60)
    with loading(bare, SERVED_AT - 7200) as batch:
        batch.add(PAIR, rows, WHOLE, replace(EDGE, asked_at=asked_at))
    return bare


@pytest.fixture
def service() -> Iterator[str]:
    """The address of a SIMULATED market whose clock stands at NOW."""
    with running(Config(Simulated(7), port=0, clock=Clock(fixed_at=NOW))) as local:
        yield local.base_url


@pytest.fixture
def bare(tmp_path: Path) -> Store:
    """A store that was bound to its source and asked for nothing yet."""
    return empty_store(tmp_path / "bare.duckdb", Source("live", "rail"))


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., AppTest]:
    """A page over a store, the trajectory's where none is named, opened by a link.

    Streamlit knows the other pages once the first has run, which has no store then: that is quick.
    """

    def opened(
        path: Path, name: str = "trajectory", *, timezone: str = "UTC", **params: str
    ) -> AppTest:
        st.cache_data.clear()
        st.cache_resource.clear()
        page = AppTest.from_file(str(MAIN), default_timeout=60)
        page.context = {"timezone": timezone}
        if name != "overview":
            monkeypatch.setenv("RAIL_STORE", str(tmp_path / "no-store-yet.duckdb"))
            page.run()
            page.switch_page(page_file(name))
        monkeypatch.setenv("RAIL_STORE", str(path))
        for parameter, value in params.items():
            page.query_params[parameter] = value
        page.run()
        assert not page.exception
        return page

    return opened


def open_alone(
    patch: pytest.MonkeyPatch,
    name: str,
    path: Path,
    timezone: str = "UTC",
    script: Path | None = None,
    **params: str,
) -> AppTest:
    """Run one page's script without the others, or another script, opened by a link."""
    patch.setenv("RAIL_STORE", str(path))
    st.cache_data.clear()
    shown = AppTest.from_file(str(script or page_file(name)), default_timeout=60)
    shown.context = {"timezone": timezone}
    for parameter, value in params.items():
        shown.query_params[parameter] = value
    shown.run()
    assert not shown.exception
    return shown


@pytest.fixture
def page_alone(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """One page's script, see `open_alone`."""
    return functools.partial(open_alone, monkeypatch)


@pytest.fixture(scope="module")
def seen_alone() -> Callable[..., AppTest]:
    """The same, run once for each store and link: for tests that read the page alone."""

    @functools.cache
    def seen(name: str, path: Path, **params: str) -> AppTest:
        with pytest.MonkeyPatch.context() as patch:
            return open_alone(patch, name, path, **params)

    return seen
