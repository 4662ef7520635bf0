"""The gap ledger: each time a stream was lost, and what became of the stretch that was not heard.

A gap is repaired when the service has answered for all of it, whoever asked, and its archive has
passed the gap: it has something newer, or ten minutes have gone by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import duckdb
import polars as pl

from toolkit.intervals import Interval, difference
from toolkit.market import Stream
from toolkit.store.ledger.history import log_changes
from toolkit.store.ledger.ledger import Edge
from toolkit.store.ledger.streams import append
from toolkit.tables import GAP, GAP_CHANGE, CoverageState, GapStatus

GAPS = (
    "SELECT load_id, gap_id, key AS stream, start_ts, end_ts, cause, status, repaired_load_id "  # noqa: S608 - ours
    "FROM gap JOIN stream USING (stream_id) UNION ALL "
    f"SELECT NULL, NULL, key, start_ts, end_ts, why, '{GapStatus.LOST}', NULL "
    f"FROM coverage JOIN stream USING (stream_id) WHERE state = '{CoverageState.LOST}' "
    "ORDER BY load_id DESC NULLS LAST, gap_id DESC, stream, start_ts DESC"
)
"""The query of `toolkit.store.Store.gaps`."""

_PASSED_S = 600
_COLUMNS = ", ".join(f"gap.{name}" for name in GAP.names)


@dataclass(frozen=True, slots=True)
class Gap:
    """A loss of live capture of the stream ``of``, from ``start`` to ``end`` (s).

    ``end`` is None while it is still lost. ``number`` is the gap's own inside its load.
    """

    number: int
    of: Stream
    start: int
    end: int | None
    cause: str


def write_gaps(
    connection: duckdb.DuckDBPyConnection,
    gaps: Iterable[Gap],
    numbers: Mapping[Stream, int],
    load_id: int,
    committed_at: int | None = None,
) -> None:
    """Record gaps of a load, each as it is known last. ``committed_at`` is that of `stamp`."""
    rows = [
        (load_id, g.number, numbers[g.of], g.start, g.end, g.cause, GapStatus.OPEN.value, None)
        for g in gaps
    ]
    if rows:
        before = connection.execute(
            f"DELETE FROM gap WHERE load_id = ? AND list_contains(?, gap_id) RETURNING {_COLUMNS}",  # noqa: S608 - ours
            [load_id, [gap_id for _, gap_id, *_ in rows]],
        ).fetchall()
        append(connection, GAP, rows)
        changed = [row for row in rows if row not in before]
        log_changes(connection, GAP_CHANGE, changed, committed_at)


def settle_gaps(
    connection: duckdb.DuckDBPyConnection,
    edges: Mapping[int, Edge],
    load_id: int,
    committed_at: int | None = None,
) -> None:
    """Mark the open gaps of what a load has just asked: repaired, or out of the plan's reach.

    ``committed_at`` is that of `stamp`.
    """
    ended = connection.execute(
        "SELECT load_id, gap_id, stream_id, start_ts, end_ts FROM gap "
        "WHERE status = ? AND end_ts IS NOT NULL",
        [GapStatus.OPEN],
    ).fetchall()
    if not ended:
        return
    answered = _answers_to_gaps(connection)
    settled: list[tuple[object, ...]] = []
    for gap_load_id, gap_id, stream_id, start, end in ended:
        edge = edges.get(stream_id)
        if edge is None:
            continue
        unknown = difference([(start, end)], answered.get((gap_load_id, gap_id), []))
        status = _status(unknown, end, edge)
        if status is not GapStatus.OPEN:
            by = load_id if status is GapStatus.REPAIRED else None
            settled.append((gap_load_id, gap_id, status.value, by))
    if settled:
        columns = {n: GAP.schema[n] for n in ("load_id", "gap_id", "status", "repaired_load_id")}
        connection.register("settled", pl.DataFrame(settled, schema=columns, orient="row"))
        changed = connection.execute(
            "UPDATE gap SET status = s.status, repaired_load_id = s.repaired_load_id "  # noqa: S608 - ours
            "FROM settled s WHERE gap.load_id = s.load_id AND gap.gap_id = s.gap_id "
            f"RETURNING {_COLUMNS}"
        ).fetchall()
        connection.unregister("settled")
        log_changes(connection, GAP_CHANGE, changed, committed_at)


def _answers_to_gaps(
    connection: duckdb.DuckDBPyConnection,
) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """By load and number of each open gap: the answered stretches that touch it."""
    touching = connection.execute(
        "SELECT g.load_id, g.gap_id, c.start_ts, c.end_ts FROM gap g "
        "JOIN coverage c USING (stream_id) WHERE c.state <> ? AND c.start_ts < g.end_ts "
        "AND c.end_ts > g.start_ts AND g.status = ?",
        [CoverageState.ASKED, GapStatus.OPEN],
    ).fetchall()
    answered: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for gap_load_id, gap_id, start, end in touching:
        answered.setdefault((gap_load_id, gap_id), []).append((start, end))
    return answered


def _status(unknown: list[Interval], end: int, edge: Edge) -> GapStatus:
    """Return what became of a gap that ends at ``end``, of which ``unknown`` is not answered.

    The archive has passed a gap where it has something newer, or where it had `_PASSED_S` to.
    """
    if not unknown:
        newest = max(edge.tail_ts or 0, edge.clock - edge.delay_s - _PASSED_S)
        return GapStatus.REPAIRED if newest >= end else GapStatus.OPEN
    oldest = edge.reachable_from
    gone = oldest is not None and unknown[0].start < oldest
    return GapStatus.UNREPAIRABLE if gone else GapStatus.OPEN


def end_gaps(connection: duckdb.DuckDBPyConnection, at: int) -> None:
    """End the gaps that a capture left without an end when it was killed: nobody heard until now.

    ``at`` is the service's clock (s).
    """
    changed = connection.execute(
        "UPDATE gap SET end_ts = greatest(start_ts + 1, ?) WHERE end_ts IS NULL "  # noqa: S608 - ours
        f"RETURNING {_COLUMNS}",
        [at],
    ).fetchall()
    log_changes(connection, GAP_CHANGE, changed)
