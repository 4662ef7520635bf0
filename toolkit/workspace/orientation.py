"""Orientation of pairs: as held, and where both ways are held as asked for.

Nothing held is turned. A list that names a pair the other way round, such as a snapshot or an
event, is turned to how the pair is held, so that one pair has one sign on all faces.
"""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from toolkit.market import swapped
from toolkit.store.reading.lookup import held_key

_KEPT = "snapshot-spread/"


def held_stream(key: str, held: Collection[str]) -> tuple[str, bool] | None:
    """Return the stream that shows a pair, and whether its legs are the other way round.

    What was loaded comes before what is kept from snapshots. None where neither is held.

    >>> held_stream("A_B:X.spot:Y.spot", {"A_B:Y.spot:X.spot"})
    ('A_B:Y.spot:X.spot', True)
    """
    for prefix in ("", _KEPT):
        if (found := held_key(f"{prefix}{key}", held)) is not None:
            return found, found != f"{prefix}{key}"
    return None


def shown_as_held(rows: pl.DataFrame, held: Collection[str], *values: str) -> pl.DataFrame:
    """Turn the rows of pairs that are held the other way round alone, as `held_stream` has it.

    ``rows`` has trajectory, buy and sell (String), and ``values`` are the columns (bps of the log
    spread) whose sign changes. Added is ``stream``, null where the pair is not held.

    >>> rows = pl.DataFrame({"trajectory": ["A_B:X.spot:Y.spot"], "buy": ["X.spot"],
    ...                      "sell": ["Y.spot"], "bps": [30.0]})
    >>> shown_as_held(rows, {"A_B:Y.spot:X.spot"}, "bps").row(0)
    ('A_B:Y.spot:X.spot', 'Y.spot', 'X.spot', -30.0, 'A_B:Y.spot:X.spot')
    """
    asked = rows["trajectory"]
    found = [held_stream(key, held) for key in asked]
    turned = pl.Series([bool(each and each[1]) for each in found], dtype=pl.Boolean)
    keys = [swapped(key) if turns else key for key, turns in zip(asked, turned, strict=True)]
    other = pl.lit(turned)
    return rows.with_columns(
        pl.Series("trajectory", keys, pl.String),
        pl.when(other).then("sell").otherwise("buy").alias("buy"),
        pl.when(other).then("buy").otherwise("sell").alias("sell"),
        *(pl.when(other).then(-pl.col(name)).otherwise(name).alias(name) for name in values),
        pl.Series("stream", [each and each[0] for each in found], pl.String),
    )


def each_pair_once(rows: pl.DataFrame, ts: str) -> pl.DataFrame:
    """Keep one row of each two legs, whichever is bought: that of the newest observation.

    Of several with the same ``ts`` (column, s UTC) the first stays. The newest row comes first.

    >>> rows = pl.DataFrame({"symbol": ["A_B", "A_B"], "buy": ["X.spot", "Y.dex"],
    ...     "sell": ["Y.dex", "X.spot"], "t_last": [60, 120]})
    >>> each_pair_once(rows, "t_last").rows()
    [('A_B', 'Y.dex', 'X.spot', 120)]
    """
    first, second = pl.min_horizontal("buy", "sell"), pl.max_horizontal("buy", "sell")
    newest = rows.sort(ts, descending=True, nulls_last=True, maintain_order=True)
    return newest.filter(pl.struct("symbol", first, second.alias("_second")).is_first_distinct())
