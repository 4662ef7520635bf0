"""Rates of events: leagues as bars with intervals, and the hours of the week."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.theme import FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import whole_number

_BAR = ("n", "coverage", "rate_per_day", "rate_lower_per_day", "rate_upper_per_day", "rank")
_COLOURS = {family.value: colour for family, colour in FAMILY_COLOURS.items()}


def league_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    limit: int = 25,
) -> Figure:
    """Draw the rate of events of each group as a bar with its 95 % interval, the first on top.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.league` returns.
    source, timezone, theme, subject
        As for `spread_chart`. ``subject`` names the events.
    limit
        The most groups drawn per family, by rank.

    Returns
    -------
    Figure
        Per family a trace of bars, with the intervals of the raw rates, and marks at the shrunk
        rates.

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
        return heading.empty("No group has a known rate of events.")
    names = frame.columns[1 : frame.columns.index("n")]
    shown = known.group_by("family", maintain_order=True).head(limit)
    several = shown["family"].n_unique() > 1
    labels = [
        html(" ".join(str(each) for each in row), 80).replace(" → ", "<br>→ ")
        for row in shown.select(*(["family"] if several else []), *names).iter_rows()
    ]
    shown = shown.with_columns(pl.Series("label", labels, dtype=pl.String))
    traces = [_league_bars(part) for part in shown.partition_by("family", maintain_order=True)]
    marks = shown.drop_nulls("rate_shrunk_per_day")
    if marks.height:
        traces.append(_shrunk(marks))
    layout = heading.heading(
        "How often events open, 95 % intervals",
        measured_window(frame, timezone),
        f"n = {frame['n'].sum():,} events of {frame.height:,} groups, {shown.height:,} shown",
        f"log coverage at least {share_text(min(shown['coverage']))}",
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


def _league_bars(part: pl.DataFrame) -> go.Bar:
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


def _shrunk(part: pl.DataFrame) -> go.Scatter:
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


_NUMBERS = ("life_s", "n", "ended", "survival", "survival_lower", "survival_upper", "coverage")
_MOST_LINES = 6
_MOST_POINTS = 300
"""Per line, so that six with their bands stay below the points of a chart."""
_UNITS = {"days": 86_400, "h": 3_600, "min": 60, "s": 1}
_BAND = "rgba(125,133,144,0.18)"
_COUNTS = 6
"""The most ages at which events at risk are counted."""
_ROW = 0.055
"""The height of a row of counts, as a part of the figure."""


def survival_chart(
    curve: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw the survival of events by age, with 95 % bands and the numbers at risk.

    Parameters
    ----------
    curve
        What `toolkit.statistics.events.survival_curve` returns, of at most six groups.
    source, timezone, theme, subject
        As for `spread_chart`. ``subject`` names the events.

    Returns
    -------
    Figure
        A stepped line per group with its band, and below them the events at risk at some ages. A
        line ends where survival is not known. At most 300 ages per group are drawn, and the
        subtitle says so. Raises `InputError` for more than six groups.

    Examples
    --------
    >>> curve = pl.DataFrame({"family": ["spread"] * 2, "life_s": [60.0, 120.0], "n": [2, 1],
    ...     "ended": [1, 1], "survival": [0.5, 0.0], "survival_lower": [0.01, None],
    ...     "survival_upper": [0.91, None], "coverage": [1.0, 1.0], "window_start": [0, 0],
    ...     "window_end": [3600, 3600]})
    >>> figure = survival_chart(curve, source=Source("replay", "depeg"))
    >>> line = figure.data[0]
    >>> line.name, line.x.tolist(), line.y.tolist()
    ('spread', [0.0, 1.0, 2.0], [1.0, 0.5, 0.0])
    """
    require_columns(curve, [*_NUMBERS, "window_start", "window_end"])
    heading = Heading(subject, source, theme)
    names = curve.columns[: curve.columns.index("life_s")]
    if len(names) > 1 and curve["family"].n_unique() == 1:
        names.remove("family")
    groups = curve.partition_by(names, maintain_order=True) if names else [curve]
    if len(groups) > _MOST_LINES:
        allowed = f"at most {_MOST_LINES} groups"
        raise InputError("curve", f"{len(groups)} groups", allowed, advice="filter by some")
    if curve["survival"].null_count() == curve.height:
        return heading.empty("Survival is not known at any age.")
    longest = float(curve["life_s"].max())  # type: ignore[arg-type]  # a column of floats with rows
    unit = next(name for name, length in _UNITS.items() if longest >= length or name == "s")
    drawn = [_drawn(part) for part in groups]
    # lines first, so that each takes the colour of its place
    traces = [_line(part, _label(part, names), _UNITS[unit]) for part in drawn if part.height]
    for part in drawn:
        traces += _band(part, _label(part, names), _UNITS[unit])
    labels = [_label(part, names) for part in groups]
    step = _age_step(longest / _UNITS[unit])
    ages = np.arange(0, longest / _UNITS[unit], step)
    traces += [
        _watched(part, label, ages, _UNITS[unit])
        for part, label in zip(groups, labels, strict=True)
    ]
    thinned = any(part.height > _MOST_POINTS for part in groups)
    layout = heading.heading(
        "How long events last",
        measured_window(curve, timezone),
        f"n = {sum(_most(part) for part in groups):,} events at risk, "
        f"{curve['ended'].sum():,} seen to end",
        f"log coverage at least {share_text(min(curve['coverage']))}",
        *([f"drawn at {_MOST_POINTS} of the ages of a group"] if thinned else []),
    )
    return Figure(traces, layout=layout | _axes(unit, step, labels)).update_layout(
        height=480 + 24 * len(groups), showlegend=len(groups) > 1
    )


def _age_step(longest: float) -> float:
    """Return the least 1, 2 or 5 times a power of ten of which six reach the longest age.

    >>> _age_step(60.0), _age_step(61.0), _age_step(0.3)
    (10.0, 20.0, 0.05)
    """
    power = 10.0 ** math.floor(math.log10(longest / _COUNTS))
    return next(power * k for k in (1, 2, 5, 10) if power * k * _COUNTS >= longest)


def _axes(unit: str, step: float, labels: list[str]) -> dict[str, Any]:
    """Build the axes of ages, of survival, and below it of the events at risk."""
    rows = _ROW * len(labels)
    watched = {
        "domain": [0, rows + 0.02],
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels[::-1],
        "range": [-0.5, len(labels) - 0.5],
        "title": {"text": "at risk"},
        "ticklabelstandoff": 18,
        "showgrid": False,
        "fixedrange": True,
    }
    shares = {
        "title": {"text": "share still open"},
        "range": [0, 1.02],
        "tickformat": ".0%",
        "domain": [rows + 0.09, 1],
    }
    title = {"text": f"age ({unit})"}
    ages = {"title": title, "dtick": step, "rangemode": "tozero", "anchor": "y2"}
    return {"xaxis": ages, "yaxis": shares, "yaxis2": watched}


def _most(part: pl.DataFrame) -> int:
    """Return how many events of a group were at risk at an age or entered later."""
    entered = int(part["entering"].sum()) if "entering" in part.columns else 0
    return int(part["n"][0]) + entered


def _label(part: pl.DataFrame, names: list[str]) -> str:
    return html(" ".join(str(part[name][0]) for name in names) or "events", 80)


def _drawn(part: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with known survival, at most 300 of them with the first and the last."""
    known = part.filter(pl.col("survival").is_not_null())
    if known.height <= _MOST_POINTS:
        return known
    return known[np.unique(np.linspace(0, known.height - 1, _MOST_POINTS).astype(int))]


def _line(part: pl.DataFrame, label: str, unit_s: int) -> go.Scatter:
    """Draw a group's line, as steps from 100 % at age 0."""
    return go.Scatter(
        x=np.concatenate([[0.0], (part["life_s"] / unit_s).to_numpy()]),
        y=np.concatenate([[1.0], part["survival"].to_numpy()]),
        name=label,
        mode="lines",
        line={"shape": "hv"},
        legendgroup=label,
        hovertemplate="%{y:.1%} last longer than %{x:.4g}<extra>" + label + "</extra>",
    )


def _band(part: pl.DataFrame, label: str, unit_s: int) -> list[go.Scatter]:
    """Draw a group's band."""
    banded = part.drop_nulls(["survival_lower", "survival_upper"])
    return [
        go.Scatter(
            x=(banded["life_s"] / unit_s).to_numpy(),
            y=banded[f"survival_{end}"].to_numpy(),
            mode="lines",
            line={"shape": "hv", "color": MARK_COLOUR, "width": 0.5},
            fill=fill,
            fillcolor=_BAND,
            legendgroup=label,
            hoverinfo="skip",
            showlegend=False,
        )
        for end, fill in (("lower", None), ("upper", "tonexty"))
        if banded.height
    ]


def _watched(
    part: pl.DataFrame, label: str, ages: npt.NDArray[np.float64], unit_s: int
) -> go.Scatter:
    """Write how many events of a group are at risk just before each age."""
    place = np.searchsorted(part["life_s"].to_numpy(), ages * unit_s, side="left")
    counts = np.append(part["n"].to_numpy(), 0)[np.minimum(place, part.height)]
    return go.Scatter(
        x=ages,
        y=[label] * len(ages),
        text=[f"{count:,}" for count in counts],
        mode="text",
        textposition="middle center",
        cliponaxis=False,
        textfont={"color": MARK_COLOUR, "size": 11},
        yaxis="y2",
        hoverinfo="skip",
        showlegend=False,
    )
