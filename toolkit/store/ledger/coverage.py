"""The coverage ledger in the file: what of each stream was asked for, answered, and lost.

Neighbouring stretches of one state are one row, so the ledger stays small.

A gap of a capture is repaired when the service has answered for all of it, and its archive has
something newer or ten minutes have passed.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb
import polars as pl

from toolkit.intervals import EVER, Interval, clip, difference, union
from toolkit.market import Family, Stream, Trajectory
from toolkit.store.ledger.history import log_changes
from toolkit.store.ledger.ledger import (
    LONGEST_INTERVAL_S,
    Edge,
    Gap,
    Provisional,
    Stretches,
    renewed,
    settled_stretches,
    states,
    stretches,
    within_reach,
    without,
)
from toolkit.store.ledger.streams import append, number_streams, numbers_of, run_with
from toolkit.store.reading.frames import frame_of
from toolkit.store.writing.batch import Answered, Ledger
from toolkit.tables import (
    COVERAGE,
    COVERAGE_CHANGE,
    EDGE,
    EDGE_CHANGE,
    GAP,
    GAP_CHANGE,
    SERIES,
    CoverageState,
    GapStatus,
)
from toolkit.wire.findings import lost_within

_Recorded = dict[int, list[tuple[Any, ...]]]
"""By number of the stream: start, end, when a provisional answer came first and last (s), why."""


def record(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    stretches: Mapping[int, Iterable[tuple[int, int]]],
    committed_at: int | None = None,
) -> None:
    """Record stretches as asked for or settled, by number of the stream, merged with what is held.

    A stretch that is held already writes nothing. ``committed_at`` is that of `stamp`.
    """
    wanted = {number: joined for number, parts in stretches.items() if (joined := union(parts))}
    held = _touching(connection, state, wanted)
    merged: _Recorded = {
        number: [
            (*stretch, None, None, None)
            for stretch in union([*((row[0], row[1]) for row in held[number]), *parts])
        ]
        for number, parts in wanted.items()
    }
    _replace(connection, state, held, merged, committed_at)


def record_answers(
    connection: duckdb.DuckDBPyConnection,
    settled: Mapping[int, Sequence[Interval]],
    provisional: Mapping[int, Sequence[Interval]],
    clocks: Mapping[int, int],
    committed_at: int | None = None,
    *,
    answers: Mapping[int, Sequence[Answered]] | None = None,
) -> None:
    """Record what was answered, by number of the stream, with the service's clock at the answer.

    A provisional or lost part that is answered the same again keeps its first time. What whole
    ``answers`` no longer call lost is lost no more. ``committed_at`` is that of `stamp`.
    """
    record(connection, CoverageState.SETTLED, settled, committed_at)
    answers = answers or {}
    whole = {n: union(each.stretch for each in of) for n, of in answers.items()}
    spans = {
        n: [*settled.get(n, []), *provisional.get(n, []), *whole.get(n, [])]
        for n in {*settled, *provisional, *whole}
    }
    held, known, losses = (
        _touching(connection, state, spans)
        for state in (CoverageState.PROVISIONAL, CoverageState.SETTLED, CoverageState.LOST)
    )
    after: _Recorded = {}
    lost_after: _Recorded = {number: [] for number in spans}
    for number in spans:
        final = [(start, end) for start, end, *_ in known[number]]
        told = [each for answer in answers.get(number, []) for each in answer.lost]
        told = lost_within(told, difference(whole.get(number, []), final))
        for why in {*(row[4] for row in losses[number]), *(each.why for each in told)}:
            said = [(each.start, each.end) for each in told if each.why == why]
            known_before = sorted(Provisional(*row[:4]) for row in losses[number] if row[4] == why)
            left = without(known_before, difference(whole.get(number, []), said))
            lost_after[number] += [(*p, why) for p in renewed(left, said, clocks[number])]
        final += [(each.start, each.end) for each in told]
        fresh = difference(provisional.get(number, []), final)
        left = without(sorted(Provisional(*row[:4]) for row in held[number]), final)
        after[number] = [(*part, None) for part in renewed(left, fresh, clocks[number])]
    _replace(connection, CoverageState.PROVISIONAL, held, after, committed_at)
    _replace(connection, CoverageState.LOST, losses, lost_after, committed_at)


def _touching(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    spans: Mapping[int, Sequence[tuple[int, int]]],
) -> _Recorded:
    """Read the rows of a state that touch the spans, by number of the stream."""
    bounds = {"stream_id": pl.Int32, "low": pl.Int64, "high": pl.Int64}
    touched = [
        (number, min(start for start, _ in parts), max(end for _, end in parts))
        for number, parts in spans.items()
        if parts
    ]
    found: _Recorded = {number: [] for number in spans}
    if touched:
        for number, *row in run_with(
            connection,
            "SELECT stream_id, start_ts, end_ts, first_served_at, served_at, why FROM coverage "
            "JOIN touched USING (stream_id) "
            "WHERE state = ? AND start_ts <= high AND end_ts >= low",
            [state],
            touched=pl.DataFrame(touched, schema=bounds, orient="row"),
        ):
            found[number].append(tuple(row))
    return found


def _replace(
    connection: duckdb.DuckDBPyConnection,
    state: CoverageState,
    before: _Recorded,
    after: _Recorded,
    committed_at: int | None,
) -> None:
    """Replace rows of a state, by number of the stream, and log the change."""
    gone = [(n, row) for n, rows in before.items() for row in set(rows) - set(after.get(n, []))]
    fresh = [
        (n, row) for n, rows in after.items() for row in sorted(set(rows) - set(before.get(n, [])))
    ]
    if gone:
        schema = {"stream_id": pl.Int32, "start_ts": pl.Int64}
        keys = [(number, row[0]) for number, row in gone]
        run_with(
            connection,
            "DELETE FROM coverage USING gone WHERE coverage.stream_id = gone.stream_id "
            "AND coverage.state = ? AND coverage.start_ts = gone.start_ts",
            [state],
            gone=pl.DataFrame(keys, schema=schema, orient="row"),
        )
    append(connection, COVERAGE, [(number, state, *row) for number, row in fresh])
    if state in (CoverageState.PROVISIONAL, CoverageState.LOST):
        changes = [*((*each, 1) for each in fresh), *((*each, -1) for each in gone)]
    else:  # it only grows
        grown = {
            number: difference([row[:2] for row in rows], [row[:2] for row in before[number]])
            for number, rows in after.items()
        }
        changes = [(n, (*p, None, None, None), 1) for n, parts in grown.items() for p in parts]
    rows = [(number, state, *row, added) for number, row, added in changes]
    log_changes(connection, COVERAGE_CHANGE, rows, committed_at)


def record_asked(connection: duckdb.DuckDBPyConnection, windows: Mapping[Stream, Interval]) -> None:
    """Record that windows are asked for now, one per stream."""
    numbers = number_streams(connection, windows)
    asked = {number: [windows[stream]] for stream, number in numbers.items()}
    record(connection, CoverageState.ASKED, asked)


def write_edges(
    connection: duckdb.DuckDBPyConnection,
    edges: Mapping[int, Edge],
    load_id: int,
    committed_at: int | None = None,
) -> None:
    """Record how far the service answers now, by number of the stream.

    The newest row that ever came stays the newest. ``committed_at`` is that of `stamp`.
    """
    if not edges:
        return
    before = {
        row[0]: row
        for row in connection.execute(
            f"DELETE FROM edge WHERE list_contains(?, stream_id) RETURNING {', '.join(EDGE.names)}",  # noqa: S608 - ours
            [list(edges)],
        ).fetchall()
    }
    tail_at = EDGE.names.index("tail_ts")
    now = int(time.time()) if committed_at is None else committed_at
    rows = []
    for number, e in edges.items():
        last = before[number][tail_at] if number in before else None
        asked_at = now if e.asked_at is None else e.asked_at
        tail_ts = max((ts for ts in (last, e.tail_ts) if ts is not None), default=None)
        clocks = (tail_ts, e.served_at, asked_at, e.settle_s)
        rows.append((number, load_id, e.retention_s, e.delay_s, e.step_s, *clocks))
    append(connection, EDGE, rows)
    changed = [row for row in rows if row != before.get(row[0])]
    log_changes(connection, EDGE_CHANGE, changed, now)


def read_ledger(
    connection: duckdb.DuckDBPyConnection,
    streams: Iterable[Stream] | None = None,
    window: Interval | None = None,
) -> dict[Stream, Ledger]:
    """Read what is known of the streams that were ever asked for, by default of all.

    Only stretches in ``window`` are read, cut to it. What an older answer of an event log covered
    beyond the plan's reach, before its first document, counts as never answered.
    """
    if streams is None:
        found = connection.execute("SELECT key, stream_id FROM stream").fetchall()
        numbers = {Stream.parse(key): int(number) for key, number in found}
    else:
        numbers = numbers_of(connection, streams)
    edges: dict[int, Edge] = {}
    firsts: dict[int, int | None] = {}
    for number, kind, first_ts, *edge in connection.execute(
        "SELECT stream_id, kind, first_ts, served_at, delay_s, retention_s, step_s, tail_ts, "
        "asked_at, late_s, settle_s FROM edge JOIN stream USING (stream_id) "
        "WHERE list_contains(?, stream_id)",
        [list(numbers.values())],
    ).fetchall():
        edges[number] = Edge(*edge)
        if kind == "events":
            firsts[number] = first_ts
    inside = "true" if window is None else "start_ts < $high AND end_ts > $low"
    limits = {} if window is None else {"low": window.start, "high": window.end}
    found_rows: dict[tuple[int, str], list[tuple[int, ...]]] = {}
    for number, state, *row in connection.execute(
        "SELECT stream_id, state, start_ts, end_ts, first_served_at, served_at FROM coverage "  # noqa: S608 - ours
        f"WHERE list_contains($numbers, stream_id) AND {inside}",
        {"numbers": list(numbers.values())} | limits,
    ).fetchall():
        found_rows.setdefault((number, state), []).append(tuple(row))
    cut = EVER if window is None else window

    def of(number: int, state: CoverageState) -> list[Interval]:
        return clip(((row[0], row[1]) for row in found_rows.get((number, state), [])), cut)

    def provisional(number: int, state: CoverageState) -> list[Provisional]:
        rows = found_rows.get((number, state), [])
        parts = sorted(Provisional(*row) for row in rows)  # in a table they have no order
        if number in firsts:
            parts = within_reach(parts, edges[number].retention_s, firsts[number])
        return without(parts, difference([EVER], [cut]))

    return {
        stream: Ledger(
            edges.get(number),
            of(number, CoverageState.SETTLED),
            provisional(number, CoverageState.PROVISIONAL),
            of(number, CoverageState.ASKED),
            provisional(number, CoverageState.LOST),
        )
        for stream, number in numbers.items()
        if number in edges or (number, CoverageState.ASKED) in found_rows
    }


def read_coverage(
    connection: duckdb.DuckDBPyConnection, stream: Stream, window: Interval, tolerance_s: int | None
) -> pl.DataFrame | None:
    """Return the rows of `toolkit.store.Store.coverage`, None for a stream without an answer."""
    known = read_ledger(connection, [stream], window).get(stream)
    if known is None or known.edge is None:
        return None
    held: Stretches = known.answered
    settled = isinstance(stream, Trajectory) and stream.family is Family.FUNDING
    if isinstance(stream, Trajectory):
        held = _held(connection, stream, window, known.edge, tolerance_s)
    lost = [(part.start, part.end) for part in known.lost]
    return states(window, known.answered, held, known.edge, settled=settled, lost=lost)


_INTERVAL_S = "(3600 * least(buy_interval_hours, sell_interval_hours))::BIGINT"
"""What a row of funding declares (s): the shorter interval of two legs, null without any."""


def _held(
    connection: duckdb.DuckDBPyConnection,
    trajectory: Trajectory,
    window: Interval,
    edge: Edge,
    tolerance_s: int | None,
) -> Stretches:
    """Return the stretches of the window that have rows."""
    step_s = edge.step_s or 1
    apart_s = step_s * 3 // 2 if tolerance_s is None else tolerance_s
    funding = trajectory.family is Family.FUNDING
    reach_s = max(apart_s, step_s, 2 * LONGEST_INTERVAL_S if funding else 0)
    rows = frame_of(
        connection,
        f"SELECT ts{f', {_INTERVAL_S} AS declared_s' if funding else ''} "  # noqa: S608 - ours
        f"FROM {SERIES[trajectory.family].name} JOIN stream USING (stream_id) "
        "WHERE key = $key AND ts >= $low AND ts < $high",
        params={"key": trajectory.key, "low": window.start - reach_s, "high": window.end + reach_s},
    )
    if funding:
        each = rows.sort("ts", "declared_s").unique("ts", keep="last", maintain_order=True)
        return settled_stretches(each["ts"], each["declared_s"], step_s, tolerance_s)
    return stretches(rows["ts"], step_s, apart_s)


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


def write_gaps(
    connection: duckdb.DuckDBPyConnection,
    gaps: Iterable[Gap],
    numbers: Mapping[Stream, int],
    load_id: int,
    committed_at: int | None = None,
) -> None:
    """Record gaps of a load, each in its latest state. ``committed_at`` is that of `stamp`."""
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
    """Mark open gaps that a load has asked for as repaired, or out of the plan's reach."""
    ended = connection.execute(
        "SELECT load_id, gap_id, stream_id, start_ts, end_ts FROM gap "
        "WHERE status = ? AND end_ts IS NOT NULL",
        [GapStatus.OPEN],
    ).fetchall()
    if not ended:
        return
    touching = connection.execute(
        "SELECT g.load_id, g.gap_id, c.start_ts, c.end_ts FROM gap g "
        "JOIN coverage c USING (stream_id) WHERE c.state <> ? AND c.start_ts < g.end_ts "
        "AND c.end_ts > g.start_ts AND g.status = ?",
        [CoverageState.ASKED, GapStatus.OPEN],
    ).fetchall()
    answered: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    for *gap, start, end in touching:
        answered.setdefault(tuple(gap), []).append((start, end))
    settled: list[tuple[object, ...]] = []
    for *gap, stream_id, start, end in ended:
        if edge := edges.get(stream_id):
            unknown = difference([(start, end)], answered.get(tuple(gap), []))
            status = _status(unknown, end, edge)
            if status is not GapStatus.OPEN:
                by = load_id if status is GapStatus.REPAIRED else None
                settled.append((*gap, status.value, by))
    if settled:
        kinds = GAP.schema
        columns = {n: kinds[n] for n in ("load_id", "gap_id", "status", "repaired_load_id")}
        changed = run_with(
            connection,
            "UPDATE gap SET status = s.status, repaired_load_id = s.repaired_load_id "  # noqa: S608 - ours
            "FROM settled s WHERE gap.load_id = s.load_id AND gap.gap_id = s.gap_id "
            f"RETURNING {_COLUMNS}",
            settled=pl.DataFrame(settled, schema=columns, orient="row"),
        )
        log_changes(connection, GAP_CHANGE, changed, committed_at)


def _status(unknown: list[Interval], end: int, edge: Edge) -> GapStatus:
    """Return what became of a gap that ends at ``end``, of which ``unknown`` is not answered."""
    if not unknown:
        newest = max(edge.tail_ts or 0, edge.clock - edge.delay_s - _PASSED_S)
        return GapStatus.REPAIRED if newest >= end else GapStatus.OPEN
    oldest = edge.reachable_from
    gone = oldest is not None and unknown[0].start < oldest
    return GapStatus.UNREPAIRABLE if gone else GapStatus.OPEN


def end_gaps(connection: duckdb.DuckDBPyConnection, at: int) -> None:
    """End the gaps that a killed capture left open. ``at`` is the service's clock (s)."""
    changed = connection.execute(
        "UPDATE gap SET end_ts = greatest(start_ts + 1, ?) WHERE end_ts IS NULL "  # noqa: S608 - ours
        f"RETURNING {_COLUMNS}",
        [at],
    ).fetchall()
    log_changes(connection, GAP_CHANGE, changed)
