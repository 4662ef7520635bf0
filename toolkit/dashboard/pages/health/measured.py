"""Coverage of each stream and its map, measured once per version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
from streamlit import cache_data, cache_resource

from toolkit.dashboard.pages.health.tables import COVERAGE, STATE_COLUMNS, caused, coverage_lines
from toolkit.intervals import Interval, clip
from toolkit.loader.sync.planned import expected_load, load_words
from toolkit.market import SnapshotKind, SnapshotLog, SnapshotTrajectory, Stream
from toolkit.store import Edge, Ledger, Store, answer_words
from toolkit.store.file.engine import FileVersion
from toolkit.store.file.file import Unreadable
from toolkit.store.file.schema import read_format
from toolkit.tables import GapStatus, LedgerState

_DAY_S = 86_400
_MOST = 62
_LENGTHS = (300, 3_600, 14_400, _DAY_S, 2 * _DAY_S, 7 * _DAY_S, 28 * _DAY_S, 364 * _DAY_S)
_NAMES = ("5 min", "1 h", "4 h", "1 day", "2 days", "1 week", "4 weeks", "52 weeks")

Run = list[int]
"""A number of equal cells, and the percent of each `LedgerState` in them."""


class CoverageMap(NamedTuple):
    """Cells from ``start`` (s UTC), each ``step_s`` long, as runs per stream.

    The last cell is known until ``end``.
    """

    start: int
    end: int
    step_s: int
    cells: int
    runs: dict[str, list[Run]]

    @property
    def step_words(self) -> str:
        """The length of a cell."""
        return _NAMES[_LENGTHS.index(self.step_s)]


def coverage_map(stretches: pl.DataFrame, shares: pl.DataFrame | None = None) -> CoverageMap | None:
    """Return the map of stretches: stream, start_ts, end_ts (s UTC), state. None without any.

    ``shares`` are by default their `coverage_shares`. At most 62 cells span all stretches: a cell
    is a day for 10 to 62 days. The percents of a partly unknown cell sum to less than 100. Each
    state present has at least 1.
    """
    if stretches.is_empty():
        return None
    step_s = cell_s(stretches)
    first, last = _ends(stretches)
    start, count = first // step_s, -(-last // step_s) - first // step_s
    known = coverage_shares(stretches, step_s) if shares is None else shares
    percents: dict[str, list[list[int]]] = {}
    for key, cell, *each in known.iter_rows():
        if key not in percents:
            percents[key] = [[0] * len(LedgerState)] * count
        percents[key][cell - start] = each
    runs = {key: _runs(cells) for key, cells in percents.items()}
    return CoverageMap(start * step_s, last, step_s, count, runs)


def cell_s(stretches: pl.DataFrame) -> int:
    """Return the length of a cell of the map of stretches (s)."""
    first, last = _ends(stretches)
    fitting = [length for length in _LENGTHS if -(-last // length) - first // length <= _MOST]
    return fitting[0] if fitting else _LENGTHS[-1]


def _ends(stretches: pl.DataFrame) -> tuple[int, int]:
    if stretches.is_empty():
        return 0, 0
    return int(stretches["start_ts"].to_numpy().min()), int(stretches["end_ts"].to_numpy().max())


def coverage_shares(stretches: pl.DataFrame, step_s: int) -> pl.DataFrame:
    """Return stream, cell (its start / ``step_s``) and the percent of each state."""
    cell_start = pl.col("cell") * step_s
    cell_s = pl.min_horizontal("end_ts", cell_start + step_s) - pl.max_horizontal(
        "start_ts", cell_start
    )
    seconds = (
        stretches.filter(pl.col("start_ts") < pl.col("end_ts"))
        .with_columns(
            cell=pl.int_ranges(pl.col("start_ts") // step_s, (pl.col("end_ts") - 1) // step_s + 1)
        )
        .explode("cell")
        .select(
            "stream",
            "cell",
            *(
                pl.when(pl.col("state") == state).then(cell_s).otherwise(0).alias(state.value)
                for state in LedgerState
            ),
        )
        .group_by("stream", "cell", maintain_order=True)
        .agg(pl.all().sum())
    )
    percents = {state.value: 100 * pl.col(state.value) / step_s for state in LedgerState}
    whole = [
        pl.when(share > 0).then(share.round().clip(1, 100)).otherwise(0).cast(pl.Int64).alias(name)
        for name, share in percents.items()
    ]
    return seconds.select("stream", "cell", *whole)


def _runs(percents: list[list[int]]) -> list[Run]:
    runs: list[Run] = []
    for each in percents:
        if runs and runs[-1][1:] == each:
            runs[-1][0] += 1
        else:
            runs.append([1, *each])
    return runs


_KEEP_S = 600
_WAIT_S = 3.0
_STRETCHES = {"stream": pl.String, **COVERAGE}
_LINES = {
    "kind": pl.String,
    "stream": pl.String,
    "answer": pl.String,
    "retention_s": pl.Int64,
    "served_at": pl.Int64,
}


class Health(NamedTuple):
    """The state of a store at one version of its file.

    ``lines`` has a row of `coverage_lines` per stream, from its first second requested, or first
    row, to the last answer, with ``kind``, ``answer`` (`toolkit.store.answer_words`),
    ``retention_s`` and ``served_at`` (s, null without an answer). ``missing`` has the stretches
    with rows due, of `toolkit.dashboard.pages.health.tables.caused` with requests and rows,
    ``lost`` those that the service's source lost. ``rows`` is `toolkit.store.Store.rows_by_load`,
    ``unreadable`` as in `toolkit.store.Store`.
    """

    lines: pl.DataFrame
    map: CoverageMap | None
    missing: pl.DataFrame
    lost: pl.DataFrame
    rows: pl.DataFrame
    store_format: int
    unreadable: list[Unreadable]


@cache_resource(ttl=_KEEP_S, max_entries=2, show_spinner="Reading the ledger")
def measure_health(path: Path, version: FileVersion) -> Health:
    """Measure the store. A stream without new answers is not read again."""
    del version
    store = Store(path, wait_s=_WAIT_S)
    with store.reading() as connection:
        ledger, catalogue, loads = store.ledger(), store.catalogue(), store.loads()
        newest = int(loads["served_at"][0]) if loads.height else 0
        place = _kept(path, loads.tail(1).select("started_at", "served_at").rows())
        before = place[0] if place else None
        kept = _kept_states(store, catalogue)
        lines, versions, changed = [], {}, {}
        for row in catalogue.iter_rows(named=True):
            stream = Stream.parse(row["stream"])
            known = ledger.get(stream, Ledger(None))
            edge, polled = known.edge, None
            if isinstance(stream, SnapshotTrajectory) and stream.of in kept:
                polled = kept[stream.of]["end_ts"][-1]
            asked = (edge.served_at if edge else newest, polled)
            facts = (*asked, *(row[name] for name in ("rows", "revisions", "asked_at", "first_ts")))
            versions[stream.key] = facts
            if before is None or before.versions.get(stream.key) != facts:
                coverage = (
                    _kept_coverage(stream, kept, row["first_ts"])
                    if isinstance(stream, SnapshotTrajectory)
                    else _coverage(store, stream, known, row["first_ts"], newest)
                )
                changed[stream.key] = coverage
            lines.append(
                {"kind": stream.kind, "stream": stream.key}
                | {"answer": answer_words(ledger.get(stream), row["rows"])}
                | {"retention_s": edge and edge.retention_s, "served_at": edge and edge.served_at}
            )
        place[:] = [_covered(before, versions, changed)]
        covered, known_gaps = place[0], store.gaps()
        of_capture = known_gaps.filter(status=GapStatus.OPEN.value)
        gaps = caused(covered.stretches.filter(state=LedgerState.MISSING.value), ledger, of_capture)
        cause = pl.format("lost at the source: {}", "cause").alias("cause")
        lost = known_gaps.filter(status=GapStatus.LOST.value).select(
            "stream", "start_ts", "end_ts", cause, leaves_at=pl.lit(None, pl.Int64)
        )
        missing = _of_whole_rows(pl.concat([gaps, expected_load(store, gaps)], how="horizontal"))
        rows, store_format = store.rows_by_load(), read_format(connection, path)
        unreadable = store.unreadable()
    frame = (
        pl.DataFrame(lines, schema=_LINES)
        .join(covered.lines, on="stream", how="left", maintain_order="left")
        .with_columns(pl.col("known_s", *STATE_COLUMNS.values()).fill_null(0))
    )
    shown = coverage_map(covered.stretches, covered.shares)
    return Health(frame, shown, missing, lost, rows, store_format, unreadable)


@cache_data(ttl=_KEEP_S, max_entries=16, show_spinner=False)
def measure_cost(path: Path, parts: pl.DataFrame) -> str:
    """Describe the cost of a load with `toolkit.loader.sync.planned.load_words`.

    ``parts`` has stream, start_ts, end_ts (s UTC), and optionally requests and rows.
    """
    store = Store(path, wait_s=_WAIT_S)
    known = parts if "requests" in parts.columns else expected_load(store, parts)
    rows = known["rows"]
    return load_words(
        store, int(known["requests"].sum()), None if rows.has_nulls() else int(rows.sum())
    )


def _of_whole_rows(missing: pl.DataFrame) -> pl.DataFrame:
    """Leave out stretches without a row due, such as seconds between bars, except in logs."""
    log = pl.col("stream").str.starts_with("events/")
    return missing.filter(log | pl.col("rows").is_null() | (pl.col("rows") > 0))


class _Covered(NamedTuple):
    """Coverage of all streams, with the version of each: `coverage_lines`, `coverage_shares`."""

    versions: dict[str, tuple[Any, ...]]
    stretches: pl.DataFrame
    lines: pl.DataFrame
    shares: pl.DataFrame


@cache_resource(ttl=_KEEP_S, max_entries=4, show_spinner=False)
def _kept(path: Path, first: list[tuple[int, ...]]) -> list[_Covered]:
    """Return the cache of a file, identified by its first load."""
    del path, first
    return []


def _covered(
    before: _Covered | None,
    versions: dict[str, tuple[Any, ...]],
    changed: dict[str, pl.DataFrame | None],
) -> _Covered:
    """Measure the coverage of changed streams, and keep that of the others."""
    parts = [
        coverage.select(pl.lit(key).alias("stream"), *COVERAGE)
        for key, coverage in changed.items()
        if coverage is not None
    ]
    new = pl.concat([pl.DataFrame(schema=_STRETCHES), *parts])
    lines = coverage_lines(new)
    if before is None:
        return _Covered(versions, new, lines, coverage_shares(new, cell_s(new)))
    same = pl.col("stream").is_in(list(versions.keys() - changed))
    stretches = pl.concat([before.stretches.filter(same), new])
    step_s = cell_s(stretches)
    if step_s == cell_s(before.stretches):
        shares = pl.concat([before.shares.filter(same), coverage_shares(new, step_s)])
    else:
        shares = coverage_shares(stretches, step_s)
    return _Covered(versions, stretches, pl.concat([before.lines.filter(same), lines]), shares)


def _coverage(
    store: Store, stream: Stream, known: Ledger, first_ts: int | None, newest: int
) -> pl.DataFrame | None:
    if known.edge is None:
        return _unanswered(known, newest)
    window = _known_window(known, known.edge, first_ts)
    if window is None or isinstance(stream, SnapshotLog):
        return None
    return store.coverage(stream, window)


def _kept_states(store: Store, catalogue: pl.DataFrame) -> dict[SnapshotKind, pl.DataFrame]:
    """Read `Store.coverage` of series kept from snapshots: the same for all of a kind."""
    found: dict[SnapshotKind, pl.DataFrame] = {}
    for key in catalogue["stream"]:
        stream = Stream.parse(key)
        if isinstance(stream, SnapshotTrajectory) and stream.of not in found:
            polls = store.polls(stream.of)
            if polls["period_s"].count():  # of one poll nothing is known to be due
                window = Interval(polls["ts"][0], polls["ts"][-1] + 1)
                found[stream.of] = store.coverage(stream, window)
    return found


def _kept_coverage(
    stream: SnapshotTrajectory, kept: Mapping[SnapshotKind, pl.DataFrame], first_ts: int | None
) -> pl.DataFrame | None:
    states = kept.get(stream.of)
    if states is None or first_ts is None:
        return None
    since = states.filter(pl.col("end_ts") > first_ts)
    return since.with_columns(pl.col("start_ts").clip(lower_bound=first_ts))


def _unanswered(known: Ledger, served_at: int) -> pl.DataFrame | None:
    """Return the coverage of a stream that was never answered: all requested time is missing."""
    missing = clip(known.asked, (0, served_at))
    if not missing:
        return None
    state = pl.lit(LedgerState.MISSING.value).alias("state")
    return pl.DataFrame(missing, schema=["start_ts", "end_ts"], orient="row").with_columns(state)


def _known_window(known: Ledger, edge: Edge, first_ts: int | None) -> Interval | None:
    """Return the time from the first second requested or stored to the last answer."""
    end = edge.served_at
    starts = [part.start for part in (*known.asked[:1], *known.answered[:1])]
    begun = [start for start in (*starts, first_ts) if start is not None and start < end]
    return Interval(min(begun), end) if begun else None
