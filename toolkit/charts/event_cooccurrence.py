"""Co-occurrence of events: a heat map of pairs over those expected."""

from __future__ import annotations

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.heatmap import heat_cells
from toolkit.charts.matrix import SCALE
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import whole_number

_FIGURES = ("pairs", "pairs_expected", "ratio", "null_band_lower", "null_band_upper", "q_value")
_SHARED = ("n", "n_other", "coverage", "season_s", "window_start", "window_end")
_SEASONS = {3_600: "hour", 86_400: "day", 604_800: "week"}
_SURE = 0.05
_FULL = 3
"""The colours reach their ends at 2 to this power times as many pairs, or as few."""


def cooccurrence_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    after: bool = False,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
    limit: int = 25,
) -> Figure:
    """Draw how much more often groups of events come together than their own hours explain.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.cooccurrence` returns.
    source, timezone, theme
        As for `spread_chart`.
    after
        Only pairs in which the event of the column opened after that of the row. By default either
        can be the first, and the map is the same on both sides of its diagonal.
    subject
        The events shown, in words.
    limit
        The most groups drawn, those with the most events.

    Returns
    -------
    Figure
        A heat map with a row per group, the first on top, and a column per group. A cell is the
        ratio of pairs to those expected, in colours of equal factors up to 8 and down to 1/8. It is
        grey as 1 is where the ratio is within its band, which chance alone explains. A cell without
        fill, and a group without a cell, has no ratio. A mark is on cells with a q-value below
        0.05. Hovering shows the counts, the ratio with its band, and the q-value. Without a ratio:
        a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, two rows of one pair in one order, or a parameter that is not allowed.

    Examples
    --------
    >>> row = {"family": "splash", "other_family": "spread", "n": 30, "n_other": 90, "pairs": 20,
    ...     "pairs_expected": 5.0, "ratio": 4.0, "null_band_lower": 0.5, "null_band_upper": 1.6,
    ...     "q_value": 0.01, "coverage": 1.0, "season_s": 86_400, "window_start": 0,
    ...     "window_end": 2_592_000}
    >>> figure = cooccurrence_chart(pl.DataFrame([row]), source=Source("replay", "depeg"))
    >>> figure.data[0].z.tolist(), list(figure.data[0].y), list(figure.data[0].x)
    ([[2.0]], ['splash'], ['spread'])
    """
    prefix = "after_" if after else ""
    require_columns(frame, [*_SHARED, *(f"{prefix}{name}" for name in _FIGURES)])
    limit = whole_number("limit", limit, 1, "groups, at least 1")
    heading = Heading(subject, source, theme)
    shown = _shown(frame, prefix, limit)
    if shown.is_empty():
        return heading.empty("Of no pair of groups it is known how often they come together.")
    groups = shown["first"].n_unique()
    seasons = {_SEASONS.get(each, f"{each:,} s") for each in shown["season_s"]}
    layout = heading.heading(
        "Events that come after others" if after else "Events that come together",
        measured_window(frame, timezone),
        f"n = {shown['pairs'].sum() // (1 if after else 2):,} pairs of {groups:,} groups",
        f"expected: logs shifted by a whole {' or '.join(sorted(seasons))}; grey: within chance",
        f"at least {share_text(min(shown['coverage']))} of the time held by both",
    )
    traces = [_cells(shown, after=after)]
    sure = shown.filter(pl.col("q_value") < _SURE)
    if sure.height:
        traces.append(_marks(sure))
    return Figure(traces, layout=layout).update_layout(
        height=layout["margin"]["t"] + 150 + 28 * groups,
        xaxis={
            "type": "category",
            "title": {"text": "opened after" if after else ""},
            "showgrid": False,
        },
        yaxis={"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True},
        showlegend=True,
    )


def _shown(frame: pl.DataFrame, prefix: str, limit: int) -> pl.DataFrame:
    """Name the groups of each row, and keep those of the groups with the most events."""
    names = frame.columns[: frame.columns.index("other_family")]
    others = [f"other_{name}" for name in names]
    if len(names) > 1 and len({*frame["family"], *frame["other_family"]}) == 1:
        names, others = names[1:], others[1:]
    rows = frame.select(
        _labels(frame, names).alias("first"),
        _labels(frame, others).alias("other"),
        *_SHARED[:4],
        *(pl.col(f"{prefix}{name}").alias(name) for name in _FIGURES),
    )
    if rows.select("first", "other").is_duplicated().any():
        raise InputError("frame", "two rows of one pair", "one row of each pair in each order")
    rows = rows.drop_nulls("ratio")
    sizes = pl.concat([rows.select("first", "n"), rows.select(first="other", n="n_other")])
    most = (
        sizes.group_by("first", maintain_order=True).max().top_k(limit, by="n")["first"].implode()
    )
    return rows.filter(pl.col("first").is_in(most), pl.col("other").is_in(most))


def _labels(frame: pl.DataFrame, names: list[str]) -> pl.Series:
    rows = frame.select(pl.col(names).cast(pl.String).fill_null("–")).iter_rows()
    return pl.Series([html(" ".join(row), 80) for row in rows], dtype=pl.String)


def _cells(shown: pl.DataFrame, *, after: bool) -> go.Heatmap:
    """Draw the ratios by their logarithm, so that twice and half are as far from 1."""
    order = [*dict.fromkeys(shown["first"]), *dict.fromkeys(shown["other"])]
    rows, columns = (sorted(set(shown[name]), key=order.index) for name in ("first", "other"))
    rows.reverse()
    values = np.full((len(rows), len(columns)), np.nan)
    below: list[list[list[str]]] = [[[""] for _ in columns] for _ in rows]
    for row in shown.iter_rows(named=True):
        place = rows.index(row["first"]), columns.index(row["other"])
        by_chance = row["null_band_lower"] <= row["ratio"] <= row["null_band_upper"]
        values[place] = 0.0 if by_chance else np.log2(max(row["ratio"], 2.0 ** -(_FULL + 1)))
        lines = (
            f"{row['pairs']:,} pairs, {row['pairs_expected']:,.4g} expected",
            f"{row['ratio']:,.3g} times as many, q = {row['q_value']:.3g}",
            f"{row['null_band_lower']:,.3g} to {row['null_band_upper']:,.3g} without any relation",
            f"{row['n']:,} and {row['n_other']:,} events",
        )
        below[place[0]][place[1]] = ["<br>".join(lines)]
    ticks = list(range(-_FULL, _FULL + 1))
    words = "%{x} after %{y}" if after else "%{y} and %{x}"
    return heat_cells(
        values,
        columns,
        rows,
        below=below,
        hover=f"{words}<br>%{{customdata[0]}}<extra></extra>",
        scale=SCALE,
        ends=(-_FULL, _FULL),
    ).update(
        xgap=2,
        ygap=2,
        showscale=True,
        colorbar={
            "title": {"text": "times expected"},
            "tickvals": ticks,
            "ticktext": [f"{2**each}" if each >= 0 else f"1/{2**-each}" for each in ticks],
        },
    )


def _marks(sure: pl.DataFrame) -> go.Scatter:
    """Mark the pairs that would be few among so many by chance."""
    return go.Scatter(
        x=sure["other"].to_list(),
        y=sure["first"].to_list(),
        mode="markers",
        name=f"q below {_SURE:g}",
        marker={"symbol": "circle", "size": 9, "color": "#1f2328"},
        hoverinfo="skip",
    )
