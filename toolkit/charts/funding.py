"""Funding through time: the differential in force, and what it has paid."""

from __future__ import annotations

from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.figure import Figure
from toolkit.charts.lines import downsample, gapped_line, rows_to_draw
from toolkit.charts.matrix import FUNDING_UNITS
from toolkit.charts.series import nothing
from toolkit.charts.theme import MARK_COLOUR
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import Subject, View, with_subject
from toolkit.columns import column
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import Family, Source, When
from toolkit.show.values import figures_text, reason_words
from toolkit.statistics.core.contract import Frame, real_number
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding import carry, differential, summary
from toolkit.statistics.funding.carry_marks import Prices
from toolkit.statistics.funding.differentials import without_rates

_SIGN_WORDS = "+: long buy, short sell receives"
_ZERO_LINE = {"zeroline": True, "zerolinecolor": MARK_COLOUR}
_FIGURES = ("funding_bps", "funding_apr_pct", "basis_bps", "carry_bps")


def funding_chart(
    frame: Frame,
    *,
    source: Source,
    trajectory: Subject | str | None = None,
    start: When | None = None,
    end: When | None = None,
    unit: str = "% per 8 h",
    cost_bps: float | None = None,
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 2000,
    prices: Prices | None = None,
    funding_only: bool = False,
) -> Figure:
    """Draw the funding differential in force above, cumulative funding and carry below.

    Positive: long the buy leg and short the sell leg receives it. Carry is funding plus basis.

    Parameters
    ----------
    frame
        One row per settlement of one funding trajectory, in any order: the columns that
        `toolkit.statistics.funding` reads, as `Store.series` returns them. Rows from before the
        window give the rate in force at its start.
    trajectory
        The trajectory of the rows, or its key: by default the frame's ``trajectory``.
    start, end
        The window, by default that of the frame's settlements. The differential is drawn over
        ``[start, end)``. A position from ``start`` to ``end`` receives a settlement at ``end``.
    unit
        The differential's unit, one of `toolkit.charts.FUNDING_UNITS`.
    cost_bps
        The cost of a round trip (bps of one leg's notional). A further line is the carry, with
        ``funding_only`` the funding, less it.
    source, timezone, theme
        As for `spread_chart`.
    points
        The most steps drawn in either plot, extremes included.
    prices, funding_only
        As for `toolkit.statistics.funding.carry`.

    Returns
    -------
    Figure
        Stepped lines: sell rate less buy rate (in the unit), broken where a leg has no rate in
        force, funding received since ``start`` (bps of one leg's notional), and the carry at each
        settlement, by `toolkit.statistics.funding.carry`. The subtitle has the reason for what is
        not known. If the service sends only its own ``differential_pct_8h``, that is drawn alone.

    Raises
    ------
    InputError
        Another family's trajectory, another unit, a cost that is not a number, columns that the
        statistics refuse, or a parameter that is not allowed.

    Examples
    --------
    >>> frame = pl.DataFrame({"ts": [28800, 57600], "buy_rate": [0.0, 0.0],
    ...                       "sell_rate": [1e-4, 2e-4], "buy_interval_hours": [None, None],
    ...                       "sell_interval_hours": [8.0, 8.0]})
    >>> figure = funding_chart(frame, trajectory="funding/BTC_USDT:KRAKEN.spot:KRAKEN.futures",
    ...                        start=0, end=57600, source=Source("replay", "depeg"))
    >>> [line.y.round(4).tolist() for line in figure.data]
    [[0.01, 0.01], [0.0, 1.0, 3.0]]
    """
    if unit not in list(FUNDING_UNITS):
        raise InputError("unit", unit, FUNDING_UNITS)
    if cost_bps is not None:
        cost_bps = real_number("cost_bps", cost_bps, "bps of a round trip")
    keyed, trajectory = with_subject(frame, trajectory, Family.FUNDING)
    window = window_of(keyed, start, end, settlements_extent)
    view = View.of(trajectory, window, source=source, timezone=timezone, theme=theme)
    figures = summary(keyed, *window, prices=prices, funding_only=funding_only)
    if not figures.height or figures["n"].item() == 0:
        if (sent := _sent(keyed, trajectory, view, points, unit)) is not None:
            return sent
        return view.empty(
            f"No settlement of {view}. Choose another window, or load this one with: "
            f"{view.sync_command}"
        )
    row = figures.row(0, named=True)
    kept = carry(keyed, *window, prices=prices, funding_only=funding_only)
    steps = [_rates(keyed, unit), *(_paid(kept, view.window, each) for each in _lines_of(kept))]
    lines = [
        _standing(each, view.window, "both" if number else "left")
        for number, each in enumerate(steps)
    ]
    drawn = [downsample(each, "value", points=points) for each in lines]
    total, shown = (sum(each.height for each in of) for of in (lines, drawn))
    some = [f"{shown:,} of {total:,} points"] if shown < total else []
    hover = f"%{{y:+,.4~f}} {unit}%{{hovertext}}"
    traces = [_line(drawn[0], "differential, sell less buy", hover, view, "y")]
    for each, name in zip(drawn[1:], _lines_of(kept).values(), strict=True):
        traces.append(_line(each, name, "%{y:+,.2f} bps%{hovertext}", view, "y2"))
    if cost_bps is not None and lines[-1].height and (funding_only or row["carry_bps"] is not None):
        left = drawn[-1].with_columns(pl.col("value") - cost_bps, text=pl.lit(""))
        net = "net of a round trip, funding only" if funding_only else "net of a round trip"
        traces.append(_line(left, net, "%{y:+,.2f} bps net", view, "y2"))
    of = "what it paid" if funding_only else "carry"
    title = f"{trajectory.symbol}: funding differential and {of}"
    return Figure(traces, layout=view.layout(title, *_words(row, some), _SIGN_WORDS)).update_layout(
        **_axes(unit)
    )


def _lines_of(kept: pl.DataFrame) -> dict[str, str]:
    """Return the cumulative columns with the names of their lines."""
    lines = {"funding_bps": "cumulative funding"}
    if "carry_bps" in kept.columns and kept["carry_bps"].count():
        lines["carry_bps"] = "carry: funding and prices"
    return lines


def _sent(
    frame: pl.DataFrame, trajectory: Subject, view: View, points: int, unit: str
) -> Figure | None:
    """Draw the differential that the service sends, None unless it sends it without rates."""
    if "differential_pct_8h" not in frame.columns:
        return None
    times = FUNDING_UNITS[unit] / 8
    found = without_rates(frame).with_columns(pl.col("differential_pct_8h") * times)
    rows = rows_to_draw(found, ["differential_pct_8h"], view.window, step_s=None, points=points)
    if rows.total == 0:
        return None
    line = gapped_line(
        rows,
        "differential_pct_8h",
        name="differential, as the service sends it",
        hover=f"%{{y:+,.4~f}} {unit}",
        timezone=view.timezone,
    )
    no_carry = "sent by the service: no carry without settled rates of the legs"
    title = f"{trajectory.symbol}: funding differential"
    return Figure(
        [line], layout=view.layout(title, rows.words, no_carry, _SIGN_WORDS)
    ).update_layout(height=480, hovermode="x unified", yaxis=_differential_axis(unit))


def _differential_axis(unit: str) -> dict[str, Any]:
    return {"title": {"text": f"differential ({unit.removesuffix(' (APR)')})"}} | _ZERO_LINE


def _axes(unit: str) -> dict[str, Any]:
    return {
        "height": 560,
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "xaxis_anchor": "y2",
        "yaxis": {"domain": [0.54, 1.0]} | _differential_axis(unit),
        "yaxis2": {"domain": [0.0, 0.46], "title": {"text": "cumulative (bps)"}} | _ZERO_LINE,
    }


def _words(row: dict[str, Any], some: list[str]) -> list[str]:
    """Format counts and coverage, then funding and carry, or why one is null."""
    counts = ["n", "coverage", *(["n_missed"] if row["n_missed"] else [])]
    known = [name for name in _FIGURES if row.get(name) is not None]
    unknown = [name for name in ("funding_bps", "carry_bps") if row.get(name, 0) is None][:1]
    why = [f"{column(name).short} not known: {reason_words(row, name)}" for name in unknown]
    words = "; ".join([*([figures_text(row, known)] if known else []), *why]) + (
        "" if "carry_bps" in row else ", without prices"
    )
    return [", ".join([figures_text(row, counts, "funding.summary"), *some]), words]


def _rates(frame: pl.DataFrame, unit: str) -> pl.DataFrame:
    """Return the differential's steps: ts, value (in the unit), text with the legs' rates."""
    of_hour = 100 * FUNDING_UNITS[unit]
    buy, sell = (
        of_hour * pl.col(f"{leg}_rate_per_hour").round_sig_figs(4) for leg in ("buy", "sell")
    )
    return differential(frame).select(
        "ts",
        (of_hour * pl.col("differential_per_hour")).alias("value"),
        pl.format(" (buy {}, sell {})", buy.round(6), sell.round(6)).alias("text"),
    )


def _paid(kept: pl.DataFrame, window: Interval, column: str) -> pl.DataFrame:
    """Return a sum's steps, from 0 at the window's start: ts, value (bps), text."""
    found = kept.drop_nulls("funding_bps")
    if found.is_empty():
        return found.select("ts", pl.col(column).alias("value"), pl.lit("").alias("text"))
    opened = pl.DataFrame({"ts": [window.start], "value": [0.0], "text": [" (opened)"]})
    payment = pl.format(" ({} then)", pl.col("payment_bps").round(4))
    text = payment if column == "funding_bps" else pl.lit("")
    steps = found.select("ts", pl.col(column).alias("value"), text.alias("text"))
    return pl.concat([opened, steps])


def _standing(
    steps: pl.DataFrame, window: Interval, closed: Literal["left", "both"]
) -> pl.DataFrame:
    """Cut the steps to the window, and add the values in force at its ends."""
    ts = pl.col("ts")
    inside = steps.filter(ts.is_between(*window, closed=closed))
    if inside["ts"].first() != window.start:
        before = steps.filter(ts < window.start).tail(1)
        inside = pl.concat([before.with_columns(ts=pl.lit(window.start, pl.Int64)), inside])
    last = inside.tail(1).filter(ts < window.end).with_columns(ts=pl.lit(window.end, pl.Int64))
    return pl.concat([inside, last])


def _line(steps: pl.DataFrame, name: str, hover: str, view: View, yaxis: str) -> go.Scatter:
    """Draw steps as one line: each value lasts until the next row, and a null ends it."""
    ends = steps.with_columns(pl.col("value").shift(1)).filter(steps["value"].is_null())
    shown = pl.concat([ends.drop_nulls("value"), steps]).sort("ts", maintain_order=True)
    return go.Scatter(
        x=clock_text(shown["ts"], view.timezone).to_list(),
        y=shown["value"].to_numpy(),
        hovertext=shown["text"].to_list(),
        name=name,
        hovertemplate=hover + "<extra></extra>",
        line={"shape": "hv", "width": 1.5},
        connectgaps=False,
        yaxis=yaxis,
    )


def rate_chart(
    frame: Frame,
    *,
    source: Source,
    trajectory: Subject | str | None = None,
    start: When | None = None,
    end: When | None = None,
    step_s: int | None = None,
    polls: pl.DataFrame | None = None,
    timezone: str = "UTC",
    theme: str | None = None,
    points: int = 2000,
) -> Figure:
    """Draw the annualised funding rate in force of one leg. Positive: longs pay shorts.

    ``frame`` has ``ts`` (s, Unix UTC) and ``funding_apr_pct`` (percent a year, simple, nullable),
    one row per time, as `toolkit.statistics.funding.rates_in_force.with_apr` adds it. The other
    parameters and the errors are those of `toolkit.charts.spread_chart`. Without rows in the window
    it is a sentence.

    >>> frame = pl.DataFrame({"ts": [0, 60], "funding_apr_pct": [10.0, 11.0]})
    >>> figure = rate_chart(frame, trajectory="snapshot-funding/BTC_USD:X.futures",
    ...                     source=Source("replay", "depeg"), start=0, end=120)
    >>> figure.layout.title.text, len(figure.data)
    ('BTC_USD: funding rate in force', 1)
    """
    frame, trajectory = with_subject(frame, trajectory, Family.FUNDING)
    window = window_of(frame, start, end)
    view = View.of(trajectory, window, source=source, timezone=timezone, theme=theme)
    columns = ["funding_apr_pct"]
    rows = rows_to_draw(frame, columns, view.window, step_s=step_s, points=points, polls=polls)
    if rows.total == 0:
        return nothing(view, trajectory)
    line = gapped_line(
        rows, columns[0], name="rate in force", hover="%{y:+,.2f} % a year", timezone=timezone
    )
    axis = {"title": {"text": "% a year, positive: longs pay"}, "zeroline": True}
    heading = view.layout(f"{trajectory.symbol}: funding rate in force", rows.words)
    return Figure([line], layout=heading).update_layout(
        height=480, hovermode="x unified", yaxis=axis
    )
