"""Funding through time: a row for each symbol, leg or pair that is held."""

from __future__ import annotations

import polars as pl

from toolkit.cards import duration
from toolkit.charts import funding_heatmap
from toolkit.charts.heatmap import MOST_CELLS
from toolkit.dashboard.export import hand_over
from toolkit.dashboard.link import PRESETS
from toolkit.dashboard.loads import FUNDING, offer
from toolkit.dashboard.pages.funding.choice import ROWS, FundingChoice
from toolkit.dashboard.pages.funding.measured import measure_time
from toolkit.dashboard.screen import Screen, st
from toolkit.dashboard.shell import PageShell, draw
from toolkit.foreign import Markdown
from toolkit.intervals import Interval
from toolkit.market import Family, Market, Trajectory
from toolkit.statistics.families import extent_of

_HOUR_S = 3_600
_BUCKETS_S = {f"{hours}h": hours * _HOUR_S for hours in (1, 4, 8, 24, 168, 672)}
_FINEST = {"24 hours": "1h", "7 days": "4h", "30 days": "8h", "All": "24h"}
_CELL = ("trajectory", "ts", "funding_apr_pct", "coverage", "window_start", "window_end")
_ROW_PX, _AROUND_PX, _LEAST_PX = 24, 120, 220
_HELP = {
    "symbols": Markdown("Mean of the legs of a symbol that are known in a bucket, each alike."),
    "legs": Markdown("Above 0 longs pay shorts."),
    "pairs": Markdown("Above 0 the pair receives: long its first leg, short its second."),
}
_SETTLED = Markdown(
    "By settled rates, each over the time that it accrued. The colours are fixed, and a cell "
    "without fill is not known."
)


def show_time(shell: PageShell, bar: Screen, pairs: pl.DataFrame, asked: FundingChoice) -> None:
    """Draw the heat map, and offer its cells as files in the bar.

    ``pairs`` are the funding streams that are held.
    """
    if pairs["last_ts"].drop_nulls().is_empty():
        offer(shell.held, Markdown("No pair's funding is held."), FUNDING, part="time")
        return
    window, bucket = time_buckets(pairs, asked.preset)
    rows = heat_rows(measure_time(shell.held, window, bucket), asked.rows)
    rows = shell.kept(rows)
    n = rows["trajectory"].n_unique()
    words = Markdown("**Settled funding** · {:,} {}, means of {}, {} to {}")
    moments = map(shell.moment, window)
    st.markdown(
        words.format(n, ROWS[asked.rows].lower(), duration(_BUCKETS_S[bucket]), *moments),
        help=Markdown("{} {}").format(_HELP[asked.rows], _SETTLED),
    )
    cells = rows.select("symbol", *_CELL, bucket=pl.lit(bucket), rows=pl.lit(asked.rows))
    name = f"funding_{asked.rows}_{bucket}_{window.end}"
    hand_over(bar, cells, shell.held.source, name, None)
    figure = funding_heatmap(
        rows, source=shell.held.source, unit=asked.unit, timezone=shell.timezone
    )
    figure.update_traces(showscale=True)
    figure.update_layout(height=max(_LEAST_PX, _AROUND_PX + _ROW_PX * n))
    draw(figure, key="time", headed=False)


def time_buckets(pairs: pl.DataFrame, preset: str) -> tuple[Interval, str]:
    """Choose the window up to the newest settlement, and the length of its buckets.

    The buckets are the finest of which a heat map of all legs and pairs takes that many.

    >>> facts = {"kind": ["funding"], "first_ts": [28800], "last_ts": [864000], "step_s": [28800]}
    >>> pairs = pl.DataFrame({"stream": ["a"]} | facts)
    >>> time_buckets(pairs, "24 hours"), time_buckets(pairs, "All")
    ((Interval(start=777600, end=864000), '1h'), (Interval(start=0, end=864000), '24h'))
    """
    settled = extent_of(pairs.iter_rows(named=True))
    assert settled is not None  # a pair has settled
    first, last = settled
    length_s = PRESETS[preset] or settled.length_s
    names = list(_BUCKETS_S)
    for bucket in names[names.index(_FINEST[preset]) :]:
        size = _BUCKETS_S[bucket]
        if 2 * pairs.height * (length_s // size + 2) <= MOST_CELLS:
            break
    end = -(-last // size) * size
    begin = first if PRESETS[preset] is None else end - length_s
    return Interval(begin // size * size, end), bucket


def heat_rows(measured: pl.DataFrame, rows: str) -> pl.DataFrame:
    """Select the rows of a heat map, with the symbol of each: of symbols, legs or pairs.

    ``measured`` is of `toolkit.dashboard.pages.funding.measured.measure_time`. A leg of several
    pairs is one row: of each bucket the cell that is covered most.
    """
    if rows == "pairs":
        found = measured.filter(of="pair")
        symbol = {key: str(Trajectory.parse(key).symbol) for key in found["trajectory"].unique()}
        return found.with_columns(symbol=pl.col("trajectory").replace_strict(symbol))
    parts = []
    for (key, of), part in (
        measured.filter(pl.col("of") != "pair")
        .partition_by("trajectory", "of", as_dict=True, maintain_order=True)
        .items()
    ):
        pair = Trajectory.parse(str(key), Family.FUNDING)
        leg = pair.sides.get(str(of))
        if leg is not None and leg.market is not Market.SPOT:
            names = {"symbol": str(pair.symbol), "trajectory": f"{pair.symbol}:{leg}"}
            parts.append(part.with_columns(**{name: pl.lit(text) for name, text in names.items()}))
    legs = pl.concat(parts or [measured.clear().with_columns(symbol=pl.lit(""))])
    legs = legs.sort("coverage", descending=True).unique(
        ["trajectory", "ts"], keep="first", maintain_order=True
    )
    legs = legs.sort("trajectory", "ts")
    if rows == "legs":
        return legs
    same = ("window_start", "window_end")
    return (
        legs.group_by("symbol", "ts")
        .agg(pl.col("funding_apr_pct", "coverage").mean(), pl.col(*same).first())
        .with_columns(trajectory="symbol")
        .sort("trajectory", "ts")
    )
