"""One symbol on one axis of time: prices and funding of its legs, and its events."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.events import event_spans, life_bars
from toolkit.charts.figure import Figure
from toolkit.charts.lines import gapped_line, require_columns, rows_to_draw
from toolkit.charts.theme import COLOURS
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import View
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.intervals import Interval
from toolkit.market import EventFamily, Source
from toolkit.statistics.core.contract import whole_number

_COLOURS = len(COLOURS["light"])
_DASHES = ("solid", "dot", "dash", "dashdot")
_LANES_HIGH, _RATES_HIGH, _APART = 0.13, 0.29, 0.04
"""Of the figure's height. Prices take the rest."""
_HEIGHT_PX = 560
_PRICES = ("price", "from_median")
_PRICE, _FUNDING, _EVENTS = "y", "y2", "y3"
_OWN_TIME = " · %{x|%H:%M}"
"""Beside each leg in the common hover box, as the rows of two legs may differ in time."""


def symbol_chart(
    prices: pl.DataFrame,
    funding: pl.DataFrame,
    lifecycles: pl.DataFrame,
    *,
    symbol: str,
    start: int,
    end: int,
    source: Source,
    shown: str = "price",
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 4000,
) -> Figure:
    """Draw the prices of all legs of a symbol, their funding rates and the symbol's events.

    Parameters
    ----------
    prices
        One row per leg and time: ``leg`` (String), ``ts`` (s, Unix UTC) and ``price`` (quote,
        nullable).
    funding
        One row per leg and change of its rate: ``leg``, ``ts`` and ``apr_pct`` (percent a year in
        force from ``ts`` on; positive: longs pay; null: none).
    lifecycles
        As for `event_timeline`, with ``event_id`` (String).
    symbol
        The symbol of all legs.
    start, end
        The window ``[start, end)`` in Unix seconds. Rows outside are not drawn.
    source, timezone, theme
        As for `spread_chart`.
    shown
        ``price``, or ``from_median``: 1e4 ln(price / median of the legs at that time) in bps, at
        times with prices of two legs.
    points
        About the most price rows drawn, extremes included.

    Returns
    -------
    Figure
        A line per leg above, its rate in the same colour in the middle, and a bar per event below,
        one row per family. Hovering lists the legs, the dearest first. The ``customdata`` of a bar
        is its ``event_id``, without tags. Raises `InputError` for two rows of one leg and ts.

    Examples
    --------
    >>> prices = pl.DataFrame({"leg": ["X.spot", "X.spot", "Y.spot", "Y.spot"],
    ...     "ts": [0, 60, 0, 60], "price": [100.0, 101.0, 100.0, 100.0]})
    >>> funding = pl.DataFrame({"leg": ["Y.futures"], "ts": [0], "apr_pct": [10.95]})
    >>> lives = pl.DataFrame(schema={"family": pl.String, "symbol": pl.String, "legs": pl.String,
    ...     "t_open": pl.Int64, "t_close": pl.Int64, "duration_s": pl.Float64, "kind": pl.String,
    ...     "peak": pl.Float64, "event_id": pl.String})
    >>> figure = symbol_chart(prices, funding, lives, symbol="A_B", start=0, end=120,
    ...                       source=Source("replay", "depeg"))
    >>> [line.name for line in figure.data if line.name]
    ['X.spot', 'Y.spot', 'Y.futures']
    """
    if shown not in _PRICES:
        raise InputError("shown", shown, _PRICES)
    points = whole_number("points", points, 2)
    view = View(symbol, source, theme, Interval.checked(start, end), timezone, f"{symbol}:*")
    for frame, name in ((prices, "price"), (funding, "apr_pct")):
        require_columns(frame, ["ts", name])
    lines = _price_lines(prices, shown, points, view)
    rates = _rate_lines(funding, view)
    spans = event_spans(lifecycles, view.window).drop_nulls("since")
    if not lines and not rates and spans.is_empty():
        return view.empty(
            f"No prices, rates and events of {view}. Choose another window, or load them with: "
            f"{view.sync_command}"
        )
    bars = [
        life_bars(mine, family, timezone).update(
            y=[at] * mine.height,
            width=0.7,
            showlegend=False,
            marker_opacity=0.6,
            yaxis=_EVENTS,
        )
        for at, family in enumerate(EventFamily)
        for mine in [spans.filter(family=family.value)]
        if spans.height
    ]
    n_rows = prices.filter(pl.col("ts").is_between(*view.window, closed="left")).height
    words = f"n = {n_rows:,} prices, {spans.height:,} events"
    return Figure(
        _coloured(lines, rates) + bars,
        layout=view.layout(f"{symbol}: prices, funding and events", words)
        | _axes(html(symbol.rpartition("_")[2]), shown, rated=bool(rates), lanes=bool(bars)),
    )


def _price_lines(
    prices: pl.DataFrame, shown: str, points: int, view: View
) -> dict[str, go.Scatter]:
    """Draw the prices of each leg, with fewer rows each for more legs."""
    column, hover = "price", "%{y:,.10~g}"
    if shown == "from_median":
        column, hover = "from_median", "%{y:+,.2f} bps"
        price = pl.col("price")
        apart = pl.when(price.count().over("ts") > 1).then(
            1e4 * (price / price.median().over("ts")).log()
        )
        prices = prices.with_columns(apart.alias(column))
    legs = prices["leg"].unique().sort()
    most = max(points // max(legs.len(), 1), 50)
    found = {}
    for leg in legs:
        mine = prices.filter(pl.col("leg") == leg)
        rows = rows_to_draw(mine, [column], view.window, step_s=None, points=most)
        if rows.total and rows.frame[column].count():
            name = html(leg)
            words = f"{name} {hover}{_OWN_TIME}"
            found[leg] = gapped_line(rows, column, name=name, hover=words, timezone=view.timezone)
    return found


def _rate_lines(funding: pl.DataFrame, view: View) -> dict[str, go.Scatter]:
    """Draw the rates of each leg as steps, from the window's start."""
    found = {}
    for leg in funding["leg"].unique().sort():
        mine = funding.filter(pl.col("leg") == leg).sort("ts")
        ts = pl.col("ts")
        before = mine.filter(ts <= view.window.start).tail(1)
        inside = mine.filter(ts.is_between(*view.window, closed="none"))
        steps = pl.concat([before.with_columns(ts=pl.lit(view.window.start, pl.Int64)), inside])
        last = steps.tail(1).with_columns(ts=pl.lit(view.window.end, pl.Int64))
        steps = pl.concat([steps, last])
        if steps["apr_pct"].count() == 0:
            continue
        found[leg] = go.Scatter(
            x=clock_text(steps["ts"], view.timezone).to_list(),
            y=steps["apr_pct"].to_numpy(),
            name=html(leg),
            hovertemplate=f"{html(leg)} %{{y:+,.2f}} % a year{_OWN_TIME}<extra></extra>",
            mode="lines",
            line={"shape": "hv", "width": 1.3},
            connectgaps=False,
            yaxis=_FUNDING,
        )
    return found


def _coloured(lines: dict[str, go.Scatter], rates: dict[str, go.Scatter]) -> list[go.Scatter]:
    """Order the lines so that a leg has one colour in both plots.

    Templates colour traces in turn, so an absent line is replaced by an empty one.
    """
    legs = sorted({*lines, *rates})
    free = -len(legs) % _COLOURS
    found = []
    plots = [(lines, _PRICE), (rates, _FUNDING)] if rates else [(lines, _PRICE)]
    for plot, place in plots:
        for at, leg in enumerate([*legs, *[None] * free]):
            trace = plot.get(leg) if leg else None
            if trace is None:
                found.append(go.Scatter(x=[], y=[], showlegend=False, yaxis=place))
                continue
            dash = _DASHES[at // _COLOURS % len(_DASHES)]
            shown = plot is lines or leg not in lines
            found.append(trace.update(legendgroup=leg, showlegend=shown, line_dash=dash))
    return found


def _axes(quote: str, shown: str, *, rated: bool, lanes: bool) -> dict[str, Any]:
    """Lay out the plots over one time axis, with one crosshair."""
    price: dict[str, Any] = {"title": {"text": f"price ({quote})"}, "exponentformat": "none"}
    if shown == "from_median":
        price = {"title": {"text": "from median (bps)"}, "zeroline": True}
    cross = {"showspikes": True, "spikemode": "across", "spikethickness": 1, "spikesnap": "cursor"}
    still: dict[str, Any] = {"fixedrange": True}
    axes: dict[str, Any] = {}
    bottom, lowest = 0.0, _PRICE
    if lanes:
        families = [family.value for family in EventFamily]
        axes["yaxis3"] = still | {
            "domain": [bottom, _LANES_HIGH],
            "tickmode": "array",
            "tickvals": list(range(len(families))),
            "ticktext": families,
            "range": [len(families) - 0.5, -0.5],
            "showgrid": False,
            "zeroline": False,
        }
        bottom, lowest = _LANES_HIGH + _APART, _EVENTS
    if rated:
        axes["yaxis2"] = still | {
            "domain": [bottom, bottom + _RATES_HIGH],
            "title": {"text": "funding (% a year)"},
            "zeroline": True,
        }
        bottom, lowest = bottom + _RATES_HIGH + _APART, _EVENTS if lanes else _FUNDING
    return axes | {
        "height": _HEIGHT_PX,
        "barmode": "overlay",
        "hovermode": "x unified",
        "hoversort": "value descending",
        "xaxis_unifiedhovertitle_text": "%{x|%d %b %Y %H:%M}",
        "showlegend": True,
        "xaxis_anchor": lowest,
        "xaxis_title": None,
        "yaxis": price | still | {"domain": [bottom, 1.0], "separatethousands": True},
        **{f"xaxis_{name}": value for name, value in cross.items()},
    }
