"""Persistence of a funding differential: its sign, its autocorrelation and its memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import When
from toolkit.market.venues import stated, venue_of
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, collected, first_reason, real_number
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.accruals import (
    BUCKET_S,
    WHOLE,
    accruals,
    bucket_sums,
    covered_stretches,
    in_force,
)
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR, LEG_KEY
from toolkit.statistics.funding.receipts import inside
from toolkit.statistics.funding.settlements import (
    LEGS,
    LegSettlements,
    exchange_of_leg,
    settlements,
)
from toolkit.statistics.numeric.arrays import Floats, Integers
from toolkit.statistics.numeric.long_run import MOST_POINTS, Memory, memories

MIN_SETTLEMENTS = 60
"""The fewest buckets of 8 h with a carry to noise."""

MIN_PAIRS = 20
"""The fewest pairs of buckets with an autocorrelation."""

_SAME = 1e-9
_NEWEY_WEST_LAG = 8
_LAGS_H = (8, 24, 72)
_PCT = 100


def _titled(*, band_apr_pct: float) -> str:
    beyond = f" beyond {band_apr_pct:g} % a year," if band_apr_pct else ""
    return f"Signs of the funding in force, sell less buy,{beyond}"


@analysis(
    "funding.persistence",
    """
        carry_to_noise positive_share flips_per_day longest_run_s coverage same_sign_share acf_8h
        acf_24h acf_72h at_cap_share at_baseline_share n""",
    figures="""
        n coverage positive_share negative_share within_band_share flips flips_per_day longest_run_s
        longest_run_censored same_sign_share n_8h acf_8h acf_24h acf_72h carry_to_noise
        buy_at_cap_share sell_at_cap_share buy_at_baseline_share sell_at_baseline_share""",
    order="-carry_to_noise",
    report=2,
    title=_titled,
    about="""
        Positive: long the buy leg and short the sell leg receives it. Shares are of the
        time in which both legs have a rate in force. The autocorrelation and carry to noise
        are of what accrued in buckets of 8 h. The largest carry to noise comes first. One
        trajectory alone is shown with every figure.""",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
    band_apr_pct=Parameter(
        "Percent a year on either side of 0 in which funding has no sign.", option="--band"
    ),
)
def persistence(
    frame: Frame, start: When | None = None, end: When | None = None, *, band_apr_pct: float = 0.0
) -> pl.DataFrame:
    """Measure how long the differential in force keeps its sign, and its autocorrelation.

    One row per trajectory, sorted. ``frame`` is as in `toolkit.statistics.funding`. The
    differential is the sell leg's rate per hour less the buy leg's, if both are in force
    (`toolkit.statistics.funding.differential`): positive if long buy, short sell receives. Shares
    are of the time in which it is known, in ``[start, end)``.

    - Within ``band_apr_pct`` of 0 (default: 0), edges included, the differential has no sign.
    - A flip is a change of sign, also through the band. A run of one sign ends at the band. Neither
      crosses unknown time.
    - ``same_sign_share`` is counted at the times at which a leg settles.
    - Autocorrelation and carry to noise are of what accrued in buckets of 8 h from 00:00 UTC that
      both legs cover in full. Pairs are exactly the lag apart.
    - Carry to noise is the mean over the standard deviation, for a year of 1095 buckets. The
      deviation is that of Newey and West (1987) with 8 lags and Bartlett weights.
    - A cap is the exchange's (`toolkit.market.venues`), else a leg's largest or smallest rate at
      one interval, if reached twice or more. The baseline is the exchange's, else 0.01 % per 8 h.

    {columns}

    Raises as other functions of `toolkit.statistics.funding`, and if ``band_apr_pct`` is not a
    number from 0.

    >>> rates = [1e-4, 1e-4, -1e-4, -1e-4, -1e-4, 1e-4]
    >>> frame = pl.DataFrame({"trajectory": "a", "ts": [28800 * k for k in range(6)],
    ...     "buy_rate": 0.0, "sell_rate": rates, "buy_interval_hours": None,
    ...     "sell_interval_hours": [8] * 6})
    >>> row = persistence(frame, 0, 172800).row(0, named=True)
    >>> row["positive_share"], row["flips"], row["longest_run_s"] / 3600, row["same_sign_share"]
    (0.5, 2, 24.0, 0.6)
    """
    band = real_number("band_apr_pct", band_apr_pct, "percent a year from 0", least=0)
    window, asked = window_of(frame, start, end, settlements_extent), (("band_apr_pct", band),)
    question = Question("funding.persistence/3", *window, options=asked)
    found = settlements(frame)
    rows = found.trajectories.select("trajectory")
    known = covered_stretches(found, in_force(found, question))
    sums = bucket_sums(covered_stretches(found, accruals(found, question)))
    for part in (_signs(known, band), _later(sums), _limits(found, question)):
        rows = rows.join(part, on="trajectory", how="left", maintain_order="left")
    return rows.select(
        "trajectory", *_sign_figures(question), *_later_figures(), *_limit_figures()
    ).with_columns(*question.columns)


def _signs(known: pl.DataFrame, band_apr_pct: float) -> pl.DataFrame:
    band, sign = band_apr_pct / (_PCT * HOURS_A_YEAR), pl.col("sign")
    hourly = pl.col("sell_rate_per_hour") - pl.col("buy_rate_per_hour")
    before = pl.col("trajectory") == pl.col("trajectory").shift(1)
    follows = (before & (pl.col("begins") == pl.col("ends").shift(1))).fill_null(value=False)
    rows = collected(
        known.lazy()
        .select(
            *("trajectory", "begins", "ends", "length_s"),
            sign=pl.when(hourly > band).then(1).when(hourly < -band).then(-1).otherwise(0),
            follows=follows,
        )
        .with_columns(
            (~pl.col("follows")).cum_sum().alias("segment"),
            (~pl.col("follows") | (sign != sign.shift(1))).cum_sum().alias("run"),
            (pl.col("follows") & (sign.shift(1) != 0)).alias("next"),
            (sign == sign.shift(1)).alias("same"),
            ~pl.col("follows").shift(-1, fill_value=False).alias("cut"),
        )
    )
    signed = rows.filter(sign != 0)
    flips = signed.filter(
        (sign != sign.shift(1)) & (pl.col("segment") == pl.col("segment").shift(1))
    )
    length_s = pl.col("length_s")
    found = rows.group_by("trajectory", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("begins").first().cast(pl.Int64).alias("t_first"),
        pl.col("ends").last().cast(pl.Int64).alias("t_last"),
        length_s.sum().alias("known_s"),
        length_s.filter(sign > 0).sum().alias("positive_s"),
        length_s.filter(sign < 0).sum().alias("negative_s"),
        length_s.filter(sign == 0).sum().alias("within_s"),
        pl.col("next").sum().cast(pl.Int64).alias("n_next"),
        (pl.col("next") & pl.col("same")).sum().alias("n_same"),
    )
    counted = flips.group_by("trajectory").agg(pl.len().cast(pl.Int64).alias("flips"))
    for part in (counted, _longest(signed)):
        found = found.join(part, on="trajectory", how="left", maintain_order="left")
    return found


def _longest(signed: pl.DataFrame) -> pl.DataFrame:
    """Find the longest run of one sign, and whether it is cut off."""
    # runs of two trajectories have two numbers, and sorted ones are taken as slices
    runs = signed.group_by(pl.col("run").set_sorted(), maintain_order=True).agg(
        pl.col("trajectory").first(),
        (pl.col("ends").last() - pl.col("begins").first()).alias("longest_run_s"),
        (~pl.col("follows").first() | pl.col("cut").last()).alias("longest_run_censored"),
    )
    longest = pl.col("longest_run_s").arg_max()
    return runs.group_by("trajectory").agg(
        pl.col("longest_run_s", "longest_run_censored").get(longest)
    )


def _later(sums: pl.DataFrame) -> pl.DataFrame:
    whole = sums.filter(pl.col("covered_s") >= BUCKET_S * WHOLE)
    names = [f"acf_{lag}h" for lag in _LAGS_H]
    columns = ["n_8h", *names, "n_pairs", "carry_to_noise", "varies"]
    types = [pl.Int64, *[pl.Float64] * len(names), pl.Int64, pl.Float64, pl.Boolean]
    rows = [_of_buckets(*bucket) for bucket in _buckets(whole)]
    found = pl.DataFrame(rows, schema=dict(zip(columns, types, strict=True)), orient="row")
    keys = whole.select(pl.col("trajectory").unique(maintain_order=True))
    return pl.concat([keys, found], how="horizontal")


def _buckets(whole: pl.DataFrame) -> Iterator[tuple[Integers, Floats]]:
    number, accrued = (whole["ts"] // BUCKET_S).to_numpy(), whole["accrued"].to_numpy()
    lengths = whole["trajectory"].rle().struct.field("len").to_list() if whole.height else []
    at = 0
    for length in lengths:
        yield number[at : at + length], accrued[at : at + length]
        at += length


def _of_buckets(number: Integers, accrued: Floats) -> tuple[int | float | bool | None, ...]:
    count, mean = accrued.size, math.fsum(accrued) / accrued.size
    varies = bool(np.ptp(accrued) > _SAME * np.abs(accrued).max())
    dense = np.full(number[-1] - number[0] + 1, np.nan)
    dense[number - number[0]] = accrued - mean
    variance = float(np.nanmean(dense**2))

    def products(lag: int) -> Floats:
        found = dense[lag:] * dense[:-lag]
        kept: Floats = found[~np.isnan(found)]
        return kept

    if not varies:
        return (count, *[None] * len(_LAGS_H), 0, None, varies)
    paired = [products(lag * 3600 // BUCKET_S) for lag in _LAGS_H]
    acf = [float(each.mean()) / variance if each.size >= MIN_PAIRS else None for each in paired]
    noise = variance
    for lag in range(1, _NEWEY_WEST_LAG + 1):
        weight = 1 - lag / (1 + _NEWEY_WEST_LAG)
        noise += 2 * weight * float(products(lag).sum()) / count
    enough = count >= MIN_SETTLEMENTS and noise > 0
    a_year = 3600 * HOURS_A_YEAR / BUCKET_S
    to_noise = mean / math.sqrt(noise) * math.sqrt(a_year) if enough else None
    return (count, *acf, paired[-1].size, to_noise, varies)


def _limits(found: LegSettlements, question: Question) -> pl.DataFrame:
    rate, per_hour = pl.col("rate"), pl.col("rate_per_hour")
    columns = found.rows.select(*LEG_KEY, "leg_number", "ts", "interval_hours", rate, per_hour)
    rows = columns.filter(inside(question) & per_hour.is_not_null())
    usual = {"cap_per_hour": None, "baseline_8h": venue_of("").baseline_8h}
    cap, baseline = (
        exchange_of_leg().replace_strict(stated(name), default=other, return_dtype=pl.Float64)
        for name, other in usual.items()
    )
    legs = rows.select(*LEG_KEY, "leg_number").unique("leg_number")
    legs = legs.select("leg_number", cap=cap, baseline=baseline)
    rows = rows.join(legs, on="leg_number", how="left", maintain_order="left")
    at_one = rows.group_by("leg_number", "interval_hours", maintain_order=True).agg(
        pl.col(*LEG_KEY).first(),
        pl.len().alias("n"),
        (rate == rate.max()).sum().alias("at_highest"),
        (rate == rate.min()).sum().alias("at_lowest"),
        (rate.max() == rate.min()).alias("one_rate"),
        ((8 * per_hour - pl.col("baseline")).abs() <= _SAME).sum().alias("at_baseline"),
        (per_hour.abs() >= pl.col("cap") - _SAME).sum().alias("at_stated_cap"),
        pl.col("cap").first(),
    )
    highest, lowest = (
        pl.when(pl.col(name) > 1).then(name).otherwise(0) for name in ("at_highest", "at_lowest")
    )
    reached = highest + pl.when("one_rate").then(0).otherwise(lowest)
    at_caps = pl.when(pl.col("cap").is_null()).then(reached).otherwise("at_stated_cap")
    return at_one.group_by("trajectory", maintain_order=True).agg(
        expression
        for leg in LEGS
        for expression in (
            pl.col("n").filter(leg=leg).sum().alias(f"{leg}_n"),
            at_caps.filter(leg=leg).sum().alias(f"{leg}_at_cap"),
            pl.col("at_baseline").filter(leg=leg).sum().alias(f"{leg}_at_baseline"),
        )
    )


def _sign_figures(question: Question) -> list[pl.Expr]:
    known_s, n = pl.col("known_s"), pl.col("n").fill_null(0)
    # a column, as polars divides one by a single number through its rounded reciprocal
    window_s = pl.col("n").fill_null(0) * 0 + (question.end - question.start)
    some = n > 0
    shares = {"positive": "positive_s", "negative": "negative_s", "within_band": "within_s"}
    days = known_s / (known_s * 0 + 86_400)
    flips = pl.when(some).then(pl.col("flips").fill_null(0))
    return [
        n,
        (known_s.fill_null(0.0) / window_s).alias("coverage"),
        pl.col("t_first", "t_last"),
        *((pl.col(sum_s) / known_s).alias(f"{name}_share") for name, sum_s in shares.items()),
        flips.alias("flips"),
        (flips / days).alias("flips_per_day"),
        pl.when(some).then(pl.col("longest_run_s").fill_null(0.0)).alias("longest_run_s"),
        pl.when(some)
        .then(pl.col("longest_run_censored").fill_null(value=False))
        .alias("longest_run_censored"),
        first_reason({Reason.EMPTY: ~some}).alias("sign_reason"),
        pl.col("n_next").fill_null(0),
        pl.when(pl.col("n_next") > 0)
        .then(pl.col("n_same") / pl.col("n_next"))
        .alias("same_sign_share"),
        first_reason({Reason.TOO_FEW: pl.col("n_next").fill_null(0) == 0}).alias(
            "same_sign_reason"
        ),
    ]


def _later_figures() -> list[pl.Expr]:
    n, still = pl.col("n_8h").fill_null(0), ~pl.col("varies").fill_null(value=True)
    few = pl.col(f"acf_{_LAGS_H[-1]}h").is_null()
    acf = {Reason.DEGENERATE: still & (n > _LAGS_H[-1] // 8 + MIN_PAIRS), Reason.TOO_FEW: few}
    noise = {
        Reason.TOO_FEW: n < MIN_SETTLEMENTS,
        Reason.DEGENERATE: pl.col("carry_to_noise").is_null(),
    }
    return [
        n,
        *(pl.col(f"acf_{lag}h") for lag in _LAGS_H),
        first_reason(acf).alias("acf_reason"),
        pl.col("carry_to_noise"),
        first_reason(noise).alias("carry_to_noise_reason"),
    ]


def _limit_figures() -> list[pl.Expr]:
    both = pl.sum_horizontal(f"{leg}_n" for leg in LEGS)
    shares = []
    for what in ("at_cap", "at_baseline"):
        for leg in LEGS:
            n = pl.col(f"{leg}_n")
            share = pl.when(n > 0).then(pl.col(f"{leg}_{what}") / n)
            shares.append(share.alias(f"{leg}_{what}_share"))
        total = pl.sum_horizontal(f"{leg}_{what}" for leg in LEGS)
        shares.append(pl.when(both > 0).then(total / both).alias(f"{what}_share"))
    none = pl.any_horizontal(pl.col(f"{leg}_n").fill_null(0) == 0 for leg in LEGS)
    return [*shares, first_reason({Reason.EMPTY: none}).alias("settled_reason")]


_USUAL = 0.9
_HOUR_S, _DAY_S = 3_600, 86_400
_STEPS_S = [_HOUR_S * hours for hours in (1, 2, 3, 4, 6, 8, 12, 24)]
_FEWEST_DAYS = 8


def funding_memories(found: LegSettlements, question: Question) -> dict[Any, Memory]:
    """Judge the memory of what each position is paid per hour, settlement by settlement.

    Steps are parts of a day or whole days, at least the interval that 90 % of a leg's settlements
    do not exceed. The daily season is removed. ``found`` needs leg_number, ts, rate and
    interval_hours. See `toolkit.statistics.numeric.long_run.memories`.
    """
    number, ts, rate, hours = (
        found.rows[name].to_numpy() for name in ("leg_number", "ts", "rate", "interval_hours")
    )
    since = np.searchsorted(number, np.arange(len(LEGS) * found.trajectories.height + 1))
    series = []
    for place, (_, *spots) in enumerate(found.trajectories.iter_rows()):
        legs: list[tuple[Floats, Floats, Floats] | None] = []
        for leg, is_spot in enumerate(spots, len(LEGS) * place):
            rows = slice(since[leg], since[leg + 1])
            legs.append(None if is_spot else (ts[rows], rate[rows], hours[rows]))
        series.append(_paid(legs, question))
    return dict(zip(found.trajectories["trajectory"], memories(series), strict=True))


def _paid(legs: list[tuple[Floats, Floats, Floats] | None], question: Question) -> Floats:
    """Compute sell less buy per hour at equal steps, NaN if a leg did not settle."""
    inside = []
    for leg in legs:
        known = None
        if leg is not None:
            ts, _, hours = leg
            kept = (ts > question.start) & (ts <= question.end) & (hours > 0)
            known = tuple(column[kept] for column in leg)
        inside.append(known)
    usual = [np.quantile(known[2], _USUAL) for known in inside if known and known[2].size]
    window_s = question.end - question.start
    step_s = _step_s(max(_HOUR_S * max(usual, default=1.0), window_s / MOST_POINTS))
    steps = -(-window_s // step_s)
    sides = []
    for known in inside:
        if known is None:
            sides.append(np.zeros(steps))
            continue
        ts, rate, hours = known
        step = (ts.astype(np.int64) - question.start - 1) // step_s
        paid, over = (np.bincount(step, each, steps) for each in (rate, hours))
        sides.append(np.divide(paid, over, out=np.full(steps, np.nan), where=over > 0))
    buy, sell = sides
    return _without_season(sell - buy, step_s)


def _step_s(least_s: float) -> int:
    """Return the shortest part of a day, or number of days, that is at least so long."""
    part = next((each for each in _STEPS_S if each >= least_s), None)
    return part or _DAY_S * math.ceil(least_s / _DAY_S)


def _without_season(paid: Floats, step_s: int) -> Floats:
    """Subtract the mean of each time of the day, given eight days or more."""
    a_day = _DAY_S // step_s
    if a_day < 2 or paid.size < _FEWEST_DAYS * a_day:
        return paid
    days = np.append(paid, np.full(-paid.size % a_day, np.nan)).reshape(-1, a_day)
    known = ~np.isnan(days)
    means = np.where(known, days, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    return np.asarray((days - means).ravel()[: paid.size])
