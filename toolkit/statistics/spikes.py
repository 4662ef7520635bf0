"""Spikes: observations beyond six median absolute deviations of the median."""

from __future__ import annotations

import polars as pl

_DEVIATIONS = 6 * 1.482602218505602  # of a normal's standard deviations, as `spread_mad` has them


def without_spikes(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a chunk's rows by the columns ``number`` and ``value``.

    Returns one row per ``number`` with ``spike_share``: the part of the squared distances from the
    median that is the spikes', null where nothing varies. And, of those that have spikes, the rows
    that are none. Where more than half of the values equal the median, the deviation is that of the
    others.

    >>> rows = pl.DataFrame({"number": [0] * 5, "value": [0.0, 1.0, 2.0, 3.0, 30.0]})
    >>> share, kept = without_spikes(rows)
    >>> share["spike_share"].round(3).item(), kept["value"].to_list()
    (0.992, [0.0, 1.0, 2.0, 3.0])
    """
    apart = pl.col("apart")
    found = rows.with_columns(
        (pl.col("value") - pl.col("value").median().over("number")).abs().alias("apart")
    ).with_columns(
        pl.coalesce(
            each.median().over("number").replace(0.0, None)
            for each in (apart, pl.when(apart > 0).then(apart))
        ).alias("deviation")
    )
    spike = (apart > _DEVIATIONS * pl.col("deviation")).fill_null(value=False)
    squares = apart.pow(2)
    found = found.with_columns(spike.alias("spike"))
    shares = found.group_by("number", maintain_order=True).agg(
        pl.when(squares.sum() > 0)
        .then(squares.filter(pl.col("spike")).sum() / squares.sum())
        .alias("spike_share")
    )
    kept = found.filter(pl.col("spike").any().over("number") & ~pl.col("spike"))
    return shares, kept.select(rows.columns)
