"""What a store holds, counted: trajectories, event logs, holes; and the plan a load ran under."""

from __future__ import annotations

import duckdb
import polars as pl

from toolkit.intervals import union
from toolkit.market import Family, Trajectory
from toolkit.store.batch import Ledger
from toolkit.store.ledger import Edge
from toolkit.tables import EVENT, SERIES
from toolkit.wire.allowance import Allowance

__all__ = [
    "named",
    "read_catalogue",
    "read_continuity",
    "read_event_catalogue",
    "read_ledger",
    "read_rows_by_load",
    "write_allowance",
]


def read_catalogue(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """The rows of `toolkit.store.Store.catalogue`."""
    series = " UNION ALL ".join(
        "SELECT trajectory_id, count(*) FILTER (revision = 0) AS rows, "  # noqa: S608 - ours
        "count(*) FILTER (revision > 0) AS revisions, "
        f"min(ts) AS first_ts, max(ts) AS last_ts FROM {table.name} GROUP BY ALL"
        for table in SERIES.values()
    )
    found: pl.DataFrame = connection.sql(
        "SELECT t.key AS trajectory, t.family, coalesce(s.rows, 0) AS rows, "  # noqa: S608 - ours
        "coalesce(s.revisions, 0) AS revisions, first_ts, last_ts, step_s, "
        "retention_s, delay_s, served_at, asked_at "
        f"FROM trajectory t LEFT JOIN ({series}) s USING (trajectory_id) "
        "LEFT JOIN (SELECT * FROM edge QUALIFY row_number() "
        "OVER (PARTITION BY trajectory_id ORDER BY load_id DESC) = 1) e "
        "USING (trajectory_id) ORDER BY t.family, t.key"
    ).pl()
    return found


def read_continuity(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """The rows of `toolkit.store.Store.continuity`."""
    series = " UNION ALL ".join(
        f"SELECT trajectory_id, ts FROM {table.name} WHERE revision = 0"  # noqa: S608 - ours
        for table in SERIES.values()
    )
    found: pl.DataFrame = connection.sql(
        "WITH counted AS (SELECT trajectory_id, s, count(*) AS n FROM ("  # noqa: S608 - ours
        "SELECT trajectory_id, ts - lag(ts) OVER (PARTITION BY trajectory_id ORDER BY ts) "
        f"AS s FROM ({series})) GROUP BY ALL), "
        "stepped AS (SELECT trajectory_id, arg_min(s, (-n, s)) FILTER (s IS NOT NULL) "
        "AS step FROM counted GROUP BY ALL), "
        "holed AS (FROM counted JOIN stepped USING (trajectory_id) "
        "SELECT *, s > 1.5 * step AS hole) "
        "SELECT t.key AS trajectory, t.family, "
        "coalesce(sum(n) FILTER (hole), 0)::BIGINT AS holes, "
        "coalesce(sum(n * (round(s / step) - 1)) FILTER (hole), 0)::BIGINT AS absent_rows, "
        "coalesce(max(s - step) FILTER (hole), 0) AS longest_hole_s "
        "FROM holed JOIN trajectory t USING (trajectory_id) "
        "GROUP BY ALL ORDER BY t.family, t.key"
    ).pl()
    return found


def read_event_catalogue(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """The rows of `toolkit.store.Store.event_catalogue`."""
    found: pl.DataFrame = connection.sql(
        "SELECT e.family, coalesce(d.documents, 0) AS documents, first_ts, last_ts, "
        "retention_s, delay_s, served_at, asked_at FROM event_edge e "
        "LEFT JOIN (SELECT family, count(*) AS documents, min(ts) AS first_ts, "
        "max(ts) AS last_ts FROM event WHERE revision = 0 GROUP BY family) d USING (family) "
        "QUALIFY row_number() OVER (PARTITION BY e.family ORDER BY load_id DESC) = 1 "
        "ORDER BY e.family"
    ).pl()
    return found


def write_allowance(
    connection: duckdb.DuckDBPyConnection, load_id: int, allowance: Allowance | None
) -> None:
    """Write what the service told of plan and quota into a load's row; None writes nothing."""
    if allowance is None:
        return
    connection.execute(
        "UPDATE load SET plan = ?, quota = ?, quota_window_s = ?, quota_left = ? WHERE load_id = ?",
        [allowance.plan, allowance.quota, allowance.window_s, allowance.left, load_id],
    )


def named(trajectory: Trajectory) -> dict[str, object]:
    """The parameters that name a trajectory in a query."""
    return {"family": trajectory.family.value, "key": trajectory.key}


def read_ledger(
    connection: duckdb.DuckDBPyConnection, only: Trajectory | None = None
) -> dict[Trajectory, Ledger]:
    """How far each trajectory, or only one, was answered for, and which stretches."""
    chosen = "true" if only is None else "family = $family AND key = $key"
    params = {} if only is None else named(only)
    edges = connection.execute(
        "SELECT family, key, e.served_at, delay_s, retention_s, step_s, tail_ts "  # noqa: S608 - ours
        f"FROM trajectory JOIN edge e USING (trajectory_id) WHERE {chosen} "
        "QUALIFY row_number() OVER (PARTITION BY trajectory_id ORDER BY load_id DESC) = 1",
        params,
    ).fetchall()
    answered = connection.execute(
        "SELECT family, key, list((start_ts, end_ts)) "  # noqa: S608 - ours
        f"FROM coverage JOIN trajectory USING (trajectory_id) WHERE {chosen} GROUP BY ALL",
        params,
    ).fetchall()
    found = {
        Trajectory.parse(key, Family(family)): Ledger(Edge(*edge), [])
        for family, key, *edge in edges
    }
    for family, key, parts in answered:
        found[Trajectory.parse(key, Family(family))].answered.extend(union(parts))
    return found


def read_rows_by_load(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """The rows of `toolkit.store.Store.rows_by_load`."""
    tables = [*(table.name for table in SERIES.values()), EVENT.name]
    each = " UNION ALL ".join(
        f"SELECT load_id, count(*) AS rows FROM {name} GROUP BY load_id"  # noqa: S608 - ours
        for name in tables
    )
    found: pl.DataFrame = connection.sql(
        f"SELECT load_id, sum(rows)::BIGINT AS rows FROM ({each}) GROUP BY load_id ORDER BY load_id"  # noqa: S608 - ours
    ).pl()
    return found
