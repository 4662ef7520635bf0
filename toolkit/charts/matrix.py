"""Funding rates at one moment, by symbol and exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go
import polars as pl

from toolkit import commands
from toolkit.cards import signed
from toolkit.charts.figure import Figure
from toolkit.charts.lines import require_columns
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import Heading
from toolkit.columns import column
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Market, Source, When, parse_ts
from toolkit.show.values import value_text
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR

FUNDING_UNITS = {"% per 1 h": 1, "% per 8 h": 8, "% per 24 h": 24, "% per year (APR)": HOURS_A_YEAR}
"""The units of rates, and their hours. A year is 365 days, not compounded."""

FULL_COLOUR_PCT_8H = 0.05
"""The size (% per 8 h) from which a cell has its full colour, in every store and unit.

It is five times the 0.01 % per 8 h at which many exchanges rest.
"""

_NAMES_PX = 48
"""Height of the exchanges' names over the cells, which a narrow screen turns."""
_TEXTS = 300
"""The most cells that show their numbers."""
SCALE = [[0.0, "#6fa8f7"], [0.5, "#e1e4e8"], [1.0, "#f2a65a"]]
"""The colours of rates, from the lowest to the highest."""
INK = "#1f2328"
"""Numbers in cells, dark as the cells are light on either page."""


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
        One of `FUNDING_UNITS`.
    ts
        When the rates were in force, Unix seconds.
    source, timezone, theme
        As for `spread_chart`.

    Returns
    -------
    Figure
        A heat map with colours centred on 0 and, up to 300 cells, a trace with the exact numbers. A
        cell without a rate is unfilled. The subtitle counts legs without a known rate or interval.
        The colours always reach their ends at `FULL_COLOUR_PCT_8H`. Raises `InputError` for another
        unit or two rows of one leg.

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
        yaxis=CATEGORIES,
        showlegend=False,
    )


def full_colour(unit: str) -> float:
    """Return the rate in the unit from which a cell has its full colour."""
    return round(FULL_COLOUR_PCT_8H * FUNDING_UNITS[unit] / 8, 9)


def _column() -> pl.Expr:
    """Build the name of a column: the exchange, with its market unless that is futures."""
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
    """Draw the numbers in the cells."""
    one = column(rate_in("apr_pct", unit)[0])
    return go.Scatter(
        x=known["column"].to_list(),
        y=known["symbol"].to_list(),
        text=[value_text(value, one) for value in known["value"]],
        mode="text",
        textfont={"size": 10, "color": INK},
        hoverinfo="skip",
    )


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
    """Draw values as cells, the first row at the bottom, unfilled where NaN.

    ``below`` is the cells' custom data, ``ends`` the values of the first and last colour.
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


FULL_COLOUR_BPS = 50.0
"""The size (bps) from which a cell has its full colour, in every store."""

_BESIDE_PX, _MARK_PX = 72, 36
_ROW_PX = 26
CATEGORIES = {"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True}


def spread_matrix(
    frame: pl.DataFrame,
    *,
    symbol: str,
    ts: When,
    source: Source,
    timezone: str = "UTC",
    theme: str | None = None,
    heading: bool = True,
    filled: bool = True,
) -> Figure:
    """Draw the log spreads of one symbol, a row per leg bought and a column per leg sold.

    Positive: the leg sold is dearer.

    Parameters
    ----------
    frame
        One row per pair: ``buy`` and ``sell`` (legs, String), ``ts`` (s, Unix UTC, of its newest
        observation) and ``last_bps`` (log spread there in bps, nullable).
    symbol
        The symbol of all pairs.
    ts
        The end of the observed window, Unix seconds.
    source, timezone, theme
        As for `spread_chart`.
    heading
        Draw the title.
    filled
        Whether to derive absent pairs from others. Figures net of costs need False, as they neither
        change sign nor add up.

    Returns
    -------
    Figure
        A heat map and a trace with its numbers. As the log spread is 10,000 ln(sell / buy), absent
        pairs are derived: the opposite orientation has the opposite sign, and two pairs of one time
        that share a leg add up to a third. The colours reach their ends at `FULL_COLOUR_BPS`. A
        cell without a known spread is unfilled. Raises `InputError` for two rows of one pair.

    Examples
    --------
    >>> frame = pl.DataFrame({"buy": ["X.spot"] * 2, "sell": ["Y.spot", "Z.spot"], "ts": [0, 0],
    ...                       "last_bps": [12.5, 2.5]})
    >>> figure = spread_matrix(frame, symbol="A_B", ts=60, source=Source("replay", "depeg"))
    >>> list(figure.data[0].y), figure.data[0].z[0].tolist()
    (['Z.spot', 'Y.spot', 'X.spot'], [-2.5, 10.0, nan])
    """
    card = Heading(symbol, source, theme)
    moment = f"{clock_text(pl.Series([parse_ts(ts, parameter='ts')]), timezone)[0]} {timezone}"
    require_columns(frame, ["ts", "last_bps"])
    if missing := [name for name in ("buy", "sell") if name not in frame.columns]:
        raise InputError("frame", frame.columns, "columns " + ", ".join(missing))
    known = frame.drop_nulls("last_bps")
    if (twice := known.filter(pl.struct("buy", "sell").is_duplicated())).height:
        raise InputError(
            "frame", f"{twice['buy'][0]} to {twice['sell'][0]} twice", "one row per pair"
        )
    if known.is_empty():
        return card.empty(f"No spread of {symbol} is known until {moment}.")
    as_held = known.select("buy", "sell", "last_bps", how=pl.lit("as stored"))
    cells = _filled(known) if filled else as_held
    legs = pl.concat([cells["buy"], cells["sell"]]).unique().sort(descending=True)
    layout = card.heading(
        "Last spreads (bps)",
        f"until {moment}",
        f"n = {known.height:,} pairs",
        f"full colour from ±{FULL_COLOUR_BPS:g} bps",
    )
    layout["margin"] |= {"b": _BESIDE_PX}
    if not heading:
        del layout["title"]
        layout["margin"]["t"] = _MARK_PX
    return Figure(_traces(cells, legs), layout=layout).update_layout(
        height=layout["margin"]["t"] + _BESIDE_PX + _ROW_PX * legs.len(),
        xaxis=CATEGORIES | {"title": {"text": "sell"}},
        yaxis=CATEGORIES | {"title": {"text": "buy"}},
        showlegend=False,
    )


def _filled(known: pl.DataFrame) -> pl.DataFrame:
    """Return a row per cell: buy, sell, last_bps and how it is known, preferring the stored."""
    held = known.select("buy", "sell", "ts", "last_bps", how=pl.lit("as stored"))
    turned = held.select(
        pl.col("sell").alias("buy"),
        pl.col("buy").alias("sell"),
        "ts",
        -pl.col("last_bps"),
        how=pl.lit("stored the other way round"),
    )
    known = pl.concat([held, turned]).unique(["buy", "sell"], keep="first", maintain_order=True)
    added = known.join(
        known, left_on=["sell", "ts"], right_on=["buy", "ts"], suffix="_after"
    ).select(
        "buy",
        pl.col("sell_after").alias("sell"),
        "ts",
        pl.col("last_bps") + pl.col("last_bps_after"),
        how=pl.format("by way of {}", "sell"),
    )
    cells = pl.concat([known, added.filter(pl.col("buy") != pl.col("sell")).sort("how")])
    return cells.unique(["buy", "sell"], keep="first", maintain_order=True).drop("ts")


def _traces(cells: pl.DataFrame, legs: pl.Series) -> list[go.Heatmap | go.Scatter]:
    """Draw the cells and their numbers. ``legs`` are from the bottom up."""
    rows, columns = legs.to_list(), legs.reverse().to_list()
    of = {(buy, sell): (value, html(how)) for buy, sell, value, how in cells.iter_rows()}
    values = [[of.get((buy, sell), (None, ""))[0] for sell in columns] for buy in rows]
    below = [[list(of.get((buy, sell), (None, ""))[1:]) for sell in columns] for buy in rows]
    names = {leg: html(leg) for leg in rows}
    heat = heat_cells(
        pl.DataFrame(values, schema=[str(at) for at in range(len(rows))], orient="row")
        .cast(pl.Float64)
        .to_numpy(),
        [names[leg] for leg in columns],
        [names[leg] for leg in rows],
        below=below,
        hover="buy %{y}<br>sell %{x}<br>%{z:+,.2f} bps, %{customdata[0]}<extra></extra>",
        scale=SCALE,
        ends=(-FULL_COLOUR_BPS, FULL_COLOUR_BPS),
    )
    numbers = go.Scatter(
        x=[names[sell] for sell in cells["sell"]],
        y=[names[buy] for buy in cells["buy"]],
        text=[signed(value, 1) for value in cells["last_bps"]],
        mode="text",
        textfont={"size": 10, "color": INK},
        hoverinfo="skip",
    )
    return [heat.update(xgap=2, ygap=2), numbers]
