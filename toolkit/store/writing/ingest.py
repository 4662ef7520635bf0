"""Writing the rows of a batch: those that are new, and those that were revised.

Stored rows are looked up only in the stretch that the batch touches. New rows go in by one sorted
insert: a primary key would cost seven times the time to write, unsorted rows twenty times the time
to read (docs/design.md).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import duckdb
import numpy as np
import polars as pl

from toolkit.cards import counted
from toolkit.market import Family
from toolkit.store.ledger.streams import (
    add_counts,
    append,
    count_rows,
    note_lateness,
    read_fact,
    stamp,
    write_fact,
)
from toolkit.store.reading.frames import frame_of
from toolkit.tables import BROUGHT, SERIES, TIE, Table
from toolkit.wire.findings import Finding

TIME_ALONE = ("ts",)
"""The key of rows of which no two share a time."""


def read_key(connection: duckdb.DuckDBPyConnection, family: Family) -> tuple[str, ...]:
    """Read the key of a family's rows: ts and columns or ``extra`` fields, () for all values.

    The service declares it, by default it is ts alone. Rows of one time with different keys are not
    revisions.
    """
    found = read_fact(connection, f"{family}_key")
    return TIME_ALONE if found is None else tuple(json.loads(found))


def write_keys(
    connection: duckdb.DuckDBPyConnection, keys: Mapping[Family, tuple[str, ...]]
) -> None:
    """Keep the keys that differ from those the store has."""
    for family, key in keys.items():
        if key != read_key(connection, family):
            write_fact(connection, f"{family}_key", json.dumps(key))


def values_of(family: Family) -> pl.Expr:
    """Build the expression of a row's identity where only all of its values distinguish it."""
    return pl.struct(column.name for column in SERIES[family].values).struct.json_encode()


def identity(family: Family, key: tuple[str, ...]) -> pl.Expr:
    """Build the expression of what identifies a row among those of its time, as text."""
    if not key:
        return values_of(family)
    columns = {column.name for column in SERIES[family].values}
    parts = [
        pl.col(name).cast(pl.String)
        if name in columns
        else pl.col("extra").str.json_path_match(f"$[{json.dumps(name)}]").alias(name)
        for name in key
        if name != "ts"
    ]
    return pl.struct(parts).struct.json_encode() if parts else pl.lit("")


_KEY = ["stream_id", "ts"]
_NAMED, _OTHERS = 1_000, "other events"


@dataclass(frozen=True, slots=True)
class Inserted:
    """The outcome for the rows of a batch: new, revised (a changed answer), or repeated.

    Of those repeated, ``twice`` came more than once in one load. ``unkept`` counts by event the
    documents in more versions than are kept.

    >>> Inserted(new=2) + Inserted(new=1, repeated=4)
    Inserted(new=3, revised=0, repeated=4)
    """

    new: int = 0
    revised: int = 0
    repeated: int = 0
    unkept: Mapping[str, int] = field(default_factory=dict, repr=False)
    twice: int = field(default=0, repr=False, compare=False)

    def __add__(self, other: Inserted) -> Inserted:
        unkept = Counter(self.unkept)
        for event, times in other.unkept.items():
            unkept[event if event in unkept or len(unkept) < _NAMED else _OTHERS] += times
        return Inserted(
            self.new + other.new,
            self.revised + other.revised,
            self.repeated + other.repeated,
            unkept,
            self.twice + other.twice,
        )

    @property
    def repeats_counted(self) -> str:
        """Say how many were held already, and how many came twice, if any."""
        came_twice = f", {self.twice:,} came twice" if self.twice else ""
        return f"{self.repeated - self.twice:,} held already{came_twice}"

    @property
    def findings(self) -> Counter[Finding]:
        """The events of which not every version was kept, each with how many were not.

        >>> finding, = Inserted(unkept={"events/splash e1": 3}).findings.items()
        >>> finding[0].kind, finding[0].where, finding[1]
        ('versions_not_kept', 'events/splash e1', 3)
        """
        says = (
            "it came in ever new versions; the first of them are kept; document_versions and "
            "event_documents of the limits allow more"
        )
        return Counter(
            {Finding("versions_not_kept", event, says): n for event, n in self.unkept.items()}
        )

    @property
    def unkept_counted(self) -> str:
        """Say how many versions were not kept, "" for none.

        >>> Inserted(unkept={"events/splash e1": 3}).unkept_counted
        ', 3 versions not kept (see the findings)'
        """
        number = sum(self.unkept.values())
        return f", {counted(number, 'version')} not kept (see the findings)" if number else ""


def insert_rows(
    connection: duckdb.DuckDBPyConnection,
    family: Family,
    rows: pl.DataFrame,
    load_id: int,
    *,
    key: tuple[str, ...] = TIME_ALONE,
    tied: pl.DataFrame | None = None,
    committed_at: int | None = None,
) -> Inserted:
    """Append the rows that the series table does not hold.

    ``rows`` has stream_id, ts and the family's value columns. A row equal to the newest one under
    its key is dropped, one that differs is the next revision. Of several different rows of one key,
    those not held in any revision follow in order of arrival. ``key`` is that of `read_key`.
    ``tied`` has the stream_id and ts at which one page had several rows. There, and where several
    are held or the key is empty, values distinguish rows. ``committed_at`` is that of `stamp`.
    """
    if rows.is_empty():
        return Inserted()
    table = SERIES[family]
    values = [c.name for c in table.values]
    rows = rows.select(*_KEY, *values).sort(_KEY, maintain_order=True)
    # whether no two of the rows, which are sorted by their key, share it
    single = bool(np.logical_or(*(np.diff(rows[name].to_numpy()) != 0 for name in _KEY)).all())
    distinct = rows if single else rows.unique(maintain_order=True)
    held = _held(connection, table, distinct)
    own, held = held.filter(load_id=load_id), held.drop(BROUGHT)
    by_time = key == TIME_ALONE and tied is None
    if by_time and single and held.is_empty():
        fresh = distinct.with_columns(revision=pl.lit(0, pl.Int32))
    elif by_time and not (held["revision"] >= TIE).any():
        fresh = _fresh(distinct, held, values, _KEY, single=single)
    else:
        fresh = _fresh_tied(distinct, held, family, key, tied)
    if fresh.height:
        stamped = stamp(fresh, load_id, committed_at)
        append(connection, table, stamped.sort(table.key).select(table.names))
        add_counts(connection, count_rows(stamped))
        note_lateness(connection, stamped)
    revised = int((fresh["revision"] % TIE > 0).sum())
    twice = rows.height - distinct.height
    if own.height:
        twice += distinct.join(own, on=distinct.columns, how="semi", nulls_equal=True).height
    repeated = rows.height - fresh.height
    return Inserted(fresh.height - revised, revised, repeated, twice=min(twice, repeated))


def _held(connection: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Return every revision held in the stretch of each trajectory that the batch touches."""
    touched = rows.group_by("stream_id").agg(low=pl.col("ts").min(), high=pl.col("ts").max())
    return frame_of(
        connection,
        f"SELECT s.* FROM {table.name} s JOIN touched_rows USING (stream_id) "  # noqa: S608 - ours
        "WHERE s.ts BETWEEN low AND high AND s.ts BETWEEN $low AND $high",
        params={"low": rows["ts"].min(), "high": rows["ts"].max()},
        touched_rows=touched,
    )


def _fresh(
    rows: pl.DataFrame,
    held: pl.DataFrame,
    values: list[str],
    key: list[str],
    *,
    single: bool = False,
) -> pl.DataFrame:
    """Return the rows to append, with their revision. ``single``: no two rows share a key."""
    newest = held.sort("revision").unique(key, keep="last")
    several = pl.lit(value=False) if single else pl.len().over(key) > 1
    compared = rows.with_columns(several=several).join(
        newest, on=key, how="left", suffix="_newest", maintain_order="left"
    )
    differs = pl.any_horizontal(pl.col(v).ne_missing(pl.col(f"{v}_newest")) for v in values)
    fresh = compared.filter(pl.col("revision").is_null() | differs).select(
        *rows.columns, "several", "revision"
    )
    following = pl.col("revision").fill_null(-1) + 1
    if fresh["several"].any():
        repeats = held.select(*rows.columns).with_columns(several=pl.lit(value=True))
        fresh = fresh.join(
            repeats,
            on=[*rows.columns, "several"],
            how="anti",
            nulls_equal=True,
            maintain_order="left",
        )
        following += pl.int_range(pl.len(), dtype=pl.Int32).over(key)  # slow: only where needed
    return fresh.with_columns(revision=following.cast(pl.Int32)).drop("several")


def _fresh_tied(
    rows: pl.DataFrame,
    held: pl.DataFrame,
    family: Family,
    key: tuple[str, ...],
    tied: pl.DataFrame | None,
) -> pl.DataFrame:
    """Return the rows to append, with their revision, where several may share a time.

    A new row gets the next multiple of `TIE`: in the key's order, or by value in reverse order of
    arrival, as pages are newest first.
    """
    several_held = held.filter(pl.col("revision") >= TIE).select(_KEY)
    known = several_held if tied is None else pl.concat([several_held, tied])
    at = known.unique().with_columns(by_value=key == TIME_ALONE)
    tie = pl.col("revision") // TIE
    same = pl.when("by_value").then(values_of(family)).otherwise(identity(family, key))

    def marked(frame: pl.DataFrame) -> pl.DataFrame:
        joined = frame.join(at, on=_KEY, how="left", maintain_order="left")
        by_value = pl.lit(value=True) if not key else pl.col("by_value").fill_null(value=False)
        return joined.with_columns(by_value=by_value).with_columns(same=same)

    current = pl.col("revision") == pl.col("revision").max().over(*_KEY, tie)
    compared = marked(held).filter(~pl.col("by_value") | current)
    values = [c.name for c in SERIES[family].values]
    row = [*_KEY, "same"]
    fresh = _fresh(marked(rows), compared, values, row)
    others = fresh.join(compared, on=row, how="anti", maintain_order="left").select(row)
    others = others.unique(maintain_order=True)[::-1]
    if len(key) > 1:
        number = pl.col("same").str.extract(r':"(-?\d+(?:\.\d+)?)"').cast(pl.Float64)
        others = others.sort(number, "same", maintain_order=True)
    first = held.group_by(_KEY).agg((tie.max() + 1).alias("first"))
    others = others.join(first, on=_KEY, how="left", maintain_order="left").select(
        *row, tie=pl.col("first").fill_null(0) + pl.int_range(pl.len()).over(_KEY)
    )
    fresh = fresh.join(others, on=row, how="left", maintain_order="left")
    revision = pl.col("revision") + TIE * pl.col("tie").fill_null(0)
    return fresh.with_columns(revision.cast(pl.Int32).alias("revision"))
