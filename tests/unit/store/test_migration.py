"""A store of an older format is brought to this one at its first use, beside a copy of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import duckdb
import polars as pl
import pytest

from toolkit.errors import NotAStoreError
from toolkit.intervals import Interval
from toolkit.market import EventFamily, EventLog, Source, Stream, Trajectory
from toolkit.store import Batch, Edge, Inserted, LoadOrigin, Store, StoreWriter, read_deliveries
from toolkit.store.migration import backup_path
from toolkit.store.schema import FORMAT_VERSION, read_format
from toolkit.store.verification import verify
from toolkit.tables import LOAD, TABLES
from toolkit.wire.allowance import Allowance
from toolkit.wire.events import document_frame

SOURCE = Source("replay", "example")
ORIGIN = LoadOrigin("http://two", 20, None, "0.2.0", Allowance("builder", 600, 60, 599))
PRICE = Trajectory.parse("A_B:X.spot")
FUNDING = Trajectory.parse("funding/A_B:X.futures:Y.futures")
SPREADS = EventLog(EventFamily.SPREAD)

FORMAT_1 = """
CREATE TABLE meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL);
CREATE TABLE trajectory (trajectory_id INTEGER NOT NULL, family VARCHAR NOT NULL, key VARCHAR
    NOT NULL);
CREATE TABLE load (load_id BIGINT NOT NULL, started_at BIGINT NOT NULL, finished_at BIGINT,
    served_at BIGINT NOT NULL, base_url VARCHAR NOT NULL, schema_hash VARCHAR, toolkit_version
    VARCHAR NOT NULL, finding JSON);
CREATE TABLE coverage (trajectory_id INTEGER NOT NULL, start_ts BIGINT NOT NULL, end_ts BIGINT
    NOT NULL, load_id BIGINT NOT NULL);
CREATE TABLE edge (trajectory_id INTEGER NOT NULL, load_id BIGINT NOT NULL, retention_s
    BIGINT, delay_s BIGINT NOT NULL, step_s BIGINT, tail_ts BIGINT, served_at BIGINT NOT NULL,
    asked_at BIGINT NOT NULL);
CREATE TABLE price (trajectory_id INTEGER NOT NULL, ts BIGINT NOT NULL, price DOUBLE,
    mark_price DOUBLE, volume DOUBLE, extra JSON, revision INTEGER NOT NULL, load_id BIGINT NOT
    NULL);
CREATE TABLE spread (trajectory_id INTEGER NOT NULL, ts BIGINT NOT NULL, buy_price DOUBLE,
    sell_price DOUBLE, spread_pct DOUBLE, extra JSON, revision INTEGER NOT NULL, load_id BIGINT
    NOT NULL);
CREATE TABLE funding (trajectory_id INTEGER NOT NULL, ts BIGINT NOT NULL, buy_rate DOUBLE,
    sell_rate DOUBLE, buy_interval_hours DOUBLE, sell_interval_hours DOUBLE, differential_pct_8h
    DOUBLE, extra JSON, revision INTEGER NOT NULL, load_id BIGINT NOT NULL);
CREATE TABLE event (family VARCHAR NOT NULL, schema_id VARCHAR, event_id VARCHAR NOT NULL,
    event_type VARCHAR, ts_ms BIGINT NOT NULL, ts BIGINT NOT NULL, lifecycle VARCHAR, symbol
    VARCHAR, buy_exchange VARCHAR, buy_market VARCHAR, sell_exchange VARCHAR, sell_market VARCHAR,
    magnitude_pct DOUBLE, peak_pct DOUBLE, differential_pct_8h DOUBLE, close_reason VARCHAR,
    document VARCHAR NOT NULL, revision INTEGER NOT NULL, load_id BIGINT NOT NULL);
CREATE TABLE event_coverage (family VARCHAR NOT NULL, start_ts BIGINT NOT NULL, end_ts BIGINT
    NOT NULL, load_id BIGINT NOT NULL);
CREATE TABLE event_edge (family VARCHAR NOT NULL, load_id BIGINT NOT NULL, retention_s BIGINT,
    delay_s BIGINT NOT NULL, served_at BIGINT NOT NULL, asked_at BIGINT NOT NULL);
CREATE TABLE snapshot (kind VARCHAR NOT NULL, served_at BIGINT NOT NULL, document VARCHAR NOT
    NULL, load_id BIGINT NOT NULL)
"""
FORMAT_2 = """
ALTER TABLE load ADD COLUMN plan VARCHAR;
ALTER TABLE load ADD COLUMN quota BIGINT;
ALTER TABLE load ADD COLUMN quota_window_s BIGINT;
ALTER TABLE load ADD COLUMN quota_left BIGINT;
CREATE TABLE gap (load_id BIGINT NOT NULL, gap_id INTEGER NOT NULL, trajectory_id INTEGER,
    family VARCHAR, start_ts BIGINT NOT NULL, end_ts BIGINT, cause VARCHAR NOT NULL, status
    VARCHAR NOT NULL, repaired_load_id BIGINT);
CREATE TABLE delivery (delivery_id VARCHAR NOT NULL, received_at BIGINT NOT NULL, family
    VARCHAR, document VARCHAR, load_id BIGINT NOT NULL)
"""
DATA = """
INSERT INTO load (load_id, started_at, finished_at, served_at, base_url, toolkit_version)
    VALUES (1, 10, 11, 9, 'http://one', '0.1.0'), (2, 20, NULL, 19, 'http://one', '0.1.0');
INSERT INTO trajectory VALUES (1, 'price', 'A_B:X.spot'), (2, 'funding',
    'A_B:X.futures:Y.futures');
INSERT INTO price VALUES (1, 60, 2.5, NULL, 1.0, NULL, 0, 1), (1, 120, 2.6, NULL, NULL, NULL,
    0, 1), (1, 120, 2.7, NULL, NULL, NULL, 1, 2);
INSERT INTO funding VALUES (2, 0, 0.1, 0.2, 8, 8, NULL, NULL, 0, 1);
INSERT INTO coverage VALUES (1, 0, 60, 1), (1, 60, 180, 2), (1, 300, 360, 2), (2, 0, 60, 1);
INSERT INTO edge VALUES (1, 1, NULL, 0, 60, 180, 500, 10), (1, 2, 3600, 5, 60, 360, 1000, 20),
    (2, 1, NULL, 0, NULL, NULL, 500, 10);
INSERT INTO event (family, event_id, ts_ms, ts, document, revision, load_id) VALUES ('spread',
    'e', 60000, 60, '{}', 0, 1), ('spread', 'e', 60000, 60, '{"a":1}', 1, 2), ('splash', 'f',
    61000, 61, '{}', 0, 2);
INSERT INTO event_coverage VALUES ('spread', 0, 100, 1), ('spread', 100, 200, 2);
INSERT INTO event_edge VALUES ('spread', 1, NULL, 0, 500, 10), ('spread', 2, 2592000, 30,
    1000, 20);
INSERT INTO snapshot VALUES ('symbols', 500, '{}', 1), ('symbols', 1000, '[]', 2)
"""
DATA_2 = """
INSERT INTO gap VALUES (2, 1, 1, NULL, 200, 300, 'closed with 1011', 'open', NULL), (2, 2,
    NULL, 'spread', 200, NULL, 'silent', 'open', NULL);
INSERT INTO delivery VALUES ('d1', 20, 'splash', NULL, 2)
"""


@pytest.fixture(params=[1, 2])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A file of an older format, with something in every table."""
    path = tmp_path / "old.duckdb"
    scripts = [FORMAT_1, DATA] if request.param == 1 else [FORMAT_1, FORMAT_2, DATA, DATA_2]
    facts = {"format_version": request.param, "source_kind": SOURCE.kind, "source_id": SOURCE.id}
    with duckdb.connect(str(path)) as connection:
        for script in scripts:
            connection.execute(script)
        connection.executemany("INSERT INTO meta VALUES (?, ?)", [list(f) for f in facts.items()])
    return Store(path)


def whole(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table of a file."""
    with duckdb.connect(str(path), read_only=True) as connection:
        names = [
            n for (n,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        ]
        return {n: sorted(connection.execute(f"FROM {n}").fetchall(), key=str) for n in names}


def held_format(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        return read_format(connection, path)


def test_a_store_of_format_8_takes_a_minute_for_how_long_its_rows_may_change(
    store: Store, commit: Callable[..., Inserted]
) -> None:
    commit(PRICE, [(60, 1.0)])
    as_new = whole(store.path)
    with duckdb.connect(str(store.path)) as connection:
        for table in ("edge", "edge_change"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN settle_s")
        connection.execute("ALTER TABLE load DROP COLUMN profile_hash")
        connection.execute("UPDATE meta SET value = '8' WHERE name = 'format_version'")
    assert Store(store.path).loads()["profile_hash"].to_list() == [None]
    assert whole(store.path) == as_new
    assert verify(store) == []


def test_in_a_store_of_format_10_nothing_is_lost_yet(
    store: Store, commit: Callable[..., Inserted]
) -> None:
    commit(PRICE, [(60, 1.0)])
    as_new = whole(store.path)
    with duckdb.connect(str(store.path)) as connection:
        for table in ("coverage", "coverage_change"):
            connection.execute(f"ALTER TABLE {table} DROP COLUMN why")
        connection.execute("UPDATE meta SET value = '10' WHERE name = 'format_version'")
    assert Store(store.path).gaps().is_empty()
    assert whole(store.path) == as_new
    assert held_format(store.path.with_name("rail.format-10.duckdb")) == 10
    assert verify(store) == []


def test_the_first_look_brings_it_to_this_format_and_nothing_it_held_is_lost(old: Store) -> None:
    assert old.catalogue().select(
        "stream", "kind", "rows", "revisions", "first_ts", "last_ts"
    ).rows() == [
        ("events/splash", "events", 1, 0, 61, 61),
        ("events/spread", "events", 1, 1, 60, 60),
        (FUNDING.key, "funding", 1, 0, 0, 0),
        (PRICE.key, "price", 2, 1, 60, 120),
        ("snapshot/symbols", "snapshot", 2, 0, 500, 1000),
    ]
    assert held_format(old.path) == FORMAT_VERSION
    assert old.source == SOURCE
    assert old.series(PRICE)["price"].to_list() == [2.5, 2.7]
    assert old.series(FUNDING)["sell_rate"].to_list() == [0.2]
    assert old.events(EventFamily.SPREAD, Interval(0, 100))["document"].to_list() == ['{"a":1}']
    assert old.snapshots("symbols")["document"].to_list() == ["[]", "{}"]
    assert old.loads().schema == LOAD.schema
    assert old.loads()["load_id"].to_list() == [2, 1]


def test_a_file_with_functions_in_place_of_duckdbs_is_left_as_it_is(old: Store) -> None:
    with duckdb.connect(str(old.path)) as connection:
        connection.execute("CREATE MACRO coalesce(x) AS 7; CREATE MACRO lower(x) AS 7")
    with pytest.raises(NotAStoreError, match="functions in place of DuckDB's"):
        old.series(PRICE)
    assert [*old.path.parent.iterdir()] == [old.path]


def test_both_ledgers_become_one_that_is_merged_and_knows_the_newest_edge(old: Store) -> None:
    ledger = old.ledger()
    assert {stream.key: known.answered for stream, known in ledger.items()} == {
        PRICE.key: [(0, 180), (300, 360)],
        FUNDING.key: [(0, 60)],
        SPREADS.key: [(0, 200)],
        "snapshot/symbols": [],
    }
    assert ledger[PRICE].asked == [(0, 360)]  # what was asked was not kept: the span is taken
    assert ledger[PRICE].edge == Edge(1000, 5, 3600, 60, 360)
    assert ledger[SPREADS].edge == Edge(1000, 30, 2_592_000, 0, None)


def test_gaps_and_deliveries_keep_their_stream(old: Store) -> None:
    version = held_format(old.path)
    found = old.gaps().select("stream", "start_ts", "end_ts", "status").rows()
    assert found == (
        [] if version == 1 else [(SPREADS.key, 200, None, "open"), (PRICE.key, 200, 300, "open")]
    )
    assert read_deliveries(old).height == version - 1


def test_the_store_as_it_was_is_kept_beside_it_and_the_user_reads_where(
    old: Store, caplog: pytest.LogCaptureFixture
) -> None:
    before, version = whole(old.path), held_format(old.path)
    copy = backup_path(old.path, version)
    with caplog.at_level(logging.WARNING):
        old.loads()
    assert whole(copy) == before
    (line,) = (record.getMessage() for record in caplog.records)
    assert f"from store format {version} to {FORMAT_VERSION}" in line
    assert str(copy) in line
    assert sorted(path.name for path in old.path.parent.iterdir()) == sorted(
        [old.path.name, copy.name]
    )


def test_a_store_is_migrated_once(old: Store) -> None:
    old.catalogue()
    after = whole(old.path)
    Store(old.path).catalogue()
    assert whole(old.path) == after


def test_a_migrated_store_has_the_tables_of_a_new_one(old: Store, tmp_path: Path) -> None:
    new = Store(tmp_path / "new.duckdb")
    StoreWriter(new).bind(SOURCE)
    columns = []
    for store in (old, new):
        with store.reading() as connection:
            columns.append(
                connection.execute(
                    "SELECT table_name, column_name, data_type, is_nullable FROM duckdb_columns() "
                    "WHERE NOT internal "
                    "ORDER BY table_name, column_index"
                ).fetchall()
            )
    assert columns[0] == columns[1]
    assert {table.name for table in TABLES} <= {name for name, *_ in columns[0]}
    assert "trajectory" not in {name for name, *_ in columns[0]}


def test_a_copy_that_is_there_already_is_left_and_another_is_made(old: Store) -> None:
    version, before = held_format(old.path), whole(old.path)
    first = backup_path(old.path, version)
    first.write_bytes(b"of another store")
    old.loads()
    assert first.read_bytes() == b"of another store"
    assert whole(first.with_name(f"old.format-{version}-2.duckdb")) == before


def test_a_gap_of_a_log_without_documents_keeps_its_stream(old: Store) -> None:
    if held_format(old.path) == 1:
        pytest.skip("format 1 has no gaps")
    with duckdb.connect(str(old.path)) as connection:
        connection.execute(
            "INSERT INTO gap VALUES (2, 3, NULL, 'funding', 10, 20, 'closed', 'open', NULL)"
        )
        connection.execute("INSERT INTO snapshot VALUES ('odd', 7, '{}', 2)")
    assert "events/funding" in old.gaps()["stream"].to_list()
    with old.reading() as connection:
        kept = connection.execute("SELECT served_at FROM snapshot WHERE kind = 'odd'").fetchall()
    assert kept == [(7,)]


def test_loads_go_on_after_the_migration(old: Store) -> None:
    streams = [PRICE, Stream.parse("events/funding")]
    assert StoreWriter(old).start_load(ORIGIN, streams, Interval(0, 600)) == 3
    assert old.loads().row(0, named=True)["plan"] == "builder"
    assert old.ledger([PRICE])[PRICE].asked == [(0, 600)]
    assert old.catalogue()["stream"].to_list()[0] == "events/funding"


def test_the_plan_named_last_replaces_the_one_named_first(old: Store) -> None:
    writer = StoreWriter(old)
    load = writer.start_load(ORIGIN)
    writer.keep_allowance(load, Allowance("builder", 600, 60, 7))
    writer.keep_allowance(load, None)
    assert old.loads().row(0, named=True)["quota_left"] == 7


def test_a_store_of_format_3_asks_again_for_what_it_closed_too_early(tmp_path: Path) -> None:
    store = Store(tmp_path / "three.duckdb")
    writer = StoreWriter(store)
    writer.bind(SOURCE)
    batch, edge = Batch(), Edge(100_000, step_s=60, tail_ts=50_000)
    times = [*range(0, 6_000, 60), *range(9_000, 12_000, 60)]
    rows = pl.DataFrame({"ts": times}).with_columns(
        price=1.0, mark_price=None, volume=None, extra=None
    )
    batch.add(PRICE, rows.cast({"extra": pl.String}), Interval(0, 12_000), edge)
    batch.add_documents(SPREADS, document_frame([]), Interval(0, 9_000), Edge(100_000, step_s=0))
    writer.commit(writer.start_load(ORIGIN), batch)
    before = store.series(PRICE)
    with duckdb.connect(str(store.path)) as connection:
        for change in (
            "UPDATE coverage SET state = 'answered'",
            "ALTER TABLE coverage DROP first_served_at",
            "ALTER TABLE coverage DROP served_at",
            "ALTER TABLE stream DROP late_s",
            "UPDATE meta SET value = '3' WHERE name = 'format_version'",
        ):
            connection.execute(change)
    ledger = Store(store.path).ledger()
    assert store.series(PRICE).equals(before)
    assert ledger[PRICE].settled == [(0, 6_000), (9_000, 12_000)]
    assert ledger[PRICE].provisional == [(6_000, 9_000, 100_000, 100_000)]
    assert ledger[SPREADS].settled == []
    assert ledger[SPREADS].provisional == [(0, 9_000, 100_000, 100_000)]
