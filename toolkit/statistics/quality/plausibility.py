"""Implausible rows behind a figure: a break of level, a sentinel, too many rows, a high rate.

Nothing is left out for them: ``implausible`` names them beside the figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import polars as pl

from toolkit.columns import described
from toolkit.statistics.core.kernel import Statistic

MOST_RATE = 0.05
"""The largest rate per interval, as a fraction and on either side of 0, that is plausible."""

APART_BPS = 1_000.0
"""How far from a power of ten a ratio still is one (log bps)."""

LEVEL_BREAK, SENTINEL, MANY_ROWS, HIGH_RATE = (
    "level_break",
    "sentinel_price",
    "more_than_expected",
    "rate_above_5_pct",
)
SERIES_FLAGS = (LEVEL_BREAK, SENTINEL, MANY_ROWS)
"""The names that a series of prices or spreads may have."""

_WORDS = {
    LEVEL_BREAK: "from one row to the next a price changes tenfold or by more than that, as where "
    "a coin is redenominated",
    SENTINEL: "a price is a number that programs put where they have none, such as 2^63 - 1",
    MANY_ROWS: "there are more rows than their step lets expect",
    HIGH_RATE: "a rate is above 5 % per interval, as one in the quote per contract is",
}
_TENFOLD = math.log(10)
_TWOFOLD = math.log(2)
_SAME_DIGITS = 5e-12  # of a power of ten: eleven digits
_INTEGER_LIMITS = (2**31 - 1, 2**32 - 1, 2**53 - 1, 2**53, 2**63 - 1, 2**64 - 1)
_NINES = range(6, 16)
_SURE, _OF_NINES = 2, 1
_RATE = "rate"


def notes_of(found: pl.DataFrame) -> list[str]:
    """Return a line per kind of ``implausible`` row in a table of figures, with its first key."""
    if "implausible" not in found.columns:
        return []
    odd = found.filter(pl.col("implausible") != "")
    notes = []
    for name, words in _WORDS.items():
        of_name = odd.filter(pl.col("implausible").str.split(", ").list.contains(name))
        if of_name.is_empty():
            continue
        first = of_name["trajectory"][0]
        more = f" and {of_name.height - 1:,} more" if of_name.height > 1 else ""
        notes.append(f"not plausible, {first}{more}: {words}")
    return notes


def named(names: Mapping[str, pl.Expr]) -> pl.Expr:
    """Build the names whose conditions are true, "" for none."""
    true = [pl.when(condition).then(pl.lit(name)) for name, condition in names.items()]
    return pl.concat_str(true, separator=", ", ignore_nulls=True)


def high_rate(rate: str = "rate") -> pl.Expr:
    """Build whether a rate per interval is implausible."""
    return pl.col(rate).abs() > MOST_RATE


def level_breaks(level: pl.Expr, apart_bps: float = APART_BPS) -> pl.Expr:
    """Build whether the level changes by a power of ten since the observation before.

    ``level`` is a natural logarithm. A break is a ratio within ``apart_bps`` of 10 or a tenth, or
    beyond 100-fold less that. A return to the level before is a second break.
    """
    size, near = (level - level.shift(1)).abs(), apart_bps / 1e4
    return ((size - _TENFOLD).abs() <= near) | (size >= 2 * _TENFOLD - near)


def sentinel_marks(price: pl.Expr) -> pl.Expr:
    """Mark the prices that programs write for none: 2, or 1 for nines, else 0.

    2 are the largest numbers of 31, 32, 53, 63 and 64 bits and 2^53, at any power of ten, to 11
    digits. 1 are six nines or more, from 1,000 on, which may be a real price.
    """
    decades = price.log10()
    digits = decades - decades.floor()
    limits = [math.log10(limit) % 1 for limit in _INTEGER_LIMITS]
    sure = pl.any_horizontal((digits - limit).abs() <= _SAME_DIGITS for limit in limits)
    nines = price.is_in(_nines().implode())
    return (
        pl.when(sure)
        .then(pl.lit(_SURE, pl.Int8))
        .when(nines)
        .then(pl.lit(_OF_NINES, pl.Int8))
        .otherwise(pl.lit(0, pl.Int8))
    )


@cache
def _nines() -> pl.Series:
    # of 16 nines and more a float is a power of ten, which a price may be
    return pl.Series(
        [float(f"{10**count - 1}e{-scale}") for count in _NINES for scale in range(count - 3)]
    )


def conditions() -> dict[str, pl.Expr]:
    """Build the condition of each name for a group's observations, as `prepared` returns them."""
    level, mark = pl.col("level"), pl.col("sentinel_mark")
    far = ((level - level.median()).abs() > _TWOFOLD).fill_null(value=False)
    of_nines = (mark == _OF_NINES) & (far | (mark.min() == _OF_NINES))
    return {
        LEVEL_BREAK: pl.col("level_breaks"),
        SENTINEL: (mark == _SURE) | of_nines,
        HIGH_RATE: pl.col("high_rate"),
    }


def level_of(column: str) -> pl.Expr | None:
    """Build the natural logarithm of the ratio or price that an observation is, None for others."""
    value = pl.col("value")
    if column == "spread_log_bps":
        return value / 1e4
    if column in ("spread_bps", "spread_pct"):
        return (value / (1e4 if column == "spread_bps" else 100)).log1p()
    return value.log() if column.endswith("price") else None


def prepared(rows: pl.LazyFrame, column: str, apart_bps: float = APART_BPS) -> pl.LazyFrame:
    """Add to observations, sorted by number and time, the columns that `conditions` read.

    They are level (natural logarithm, null if the column has none), level_breaks (Boolean),
    sentinel_mark (Int8) and high_rate (Boolean).
    """
    names = rows.collect_schema().names()
    read = [name for name in _read(column) if name in names]
    prices = ["value"] if column.endswith("price") else [name for name in read if name != _RATE]
    marks = [
        sentinel_marks(pl.col(name).cast(pl.Float64, strict=False)).fill_null(0) for name in prices
    ]
    number, level = pl.col("number"), level_of(column)
    breaks = level_breaks(pl.col("level"), apart_bps) & (number == number.shift(1))
    high = high_rate() if _RATE in read else pl.lit(value=False)
    return rows.with_columns(
        (pl.lit(None, pl.Float64) if level is None else level).alias("level"),
        pl.max_horizontal(pl.lit(0, pl.Int8), *marks).alias("sentinel_mark"),
        high.fill_null(value=False).alias("high_rate"),
    ).with_columns(breaks.fill_null(value=False).alias("level_breaks"))


def _read(column: str) -> tuple[str, ...]:
    """Return the columns read beside a column, if the frame has them."""
    if column == "funding_apr_pct":
        return (_RATE,)
    return ("buy_price", "sell_price") if column.startswith("spread_") else ()


@described("plausibility.plausibility")
@cache
def plausibility(column: str) -> Statistic:
    """Make the statistic of what is implausible about a column.

    {columns}

    >>> from toolkit.statistics.core.contract import Question
    >>> from toolkit.statistics.core.kernel import measure
    >>> ts = [0, 60, 120]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 3, "ts": ts, "price": [1e3, 1.0, 1.0]})
    >>> question = Question("rows/1", 0, 180, "price")
    >>> measure(frame, question, plausibility("price")).select("^implausible.*$").row(0)
    ('level_break', 1)
    """
    found = conditions()

    def aggregate(_column: str) -> list[pl.Expr]:
        odd = pl.any_horizontal(found.values())
        return [
            *(each.any().alias(f"any_{name}") for name, each in found.items()),
            odd.sum().cast(pl.Int64).alias("implausible_n"),
        ]

    def finish(_column: str) -> list[pl.Expr]:
        names = {name: pl.col(f"any_{name}") for name in found}
        names[MANY_ROWS] = pl.col("n") > pl.col("n_expected")
        return [named(names).alias("implausible"), pl.col("implausible_n").fill_null(0)]

    return Statistic(
        aggregate,
        finish,
        prepare=lambda rows, _part: prepared(rows, column),
        carried_where_held=_read(column),
    )
