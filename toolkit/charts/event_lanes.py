"""All events of a window: one lane per symbol, and above them how many opened when."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.events import EVENT_LOGS, event_spans, life_bars, no_events, opening_bars
from toolkit.charts.figure import Figure
from toolkit.charts.theme import MARK_COLOUR
from toolkit.charts.time_axis import clock_text, date_axis
from toolkit.charts.view import View
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Source
from toolkit.statistics.core.contract import checked_frame, whole_number

_BUCKETS_S = (1, 10, 60, 300, 900, 3_600, 21_600, 86_400, 604_800)
_MOST_BUCKETS = 200
_GRAIN = 600
"""Openings in a lane nearer than this fraction of the window are one bar."""
_FILLED = 0.84
"""The part of a lane that has bars."""
_STRIP_PX, _GAP_PX, _LANE_PX = 64, 10, 21
_LABELS_PX = 32
"""Below the strip while the lanes are zoomed."""
_TOP_PX, _BOTTOM_PX = 44, 44


def event_lanes(
    lifecycles: pl.DataFrame,
    *,
    start: int,
    end: int,
    source: Source,
    zoom: Interval | None = None,
    at: int | None = None,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    lanes: int = 20,
    bars: int = 600,
) -> Figure:
    """Draw the events of a window, one lane per symbol, below a strip of the openings over time.

    Parameters
    ----------
    lifecycles
        As for `event_timeline`, with ``event_id`` (String). In any order.
    start, end
        The window ``[start, end)`` of the strip, in Unix seconds.
    source, subject, timezone, theme
        As for `event_timeline`.
    zoom
        The stretch of the lanes, by default the window.
    at
        A time (s, Unix UTC) to mark by a line through all lanes.
    lanes
        The most lanes: one per symbol, most events first, the last for all others.
    bars
        The most bars. Events of one lane and family that opened at nearly the same time share one,
        from the first opening to the last close.

    Returns
    -------
    Figure
        Per family a trace of the strip, named with its number of events open in the stretch, then
        one of bars. The ``customdata`` of a bar is the ``event_id`` of its largest event, without
        tags. A bar of many events is darker. The subtitle counts events, bars, and events that were
        only updated, which are not drawn. Raises `InputError` for a zoom outside of the window.

    Examples
    --------
    >>> lifecycles = pl.DataFrame({"family": ["spread"] * 2, "symbol": ["A_B"] * 2,
    ...     "legs": ["X.spot, Y.spot"] * 2, "t_open": [600, 601], "t_close": [1200, 1260],
    ...     "duration_s": [600.0, 659.0], "kind": ["closed"] * 2, "peak": [1.5, -2.5],
    ...     "event_id": ["a", "b"]})
    >>> figure = event_lanes(lifecycles, start=0, end=3600, source=Source("replay", "depeg"))
    >>> figure.data[0].name, figure.data[-1].base[0], figure.data[-1].customdata[0]
    ('spread (2)', '1970-01-01 00:10', 'b')
    """
    view = View(subject, source, theme, Interval.checked(start, end), timezone, EVENT_LOGS)
    checked_frame(lifecycles, "lifecycles")
    if "event_id" not in lifecycles.columns:
        raise InputError("lifecycles", "no event_id", "the columns of event_lifecycles")
    shown = view.window if zoom is None else Interval.checked(*zoom)
    if not view.window.start <= shown.start < shown.end <= view.window.end:
        raise InputError("zoom", tuple(shown), "a stretch of the window")
    lanes, bars = (
        whole_number(name, value, 1, f"{name}, at least 1")
        for name, value in (("lanes", lanes), ("bars", bars))
    )
    if event_spans(lifecycles, view.window).is_empty():
        return no_events(view)
    spans = event_spans(lifecycles, shown)
    placed, names = _placed(spans.drop_nulls("since"), lanes)
    joined = _joined(placed, shown, bars)
    numbers = dict(spans.group_by("family").len().iter_rows())
    traces = [
        _strip(lifecycles, family, numbers.get(family.value, 0), view) for family in EventFamily
    ]
    traces += [
        _bars(joined.filter(family=family.value), family, view)
        for family in EventFamily
        if (joined["family"] == family).any()
    ]
    layout = view.layout("Events by symbol", *_counts(spans, joined))
    return Figure(traces, layout=layout | _axes(names, view, shown, at))


def _placed(spans: pl.DataFrame, most: int) -> tuple[pl.DataFrame, list[str]]:
    """Add the lane of each event, 0 for the symbol with the most, and return the lanes' names."""
    counted = spans["symbol"].value_counts().sort("count", "symbol", descending=[True, False])
    names = counted["symbol"].to_list()
    of = {symbol: min(at, most - 1) for at, symbol in enumerate(names)}
    if len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1:,} others"]
    lane = pl.col("symbol").replace_strict(of, return_dtype=pl.Int64)
    return spans.with_columns(lane.alias("lane")), [html(str(name), 80) for name in names]


def _joined(placed: pl.DataFrame, window: Interval, most: int) -> pl.DataFrame:
    """Join events that opened at nearly the same time, the longest first.

    A row has the facts of its largest event, and their number ``events``.
    """
    size = pl.col("peak").abs().fill_null(-1.0)
    grain, found = _GRAIN, placed
    while True:
        slot = (pl.col("since") - window.start) * grain // window.length_s
        found = (
            placed.sort(size, descending=True, maintain_order=True)
            .group_by("lane", "family", slot.alias("slot"), maintain_order=True)
            .agg(
                pl.exclude("since", "until").first(),
                pl.col("since").min(),
                pl.col("until").max(),
                pl.len().alias("events"),
            )
        )
        if found.height <= most or grain == 1:
            break
        grain = grain * 2 // 3
    return found.sort(pl.col("until") - pl.col("since"), descending=True, maintain_order=True)


def _strip(lifecycles: pl.DataFrame, family: EventFamily, number: int, view: View) -> go.Bar:
    """Draw the openings of a family over the window. ``number`` is its count of events shown."""
    length_s = next(
        (each for each in _BUCKETS_S if view.window.length_s <= _MOST_BUCKETS * each),
        _BUCKETS_S[-1],
    )
    inside = pl.col("t_open").is_between(*view.window, closed="left")
    opened = lifecycles.filter(inside, family=family.value)
    counted = opened.group_by(ts=pl.col("t_open") // length_s * length_s).len().sort("ts")
    return opening_bars(counted, family, view, length_s).update(
        name=f"{family} ({number:,})",
        legendgroup=family.value,
        hovertemplate="%{y:,} opened<br>%{hovertext}<extra>" + family + "</extra>",
        xaxis="x2",
        yaxis="y2",
    )


def _bars(joined: pl.DataFrame, family: EventFamily, view: View) -> go.Bar:
    """Draw the bars of one family, each in its part of the lane."""
    places = list(EventFamily)
    width = _FILLED / len(places)
    middle = (places.index(family) - (len(places) - 1) / 2) * width
    return life_bars(joined, family, view.timezone).update(
        y=(joined["lane"] + middle).to_numpy(),
        width=0.9 * width,
        legendgroup=family.value,
        showlegend=False,
        marker_opacity=(0.45 + 0.1 * joined["events"].log(2)).clip(upper_bound=0.95).to_numpy(),
    )


def _counts(spans: pl.DataFrame, joined: pl.DataFrame) -> list[str]:
    """Format the numbers of events, of bars, and of events without an end to draw."""
    undrawn = spans["since"].null_count()
    words = [f"n = {spans.height:,} event{'s' * (spans.height != 1)}"]
    if joined.height < spans.height - undrawn:
        words.append(f"in {joined.height:,} bars")
    if undrawn:
        words.append(f"{undrawn:,} without an end to draw")
    return [", ".join(words)]


def _rules(lanes: int) -> list[dict[str, Any]]:
    """Draw a thin line between two lanes."""
    line = {"width": 1, "color": "rgba(125,133,144,0.25)"}
    fixed = {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y", "layer": "below"}
    return [fixed | {"y0": lane + 0.5, "y1": lane + 0.5, "line": line} for lane in range(lanes - 1)]


def _axes(names: list[str], view: View, shown: Interval, at: int | None) -> dict[str, Any]:
    """Lay out the strip above the lanes, with the marks of ``shown`` and ``at``."""
    lanes_px, zoomed = _LANE_PX * max(len(names), 3), shown != view.window
    plot_px = _STRIP_PX + _GAP_PX + zoomed * _LABELS_PX + lanes_px
    still = {"showgrid": False, "zeroline": False, "fixedrange": True}
    marks = _rules(len(names))
    if zoomed:
        since, until = clock_text(pl.Series(shown), view.timezone)
        box = {"type": "rect", "xref": "x2", "x0": since, "x1": until, "yref": "y2 domain"}
        marks.append(
            box
            | {"y0": 0, "y1": 1, "fillcolor": MARK_COLOUR, "opacity": 0.25, "line": {"width": 0}}
        )
    if at is not None and shown.start <= at < shown.end:
        (moment,) = clock_text(pl.Series([at]), view.timezone)
        line = {"type": "line", "xref": "x", "x0": moment, "x1": moment, "yref": "y domain"}
        dotted = {"color": MARK_COLOUR, "width": 1.5, "dash": "dot"}
        marks.append(line | {"y0": 0, "y1": 1, "line": dotted})
    return {
        "barmode": "stack",
        "bargap": 0.0,
        "height": plot_px + _TOP_PX + _BOTTOM_PX,
        "margin": {"l": 8, "r": 8, "t": _TOP_PX, "b": _BOTTOM_PX},
        "showlegend": True,
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "traceorder": "normal",
            "y": 1, "yref": "container", "yanchor": "top",
        },
        "shapes": marks,
        "xaxis": date_axis(shown, view.timezone) | {"title": None, "anchor": "y"},
        "yaxis": {
            "domain": [0, lanes_px / plot_px],
            "tickmode": "array",
            "tickvals": list(range(len(names))),
            "ticktext": names,
            "range": [max(len(names), 3) - 0.5, -0.5],
            **still,
        },
        "xaxis2": date_axis(view.window, view.timezone)
        | {"title": None, "anchor": "y2", "showticklabels": zoomed, "showgrid": False},
        "yaxis2": {
            "domain": [1 - _STRIP_PX / plot_px, 1],
            "rangemode": "tozero",
            "nticks": 3,
            "zeroline": False,
            "fixedrange": True,
        },
    }  # fmt: skip
