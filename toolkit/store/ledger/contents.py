"""Counts of a store's contents: streams, holes, loads, and the plan a load ran under."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import duckdb
import polars as pl

from toolkit.cards import some
from toolkit.intervals import Ends, Interval
from toolkit.market import (
    EventFamily,
    EventLog,
    Family,
    SnapshotKind,
    SnapshotLog,
    Source,
    Stream,
    Trajectory,
)
from toolkit.store.ledger.ledger import SETTLE_S
from toolkit.store.writing.batch import Ledger
from toolkit.tables import EVENT, SERIES, SNAPSHOT, TIE
from toolkit.wire.quota import Allowance

POLLED = (
    "polls AS (SELECT 'snapshot-' || kind AS kind, served_at, max(period_s) AS period_s "
    "FROM snapshot WHERE tracked IS NOT NULL GROUP BY ALL), "
    "polled AS (FROM (SELECT kind, arg_max(period_s, served_at) AS period_s FROM polls "
    "GROUP BY kind) LEFT JOIN (SELECT kind, arg_min(s, (-n, s)) AS spacing_s "
    "FROM (SELECT kind, s, count(*) AS n FROM (SELECT kind, served_at - lag(served_at) "
    "OVER (PARTITION BY kind ORDER BY served_at) AS s FROM polls) "
    "WHERE s IS NOT NULL GROUP BY ALL) GROUP BY kind) USING (kind))"
)
"""The polling period by kind of series kept from snapshots: as set last, and as observed."""

CATALOGUE = (
    "WITH answered AS (SELECT stream_id, max(end_ts) AS answered_until FROM coverage "  # noqa: S608 - ours
    "WHERE state <> $asked GROUP BY stream_id), "
    f"{POLLED} SELECT s.key AS stream, s.kind, rows, revisions, first_ts, last_ts, "
    "coalesce(step_s, period_s, spacing_s) AS step_s, retention_s, "
    "delay_s, served_at, asked_at, answered_until FROM {streams} s "
    "LEFT JOIN (SELECT key AS log, edge.* FROM edge JOIN stream USING (stream_id)) e "
    "ON e.log = CASE WHEN s.kind LIKE 'snapshot-%' THEN replace(s.kind, '-', '/') ELSE s.key END "
    "LEFT JOIN polled p ON p.kind = s.kind LEFT JOIN answered a ON a.stream_id = s.stream_id "
    "ORDER BY s.kind, s.key"
)
"""The query of `toolkit.store.Store.catalogue`, of the streams with their counts in ``streams``.

The edge of a series kept from snapshots is that of the snapshots.
"""

_SPACINGS = " UNION ALL ".join(
    "SELECT stream_id, ts - lag(ts) OVER (PARTITION BY stream_id ORDER BY ts) AS s "  # noqa: S608 - ours
    f"FROM {table.name} WHERE revision = 0"
    for table in SERIES.values()
)
_TIED_ROWS = " UNION ALL ".join(
    f"SELECT stream_id FROM {table.name} WHERE revision > 0 AND revision % {TIE} = 0"  # noqa: S608 - ours
    for table in SERIES.values()
)
CONTINUITY = (
    f"WITH tied AS (SELECT stream_id, count(*) AS tied_rows FROM ({_TIED_ROWS}) GROUP BY ALL), "  # noqa: S608 - ours
    f"counted AS (SELECT stream_id, s, count(*) AS n FROM ({_SPACINGS}) GROUP BY ALL), "
    "stepped AS (SELECT stream_id, arg_min(s, (-n, s)) FILTER (s IS NOT NULL) "
    "AS step FROM counted GROUP BY ALL), "
    "holed AS (FROM counted JOIN stepped USING (stream_id) "
    "SELECT *, s > 1.5 * step AS hole) "
    "SELECT key AS stream, kind, "
    "coalesce(sum(n) FILTER (hole), 0)::BIGINT AS holes, "
    "coalesce(sum(n * (round(s / step) - 1)) FILTER (hole), 0)::BIGINT AS absent_rows, "
    "coalesce(max(s - step) FILTER (hole), 0) AS longest_hole_s, "
    "coalesce(any_value(tied_rows), 0) AS tied_rows "
    "FROM holed JOIN stream USING (stream_id) LEFT JOIN tied USING (stream_id) "
    "GROUP BY ALL ORDER BY kind, key"
)
"""The query of `toolkit.store.Store.continuity`."""

_ROWS_IN_WINDOW = " UNION ALL ".join(
    f"SELECT stream_id FROM {table.name} "  # noqa: S608 - ours
    f"WHERE revision % {TIE} = 0 AND ts >= $low AND ts < $high"
    for table in SERIES.values()
)
COUNTS = (
    f"SELECT key, count(*) FROM ({_ROWS_IN_WINDOW} UNION ALL "  # noqa: S608 - ours
    "SELECT stream_id FROM event JOIN stream ON key = 'events/' || family "
    "WHERE revision = 0 AND ts >= $low AND ts < $high) JOIN stream USING (stream_id) GROUP BY key"
)
"""The query of `toolkit.store.Store.counts`."""

_TELLS_S = 5
"""How far apart two answers are that tell a clock that stands from one that runs (s)."""

_ROWS_OF_LOADS = " UNION ALL ".join(
    f"SELECT load_id, count(*) AS rows FROM {table.name} GROUP BY load_id"  # noqa: S608 - ours
    for table in (*SERIES.values(), EVENT, SNAPSHOT)
)
ROWS_BY_LOAD = (
    "SELECT load_id, coalesce(rows, 0) AS rows, asked_at FROM "  # noqa: S608 - ours
    f"(SELECT load_id, sum(rows)::BIGINT AS rows FROM ({_ROWS_OF_LOADS}) GROUP BY load_id) "
    "FULL JOIN (SELECT load_id, max(asked_at) AS asked_at FROM edge GROUP BY load_id) "
    "USING (load_id) ORDER BY load_id"
)
"""The query of `toolkit.store.Store.rows_by_load`."""


def profile_words(loads: pl.DataFrame, rows: pl.DataFrame, command: str) -> str:
    """Say under how many wire profiles a store's rows were read, "" for one.

    ``loads`` and ``rows`` are of `toolkit.store.Store.loads` and `Store.rows_by_load`. ``command``
    reads all of them under one.

    >>> loads = pl.DataFrame({"load_id": [1, 2, 3], "profile_hash": [None, "5c4e", "5c4e"]})
    >>> rows = pl.DataFrame({"load_id": [1, 2, 3], "rows": [7, 5, 1]})
    >>> profile_words(loads, rows, "rail store remap")
    'rows were read under 2 wire profiles: 7 without a file of yours, by loads 1; 6 under a ...'
    """
    held = rows.filter(pl.col("rows") > 0).join(loads, on="load_id").sort("load_id")
    of = held.group_by("profile_hash", maintain_order=True).agg("load_id", pl.col("rows").sum())
    if of.height < 2:
        return ""
    parts = []
    for users, ids, count in of.select("profile_hash", "load_id", "rows").iter_rows():
        under = f"under a file of hash {users[:8]}" if users else "without a file of yours"
        parts.append(f"{count:,} {under}, by loads {some(ids)}")
    return (
        f"rows were read under {of.height} wire profiles: {'; '.join(parts)}. `{command}` reads "
        "those of histories and events under the one that RAIL_PROFILE names"
    )


def clock_offset_s(catalogue: pl.DataFrame, loads: pl.DataFrame) -> int:
    """Return how far the service's clock was ahead of the local one at its newest answer (s).

    ``catalogue`` and ``loads`` are a store's. Without an answer it is that of the newest load's
    start, without a load 0.

    >>> catalogue = pl.DataFrame({"served_at": [500, 990, None], "asked_at": [9000, 9500, None]})
    >>> loads = pl.DataFrame({"served_at": [400], "started_at": [8900]})
    >>> clock_offset_s(catalogue, loads)
    -8510
    >>> clock_offset_s(catalogue.clear(), loads)
    -8500
    """
    moments = _moments(catalogue, loads)
    return int(moments["served_at"][-1] - moments["at"][-1]) if moments.height else 0


def clock_stands(catalogue: pl.DataFrame, source: Source) -> bool:
    """Return whether the service's clock stands still, as that of a replay does.

    The newest two answers in ``catalogue`` decide, if 5 s or more apart by the local clock.
    Otherwise only a replay's clock does.

    >>> answers = pl.DataFrame({"served_at": [400, 400], "asked_at": [60, 0]})
    >>> clock_stands(answers, Source("live", "x"))
    True
    >>> clock_stands(answers.head(1), Source("live", "x"))
    False
    """
    moments = _answered(catalogue, "asked_at")
    before = moments.filter(pl.col("at") <= pl.col("at").last() - _TELLS_S)
    if before.is_empty():
        return source.kind == "replay"
    return bool(before["served_at"][-1] == moments["served_at"][-1])


def service_now(
    catalogue: pl.DataFrame, loads: pl.DataFrame, source: Source, local_now: int
) -> int:
    """Return what the service's clock shows when the local one shows ``local_now`` (s).

    >>> loads = pl.DataFrame({"served_at": [400, 340], "started_at": [1060, 1000]})
    >>> none = pl.DataFrame({"served_at": [], "asked_at": []})
    >>> service_now(none, loads, Source("live", "x"), 1_100)
    440
    >>> service_now(none, loads.head(1), Source("replay", "x"), 1_100)
    400
    """
    if clock_stands(catalogue, source):
        moments = _moments(catalogue, loads)
        return int(moments["served_at"][-1]) if moments.height else local_now
    return local_now + clock_offset_s(catalogue, loads)


def _moments(catalogue: pl.DataFrame, loads: pl.DataFrame) -> pl.DataFrame:
    """Return the local clock (at) and the service's (served_at) at its answers, else at loads."""
    found = _answered(catalogue, "asked_at")
    return found if found.height else _answered(loads, "started_at")


def _answered(frame: pl.DataFrame, at: str) -> pl.DataFrame:
    return (
        frame.select(at=pl.col(at).cast(pl.Int64), served_at=pl.col("served_at").cast(pl.Int64))
        .drop_nulls()
        .sort("at", "served_at")
    )


def never_asked(asked: Iterable[Stream]) -> list[str]:
    """Return kinds of trajectory, event logs and kinds of snapshot that none of the streams is of.

    >>> never_asked([Stream.parse("A_B:X.spot"), Stream.parse("events/splash")])[:3]
    ['spread', 'funding', 'events/spread']
    """
    every = [*Family, *map(EventLog, EventFamily), *map(SnapshotLog, SnapshotKind)]
    known = {s.family if isinstance(s, Trajectory) else s for s in asked}
    return [
        each.value if isinstance(each, Family) else each.key for each in every if each not in known
    ]


def answer_words(known: Ledger | None, rows: int) -> str:
    """Return what came of asking for a stream with so many rows or documents.

    ``known`` is its ledger, None for a stream that was never asked for.

    >>> from toolkit.store import Edge
    >>> [answer_words(*each) for each in ((None, 0), (Ledger(None), 0), (Ledger(Edge(9)), 0))]
    ['not requested yet', 'no answer', 'nothing there']
    """
    if known is None:
        return "not requested yet"
    if known.edge is None:
        return "no answer"
    return "held" if rows else "nothing there"


def event_logs(catalogue: pl.DataFrame) -> pl.DataFrame:
    """Return the event logs of a store's catalogue, with family and known_until.

    Nothing is known from ``known_until`` (s UTC) on: the service's clock at the last question less
    the plan's delay, or the end of the answers if more than a minute further back. Without an
    answer it is just after the newest document, null without one.

    >>> logs = event_logs(pl.DataFrame({"stream": ["events/splash"] * 2, "kind": ["events"] * 2,
    ...     "last_ts": [50, 50], "served_at": [900, None], "delay_s": [30, None],
    ...     "answered_until": [810, None]}))
    >>> logs.select("family", "known_until").rows()
    [('splash', 870), ('splash', 51)]
    """
    family = pl.col("stream").str.strip_prefix("events/").alias("family")
    edge, answered = pl.col("served_at") - pl.col("delay_s"), pl.col("answered_until")
    known_until = (
        pl.when(answered.is_null())
        .then(pl.col("last_ts") + 1)
        .when(answered < edge - SETTLE_S)
        .then(answered)
        .otherwise(edge)
        .alias("known_until")
    )
    return catalogue.filter(kind="events").select(family, pl.exclude("stream", "kind"), known_until)


def held_stretches(ledger: Mapping[Stream, Ledger], logs: pl.DataFrame) -> pl.DataFrame:
    """Return the stretches of time in which event logs are held: family, start_ts, end_ts (s).

    ``ledger`` is a store's, ``logs`` are of `event_logs`. The last stretch reaches to
    ``known_until``. A log that was never answered has none.

    >>> from toolkit.store.writing.batch import Ledger
    >>> log = EventLog(EventFamily.SPLASH)
    >>> known = {log: Ledger(None, [Interval(0, 60), Interval(90, 120)])}
    >>> logs = pl.DataFrame({"family": ["splash"], "known_until": [125]})
    >>> held_stretches(known, logs).rows()
    [('splash', 0, 60), ('splash', 90, 125)]
    """
    until = dict(logs.select("family", "known_until").iter_rows())
    stretches = [
        (log.family.value, start, until[log.family] if end == known.answered[-1].end else end)
        for log, known in ledger.items()
        if isinstance(log, EventLog)
        for start, end in known.answered
    ]
    schema = {"family": pl.String, "start_ts": pl.Int64, "end_ts": pl.Int64}
    return pl.DataFrame(stretches, schema=schema, orient="row")


def write_allowance(
    connection: duckdb.DuckDBPyConnection, load_id: int, allowance: Allowance | None
) -> None:
    """Write the plan and quota that the service named into a load's row; None writes nothing."""
    if allowance is None:
        return
    connection.execute(
        "UPDATE load SET plan = ?, quota = ?, quota_window_s = ?, quota_left = ? WHERE load_id = ?",
        [allowance.plan, allowance.quota, allowance.window_s, allowance.left, load_id],
    )


def limits(window: Ends) -> dict[str, int]:
    """Return a query's parameters. An empty window is an `InputError`."""
    low, high = Interval.of(window)
    return {"low": low, "high": high}
