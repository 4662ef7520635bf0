"""The mean of a spread in each hour of the week."""

from __future__ import annotations

import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.event_rates import week_chart
from toolkit.charts.figure import Figure
from toolkit.charts.matrix import SCALE
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.market import Source

_MEAN = "spread_mean_log_bps"
_BOUNDS = ("spread_mean_lower_log_bps", "spread_mean_upper_log_bps")
_NEEDED = ("weekday", "hour", "weeks", _MEAN, "n", "window_start", "window_end")


def spread_hours_chart(
    frame: pl.DataFrame, *, source: Source, timezone: str = "UTC", theme: str | None = None
) -> Figure:
    """Draw the mean spread of each hour of the week: a row per weekday, a column per hour.

    Positive spread: long the buy leg and short the sell leg earns it.

    Parameters
    ----------
    frame
        What `toolkit.statistics.spread.hour_of_week` returns, of one trajectory.
    source, timezone, theme
        As for `spread_chart`. Hours are those of UTC, the zone is that of the window shown.

    Returns
    -------
    Figure
        A heat map, Monday on top, with one scale of colours around 0. Hovering shows the mean, its
        95 % interval where it has one, and the weeks. A cell without fill: no row in that
        hour of any week. Without any row: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, rows of several trajectories, or a parameter that is not allowed.

    Examples
    --------
    >>> from toolkit.statistics.spread import hour_of_week
    >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 168,
    ...     "ts": [345_600 + 3600 * k for k in range(168)],
    ...     "spread_log_bps": [float(k) for k in range(168)]})
    >>> found = hour_of_week(rows, 345_600, 345_600 + 604_800)
    >>> cells = spread_hours_chart(found, source=Source("replay", "depeg")).data[0]
    >>> cells.z.shape, float(cells.z[6][1]), cells.zmin
    ((7, 24), 1.0, -167.0)
    """
    require_columns(frame, [*_NEEDED, *_BOUNDS])
    keys = frame["trajectory"].unique() if "trajectory" in frame.columns else pl.Series([""])
    if keys.len() > 1:
        raise InputError("frame", f"{keys.len()} trajectories", "the 168 hours of one")
    heading = Heading(str(keys[0]) if keys.len() else "", source, theme)
    known = frame.drop_nulls(_MEAN)
    if known.is_empty():
        return heading.empty("No hour of the week has a spread in the window.")
    end = max(1e-9, *known[_MEAN].abs())
    layout = heading.heading(
        "Mean spread in each hour of the week (UTC)",
        measured_window(frame, timezone),
        f"n = {frame['n'][0]:,} rows",
    )
    return week_chart(
        frame,
        _MEAN,
        _BOUNDS,
        layout,
        hover="%{z:+,.2f} bps",
        unit="bps",
        scale=SCALE,
        ends=(-end, end),
    )
