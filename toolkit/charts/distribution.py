"""How the values of a line are distributed, drawn beside it on the same axis."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.theme import MARK_COLOUR
from toolkit.intervals import Interval

_STEPS = 60
BESIDE = 0.9
"""The share of the width that the line keeps."""


def distribution_bars(frame: pl.DataFrame, column: str, window: Interval, yaxis: str) -> go.Bar:
    """Count the finite values of a window in 60 steps of one width, as bars from the right axis.

    The length of a bar is the share of the rows with a value. Without a value there is no bar.

    >>> frame = pl.DataFrame({"ts": [0, 60, 120, 180], "bps": [1.0, 1.0, 2.0, None]})
    >>> bars = distribution_bars(frame, "bps", Interval(0, 240), "y2")
    >>> [round(float(share), 3) for share in bars.x if share], len(bars.x)
    ([0.667, 0.333], 60)
    """
    inside = frame.filter(pl.col("ts").is_between(*window, closed="left"))
    values = inside[column].cast(pl.Float64).drop_nulls().to_numpy()
    values = values[np.isfinite(values)]
    counts, edges = np.empty(0), np.empty(1)
    if values.size:
        low, high = values.min(), values.max()
        if high - low <= 1e-6 * max(abs(low), abs(high)):  # one value, but for its last digits
            low, high = low - 0.5, high + 0.5
        counts, edges = np.histogram(values, _STEPS, (low, high))
    return go.Bar(
        x=counts / max(values.size, 1),
        y=(edges[:-1] + edges[1:]) / 2,
        orientation="h",
        xaxis="x2",
        yaxis=yaxis,
        marker={"color": MARK_COLOUR, "line_width": 0},
        name="distribution",
        showlegend=False,
        hoverinfo="skip",  # the time axis has one hover for all lines
    )


def beside(axis: str) -> dict[str, object]:
    """Build the axes: of time to the left, of the shares to the right of it."""
    shares = {"domain": [BESIDE + 0.01, 1.0], "anchor": axis, "visible": False, "fixedrange": True}
    return {"xaxis_domain": [0.0, BESIDE], "xaxis2": shares}
