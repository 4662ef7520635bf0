"""What a newcomer sees who types a name into a cell: facts, never a key, never an error."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import toolkit as tk
from tests import miniature
from toolkit.client import Client
from toolkit.intervals import Interval
from toolkit.loader import LoadResult
from toolkit.market import EventFamily, EventLog, Source, Trajectory
from toolkit.store import Inserted, Store
from toolkit.wire.findings import Finding
from toolkit.workspace import Workspace

KEY = "sekrit-0451"
PRICE = Trajectory.parse("BTC_USDT:AURORA.spot")
SPREAD = Trajectory.parse("BTC_USDT:AURORA.spot:BOREAS.spot")
WINDOW = miniature.START, miniature.END


def shown(thing: tk.Workspace | Store | Client | LoadResult) -> dict[str, str]:
    """The facts as displayed, after checking that text and HTML are of one card."""
    card = thing.card
    bundle = thing._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"].splitlines()[0] == card.heading
    assert len(card.facts) <= 10
    return {"heading": card.heading, **dict(card.facts)}


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which connections are accepted and nothing is ever answered."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def rail(service: str, workdir: Path) -> Iterator[tk.Workspace]:
    with tk.open(workdir / "s.duckdb", base_url=service) as workspace:
        yield workspace


def test_a_workspace_without_an_address_says_in_one_line_what_was_opened(workdir: Path) -> None:
    with tk.open() as rail:
        assert repr(rail) == (
            "<Workspace: not bound to a source yet, rail.duckdb; service none asked yet>"
        )
        assert rail.symbols("BTC").legs
        line = repr(rail)
        facts = shown(rail)
    assert list(workdir.iterdir()) == []
    assert line.startswith("<Workspace: SIMULATED market, seed-7-")
    assert "\n" not in line
    for said in ("plan pro: ", "reach 30 d back, no delay", "rail.duckdb"):
        assert said in line
    assert facts["heading"].startswith("Workspace: SIMULATED market, seed-7-")
    assert facts["heading"].endswith(", rail.duckdb")
    assert facts["holds"] == "nothing yet: the first load makes the file"


def test_a_service_that_was_not_asked_is_not_asked_by_showing_it(nobody: str) -> None:
    with Workspace(Client(nobody, KEY), Store("rail.duckdb")) as rail:
        assert repr(rail) == (
            f"<Workspace: not asked yet, rail.duckdb; service {nobody}; plan not told yet; "
            "reach not asked yet>"
        )
        facts = shown(rail)
        client = shown(rail.client)
    assert facts["service"] == nobody
    assert client == {
        "heading": f"Client of {nobody}",
        "source": "not asked yet",
        "plan": "not told yet",
        "reach": "not asked yet",
    }


def test_a_key_is_in_no_display(service: str, tmp_path: Path) -> None:
    with Workspace(Client(service, "demo-pro"), Store(tmp_path / "s.duckdb")) as rail:
        done = rail.sync([PRICE], *WINDOW)
        for thing in (rail, rail.client, rail.store, done, rail.client.symbols()):
            told = repr(thing) + "".join(thing._repr_mimebundle_().values())
            assert "demo-pro" not in told


@pytest.mark.slow
def test_a_store_says_its_source_rows_window_size_and_last_load(rail: tk.Workspace) -> None:
    rail.sync([PRICE, SPREAD], *WINDOW)
    rail.sync("events/splash", *WINDOW)
    facts = shown(rail.store)
    documents = len(rail.events("splash", *WINDOW))
    assert facts["source"] == rail.store.source.label
    assert facts["trajectories"] == "2 (1 price, 1 spread)"
    buy, sell = (
        set(miniature.rows().filter(symbol="BTC_USDT", exchange=leg.exchange)["ts"])
        for leg in SPREAD.legs
    )
    prices, spreads = len(buy), len(buy & sell)
    assert facts["rows"] == f"{prices + spreads:,} ({prices:,} price, {spreads:,} spread)"
    assert facts["events"] == (f"{documents:,} ({documents:,} splash)" if documents else "none")
    assert facts["between"] == "first 2026-11-01 00:00 UTC, last 2026-11-03 23:59 UTC"
    assert facts["size"].endswith(" MB")
    assert facts["last load"].startswith("begun 20")
    assert "finished within" in facts["last load"]
    workspace = shown(rail)
    assert workspace["rows"] == facts["rows"]
    assert "source" not in workspace


def test_a_store_that_is_in_use_says_so_and_soon(rail: tk.Workspace) -> None:
    rail.sync([PRICE], *WINDOW)
    rail.store.wait_s = 600  # no machine is that busy
    began = time.monotonic()
    with duckdb.connect(str(rail.store.path)):
        for thing in (rail.store, rail):
            assert "is held open by a DuckDB connection of this process" in shown(thing)["not read"]
    assert time.monotonic() - began < rail.store.wait_s
    assert "not read" not in shown(rail.store)


def test_a_file_that_is_no_store_says_so(tmp_path: Path) -> None:
    path = tmp_path / "notes.duckdb"
    path.write_text("not a database")
    assert "notes.duckdb" in shown(Store(path))["not read"]
    assert shown(Store(tmp_path))["not read"].endswith("is a directory; name a file")


def test_a_load_says_what_it_did_and_what_was_odd() -> None:
    result = LoadResult(
        Source("live", "rail-1"),
        Interval(0, 86_400),
        (PRICE, SPREAD),
        Inserted(new=1, repeated=2000, revised=3),
        pages=1,
        elapsed_s=1.25,
        silent=(SPREAD,),
        unrecoverable={PRICE: [Interval(0, 3600)]},
        findings=((Finding("unit_differs", "/schemas", "bps"), 4),),
    )
    assert shown(result) == {
        "heading": "Load from Live service, rail-1",
        "loaded": "1 row new, 2,000 held already, 3 revised",
        "asked": f"{PRICE}, {SPREAD}",
        "window": "[1970-01-01 00:00 UTC, 1970-01-02 00:00 UTC)",
        "took": "1 page, 1.2 s",
        "silent": f"1 of 2: {SPREAD}",
        "beyond the plan's depth": f"{PRICE} 1 h",
        "findings": "unit_differs at /schemas (4x)",
    }
    assert str(result) == (
        "1 row new, 2,000 held already, 3 revised; 1 page, 2 trajectories, 1.2 s; "
        "Live service, rail-1"
    )


def test_a_load_of_event_logs_counts_documents() -> None:
    logs = tuple(map(EventLog, EventFamily))
    done = LoadResult(Source("live", "r"), Interval(0, 60), logs, Inserted(new=2), 3, 0.5)
    said = "2 documents new, 0 held already; 3 pages, 3 event logs, 0.5 s; Live service, r"
    assert str(done) == said
    assert shown(done)["asked"] == "events/spread, events/splash, events/funding"


def test_a_listing_shows_the_legs_of_at_most_ten_symbols(service: str) -> None:
    with Client(service, "demo-pro") as client:
        bundle = client.symbols()._repr_mimebundle_()
    heading, *lines = bundle["text/plain"].splitlines()
    assert heading == f"Listing: 2 symbols, {2 * len(lines[0].split(', '))} legs"
    assert [line.split()[0] for line in lines] == ["BTC_USDT", "ETH_USDT"]
