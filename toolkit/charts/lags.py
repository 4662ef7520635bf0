"""Correlation of two prices at each lag, with the band of chance."""

from __future__ import annotations

from collections.abc import Mapping

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.time_axis import measured_window
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source

_BAND_COLOUR = "rgba(125,133,144,0.25)"


def lags_chart(
    frames: Mapping[str, pl.DataFrame],
    *,
    source: Source,
    subject: str = "two legs",
    theme: str | None = None,
) -> Figure:
    """Draw the correlation of two legs' returns by the lag of the sell leg.

    Parameters
    ----------
    frames
        By line name, what `toolkit.statistics.spread.cross_correlation` or
        `toolkit.statistics.spread.hayashi_yoshida` returns for one trajectory.
    source, theme
        As for `spread_chart`.
    subject
        The legs, for the heading.

    Returns
    -------
    Figure
        One line per frame by the lag (s), with gaps where the correlation is null. If it is higher
        at positive lags than at negative ones, the buy leg leads. The 95 % band of chance of the
        first frame that has one is shaded. Raises `InputError` for no frame or several
        trajectories.

    Examples
    --------
    >>> from toolkit.statistics.spread import cross_correlation
    >>> bars = {"trajectory": "a", "ts": range(0, 12_000, 60)}
    >>> prices = {leg: [1.0 + ts % 7 for ts in range(200)] for leg in ("buy_price", "sell_price")}
    >>> found = cross_correlation(pl.DataFrame({**bars, **prices}), max_lag_steps=2)
    >>> figure = lags_chart({"minutes": found}, source=Source("replay", "depeg"))
    >>> [(line.name, list(line.x)) for line in figure.data][-1]
    ('minutes', [-120, -60, 0, 60, 120])
    """
    if not frames:
        raise InputError("frames", frames, "one frame or more, by the names of their lines")
    for frame in frames.values():
        counted = ["pairs"] if "pairs" in frame.columns else ["buy_n", "sell_n"]
        require_columns(frame, ["lag_s", "correlation", *counted, "window_start", "window_end"])
        if frame["lag_s"].is_duplicated().any():
            raise InputError("frames", "several rows of one lag", "those of one trajectory each")
    card = Heading(subject, source, theme)
    known = {name: frame for name, frame in frames.items() if frame["correlation"].count()}
    if not known:
        return card.empty("There are too few returns of both legs for a correlation.")
    first = next(iter(known.values()))
    heading = card.heading(
        "Agreement of both legs by lag",
        measured_window(first, "UTC"),
        *(f"{name}: n = {_count(frame)}" for name, frame in known.items()),
        "to the right: the sell leg's return is the later",
    )
    bands = [_band(frame) for frame in known.values() if "null_band" in frame.columns]
    return Figure(
        [*bands[:1], *(_line(name, each) for name, each in known.items())], layout=heading
    ).update_layout(
        xaxis={"title": {"text": "lag of the sell leg (s)"}, "zeroline": True},
        yaxis={"title": {"text": "correlation"}, "zeroline": True},
        hovermode="x unified",
    )


def _count(frame: pl.DataFrame) -> str:
    """Format the n of the correlations: pairs of returns, or prices of the legs."""
    if "pairs" in frame.columns:
        return f"{min(frame['pairs']):,} pairs or more"
    return f"{frame['buy_n'][0]:,} and {frame['sell_n'][0]:,} prices"


def _band(frame: pl.DataFrame) -> go.Scatter:
    rows = frame.drop_nulls("null_band").sort("lag_s")
    lags, band = rows["lag_s"].to_list(), rows["null_band"].to_list()
    return go.Scatter(
        x=[*lags, *reversed(lags)],
        y=[*band, *(-each for each in reversed(band))],
        name="chance alone, 95 %",
        fill="toself",
        fillcolor=_BAND_COLOUR,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
    )


def _line(name: str, frame: pl.DataFrame) -> go.Scatter:
    rows = frame.sort("lag_s")
    counts = ["pairs"] if "pairs" in rows.columns else ["buy_n", "sell_n"]
    words = [" and ".join(f"{n:,}" for n in row) for row in rows.select(counts).iter_rows()]
    return go.Scatter(
        x=rows["lag_s"].to_list(),
        y=rows["correlation"].to_list(),
        name=html(name),
        mode="lines+markers",
        connectgaps=False,
        hovertext=words,
        hovertemplate="%{y:.3f}, n = %{hovertext}<extra>%{fullData.name}</extra>",
    )
