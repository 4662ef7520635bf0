"""How far prices have moved within a short time: what a splash is measured by."""

from __future__ import annotations

import polars as pl

from toolkit.columns import described
from toolkit.statistics.contract import (
    Frame,
    checked_columns,
    checked_times,
    collected,
    whole_number,
)
from toolkit.statistics.observations import observed, ordered

MOVE = "move_bps"
"""The column of moves."""

PUMP, DUMP = ":pump", ":dump"
"""What follows on the trajectory of a price in that of its rises, and of its falls."""


@described("price_moves.price_moves")
def price_moves(prices: Frame, move_s: int) -> pl.DataFrame:
    """Compute how far each price lies above the lowest, and below the highest, of a time before.

    ``prices`` have ``trajectory`` (String), ``ts`` (Int64, s, Unix UTC) and ``price`` (Float64), in
    any order. The time is ``[ts - move_s, ts]``, both ends inside. There are two rows per row of
    prices, sorted by trajectory and time:

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type. A trajectory or ts is null, or two rows share both.
        ``move_s`` is no whole number of seconds from 1.

    Examples
    --------
    >>> prices = pl.DataFrame({"trajectory": ["A_B:X.spot"] * 3, "ts": [0, 60, 120],
    ...     "price": [100.0, 103.0, 102.0]})
    >>> price_moves(prices, 60).select("trajectory", pl.col("move_bps").round(1)).rows()[4:]
    [('A_B:X.spot:pump', 300.0), ('A_B:X.spot:pump', 0.0)]
    """
    move_s = whole_number("move_s", move_s, 1, "seconds, at least 1")
    checked_columns(prices, "price")
    price = observed("price")
    positive = pl.when(price > 0).then(price).alias("price")
    rows = collected(prices.lazy().select("trajectory", "ts", positive))
    checked_times(rows)
    extremes = [
        rolling("ts", window_size=f"{move_s}i", closed="both", min_samples=2)
        .over("trajectory")
        .alias(name)
        for name, rolling in (
            ("lowest", pl.col("price").rolling_min_by),
            ("highest", pl.col("price").rolling_max_by),
        )
    ]
    rows = ordered(rows).with_columns(extremes)
    kinds = {
        DUMP: 1e4 * (1 - pl.col("price") / pl.col("highest")),
        PUMP: 1e4 * (pl.col("price") / pl.col("lowest") - 1),
    }
    found = [
        rows.select(pl.col("trajectory") + kind, "ts", move.alias(MOVE))
        for kind, move in kinds.items()
    ]
    return pl.concat(found).sort("trajectory", "ts")
