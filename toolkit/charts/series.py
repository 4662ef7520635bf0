"""The rows of one trajectory through time: prices, and the spread of two legs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import DrawnRows, gapped_line, require_columns, rows_to_draw
from toolkit.charts.marks import (
    checked_thresholds,
    episode_shapes,
    events_of,
    lifetime_shapes,
    opened_marks,
    threshold_line,
)
from toolkit.charts.theme import MARK_COLOUR
from toolkit.charts.view import Subject, View, with_subject
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.intervals import Interval
from toolkit.market import Family, SnapshotTrajectory, Source, When
from toolkit.statistics.core.contract import Frame
from toolkit.statistics.core.windows import window_of

LEGS = ("above", "below", "from_mean", "none")
"""What `spread_chart` draws of the two legs."""
_PRICES = ["buy_price", "sell_price"]
_SPREAD_LINE = "log spread, sell over buy"


def spread_chart(
    frame: Frame,
    *,
    source: Source,
    trajectory: Subject | str | None = None,
    start: When | None = None,
    end: When | None = None,
    step_s: int | None = None,
    polls: pl.DataFrame | None = None,
    thresholds_bps: Sequence[float] = (),
    episodes: pl.DataFrame | None = None,
    events: pl.DataFrame | None = None,
    logs: pl.DataFrame | None = None,
    legs: str = "above",
    distribution: bool = False,
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 2000,
) -> Figure:
    """Draw the log spread of two legs and, above or below it, their prices, over one time axis.

    Positive spread: long the buy leg and short the sell leg earns it.

    Parameters
    ----------
    frame
        One row per time of one spread trajectory, in any order: ``ts`` (s, Unix UTC), ``buy_price``
        and ``sell_price`` (quote), ``spread_log_bps`` (bps, 1e4 ln(sell / buy)), the numbers
        nullable. A null, NaN, infinity or gap breaks the line.
    source
        The source of the rows. Simulated data and replays are marked.
    trajectory
        The trajectory of the rows, or its key: by default the frame's ``trajectory``.
    start, end
        The window ``[start, end)``, as `toolkit.market.parse_ts` reads times, by default the
        frame's. Rows outside are not counted.
    step_s
        Seconds between rows, by default the commonest distance. More than 1.5 steps are a gap.
    polls
        The answered polls of a series from snapshots, from `Store.polls`: coverage is then by
        polls.
    thresholds_bps
        Values (log bps, signed) at which to draw a dashed line.
    episodes
        Stretches to shade in grey, as `toolkit.statistics.spread.episodes` returns them:
        ``start_ts`` and ``end_ts`` (s, Unix UTC).
    events
        Documents as `Store.events` returns them. Spreads between the two legs, in either
        orientation, are shaded from opening to close, and each opening is marked at its size. Read
        them over `toolkit.statistics.events.documents_window` to include openings from before the
        window. An event without its opening is shaded from the window's start.
    logs
        From `toolkit.store.event_logs`. An open event is shaded until its log's ``known_until``, by
        default to the window's end.
    legs
        The place of the prices: ``above``, ``below`` or ``none``. ``from_mean`` is below, with each
        price's distance from its mean over the window (bps, 1e4 ln(price / mean price)).
    distribution
        Draw the distribution of the window's spreads at the right.
    timezone
        The zone of the time axis, UTC or an IANA name. Lines break where its clock changes.
    theme
        ``light`` or ``dark``. By default a notebook follows its viewer, anything else is light.
    points
        The most rows drawn, extremes included. If not all are drawn, gaps under a thousandth of the
        window are joined and counted.

    Returns
    -------
    Figure
        Three lines from the same rows: buy leg, sell leg, spread (first where it is on top), then
        thresholds and openings, if any. The subtitle has n (rows with a spread) and coverage.

    Raises
    ------
    InputError
        A price trajectory, a missing or non-numeric column, two rows of one ``ts``, or a parameter
        that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"ts": [0, 60], "buy_price": [100.0, 100.0],
    ...                       "sell_price": [101.0, 100.0], "spread_log_bps": [99.5, 0.0]})
    >>> figure = spread_chart(frame, trajectory="BTC_USD:COINBASE.spot:KRAKEN.spot", start=0,
    ...                       end=120, source=Source("replay", "depeg"), thresholds_bps=[50])
    >>> [line.name for line in figure.data]
    ['buy COINBASE.spot', 'sell KRAKEN.spot', 'log spread, sell over buy', 'threshold +50 bps']
    """
    if legs not in LEGS:
        raise InputError("legs", legs, LEGS)
    frame, trajectory = with_subject(frame, trajectory, Family.SPREAD)
    window = window_of(frame, start, end)
    view = View.of(trajectory, window, source=source, timezone=timezone, theme=theme)
    columns = ["spread_log_bps", *_PRICES]
    drawn = _from_mean(frame, view.window) if legs == "from_mean" else frame
    if legs == "none":
        columns = columns[:1]
    rows = rows_to_draw(drawn, columns, view.window, step_s=step_s, points=points, polls=polls)
    if rows.total == 0:
        return nothing(view, trajectory)
    traces = _lines(rows, trajectory, legs, view)
    places = _places(legs)
    if distribution:
        traces.append(distribution_bars(frame, "spread_log_bps", view.window, "y2"))
        places |= beside("y2")
    checked_thresholds(thresholds_bps)
    if len(thresholds_bps):
        traces.append(threshold_line(thresholds_bps, view))
    shapes = [] if episodes is None else episode_shapes(episodes, view)
    if events is not None and not (mine := events_of(events, trajectory)).is_empty():
        shapes += lifetime_shapes(mine, view, logs)
        traces.append(opened_marks(mine, view, points))
    return Figure(traces, layout=_layout(view, trajectory, _TITLES[legs], rows)).update_layout(
        **places, shapes=shapes, height=420 if legs == "none" else 640, hoversubplots="axis"
    )


_TITLES = {
    "above": "prices and spread",
    "below": "spread and prices",
    "from_mean": "spread and legs from their mean",
    "none": "spread",
}


def _from_mean(frame: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Replace each leg's price by its distance from its mean over the window (bps)."""
    require_columns(frame, ["ts", *_PRICES])
    inside = pl.col("ts").is_between(*window, closed="left")

    def apart(name: str) -> pl.Expr:
        price = pl.col(name).cast(pl.Float64)
        known = pl.when(price.is_finite()).then(price)
        return (1e4 * (price / known.filter(inside).mean()).log()).alias(name)

    return frame.with_columns(map(apart, _PRICES))


def _lines(rows: DrawnRows, trajectory: Subject, legs: str, view: View) -> list[go.Scatter]:
    """Draw the lines of the spread and its legs, from top to bottom."""
    spread = gapped_line(
        rows,
        "spread_log_bps",
        name=_SPREAD_LINE,
        hover="%{y:+,.2f} bps",
        timezone=view.timezone,
        yaxis="y2",
    )
    if legs == "none":
        return [spread]
    hover = "%{y:+,.2f} bps" if legs == "from_mean" else "%{y:,.10~g}"
    ends = zip(_PRICES, ("buy", "sell"), (trajectory.buy, trajectory.sell), strict=True)
    prices = [
        gapped_line(rows, column, name=f"{side} {leg}", hover=hover, timezone=view.timezone)
        for column, side, leg in ends
    ]
    return [*prices, spread] if legs == "above" else [spread, *prices]


def _places(legs: str) -> dict[str, Any]:
    """Build the axes of the spread, and of the legs above or below it."""
    spread = {"title": {"text": "spread (log bps)"}, "zeroline": True, "zerolinecolor": MARK_COLOUR}
    if legs == "none":
        return {"yaxis2": spread, "yaxis_visible": False, "xaxis_anchor": "y2"}
    if legs == "above":
        below = {"yaxis2": spread | {"domain": [0.0, 0.38]}, "xaxis_anchor": "y2"}
        return {"yaxis_domain": [0.46, 1.0], **below}
    places = {"yaxis2": spread | {"domain": [0.4, 1.0]}, "yaxis_domain": [0.0, 0.34]}
    if legs == "from_mean":
        places |= {"yaxis_title_text": "from mean (bps)", "yaxis_zerolinecolor": MARK_COLOUR}
    return places


def price_chart(
    frame: Frame,
    *,
    source: Source,
    trajectory: Subject | str | None = None,
    start: When | None = None,
    end: When | None = None,
    step_s: int | None = None,
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 2000,
) -> Figure:
    """Draw one leg's price, and its mark price where there is one.

    Parameters
    ----------
    frame
        One row per time of one price trajectory, in any order: ``ts`` (s, Unix UTC), ``price`` and,
        if present, ``mark_price`` (quote), nullable. Null, NaN, infinity or gap breaks the line.
    trajectory, start, end, source, step_s, timezone, theme, points
        As for `spread_chart`, for a price trajectory.

    Returns
    -------
    Figure
        One line, or two if any mark price is known. Raises `InputError` for a spread trajectory or
        a missing or non-numeric column or two rows of one ``ts``.

    Examples
    --------
    >>> frame = pl.DataFrame({"ts": [0, 60], "price": [100.0, 101.0]})
    >>> figure = price_chart(frame, trajectory="BTC_USD:KRAKEN.spot",
    ...                      start=0, end=120, source=Source("replay", "depeg"))
    >>> figure.layout.title.text, figure.layout.yaxis.title.text
    ('BTC_USD: price', 'price (USD)')
    """
    frame, trajectory = with_subject(frame, trajectory, Family.PRICE)
    window = window_of(frame, start, end)
    view = View.of(trajectory, window, source=source, timezone=timezone, theme=theme)
    columns = ["price"]
    if "mark_price" in frame.columns and frame["mark_price"].count():
        columns.append("mark_price")
    rows = rows_to_draw(frame, columns, view.window, step_s=step_s, points=points)
    if rows.total == 0:
        return nothing(view, trajectory)
    lines = [
        gapped_line(
            rows, each, name=each.replace("_", " "), hover="%{y:,.10~g}", timezone=view.timezone
        )
        for each in columns
    ]
    lines[0].zorder = 1  # a mark price beside it hides no price
    return Figure(lines, layout=_layout(view, trajectory, "price", rows)).update_layout(height=480)


def nothing(view: View, trajectory: Subject) -> Figure:
    """Draw a sentence in place of rows, with what to do."""
    load = f"load this one with: {view.sync_command}"
    if isinstance(trajectory, SnapshotTrajectory):
        load = "keep `rail follow` running: past snapshots cannot be loaded"
    return view.empty(f"No rows of {view}. Choose another window, or {load}")


def _layout(view: View, trajectory: Subject, title: str, rows: DrawnRows) -> dict[str, Any]:
    price_axis = {
        "title": {"text": f"price ({html(trajectory.symbol.quote)})"},
        "exponentformat": "none",
        "separatethousands": True,
    }
    heading = view.layout(f"{trajectory.symbol}: {title}", rows.words)
    return {**heading, "yaxis": price_axis, "hovermode": "x unified"}


_STEPS = 60
BESIDE = 0.9
"""The share of the width that the line keeps."""


def distribution_bars(frame: pl.DataFrame, column: str, window: Interval, yaxis: str) -> go.Bar:
    """Draw a histogram of a window's finite values, in 60 steps, as bars from the right axis.

    A bar's length is its share of the rows with a value. Without values there are no bars.
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
    """Build the axes of time and, to the right of it, of the shares."""
    shares = {"domain": [BESIDE + 0.01, 1.0], "anchor": axis, "visible": False, "fixedrange": True}
    return {"xaxis_domain": [0.0, BESIDE], "xaxis2": shares}
