"""The views in a store: what other programs read in them, whatever their zone."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest

from tests.conftest import ROOT
from tests.empty_store import empty_store
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, SnapshotLog
from toolkit.statistics.spread import with_spread
from toolkit.store import Batch, Edge, Snapshot, Store, StoreWriter
from toolkit.store.reading.views import VIEWS
from toolkit.wire.event_log import document_frame

from .conftest import ORIGIN, SOURCE, committing, writer_of

PRICE, PAIR = "A_B:X.spot", "A_B:X.spot:Y.spot"
FUNDING = "funding/A_B:X.futures:Y.futures"
MARCH = 1_678_406_400  # 2023-03-10 00:00 UTC

PAIR_ITEM = {"symbol": "A_B", "buy_exchange": "X", "buy_market": "spot"}
PAIR_ITEM |= {"sell_exchange": "Y", "sell_market": "spot", "opened_at": None}
RATE_ITEM = {"symbol": "A_B", "exchange": "X", "market": "futures", "rate": 1e-4}
RATE_ITEM |= {"interval_hours": 8, "next_funding_time": None}

READS_ALL = """
import importlib.util, json, sys
sys.modules["pytz"] = None
import duckdb
connection = duckdb.connect(sys.argv[1], read_only=True)
try:
    connection.execute("SET TimeZone = 'Asia/Tokyo'")
except duckdb.Error:  # a build without zones has none to set
    pass
found = {}
for view in sys.argv[2:]:
    cursor = connection.execute(f"FROM {view} ORDER BY ALL")
    found[view] = ([column[0] for column in cursor.description],
                   [list(map(str, row)) for row in cursor.fetchall()])
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """One row of each kind, of which a price and a document were changed later."""
    store = empty_store(tmp_path_factory.mktemp("views") / "rail.duckdb", SOURCE)
    commit = committing(store)
    asked = {"answered": (MARCH, MARCH + 120), "edge": Edge(MARCH + 200_000, step_s=60)}
    commit(PRICE, [(MARCH, 1.0), (MARCH + 60, 2.0)], **asked)
    commit(PRICE, [(MARCH + 60, 2.5, 2.0)], **asked)
    commit(PAIR, [(MARCH, 100.0, 101.0)], **asked)
    commit(FUNDING, [(MARCH, 1e-4, 2e-4, 8.0, 8.0, 0.01)], **asked)
    for size in (1.5, 2.5):
        document = {
            "family": "spread",
            "schema_id": "svc.spread.v1",
            "event_id": "one",
            "event_type": "spread.opened",
            "ts_ms": 1000 * MARCH,
            "ts": MARCH,
            "magnitude_pct": size,
            "document": json.dumps({"spread_pct": size}),
        }
        batch, log, frame = Batch(), EventLog(EventFamily.SPREAD), document_frame([document])
        batch.add_documents(log, frame, Interval(MARCH, MARCH + 60), Edge(MARCH + 999, step_s=0))
        writer = writer_of(store)
        writer.commit(writer.start_load(ORIGIN), batch)
        batch = Batch()
        for kind, item in (("spread", {**PAIR_ITEM, "spread_pct": 1.0}), ("funding", RATE_ITEM)):
            answer, log = json.dumps({"items": [item]}).encode(), SnapshotLog.named(kind)
            batch.add_snapshot(Snapshot(log, MARCH, answer), Edge(MARCH))
        writer.commit(1, batch)
    return store.path.read_bytes()


@pytest.fixture
def filled(content: bytes, tmp_path: Path) -> Store:
    path = tmp_path / "rail.duckdb"
    path.write_bytes(content)
    return Store(path, wait_s=60)


def test_the_examples_of_the_page_of_the_store_run(filled: Store) -> None:
    page = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
    (query,) = re.findall(r"(?ms)^```sql\n(.*?)^```$", page)
    (example,) = re.findall(r"(?ms)^```python\n(.*?)^```$", page)
    (of_march,) = filled.sql(query).to_dicts()
    assert (of_march["trajectory"], of_march["n"]) == (PAIR, 1)

    names = {"store": filled, "duckdb": duckdb}
    first, _, second = example.replace("BTC_USD:KRAKEN.spot", PRICE).partition("\n")
    exec(f"{first}\nseconds = {second}\nfound = dict(seconds.fetchall())", names)
    assert sum(names["found"].values()) == 3 * 86_400
    assert names["found"]["held"] == 120


def test_another_program_reads_each_view_in_utc_whatever_its_zone(filled: Store) -> None:
    done = subprocess.run(
        [sys.executable, "-c", READS_ALL, str(filled.path), *(view.name for view in VIEWS)],
        env={**os.environ, "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    midnight = "2023-03-10 00:00:00"
    for view in VIEWS:
        columns, rows = found[view.name]
        assert columns == [column.name for column in view.columns]
        assert rows, view.name
        assert rows[0][columns.index("time")] == midnight
    prices = [row[:4] for row in found["prices"][1]]
    assert prices == [
        [PRICE, midnight, str(MARCH), "1.0"],
        [PRICE, "2023-03-10 00:01:00", str(MARCH + 60), "2.5"],
    ]
    (document,) = (json.loads(row[-1]) for row in found["event_documents"][1])
    assert document["spread_pct"] == 2.5
    assert {row[0] for row in found["held_coverage"][1]} >= {PRICE, "events/spread"}


def test_a_view_has_the_types_that_the_docs_name(filled: Store) -> None:
    with duckdb.connect(str(filled.path), read_only=True) as connection:
        for view in VIEWS:
            described = connection.execute(f"DESCRIBE {view.name}").fetchall()
            assert [(row[0], row[1]) for row in described] == [
                (column.name, column.type) for column in view.columns
            ]
            keys = ", ".join(view.key)
            twice = f"FROM {view.name} SELECT count(*) GROUP BY {keys} HAVING count(*) > 1"
            assert connection.execute(twice).fetchall() == []


def test_the_name_of_the_file_does_not_matter(filled: Store, tmp_path: Path) -> None:
    for name in ("spread", "stream", "price", "prices", "coverage", "r", "n"):
        path = tmp_path / f"{name}.db"
        path.write_bytes(filled.path.read_bytes())
        with duckdb.connect(str(path), read_only=True) as connection:
            for view in VIEWS:
                assert connection.execute(f"FROM {view.name}").fetchall()


NUMBERS = [
    *(None, math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 5e-324, 1e-300, 1e-12, 1e300),
    *(1.0, 1.0 + 2**-52, 1.0 + 1e-9, 100.0, 101.0, 1.7e308),
]
PERCENTS = [None, math.nan, math.inf, -100.0, -99.99999999999999, -101.0, 0.0, 1e-13, 1.0, 1e300]


def test_a_spread_in_sql_is_the_spread_of_the_statistics(store: Store, commit: Callable) -> None:
    pairs = [(buy, sell, pct) for buy in NUMBERS for sell in NUMBERS for pct in PERCENTS]
    commit(PAIR, [(60 * at, *row) for at, row in enumerate(pairs)])
    found = store.sql("FROM spreads ORDER BY ts")
    expected = with_spread(store.series(PAIR)).cast({"spread_basis": pl.String})
    assert found["ts"].equals(expected["ts"])
    assert found["spread_basis"].equals(expected["spread_basis"])
    for name in ("spread_log_bps", "spread_bps"):
        assert found[name].is_null().equals(expected[name].is_null())
        ours, theirs = (frame[name].drop_nulls().to_list() for frame in (found, expected))
        assert ours == pytest.approx(theirs, rel=1e-14, abs=0)


def test_of_rows_that_share_a_time_the_view_has_the_one_that_series_gives(
    store: Store, commit: Callable
) -> None:
    commit(PRICE, [(0, 1.0), (60, 2.0), (120, 3.0)])
    for price in (4.0, 5.0, 2.0):
        commit(PRICE, [(60, price)])
    found = store.sql("FROM prices ORDER BY ts")
    assert found["price"].to_list() == store.series(PRICE)["price"].to_list() == [1.0, 2.0, 3.0]


def test_the_ledger_is_there_with_its_states(filled: Store) -> None:
    held = filled.sql("FROM held_coverage WHERE stream = $key", {"key": PRICE})
    with filled.reading() as connection:
        rows = connection.execute(
            "SELECT state, start_ts, end_ts FROM coverage JOIN stream USING (stream_id) "
            "WHERE key = ?",
            [PRICE],
        ).fetchall()
    assert sorted(held.select("state", "start_ts", "end_ts").rows()) == sorted(rows)
    assert (MARCH, MARCH + 120) in held.select("start_ts", "end_ts").rows()
    first = dt.datetime(2023, 3, 10, tzinfo=dt.UTC)
    assert first in held["time"].to_list()


def definitions(path: Path) -> dict[str, str]:
    with duckdb.connect(str(path), read_only=True) as connection:
        found = connection.execute(
            "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
        ).fetchall()
    return dict(found)


def change(path: Path, *statements: str) -> None:
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_store_from_before_the_views_gets_them_at_its_next_write(filled: Store) -> None:
    made = definitions(filled.path)
    assert set(made) == {view.name for view in VIEWS}
    change(filled.path, *(f"DROP VIEW {view.name}" for view in VIEWS))
    older = StoreWriter(Store(filled.path))
    assert older.store.sql("FROM prices").height == 2
    assert definitions(filled.path) == {}
    older.start_load(ORIGIN)
    assert definitions(filled.path) == made


def test_a_strangers_view_is_replaced_and_a_users_table_is_left(
    filled: Store, caplog: pytest.LogCaptureFixture
) -> None:
    made = definitions(filled.path)
    change(
        filled.path,
        "CREATE OR REPLACE VIEW prices AS SELECT 666 AS price",
        "DROP VIEW spreads",
        "CREATE TABLE spreads AS SELECT 7 AS mine",
    )
    again = StoreWriter(Store(filled.path))
    again.bind(SOURCE)
    again.start_load(ORIGIN)
    assert "has a table spreads" in caplog.text
    left = definitions(filled.path)
    assert left == {name: text for name, text in made.items() if name != "spreads"}
    assert again.store.sql("SELECT buy_price FROM spreads").item() == 100.0
