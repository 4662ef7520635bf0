"""Marks on a spread's line: thresholds, and the events of its legs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl

from toolkit.charts.lines import downsample, require_columns
from toolkit.charts.theme import FAMILY_COLOURS, MARK_COLOUR
from toolkit.charts.time_axis import clock_text
from toolkit.charts.view import Subject, View
from toolkit.errors import InputError
from toolkit.foreign import html
from toolkit.intervals import Interval, clip, union
from toolkit.market import EventFamily, Pair
from toolkit.statistics.core.contract import checked_frame, real_number
from toolkit.statistics.events import event_lifecycles
from toolkit.statistics.events.documents import opens
from toolkit.statistics.spread import with_spread

_THRESHOLDS = "a list of finite numbers (log bps), e.g. [25]"
_GRAIN = 1000
"""A chart is about this many pixels wide."""
_COARSE_GRAIN = 300
"""The most shades, as each is an object in the browser."""


def threshold_line(thresholds_bps: Sequence[float], view: View) -> go.Scatter:
    """Draw all thresholds as one dashed line over the window, named with their values."""
    values = [real_number("thresholds_bps", value, _THRESHOLDS) for value in thresholds_bps]
    since, until = clock_text(pl.Series(view.window), view.timezone)
    return go.Scatter(
        x=[since, until, None] * len(values),
        y=[y for value in values for y in (value, value, None)],
        name=f"threshold {', '.join(f'{value:+,.10g}' for value in values)} bps",
        mode="lines",
        line={"dash": "dash", "width": 1.2, "color": MARK_COLOUR},
        hoverinfo="skip",
        yaxis="y2",
    )


def checked_thresholds(thresholds_bps: object) -> None:
    """Raise `InputError` unless given a list, for example for a bare number."""
    if isinstance(thresholds_bps, str) or not hasattr(thresholds_bps, "__len__"):
        raise InputError("thresholds_bps", thresholds_bps, _THRESHOLDS)


def events_of(events: pl.DataFrame, trajectory: Subject) -> pl.DataFrame:
    """Select the spread documents between the trajectory's two legs, and add ``sign``.

    The sign is -1 for an event that buys the trajectory's sell leg.
    """
    legs = ("buy_exchange", "buy_market", "sell_exchange", "sell_market")
    needed = ("family", "symbol", *legs)
    checked_frame(events, "events")
    if missing := [f"no {name}" for name in needed if name not in events.columns]:
        whole = "documents as rail.events() gives them, with " + ", ".join(needed)
        raise InputError("events", ", ".join(missing), whole)
    if isinstance(trajectory, Pair) and trajectory.buy.symbol != trajectory.sell.symbol:
        return events.clear().with_columns(sign=pl.lit(1))  # an event is of one symbol
    ends = (trajectory.legs[0], trajectory.legs[-1])
    buy, sell = ((leg.exchange, leg.market.value) for leg in ends)

    def between(values: tuple[str, ...]) -> pl.Expr:
        return pl.all_horizontal(
            pl.col(name) == value for name, value in zip(legs, values, strict=True)
        )

    sign = pl.when(between((*buy, *sell))).then(1).when(between((*sell, *buy))).then(-1)
    mine = (pl.col("family") == EventFamily.SPREAD) & (pl.col("symbol") == str(trajectory.symbol))
    return events.filter(mine).with_columns(sign.alias("sign")).filter(pl.col("sign").is_not_null())


def lifetime_shapes(
    events: pl.DataFrame, view: View, logs: pl.DataFrame | None = None
) -> list[dict[str, Any]]:
    """Shade the time with an event open in the lower plot.

    An event without an opening is shaded from the window's start, one without a close to where its
    log is known, by ``logs``. One that opened again without a known end is not shaded. Stretches
    less than a pixel apart are joined.
    """
    ends_unknown = (pl.col("kind") == "reopened") & pl.col("duration_s").is_null()
    found = event_lifecycles(events, *view.window, logs=logs).filter(~ends_unknown)
    opened = pl.col("t_open").fill_null(view.window.start)
    until = pl.max_horizontal(
        opened,
        pl.coalesce(
            "t_close", pl.col("t_open") + pl.col("duration_s").ceil().cast(pl.Int64), "known_until"
        ),
    )
    spans = found.select(opened.alias("start"), until)
    return _shades(spans, view, _GRAIN, FAMILY_COLOURS[EventFamily.SPREAD])


def episode_shapes(episodes: pl.DataFrame, view: View) -> list[dict[str, Any]]:
    """Shade `toolkit.statistics.spread.episodes`, joined where they are a few pixels apart."""
    checked_frame(episodes, "episodes")
    require_columns(episodes, ["start_ts", "end_ts"])
    return _shades(episodes.select("start_ts", "end_ts"), view, _COARSE_GRAIN, MARK_COLOUR)


def _shades(spans: pl.DataFrame, view: View, grain: int, colour: str) -> list[dict[str, Any]]:
    """Shade spans of time, joined where nearer than one ``grain``-th of the window."""
    grain_s = view.window.length_s // grain
    widened = spans.with_columns(pl.nth(1) + grain_s)
    joined = [Interval(start, end - grain_s) for start, end in union(widened.iter_rows())]
    stretches = clip([(start, max(end, start + 1)) for start, end in joined], view.window)
    since, until_text = (
        clock_text(pl.Series([s[side] for s in stretches], dtype=pl.Int64), view.timezone)
        for side in (0, 1)
    )
    fixed = {
        "type": "rect",
        "xref": "x",
        "yref": "y2 domain",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "fillcolor": colour,
        "opacity": 0.18,
        "line": {"width": 0},
    }
    return [fixed | {"x0": x0, "x1": x1} for x0, x1 in zip(since, until_text, strict=True)]


def opened_marks(events: pl.DataFrame, view: View, points: int) -> go.Scatter:
    """Mark where each event opened, at its size on the axis of the spread (log bps)."""
    size, forward = pl.col("magnitude_pct"), pl.col("sign") == 1
    legs = [(100 + size, forward), (pl.lit(100.0), ~forward)]
    prices = {
        "sell_price": pl.coalesce(pl.when(held).then(price) for price, held in legs),
        "buy_price": pl.coalesce(pl.when(~held).then(price) for price, held in legs),
    }
    inside = pl.col("ts").is_between(*view.window, closed="left")
    opened = events.filter(opens() & inside)
    placed = with_spread(opened.with_columns(**prices)).drop_nulls("spread_log_bps")
    shown = downsample(placed, "spread_log_bps", points=points)
    drawn = f"{shown.height:,} of " if shown.height < opened.height else ""
    return go.Scatter(
        x=clock_text(shown["ts"], view.timezone).to_list(),
        y=shown["spread_log_bps"].to_numpy(),
        name=f"{drawn}{opened.height:,} event{'s' * (opened.height != 1)} opened",
        mode="markers",
        marker={
            "color": FAMILY_COLOURS[EventFamily.SPREAD],
            "size": 7,
            "symbol": "diamond",
            "line": {"width": 0},
        },
        hovertext=[
            f"{html(str(kind), 80)} {pct:,.4g} %{'' if sign == 1 else ', buying the sell leg'}"
            for kind, pct, sign in shown.select("event_type", "magnitude_pct", "sign").iter_rows()
        ],
        hovertemplate="%{hovertext}<extra></extra>",
        yaxis="y2",
    )
