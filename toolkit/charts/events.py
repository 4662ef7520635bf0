"""Detected events: when each lived, and how many began in an hour."""

from __future__ import annotations

import heapq
from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.theme import FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import clock_text, utc_offset_s
from toolkit.charts.view import View
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Source
from toolkit.show.values import lasted_text, size_text
from toolkit.statistics.core.contract import checked_frame, whole_number
from toolkit.statistics.events.documents import opens

EVENT_LOGS = " ".join(f"events/{family}" for family in EventFamily)
_BUCKETS_S = {"hour": 3600, "6 hours": 21_600, "day": 86_400, "week": 604_800}
_MOST_BUCKETS = 400
_NARROWEST = 150
"""Bars are kept apart as if they were at least this fraction of the window long."""
_BAR_LANES = 0.75
"""The height of a bar (lanes). Plotly's default would cover lanes of other symbols."""
_PATTERNS = {"closed": "", "open": "/", "reopened": "x", "orphan_close": "\\"}
_KIND_TEXT = {
    "open": "still open (hatch /)",
    "reopened": "close lost (hatch x)",
    "orphan_close": "opened before (hatch \\)",
    "orphan_update": "only updated, not drawn",
    "unknown": "of no known word, not drawn",
}
_NO_BAR = ("orphan_update", "unknown")


def event_timeline(
    lifecycles: pl.DataFrame,
    *,
    start: int,
    end: int,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    limit: int = 60,
) -> Figure:
    r"""Draw one bar per event, from its opening to its close, in lanes by symbol.

    Parameters
    ----------
    lifecycles
        Rows of `toolkit.statistics.events.event_lifecycles` in any order: ``family``, ``symbol``,
        ``legs``, ``t_open``, ``t_close`` (s, Unix UTC), ``duration_s``, ``kind`` and ``peak``
        (percent, of funding percent per 8 h).
    start, end
        The window ``[start, end)`` in Unix seconds. Bars are cut to it, events outside are not
        counted.
    source, timezone, theme, subject
        As for `spread_chart`. ``subject`` names the events.
    limit
        The most events drawn: the largest by peak, families in turn.

    Returns
    -------
    Figure
        One bar trace per family with events. A pattern marks durations that were not observed: "/"
        is open, drawn as far as known; "x" lost its close, drawn to its next opening; "\" has no
        opening, drawn from the window's start. Events that were only updated are counted in the
        subtitle.

    Examples
    --------
    >>> lifecycles = pl.DataFrame({"family": ["spread"], "symbol": ["A_B"],
    ...     "legs": ["X.spot, Y.spot"], "t_open": [600], "t_close": [1200], "duration_s": [600.0],
    ...     "kind": ["closed"], "peak": [1.5]})
    >>> figure = event_timeline(lifecycles, start=0, end=3600, source=Source("replay", "depeg"))
    >>> figure.data[0].name, figure.data[0].base[0], figure.data[0].x.tolist()
    ('spread (1)', '1970-01-01 00:10', [600000])
    """
    view = View(subject, source, theme, Interval.checked(start, end), timezone, EVENT_LOGS)
    checked_frame(lifecycles, "lifecycles")
    limit = whole_number("limit", limit, 1, "events, at least 1")
    spans = event_spans(lifecycles, view.window)
    drawable = spans.drop_nulls("since")
    if drawable.is_empty():
        return no_events(view)
    lanes = _packed(_largest(drawable, limit), view.window)
    families = [family for family in EventFamily if (lanes["family"] == family).any()]
    traces = [_bars(lanes.filter(family=family.value), family, view) for family in families]
    height = int(lanes["lane"].max()) + 1  # type: ignore[arg-type]  # an integer column with rows
    return Figure(
        traces, layout=view.layout("Events from opening to close", *_counts(spans, lanes.height))
    ).update_layout(
        barmode="overlay",
        showlegend=True,
        height=54 + 17 * 6 + 90 + 15 * height,
        shapes=_rules(lanes),
        yaxis=_lane_axis(lanes, height),
    )


def activity_chart(
    events: pl.DataFrame,
    *,
    start: int,
    end: int,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    before: pl.DataFrame | None = None,
) -> Figure:
    """Draw the number of events that opened in each hour, stacked by family.

    Parameters
    ----------
    events
        Documents as `Store.events` returns them, in any order: ``family``, ``event_type`` and
        ``ts`` (s, Unix UTC). Those that open an event are counted.
    start, end
        The window ``[start, end)`` in Unix seconds. Above 400 hours, events are counted by 6 hours,
        day or week.
    source, subject, timezone, theme
        As for `event_timeline`.
    before
        Documents of the week before, their times moved into the window, to draw as a line.

    Returns
    -------
    Figure
        One bar trace per family, named with its number of events. Hours are whole UTC hours, and
        may extend beyond the window.

    Examples
    --------
    >>> events = pl.DataFrame({"family": ["spread"] * 3, "ts": [0, 60, 3600],
    ...     "event_type": ["spread.opened", "spread.closed", "spread.opened"]})
    >>> figure = activity_chart(events, start=0, end=7200, source=Source("replay", "depeg"))
    >>> figure.data[0].name, figure.data[0].y.tolist()
    ('spread (2)', [1, 1])
    """
    view = View(subject, source, theme, Interval.checked(start, end), timezone, EVENT_LOGS)
    checked_frame(events, "events")
    _require(events, ("family", "event_type", "ts"))
    opened = events.filter(opens() & pl.col("ts").is_between(*view.window, closed="left"))
    if opened.is_empty():
        return no_events(view)
    name, length_s = next(
        (each for each in _BUCKETS_S.items() if view.window.length_s <= _MOST_BUCKETS * each[1]),
        list(_BUCKETS_S.items())[-1],
    )
    counted = (
        opened.group_by("family", pl.col("ts") // length_s * length_s).len().sort("family", "ts")
    )
    traces = [
        opening_bars(counted.filter(family=family.value), family, view, length_s)
        for family in EventFamily
    ]
    if before is not None:
        traces.append(_before(before, view, length_s))
    return Figure(
        traces,
        layout=view.layout(
            f"Events that opened in each {name}",
            f"n = {opened.height:,} event{'s' * (opened.height > 1)}",
        ),
    ).update_layout(
        barmode="stack",
        bargap=0.1,
        height=340,
        hovermode="x unified",
        legend={"traceorder": "normal"},
        yaxis={"title": {"text": f"events per {name}"}, "rangemode": "tozero"},
    )


def _require(frame: pl.DataFrame, columns: tuple[str, ...]) -> None:
    if any(name not in frame.columns for name in columns):
        raise InputError("frame", frame.columns, "columns " + ", ".join(columns))


def no_events(view: View) -> Figure:
    """Draw a sentence in place of events, with what to do."""
    return view.empty(
        f"No events of {view}. Choose another window or filter, or load the logs with: "
        f"{view.sync_command}"
    )


def opening_bars(counted: pl.DataFrame, family: EventFamily, view: View, length_s: int) -> go.Bar:
    """Draw the ``len`` openings of a family from each ``ts`` on, for ``length_s``."""
    since, until = (clock_text(counted["ts"] + shift, view.timezone) for shift in (0, length_s))
    return go.Bar(
        x=clock_text(counted["ts"] + length_s // 2, view.timezone).to_list(),
        y=counted["len"].cast(pl.Int64).to_numpy(),
        width=1000 * length_s,
        name=f"{family} ({counted['len'].sum():,})",
        marker={"color": FAMILY_COLOURS[family], "line": {"width": 0}},
        hovertext=(since + " to " + until.str.slice(11)).to_list(),
        hovertemplate="%{y:,} (%{hovertext})<extra>" + family + "</extra>",
    )


def _before(events: pl.DataFrame, view: View, length_s: int) -> go.Scatter:
    """Draw how many events of all families opened a week before each bar."""
    checked_frame(events, "before")
    _require(events, ("family", "event_type", "ts"))
    first, last = (ts // length_s for ts in (view.window.start, view.window.end - 1))
    bars = pl.DataFrame({"bar": range(first, last + 1)}, schema={"bar": pl.Int64})
    counted = events.filter(opens()).group_by(bar=pl.col("ts") // length_s).len()
    known = bars.join(counted, on="bar", how="left", maintain_order="left").fill_null(0)
    return go.Scatter(
        x=clock_text(known["bar"] * length_s + length_s // 2, view.timezone).to_list(),
        y=known["len"].cast(pl.Int64).to_numpy(),
        mode="lines",
        line={"shape": "hvh", "color": MARK_COLOUR, "width": 1.5, "dash": "dot"},
        name=f"a week before ({known['len'].sum():,})",
        hovertemplate="%{y:,}<extra>a week before</extra>",
    )


# -- the timeline --------------------------------------------------------------------------------


def event_spans(lifecycles: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Return the events that touch the window, with ``since`` and ``until`` cut to it (s)."""
    needed = ("family", "symbol", "legs", "t_open", "t_close", "duration_s")
    _require(lifecycles, (*needed, "kind", "peak"))
    shown = [*_PATTERNS, *_NO_BAR]
    strange = lifecycles.filter(~pl.col("kind").is_in(shown))
    if strange.height:
        raise InputError("kind", strange["kind"][0], ", ".join(shown))
    ends = pl.col("t_open") + pl.col("duration_s")
    still = pl.when(pl.col("kind") == "open").then(window.end)
    drawn = ~pl.col("kind").is_in(_NO_BAR)
    return (
        lifecycles.with_columns(
            pl.when(drawn).then(pl.col("t_open").fill_null(window.start)).alias("since"),
            pl.when(drawn)
            .then(pl.max_horizontal(pl.coalesce(ends, "t_close", still), "t_open"))
            .alias("until"),
        )
        .filter(~drawn | ((pl.col("since") < window.end) & (pl.col("until") >= window.start)))
        .with_columns(
            pl.col("since").clip(lower_bound=window.start),
            pl.col("until").clip(upper_bound=window.end),
        )
    )


def _largest(spans: pl.DataFrame, limit: int) -> pl.DataFrame:
    """Return ``limit`` events: the largest of each family by peak, in turns."""
    size = pl.col("peak").abs().fill_null(0.0)
    order = ["family", "size", "since", "symbol", "legs"]
    return (
        spans.with_columns(size.alias("size"))
        .sort(order, descending=[False, True, False, False, False])
        .with_columns(pl.int_range(pl.len()).over("family").alias("rank"))
        .sort("rank", "family")
        .head(limit)
    )


def _packed(spans: pl.DataFrame, window: Interval) -> pl.DataFrame:
    """Add a ``lane`` from 0. A symbol's lanes are adjacent, bars do not overlap."""
    narrowest_s = window.length_s / _NARROWEST
    ordered = spans.sort("symbol", "since", "until", "family", "legs")
    lanes: list[int] = []
    base = used = 0
    symbol = None
    free: list[tuple[float, int]] = []
    for row in ordered.select("symbol", "since", "until").iter_rows():
        if row[0] != symbol:
            symbol, base, used, free = row[0], base + used, 0, []
        if free and free[0][0] <= row[1]:
            lane = heapq.heappop(free)[1]
        else:
            lane, used = used, used + 1
        heapq.heappush(free, (max(row[2], row[1] + narrowest_s) + narrowest_s / 4, lane))
        lanes.append(base + lane)
    return ordered.with_columns(pl.Series("lane", lanes, dtype=pl.Int64))


def _bars(spans: pl.DataFrame, family: EventFamily, view: View) -> go.Bar:
    bars = life_bars(spans, family, view.timezone)
    pattern = {"shape": [_PATTERNS[kind] for kind in spans["kind"]], "fillmode": "overlay"}
    return bars.update(
        y=spans["lane"].to_numpy(),
        width=_BAR_LANES,
        name=f"{family} ({spans.height:,})",
        marker={"line_width": 1.5, "pattern": pattern | {"size": 6, "solidity": 0.5}},
    )


def life_bars(spans: pl.DataFrame, family: EventFamily, timezone: str) -> go.Bar:
    """Draw the events of `event_spans` as bars from ``since`` to ``until`` on a time axis.

    An ``event_id`` is the bars' ``customdata``.
    """
    since, until = spans["since"].cast(pl.Int64), spans["until"].ceil().cast(pl.Int64)
    clocks = [clock_text(times, timezone) for times in (since, until)]
    offsets = utc_offset_s(until, timezone) - utc_offset_s(since, timezone)
    length_ms = 1000 * (spans["until"] - since + offsets)
    colour = FAMILY_COLOURS[family]
    ids = [html(each) for each in spans["event_id"]] if "event_id" in spans.columns else None
    return go.Bar(
        base=clocks[0].to_list(),
        x=length_ms.round().cast(pl.Int64).clip(lower_bound=0).to_numpy(),
        orientation="h",
        name=family.value,
        customdata=ids,
        hovertext=[
            event_hover(row, first, last, timezone)
            for row, first, last in zip(spans.iter_rows(named=True), *clocks, strict=True)
        ],
        hoverinfo="text",
        # The outline keeps a life shorter than a pixel in sight.
        marker={"color": colour, "line": {"color": colour, "width": 1}},
    )


def event_hover(row: dict[str, Any], since: str, until: str, timezone: str) -> str:
    """Describe an event of `event_spans` in HTML: legs, peak, ends and duration.

    With ``events`` above 1 the row is the largest of so many.
    """
    symbol, legs = html(str(row["symbol"]), 80), html(str(row["legs"]), 160)
    if row.get("events", 1) > 1:
        return (
            f"{row['events']:,} {row['family']} events<br>{since} to {until} {timezone}"
            f"<br>the largest: {symbol}, {size_text(row['peak'], row['family'])}<br>{legs}"
        )
    again = "" if row["duration_s"] is None else f"; opened again at {until}"
    ends = {
        "closed": f"{since} to {until} {timezone}",
        "open": f"{since} {timezone}, still open at {until}",
        "reopened": f"{since} {timezone}, close lost{again}",
        "orphan_close": f"opened before, closed {until} {timezone}",
    }[row["kind"]]
    size = size_text(row["peak"], row["family"])
    lasted = lasted_text(row["duration_s"], row["kind"])
    return f"{row['family']} {symbol}<br>{legs}<br>peak {size}<br>{ends}<br>{lasted}"


def _counts(spans: pl.DataFrame, drawn: int) -> list[str]:
    """Format the numbers of events drawn, and of those not seen from opening to close."""
    counts = dict(spans["kind"].value_counts().iter_rows())
    others = [f"{counts[kind]:,} {text}" for kind, text in _KIND_TEXT.items() if kind in counts]
    total = f"{spans.height:,}"
    if drawn == spans.height:
        many = "events" if drawn > 1 else "event"
        return [f"n = {total} {many}", ", ".join(others) or "all seen from opening to close"]
    chosen = f"{drawn:,} of {total} events, of each family the largest"
    return [chosen, f"of all: {', '.join(others)}" if others else "all seen from opening to close"]


def _rules(lanes: pl.DataFrame) -> list[dict[str, Any]]:
    """Draw a thin line between the lanes of one symbol and the next."""
    lasts = lanes.group_by("symbol").agg(pl.col("lane").max()).sort("lane")["lane"].to_list()[:-1]
    fixed = {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y", "layer": "below"}
    line = {"width": 1, "color": "rgba(125,133,144,0.35)"}
    return [fixed | {"line": line, "y0": last + 0.5, "y1": last + 0.5} for last in lasts]


def _lane_axis(lanes: pl.DataFrame, height: int) -> dict[str, Any]:
    middles = lanes.group_by("symbol").agg(pl.col("lane").unique().mean()).sort("lane")
    return {
        "tickmode": "array",
        "tickvals": middles["lane"].to_list(),
        "ticktext": [html(str(symbol), 80) for symbol in middles["symbol"]],
        "range": [height - 0.5, -0.5],
        "showgrid": False,
        "zeroline": False,
        "fixedrange": True,
    }
