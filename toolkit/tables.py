"""The tables of the store: DDL, frame schemas and documentation derive from here.

``tables.csv`` has a line per table, with its key and order in place of type and unit, then one per
column. ``@NAME`` includes the columns of another. A name with a leading ``_`` is not a table.

Rows of a series never change. A row that differs from the newest one of its key is appended with
the next ``revision``, and the newest is current. Each further row of one time has its own
revisions, from the next multiple of `TIE` on.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path

import polars as pl

from toolkit.market import Family


@dataclass(frozen=True, slots=True)
class Field:
    """A column, with its DuckDB type and its unit, "" for none."""

    name: str
    type: str
    unit: str
    meaning: str
    nullable: bool = False


TIE = 100_000
"""Revisions from one row of a time to the next row of the same time."""

BROUGHT = ("load_id", "committed_at")
"""The columns of provenance: the load that brought a row or document, and the time."""

_FILE = Path(__file__).with_name("tables.csv")
_POLARS: dict[str, pl.DataType] = {
    "BIGINT": pl.Int64(),
    "INTEGER": pl.Int32(),
    "DOUBLE": pl.Float64(),
    "VARCHAR": pl.String(),
    "JSON": pl.String(),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its unique key, and the order of its rows."""

    name: str
    meaning: str
    columns: tuple[Field, ...]
    key: tuple[str, ...]
    order: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The CREATE TABLE statement. A primary key would make loads seven times as slow.

        >>> from toolkit.tables import META
        >>> print(META.ddl)
        CREATE TABLE IF NOT EXISTS meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL)
        """
        columns = ", ".join(
            f"{c.name} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in self.columns
        )
        return f"CREATE TABLE IF NOT EXISTS {self.name} ({columns})"

    @property
    def schema(self) -> pl.Schema:
        """The same columns as a polars schema."""
        return pl.Schema({c.name: _POLARS[c.type] for c in self.columns})

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(c.name for c in self.columns)

    @property
    def values(self) -> tuple[Field, ...]:
        """The columns with the values that the service sent: neither key nor provenance.

        >>> from toolkit.market import Family
        >>> from toolkit.tables import SERIES
        >>> [c.name for c in SERIES[Family.PRICE].values]
        ['price', 'mark_price', 'volume', 'extra']
        """
        return tuple(c for c in self.columns if c.name not in (*self.key, "place", *BROUGHT))


class LedgerState(StrEnum):
    """What is known about a stretch of a trajectory.

    ``held``: answered with rows. ``empty``: answered without rows. ``not yet known``: younger than
    the service's delay, a row's time to settle and its interval. ``missing``: not requested.
    ``unrecoverable``: not requested, and beyond the plan's retention. ``lost at the source``:
    reported lost by the service, with a reason.
    """

    HELD = "held"
    EMPTY = "empty"
    UNKNOWN = "not yet known"
    MISSING = "missing"
    UNRECOVERABLE = "unrecoverable"
    LOST = "lost at the source"


class CoverageState(StrEnum):
    """What the ledger records of a stretch.

    ``provisional``: answered, and requested again, since more may arrive
    (`toolkit.store.ledger.ledger`). ``settled``: answered for good. ``lost``: lost at the source.
    Each load requests it again, a follow as if provisional.
    """

    ASKED = "asked"
    PROVISIONAL = "provisional"
    SETTLED = "settled"
    LOST = "lost"


class GapStatus(StrEnum):
    """What became of a stretch that an interrupted stream did not bring.

    ``open``: the archive has not answered for all of it yet. ``repaired``: it has.
    ``unrepairable``: a part is beyond the plan's retention. ``lost``: lost at the source.
    """

    OPEN = "open"
    REPAIRED = "repaired"
    UNREPAIRABLE = "unrepairable"
    LOST = "lost"


class AlertChange(StrEnum):
    """A change of an alert."""

    OPENED = "opened"
    CLEARED = "cleared"


class AlertOutcome(StrEnum):
    """What became of the delivery of a change of an alert.

    ``waiting``: to be sent, perhaps again. ``delivered``: the receiver took it. ``failed``: the
    receiver refused it. ``late``: found or kept waiting too long to be sent. ``unknown``: the
    process ended while sending, so a repeat might be seen twice.
    """

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    LATE = "late"
    UNKNOWN = "unknown"


def _read() -> Mapping[str, Table]:
    columns: dict[str, list[Field]] = {}
    about: dict[str, list[str]] = {}
    with _FILE.open(encoding="utf-8", newline="") as file:
        for table, name, kind, unit, null, meaning in islice(csv.reader(file), 1, None):
            own = columns.setdefault(table, [])
            if name.startswith("@"):
                own += columns[name[1:]]
            elif name:
                own.append(Field(name, kind, unit, meaning, nullable=bool(null)))
            else:
                about[table] = [meaning, kind, unit]
    return {
        name: Table(name, meaning, tuple(columns[name]), tuple(key.split()), tuple(order.split()))
        for name, (meaning, key, order) in about.items()
    }


_TABLES = _read()
TABLES = tuple(_TABLES.values())
"""All tables, in the order they are created."""

META, STREAM, LOAD = _TABLES["meta"], _TABLES["stream"], _TABLES["load"]
COVERAGE, EDGE, GAP = _TABLES["coverage"], _TABLES["edge"], _TABLES["gap"]
EVENT, ARRIVAL = _TABLES["event"], _TABLES["arrival"]
DELIVERY, SNAPSHOT = _TABLES["delivery"], _TABLES["snapshot"]
ALERT, ALERT_DELIVERY = _TABLES["alert"], _TABLES["alert_delivery"]

SERIES: dict[Family, Table] = {family: _TABLES[family.value] for family in Family}
"""The series tables, by family."""

SNAPSHOT_SERIES: dict[str, Table] = {
    "snapshot-spread": _TABLES["snapshot_spread"],
    "snapshot-funding": _TABLES["snapshot_funding"],
}
"""The tables of the series that are kept from snapshots, by kind of stream."""

ROWS: dict[str, Table] = {family.value: table for family, table in SERIES.items()} | SNAPSHOT_SERIES
"""The tables with rows of a series, by kind of stream."""

COVERAGE_CHANGE, EDGE_CHANGE = _TABLES["coverage_change"], _TABLES["edge_change"]
GAP_CHANGE = _TABLES["gap_change"]
CHANGES = (COVERAGE_CHANGE, EDGE_CHANGE, GAP_CHANGE)
"""The history of the ledger, which `toolkit.store.ledger.history` reads."""

ALERTS = (ALERT, ALERT_DELIVERY)
"""The history of alerts, which `toolkit.store.writing.alerts` reads and writes."""

DATED = tuple(t for t in TABLES if any(c.name == "committed_at" and c.nullable for c in t.columns))
"""The tables whose rows have the time of their commit."""
