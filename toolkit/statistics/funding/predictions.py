"""Errors of predicted rates: the last rate in force before a settlement, and what was settled."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import When, parse_length
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, checked_types, collected, first_reason
from toolkit.statistics.core.observations import checked_keys, observed
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.dispersion import legs
from toolkit.statistics.funding.receipts import BPS, inside
from toolkit.statistics.funding.settlements import LegSettlements, settlements

_PREFIXES = "^(snapshot-)?(funding/)?"
_TYPES = {
    "trajectory": "String",
    "ts": "Int64",
    "rate": "Float64",
    "interval_hours": "number or null",
}


@analysis(
    "funding.prediction_errors",
    (
        *("error_mean_bps", "error_std_bps", "error_median_bps", "same_sign_share", "n"),
        *("coverage", "age_mean_s"),
    ),
    order="-error_std_bps",
    title="What was settled, less the rate in force before,",
    about="""
        Rates in force are those kept from snapshots, where any of these legs is. Else they are the
        rows that are not settlements.""",
    example="BTC_USDT:*",
    across=legs,
    max_age=Parameter("How old a prediction may be: 5m, 1h."),
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

    One row per leg of ``frame``, as `toolkit.statistics.funding.legs` lists them, sorted. The
    settlements are those of ``(start, end]``. ``rates`` has the rates in force of single legs, as
    snapshots keep them: ``trajectory`` (``snapshot-funding/SYMBOL:EXCHANGE.market``), ``ts`` (s),
    ``rate`` (fraction per its interval) and ``interval_hours`` (h, null for that of the
    settlement). Without it they are the rows of the frame that are not settlements. The prediction
    is the last one before the settlement, at most ``max_age`` old, scaled to the interval that was
    settled. One at the time of the settlement itself may already be the next one's: it is not used.

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
    question = Question(
        "funding.prediction_errors/2",
        *window_of(singles, start, end, settlements_extent),
        options=(("max_age_s", max_age_s), ("own", int(rates is None))),
    )
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
        .select(
            "trajectory",
            pl.col("ts").alias("at"),
            pl.col("sell_rate").alias("rate"),
            pl.col("sell_interval_hours").alias("interval_hours"),
        )
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
