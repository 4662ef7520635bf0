"""Groups of events by the hour of the opening, the exchanges and the size."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from toolkit.analyses.parameters import GROUPS, Parameter
from toolkit.columns import described
from toolkit.statistics.core.contract import checked_types

GROUP_COLUMNS = tuple(GROUPS.values())

BY_ALL = Parameter("A row for each of these groups.", choices=tuple(GROUPS))

BY_OPENING = Parameter("A row for each of these groups.", choices=tuple(GROUPS)[:-1])
"""The same without the hour, for rates."""

_LIVES = {"t_open": "Int64", "legs": "String", "size": "Float64"}
_BANDS = pl.Series(
    [0.0, *(float(f"{step}e{power}") for power in range(-4, 6) for step in (1, 2, 5))]
)
"""Lower ends of the bands of sizes, as decimals so that 0.2 is in the band from 0.2."""


@described("events.with_groups")
def with_groups(lives: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of `event_lifecycles` the columns by which events are compared.

    Rows keep their order. The columns are:

    {columns}

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


def group_columns(groups: str | Iterable[str]) -> list[str]:
    """Return the columns of groups: for the size at the opening its band.

    >>> group_columns(["size", "symbol", "peak"])
    ['size_from', 'symbol', 'peak']
    """
    named = [groups] if isinstance(groups, str) else groups
    return [GROUPS.get(each, each) for each in named]
