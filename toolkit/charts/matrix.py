"""Funding rates at one moment, by symbol and exchange."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from toolkit import commands
from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import Heading
from toolkit.columns import column
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Market, Source, When, parse_ts
from toolkit.show.values import value_text
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR

FUNDING_UNITS = {"% per 1 h": 1, "% per 8 h": 8, "% per 24 h": 24, "% per year (APR)": HOURS_A_YEAR}
"""The units a rate is brought to, and their hours. A year is 365 days, not compounded."""

FULL_COLOUR_PCT_8H = 0.05
"""From this size on (% per 8 h) a cell has its full colour, in every store and every unit.

That is five times the 0.01 % per 8 h at which many exchanges rest: 0.00625 % per 1 h, 0.15 % per
24 h, 54.75 % per year.
"""

_NAMES_PX = 48
"""Height of the exchanges' names over the cells, which a narrow screen turns."""
_TEXTS = 300
"""Cells up to which each has its number in it."""
SCALE = [[0.0, "#6fa8f7"], [0.5, "#e1e4e8"], [1.0, "#f2a65a"]]
"""The colours of rates, from the lowest to the highest."""
INK = "#1f2328"
"""Light cells with dark numbers, which read on a light page and on a dark one."""


def in_unit(rates: pl.DataFrame, unit: str) -> pl.DataFrame:
    """Add ``value``: the rate in the unit, null where it cannot be converted.

    Parameters
    ----------
    rates
        ``rate`` (fraction per its interval) and ``interval_hours`` (h), both nullable.
    unit
        One of `FUNDING_UNITS`.

    Examples
    --------
    >>> rates = pl.DataFrame({"rate": [1e-4, 1e-4, None], "interval_hours": [8, 0, 8]})
    >>> in_unit(rates, "% per 24 h")["value"].round(9).to_list()
    [0.03, None, None]
    """
    if unit not in list(FUNDING_UNITS):
        raise InputError("unit", unit, FUNDING_UNITS)
    require_columns(rates, ["rate", "interval_hours"])
    rate, hours = pl.col("rate").cast(pl.Float64), pl.col("interval_hours").cast(pl.Float64)
    value = 100 * FUNDING_UNITS[unit] * rate / hours + 0.0  # no negative zero
    return rates.with_columns(pl.when((hours > 0) & value.is_finite()).then(value).alias("value"))


def rate_in(name: str, unit: str) -> tuple[str, float]:
    """Return the column of a yearly rate in a unit, and what the rate is multiplied by.

    >>> rate_in("funding_apr_pct", "% per 24 h"), rate_in("funding_apr_pct", "% per year (APR)")
    (('funding_apr_pct_24h', 0.0027...), ('funding_apr_pct', 1.0))
    """
    hours = FUNDING_UNITS[unit]
    times = hours / HOURS_A_YEAR
    return (name if hours == HOURS_A_YEAR else f"{name}_{hours}h"), times


def funding_matrix(
    frame: pl.DataFrame,
    *,
    unit: str,
    ts: When,
    source: Source,
    timezone: str = "UTC",
    theme: str | None = None,
) -> Figure:
    """Draw every rate in force at one moment, one row per symbol and one column per exchange.

    Positive: longs pay shorts.

    Parameters
    ----------
    frame
        One row per leg, in any order: ``symbol``, ``exchange``, ``market`` (String), ``rate``
        (fraction per its interval), ``interval_hours`` (h) and ``next_funding_time`` (s, Unix UTC),
        the numbers nullable.
    unit
        One of `FUNDING_UNITS`, to which all rates are brought.
    ts
        When the rates were in force, Unix seconds.
    source, timezone, theme
        As for `spread_chart`.

    Returns
    -------
    Figure
        A heat map with colours centred on 0 and, up to 300 cells, a trace with the numbers.
        A cell without fill: the service shows no rate of that leg. A leg without a known
        rate or interval is not drawn, and counted in the subtitle. The colours reach their ends at
        `FULL_COLOUR_PCT_8H`, whatever rates there are: one rate has one colour everywhere. The
        subtitle states that size in the unit. The numbers are exact. Without a rate: a figure with
        a sentence.

    Raises
    ------
    InputError
        A missing column, another unit, two rows of one leg, or a parameter that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"symbol": ["A_B", "A_B"], "exchange": ["X", "Y"],
    ...                       "market": ["futures"] * 2, "rate": [1e-4, -2e-4],
    ...                       "interval_hours": [8, 1], "next_funding_time": [28800, 3600]})
    >>> figure = funding_matrix(frame, unit="% per 8 h", ts=0, source=Source("replay", "depeg"))
    >>> figure.data[0].z.round(6).tolist()
    [[0.01, -0.16]]
    """
    card = Heading("all symbols with a rate", source, theme)
    ts = parse_ts(ts, parameter="ts")
    require_columns(frame, ["next_funding_time"])
    if missing := [name for name in ("symbol", "exchange", "market") if name not in frame.columns]:
        raise InputError("frame", frame.columns, "columns " + ", ".join(missing))
    known = in_unit(frame, unit).drop_nulls("value")
    known = known.with_columns(_column().alias("column"))
    shown = {name: [html(text) for text in known[name]] for name in ("symbol", "column")}
    known = known.with_columns(pl.Series(name, t, pl.String) for name, t in shown.items())
    if (twice := known.filter(pl.struct("symbol", "column").is_duplicated())).height:
        doubled = f"{twice['symbol'][0]} at {twice['column'][0]} twice"
        raise InputError("frame", doubled, "one row per leg")
    moment = f"{clock_text(pl.Series([ts]), timezone)[0]} {timezone}"
    if known.is_empty():
        return card.empty(
            f"No funding rate as of {moment}. Ask the service for its rates with: "
            f"{commands.rail('sync', 'snapshot/funding')}"
        )
    symbols = known["symbol"].unique().sort(descending=True).to_list()
    columns = known["column"].unique().sort().to_list()
    traces: list[go.Heatmap | go.Scatter] = [_cells(known, symbols, columns, unit, timezone)]
    if few := known.height <= _TEXTS:
        traces.append(_numbers(known, unit))
    left_out = frame.height - known.height
    unknown = [f"{left_out:,} without a rate or an interval"] if left_out else []
    words = ", ".join([f"n = {known.height:,} rates", *unknown])
    heading = card.heading(
        f"Funding rates in force ({unit})",
        f"as of {moment}",
        words,
        "+: longs pay shorts",
        f"full colour from ±{full_colour(unit):g} {unit}",
    )
    heading["margin"] |= {"t": heading["margin"]["t"] + _NAMES_PX, "b": 16}
    for note in heading["annotations"]:
        note["yshift"] = _NAMES_PX
    return Figure(traces, layout=heading).update_layout(
        height=heading["margin"]["t"] + 16 + (26 if few else 14) * len(symbols),
        xaxis={"side": "top", "type": "category", "showgrid": False, "fixedrange": True},
        yaxis={"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True},
        showlegend=False,
    )


def full_colour(unit: str) -> float:
    """Return the size in the unit from which on a cell has its full colour.

    >>> full_colour("% per 24 h")
    0.15
    """
    return round(FULL_COLOUR_PCT_8H * FUNDING_UNITS[unit] / 8, 9)


def _column() -> pl.Expr:
    """Build the name of a column: the exchange, with its market where that is not futures."""
    plain = pl.col("market") == Market.FUTURES
    return pl.col("exchange") + pl.when(plain).then(pl.lit("")).otherwise("." + pl.col("market"))


def _cells(
    known: pl.DataFrame, symbols: list[str], columns: list[str], unit: str, timezone: str
) -> go.Heatmap:
    following = known["next_funding_time"].cast(pl.Int64)
    cells = known.with_columns(
        pl.Series("next", clock_text(following, timezone) + f" {timezone}").fill_null("not known"),
        (100 * pl.col("rate") + 0.0).alias("pct"),
    ).select(
        "symbol",
        "column",
        "value",
        pl.format(
            "{} {}<br>{} "
            + unit.replace("{", "")
            + "<br>as the service gave it: {} % per {} h<br>next settlement: {}",
            "symbol",
            "column",
            pl.col("value").round_sig_figs(5),
            pl.col("pct").round_sig_figs(8),
            "interval_hours",
            "next",
        ).alias("text"),
    )
    table = cells.pivot("column", index="symbol", values=["value", "text"], separator="\n")
    rows = pl.DataFrame({"symbol": symbols}).join(table, on="symbol", maintain_order="left")
    names = {part: [f"{part}\n{column}" for column in columns] for part in ("value", "text")}
    reach = full_colour(unit)
    return go.Heatmap(
        z=rows.select(names["value"]).to_numpy(),
        x=columns,
        y=symbols,
        hovertext=rows.select(pl.col(names["text"]).fill_null("")).rows(),
        hovertemplate="%{hovertext}<extra></extra>",
        hoverongaps=False,
        colorscale=SCALE,
        zmin=-reach,
        zmax=reach,
        xgap=2,
        ygap=2,
        showscale=False,
    )


def _numbers(known: pl.DataFrame, unit: str) -> go.Scatter:
    """Format the numbers in the cells."""
    one = column(rate_in("apr_pct", unit)[0])
    return go.Scatter(
        x=known["column"].to_list(),
        y=known["symbol"].to_list(),
        text=[value_text(value, one) for value in known["value"]],
        mode="text",
        textfont={"size": 10, "color": INK},
        hoverinfo="skip",
    )
