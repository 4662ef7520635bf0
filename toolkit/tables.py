"""Every table of the store, once: DDL, frame schemas and documentation derive from here.

Rows of a series are never changed. A row whose values differ from the newest one held under the
same key is appended with the next ``revision``. The newest revision is current. Where a service's
rows may share a time, each further row of a time has revisions of its own, from the next multiple
of `TIE` on.
"""

from __future__ import annotations

from enum import StrEnum

from toolkit.alert_tables import ALERTS
from toolkit.columns import Column, Table
from toolkit.market import Family


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
    (`toolkit.store.answers`). ``settled``: answered for good. ``lost``: lost at the source. Each
    load of its time asks for it again, and a follow as for what is provisional.
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
        Column("name", "VARCHAR", "", "format_version, source_kind, source_id, price_key and more"),
        Column("value", "VARCHAR", "", "the fact"),
    ),
    key=("name",),
)

STREAM = Table(
    "stream",
    "The streams the store knows. Other tables carry the number, users see the key.",
    (
        Column("stream_id", "INTEGER", "", "number inside this store"),
        Column(
            "kind", "VARCHAR", "", "price, spread, funding, events, snapshot, or kept from them"
        ),
        Column("key", "VARCHAR", "", "the stream's text key, e.g. events/spread"),
        Column("rows", "BIGINT", "count", "rows, documents or snapshots held, revisions left out"),
        Column("revisions", "BIGINT", "count", "changed answers held beside them"),
        Column("first_ts", "BIGINT", "s", "oldest time held, Unix UTC", nullable=True),
        Column("last_ts", "BIGINT", "s", "newest time held, Unix UTC", nullable=True),
        Column("late_s", "BIGINT", "s", "how late something new came for an answered time"),
    ),
    key=("stream_id",),
)

LOAD = Table(
    "load",
    "One row per load: where from, under which profile, when.",
    (
        Column("load_id", "BIGINT", "", "number of the load inside this store"),
        Column("started_at", "BIGINT", "s", "local clock when it started"),
        Column("finished_at", "BIGINT", "s", "local clock when it ended well", nullable=True),
        Column("served_at", "BIGINT", "s", "the service's clock when it started"),
        Column("base_url", "VARCHAR", "", "the address asked"),
        Column("schema_hash", "VARCHAR", "", "SHA-256 of the /schemas document", nullable=True),
        Column("toolkit_version", "VARCHAR", "", "version of this toolkit"),
        Column("finding", "JSON", "", "drift and continuity findings", nullable=True),
        Column("plan", "VARCHAR", "", "the plan, as the service named it", nullable=True),
        Column("quota", "BIGINT", "count", "requests a window of the quota", nullable=True),
        Column("quota_window_s", "BIGINT", "s", "length of that window", nullable=True),
        Column("quota_left", "BIGINT", "count", "left of it at the last answer", nullable=True),
        Column("profile_hash", "VARCHAR", "", "SHA-256 of the user's wire profile", nullable=True),
    ),
    key=("load_id",),
)

COVERAGE = Table(
    "coverage",
    "The ledger: which seconds of a stream were asked for, and which the service answered for.",
    (
        Column("stream_id", "INTEGER", "", "number of the stream"),
        Column("state", "VARCHAR", "", "asked, provisional, settled, lost (`CoverageState`)"),
        Column("start_ts", "BIGINT", "s", "first second"),
        Column("end_ts", "BIGINT", "s", "first second after"),
        Column("first_served_at", "BIGINT", "s", "service's clock, first provisional answer", True),
        Column("served_at", "BIGINT", "s", "service's clock, last provisional answer", True),
        Column("why", "VARCHAR", "", "why it is lost, in the service's words", nullable=True),
    ),
    key=("stream_id", "state", "start_ts"),
)

EDGE = Table(
    "edge",
    "How far back and how fresh the service answered for a stream when it was last asked.",
    (
        Column("stream_id", "INTEGER", "", "number of the stream"),
        Column("load_id", "BIGINT", "", "the load that asked last"),
        Column("retention_s", "BIGINT", "s", "how far back the plan reaches", nullable=True),
        Column("delay_s", "BIGINT", "s", "delay of the plan"),
        Column("step_s", "BIGINT", "s", "spacing of the rows, as observed", nullable=True),
        Column("tail_ts", "BIGINT", "s", "end of the newest row that came", nullable=True),
        Column("served_at", "BIGINT", "s", "the service's clock at the question"),
        Column("asked_at", "BIGINT", "s", "the local clock at the question"),
        Column("settle_s", "BIGINT", "s", "how long a row that is visible may still change"),
    ),
    key=("stream_id",),
)

TIE = 100_000
"""Revisions from one row of a time to the next row of the same time."""

_KEY = (
    Column("stream_id", "INTEGER", "", "number of the trajectory"),
    Column("ts", "BIGINT", "s", "start of the row's interval, Unix UTC"),
)
_COMMITTED_AT = Column(
    "committed_at", "BIGINT", "s", "local clock at its commit, null before format 6", True
)
_REVISION = f"0, then one more for each changed answer. {TIE:,} more for each further of its time"
_PROVENANCE = (
    Column("extra", "JSON", "", "fields of the wire that no column takes", nullable=True),
    Column("revision", "INTEGER", "", _REVISION),
    Column("load_id", "BIGINT", "", "the load that brought the row"),
    _COMMITTED_AT,
)
_SERIES_KEY = ("stream_id", "ts", "revision")

SERIES: dict[Family, Table] = {
    Family.PRICE: Table(
        "price",
        "Prices of one symbol on one leg.",
        (
            *_KEY,
            Column("price", "DOUBLE", "quote", "price at the end of the interval", nullable=True),
            Column("mark_price", "DOUBLE", "quote", "mark price, null off futures", nullable=True),
            Column("volume", "DOUBLE", "quote", "traded in the interval", nullable=True),
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
            Column("buy_price", "DOUBLE", "quote", "price of the leg bought", nullable=True),
            Column("sell_price", "DOUBLE", "quote", "price of the leg sold", nullable=True),
            Column("spread_pct", "DOUBLE", "percent", "100 (sell / buy - 1), as sent", True),
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
            Column("ts", "BIGINT", "s", "a settlement of either leg, Unix UTC"),
            Column("buy_rate", "DOUBLE", "fraction_per_interval", "settled at ts", nullable=True),
            Column("sell_rate", "DOUBLE", "fraction_per_interval", "settled at ts", nullable=True),
            Column("buy_interval_hours", "DOUBLE", "hours", "null for a spot leg", nullable=True),
            Column("sell_interval_hours", "DOUBLE", "hours", "null for a spot leg", nullable=True),
            Column("differential_pct_8h", "DOUBLE", "percent_per_8h", "sell - buy in force", True),
            *_PROVENANCE,
        ),
        key=_SERIES_KEY,
        order=("stream_id", "ts"),
    ),
}
"""The series tables, by family."""

_ANSWER = (
    *_KEY[:1],
    Column("ts", "BIGINT", "s", "the service's clock at the answer, Unix UTC"),
)
_IN_ANSWER = (
    Column("place", "INTEGER", "", "place of the item in its answer, from 0"),
    Column("extra", "JSON", "", "fields of the item that no column takes", nullable=True),
    Column("revision", "INTEGER", "", "0, then one more for each further answer of the second"),
    Column("load_id", "BIGINT", "", "the load that asked"),
    _COMMITTED_AT,
)

SNAPSHOT_SERIES: dict[str, Table] = {
    "snapshot-spread": Table(
        "snapshot_spread",
        "Spreads kept from snapshots: one row per answer that shows the pair, legs as it has them.",
        (
            *_ANSWER,
            Column("buy_price", "DOUBLE", "quote", "price of the leg bought", nullable=True),
            Column("sell_price", "DOUBLE", "quote", "price of the leg sold", nullable=True),
            Column("spread_pct", "DOUBLE", "percent", "100 (sell / buy - 1), as sent", True),
            Column("opened_at", "BIGINT", "s", "when its event opened, Unix UTC", nullable=True),
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
            Column("rate", "DOUBLE", "fraction_per_interval", "in force at ts", nullable=True),
            Column("interval_hours", "DOUBLE", "hours", "the leg's interval", nullable=True),
            Column("next_funding_time", "BIGINT", "s", "next settlement, Unix UTC", nullable=True),
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
        Column("family", "VARCHAR", "", "spread, splash or funding: the log it came from"),
        Column("schema_id", "VARCHAR", "", "e.g. svc.spread.v1", nullable=True),
        Column("event_id", "VARCHAR", "", "as sent; else sha256: of its lasting content"),
        Column("event_type", "VARCHAR", "", "e.g. spread.opened", nullable=True),
        Column("ts_ms", "BIGINT", "ms", "when it happened, Unix UTC"),
        Column("ts", "BIGINT", "s", "the same in seconds"),
        Column("lifecycle", "VARCHAR", "", "open or closed", nullable=True),
        Column("symbol", "VARCHAR", "", "BASE_QUOTE", nullable=True),
        Column("buy_exchange", "VARCHAR", "", "a splash has one leg, here", nullable=True),
        Column("buy_market", "VARCHAR", "", "spot, futures or dex", nullable=True),
        Column("sell_exchange", "VARCHAR", "", "null for a splash", nullable=True),
        Column("sell_market", "VARCHAR", "", "null for a splash", nullable=True),
        Column("magnitude_pct", "DOUBLE", "percent", "of a spread or splash", nullable=True),
        Column("peak_pct", "DOUBLE", "percent", "largest so far, of a spread", nullable=True),
        Column("differential_pct_8h", "DOUBLE", "percent_per_8h", "of a dislocation", True),
        Column("close_reason", "VARCHAR", "", "of a closed spread", nullable=True),
        Column("document", "VARCHAR", "", "the bytes as they came"),
        Column("revision", "INTEGER", "", "0, then one more for each changed delivery"),
        Column("load_id", "BIGINT", "", "the load that brought it"),
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
        Column("channel", "VARCHAR", "", "archive, socket or webhook; service: not told apart"),
        Column("place", "INTEGER", "", "0, then one more each time that it came by the channel"),
        Column("arrived_ms", "BIGINT", "ms", "local clock when it came, null of old stores", True),
        Column("deliveries", "BIGINT", "count", "how often it came together, null of old", True),
        Column("load_id", "BIGINT", "", "the load, capture or receiver's run that brought it"),
    ),
    key=("family", "schema_id", "event_id", "event_type", "ts_ms", "channel", "place"),
    order=("family", "ts_ms", "event_id"),
)

GAP = Table(
    "gap",
    "The gap ledger of live capture: one row each time a stream was lost, and of what.",
    (
        Column("load_id", "BIGINT", "", "the capture that lost it"),
        Column("gap_id", "INTEGER", "", "number of the gap inside that capture"),
        Column("stream_id", "INTEGER", "", "number of the stream"),
        Column("start_ts", "BIGINT", "s", "the service's clock when it was heard last"),
        Column("end_ts", "BIGINT", "s", "when it was heard again, or the capture ended", True),
        Column("cause", "VARCHAR", "", "why it was lost, in words"),
        Column("status", "VARCHAR", "", "open, repaired or unrepairable"),
        Column("repaired_load_id", "BIGINT", "", "the load that filled it", nullable=True),
    ),
    key=("load_id", "gap_id"),
)

_CHANGE = Column("change_id", "BIGINT", "", "number of the change, counted up")
_STREAMS = (
    Column("first_stream_id", "INTEGER", "", "number of the first stream of a run of numbers"),
    Column("last_stream_id", "INTEGER", "", "number of the last: the change is the same for all"),
)
_CHANGED_AT = Column("committed_at", "BIGINT", "s", "local clock at the commit of the change")

COVERAGE_CHANGE = Table(
    "coverage_change",
    "How the ledger came to be: stretches that a commit added to ``coverage``, or took out of it.",
    (
        *(_CHANGE, *_STREAMS, *COVERAGE.columns[1:]),
        Column("added", "INTEGER", "count", "1, or -1 where one that may change was taken out"),
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
"""The history of the ledger, which `toolkit.store.history` reads."""

DELIVERY = Table(
    "delivery",
    "Webhook deliveries that were genuine, each id once. Their event documents are in ``event``.",
    (
        Column("delivery_id", "VARCHAR", "", "as signed; else sha256: of the body"),
        Column("received_at", "BIGINT", "s", "the local clock when it came first"),
        Column("family", "VARCHAR", "", "null where it is no event document", nullable=True),
        Column("document", "VARCHAR", "", "the bytes of what is no event document", nullable=True),
        Column("load_id", "BIGINT", "", "the receiver's run that brought it"),
    ),
    key=("delivery_id",),
)

SNAPSHOT = Table(
    "snapshot",
    "Dashboards, activity and the symbol listing, as they were when asked.",
    (
        Column("kind", "VARCHAR", "", "symbols, activity, spread or funding"),
        Column("served_at", "BIGINT", "s", "the service's clock at the answer"),
        Column("revision", "INTEGER", "", "0, then one more for each further answer of the second"),
        Column("tracked", "INTEGER", "count", "pairs or legs shown, null where that is open", True),
        Column("period_s", "BIGINT", "s", "from one question to the next, if set", nullable=True),
        Column("fields", "JSON", "", "fields that rows give back, null for none", nullable=True),
        Column("document", "VARCHAR", "", "the bytes as they came, less the items that are rows"),
        Column("load_id", "BIGINT", "", "the load that asked"),
        _COMMITTED_AT,
    ),
    key=("kind", "served_at", "revision"),
)

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
