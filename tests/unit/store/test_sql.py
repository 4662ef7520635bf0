"""`Store.sql`: one SELECT over the views, and nothing else whatever is written or in the file."""

from __future__ import annotations

import datetime as dt
import math
import os
import shutil
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from tests.empty_store import empty_store
from toolkit.errors import InputError, StoreError, StoreLockedError
from toolkit.market import Trajectory
from toolkit.store import Store

from .conftest import SOURCE, committing, writer_of

PRICE, PAIR = "A_B:X.spot", "A_B:X.spot:Y.spot"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that every question is put to."""
    store = empty_store(tmp_path_factory.mktemp("sql") / "rail.duckdb", SOURCE, wait_s=60)
    commit = committing(store)
    commit(PRICE, [(0, 1.0), (60, 2.0)])
    commit(PAIR, [(0, 100.0, 101.0)])
    return store


@pytest.fixture
def copy(filled: Store, store: Store) -> Store:
    """A copy of it, to be changed."""
    shutil.copyfile(filled.path, store.path)
    return store


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("SELECT price FROM prices WHERE ts = 60", None),
        ("from prices select price where ts = 60;", None),
        ("-- the newest\nFROM prices SELECT price ORDER BY time DESC LIMIT 1", None),
        ("WITH two AS (FROM prices) SELECT max(price) FROM two", None),
        ("SELECT price FROM prices WHERE time >= '1970-01-01 00:01'", None),
        ("SELECT price FROM prices WHERE ts = $at AND trajectory = $key", {"at": 60, "key": PRICE}),
        ("SELECT price FROM prices WHERE ts = ?", [60]),
        ("SELECT price FROM prices WHERE ts = ?", (np.int64(60),)),
        (
            "SELECT price FROM prices WHERE ts = 60 AND trajectory = $key",
            {"key": Trajectory.parse(PRICE)},
        ),
        ("SELECT price FROM prices, range(3) AS t(n) WHERE ts = 30 * n AND n > 0", None),
        ("SELECT p.price FROM main.prices p JOIN spreads s ON p.ts = s.ts + 60", None),
    ],
)
def test_a_select_over_the_views_is_answered(filled: Store, query: str, parameters: object) -> None:
    found = filled.sql(query, parameters)
    assert isinstance(found, pl.DataFrame)
    assert found.rows() == [(2.0,)]


def test_a_time_has_the_zone_of_the_times_of_a_series(filled: Store) -> None:
    found = filled.sql("SELECT time, time AS own FROM prices")
    zoned = pl.Datetime("us", "UTC")
    assert found.schema == {"time": zoned, "own": pl.Datetime("us")}
    assert found["time"].dt.replace_time_zone(None).equals(found["own"])


def test_the_views_are_listed_and_described(filled: Store) -> None:
    names = filled.sql("SHOW TABLES")["name"].to_list()
    assert names == [
        "event_documents",
        "funding_rates",
        "held_coverage",
        "prices",
        "snapshot_rates",
        "snapshot_spreads",
        "spreads",
    ]
    assert "spread_log_bps" in filled.sql("DESCRIBE spreads")["column_name"].to_list()


WRONG = {
    "a table": ("FROM price", "'price' .* the views prices, .*nearest: prices"),
    "a view misspelt": ("FROM spredas", "'spredas' .*nearest: spreads"),
    "a column misspelt": ("SELECT spred_bps FROM spreads", "'spred_bps' .*nearest: spread_bps"),
    "a column of an alias": ("SELECT s.prise FROM spreads s", "'prise' .*nearest: price"),
    "no SQL": ("selec 1", 'SQL that DuckDB can run; syntax error at or near "selec"'),
    "nothing": ("", "allowed: one SELECT over the views"),
    "None": (None, "SQL that DuckDB can run"),
    "two": ("SELECT 1; SELECT 2", "allowed: one SELECT over the views"),
    "an INSERT": ("INSERT INTO price VALUES (1)", "allowed: one SELECT over the views"),
    "a DROP": ("DROP VIEW prices", "allowed: one SELECT over the views"),
    "a COPY": ("COPY prices TO 'out.csv'", "allowed: one SELECT over the views"),
    "a setting": ("SET threads = 1", "allowed: one SELECT over the views"),
    "a PRAGMA": ("PRAGMA database_size", "allowed: one SELECT over the views"),
    "an ATTACH": ("ATTACH 'x.db'", "allowed: one SELECT over the views"),
    "a CALL": ("CALL enable_logging()", "allowed: one SELECT over the views"),
    "a CTE that writes": ("WITH a AS (DELETE FROM store.main.price) FROM a", "without store"),
    "a CTE that deletes": (
        "WITH a AS (DELETE FROM prices RETURNING *) FROM a",
        "Can only delete from base table",
    ),
    "an INSERT elsewhere": (
        "WITH a AS (INSERT INTO memory.main.x VALUES (1) RETURNING *) FROM a",
        "'x' is not allowed; allowed: the views",
    ),
    "the file by its name": ("FROM store.main.price", "name a view without store"),
    "the file, shorter": ('FROM "STORE".prices', "name a view without store"),
    "the file, described": ("DESCRIBE store.main.prices", "name a view without store"),
    "a function in the file": ("SELECT store.main.f(1)", "name a view without store"),
    "a text that is run": ("FROM query('FROM store.main.price')", "'query' .* the views"),
    "a file": ("FROM '/etc/passwd'", "'/etc/passwd' .* the views"),
    "a file by a function": ("FROM read_text('/etc/passwd')", "'read_text' .* the views"),
    "a checkpoint": ("FROM checkpoint('store')", "'checkpoint' .* the views"),
    "a function that is none": ("SELECT log9p(1)", "log9p does not exist"),
    "a value that is none": ("SELECT 'a'::INTEGER", "Could not convert string 'a' to INT32"),
    "a parameter not given": ("FROM prices WHERE ts = $at", "not provided .*: at"),
}


@pytest.mark.parametrize(("query", "says"), WRONG.values(), ids=WRONG)
def test_any_other_query_is_one_line_that_names_what_is_allowed(
    filled: Store, query: str, says: str
) -> None:
    before = filled.path.read_bytes()
    with pytest.raises(InputError, match=says) as raised:
        filled.sql(query)
    assert "\n" not in str(raised.value)
    assert filled.sql("FROM prices").height == 2  # the store is whole, and answers on
    assert filled.path.read_bytes() == before


HELD = {
    "a difference of times": ("max(time) - min(time) FROM prices", dt.timedelta(minutes=1)),
    "none of them": ("max(time) - min(time) FROM prices WHERE ts < 0", None),
    "an age in days": ("age(DATE '2026-01-31', DATE '2026-01-01')", dt.timedelta(days=30)),
    "an age with months": ("age(DATE '2026-03-02', DATE '2026-01-01')", "2 months 1 day"),
    "a length beyond any": ("to_days(2147483647)", "2147483647 days"),
    "lengths in a list": ("[INTERVAL 1 DAY, INTERVAL 2 MONTHS]", ["1 day", "2 months"]),
    "a length in a struct": ("{'a': INTERVAL 1 DAY}", {"a": "1 day"}),
    "a length in a map": ("map {'a': INTERVAL 1 DAY}", {"a": "1 day"}),
    "a length in a tuple": ("row(INTERVAL 1 DAY, 2)", {"element1": "1 day", "element2": 2}),
    "a union": ("union_value(a := 1)", "1"),
    "a sum": ("sum(x) FROM range(4) t(x)", Decimal(6)),
    "a whole number": (f"{2**128 - 1}::UHUGEINT", f"{2**128 - 1}"),
    "a whole number without an end": ("12::BIGNUM", "12"),
    "bits": ("'101'::BIT", "101"),
    "a time with a zone": ("'12:00:00+02'::TIMETZ", "12:00:00+02"),
    "a time of a day": ("TIME '12:00'", dt.time(12)),
    "anything": ("1::VARIANT", "1"),
    "the last second": ("TIMESTAMP '9999-12-31'", dt.datetime(9999, 12, 31)),  # noqa: DTZ001 - SQL's times have no zone
}


@pytest.mark.parametrize(("query", "expected"), HELD.values(), ids=HELD)
def test_what_a_frame_cannot_hold_is_a_duration_or_a_text(
    filled: Store, query: str, expected: object
) -> None:
    found = filled.sql(f"SELECT {query}")
    value = found.to_dicts()[0][found.columns[0]]  # by Python, which has fewer values than polars
    assert (type(value), value) == (type(expected), expected)


UNHELD = {
    "an infinite time": ("'infinity'::TIMESTAMP AS t", "t has times that are infinite .*VARCHAR"),
    "one in seconds": ("'-infinity'::TIMESTAMP_S", "column 1 has times that are infinite"),
    "one in nanoseconds": ("'infinity'::TIMESTAMP_NS", "column 1 has times that are infinite"),
    "one with a zone": ("'infinity'::TIMESTAMPTZ", "column 1 has times that are infinite"),
    "an infinite date": ("'infinity'::DATE", "column 1 has times that are infinite"),
    "one in a list": ("1, ['infinity'::DATE] AS b", "b has times that are infinite"),
    "one in a map": ("map {'a': {'b': 'infinity'::DATE}}", "column 1 has times that are inf"),
    "a date before Christ": ("DATE '0044-03-15 (BC)'", "outside of the years 1 to 9999"),
    "a time before Christ": ("TIMESTAMP '0044-03-15 (BC)'", "outside of the years 1 to 9999"),
    "a far time": ("TIMESTAMP '290000-01-01'", "outside of the years 1 to 9999"),
    "the end of a day": ("TIME '24:00:00'", "24:00:00 is not a time of day .* VARCHAR"),
    "a whole number": (f"{2**127 - 1}::HUGEINT", "Could not cast value 1701411834604692317316873"),
    "a name twice": ("1 AS a, 2 AS a", "two columns have the name a"),
}


@pytest.mark.parametrize(("query", "says"), UNHELD.values(), ids=UNHELD)
def test_what_nothing_can_hold_is_one_line(filled: Store, query: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as raised:
        filled.sql(f"SELECT {query}")
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_a_file_that_is_broken_anywhere_is_not_the_fault_of_the_query(tmp_path: Path) -> None:
    store = empty_store(tmp_path / "rail.duckdb", SOURCE)
    committing(store)(PRICE, [(60 * at, 1 + math.sin(at)) for at in range(150_000)])
    whole, said = store.path.read_bytes(), []
    for at in range(3 * 4096, len(whole), 262_144):  # one byte of each of its blocks
        store.path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        for query in ("FROM prices", "SELECT avg(price) AS mean FROM prices"):
            try:
                store.sql(query)
            except StoreError as error:
                said.append(str(error))
    assert any("Corrupt" in line for line in said)
    assert all(str(store.path) in line and "\n" not in line for line in said)


def test_a_long_query_is_shortened_in_the_refusal(filled: Store) -> None:
    with pytest.raises(InputError) as raised:
        filled.sql("SELECT 'a'::INTEGER,\n" + "1, " * 1000 + "2")
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("parameters", ["abc", 5, {"other": 1}, [object()], [1, 2]])
def test_parameters_that_fit_nothing_are_refused(filled: Store, parameters: object) -> None:
    with pytest.raises(InputError):
        filled.sql("FROM prices WHERE ts = ?", parameters)


def test_a_file_that_this_process_writes_is_waited_for(copy: Store) -> None:
    copy.sql("FROM prices")
    hurried = Store(copy.path, wait_s=0.1)
    with writer_of(copy).writing() as connection:
        connection.execute("SELECT 1")
        with pytest.raises(StoreLockedError, match=f"process {os.getpid()}"):
            hurried.sql("FROM prices")
    with copy.reading():
        assert copy.sql("FROM prices").height == 2


def test_a_strangers_views_and_functions_do_not_run(copy: Store, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    before = copy.sql("FROM prices ORDER BY ts"), copy.sql("FROM spreads")
    with duckdb.connect(str(copy.path)) as connection:
        for statement in (
            f"CREATE OR REPLACE VIEW prices AS SELECT content AS price FROM read_text('{secret}')",
            "CREATE OR REPLACE VIEW held_coverage AS SELECT error('it ran') AS key",
            "CREATE VIEW mine AS SELECT error('it ran') AS x",
            "CREATE SCHEMA other",
            "CREATE VIEW other.spreads AS SELECT error('it ran') AS x",
            "CREATE MACRO ln(x) AS error('it ran')",
            "CREATE MACRO make_timestamp(x) AS error('it ran')",
            "CREATE MACRO json_serialize_sql(x) AS error('it ran')",
            "CREATE MACRO isfinite(x) AS true",
        ):
            connection.execute(statement)
    theirs = Store(copy.path)
    assert theirs.sql("FROM prices ORDER BY ts").equals(before[0])
    assert theirs.sql("FROM spreads").equals(before[1])
    assert theirs.sql("SELECT ln(1.0)").item() == 0.0
    assert theirs.sql("FROM held_coverage").height > 0
    for query in ("FROM mine", "FROM other.spreads", "FROM store.main.held_coverage"):
        with pytest.raises(InputError) as raised:
            theirs.sql(query)
        assert "it ran" not in str(raised.value)


@pytest.mark.parametrize(
    "query", ["FROM prices ORDER BY ts DESC;", "FROM prices ORDER BY ts DESC -- x"]
)
def test_rows_of_a_query_can_be_bounded(filled: Store, query: str) -> None:
    assert filled.sql(query, at_most=1)["ts"].to_list() == [60]
    assert filled.sql(query, at_most=9)["ts"].to_list() == [60, 0]
