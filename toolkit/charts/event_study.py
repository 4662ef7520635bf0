"""Paths around events, with their middle half and the band of the mean."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.theme import FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.columns import column
from toolkit.errors import InputError
from toolkit.market import EventFamily, Source

_MEAN, _MEDIAN = FAMILY_COLOURS[EventFamily.SPREAD], FAMILY_COLOURS[EventFamily.SPLASH]
_FIGURES = ("mean", "median", "q25", "q75", "mean_lower", "mean_upper")
_MINUTES_FROM_S, _HOURS_FROM_S = 180, 4 * 3_600


def event_study_chart(
    frame: pl.DataFrame, *, source: Source, subject: str = "all events", theme: str | None = None
) -> Figure:
    """Draw the mean and the median path around events, the middle half and the band of the mean.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.study` returns.
    source, theme
        As for `spread_chart`.
    subject
        What the events are, for the heading.

    Returns
    -------
    Figure
        Lines of the mean and the median by the time since the start of the paths, the band in which
        half of the paths lie, and the 95 % band of the mean, where there is one. Hovering shows n.
        Without any known path: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, or a parameter that is not allowed.

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
    return Figure(_lines(known, names, length_s, unit), layout=heading).update_layout(
        xaxis={"title": {"text": f"{length} since {since}"}, "zeroline": True},
        yaxis={"title": {"text": f"{change} ({unit})" if unit else change}, "zeroline": True},
        hovermode="x unified",
        shapes=[
            {
                "type": "line",
                "x0": 0,
                "x1": 0,
                "y0": 0,
                "y1": 1,
                "yref": "paper",
                "line": {"color": MARK_COLOUR, "width": 1, "dash": "dot"},
            }
        ],
    )


def _names(frame: pl.DataFrame) -> dict[str, str]:
    """Return the column of each figure, whatever the studied column is."""
    found = {}
    for figure in _FIGURES:
        ending = "_" if figure in ("mean", "median") else ""
        named = [
            name
            for name in frame.columns
            if f"_{figure}" in name
            and not any(f"_{figure}_{end}" in name for end in ("lower", "upper") if ending)
        ]
        if not named:
            raise InputError("frame", f"no {figure}", "a frame of events.study")
        found[figure] = named[0]
    return found


def _start(mean: str) -> tuple[str, str]:
    """Say since when times count, and from what changes are, by the name of a column."""
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
    """Return a colour that lets what is behind show through."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
