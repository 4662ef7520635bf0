"""From the rows of a window to lines that never run across a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.time_axis import clock_text, utc_offset_s
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.show.values import basis_text
from toolkit.statistics.core.contract import (
    checked_column,
    checked_times,
    checked_types,
    whole_number,
)
from toolkit.statistics.quality import coverage
from toolkit.statistics.quality.coverage import by_polls, poll_count

_ROW, _BUCKET = "__row", "__bucket"


def require_columns(frame: pl.DataFrame, columns: Sequence[str]) -> None:
    """Raise `InputError` unless the frame has the columns, with numbers."""
    # An all-null column without a type still draws: as nothing.
    checked_types(frame, dict.fromkeys(columns, "number or null"))


def downsample(
    frame: pl.DataFrame, columns: str | Sequence[str], *, points: int = 2000
) -> pl.DataFrame:
    """Keep at most ``points`` of the frame's rows, among them every column's extremes.

    The span of ``ts`` is cut into equal buckets. The first and the last row are kept and, per
    bucket and column, the first row with the minimum, the maximum and null. Rows are unchanged.

    Parameters
    ----------
    frame
        ``columns`` and ``ts`` are numeric. Rows are sorted by ``ts``, ties keep their order. Up to
        ``points`` rows are returned whole.
    columns
        The columns that keep their extremes. NaN counts as null.
    points
        The budget, at least 2 plus 3 for each column.

    Returns
    -------
    pl.DataFrame
        The frame's columns, sorted by ``ts``, with the global minimum and maximum of each column. A
        null stretch as long as two buckets leaves a null row, a shorter one may vanish.

    Raises
    ------
    InputError
        A column is missing or not numeric, ``ts`` has nulls, or ``points`` is too few.

    Notes
    -----
    Method: M4/min-max aggregation, Jugel et al., "M4: A Visualization-Oriented Time Series Data
    Aggregation", PVLDB 7(10), 2014.

    Examples
    --------
    >>> spike = pl.DataFrame({"ts": range(1000), "price": [1.0] * 500 + [9.0] + [1.0] * 499})
    >>> kept = downsample(spike, "price", points=20)
    >>> kept.height <= 20, kept["price"].max(), kept["ts"].max()
    (True, 9.0, 999)
    """
    names = [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        checked_column(frame, name)
    require_columns(frame, ["ts", *names])
    points = whole_number("points", points, 2 + 3 * len(names))
    if frame["ts"].null_count():
        raise InputError("ts", "a null", "a column without nulls")
    ordered = frame if frame["ts"].is_sorted() else frame.sort("ts", maintain_order=True)
    if ordered.height <= points:
        return ordered
    return ordered[_kept_rows(ordered.select("ts", *names), points)]


def _kept_rows(frame: pl.DataFrame, points: int) -> pl.Series:
    """Return the positions of the rows to keep, ascending and distinct."""
    values = frame.select(pl.exclude("ts").cast(pl.Float64).fill_nan(None))
    first, last = frame["ts"][0], frame["ts"][-1]
    share = (frame["ts"] - first) / ((last - first) or 1)
    with_nulls = sum(column.null_count() > 0 for column in values)
    buckets = (points - 2) // (2 * values.width + with_nulls)
    rows = _extremes(values, share, buckets)
    # Columns that move together share rows, and a gap leaves buckets empty: use what that saved.
    finer = _extremes(values, share, buckets * 19 * points // (20 * len(rows)))
    return finer if len(rows) < len(finer) <= points else rows


def _extremes(values: pl.DataFrame, share: pl.Series, buckets: int) -> pl.Series:
    """Return the ends, and per bucket and column minimum, maximum and first null."""
    bucketed = values.with_row_index(_ROW).with_columns(
        (share * buckets).floor().clip(upper_bound=buckets - 1).alias(_BUCKET)
    )
    picks = [
        pick
        for column in map(pl.col, values.columns)
        for pick in (
            column.arg_min(),
            column.arg_max(),
            pl.when(column.has_nulls()).then(column.is_null().arg_max()),
        )
    ]
    # Rows are in the order of x, so a bucket is a run of rows and a position in it only shifts.
    found = bucketed.group_by(_BUCKET, maintain_order=True).agg(
        (pick + pl.first(_ROW)).alias(str(i)) for i, pick in enumerate(picks)
    )
    ends = pl.Series([0, values.height - 1], dtype=pl.UInt32)
    picked = [found[str(i)].cast(pl.UInt32).drop_nulls() for i in range(len(picks))]
    return pl.concat([ends, *picked]).unique().sort()


_SEGMENT = "__segment_"
_GAP_STEPS = 1.5
"""DrawnRows further apart than this many steps have a gap between them."""
_GRAIN = 1000
"""A chart is about this many pixels wide."""


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """The rows drawn of a window (``frame``), and how many it has.

    ``coverage`` is the row of `toolkit.statistics.quality.coverage` for the main column, None
    without a row in the window. ``joined`` counts that column's gaps too short to be seen.
    """

    frame: pl.DataFrame
    total: int
    coverage: dict[str, Any] | None
    joined: int = 0

    @property
    def words(self) -> str:
        """n, coverage, rows without a value, and points drawn of how many."""
        if self.coverage is None:
            return "n = 0"
        parts = [basis_text(self.coverage["n"], self.coverage["coverage"])]
        if empty := self.coverage["n_null"]:
            parts.append(f"{empty:,} row{'s' * (empty > 1)} without a value")
        if absent := self.coverage.get("not_tracked"):
            parts.append(f"{absent:,} poll{'s' * (absent > 1)} without it")
        if self.frame.height < self.total:
            parts.append(f"{self.frame.height:,} of {self.total:,} points")
        if self.joined:
            parts.append(f"{self.joined:,} gap{'s' * (self.joined > 1)} too short to see")
        return ", ".join(parts)


def rows_to_draw(
    frame: pl.DataFrame,
    columns: Sequence[str],
    window: Interval,
    *,
    step_s: int | None,
    points: int,
    polls: pl.DataFrame | None = None,
) -> DrawnRows:
    """Select at most ``points`` rows of the window, and mark where each column's line breaks.

    A line breaks where two rows are more than 1.5 steps apart, and at a null, NaN or infinity. Of
    more than ``points`` rows, only breaks longer than a thousandth of the window count, as a
    shorter one would be drawn far too wide. n and coverage are of the first of ``columns``. With
    ``polls`` coverage is by polls.
    """
    points = whole_number("points", points, 1)
    require_columns(frame, ["ts", *columns])
    checked_times(frame)
    values = [pl.col(c).cast(pl.Float64) for c in columns]
    inside = (
        frame.filter(pl.col("ts").is_between(*window, closed="left"))
        .sort("ts")
        .select(pl.col("ts").cast(pl.Int64), *(pl.when(v.is_finite()).then(v) for v in values))
    )
    if inside.is_empty():
        return DrawnRows(inside, 0, None)
    keyed = inside.with_columns(trajectory=pl.lit("drawn"))
    step_s = coverage(keyed, *window, step_s=step_s)["step_s"].item()
    measured = coverage(keyed, *window, column=columns[0], step_s=step_s)
    if polls is not None:
        measured = by_polls(measured, poll_count(polls, *window))
    observed = measured.row(0, named=True)
    seen_s = window.length_s / _GRAIN if inside.height > points else 0
    broken = inside.with_columns(_break_s(c, step_s).alias(_SEGMENT + c) for c in columns)
    joined = broken.filter(pl.col(_SEGMENT + columns[0]) <= seen_s).height
    segmented = broken.with_columns(
        (pl.col(_SEGMENT + c) > seen_s).fill_null(value=False).cum_sum() for c in columns
    )
    return DrawnRows(downsample(segmented, columns, points=points), inside.height, observed, joined)


def _break_s(column: str, step_s: int | None) -> pl.Expr:
    """Return the seconds since the last value where the line breaks before a row, else null."""
    value, ts = pl.col(column), pl.col("ts")
    since = ts - pl.when(value.is_not_null()).then(ts).forward_fill().shift()
    gap = value.is_null().shift()
    if step_s is not None:
        gap |= since > _GAP_STEPS * step_s
    return pl.when(value.is_not_null() & gap).then(since)


def gapped_line(
    rows: DrawnRows, column: str, *, name: str, hover: str, timezone: str, yaxis: str = "y"
) -> go.Scatter:
    """Draw one column as a line. A point with a gap on both sides shows as a dot.

    The line also breaks where the zone's clock is set forward or back.
    """
    known = rows.frame.filter(pl.col(column).is_not_null())
    offset = utc_offset_s(known["ts"], timezone).to_numpy()
    segment = known[_SEGMENT + column].to_numpy()
    breaks = np.flatnonzero((np.diff(segment) != 0) | (np.diff(offset) != 0)) + 1
    x = clock_text(known["ts"], timezone).to_numpy()
    y = known[column].to_numpy()
    edges = np.concatenate([[0], breaks, [len(y)]])
    alone = np.isin(np.arange(len(y)), edges[:-1][np.diff(edges) == 1])
    dots: dict[str, Any] = {"mode": "lines"}
    if alone.any():
        size = np.insert(np.where(alone, 4, 0).astype(np.uint8), breaks, 0)
        dots = {"mode": "lines+markers", "marker": {"size": size, "opacity": 1}}
    return go.Scatter(
        x=np.insert(x, breaks, x[breaks]),
        y=np.insert(y, breaks, np.nan),
        name=name,
        hovertemplate=hover + "<extra></extra>",
        line={"width": 1.3},
        connectgaps=False,
        yaxis=yaxis,
        **dots,
    )
