"""The table of spreads: one row a trajectory with its statistics, and the filters over it."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import polars as pl

from toolkit.cards import duration
from toolkit.market import Family, Trajectory
from toolkit.statistics.contract import Reason


class Filters(NamedTuple):
    """What is shown: nothing chosen of a kind is all of it.

    A trajectory has an exchange or a market where either leg has it. ``at_least`` is of the last
    spread's size (log bps), on either side of zero.
    """

    symbols: tuple[str, ...] = ()
    exchanges: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    at_least: float = 0.0


def spread_names(keys: pl.Series) -> pl.DataFrame:
    """Parse the keys of spreads: trajectory, symbol, buy, sell, type and exchanges (list).

    >>> spread_names(pl.Series(["BTC_USD:X.spot:Y.dex"])).row(0)
    ('BTC_USD:X.spot:Y.dex', 'BTC_USD', 'X.spot', 'Y.dex', 'spot/dex', ['X', 'Y'])
    """
    known = [Trajectory.parse(key, Family.SPREAD) for key in keys]
    return pl.DataFrame(
        {
            "trajectory": [t.key for t in known],
            "symbol": [str(t.symbol) for t in known],
            "buy": [str(t.buy) for t in known],
            "sell": [str(t.sell) for t in known],
            "type": [f"{t.buy.market}/{t.sell.market}" for t in known],
            "exchanges": [[leg.exchange for leg in t.legs] for t in known],
        },
        schema_overrides={"exchanges": pl.List(pl.String)},
    )


def spread_lines(
    catalogue: pl.DataFrame,
    summary: pl.DataFrame,
    last: pl.DataFrame,
    above: pl.DataFrame,
    *,
    asked: Collection[str],
    now: int,
) -> pl.DataFrame:
    """Build one row per spread trajectory of the catalogue, the largest last spread first.

    ``catalogue`` is of `toolkit.store.Store`. ``summary`` and ``above`` are of
    `toolkit.statistics.spread`, over one window, and lack a trajectory without a row in it.
    ``last`` is the newest observation of each: trajectory, ts (s UTC), spread_log_bps. ``asked``
    has the trajectories that were asked for in the window. ``now`` is the service's clock (s).

    Columns: trajectory, symbol, buy, sell, type, exchanges (list), last_log_bps, last_ts,
    mean_log_bps, std_log_bps, half_life_s, above_share (of the time observed), n, coverage
    (fraction of the window), age_s (from the newest row's end to ``now``) and reason (why a number
    is null, "" where none is).
    """
    spreads = catalogue.filter(kind=Family.SPREAD.value).rename({"stream": "trajectory"})
    ended = pl.col("last_ts") + pl.col("step_s").fill_null(0)
    ages = spreads.select("trajectory", age_s=(now - ended).clip(lower_bound=0))
    measured = summary.select(
        "trajectory",
        "n",
        "coverage",
        mean_log_bps="spread_mean_log_bps",
        std_log_bps="spread_std_log_bps",
        half_life_s="half_life_s",
        reason=pl.coalesce("moments_reason", "half_life_reason"),
    )
    newest = last.select("trajectory", last_log_bps="spread_log_bps", last_ts="ts")
    found = spread_names(spreads["trajectory"])
    for part in (measured, newest, above.select("trajectory", above_share="time_above_share")):
        found = found.join(part, on="trajectory", how="left", maintain_order="left")
    nothing = pl.col("n").fill_null(0) == 0
    words = {reason.value: reason.words for reason in Reason}
    words[Reason.BELOW_STEP.value] = (
        f"half-life {Reason.BELOW_STEP.in_place}: {Reason.BELOW_STEP.words}"
    )
    return (
        found.join(ages, on="trajectory", how="left", maintain_order="left")
        .with_columns(
            n=pl.col("n").fill_null(0),
            reason=pl.when(nothing)
            .then(
                pl.when(pl.col("trajectory").is_in(list(asked)))
                .then(pl.lit("asked, no observation in the window"))
                .otherwise(pl.lit("never asked for in the window"))
            )
            .otherwise(pl.col("reason").replace_strict(words, default=pl.col("reason")))
            .fill_null(""),
        )
        .sort(
            pl.col("last_log_bps").abs(),
            "trajectory",
            descending=[True, False],
            nulls_last=True,
        )
    )


def filtered(lines: pl.DataFrame, filters: Filters) -> pl.DataFrame:
    """Select the rows that pass the filters, in their order.

    >>> lines = pl.DataFrame({"symbol": ["A_B", "C_D"], "exchanges": [["X"], ["Y", "Z"]],
    ...                       "type": ["spot/spot"] * 2, "last_log_bps": [-30.0, None]})
    >>> filtered(lines, Filters(exchanges=("Z",)))["symbol"].to_list()
    ['C_D']
    >>> filtered(lines, Filters(at_least=20))["symbol"].to_list()
    ['A_B']
    """
    keep = pl.lit(value=True)
    if filters.symbols:
        keep &= pl.col("symbol").is_in(filters.symbols)
    if filters.exchanges:
        keep &= pl.col("exchanges").list.set_intersection(list(filters.exchanges)).list.len() > 0
    if filters.types:
        keep &= pl.col("type").is_in(filters.types)
    if filters.at_least:
        keep &= pl.col("last_log_bps").abs() >= filters.at_least
    return lines.filter(keep)


def shown_lines(lines: pl.DataFrame, above_bps: float) -> pl.DataFrame:
    """Build the page's table from the rows: headings with units, times in words.

    The half-life is in minutes, so that a column sorts by length.
    """
    return lines.select(
        pl.lit("Open").alias(""),
        "symbol",
        pl.col("last_log_bps").alias("last (log bps)"),
        "buy",
        "sell",
        pl.col("mean_log_bps").alias("mean"),
        pl.col("std_log_bps").alias("std. dev."),
        (pl.col("half_life_s") / 60).alias("half-life (min)"),
        (100 * pl.col("above_share")).alias(f"≥ {above_bps:g} (% of time)"),
        "n",
        (100 * pl.col("coverage")).alias("coverage (%)"),
        pl.Series(
            "age",
            [None if s is None else duration(s) for s in lines["age_s"]],
            dtype=pl.String,
        ),
        pl.col("reason").replace("", None).alias("why a number is missing"),
    )
