"""The spreads of one symbol at one moment, by the leg bought and the leg sold."""

from __future__ import annotations

import plotly.graph_objects as go
import polars as pl

from toolkit.cards import signed
from toolkit.charts.downsampling import require_columns
from toolkit.charts.figure import Figure
from toolkit.charts.heatmap import heat_cells
from toolkit.charts.matrix import INK, SCALE
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import Heading
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.market import Source, When, parse_ts

FULL_COLOUR_BPS = 50.0
"""From this size on (bps) a cell has its full colour, in every store."""

_NAMES_PX, _MARK_PX = 72, 36
_ROW_PX = 26
_AXIS = {"type": "category", "dtick": 1, "showgrid": False, "fixedrange": True}


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
        observation) and ``last_bps`` (bps of the log spread there, nullable).
    symbol
        The symbol of all pairs.
    ts
        The end of the time that the spreads are the newest of, Unix seconds.
    source, timezone, theme
        As for `spread_chart`.
    heading
        Whether the title with symbol, time and source is above.
    filled
        Whether cells of pairs that are not there are filled from others. Figures net of costs are
        not: turned round they have another cost, and two of them do not add up.

    Returns
    -------
    Figure
        A heat map and a trace with its numbers. Since the log spread is 10,000 ln(sell / buy), a
        pair turned round has the opposite sign, and two pairs of one time that share a leg add up
        to a third. Cells of pairs that are not there are filled in this way, and hovering says
        so. The colours reach their ends at `FULL_COLOUR_BPS`. A cell without fill: no spread is
        known. Without any: a figure with a sentence.

    Raises
    ------
    InputError
        A missing column, two rows of one pair, or a parameter that is not allowed.

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
    as_held = known.select("buy", "sell", "last_bps", how=pl.lit("as held"))
    cells = _filled(known) if filled else as_held
    legs = pl.concat([cells["buy"], cells["sell"]]).unique().sort(descending=True)
    layout = card.heading(
        "Last spreads (bps)",
        f"until {moment}",
        f"n = {known.height:,} pairs",
        f"full colour from ±{FULL_COLOUR_BPS:g} bps",
    )
    layout["margin"] |= {"b": _NAMES_PX}
    if not heading:
        del layout["title"]
        layout["margin"]["t"] = _MARK_PX
    return Figure(_traces(cells, legs), layout=layout).update_layout(
        height=layout["margin"]["t"] + _NAMES_PX + _ROW_PX * legs.len(),
        xaxis=_AXIS | {"title": {"text": "sell"}},
        yaxis=_AXIS | {"title": {"text": "buy"}},
        showlegend=False,
    )


def _filled(known: pl.DataFrame) -> pl.DataFrame:
    """Return a row per cell: buy, sell, last_bps and how it is known, the nearest way first."""
    held = known.select("buy", "sell", "ts", "last_bps", how=pl.lit("as held"))
    turned = held.select(
        pl.col("sell").alias("buy"),
        pl.col("buy").alias("sell"),
        "ts",
        -pl.col("last_bps"),
        how=pl.lit("held turned round"),
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
    """Draw the cells and the numbers in them. ``legs`` are in the order from the bottom up."""
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
