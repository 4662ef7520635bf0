"""Payoff of events by the delay of entry: quantiles, means and their bands."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.cards import duration
from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.theme import COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import Html, html
from toolkit.market import Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import checked_types

_COUNTS = ("delay_s", "n", "n_events", "net_n", "coverage", "taken_share", "gross_per_event_bps")
_FIGURES = ("mean", "q05", "q25", "median", "q75", "q95", "mean_lower", "mean_upper")
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
    """Draw what events would have paid by how late they were taken: quantiles, mean and band.

    Parameters
    ----------
    frame
        Rows of one group of `toolkit.statistics.events.payoff`, one per delay.
    source, timezone, theme
        As for `spread_chart`.
    subject
        The events shown, in words.

    Returns
    -------
    Figure
        A box per delay after the detection, from the 5 % to the 95 % quantile with the middle half
        and the median, of gross and, where a fee table was given, of net. Beside them the mean with
        its 95 % band, where there is one. A line is the mean of all events, also those that were
        over by then and pay nothing. Below each delay are the events taken and their share. Without
        any position: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, rows of several groups, or a parameter that is not allowed.

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
    sides = [f"{side}_{figure}_bps" for side in _SIDES for figure in _FIGURES]
    require_columns(frame, [*_COUNTS, *sides, "window_start", "window_end"])
    checked_types(frame, {"fee_model": "String"})
    heading = Heading(subject, source, theme)
    rows = frame.sort("delay_s")
    if rows["delay_s"].n_unique() < rows.height:
        raise InputError("frame", "a delay twice", "rows of one group", advice="filter by one")
    if rows["n"].sum() == 0:
        return heading.empty("Of none of these events an entry and an exit are known.")
    priced = rows["net_n"].sum() > 0
    many, known = rows["n_events"][0], share_text(rows["coverage"][0])
    fees = f"net of {rows['fee_model'][0]}" if priced else "before fees"
    layout = heading.heading(
        "What spread events would have paid",
        measured_window(rows, timezone),
        f"{many:,} events, of {known} the outcome is known",
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
    """Write below each delay how many events were taken and which part that is."""
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
    values = {name: rows[f"{side}_{name}_bps"].to_numpy() for name in _FIGURES}
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
