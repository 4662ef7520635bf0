"""What the ledger knows of a window, as one thin strip."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.lines import share_text
from toolkit.charts.theme import STATE_COLOURS
from toolkit.charts.time_axis import clock_text, utc_offset_s
from toolkit.charts.view import View
from toolkit.errors import InputError
from toolkit.intervals import Interval, total_s
from toolkit.market import Source, Trajectory
from toolkit.tables import LedgerState

__all__ = ["coverage_chart"]


def coverage_chart(
    intervals: pl.DataFrame,
    *,
    trajectory: Trajectory,
    start: int,
    end: int,
    source: Source,
    timezone: str = "UTC",
    theme: str = "light",
) -> go.Figure:
    """Where the store holds the window, and why not where it does not.

    Parameters
    ----------
    intervals
        One row a stretch, in any order: ``start_ts`` and ``end_ts`` (s, Unix UTC, half-open),
        ``state`` (a `LedgerState`). Stretches are clipped to the window.
    trajectory
        Whose ledger it is.
    start, end
        The window ``[start, end)`` in Unix seconds.
    source, timezone, theme
        As for `spread_chart`.

    Returns
    -------
    go.Figure
        One bar trace a state, always all five, named with the state's share of the window; the
        shares are of seconds. Without stretches in the window: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, an unknown state, or a parameter that is not allowed.

    Examples
    --------
    >>> ledger = pl.DataFrame({"start_ts": [0, 90], "end_ts": [90, 120],
    ...                        "state": ["held", "missing"]})
    >>> figure = coverage_chart(ledger, trajectory=Trajectory.parse("BTC_USD:KRAKEN.spot"),
    ...                         start=0, end=120, source=Source("replay", "depeg"))
    >>> [bar.name for bar in figure.data][:2]
    ['held 75 %', 'empty 0 %']
    """
    view = View(trajectory, Interval.checked(start, end), source, timezone, theme)
    inside = _clipped(intervals, view.window)
    if inside.is_empty():
        return view.empty(
            f"The ledger says nothing about {view}. Load it with: {view.sync_command}"
        )
    figure = go.Figure([_bar(inside, state, view) for state in LedgerState])
    return figure.update_layout(
        view.layout(
            "What the store holds", f"{inside.height:,} stretch{'es' * (inside.height > 1)}"
        ),
        barmode="overlay",
        bargap=0,
        height=260,
        yaxis={"visible": False, "fixedrange": True},
    )


def _clipped(intervals: pl.DataFrame, window: Interval) -> pl.DataFrame:
    require_columns(intervals, ["start_ts", "end_ts"])
    states = list(LedgerState)
    if (
        "state" not in intervals.columns
        or not intervals["state"].is_in(states).fill_null(value=False).all()
    ):
        raise InputError("intervals", intervals.columns, "a column state of " + ", ".join(states))
    return intervals.with_columns(
        pl.col("start_ts").clip(lower_bound=window.start),
        pl.col("end_ts").clip(upper_bound=window.end),
    ).filter(pl.col("start_ts") < pl.col("end_ts"))


def _bar(intervals: pl.DataFrame, state: LedgerState, view: View) -> go.Bar:
    mine = intervals.filter(pl.col("state") == state)
    since, until = (clock_text(mine[c], view.timezone) for c in ("start_ts", "end_ts"))
    first, last = (mine[c] + utc_offset_s(mine[c], view.timezone) for c in ("start_ts", "end_ts"))
    share = total_s(mine.select("start_ts", "end_ts").iter_rows()) / view.window.length_s
    return go.Bar(
        base=since.to_list(),
        x=(1000 * (last - first)).clip(lower_bound=0).to_numpy(),
        y=np.zeros(mine.height, dtype=np.int8),
        orientation="h",
        name=f"{state} {share_text(share)}",
        hovertext=(f"{state}: " + since + " to " + until + f" {view.timezone}").to_list(),
        hoverinfo="text",
        # The outline keeps a stretch narrower than a pixel in sight.
        marker={
            "color": STATE_COLOURS[state],
            "line": {"color": STATE_COLOURS[state], "width": int(state is not LedgerState.HELD)},
        },
    )
