"""What tells groups of events apart: the hour of the opening, the exchanges, the size."""

from __future__ import annotations

import polars as pl

from toolkit.statistics.contract import checked_types

_LIVES = {"t_open": "Int64", "legs": "String", "size": "Float64"}
_BANDS = pl.Series(
    [0.0, *(float(f"{step}e{power}") for power in range(-4, 6) for step in (1, 2, 5))]
)
"""Where the bands of sizes begin, written out so that 0.2 is in the band from 0.2."""


def with_groups(lives: pl.DataFrame) -> pl.DataFrame:
    """Add to lifecycles the columns by which events are compared, beside their symbol and legs.

    ``lives`` are rows of `event_lifecycles`. They keep their order, and three columns are added:

    =========  =======  ======  ==================================================================
    column     type     unit    meaning
    =========  =======  ======  ==================================================================
    hour       Int64    h       hour of the opening, UTC, 0 to 23. Null where it was not seen
    exchange   String   none    of a splash its exchange. Of two legs both in alphabetical order, so
                                that an event is in one group: "X + Y", or "X" where both are on it
    size_from  Float64  as      where the band of the size at the opening begins: 1, 2 or 5 times a
                        size    power of ten, below 0.0001 it is 0. Without its sign. The size at
                                the opening, not the largest: an event that lives longer has more
                                time to grow. Null without a size, or where no opening was seen
    =========  =======  ======  ==================================================================

    Raises
    ------
    InputError
        A column is missing or of another type.

    Examples
    --------
    >>> lives = pl.DataFrame({"t_open": [90_000], "legs": ["Y.spot → X.futures"], "size": [2.9]})
    >>> with_groups(lives).select("hour", "exchange", "size_from").row(0)
    (1, 'X + Y', 2.0)
    """
    checked_types(lives, _LIVES, parameter="lives")
    exchange = pl.element().str.replace(r"\.[^.]*$", "")
    size = lives["size"].abs()
    band = _BANDS.gather(_BANDS.search_sorted(size.fill_null(0.0), side="right") - 1)
    return lives.with_columns(
        (pl.col("t_open") // 3_600 % 24).alias("hour"),
        pl.col("legs")
        .str.split(" → ")
        .list.eval(exchange.unique().sort())
        .list.join(" + ")
        .alias("exchange"),
        pl.when(size.is_not_null()).then(band).alias("size_from"),
    )
