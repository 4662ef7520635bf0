"""From the rows of a window to lines that never run across a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import downsample, require_columns
from toolkit.charts.time_axis import clock_text, utc_offset_s
from toolkit.intervals import Interval
from toolkit.show.values import basis_text
from toolkit.statistics.core.contract import checked_times, whole_number
from toolkit.statistics.quality import coverage
from toolkit.statistics.quality.coverage import by_polls, poll_count

_SEGMENT = "__segment_"
_GAP_STEPS = 1.5
"""DrawnRows further apart than this many steps have a gap between them."""
_GRAIN = 1000
"""A chart is about this many pixels wide."""


@dataclass(frozen=True, slots=True)
class DrawnRows:
    """What is drawn of a window (``frame``), how many rows it has, and how much was observed.

    ``coverage`` is the row of `toolkit.statistics.quality.coverage` for the chart's main column,
    None where the window has no row. ``joined`` counts that column's gaps too short to be seen.
    """

    frame: pl.DataFrame
    total: int
    coverage: dict[str, Any] | None
    joined: int = 0

    @property
    def words(self) -> str:
        """n, the coverage, how many rows have no value, and how many points are drawn of how many.

        >>> frame = pl.DataFrame({"ts": [0, 60, 120], "price": [1.0, 2.0, None]})
        >>> rows_to_draw(frame, ["price"], Interval(0, 600), step_s=60, points=50).words
        'n = 2, coverage 20.00 %, 1 row without a value'
        """
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

    A line breaks where two rows are more than 1.5 steps apart, and at a null, NaN or infinity. Of a
    window with more than ``points`` rows, only breaks longer than a thousandth of it count: the
    line's own grain is coarser than a shorter one, and would tear it open far wider than it is. The
    first of ``columns`` is the main one, which n and coverage speak of. With ``polls`` that is by
    polls, of rows that are kept from snapshots.

    >>> frame = pl.DataFrame({"ts": [0, 60, 240, 300, 999], "price": [1.0, 2.0, 3.0, 4.0, 5.0]})
    >>> rows = rows_to_draw(frame, ["price"], Interval(0, 400), step_s=None, points=50)
    >>> rows.total, rows.frame["__segment_price"].to_list()
    (4, [0, 0, 1, 1])
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
    """Compute the seconds since the last value where the line breaks before a row, else null."""
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

    The line also breaks where the zone's clock is set forward or back: the hour that is skipped
    or comes twice is not drawn as time that passed.

    >>> frame = pl.DataFrame({"ts": [0, 60, 240, 300], "price": [1.0, 2.0, 3.0, 4.0]})
    >>> rows = rows_to_draw(frame, ["price"], Interval(0, 400), step_s=60, points=50)
    >>> gapped_line(rows, "price", name="price", hover="%{y}", timezone="UTC").y.tolist()
    [1.0, 2.0, nan, 3.0, 4.0]
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
