"""Which rows of a leg are one settlement sent again, some seconds or some hours late."""

from __future__ import annotations

from functools import cache

import polars as pl

from toolkit.statistics.contract import collected
from toolkit.statistics.rates_in_force import TOLERANCE, before

GRID_HOURS = (1, 2, 4, 8, 24)
"""The usual times between settlements (h)."""

_HALF_HOUR_S = 1800
_HOURLY_S = (1 - TOLERANCE) * 3600


def without_duplicates(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep one row of each settlement, and return those that are left out beside them.

    ``rows`` are leg_number (one of each leg of a trajectory), ts (s), rate and declared_hours (h or
    null), sorted by leg_number and ts. Those kept get n_duplicates (Int64), the number of rows left
    out for each. Those left out have the columns of ``rows``.

    Rows are one settlement where all of these hold:

    - Their rates are equal, and all are within less than half an interval.
    - The rows before and after them are half an interval away or more.
    - The first of them is due: on the calendar of the interval (multiples of it from 00:00 UTC), or
      whole intervals from the row before or after them, give or take a tenth of one.
    - They are two rows, or two of them are less than an hour apart. Three rows that follow each
      other by the hour are those of an interval that got shorter.

    The interval is the shorter one of those declared at two neighbours. Where none is declared, it
    is one of 1, 2, 4, 8 and 24 h that the rows before and after keep, no longer than the median
    time between the leg's rows. The first row stays.

    Rows within half an hour are taken together before, whatever is declared and due, as no leg
    settles sooner than hourly. Of these the first on the hour stays, else the first.

    >>> rows = pl.DataFrame({"leg_number": [0] * 4, "ts": [0, 28800, 28920, 57600],
    ...                      "rate": [1e-4] * 4, "declared_hours": [8.0] * 4})
    >>> kept, left_out = without_duplicates(rows)
    >>> kept.select("ts", "n_duplicates").rows(), left_out["ts"].to_list()
    ([(0, 0), (28800, 1), (57600, 0)], [28920])
    """
    declared = _declared_half_s()
    known = declared
    if rows["declared_hours"].null_count():
        known = pl.coalesce(declared, _kept_half_s())
    kept = rows.with_columns(n_duplicates=pl.lit(0, pl.Int64))
    half_hour_s = pl.min_horizontal(declared, pl.lit(_HALF_HOUR_S))
    kept, close = _merged(kept, half_hour_s, pl.lit(value=True))
    kept, late = _merged(kept, known, _due())
    return kept, pl.concat([close, late]).select(rows.columns)


def _merged(rows: pl.DataFrame, half_s: pl.Expr, due: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Merge groups of rows, each sooner than half an interval after the one before.

    ``due`` is whether the first of a group is, of columns that `_judged` makes.
    """
    near = (pl.col("gap_s") < pl.col("half_s")).fill_null(value=False)
    marked = collected(
        rows.lazy()
        .with_columns((pl.col("ts") - before("ts")).alias("gap_s"))
        .with_columns(half_s.alias("half_s"))
        .with_columns(near.alias("near"))
    )
    if not marked["near"].any():
        return rows, rows.clear()
    # the first row of a leg has no gap, so that no two legs share a group
    marked = marked.with_columns(
        (~pl.col("near")).cum_sum().alias("group"),
        pl.col("gap_s").shift(-1).alias("gap_after_s"),
    ).with_row_index("row")
    groups = marked.filter("near").select(pl.col("group").unique())
    within = marked.join(groups, on="group", how="semi", maintain_order="left")
    found = (
        within.group_by("group", maintain_order=True).agg(*_judged()).filter(pl.col("one") & due)
    )
    marked = marked.join(found, on="group", how="left", maintain_order="left")
    stays = (pl.col("row") == pl.col("stays")).fill_null(value=True)
    more = pl.when(stays).then(pl.col("more").fill_null(0)).otherwise(0)
    marked = marked.with_columns((pl.col("n_duplicates") + more).alias("n_duplicates"))
    return (
        marked.filter(stays).select(rows.columns),
        marked.filter(~stays).select(rows.columns),
    )


def _judged() -> list[pl.Expr]:
    """Judge each group: whether it is ``one`` settlement, which row ``stays``, how many are more.

    Each row left out counts, with those that were left out for it before. Beside them are ``half``
    an interval (s), the ``first`` time, and the times since the row before and until the row after.
    """
    ts, gap, near, row = (pl.col(name) for name in ("ts", "gap_s", "near", "row"))
    half, gaps = pl.col("half_s").filter(near).min(), gap.filter(near)
    since, until = gap.first(), pl.col("gap_after_s").last()
    one = (
        (pl.col("rate").min() == pl.col("rate").max())
        & (ts.last() - ts.first() < half)
        & ((pl.len() == 2) | (gaps.min() < _HOURLY_S))
        & (since.is_null() | (since >= half))
        & (until.is_null() | (until >= half))
    )
    on_the_hour = row.filter((ts % 3600 == 0) & (half <= _HALF_HOUR_S)).min()
    stays = pl.coalesce(on_the_hour, row.first())
    added = pl.col("n_duplicates").filter(row != stays).sum() + pl.len().cast(pl.Int64) - 1
    return [
        *(one.alias("one"), stays.alias("stays"), added.alias("more")),
        *(half.alias("half"), ts.first().alias("first"), since.alias("since")),
        (until + ts.last() - ts.first()).alias("until"),
    ]


def _due() -> pl.Expr:
    """Build the condition that a group's first row is due, by the calendar or by its neighbours."""
    interval_s = 2 * pl.col("half")

    def whole(seconds: pl.Expr) -> pl.Expr:
        intervals = seconds / interval_s
        return ((intervals - intervals.round()).abs() <= TOLERANCE).fill_null(value=False)

    return pl.any_horizontal(whole(pl.col(name)) for name in ("first", "since", "until"))


@cache
def _declared_half_s() -> pl.Expr:
    """Build half the shorter one of the intervals declared at a row and at the row before."""
    return 1800 * pl.min_horizontal("declared_hours", before("declared_hours"))


@cache
def _kept_half_s() -> pl.Expr:
    """Build half the interval that the rows around keep, as if the row itself were not there.

    It lies between the row before and the row after, and on either side once more, where there are
    rows. A duplicate on either side is passed over. One longer than half of the leg's rows keep is
    several of which some are missing.
    """
    number, ts = pl.col("leg_number"), pl.col("ts")
    longest_s = (1 + TOLERANCE) * pl.col("gap_s").median().over("leg_number")

    def at(place: int) -> pl.Expr:
        return pl.when(number == number.shift(place)).then(ts.shift(place))

    def apart(later: int, earlier: int, hours: int) -> pl.Expr:
        return ((at(later) - at(earlier)) / 3600 - hours).abs() <= TOLERANCE * hours

    def keeps(hours: int) -> pl.Expr:
        earlier = apart(1, 2, hours) | apart(1, 3, hours)
        later = apart(-2, -1, hours) | apart(-3, -1, hours)
        sides = [
            (at(2).is_null() | earlier).fill_null(value=False),
            (at(-2).is_null() | later).fill_null(value=False),
        ]
        known = at(2).is_not_null() | at(-2).is_not_null()
        return apart(-1, 1, hours) & sides[0] & sides[1] & known & (3600 * hours <= longest_s)

    return pl.coalesce(pl.when(keeps(hours)).then(1800 * hours) for hours in GRID_HOURS)
