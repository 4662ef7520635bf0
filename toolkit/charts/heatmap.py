"""Heat maps: cells with what hovering shows of each, and funding through time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.matrix import FUNDING_UNITS, SCALE, full_colour
from toolkit.charts.time_axis import clock_text, measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR

MOST_CELLS = 50_000
"""A heat map of more cells is refused."""


def funding_heatmap(
    frame: pl.DataFrame,
    *,
    source: Source,
    unit: str = "% per year (APR)",
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw the mean funding of trajectories in buckets of time.

    Positive: long the buy leg, short the sell leg receives it. Of a leg alone: longs pay shorts.

    Parameters
    ----------
    frame
        What `toolkit.statistics.funding.heatmap` returns, of trajectories with text keys.
    unit
        One of `toolkit.charts.FUNDING_UNITS`, to which the rates are brought.
    source, timezone, theme
        As for `spread_chart`.

    Returns
    -------
    Figure
        A heat map with a row per trajectory, the first on top, and a column per bucket. A cell
        without fill: nothing is known. The colours reach their ends at 54.75 % a year, as those of
        `funding_matrix`, and their bar is drawn where ``showscale`` of the trace is set. Hovering
        shows the rate and which part of the bucket is covered. Without any known bucket: a figure
        with a sentence.

    Raises
    ------
    InputError
        A missing column, another unit, more than 50,000 cells, or a parameter that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"trajectory": ["funding/A_B:X.futures"] * 2, "ts": [0, 28800],
    ...                       "coverage": [1.0, 0.0], "funding_apr_pct": [10.0, None],
    ...                       "window_start": [0, 0], "window_end": [57600, 57600]})
    >>> figure = funding_heatmap(frame, source=Source("replay", "depeg"))
    >>> figure.data[0].z.tolist(), list(figure.data[0].y)
    ([[10.0, nan]], ['A_B:X.futures'])
    """
    columns = ["ts", "coverage", "funding_apr_pct", "window_start", "window_end"]
    if unit not in list(FUNDING_UNITS):
        raise InputError("unit", unit, FUNDING_UNITS)
    require_columns(frame, columns)
    if frame.height > MOST_CELLS:
        allowed = f"at most {MOST_CELLS:,} cells"
        raise InputError("frame", frame.height, allowed, advice="longer buckets make fewer")
    names = frame["trajectory"].unique().sort(descending=True)
    card = Heading(f"{names.len():,} legs or pairs", source, theme)
    known = frame.drop_nulls("funding_apr_pct")
    if known.is_empty():
        return card.empty("Nothing is known of the funding in any whole bucket of this window.")
    words = "% a year" if FUNDING_UNITS[unit] == HOURS_A_YEAR else unit
    heading = card.heading(
        f"Funding through time ({words})",
        measured_window(frame, timezone),
        f"n = {known.height:,} of {frame.height:,} buckets",
        "+: long the buy leg, short the sell leg receives it",
        f"full colour from ±{full_colour(unit):g} {words}",
    )
    return Figure([_cells(frame, names, timezone, unit, words)], layout=heading).update_layout(
        height=heading["margin"]["t"] + 56 + 26 * names.len(),
        xaxis={"type": "date", "title": {"text": f"time ({timezone})"}, "showgrid": False},
        yaxis={"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True},
        showlegend=False,
    )


def _cells(
    frame: pl.DataFrame, names: pl.Series, timezone: str, unit: str, words: str
) -> go.Heatmap:
    full = full_colour(unit)
    times = frame["ts"].unique().sort()
    length_s = int(times[1] - times[0]) if times.len() > 1 else 0
    order = pl.DataFrame({"trajectory": names})
    columns = [pl.col(str(ts)).cast(pl.Float64) for ts in times]

    def table(name: str) -> pl.DataFrame:
        cells = frame.pivot("ts", index="trajectory", values=name)
        return order.join(cells, on="trajectory", how="left", maintain_order="left").select(columns)

    begins = clock_text(times, timezone).to_list()
    below = [
        [list(cell) for cell in zip(begins, row, strict=True)] for row in table("coverage").rows()
    ]
    # plotly draws a cell about its time, so that the middle of a bucket is its place
    cells = heat_cells(
        table("funding_apr_pct").to_numpy() * (FUNDING_UNITS[unit] / HOURS_A_YEAR),
        clock_text(times + length_s // 2, timezone).to_list(),
        [html(name.removeprefix("funding/")) for name in names],
        below=below,
        hover="%{y}<br>from %{customdata[0]}<br>%{z:+,.4~f} "
        + words
        + "<br>%{customdata[1]:.0%} of it covered<extra></extra>",
        scale=SCALE,
        ends=(-full, full),
    )
    return cells.update(colorbar={"thickness": 10, "ticksuffix": " ", "title": {"text": words}})


def heat_cells(
    values: npt.NDArray[np.float64],
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    below: Sequence[Sequence[list[Any]]],
    hover: str,
    scale: Sequence[Sequence[Any]],
    ends: tuple[float, float],
) -> go.Heatmap:
    """Draw values as cells, the first row at the bottom, with what hovering shows of each.

    ``below`` is the custom data of the cells, ``ends`` the values of the first and the last colour.
    A cell without a value has no fill.
    """
    return go.Heatmap(
        z=values,
        x=list(columns),
        y=list(rows),
        customdata=below,
        hovertemplate=hover,
        hoverongaps=False,
        colorscale=scale,
        zmin=ends[0],
        zmax=ends[1],
        showscale=False,
    )
