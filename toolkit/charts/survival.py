"""Survival of events: the share still open, with its band and the number still observed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.theme import MARK_COLOUR
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.show.values import share_text

_NUMBERS = ("life_s", "n", "ended", "survival", "survival_lower", "survival_upper", "coverage")
_MOST_LINES = 6
_MOST_POINTS = 300
"""Of each line, so that six with their bands stay below the points of a chart."""
_UNITS = {"days": 86_400, "h": 3_600, "min": 60, "s": 1}
_BAND = "rgba(125,133,144,0.18)"
_COUNTS = 6
"""The most ages at which the watched are counted."""
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
    """Draw the share of events that lives on by age, with bands of 95 % and the numbers watched.

    Parameters
    ----------
    curve
        What `toolkit.statistics.events.survival_curve` returns, of at most six groups.
    source, timezone, theme
        As for `spread_chart`.
    subject
        The events shown, in words.

    Returns
    -------
    Figure
        A line of steps per group, with its band where there is one, and below them how many events
        of each group are watched at some ages (at risk). A line ends where the share is not known.
        Of more than 300 ages of a group it shows 300 with the last, and says so. Without a known
        share: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, more than six groups, or a parameter that is not allowed.

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
        return heading.empty("Of no age it is known how many events live on.")
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
        f"n = {sum(_most(part) for part in groups):,} events watched, "
        f"{curve['ended'].sum():,} seen to end",
        f"at least {share_text(min(curve['coverage']))} of the time held",
        *([f"drawn at {_MOST_POINTS} of the ages of a group"] if thinned else []),
    )
    return Figure(traces, layout=layout | _axes(unit, step, labels)).update_layout(
        height=480 + 24 * len(groups), showlegend=len(groups) > 1
    )


def _age_step(longest: float) -> float:
    """Return 1, 2 or 5 times a power of ten, the least of which a few reach the longest age.

    >>> _age_step(60.0), _age_step(61.0), _age_step(0.3)
    (10.0, 20.0, 0.05)
    """
    power = 10.0 ** math.floor(math.log10(longest / _COUNTS))
    return next(power * k for k in (1, 2, 5, 10) if power * k * _COUNTS >= longest)


def _axes(unit: str, step: float, labels: list[str]) -> dict[str, Any]:
    """Build the axis of ages, that of shares, and below it that of the watched."""
    rows = _ROW * len(labels)
    watched = {
        "domain": [0, rows + 0.02],
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels[::-1],
        "range": [-0.5, len(labels) - 0.5],
        "title": {"text": "watched"},
        "ticklabelstandoff": 18,
        "showgrid": False,
        "fixedrange": True,
    }
    shares = {
        "title": {"text": "share that lives on"},
        "range": [0, 1.02],
        "tickformat": ".0%",
        "domain": [rows + 0.09, 1],
    }
    title = {"text": f"age ({unit})"}
    ages = {"title": title, "dtick": step, "rangemode": "tozero", "anchor": "y2"}
    return {"xaxis": ages, "yaxis": shares, "yaxis2": watched}


def _most(part: pl.DataFrame) -> int:
    """Return how many events of a group were watched at one age or entered after it."""
    entered = int(part["entering"].sum()) if "entering" in part.columns else 0
    return int(part["n"][0]) + entered


def _label(part: pl.DataFrame, names: list[str]) -> str:
    return html(" ".join(str(part[name][0]) for name in names) or "events", 80)


def _drawn(part: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a known share, or some hundred of them with the first and the last."""
    known = part.filter(pl.col("survival").is_not_null())
    if known.height <= _MOST_POINTS:
        return known
    return known[np.unique(np.linspace(0, known.height - 1, _MOST_POINTS).astype(int))]


def _line(part: pl.DataFrame, label: str, unit_s: int) -> go.Scatter:
    """Draw a group's line, as steps that begin with all alive at age 0."""
    return go.Scatter(
        x=np.concatenate([[0.0], (part["life_s"] / unit_s).to_numpy()]),
        y=np.concatenate([[1.0], part["survival"].to_numpy()]),
        name=label,
        mode="lines",
        line={"shape": "hv"},
        legendgroup=label,
        hovertemplate="%{y:.1%} live longer than %{x:.4g}<extra>" + label + "</extra>",
    )


def _band(part: pl.DataFrame, label: str, unit_s: int) -> list[go.Scatter]:
    """Draw a group's band, which goes with its line."""
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
    """Write how many events of a group are watched just before each age."""
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
