"""The ledger's states of one trajectory, as a strip through time."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from toolkit.cards import counted, duration
from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.theme import STATE_COLOURS
from toolkit.charts.time_axis import clock_text, utc_offset_s
from toolkit.charts.view import Subject, View, subject_of
from toolkit.errors import InputError
from toolkit.intervals import Interval, total_s, union
from toolkit.market import Source, When, parse_ts
from toolkit.show.values import share_text
from toolkit.tables import LedgerState

_BUCKETS = 1000
_BUCKETS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200)
_DAY_S = 86_400
_SLIVER = 0.05
"""A share of a bucket below which a state is marked once more under the strip."""
_STRIP_PX = 120
_MARK_Y, _MARK_HEIGHT = -0.08, 0.08
_HAIR_PX = 0.3
"""An outline that closes the seams between bars. Without any, plotly widens the thinnest."""


def coverage_chart(
    intervals: pl.DataFrame,
    *,
    trajectory: Subject | str,
    start: When,
    end: When,
    source: Source,
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw which parts of the window are stored, and the state of the others.

    Parameters
    ----------
    intervals
        One row per stretch, in any order: ``start_ts`` and ``end_ts`` (s, Unix UTC, half-open),
        ``state`` (a `LedgerState`). Stretches are clipped to the window.
    trajectory
        The trajectory of the ledger, or its key.
    start, end
        The window ``[start, end)``, as `toolkit.market.parse_ts` reads times.
    source, timezone, theme
        As for `spread_chart`.

    Returns
    -------
    Figure
        One bar trace per state, named with its share of the window's seconds. In each of at most
        1,000 buckets a state takes its share of the height. A state other than held with less than
        5 % of a bucket is also marked below.

    Examples
    --------
    >>> ledger = pl.DataFrame({"start_ts": [0, 90], "end_ts": [90, 120],
    ...                        "state": ["held", "missing"]})
    >>> figure = coverage_chart(ledger, trajectory="BTC_USD:KRAKEN.spot",
    ...                         start=0, end=120, source=Source("replay", "depeg"))
    >>> [bar.name for bar in figure.data][:2]
    ['held 75.00 %', 'empty 0.00 %']
    """
    window = Interval.checked(parse_ts(start, parameter="start"), parse_ts(end, parameter="end"))
    view = View.of(subject_of(trajectory), window, source=source, timezone=timezone, theme=theme)
    inside = _clipped(intervals, view.window)
    if inside.is_empty():
        return view.empty(f"The ledger has nothing about {view}. Load it with: {view.sync_command}")
    bucket_s = _bucket_s(view.window)
    pieces = _pieces(inside, view.window, bucket_s)
    marks = pieces.filter(pl.col("share") < _SLIVER, pl.col("state") != LedgerState.HELD)
    words = [counted(inside.height, "stretch", "stretches")]
    words += [f"height: share of each {duration(bucket_s)}"] * (pieces["share"] < 1).any()
    words += [f"marks below: shares under {share_text(_SLIVER)}"] * (marks.height > 0)
    marks = marks.with_columns(foot=_MARK_Y - _MARK_HEIGHT / 2, height=_MARK_HEIGHT, outline_px=1.0)
    drawn = pl.concat([pieces, marks])
    figure = Figure([_bar(drawn, state, inside, view) for state in LedgerState])
    heading = view.layout("What the store holds", *words)
    return figure.update_layout(
        heading,
        barmode="overlay",
        height=heading["margin"]["t"] + heading["margin"]["b"] + _STRIP_PX,
        yaxis={"visible": False, "fixedrange": True, "range": [1.5 * _MARK_Y, 1]},
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


def _bucket_s(window: Interval) -> int:
    """Return a round bucket length (s), about a thousandth of the window."""
    least = -(-window.length_s // _BUCKETS)
    days = -(-least // _DAY_S) * _DAY_S
    return next((length_s for length_s in _BUCKETS_S if length_s >= least), days)


def _pieces(stretches: pl.DataFrame, window: Interval, bucket_s: int) -> pl.DataFrame:
    """Build the strip's bars: stretches that fill whole buckets, and shares of mixed buckets.

    ``since_ts`` and ``until_ts`` are the stretch described, ``foot`` and ``height`` are in strip
    heights.
    """
    start, end = (pl.col(name) - window.start for name in ("start_ts", "end_ts"))
    low, high = window.start + pl.col("bucket") * bucket_s, pl.col("low") + bucket_s
    inside_s = pl.min_horizontal("end_ts", "high") - pl.max_horizontal("start_ts", "low")
    parts = (
        _united(stretches)
        .with_columns(bucket=pl.int_ranges(start // bucket_s, (end - 1) // bucket_s + 1))
        .explode("bucket")
        .with_columns(low=low)
        .with_columns(high=high.clip(upper_bound=window.end))
        .with_columns(inside_s=inside_s)
    )
    whole = pl.col("inside_s") == pl.col("high") - pl.col("low")
    runs = parts.filter(whole).group_by("order", since_ts="start_ts", until_ts="end_ts")
    mixed = parts.filter(~whole).group_by("order", since_ts="low", until_ts="high")
    bars = pl.concat(
        [
            runs.agg(pl.col("low").min(), pl.col("high").max(), share=pl.lit(1.0)),
            mixed.agg(
                pl.col("low").first(),
                pl.col("high").first(),
                share=pl.col("inside_s").sum() / (pl.col("high") - pl.col("low")).first(),
            ),
        ]
    ).sort("low", "order")
    return bars.select(
        pl.col("order").replace_strict(dict(enumerate(LedgerState))).alias("state"),
        "since_ts",
        "until_ts",
        "share",
        start_ts="low",
        end_ts="high",
        foot=pl.col("share").cum_sum().over("low") - pl.col("share"),
        height="share",
        outline_px=pl.lit(_HAIR_PX),
    )


def _united(stretches: pl.DataFrame) -> pl.DataFrame:
    """Join each state's stretches: start_ts, end_ts and order, its place in `LedgerState`."""
    rows = [
        (*part, order)
        for order, state in enumerate(LedgerState)
        for part in union(_stretches_of(stretches, state))
    ]
    columns = {"start_ts": pl.Int64, "end_ts": pl.Int64, "order": pl.Int64}
    return pl.DataFrame(rows, schema=columns, orient="row")


def _stretches_of(stretches: pl.DataFrame, state: LedgerState) -> list[tuple[int, int]]:
    mine = stretches.filter(pl.col("state") == state)
    return list(mine.select("start_ts", "end_ts").iter_rows())


def _bar(drawn: pl.DataFrame, state: LedgerState, stretches: pl.DataFrame, view: View) -> go.Bar:
    mine = drawn.filter(pl.col("state") == state)
    base, since, until = (
        clock_text(mine[name], view.timezone) for name in ("start_ts", "since_ts", "until_ts")
    )
    first, last = (mine[c] + utc_offset_s(mine[c], view.timezone) for c in ("start_ts", "end_ts"))
    part = [f"{share_text(share)} of " if share < 1 else "" for share in mine["share"]]
    total = total_s(_stretches_of(stretches, state)) / view.window.length_s
    return go.Bar(
        base=base.to_list(),
        x=(1000 * (last - first)).clip(lower_bound=0).to_numpy(),
        y=(mine["foot"] + mine["height"] / 2).to_numpy(),
        width=mine["height"].to_numpy(),
        orientation="h",
        name=f"{state} {share_text(total)}",
        hovertext=(
            f"{state}: "
            + pl.Series(part, dtype=pl.String)
            + since
            + " to "
            + until
            + f" {view.timezone}"
        ).to_list(),
        hoverinfo="text",
        marker={
            "color": STATE_COLOURS[state],
            "line": {"color": STATE_COLOURS[state], "width": mine["outline_px"].to_numpy()},
        },
    )
