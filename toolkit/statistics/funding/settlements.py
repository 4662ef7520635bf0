"""Settlements of each leg, and the interval over which a settled rate accrued."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import polars as pl

from toolkit.errors import InputError
from toolkit.market.venues import stated
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    checked_times,
    checked_types,
    collected,
    first_reason,
)
from toolkit.statistics.core.observations import checked_keys, observed, ordered
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR, TOLERANCE, before, settled
from toolkit.statistics.quality.plausibility import HIGH_RATE, high_rate

GRID_HOURS = (1, 2, 4, 8, 24)

_HALF_HOUR_S = 1800
_HOURLY_S = (1 - TOLERANCE) * 3600


def without_duplicates(rows: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep one row per settlement, and return the duplicates as well.

    ``rows`` are leg_number (one per leg of a trajectory), ts (s), rate and declared_hours (h or
    null), sorted by leg_number and ts. Rows kept get n_duplicates (Int64). Rows are one settlement
    if:

    - Their rates are equal, and all are within less than half an interval.
    - The rows before and after are at least half an interval away.
    - The first is due: on the calendar of the interval (multiples from 00:00 UTC), or whole
      intervals from the row before or after, within a tenth.
    - They are two, or two of them are less than an hour apart.

    The interval is the shorter of those declared at two neighbours, else one of 1, 2, 4, 8 and 24 h
    that the rows around keep, at most the median time between the leg's rows. The first row stays.
    Before that, rows within half an hour are merged, as no leg settles sooner than hourly: the
    first on the hour stays, else the first.
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
    """Merge groups of rows sooner than half an interval after the previous one, if ``due``."""
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
        (~pl.col("near")).cum_sum().alias("group"), pl.col("gap_s").shift(-1).alias("gap_after_s")
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
    return (marked.filter(stays).select(rows.columns), marked.filter(~stays).select(rows.columns))


def _judged() -> list[pl.Expr]:
    """Judge each group: is it ``one`` settlement, which row ``stays``, how many are ``more``.

    Also returned are ``half`` an interval (s), the ``first`` time, and the times ``since`` the row
    before and ``until`` the row after.
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
    """Build whether a group's first row is due, by the calendar or by its neighbours."""
    interval_s = 2 * pl.col("half")

    def whole(seconds: pl.Expr) -> pl.Expr:
        intervals = seconds / interval_s
        return ((intervals - intervals.round()).abs() <= TOLERANCE).fill_null(value=False)

    return pl.any_horizontal(whole(pl.col(name)) for name in ("first", "since", "until"))


@cache
def _declared_half_s() -> pl.Expr:
    """Build half the shorter interval declared at a row and the row before."""
    return 1800 * pl.min_horizontal("declared_hours", before("declared_hours"))


@cache
def _kept_half_s() -> pl.Expr:
    """Build half the interval that the rows around a row keep, ignoring it.

    It lies between the rows before and after, and once more on either side, if there are rows,
    without duplicates. One longer than half of the leg's rows keep is several with gaps.
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


LEGS = ("buy", "sell")

_MINUTE_S, _HOUR_S = 60, 3_600
SETTLED_TYPES = {
    "trajectory": "String or integer",
    "ts": "Int64",
    "buy_rate": "Float64",
    "sell_rate": "Float64",
    "buy_interval_hours": "number or null",
    "sell_interval_hours": "number or null",
}


@dataclass(frozen=True, slots=True)
class LegSettlements:
    """The settlements of legs, and their trajectories.

    ``trajectories`` are sorted, with ``buy_spot`` and ``sell_spot``: a spot leg settles nothing.
    ``rows`` has one row per settlement, sorted by trajectory, leg and time, with ``leg_number`` of
    each leg of each trajectory in this order. ``in_force`` and ``duplicates`` have trajectory, leg
    and ts of the other rows.
    """

    trajectories: pl.DataFrame
    rows: pl.DataFrame
    in_force: pl.DataFrame
    duplicates: pl.DataFrame


def settlements(frame: Frame, *columns: str) -> LegSettlements:
    """List every settlement of a funding frame by leg, with the interval that it paid for.

    Rows have only the ``columns`` named, if any, to save time. An undeclared interval is that of
    the leg's exchange in `toolkit.market.venues`, if known.
    """
    checked_types(frame, SETTLED_TYPES)
    rows = collected(frame.lazy().select(list(SETTLED_TYPES)))
    checked_times(rows)
    rows = ordered(rows)
    minute = (pl.col("ts") + _MINUTE_S // 2) // _MINUTE_S * _MINUTE_S
    number = pl.col("trajectory").rle_id().set_sorted()
    numbered = rows.select("trajectory", number.alias("number"), minute.alias("minute"))
    trajectories = (
        numbered.group_by("number", maintain_order=True)
        .agg(pl.col("trajectory").first())
        .drop("number")
    )
    rounded = not numbered["minute"].equals(rows["ts"])
    parts = []
    for place, leg in enumerate(LEGS):
        of_leg = rows.select(
            numbered["minute"].alias("ts"),
            observed(f"{leg}_rate").alias("rate"),
            pl.col(f"{leg}_interval_hours").cast(pl.Float64).alias("declared_hours"),
            (2 * numbered["number"].cast(pl.Int64) + place).set_sorted().alias("leg_number"),
        )
        _check_hours(leg, of_leg)
        spot = of_leg.group_by("leg_number", maintain_order=True).agg(_is_spot()).to_series(1)
        trajectories = trajectories.with_columns(spot.alias(f"{leg}_spot"))
        paid = of_leg.filter(pl.col("rate").is_not_null())
        if spot.any():
            paid = paid.filter(~spot.gather(paid["leg_number"] // 2))
        parts.append(paid)
    paid = _of_venues(pl.concat(parts).sort("leg_number", maintain_order=True), trajectories)
    kept, duplicates = without_duplicates(paid)
    key = _key(trajectories)
    if rounded:
        for place in range(len(LEGS)):
            of_place = kept.filter(pl.col("leg_number") % len(LEGS) == place)
            checked_keys(of_place.select(key[0], "ts"))
    marked = settled(kept)
    paid = marked.filter(~pl.col("in_force"))
    return LegSettlements(
        trajectories,
        collected(_with_intervals(paid).select(*key, pl.all()).select(*columns or [pl.all()])),
        marked.filter("in_force").select(*key, "ts"),
        duplicates.select(*key, "ts"),
    )


def _key(trajectories: pl.DataFrame) -> list[pl.Expr]:
    number, keys = pl.col("leg_number"), trajectories["trajectory"]
    return [
        # sorted groups are taken as slices, which is faster
        pl.lit(keys).gather(number // len(LEGS)).set_sorted().alias("trajectory"),
        pl.lit(pl.Series(LEGS)).gather(number % len(LEGS)).alias("leg"),
    ]


def exchange_of_leg() -> pl.Expr:
    """Build the exchange of a leg from its trajectory, another text if the key names none."""
    legs = pl.col("trajectory").cast(pl.String).str.split(":").list.slice(1)
    bought = (pl.col("leg") == "buy") & (legs.list.len() > 1)
    leg = pl.when(bought).then(legs.list.first()).otherwise(legs.list.last())
    return leg.str.split(".").list.first()


def _of_venues(paid: pl.DataFrame, trajectories: pl.DataFrame) -> pl.DataFrame:
    """Round late stamps of an exchange, but no rate in force, and fill in its known interval."""
    late, hours = stated("stamped_late_s"), stated("interval_hours")
    legs = (
        paid.select(pl.col("leg_number").unique(maintain_order=True))
        .select("leg_number", *_key(trajectories))
        .select("leg_number", exchange=exchange_of_leg())
        .filter(pl.col("exchange").is_in([*late, *hours]))
    )
    if legs.is_empty():
        return paid
    past_s, ts = pl.col("ts") % _HOUR_S, pl.col("ts")
    most_s = pl.col("exchange").replace_strict(
        {name: (late_s + _MINUTE_S // 2) // _MINUTE_S * _MINUTE_S for name, late_s in late.items()},
        default=0,
    )
    since_s = (ts - before("ts")).fill_null(_HOUR_S)
    on_the_hour = (past_s <= most_s) & (since_s > most_s)
    known = pl.col("exchange").replace_strict(hours, default=None, return_dtype=pl.Float64)
    return paid.join(legs, on="leg_number", how="left", maintain_order="left").select(
        pl.when(on_the_hour).then(ts - past_s).otherwise(ts).alias("ts"),
        "rate",
        pl.coalesce("declared_hours", known),
        "leg_number",
    )


def _check_hours(leg: str, columns: pl.DataFrame) -> None:
    hours = pl.col("declared_hours")
    wrong = columns.filter(~(hours.is_finite() & (hours > 0)))["declared_hours"]
    if wrong.len():
        raise InputError(f"{leg}_interval_hours", wrong[0], "hours above 0, or null")


@cache
def _is_spot() -> pl.Expr:
    """Build whether a leg is spot: every rate is 0, and no row has an interval."""
    rate = pl.col("rate")
    some_all_zero = (rate.count() > 0) & (rate.fill_null(0) == 0).all()
    return some_all_zero & pl.col("declared_hours").is_null().all()


def _with_intervals(paid: pl.DataFrame) -> pl.LazyFrame:
    elapsed, interval = pl.col("elapsed_hours"), pl.col("interval_hours")
    known = [pl.col("accepted_hours"), pl.col("declared_hours")]
    if paid["declared_hours"].null_count():
        known.append(pl.col("accepted_hours").forward_fill().over("leg_number"))
    return (
        paid.lazy()
        .with_columns(
            ((pl.col("ts") - before("ts")) / 3600).alias("elapsed_hours"),
            before("declared_hours").alias("declared_before"),
        )
        .with_columns(_shown().alias("shown_hours"))
        .with_columns(_accepted().alias("accepted_hours"))
        .with_columns(interval_hours=pl.when(~pl.col("undecided")).then(pl.coalesce(known)))
        .with_columns(
            ((elapsed / interval).round().cast(pl.Int64) - 1).clip(lower_bound=0).alias("missed"),
            (interval != before("interval_hours")).fill_null(value=False).alias("changed"),
            (pl.col("rate") / interval).alias("rate_per_hour"),
        )
        .select(
            *("ts", "rate", "declared_hours", "elapsed_hours", "missed"),
            _why_null("missed").alias("elapsed_reason"),
            "interval_hours",
            "rate_per_hour",
            (100 * HOURS_A_YEAR * pl.col("rate_per_hour")).alias("funding_apr_pct"),
            _why_null("interval_hours").alias("interval_reason"),
            "changed",
            _flag().alias("interval_flag"),
            "n_duplicates",
            pl.when(high_rate()).then(pl.lit(HIGH_RATE)).alias("rate_flag"),
            "leg_number",
        )
    )


@cache
def _why_null(name: str) -> pl.Expr:
    missing = pl.col(name).is_null()
    return first_reason({Reason.DENSE_ROWS: missing & pl.col("undecided"), Reason.TOO_FEW: missing})


@cache
def _shown() -> pl.Expr:
    """Infer the interval from the time since the last settlement, or the one declared before."""
    elapsed, declared = pl.col("elapsed_hours"), pl.col("declared_hours")

    def near(hours: pl.Expr) -> pl.Expr:
        return (elapsed - hours).abs() <= TOLERANCE * hours

    usual = (pl.lit(hours, pl.Float64) for hours in GRID_HOURS)
    candidates = [declared, pl.col("declared_before"), *usual]
    return pl.coalesce(pl.when(near(hours)).then(hours) for hours in candidates)


@cache
def _accepted() -> pl.Expr:
    """Accept a shown interval that was declared, or is not longer than declared and lasts."""
    shown, declared = pl.col("shown_hours"), pl.col("declared_hours")
    # the first settlement of a leg shows nothing, so that no neighbour is of another leg
    lasts = pl.any_horizontal(shown == shown.shift(1), shown == shown.shift(-1))
    longer = (shown > declared).fill_null(value=False)
    as_declared = (shown == declared) | (shown == pl.col("declared_before"))
    return pl.when(as_declared | (lasts & ~longer)).then(shown)


@cache
def _flag() -> pl.Expr:
    elapsed, interval = pl.col("elapsed_hours"), pl.col("interval_hours")
    flags = {
        "declared_differs": interval != pl.col("declared_hours"),
        "missed": pl.col("missed") > 0,
        "early": elapsed < (1 - TOLERANCE) * interval,
    }
    return pl.coalesce(pl.when(held).then(pl.lit(name)) for name, held in flags.items())
