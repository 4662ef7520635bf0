"""Every view of a store: what users of SQL read instead of the tables.

A view has the trajectory or stream as text, times as TIMESTAMP in UTC, which no session's zone
changes, and only the newest revision of each row. The views in the file are for other programs:
this toolkit reads its own (`toolkit.store.reading.sql`).
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

import duckdb

from toolkit.market import Family
from toolkit.store.file.engine import DATABASE
from toolkit.tables import BROUGHT, EVENT, ROWS, Field, Table

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SqlView:
    """A view: its columns, its key (which no two rows share), and its query.

    In the query, ``{at}`` is where the tables are: nothing, or a database and a schema with a dot.
    """

    name: str
    meaning: str
    columns: tuple[Field, ...]
    key: tuple[str, ...]
    query: str


_TRAJECTORY = Field("trajectory", "VARCHAR", "", "its text, as in frames")
_STREAM = Field("stream", "VARCHAR", "", "its text, as in frames")
_TIME = Field("time", "TIMESTAMP", "", "ts as a time, UTC")
_ROW_KEY = ("trajectory", "ts")
_SENT = ("extra",)


def _columns(table: Table) -> tuple[Field, ...]:
    """Return the columns of a table that a view of it has."""
    ts = next(column for column in table.columns if column.name == "ts")
    values = (column for column in table.values if column.name not in _SENT)
    return (_TRAJECTORY, _TIME, ts, *values)


def _newest(table: Table, key: tuple[str, ...]) -> str:
    """Return the part of a query that is each row's newest revision."""
    same = " AND ".join(f"r.{name} IS NOT DISTINCT FROM n.{name}" for name in key)
    return (
        f"FROM {{at}}{table.name} AS r ANTI JOIN (SELECT {', '.join(key)}, revision "  # noqa: S608 - ours
        f"FROM {{at}}{table.name} WHERE revision > 0) AS n ON {same} AND r.revision < n.revision"
    )


def _rows(table: Table) -> str:
    values = [column.name for column in table.values if column.name not in _SENT]
    return (
        "SELECT key AS trajectory, make_timestamp(r.ts * 1000000) AS time, r.ts, "
        f"{', '.join(values)} "
        f"{_newest(table, ('stream_id', 'ts'))} JOIN {{at}}stream USING (stream_id)"
    )


_EXCESS = (
    "(greatest(buy_price, sell_price) - least(buy_price, sell_price))"
    " / least(buy_price, sell_price)"
)
_LEGS = (
    "isfinite(buy_price) AND isfinite(sell_price) AND buy_price > 0 AND sell_price > 0 "
    f"AND isfinite(1e4 * ({_EXCESS}))"
)
_SERVICE = (
    "(buy_price IS NULL OR sell_price IS NULL) AND isfinite(spread_pct) AND spread_pct > -100"
)
# DuckDB has no log1p: ln(1 + x) x / ((1 + x) - 1) has its digits also where x is small
_LOG1P = "CASE WHEN 1 + x = 1 THEN x ELSE ln(1 + x) * (x / ((1 + x) - 1)) END"
_SIGN = "CASE spread_basis WHEN 'legs' THEN sign(sell_price - buy_price) ELSE 1 END"


def _spreads(table: Table) -> str:
    """Return the query of spreads with their log spread, as `with_spread` of statistics has it."""
    columns = ", ".join(column.name for column in _columns(table))
    return (
        f"SELECT {columns}, 1e4 * ({_LOG1P}) * {_SIGN} AS spread_log_bps, "  # noqa: S608 - ours
        "CASE spread_basis WHEN 'legs' THEN 1e4 * ((sell_price - buy_price) / buy_price) "
        "WHEN 'service' THEN 100 * spread_pct END AS spread_bps, spread_basis "
        f"FROM (SELECT *, CASE spread_basis WHEN 'legs' THEN {_EXCESS} "
        "WHEN 'service' THEN spread_pct / 100 END AS x "
        f"FROM (SELECT *, CASE WHEN {_LEGS} THEN 'legs' WHEN {_SERVICE} THEN 'service' END "
        f"AS spread_basis FROM ({_rows(table)})))"
    )


_BY = "legs, or service: from spread_pct, where a price is null"
_SPREAD = (
    Field("spread_log_bps", "DOUBLE", "bps", "1e4 ln(sell_price / buy_price)", nullable=True),
    Field("spread_bps", "DOUBLE", "bps", "1e4 (sell_price / buy_price - 1)", nullable=True),
    Field("spread_basis", "VARCHAR", "", _BY, nullable=True),
)


def _of_series(name: str, meaning: str, kind: str) -> SqlView:
    """Return the view of a kind of series, of spreads with their log spread."""
    table, spread = ROWS[kind], kind.endswith("spread")
    columns = (*_columns(table), *(_SPREAD if spread else ()))
    return SqlView(name, meaning, columns, _ROW_KEY, (_spreads if spread else _rows)(table))


_EVENT_KEY = ("family", "schema_id", "event_id", "event_type", "ts_ms")
_EVENT_COLUMNS = tuple(
    column for column in EVENT.columns if column.name not in ("revision", *BROUGHT)
)
_EVENTS = (
    "SELECT 'events/' || r.family AS stream, make_timestamp(r.ts_ms * 1000) AS time, "
    f"{', '.join(f'r.{column.name}' for column in _EVENT_COLUMNS)} {_newest(EVENT, _EVENT_KEY)}"
)

VIEWS: tuple[SqlView, ...] = (
    _of_series("prices", "Prices of one symbol on one leg, one row per time.", Family.PRICE),
    _of_series(
        "spreads",
        "Both legs of a spread and the spread itself, as statistics compute it.",
        "spread",
    ),
    _of_series("funding_rates", "Settled funding rates of both legs.", Family.FUNDING),
    _of_series(
        "snapshot_spreads",
        "Spreads kept from snapshots, and the spread itself, as statistics compute it.",
        "snapshot-spread",
    ),
    _of_series(
        "snapshot_rates",
        "Funding rates of one leg in force, kept from snapshots.",
        "snapshot-funding",
    ),
    SqlView(
        "event_documents",
        "Event documents, one row per transition.",
        (_STREAM, Field("time", "TIMESTAMP", "", "ts_ms as a time, UTC"), *_EVENT_COLUMNS),
        ("stream", *_EVENT_KEY[1:]),
        _EVENTS,
    ),
    SqlView(
        "held_coverage",
        "The ledger's stretches: what of each stream was asked for, and how far it was answered.",
        (
            _STREAM,
            Field("state", "VARCHAR", "", "asked, provisional, settled, lost (`CoverageState`)"),
            Field("time", "TIMESTAMP", "", "start_ts as a time, UTC"),
            Field("end_time", "TIMESTAMP", "", "end_ts as a time, UTC"),
            Field("start_ts", "BIGINT", "s", "first second"),
            Field("end_ts", "BIGINT", "s", "first second after"),
            Field("why", "VARCHAR", "", "why it is lost, in the service's words", nullable=True),
        ),
        ("stream", "state", "start_ts"),
        "SELECT key AS stream, state, make_timestamp(start_ts * 1000000) AS time, "
        "make_timestamp(end_ts * 1000000) AS end_time, start_ts, end_ts, why "
        "FROM {at}coverage JOIN {at}stream USING (stream_id)",
    ),
)
"""All views, in the order they are made."""


def make_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the views in the file, in place of views of the same names, whoever made those.

    A user's table of such a name is left, with a warning.
    """
    tables = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE database_name = ? AND schema_name = 'main'",
        [DATABASE],
    ).fetchall()
    taken = {name.lower() for (name,) in tables}
    for view in VIEWS:
        if view.name in taken:
            _log.warning(
                "the store has a table %s, so the view of that name is left out", view.name
            )
        else:
            at = f"{DATABASE}.main.{view.name}"
            connection.execute(f"CREATE OR REPLACE VIEW {at} AS {view.query.format(at='')}")
