"""Heat maps: cells with what hovering shows of each, and funding through time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.matrix import CATEGORIES, FUNDING_UNITS, SCALE, full_colour, heat_cells
from toolkit.charts.time_axis import clock_text, measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source
from toolkit.show.values import share_text
from toolkit.statistics.core.contract import whole_number
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
        A heat map with a row per trajectory, the first on top, and a column per bucket, unfilled
        where nothing is known. The colours reach their ends at 54.75 % a year, as in
        `funding_matrix`. Their scale is drawn if the trace's ``showscale`` is set. Raises
        `InputError` for another unit or more than 50,000 cells.

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
        return card.empty("No whole bucket of this window has known funding.")
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
        yaxis=CATEGORIES,
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


_HOURS = ("weekday", "hour", "weeks", "events_per_h_mean", "n", "coverage")
_BOUNDS = ("events_per_h_mean_lower", "events_per_h_mean_upper")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_FROM_NONE = [[0.0, SCALE[1][1]], [1.0, SCALE[2][1]]]
"""From no event to the most: the upper half of the colours of rates."""


def event_hours_chart(
    frame: pl.DataFrame,
    *,
    source: Source,
    subject: str = "all symbols",
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw the rate of events in each hour of the week: a row per weekday, a column per hour.

    Parameters
    ----------
    frame
        What `toolkit.statistics.events.rates_by_hour` returns for one group.
    source, timezone, theme, subject
        As for `spread_chart`. Hours are of UTC, the zone is the window's. ``subject`` names the
        events.

    Returns
    -------
    Figure
        A heat map, Monday on top, unfilled where the log covers that hour of no week. Raises
        `InputError` for rows of several groups.

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
        return heading.empty("The log covers no hour of the week from end to end.")
    layout = heading.heading(
        "Events in each hour of the week (UTC)",
        measured_window(frame, timezone),
        f"n = {frame['n'][0]:,} hours, coverage {share_text(frame['coverage'][0])}",
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
    """Draw the 168 hours of a week as `heat_cells`, Monday on top.

    ``hover`` is the template of a value, shown with its interval and weeks.
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
        yaxis=CATEGORIES,
        showlegend=False,
    )


def _between(lower: float | None, upper: float | None) -> str:
    if lower is None or upper is None:
        return ""
    return f" ({lower:,.3g} to {upper:,.3g})"


_SPREAD = "spread_mean_log_bps"
_SPREAD_BOUNDS = ("spread_mean_lower_log_bps", "spread_mean_upper_log_bps")


_SPREAD_HOURS = ("weekday", "hour", "weeks", _SPREAD, "n", "window_start", "window_end")


def spread_hours_chart(
    frame: pl.DataFrame, *, source: Source, timezone: str = "UTC", theme: str | None = None
) -> Figure:
    """Draw the mean spread of each hour of the week: a row per weekday, a column per hour.

    Positive spread: long the buy leg and short the sell leg earns it.

    Parameters
    ----------
    frame
        What `toolkit.statistics.spread.hour_of_week` returns for one trajectory.
    source, timezone, theme
        As for `spread_chart`. Hours are of UTC, the zone is the window's.

    Returns
    -------
    Figure
        A heat map, Monday on top, with colours centred on 0, unfilled where that hour of no week
        has a row. Raises `InputError` for rows of several trajectories.

    Examples
    --------
    >>> from toolkit.statistics.spread import hour_of_week
    >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"] * 168,
    ...     "ts": [345_600 + 3600 * k for k in range(168)],
    ...     "spread_log_bps": [float(k) for k in range(168)]})
    >>> found = hour_of_week(rows, 345_600, 345_600 + 604_800)
    >>> cells = spread_hours_chart(found, source=Source("replay", "depeg")).data[0]
    >>> cells.z.shape, float(cells.z[6][1]), cells.zmin
    ((7, 24), 1.0, -167.0)
    """
    require_columns(frame, [*_SPREAD_HOURS, *_SPREAD_BOUNDS])
    keys = frame["trajectory"].unique() if "trajectory" in frame.columns else pl.Series([""])
    if keys.len() > 1:
        raise InputError("frame", f"{keys.len()} trajectories", "the 168 hours of one")
    heading = Heading(str(keys[0]) if keys.len() else "", source, theme)
    known = frame.drop_nulls(_SPREAD)
    if known.is_empty():
        return heading.empty("No hour of the week has a spread in the window.")
    end = max(1e-9, *known[_SPREAD].abs())
    layout = heading.heading(
        "Mean spread in each hour of the week (UTC)",
        measured_window(frame, timezone),
        f"n = {frame['n'][0]:,} rows",
    )
    return week_chart(
        frame,
        _SPREAD,
        _SPREAD_BOUNDS,
        layout,
        hover="%{z:+,.2f} bps",
        unit="bps",
        scale=SCALE,
        ends=(-end, end),
    )


_RATIO = ("pairs", "pairs_expected", "ratio", "null_band_lower", "null_band_upper", "q_value")
_SHARED = ("n", "n_other", "coverage", "season_s", "window_start", "window_end")
_SEASONS = {3_600: "hour", 86_400: "day", 604_800: "week"}
_SURE = 0.05
_FULL_POWER = 3
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
        Count only pairs with the column's event after the row's. By default the order does not
        count.
    subject
        The events shown, in words.
    limit
        The most groups drawn, by number of events.

    Returns
    -------
    Figure
        A row and a column per group, the first on top. A cell is the ratio of pairs to those
        expected, on a logarithmic scale from 1/8 to 8, grey within its band of chance, and unfilled
        without a ratio. Cells with a q-value below 0.05 are marked. Raises `InputError` for two
        rows of one pair in one order.

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
    require_columns(frame, [*_SHARED, *(f"{prefix}{name}" for name in _RATIO)])
    limit = whole_number("limit", limit, 1, "groups, at least 1")
    heading = Heading(subject, source, theme)
    shown = _shown_pairs(frame, prefix, limit)
    if shown.is_empty():
        return heading.empty("No pair of groups has a known ratio.")
    groups = shown["first"].n_unique()
    seasons = {_SEASONS.get(each, f"{each:,} s") for each in shown["season_s"]}
    layout = heading.heading(
        "Events that come after others" if after else "Events that come together",
        measured_window(frame, timezone),
        f"n = {shown['pairs'].sum() // (1 if after else 2):,} pairs of {groups:,} groups",
        f"expected: logs shifted by a whole {' or '.join(sorted(seasons))}; grey: within chance",
        f"both logs cover at least {share_text(min(shown['coverage']))} of the time",
    )
    traces = [_ratio_cells(shown, after=after)]
    sure = shown.filter(pl.col("q_value") < _SURE)
    if sure.height:
        traces.append(_sure_marks(sure))
    return Figure(traces, layout=layout).update_layout(
        height=layout["margin"]["t"] + 150 + 28 * groups,
        xaxis={
            "type": "category",
            "title": {"text": "opened after" if after else ""},
            "showgrid": False,
        },
        yaxis=CATEGORIES,
        showlegend=True,
    )


def _shown_pairs(frame: pl.DataFrame, prefix: str, limit: int) -> pl.DataFrame:
    """Label the groups of each row, and keep the groups with the most events."""
    names = frame.columns[: frame.columns.index("other_family")]
    others = [f"other_{name}" for name in names]
    if len(names) > 1 and len({*frame["family"], *frame["other_family"]}) == 1:
        names, others = names[1:], others[1:]
    rows = frame.select(
        _labels(frame, names).alias("first"),
        _labels(frame, others).alias("other"),
        *_SHARED[:4],
        *(pl.col(f"{prefix}{name}").alias(name) for name in _RATIO),
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


def _ratio_cells(shown: pl.DataFrame, *, after: bool) -> go.Heatmap:
    """Draw the ratios on a logarithmic scale."""
    order = [*dict.fromkeys(shown["first"]), *dict.fromkeys(shown["other"])]
    rows, columns = (sorted(set(shown[name]), key=order.index) for name in ("first", "other"))
    rows.reverse()
    values = np.full((len(rows), len(columns)), np.nan)
    below: list[list[list[str]]] = [[[""] for _ in columns] for _ in rows]
    for row in shown.iter_rows(named=True):
        place = rows.index(row["first"]), columns.index(row["other"])
        by_chance = row["null_band_lower"] <= row["ratio"] <= row["null_band_upper"]
        values[place] = 0.0 if by_chance else np.log2(max(row["ratio"], 2.0 ** -(_FULL_POWER + 1)))
        lines = (
            f"{row['pairs']:,} pairs, {row['pairs_expected']:,.4g} expected",
            f"{row['ratio']:,.3g} times as many, q = {row['q_value']:.3g}",
            f"{row['null_band_lower']:,.3g} to {row['null_band_upper']:,.3g} without any relation",
            f"{row['n']:,} and {row['n_other']:,} events",
        )
        below[place[0]][place[1]] = ["<br>".join(lines)]
    ticks = list(range(-_FULL_POWER, _FULL_POWER + 1))
    words = "%{x} after %{y}" if after else "%{y} and %{x}"
    return heat_cells(
        values,
        columns,
        rows,
        below=below,
        hover=f"{words}<br>%{{customdata[0]}}<extra></extra>",
        scale=SCALE,
        ends=(-_FULL_POWER, _FULL_POWER),
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


def _sure_marks(sure: pl.DataFrame) -> go.Scatter:
    """Mark the pairs with a q-value below 0.05."""
    return go.Scatter(
        x=sure["other"].to_list(),
        y=sure["first"].to_list(),
        mode="markers",
        name=f"q below {_SURE:g}",
        marker={"symbol": "circle", "size": 9, "color": "#1f2328"},
        hoverinfo="skip",
    )
