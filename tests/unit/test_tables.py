from __future__ import annotations

import duckdb
import polars as pl
import pytest

from toolkit.market import UNIT_FACTORS, Family
from toolkit.tables import ARRIVAL, BROUGHT, EVENT, SERIES, STREAM, TABLES, LedgerState, Table

EVERY_TABLE = pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
NUMBERS = {"BIGINT", "INTEGER", "DOUBLE"}
ENDINGS = {
    "count": (
        *("quota", "quota_left", "rows", "revisions"),
        *("tracked", "added", "attempts", "deliveries"),
    ),
    "s": ("_s", "_at", "_ts", "ts", "next_funding_time"),  # the last as the service names it
    "ms": ("_ms",),
    "percent": ("_pct",),
    "quote": ("price", "volume"),
    "hours": ("_hours",),
    "fraction_per_interval": ("rate",),
    "percent_per_8h": ("_pct_8h",),
}


@EVERY_TABLE
def test_a_table_is_created_with_the_columns_types_and_nulls_it_declares(table: Table) -> None:
    with duckdb.connect() as connection:
        connection.execute(table.ddl)
        connection.execute(table.ddl)
        made = connection.execute(f"DESCRIBE {table.name}").fetchall()
    assert [(name, kind, null == "YES") for name, kind, null, *_ in made] == [
        (c.name, c.type, c.nullable) for c in table.columns
    ]


@EVERY_TABLE
def test_a_frame_of_the_schema_goes_in_and_comes_back_the_same(table: Table) -> None:
    row = {
        c.name: {"VARCHAR": "a", "JSON": '{"a":1}', "DOUBLE": 0.1}.get(c.type, 7)
        for c in table.columns
    }
    bare = {c.name: None if c.nullable else row[c.name] for c in table.columns}
    frame = pl.DataFrame([row, bare], schema=table.schema, orient="row")
    with duckdb.connect() as connection:
        connection.execute(table.ddl)
        connection.register("incoming", frame.to_arrow())
        connection.execute(f"INSERT INTO {table.name} SELECT * FROM incoming")
        back = connection.sql(f"FROM {table.name}").pl()
    assert back.schema == table.schema
    assert back.equals(frame)


@EVERY_TABLE
def test_a_null_is_refused_where_the_table_declares_none(table: Table) -> None:
    with duckdb.connect() as connection:
        connection.execute(table.ddl)
        for column in table.columns:
            values = ["NULL" if c is column else "'7'" for c in table.columns]
            insert = f"INSERT INTO {table.name} VALUES ({', '.join(values)})"
            if column.nullable:
                connection.execute(insert)
            else:
                with pytest.raises(duckdb.ConstraintException, match=column.name):
                    connection.execute(insert)


@EVERY_TABLE
def test_key_and_order_are_columns_that_are_never_null(table: Table) -> None:
    columns = {c.name: c for c in table.columns}
    assert len(columns) == len(table.columns)
    assert table.key
    documents = (
        {"schema_id", "event_type"} if table in (ARRIVAL, EVENT) else set()
    )  # as the sender has them
    for name in {*table.key, *table.order} - documents:
        assert not columns[name].nullable


@EVERY_TABLE
def test_a_table_and_its_columns_say_what_they_are_and_in_which_unit(table: Table) -> None:
    assert table.meaning[0].isupper()
    assert table.meaning.endswith(".")
    for column in table.columns:
        assert len(column.meaning) >= 3
        assert column.meaning == column.meaning.strip()
        is_identity = column.name.endswith("_id") or column.name in ("revision", "place")
        assert bool(column.unit) == (column.type in NUMBERS and not is_identity)
        if column.unit == "as unit":  # what a rule compares: the column beside it has the unit
            assert column.name in ("value", "level")
        elif column.unit:
            assert column.unit in UNIT_FACTORS
            assert column.name.endswith(ENDINGS[column.unit])


def test_table_names_are_unique_and_every_series_is_among_them() -> None:
    names = [table.name for table in TABLES]
    assert len(set(names)) == len(names)
    assert [SERIES[family].name for family in Family] == list(Family)
    assert set(SERIES.values()) <= set(TABLES)


@pytest.mark.parametrize("family", Family)
def test_a_series_is_keyed_and_kept_by_trajectory_and_time(family: Family) -> None:
    table = SERIES[family]
    assert table.order == ("stream_id", "ts")
    assert table.key == (*table.order, "revision")
    assert table.names[:2] == table.order
    values = [c.name for c in table.values]
    assert values[-1] == "extra"
    assert set(values) == set(table.names) - {*table.key, *BROUGHT}


def test_a_stream_is_numbered_as_its_series_are() -> None:
    for table in SERIES.values():
        assert table.columns[0].type == STREAM.columns[0].type


def test_the_states_of_the_ledger_are_six() -> None:
    states = ["held", "empty", "not yet known", "missing", "unrecoverable", "lost at the source"]
    assert list(LedgerState) == states
