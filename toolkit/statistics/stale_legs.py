"""Closes of a leg that repeat the one before, and stretches of them while the other leg moves."""

from __future__ import annotations

import polars as pl

LEGS = ("buy", "sell")


def stale_legs(rows: pl.DataFrame, stale_s: int, stale_moves: int) -> pl.DataFrame:
    """Count the stale stretches of each leg, one row per number.

    ``rows`` are observations with ``number``, ``ts``, ``gap`` and both prices, sorted by number and
    time. A stretch is stale where it lasts longer than ``stale_s`` and the other leg moves at least
    ``stale_moves`` times in it.

    >>> rows = {"number": [0, 0, 0], "ts": [0, 60, 120], "gap": [False, False, None],
    ...         "buy_price": [1.0, 1.0, 1.0], "sell_price": [1.0, 2.0, 3.0]}
    >>> stale_legs(pl.DataFrame(rows), 60, 2).select("stale_buy_rows", "stale_sell_rows").row(0)
    (3, None)
    """
    found = rows.select(pl.col("number").unique(maintain_order=True))
    lasted = pl.col("ends") - pl.col("begins")
    for leg, other in (LEGS, LEGS[::-1]):
        stale = (
            _runs(rows, f"{leg}_price", f"{other}_price")
            .filter((lasted > stale_s) & (pl.col("moves") >= stale_moves))
            .group_by("number", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias(f"stale_{leg}_runs"),
                pl.col("rows").sum().cast(pl.Int64).alias(f"stale_{leg}_rows"),
                lasted.max().alias(f"stale_{leg}_longest_s"),
                pl.col("begins").first().alias(f"stale_{leg}_first_ts"),
            )
        )
        found = found.join(stale, on="number", how="left", maintain_order="left")
    return found


def _runs(rows: pl.DataFrame, leg: str, other: str) -> pl.DataFrame:
    """List the stretches of equal closes of a leg without a gap, and the other's moves in each.

    Columns: number, begins and ends (s, first and last row), rows, moves. A row without a close is
    in none.
    """
    number, price, beside = pl.col("number"), pl.col(leg), pl.col(other)
    after_gap = (number != number.shift(1)) | pl.col("gap").shift(1)
    begins = after_gap.fill_null(True) | price.ne_missing(price.shift(1))
    moved = (beside != beside.shift(1)).fill_null(False) & ~begins
    marked = rows.select(
        "number",
        "ts",
        price,
        first=begins,
        moves=moved.cast(pl.UInt32).cum_sum(),
        at=pl.int_range(pl.len()),
    )
    last = marked.filter(pl.col("first").shift(-1).fill_null(True))
    return (
        marked.filter("first")
        .select(
            "number",
            price,
            begins="ts",
            ends=last["ts"],
            rows=last["at"] - pl.col("at") + 1,
            moves=last["moves"] - pl.col("moves"),
        )
        .filter(price.is_not_null())
    )


def counted(name: str, which: pl.Expr) -> list[pl.Expr]:
    """Count the observations of which something is true, with the time of the first.

    >>> rows = pl.DataFrame({"ts": [0, 60], "high": [False, True]})
    >>> rows.select(counted("high", pl.col("high"))).row(0)
    (1, 60)
    """
    return [
        which.sum().cast(pl.Int64).alias(f"{name}_n"),
        pl.col("ts").filter(which).first().alias(f"{name}_first_ts"),
    ]


def with_repeats(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Mark the rows that come one step after another, and the closes of each leg among them.

    The columns are ``a_step_later``, of each leg ``buy_steps`` (both closes are known) and
    ``repeated_buy`` (they are equal), all Boolean. Of rows with ``number``, ``ts``, ``step_s`` and
    both prices, sorted by number and time.

    >>> rows = {"number": [0, 0], "ts": [0, 60], "step_s": [60] * 2, "buy_price": [1.0] * 2,
    ...         "sell_price": [1.0, 2.0]}
    >>> with_repeats(pl.LazyFrame(rows)).select("repeated_buy", "repeated_sell").collect().rows()
    [(False, False), (True, False)]
    """
    number = pl.col("number")
    a_step_later = (number == number.shift(1)) & (pl.col("ts").diff() == pl.col("step_s"))
    rows = rows.with_columns(a_step_later.fill_null(False).alias("a_step_later"))
    for leg in LEGS:
        price = pl.col(f"{leg}_price")
        before = price.shift(1)
        known = pl.col("a_step_later") & price.is_not_null() & before.is_not_null()
        repeated = known & (price == before).fill_null(False)
        rows = rows.with_columns(known.alias(f"{leg}_steps"), repeated.alias(f"repeated_{leg}"))
    return rows


def repeats() -> list[pl.Expr]:
    """Count of each leg the closes one step after another, and those that repeat it.

    The columns are ``rows_of_both``, ``buy_steps``, ``repeated_buy_n``, ``repeated_buy_first_ts``,
    and the last three of the sell leg. Of rows of `with_repeats`.

    >>> rows = {"number": [0, 0], "ts": [0, 60], "step_s": [60] * 2, "buy_price": [1.0] * 2,
    ...         "sell_price": [1.0, 2.0]}
    >>> found = with_repeats(pl.LazyFrame(rows)).select(repeats())
    >>> found.select("repeated_buy_n", "repeated_sell_n").collect().row(0)
    (1, 0)
    """
    both = pl.col("buy_price").is_not_null() & pl.col("sell_price").is_not_null()
    found = [both.sum().cast(pl.Int64).alias("rows_of_both")]
    for leg in LEGS:
        found += [
            pl.col(f"{leg}_steps").sum().cast(pl.Int64),
            *counted(f"repeated_{leg}", pl.col(f"repeated_{leg}")),
        ]
    return found
