"""Every table of the store, once: DDL, frame schemas and documentation derive from here.

Rows of a series are never changed. A row whose values differ from the newest one held under the
same key is appended with the next ``revision``. The newest revision is current. Where a service's
rows may share a time, each further row of a time has revisions of its own, from the next multiple
of `TIE` on.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import polars as pl

from toolkit.market import Family


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, its DuckDB type, its unit ("" where it has none) and what it is."""

    name: str
    type: str
    unit: str
    meaning: str
    nullable: bool = False


BROUGHT = ("load_id", "committed_at")
"""The columns that say how a row or document came into the store: by which load, and when."""

_POLARS: dict[str, pl.DataType] = {
    "BIGINT": pl.Int64(),
    "INTEGER": pl.Int32(),
    "DOUBLE": pl.Float64(),
    "VARCHAR": pl.String(),
    "JSON": pl.String(),
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns, its key (which no two rows share) and the order rows are kept in."""

    name: str
    meaning: str
    columns: tuple[Field, ...]
    key: tuple[str, ...]
    order: tuple[str, ...] = ()

    @property
    def ddl(self) -> str:
        """The CREATE TABLE statement, without a primary key: one costs seven times the load rate.

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
        """The columns that carry what the service sent: neither key nor provenance.

        >>> from toolkit.market import Family
        >>> from toolkit.tables import SERIES
        >>> [c.name for c in SERIES[Family.PRICE].values]
        ['price', 'mark_price', 'volume', 'extra']
        """
        return tuple(c for c in self.columns if c.name not in (*self.key, "place", *BROUGHT))


class LedgerState(StrEnum):
    """What is known about a stretch of a trajectory.

    ``held``: answered, and there are rows. ``empty``: answered, and the service has no row there.
    ``not yet known``: younger than the service's delay, the time a row takes to settle and the
    row's own interval. ``missing``: not asked yet. ``unrecoverable``: not asked, and older than
    what the plan still reaches. ``lost at the source``: the service says so, with a reason.
    """

    HELD = "held"
    EMPTY = "empty"
    UNKNOWN = "not yet known"
    MISSING = "missing"
    UNRECOVERABLE = "unrecoverable"
    LOST = "lost at the source"


class CoverageState(StrEnum):
    """What the ledger records of a stretch: that it was asked for, and how far it was answered.

    ``provisional``: answered, and to be asked for again, since more may arrive
    (`toolkit.store.ledger.answers`). ``settled``: answered for good. ``lost``: lost at the source.
    Each load of its time asks for it again, and a follow as for what is provisional.
    """

    ASKED = "asked"
    PROVISIONAL = "provisional"
    SETTLED = "settled"
    LOST = "lost"


class GapStatus(StrEnum):
    """What became of a stretch that a lost stream did not bring.

    ``open``: the service's archive has not answered for all of it yet. ``repaired``: it has.
    ``unrepairable``: a part is older than what the plan still reaches. ``lost``: at the source.
    """

    OPEN = "open"
    REPAIRED = "repaired"
    UNREPAIRABLE = "unrepairable"
    LOST = "lost"


META = Table(
    "meta",
    "Facts about the store itself.",
    (
        Field("name", "VARCHAR", "", "format_version, source_kind, source_id, price_key and more"),
        Field("value", "VARCHAR", "", "the fact"),
    ),
    key=("name",),
)

STREAM = Table(
    "stream",
    "The streams the store knows. Other tables carry the number, users see the key.",
    (
        Field("stream_id", "INTEGER", "", "number inside this store"),
        Field("kind", "VARCHAR", "", "price, spread, funding, events, snapshot, or kept from them"),
        Field("key", "VARCHAR", "", "the stream's text key, e.g. events/spread"),
        Field("rows", "BIGINT", "count", "rows, documents or snapshots held, revisions left out"),
        Field("revisions", "BIGINT", "count", "changed answers held beside them"),
        Field("first_ts", "BIGINT", "s", "oldest time held, Unix UTC", nullable=True),
        Field("last_ts", "BIGINT", "s", "newest time held, Unix UTC", nullable=True),
        Field("late_s", "BIGINT", "s", "how late something new came for an answered time"),
    ),
    key=("stream_id",),
)

LOAD = Table(
    "load",
    "One row per load: where from, under which profile, when.",
    (
        Field("load_id", "BIGINT", "", "number of the load inside this store"),
        Field("started_at", "BIGINT", "s", "local clock when it started"),
        Field("finished_at", "BIGINT", "s", "local clock when it ended well", nullable=True),
        Field("served_at", "BIGINT", "s", "the service's clock when it started"),
        Field("base_url", "VARCHAR", "", "the address asked"),
        Field("schema_hash", "VARCHAR", "", "SHA-256 of the /schemas document", nullable=True),
        Field("toolkit_version", "VARCHAR", "", "version of this toolkit"),
        Field("finding", "JSON", "", "drift and continuity findings", nullable=True),
        Field("plan", "VARCHAR", "", "the plan, as the service named it", nullable=True),
        Field("quota", "BIGINT", "count", "requests a window of the quota", nullable=True),
        Field("quota_window_s", "BIGINT", "s", "length of that window", nullable=True),
        Field("quota_left", "BIGINT", "count", "left of it at the last answer", nullable=True),
        Field("profile_hash", "VARCHAR", "", "SHA-256 of the user's wire profile", nullable=True),
    ),
    key=("load_id",),
)

COVERAGE = Table(
    "coverage",
    "The ledger: which seconds of a stream were asked for, and which the service answered for.",
    (
        Field("stream_id", "INTEGER", "", "number of the stream"),
        Field("state", "VARCHAR", "", "asked, provisional, settled, lost (`CoverageState`)"),
        Field("start_ts", "BIGINT", "s", "first second"),
        Field("end_ts", "BIGINT", "s", "first second after"),
        Field("first_served_at", "BIGINT", "s", "service's clock, first provisional answer", True),
        Field("served_at", "BIGINT", "s", "service's clock, last provisional answer", True),
        Field("why", "VARCHAR", "", "why it is lost, in the service's words", nullable=True),
    ),
    key=("stream_id", "state", "start_ts"),
)

EDGE = Table(
    "edge",
    "How far back and how fresh the service answered for a stream when it was last asked.",
    (
        Field("stream_id", "INTEGER", "", "number of the stream"),
        Field("load_id", "BIGINT", "", "the load that asked last"),
        Field("retention_s", "BIGINT", "s", "how far back the plan reaches", nullable=True),
        Field("delay_s", "BIGINT", "s", "delay of the plan"),
        Field("step_s", "BIGINT", "s", "spacing of the rows, as observed", nullable=True),
        Field("tail_ts", "BIGINT", "s", "end of the newest row that came", nullable=True),
        Field("served_at", "BIGINT", "s", "the service's clock at the question"),
        Field("asked_at", "BIGINT", "s", "the local clock at the question"),
        Field("settle_s", "BIGINT", "s", "how long a row that is visible may still change"),
    ),
    key=("stream_id",),
)

TIE = 100_000
"""Revisions from one row of a time to the next row of the same time."""

_KEY = (
    Field("stream_id", "INTEGER", "", "number of the trajectory"),
    Field("ts", "BIGINT", "s", "start of the row's interval, Unix UTC"),
)
_COMMITTED_AT = Field(
    "committed_at", "BIGINT", "s", "local clock at its commit, null before format 6", True
)
_REVISION = f"0, then one more for each changed answer. {TIE:,} more for each further of its time"
_PROVENANCE = (
    Field("extra", "JSON", "", "fields of the wire that no column takes", nullable=True),
    Field("revision", "INTEGER", "", _REVISION),
    Field("load_id", "BIGINT", "", "the load that brought the row"),
    _COMMITTED_AT,
)
_SERIES_KEY = ("stream_id", "ts", "revision")

SERIES: dict[Family, Table] = {
    Family.PRICE: Table(
        "price",
        "Prices of one symbol on one leg.",
        (
            *_KEY,
            Field("price", "DOUBLE", "quote", "price at the end of the interval", nullable=True),
            Field("mark_price", "DOUBLE", "quote", "mark price, null off futures", nullable=True),
            Field("volume", "DOUBLE", "quote", "traded in the interval", nullable=True),
            *_PROVENANCE,
        ),
        key=_SERIES_KEY,
        order=("stream_id", "ts"),
    ),
    Family.SPREAD: Table(
        "spread",
        "Both legs of a spread. Positive: long the buy leg and short the sell leg earns it.",
        (
            *_KEY,
            Field("buy_price", "DOUBLE", "quote", "price of the leg bought", nullable=True),
            Field("sell_price", "DOUBLE", "quote", "price of the leg sold", nullable=True),
            Field("spread_pct", "DOUBLE", "percent", "100 (sell / buy - 1), as sent", True),
            *_PROVENANCE,
        ),
        key=_SERIES_KEY,
        order=("stream_id", "ts"),
    ),
    Family.FUNDING: Table(
        "funding",
        "Settled funding rates of both legs. Positive differential: long buy, short sell earns it.",
        (
            *_KEY[:1],
            Field("ts", "BIGINT", "s", "a settlement of either leg, Unix UTC"),
            Field("buy_rate", "DOUBLE", "fraction_per_interval", "settled at ts", nullable=True),
            Field("sell_rate", "DOUBLE", "fraction_per_interval", "settled at ts", nullable=True),
            Field("buy_interval_hours", "DOUBLE", "hours", "null for a spot leg", nullable=True),
            Field("sell_interval_hours", "DOUBLE", "hours", "null for a spot leg", nullable=True),
            Field("differential_pct_8h", "DOUBLE", "percent_per_8h", "sell - buy in force", True),
            *_PROVENANCE,
        ),
        key=_SERIES_KEY,
        order=("stream_id", "ts"),
    ),
}
"""The series tables, by family."""

_ANSWER = (
    *_KEY[:1],
    Field("ts", "BIGINT", "s", "the service's clock at the answer, Unix UTC"),
)
_IN_ANSWER = (
    Field("place", "INTEGER", "", "place of the item in its answer, from 0"),
    Field("extra", "JSON", "", "fields of the item that no column takes", nullable=True),
    Field("revision", "INTEGER", "", "0, then one more for each further answer of the second"),
    Field("load_id", "BIGINT", "", "the load that asked"),
    _COMMITTED_AT,
)

SNAPSHOT_SERIES: dict[str, Table] = {
    "snapshot-spread": Table(
        "snapshot_spread",
        "Spreads kept from snapshots: one row per answer that shows the pair, legs as it has them.",
        (
            *_ANSWER,
            Field("buy_price", "DOUBLE", "quote", "price of the leg bought", nullable=True),
            Field("sell_price", "DOUBLE", "quote", "price of the leg sold", nullable=True),
            Field("spread_pct", "DOUBLE", "percent", "100 (sell / buy - 1), as sent", True),
            Field("opened_at", "BIGINT", "s", "when its event opened, Unix UTC", nullable=True),
            *_IN_ANSWER,
        ),
        key=_SERIES_KEY,
        order=("ts", "stream_id"),
    ),
    "snapshot-funding": Table(
        "snapshot_funding",
        "Funding rates in force, kept from snapshots: one row per answer that shows the leg.",
        (
            *_ANSWER,
            Field("rate", "DOUBLE", "fraction_per_interval", "in force at ts", nullable=True),
            Field("interval_hours", "DOUBLE", "hours", "the leg's interval", nullable=True),
            Field("next_funding_time", "BIGINT", "s", "next settlement, Unix UTC", nullable=True),
            *_IN_ANSWER,
        ),
        key=_SERIES_KEY,
        order=("ts", "stream_id"),
    ),
}
"""The tables of the series that are kept from snapshots, by kind of stream."""

ROWS: dict[str, Table] = {family.value: table for family, table in SERIES.items()} | SNAPSHOT_SERIES
"""The tables with rows of a series, by kind of stream."""

EVENT = Table(
    "event",
    "Event documents as they came, one row per transition, with columns read from them.",
    (
        Field("family", "VARCHAR", "", "spread, splash or funding: the log it came from"),
        Field("schema_id", "VARCHAR", "", "e.g. svc.spread.v1", nullable=True),
        Field("event_id", "VARCHAR", "", "as sent; else sha256: of its lasting content"),
        Field("event_type", "VARCHAR", "", "e.g. spread.opened", nullable=True),
        Field("ts_ms", "BIGINT", "ms", "when it happened, Unix UTC"),
        Field("ts", "BIGINT", "s", "the same in seconds"),
        Field("lifecycle", "VARCHAR", "", "open or closed", nullable=True),
        Field("symbol", "VARCHAR", "", "BASE_QUOTE", nullable=True),
        Field("buy_exchange", "VARCHAR", "", "a splash has one leg, here", nullable=True),
        Field("buy_market", "VARCHAR", "", "spot, futures or dex", nullable=True),
        Field("sell_exchange", "VARCHAR", "", "null for a splash", nullable=True),
        Field("sell_market", "VARCHAR", "", "null for a splash", nullable=True),
        Field("magnitude_pct", "DOUBLE", "percent", "of a spread or splash", nullable=True),
        Field("peak_pct", "DOUBLE", "percent", "largest so far, of a spread", nullable=True),
        Field("differential_pct_8h", "DOUBLE", "percent_per_8h", "of a dislocation", True),
        Field("close_reason", "VARCHAR", "", "of a closed spread", nullable=True),
        Field("document", "VARCHAR", "", "the bytes as they came"),
        Field("revision", "INTEGER", "", "0, then one more for each changed delivery"),
        Field("load_id", "BIGINT", "", "the load that brought it"),
        _COMMITTED_AT,
    ),
    key=("family", "schema_id", "event_id", "event_type", "ts_ms", "revision"),
    order=("family", "ts_ms", "event_id"),
)

ARRIVAL = Table(
    "arrival",
    "When each event document came by each channel: one row each time, of the archive the first.",
    (
        *EVENT.columns[:6],
        Field("channel", "VARCHAR", "", "archive, socket or webhook; service: not told apart"),
        Field("place", "INTEGER", "", "0, then one more each time that it came by the channel"),
        Field("arrived_ms", "BIGINT", "ms", "local clock when it came, null of old stores", True),
        Field("deliveries", "BIGINT", "count", "how often it came together, null of old", True),
        Field("load_id", "BIGINT", "", "the load, capture or receiver's run that brought it"),
    ),
    key=("family", "schema_id", "event_id", "event_type", "ts_ms", "channel", "place"),
    order=("family", "ts_ms", "event_id"),
)

GAP = Table(
    "gap",
    "The gap ledger of live capture: one row each time a stream was lost, and of what.",
    (
        Field("load_id", "BIGINT", "", "the capture that lost it"),
        Field("gap_id", "INTEGER", "", "number of the gap inside that capture"),
        Field("stream_id", "INTEGER", "", "number of the stream"),
        Field("start_ts", "BIGINT", "s", "the service's clock when it was heard last"),
        Field("end_ts", "BIGINT", "s", "when it was heard again, or the capture ended", True),
        Field("cause", "VARCHAR", "", "why it was lost, in words"),
        Field("status", "VARCHAR", "", "open, repaired or unrepairable"),
        Field("repaired_load_id", "BIGINT", "", "the load that filled it", nullable=True),
    ),
    key=("load_id", "gap_id"),
)

_CHANGE = Field("change_id", "BIGINT", "", "number of the change, counted up")
_STREAMS = (
    Field("first_stream_id", "INTEGER", "", "number of the first stream of a run of numbers"),
    Field("last_stream_id", "INTEGER", "", "number of the last: the change is the same for all"),
)
_CHANGED_AT = Field("committed_at", "BIGINT", "s", "local clock at the commit of the change")

COVERAGE_CHANGE = Table(
    "coverage_change",
    "How the ledger came to be: stretches that a commit added to ``coverage``, or took out of it.",
    (
        *(_CHANGE, *_STREAMS, *COVERAGE.columns[1:]),
        Field("added", "INTEGER", "count", "1, or -1 where one that may change was taken out"),
        _CHANGED_AT,
    ),
    key=("change_id",),
)

EDGE_CHANGE = Table(
    "edge_change",
    "What the rows of ``edge`` were: one row each time that they changed.",
    (_CHANGE, *_STREAMS, *EDGE.columns[1:], _CHANGED_AT),
    key=("change_id",),
)

GAP_CHANGE = Table(
    "gap_change",
    "What the rows of ``gap`` were: one row each time that one changed.",
    (_CHANGE, *GAP.columns, _CHANGED_AT),
    key=("change_id",),
)

CHANGES = (COVERAGE_CHANGE, EDGE_CHANGE, GAP_CHANGE)
"""The history of the ledger, which `toolkit.store.ledger.history` reads."""

DELIVERY = Table(
    "delivery",
    "Webhook deliveries that were genuine, each id once. Their event documents are in ``event``.",
    (
        Field("delivery_id", "VARCHAR", "", "as signed; else sha256: of the body"),
        Field("received_at", "BIGINT", "s", "the local clock when it came first"),
        Field("family", "VARCHAR", "", "null where it is no event document", nullable=True),
        Field("document", "VARCHAR", "", "the bytes of what is no event document", nullable=True),
        Field("load_id", "BIGINT", "", "the receiver's run that brought it"),
    ),
    key=("delivery_id",),
)

SNAPSHOT = Table(
    "snapshot",
    "Dashboards, activity and the symbol listing, as they were when asked.",
    (
        Field("kind", "VARCHAR", "", "symbols, activity, spread or funding"),
        Field("served_at", "BIGINT", "s", "the service's clock at the answer"),
        Field("revision", "INTEGER", "", "0, then one more for each further answer of the second"),
        Field("tracked", "INTEGER", "count", "pairs or legs shown, null where that is open", True),
        Field("period_s", "BIGINT", "s", "from one question to the next, if set", nullable=True),
        Field("fields", "JSON", "", "fields that rows give back, null for none", nullable=True),
        Field("document", "VARCHAR", "", "the bytes as they came, less the items that are rows"),
        Field("load_id", "BIGINT", "", "the load that asked"),
        _COMMITTED_AT,
    ),
    key=("kind", "served_at", "revision"),
)


class AlertChange(StrEnum):
    """What became of an alert: it opened, or it is over."""

    OPENED = "opened"
    CLEARED = "cleared"


class AlertOutcome(StrEnum):
    """What became of the delivery of a change of an alert.

    ``waiting``: it is still to be sent, perhaps again. ``sending``: it is being sent.
    ``delivered``: the receiver took it. ``failed``: the receiver refused it. ``late``: it was found
    or waited too long to be sent. ``unknown``: the process ended while it was being sent, and a
    repeat would be seen twice.
    """

    WAITING = "waiting"
    SENDING = "sending"
    DELIVERED = "delivered"
    FAILED = "failed"
    LATE = "late"
    UNKNOWN = "unknown"


ALERT = Table(
    "alert",
    "Changes of alerts that `rail follow` found: one row each time that one opened or was over.",
    (
        Field("change_id", "BIGINT", "", "number of the change inside this store"),
        Field("alert_id", "VARCHAR", "", "the same wherever it is sent, also as webhook-id"),
        Field("rule", "VARCHAR", "", "name of the rule"),
        Field("kind", "VARCHAR", "", "spread, funding, event, stale or loss"),
        Field("subject", "VARCHAR", "", "the stream's key, or the id of the event"),
        Field("stream", "VARCHAR", "", "the stream's key"),
        Field("about", "VARCHAR", "", "for a reader: the stream, or symbol and legs of the event"),
        Field("change", "VARCHAR", "", "opened or cleared (`AlertChange`)"),
        Field("ts", "BIGINT", "s", "time of the row, document or look, Unix UTC"),
        Field("found_at", "BIGINT", "s", "the service's clock when it was found"),
        Field("value", "DOUBLE", "as unit", "what was compared, if anything", nullable=True),
        Field("level", "DOUBLE", "as unit", "the level of the rule"),
        Field("unit", "VARCHAR", "", "the unit of value and level"),
        Field("words", "VARCHAR", "", "the same in a sentence"),
        Field("load_id", "BIGINT", "", "the follow that found it"),
        Field("recorded_at", "BIGINT", "s", "the local clock at its commit"),
    ),
    key=("change_id",),
)

ALERT_DELIVERY = Table(
    "alert_delivery",
    "What became of each change of an alert, by where it was sent.",
    (
        Field("alert_id", "VARCHAR", "", "the change"),
        Field("channel", "VARCHAR", "", "webhook or chat"),
        Field("outcome", "VARCHAR", "", "see `AlertOutcome`"),
        Field("attempts", "INTEGER", "count", "how often it was sent"),
        Field("reason", "VARCHAR", "", "why it was not delivered", nullable=True),
        Field("changed_at", "BIGINT", "s", "the local clock at the last change of this row"),
    ),
    key=("alert_id", "channel"),
)

ALERTS = (ALERT, ALERT_DELIVERY)
"""The history of alerts, which `toolkit.store.writing.alerts` reads and writes."""

TABLES: tuple[Table, ...] = (
    *(
        META,
        STREAM,
        LOAD,
        COVERAGE,
        EDGE,
        *SERIES.values(),
        EVENT,
        ARRIVAL,
        GAP,
        DELIVERY,
        SNAPSHOT,
    ),
    *SNAPSHOT_SERIES.values(),
    *CHANGES,
    *ALERTS,
)
"""All tables, in the order they are created."""

DATED = tuple(table for table in TABLES if _COMMITTED_AT in table.columns)
"""The tables whose rows have the time of their commit."""
