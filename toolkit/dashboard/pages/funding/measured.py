"""Figures of all pairs on the page Funding, cached until a pair's own rows change."""

from __future__ import annotations

import polars as pl

from toolkit.dashboard.reading import StoreState, StreamVersion, measure_each
from toolkit.intervals import Interval
from toolkit.market import Family
from toolkit.series.held_prices import HeldPrices
from toolkit.statistics.families import FAMILIES
from toolkit.statistics.funding import carry, heatmap, summary
from toolkit.statistics.funding.carry_marks import BASIS
from toolkit.statistics.funding.settlements import LEGS

LENGTHS_D = (1, 7, 30)
"""How far back pairs are measured (days)."""

_HOUR_S, _DAY_S = 3_600, 86_400
_SUMMED = (
    *("trajectory", "window_start", "window_end", "coverage"),
    *("funding_bps", "funding_reason", "funding_apr_pct", "funding_apr_reason"),
    "implausible",
)


def measure_carried(held: StoreState, *, funding_only: bool = False) -> pl.DataFrame:
    """Measure the carry of each stored pair over its last 1, 7 and 30 days.

    One row per pair and length: trajectory, days, the columns of
    `toolkit.statistics.funding.summary` that ``net_summary`` reads, coverage and implausible.
    ``largest_fall_bps`` is the maximum drawdown of cumulative funding in the 30 days where both
    legs are covered, ``largest_rise_bps`` that of the opposite orientation. A pair's time ends
    where both legs have settled, at most a day before the newest settlement of all.
    """
    of_two = pl.col("stream").str.count_matches(":") == 2
    pairs = held.streams.filter(pl.col("rows") > 0, of_two, kind=Family.FUNDING.value)
    newest = pairs["last_ts"].drop_nulls().sort()
    end = (int(newest[-1]) // _HOUR_S + 1) * _HOUR_S if newest.len() else _HOUR_S
    window = Interval(end - (LENGTHS_D[-1] + 1) * _DAY_S, end)
    read = FAMILIES[Family.FUNDING].read(window)
    keys = pairs.filter(pl.col("rows") > 0)["stream"].to_list()
    of_prices = {} if funding_only else {key: held.price_keys(key, read) for key in keys}
    versions: dict[str, StreamVersion] = {
        key: (
            *held.versions[key],
            *(str(held.versions.get(each)) for each in of_prices.get(key, ())),
        )
        for key in keys
    }
    return measure_each(
        held,
        Family.FUNDING.value,
        window,
        "funding only" if funding_only else "carried",
        _carried,
        versions=versions,
        held_prices=None if funding_only else held.prices,
    )


def measure_time(held: StoreState, window: Interval, bucket: str) -> pl.DataFrame:
    """Measure `toolkit.statistics.funding.heatmap` of each pair and of each of its legs.

    ``of`` is pair, buy or sell: a leg is short, so that it receives a positive rate. The trajectory
    is the pair's.
    """

    def measured(rows: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
        found = [heatmap(rows, start, end, bucket=bucket).with_columns(of=pl.lit("pair"))]
        for leg in LEGS:
            alone = rows.with_columns(
                sell_rate=pl.col(f"{leg}_rate"),
                sell_interval_hours=pl.col(f"{leg}_interval_hours"),
                buy_rate=pl.lit(0.0),
                buy_interval_hours=pl.lit(None, pl.Float64),
            )
            found.append(heatmap(alone, start, end, bucket=bucket).with_columns(of=pl.lit(leg)))
        return pl.concat(found)

    return measure_each(held, Family.FUNDING.value, window, f"time {bucket}", measured)


def settled_until(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the last time at which both legs of each pair had settled: trajectory, end (s UTC).

    A leg that never settles is ignored.
    """
    last = (pl.col("ts").filter(pl.col(f"{leg}_rate").is_finite()).max() for leg in LEGS)
    return rows.group_by("trajectory", maintain_order=True).agg(
        pl.min_horizontal(last).alias("end")
    )


def _carried(
    rows: pl.DataFrame, start: int, newest: int, *, held_prices: HeldPrices | None
) -> pl.DataFrame:
    """Measure together the pairs with the same end. ``held_prices`` None leaves the basis out."""
    del start  # a pair's start depends on its own end
    late = (pl.col("end") < newest - _DAY_S - _HOUR_S) | pl.col("end").is_null()
    ends = settled_until(rows).with_columns(end=pl.when(late).then(newest).otherwise("end"))
    parts = rows.join(ends, on="trajectory", maintain_order="left").partition_by(
        "end", as_dict=True
    )
    found = []
    for (end,), part in parts.items() or [((newest,), rows)]:
        begin = end - LENGTHS_D[-1] * _DAY_S
        falls = largest_falls(carry(part, begin, end, min_coverage=0.0, funding_only=True))
        windows = {days: Interval(end - days * _DAY_S, end) for days in LENGTHS_D}
        known = None
        if held_prices is not None:
            known = held_prices.at_ends(part["trajectory"].unique(), *windows.values())
        for days, window in windows.items():
            summed = summary(part, *window, prices=known, funding_only=held_prices is None)
            summed = summed.select(*_SUMMED, *(BASIS if held_prices is not None else ()))
            summed = summed.with_columns(days=pl.lit(days, pl.Int64))
            found.append(summed.join(falls, on="trajectory", how="left", maintain_order="left"))
    return pl.concat(found)


def largest_falls(carried: pl.DataFrame) -> pl.DataFrame:
    """Return the largest fall of cumulative funding from an earlier maximum, and largest rise.

    ``carried`` is of `toolkit.statistics.funding.carry`, from 0 at the opening. Columns:
    trajectory, largest_fall_bps and largest_rise_bps, both 0 or more.
    """
    known = pl.concat([pl.lit(0.0), pl.col("funding_bps").sort_by("ts")])
    return (
        carried.drop_nulls("funding_bps")
        .group_by("trajectory")
        .agg(
            (known.cum_max() - known).max().alias("largest_fall_bps"),
            (known - known.cum_min()).max().alias("largest_rise_bps"),
        )
    )
