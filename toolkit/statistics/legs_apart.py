"""Which leg is bought and which sold of legs that have a figure each: one rule, also for ties."""

from __future__ import annotations

import polars as pl


def lowest_leg(leg: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Build the expression of the leg with the lowest value of a group, the one to be long.

    Of equal values it is that of the first leg by name, in whatever order the rows come.

    >>> rows = pl.DataFrame({"leg": ["Z.futures", "X.futures"], "apr_pct": [5.0, 5.0]})
    >>> rows.select(lowest_leg(pl.col("leg"), pl.col("apr_pct"))).item()
    'X.futures'
    """
    return leg.sort_by(value, leg).first()


def highest_leg(leg: pl.Expr, value: pl.Expr) -> pl.Expr:
    """Build the expression of the leg with the highest value of a group, the one to be short.

    Of equal values it is that of the first leg by name, of all legs equal the second, so that it is
    never that of `lowest_leg`. A group of one leg has that leg.

    >>> rows = pl.DataFrame({"leg": ["Z.futures", "X.futures"], "apr_pct": [5.0, 5.0]})
    >>> rows.select(highest_leg(pl.col("leg"), pl.col("apr_pct"))).item()
    'Z.futures'
    """
    falling = leg.sort_by(value, leg, descending=[True, False])
    second = falling.get(1, null_on_oob=True)
    return (
        pl.when(falling.first() != lowest_leg(leg, value))
        .then(falling.first())
        .otherwise(pl.coalesce(second, falling.first()))
    )
