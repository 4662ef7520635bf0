"""Rates in force: differentials of both legs, the service's own, single legs, and predictions."""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.columns import described
from toolkit.intervals import Interval
from toolkit.market import Step, When, parse_length
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_types, collected, first_reason
from toolkit.statistics.core.kernel import MOMENTS, measure
from toolkit.statistics.core.observations import checked_keys, observed
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.accruals import STALE_INTERVALS
from toolkit.statistics.funding.dispersion import legs
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.funding.receipts import BPS, inside
from toolkit.statistics.funding.settlements import LEGS, LegSettlements, settlements
from toolkit.statistics.spread.distribution import summary as spread_summary

_COLUMN = "differential_pct_8h"
_Rows = TypeVar("_Rows", pl.DataFrame, pl.LazyFrame)
_RATES = ("buy_rate", "sell_rate")


def without_rates(frame: _Rows) -> _Rows:
    """Return the rows of the trajectories that have a differential and no rate of a leg."""
    rated = pl.any_horizontal(pl.col(rate).is_not_null() for rate in _RATES)
    sent = pl.col(_COLUMN).is_not_null()
    return frame.filter((~rated).all().over("trajectory") & sent.any().over("trajectory"))


def with_service_differential(found: pl.DataFrame, frame: Frame, window: Interval) -> pl.DataFrame:
    """Add the service's differential in ``[start, end)`` for trajectories without rates of legs."""
    unsettled = pl.col("trajectory").is_in(found.filter(n=0)["trajectory"].implode())
    rows = frame.lazy().filter(unsettled, pl.col("ts").is_between(*window, closed="left"))
    if _COLUMN not in frame.collect_schema():
        rows = rows.with_columns(pl.lit(None, pl.Float64).alias(_COLUMN))
    own = service_differential(without_rates(rows), *window).select(
        "trajectory",
        pl.col("n").alias("differential_n"),
        "differential_basis",
        pl.col("coverage", "step_s").name.prefix("differential_"),
        f"{_COLUMN}_time_weighted_mean",
        "differential_apr_pct",
        pl.col("moments_reason").alias("differential_reason"),
    )
    lacks = pl.col("differential_n").is_null()
    why = first_reason({Reason.LEG_RATES: lacks & (pl.col("n") > 0), Reason.EMPTY: lacks})
    return found.join(own, on="trajectory", how="left", maintain_order="left").with_columns(
        pl.coalesce("differential_reason", why).alias("differential_reason")
    )


@analysis(
    "funding.service_differential",
    """
        differential_apr_pct differential_pct_8h_time_weighted_mean differential_pct_8h_std coverage
        n""",
    order="-differential_apr_pct",
    title="The service's own differential in force",
    about="It is a rate in force, not what a position received.",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def service_differential(
    frame: Frame, start: When | None = None, end: When | None = None
) -> pl.DataFrame:
    """Average the differential in force that the service sends, over time in ``[start, end)``.

    One row per trajectory, sorted. A value is valid until the next one, at most three steps, as in
    `toolkit.statistics.spread.coverage`, whose columns come first:

    {columns}

    Positive: long the buy leg and short the sell leg earns it.

    Raises `InputError`: As `toolkit.statistics.spread.coverage`, for ``differential_pct_8h``.

    >>> rows = {"trajectory": ["a"] * 3, "ts": [0, 3600, 7200]}
    >>> frame = pl.DataFrame(rows | {"differential_pct_8h": [0.01, 0.02, 0.03]})
    >>> service_differential(frame, 0, 10800)["differential_apr_pct"].round(6).item()
    21.9
    """
    question = Question("funding.service_differential/2", *window_of(frame, start, end), _COLUMN)
    found = measure(frame, question, MOMENTS)
    apr = pl.col(f"{_COLUMN}_time_weighted_mean") * (HOURS_A_YEAR / 8)
    cut = found.columns.index("moments_reason")
    return found.select(
        *found.columns[:cut],
        apr.alias("differential_apr_pct"),
        "moments_reason",
        pl.lit("service").alias("differential_basis"),
        *found.columns[cut + 1 :],
    )


@described("funding.differential")
def differential(frame: Frame) -> pl.DataFrame:
    """Return the rates in force on both legs and their difference, as steps.

    A row is valid until the next one of its trajectory. A rate is in force until the leg's next
    settlement, at most two of its intervals, and a row marks its end.

    {columns}

    >>> frame = pl.DataFrame({"trajectory": "a", "ts": [0, 3600, 7200],
    ...     "buy_rate": [1e-5, 2e-5, None], "sell_rate": [8e-5, None, None],
    ...     "buy_interval_hours": [1, 1, 1], "sell_interval_hours": [8, 8, 8]})
    >>> steps = differential(frame).select("ts", "differential_per_hour", "differential_reason")
    >>> steps.rows()
    [(0, 0.0, None), (3600, -1e-05, None), (10800, None, 'missing_leg'),
     (57600, None, 'missing_leg')]
    """
    found = settlements(frame)
    steps = {leg: _steps(found.rows.filter(leg=leg)) for leg in LEGS}
    times = pl.concat(step.select("trajectory", "ts") for step in steps.values())
    rows = times.unique().sort("trajectory", "ts").join(found.trajectories, on="trajectory")
    rows = rows.sort("trajectory", "ts")
    for leg, step in steps.items():
        in_force = step.rename({"rate_per_hour": f"{leg}_rate_per_hour", "reason": f"{leg}_reason"})
        rows = rows.join_asof(in_force, on="ts", by="trajectory", check_sortedness=False)
        rows = rows.with_columns(
            pl.when(f"{leg}_spot")
            .then(0.0)
            .otherwise(f"{leg}_rate_per_hour")
            .alias(in_force.columns[2])
        )
    difference = pl.col("sell_rate_per_hour") - pl.col("buy_rate_per_hour")
    reasons = pl.coalesce("buy_reason", "sell_reason", pl.lit(Reason.MISSING_LEG.value))
    return rows.select(
        *("trajectory", "ts", "buy_rate_per_hour", "sell_rate_per_hour"),
        difference.alias("differential_per_hour"),
        (100 * HOURS_A_YEAR * difference).alias("differential_apr_pct"),
        pl.when(difference.is_null()).then(reasons).alias("differential_reason"),
    )


def _steps(rows: pl.DataFrame) -> pl.DataFrame:
    """List the changes of a leg's rate in force, and its end: trajectory, ts, rate."""
    stands_s = (STALE_INTERVALS * 3600 * pl.col("interval_hours")).round().cast(pl.Int64)
    until = pl.col("ts").shift(-1).over("trajectory")
    out = rows.select("trajectory", ts=pl.col("ts") + stands_s, until=until).filter(
        (pl.col("ts") < pl.col("until")) | pl.col("until").is_null(), pl.col("ts").is_not_null()
    )
    steps = rows.select("trajectory", "ts", "rate_per_hour", reason="interval_reason")
    ends = out.select("trajectory", "ts", reason=pl.lit(Reason.MISSING_LEG.value))
    return pl.concat([steps, ends], how="diagonal").sort("ts")


_PREFIXES = "^(snapshot-)?(funding/)?"
_TYPES = {
    "trajectory": "String",
    "ts": "Int64",
    "rate": "Float64",
    "interval_hours": "number or null",
}


@analysis(
    "funding.prediction_errors",
    """
        error_mean_bps error_std_bps error_median_bps same_sign_share n coverage age_mean_s""",
    order="-error_std_bps",
    title="What was settled, less the rate in force before,",
    about="""
        Rates in force come from snapshots if any of these legs has them, else from the rows
        that are not settlements.""",
    example="BTC_USDT:*",
    across=legs,
    max_age=Parameter("The greatest age of a prediction: 5m, 1h."),
)
def prediction_errors(
    frame: Frame,
    rates: Frame | None = None,
    start: When | None = None,
    end: When | None = None,
    *,
    max_age: str | int = "1h",
) -> pl.DataFrame:
    """Compare what each leg settled with the last rate in force before, which predicted it.

    One row per leg of ``frame``, as `toolkit.statistics.funding.legs` lists them, sorted, for the
    settlements in ``(start, end]``. ``rates`` has the rates in force of single legs, as from
    snapshots: ``trajectory`` (``snapshot-funding/SYMBOL:EXCHANGE.market``), ``ts`` (s), ``rate``
    (fraction per its interval) and ``interval_hours`` (h, null for that of the settlement). By
    default they are the rows of the frame that are not settlements. The prediction is the last one
    before the settlement, not at it, at most ``max_age`` old and scaled to the interval that was
    settled.

    {columns}

    Raises as `toolkit.statistics.funding.legs`, also if ``rates`` lack a column or have two rows of
    a leg at one time.

    >>> rows = {"trajectory": ["funding/A:X.futures"] * 2, "ts": [28800, 57600]}
    >>> paid = {"buy_rate": [0.0] * 2, "sell_rate": [1e-4, -2e-4]}
    >>> hours = {"buy_interval_hours": [None] * 2, "sell_interval_hours": [8] * 2}
    >>> rates = pl.DataFrame({"trajectory": "snapshot-funding/A:X.futures", "ts": [28500, 57300],
    ...     "rate": [3e-4, -3e-4], "interval_hours": [8, 8]})
    >>> found = prediction_errors(pl.DataFrame(rows | paid | hours), rates, 0, 57600)
    >>> found.select("n", pl.col("error_mean_bps").round(9), "same_sign_share").row(0)
    (2, -0.5, 1.0)
    """
    max_age_s = parse_length(max_age, parameter="max_age")
    singles = legs(frame)
    window = window_of(singles, start, end, settlements_extent)
    asked = (("max_age_s", max_age_s), ("own", int(rates is None)))
    question = Question("funding.prediction_errors/2", *window, options=asked)
    found = settlements(singles)
    known = _own(singles, found) if rates is None else _given(rates)
    settled = found.rows.filter(inside(question)).sort("trajectory", "ts")
    compared = settled.join_asof(
        known.rename({"rate": "predicted", "interval_hours": "predicted_hours"}),
        left_on="ts",
        right_on="at",
        by="trajectory",
        strategy="backward",
        allow_exact_matches=False,
        tolerance=max_age_s,
        coalesce=False,
        check_sortedness=False,
    )
    scale = (pl.col("interval_hours") / pl.col("predicted_hours")).fill_null(1.0)
    compared = compared.with_columns((pl.col("predicted") * scale).alias("predicted"))
    return (
        found.trajectories.select("trajectory")
        .join(_errors(compared), on="trajectory", how="left", maintain_order="left")
        .select("trajectory", *_figures(), *question.columns)
    )


def _own(singles: pl.DataFrame, found: LegSettlements) -> pl.DataFrame:
    return (
        singles.join(found.in_force, on=["trajectory", "ts"], how="semi", maintain_order="left")
        .select("trajectory", at="ts", rate="sell_rate", interval_hours="sell_interval_hours")
        .drop_nulls("rate")
    )


def _given(rates: Frame) -> pl.DataFrame:
    checked_types(rates, _TYPES, parameter="rates")
    leg = pl.lit("funding/") + pl.col("trajectory").str.replace(_PREFIXES, "")
    hours = pl.col("interval_hours").cast(pl.Float64)
    rows = rates.lazy().select(
        leg.alias("trajectory"),
        "ts",
        observed("rate").alias("rate"),
        pl.when(hours > 0).then(hours).alias("interval_hours"),
    )
    held = collected(rows).sort("trajectory", "ts")
    checked_keys(held)
    return held.drop_nulls("rate").rename({"ts": "at"})


def _errors(compared: pl.DataFrame) -> pl.DataFrame:
    settled, predicted = pl.col("rate"), pl.col("predicted")
    has = predicted.is_not_null()
    error = BPS * (settled - predicted)
    signed = has & (settled != 0) & (predicted != 0)
    return compared.group_by("trajectory", maintain_order=True).agg(
        pl.len().alias("n_settled"),
        has.sum().cast(pl.Int64).alias("n"),
        (pl.col("ts") - pl.col("at")).filter(has).mean().alias("age_mean_s"),
        error.mean().alias("error_mean_bps"),
        error.median().alias("error_median_bps"),
        error.std().alias("error_std_bps"),
        signed.sum().cast(pl.Int64).alias("n_signed"),
        (signed & (settled.sign() == predicted.sign())).sum().alias("n_same"),
    )


def _figures() -> list[pl.Expr]:
    n, signed = pl.col("n").fill_null(0), pl.col("n_signed").fill_null(0)
    empty = {Reason.EMPTY: n == 0}
    return [
        n,
        (n / pl.col("n_settled")).fill_null(0.0).alias("coverage"),
        *(pl.col(name) for name in ("age_mean_s", "error_mean_bps", "error_median_bps")),
        first_reason(empty).alias("prediction_reason"),
        pl.col("error_std_bps"),
        first_reason({**empty, Reason.TOO_FEW: n < 2}).alias("error_reason"),
        signed,
        pl.when(signed > 0).then(pl.col("n_same") / signed).alias("same_sign_share"),
        first_reason({Reason.EMPTY: signed == 0}).alias("sign_reason"),
    ]


@analysis(
    "rates.summary",
    """
        funding_apr_mean_pct funding_apr_std_pct coverage n funding_apr_median_pct
        funding_apr_q05_pct funding_apr_q95_pct longest_gap_s""",
    figures="""
        n coverage observed_share step_s n_segments longest_gap_s implausible funding_apr_mean_pct
        funding_apr_time_weighted_mean_pct funding_apr_std_pct funding_apr_median_pct
        funding_apr_q05_pct funding_apr_q95_pct half_life_s""",
    order="-funding_apr_mean_pct",
    title="Funding rate in force, percent a year,",
    command="",
)
def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Compute level, dispersion and tails of a leg's funding rate in force, in percent a year.

    It is `toolkit.statistics.spread.summary` of ``funding_apr_pct``, with its columns and errors.
    `toolkit.statistics.funding.rates_in_force.with_apr` adds that column to rows of snapshots.

    >>> rows = {"trajectory": ["snapshot-funding/A:X.futures"] * 3, "ts": [0, 60, 120]}
    >>> frame = pl.DataFrame(rows | {"funding_apr_pct": [10.0, 11.0, 12.0]})
    >>> summary(frame, 0, 180)["funding_apr_mean_pct"].item()
    11.0
    """
    return spread_summary(
        frame, start, end, column="funding_apr_pct", step_s=step_s, max_stale_s=max_stale_s
    )
