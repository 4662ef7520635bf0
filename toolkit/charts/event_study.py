"""Paths around events, with their middle half and the band of the mean."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.cards import duration
from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.theme import COLOURS, FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.columns import column
from toolkit.errors import InputError
from toolkit.foreign import Html, html
from toolkit.market import EventFamily, Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import checked_types

_MEAN, _MEDIAN = FAMILY_COLOURS[EventFamily.SPREAD], FAMILY_COLOURS[EventFamily.SPLASH]
_FIGURES = ("mean", "median", "q25", "q75", "mean_lower", "mean_upper")
_MINUTES_FROM_S, _HOURS_FROM_S = 180, 4 * 3_600


def event_study_chart(
    frame: pl.DataFrame, *, source: Source, subject: str = "all events", theme: str | None = None
) -> Figure:
    """Draw the mean and median path around events, the middle half and the band of the mean.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.study` returns.
    source, theme
        As for `spread_chart`.
    subject
        The events, in words.

    Returns
    -------
    Figure
        Lines of the mean and the median by the time since the event, the band with half of the
        paths, and the 95 % band of the mean, if any.

    Examples
    --------
    >>> from toolkit.statistics.events import study
    >>> bars = pl.DataFrame({"trajectory": "a", "ts": range(0, 600, 60), "price": [1.0] * 10})
    >>> events = pl.DataFrame({"trajectory": ["a"], "ts": [300]})
    >>> found = study(events, bars, before_s=120, after_s=120, every_s=60)
    >>> figure = event_study_chart(found, source=Source("replay", "depeg"))
    >>> [line.name for line in figure.data]
    ['half of the events', 'mean', 'median']
    """
    require_columns(frame, ["offset_s", "n", "n_events", "n_overlapping", "n_clusters"])
    names = _names(frame)
    card = Heading(subject, source, theme)
    known = frame.drop_nulls(names["mean"]).sort("offset_s")
    if known.is_empty():
        return card.empty("No price or spread is known around any of these events.")
    unit = column(names["mean"], "events.study").unit
    since, change = _start(names["mean"])
    longest = max(known["offset_s"].abs())
    length, length_s = _unit_of_time(longest)
    few, many = min(known["n"]), max(known["n"])
    shown = f"n = {many:,}" if few == many else f"n = {few:,} to {many:,}"
    left_out = frame["n_overlapping"][0], frame["n_unknown"][0]
    heading = card.heading(
        "Before and after the events",
        measured_window(frame, "UTC"),
        f"{shown} of {frame['n_events'][0]:,} events, {left_out[0]:,} follow another too soon, "
        f"{left_out[1]:,} are not known",
        f"{max(known['n_clusters']):,} clusters, mean with its 95 % band"
        if known["band_reason"].null_count()
        else "too few events for a band",
    )
    at_event = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
    return Figure(_lines(known, names, length_s, unit), layout=heading).update_layout(
        xaxis={"title": {"text": f"{length} since {since}"}, "zeroline": True},
        yaxis={"title": {"text": f"{change} ({unit})" if unit else change}, "zeroline": True},
        hovermode="x unified",
        shapes=[at_event | {"line": {"color": MARK_COLOUR, "width": 1, "dash": "dot"}}],
    )


def _names(frame: pl.DataFrame) -> dict[str, str]:
    """Return the column of each figure, whatever the studied column is."""
    ends = ("_mean_lower", "_mean_upper")
    means = [n for n in frame.columns if "_mean" in n and not any(end in n for end in ends)]
    parts = (name.rpartition("_mean") for name in means[:1])  # a column may be named for a mean
    found = {of: f"{start}_{of}{end}" for start, _, end in parts for of in _FIGURES}
    for figure in _FIGURES:
        if found.get(figure) not in frame.columns:
            raise InputError("frame", f"no {figure}", "a frame of events.study")
    return found


def _start(mean: str) -> tuple[str, str]:
    """Return what times and changes are measured from, by the name of the mean's column."""
    if "_from_detection_" in mean:
        return "the event", "change from the price at detection"
    if "_from_before_" in mean:
        return "the event", "change from the median before"
    return "the first value known after the event", "change"


def _unit_of_time(longest_s: int) -> tuple[str, int]:
    if longest_s < _MINUTES_FROM_S:
        return "seconds", 1
    return ("minutes", 60) if longest_s < _HOURS_FROM_S else ("hours", 3_600)


def _lines(
    known: pl.DataFrame, names: dict[str, str], length_s: int, unit: str
) -> list[go.Scatter]:
    x = (known["offset_s"] / length_s).to_numpy()

    def band(low: str, high: str, name: str, colour: str) -> go.Scatter:
        rows = known.drop_nulls(names[low])
        ahead = (rows["offset_s"] / length_s).to_list()
        return go.Scatter(
            x=[*ahead, *reversed(ahead)],
            y=[*rows[names[high]], *reversed(rows[names[low]].to_list())],
            name=name,
            fill="toself",
            fillcolor=colour,
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
        )

    def line(figure: str, colour: str, **more: Any) -> go.Scatter:
        return go.Scatter(
            x=x,
            y=known[names[figure]].to_numpy(),
            name=figure,
            line={"color": colour, "width": 2},
            customdata=known["n"].to_numpy(),
            hovertemplate=f"%{{y:+,.1f}} {unit}, n = %{{customdata:,}}<extra>{figure}</extra>",
            **more,
        )

    drawn = [band("q25", "q75", "half of the events", _faint(_MEDIAN, 0.15))]
    if known[names["mean_lower"]].count():
        drawn.append(
            band("mean_lower", "mean_upper", "95 % band of the mean", "rgba(0,114,178,0.25)")
        )
    return [*drawn, line("mean", _MEAN), line("median", _MEDIAN)]


def _faint(colour: str, opacity: float) -> str:
    """Return a colour with an opacity."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


_COUNTS = ("delay_s", "n", "n_events", "net_n", "coverage", "taken_share", "gross_per_event_bps")
_PAID = ("mean", "q05", "q25", "median", "q75", "q95", "mean_lower", "mean_upper")
_SIDES = {"gross": -0.24, "net": 0.12}
"""How far the boxes are from the middle of their delay."""
_WIDTH = 0.2
_BESIDE = 0.14
"""How far the mean is from its box."""


def payoff_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all spread events",
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw what events would have paid by the delay of entry: quantiles, mean and its 95 % band.

    Parameters
    ----------
    frame
        Rows of one group of `toolkit.statistics.events.payoff`, one per delay.
    source, timezone, theme, subject
        As for `spread_chart`. ``subject`` names the events.

    Returns
    -------
    Figure
        A box per delay after detection (5, 25, 50, 75 and 95 % quantiles) of gross payoffs and,
        with a fee table, of net ones, each beside its mean with a 95 % band. A line is the mean of
        all events: those over by then pay nothing. The events taken and their share are below.
        Raises `InputError` for rows of several groups.

    Examples
    --------
    >>> from toolkit.statistics.events import payoff, positions
    >>> spreads = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 4, "ts": [0, 60, 120, 180],
    ...     "spread_log_bps": [90.0, 80.0, 50.0, 20.0]})
    >>> lives = pl.DataFrame({"family": ["spread"], "event": ["s1"], "symbol": ["A_B"],
    ...     "legs": ["X.spot → Y.spot"], "kind": ["closed"], "t_open": [60], "t_close": [190],
    ...     "duration_s": [130.0], "entry_s": [0.0], "observed": [1], "known_until": [300],
    ...     "window_start": [0], "window_end": [300]})
    >>> found = payoff(positions(lives, spreads, delays_s=[0, 60]))
    >>> figure = payoff_chart(found, source=Source("replay", "depeg"))
    >>> [trace.name for trace in figure.data]
    ['gross', 'mean with its 95 % band', 'mean of all events, gross']
    >>> figure.data[0].median.tolist()
    [60.0, 30.0]
    """
    sides = [f"{side}_{figure}_bps" for side in _SIDES for figure in _PAID]
    require_columns(frame, [*_COUNTS, *sides, "window_start", "window_end"])
    checked_types(frame, {"fee_model": "String"})
    heading = Heading(subject, source, theme)
    rows = frame.sort("delay_s")
    if rows["delay_s"].n_unique() < rows.height:
        raise InputError("frame", "a delay twice", "rows of one group", advice="filter by one")
    if rows["n"].sum() == 0:
        return heading.empty("None of these events has a known entry and exit.")
    priced = rows["net_n"].sum() > 0
    many, known = rows["n_events"][0], share_text(rows["coverage"][0])
    fees = f"net of {rows['fee_model'][0]}" if priced else "before fees"
    layout = heading.heading(
        "What spread events would have paid",
        measured_window(rows, timezone),
        f"{many:,} events, the outcome of {known} is known",
        f"{fees}; boxes: 5, 25, 50, 75 and 95 %",
    )
    shown = COLOURS[theme or "light"]
    traces: list[go.Box | go.Scatter] = []
    for place, side in enumerate(_SIDES):
        if side == "gross" or priced:
            aside = _SIDES[side] if priced else -_BESIDE / 2
            traces += _side(rows, side, aside, shown[place], first=place == 0)
    places = np.arange(rows.height)
    traces.append(
        go.Scatter(
            x=places,
            y=rows["gross_per_event_bps"].to_numpy(),
            name="mean of all events, gross",
            mode="lines+markers",
            line={"color": MARK_COLOUR, "dash": "dot", "width": 1.5},
            marker={"size": 4},
            hovertemplate="%{y:,.1f} bps<extra>of all events</extra>",
        )
    )
    return Figure(traces, layout=layout).update_layout(
        height=520,
        xaxis={
            "tickvals": places,
            "ticktext": _labels(rows),
            "range": [-0.6, rows.height - 0.4],
            "showgrid": False,
        },
        yaxis={"title": {"text": "bps of the log spread"}, "zeroline": True},
    )


def _labels(rows: pl.DataFrame) -> list[str]:
    """Label each delay with the events taken and their share."""
    return [
        Html("<br>").join(
            (
                f"after {duration(row['delay_s'])}",
                f"n = {row['n']:,}",
                "" if (share := row["taken_share"]) is None else f"{share_text(share)} still there",
            )
        )
        for row in rows.iter_rows(named=True)
    ]


def _side(
    rows: pl.DataFrame, side: str, aside: float, colour: str, *, first: bool
) -> list[go.Box | go.Scatter]:
    """Draw the boxes of gross or net, and the means with their bands."""
    values = {name: rows[f"{side}_{name}_bps"].to_numpy() for name in _PAID}
    places = np.arange(rows.height) + aside
    box = go.Box(
        x=places,
        q1=values["q25"],
        median=values["median"],
        q3=values["q75"],
        lowerfence=values["q05"],
        upperfence=values["q95"],
        name=side,
        width=_WIDTH,
        line={"color": colour, "width": 1.5},
        showlegend=True,
    )
    means = go.Scatter(
        x=places + _BESIDE,
        y=values["mean"],
        name="mean with its 95 % band",
        mode="markers",
        marker={"symbol": "diamond", "size": 7, "color": colour},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": values["mean_upper"] - values["mean"],
            "arrayminus": values["mean"] - values["mean_lower"],
            "color": colour,
            "thickness": 2,
            "width": 6,
        },
        hovertemplate=f"mean %{{y:,.1f}} bps<extra>{html(side)}</extra>",
        legendgroup="means",
        showlegend=first,
    )
    return [box, means]
