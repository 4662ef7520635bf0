"""Rates of events: leagues as bars with intervals, and the hours of the week."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.heatmap import heat_cells
from toolkit.charts.matrix import SCALE
from toolkit.charts.theme import FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import whole_number

_BAR = ("n", "coverage", "rate_per_day", "rate_lower_per_day", "rate_upper_per_day", "rank")
_HOURS = ("weekday", "hour", "weeks", "events_per_h_mean", "n", "coverage")
_BOUNDS = ("events_per_h_mean_lower", "events_per_h_mean_upper")
_COLOURS = {family.value: colour for family, colour in FAMILY_COLOURS.items()}
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FROM_NONE = [[0.0, SCALE[1][1]], [1.0, SCALE[2][1]]]
"""From no event to the most: the upper half of the colours of rates."""


def league_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    limit: int = 25,
) -> Figure:
    """Draw how often events of groups open, as bars with their 95 % intervals, the first on top.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.league` returns.
    source, timezone, theme
        As for `spread_chart`.
    subject
        The events shown, in words.
    limit
        The most groups drawn, of each family the first by rank.

    Returns
    -------
    Figure
        A trace of bars per family in its colour, with the interval of each rate as it was counted,
        where it has one. A mark shows the rate shrunk toward the mean of the family, where there
        is one. Without a rate: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, or a parameter that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"family": ["spread"] * 2, "symbol": ["A_B", "C_D"], "n": [9, 4],
    ...     "coverage": [1.0] * 2, "rate_per_day": [9.0, 4.0], "rate_lower_per_day": [4.1, 1.1],
    ...     "rate_upper_per_day": [17.1, 10.2], "rate_shrunk_per_day": [8.0, 5.0], "rank": [1, 2],
    ...     "window_start": [0] * 2, "window_end": [86_400] * 2})
    >>> figure = league_chart(frame, source=Source("replay", "depeg"))
    >>> figure.data[0].x.tolist(), list(figure.data[0].y)
    ([9.0, 4.0], ['A_B', 'C_D'])
    """
    require_columns(frame, [*_BAR, "rate_shrunk_per_day", "window_start", "window_end"])
    limit = whole_number("limit", limit, 1, "groups, at least 1")
    heading = Heading(subject, source, theme)
    known = frame.drop_nulls("rate_per_day").sort("rank", maintain_order=True)
    if known.is_empty():
        return heading.empty("Of no group it is known how often its events open.")
    names = frame.columns[1 : frame.columns.index("n")]
    shown = known.group_by("family", maintain_order=True).head(limit)
    several = shown["family"].n_unique() > 1
    labels = [
        html(" ".join(str(each) for each in row), 80).replace(" → ", "<br>→ ")
        for row in shown.select(*(["family"] if several else []), *names).iter_rows()
    ]
    shown = shown.with_columns(pl.Series("label", labels, dtype=pl.String))
    traces = [_bars(part) for part in shown.partition_by("family", maintain_order=True)]
    marks = shown.drop_nulls("rate_shrunk_per_day")
    if marks.height:
        traces.append(_marks(marks))
    layout = heading.heading(
        "How often events open, 95 % intervals",
        measured_window(frame, timezone),
        f"n = {frame['n'].sum():,} events of {frame.height:,} groups, {shown.height:,} shown",
        f"at least {share_text(min(shown['coverage']))} of the time held",
    )
    return Figure(traces, layout=layout).update_layout(
        height=layout["margin"]["t"] + 110 + (34 if "legs" in names else 24) * shown.height,
        xaxis={"title": {"text": "events a day"}, "rangemode": "tozero"},
        yaxis={
            "type": "category",
            "categoryorder": "array",
            "categoryarray": labels[::-1],
            "range": [-0.6, shown.height - 0.4],
            "dtick": 1,
            "showgrid": False,
            "fixedrange": True,
        },
        showlegend=True,
        barmode="overlay",
    )


def _bars(part: pl.DataFrame) -> go.Bar:
    """Draw the bars of one family."""
    family = part["family"][0]
    rate = part["rate_per_day"]
    ends = (part[f"rate_{end}_per_day"] for end in ("lower", "upper"))
    ranges = [
        "no interval" if low is None else f"{low:,.4g} to {high:,.4g}"
        for low, high in zip(*ends, strict=True)
    ]
    return go.Bar(
        x=rate.to_numpy(),
        y=part["label"].to_list(),
        orientation="h",
        name=html(str(family), 80),
        marker={"color": _COLOURS.get(family, MARK_COLOUR), "opacity": 0.6},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": (part["rate_upper_per_day"] - rate).to_numpy(),
            "arrayminus": (rate - part["rate_lower_per_day"]).to_numpy(),
            "thickness": 1.2,
            "color": MARK_COLOUR,
        },
        customdata=list(zip(part["n"], ranges, strict=True)),
        hovertemplate="%{y}<br>%{x:,.4g} a day (%{customdata[1]})"
        "<br>%{customdata[0]:,} events<extra></extra>",
    )


def _marks(part: pl.DataFrame) -> go.Scatter:
    """Mark the rates that are shrunk toward the mean of their family."""
    return go.Scatter(
        x=part["rate_shrunk_per_day"].to_numpy(),
        y=part["label"].to_list(),
        mode="markers",
        name="shrunk toward the mean",
        marker={
            "symbol": "diamond",
            "size": 7,
            "color": "white",
            "line": {"color": MARK_COLOUR, "width": 1.5},
        },
        hovertemplate="%{y}<br>%{x:,.4g} a day, shrunk toward the mean<extra></extra>",
    )


def event_hours_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw how many events open in each hour of the week: a row per weekday, a column per hour.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.rates_by_hour` returns, of one group.
    source, timezone, theme
        As for `spread_chart`. Hours are those of UTC, the zone is that of the window shown.
    subject
        The events shown, in words.

    Returns
    -------
    Figure
        A heat map, Monday on top. Hovering shows the mean, its interval where it has one, and the
        weeks. A cell without fill: the log is not held in that hour of any week. Without a
        known hour: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, rows of several groups, or a parameter that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"family": ["spread"] * 168, "n": [168] * 168, "coverage": [1.0] * 168,
    ...     "weekday": [k // 24 + 1 for k in range(168)], "hour": [k % 24 for k in range(168)],
    ...     "weeks": [1] * 168, "events_per_h_mean": [float(k) for k in range(168)],
    ...     "events_per_h_mean_lower": [None] * 168, "events_per_h_mean_upper": [None] * 168,
    ...     "window_start": [0] * 168, "window_end": [604_800] * 168})
    >>> cells = event_hours_chart(frame, source=Source("replay", "depeg")).data[0]
    >>> cells.z.shape, float(cells.z[6][0]), cells.y[0]
    ((7, 24), 0.0, 'Sunday')
    """
    require_columns(frame, [*_HOURS, *_BOUNDS, "window_start", "window_end"])
    heading = Heading(subject, source, theme)
    if frame.select("weekday", "hour").is_duplicated().any():
        raise InputError("frame", "several groups", "the 168 hours of one group")
    known = frame.drop_nulls("events_per_h_mean")
    if known.is_empty():
        return heading.empty("Of no hour of the week the log is held from end to end.")
    layout = heading.heading(
        "Events in each hour of the week (UTC)",
        measured_window(frame, timezone),
        f"n = {frame['n'][0]:,} hours held, {share_text(frame['coverage'][0])} of the window",
    )
    return week_chart(
        frame,
        "events_per_h_mean",
        _BOUNDS,
        layout,
        hover="%{z:,.3g} events",
        unit="per hour",
        scale=_FROM_NONE,
        ends=(0.0, max(*known["events_per_h_mean"], 1e-9)),
    )


def week_chart(
    frame: pl.DataFrame,
    value: str,
    bounds: Sequence[str],
    layout: dict[str, Any],
    *,
    hover: str,
    unit: str,
    scale: Sequence[Sequence[Any]],
    ends: tuple[float, float],
) -> Figure:
    """Draw the 168 hours of a week as `heat_cells`: a row per weekday, Monday on top.

    Hovering shows the value as ``hover`` has it, its interval and its weeks.
    """
    rows = frame.sort("weekday", "hour").partition_by("weekday", maintain_order=True)[::-1]
    hovers = [
        [[f"{weeks:,}", _between(lower, upper)] for weeks, lower, upper in part.iter_rows()]
        for part in (part.select("weeks", *bounds) for part in rows)
    ]
    cells = heat_cells(
        pl.DataFrame([part[value].alias(str(k)) for k, part in enumerate(rows)]).to_numpy().T,
        [f"{hour:02}" for hour in rows[0]["hour"]],
        [_DAYS[part["weekday"][0] - 1] for part in rows],
        below=hovers,
        hover=f"%{{y}} %{{x}}:00<br>{hover}%{{customdata[1]}}"
        "<br>%{customdata[0]} weeks<extra></extra>",
        scale=scale,
        ends=ends,
    )
    return Figure(
        [cells.update(showscale=True, colorbar={"title": {"text": unit}})], layout=layout
    ).update_layout(
        height=layout["margin"]["t"] + 300,
        xaxis={"type": "category", "title": {"text": "hour (UTC)"}, "showgrid": False},
        yaxis={"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True},
        showlegend=False,
    )


def _between(lower: float | None, upper: float | None) -> str:
    if lower is None or upper is None:
        return ""
    return f" ({lower:,.3g} to {upper:,.3g})"
