"""Funding after the cost of opening and closing the position."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import analysis
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    checked_frame,
    checked_types,
    collected,
    first_reason,
)
from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.fees.net_edge import MULTIPLES, named_by
from toolkit.statistics.funding.carry_marks import FUNDING_ONLY
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR

_HELD = ("taker", "maker", "maker_buy", "maker_sell")
_TYPES = {
    "trajectory": "String",
    "window_start": "Int64",
    "window_end": "Int64",
    "funding_bps": "Float64",
    "funding_reason": "String",
    "funding_apr_pct": "Float64",
    "funding_apr_reason": "String",
}
_PRICED = {"basis_bps": "Float64", "carry_bps": "Float64", "carry_reason": "String"}


_FIGURES = (
    *("breakeven_bps", "net_carry_bps", "net_carry_at_half_cost_bps"),
    *("net_carry_at_twice_cost_bps", "net_apr_pct"),
    *("net_apr_at_half_cost_pct", "net_apr_at_twice_cost_pct"),
)
_ONLY = tuple(f"{FUNDING_ONLY}{name}" for name in _FIGURES)


@analysis(
    "funding.net_summary",
    (
        *("net_apr_pct", "net_carry_bps", "funding_only_net_apr_pct"),
        *("funding_only_net_carry_bps", "funding_only_breakeven_days"),
    ),
    figures=("cost_bps", *_FIGURES, *_ONLY, "funding_only_breakeven_days"),
    command="",
    also=(
        *_ONLY,
        *(f"{FUNDING_ONLY}{name}_reason" for name in ("net_carry", "breakeven", "net_apr")),
    ),
)
def net_summary(
    figures: Frame, fees: FeeModel, *, notional: float = NOTIONAL, style: Style = "taker"
) -> pl.DataFrame:
    """Compute what one round trip leaves of the carry, beside the rows of `summary`.

    The position is held from ``window_start`` to ``window_end``, and pays `FeeModel.round_trip_bps`
    of ``window_start`` once. The yearly rate is funding_apr_pct, plus basis_bps less the cost times
    8760 h over the hours of the window. Rows keep their order. For rows with ``funding_only`` the
    carry is funding_bps, and figures after cost_lacks are named ``funding_only_``.

    {columns}

    Raises
    ------
    InputError
        A column is missing or of another type, or a key names no legs. ``fees`` is not a fee table,
        ``notional`` not a number above 0, or ``style`` none in which a position is held.

    Examples
    --------
    9 bps in a day break even with 53 bps for two round trips in the sixth day. The spread widened
    by 4 bps.

    >>> figures = pl.DataFrame(
    ...     {
    ...         "trajectory": ["funding/BTC_USDT:BINANCE.futures:KRAKEN.futures"],
    ...         "funding_bps": [9.0],
    ...         "funding_reason": [None],
    ...         "funding_apr_pct": [32.85],
    ...         "funding_apr_reason": [None],
    ...         "basis_bps": [-4.0],
    ...         "carry_bps": [5.0],
    ...         "carry_reason": [None],
    ...         "window_start": [1700006400],
    ...         "window_end": [1700092800],
    ...     },
    ...     schema_overrides=dict.fromkeys(
    ...         ("funding_reason", "funding_apr_reason", "carry_reason"), pl.String
    ...     ),
    ... )
    >>> row = net_summary(figures, FeeModel.example()).row(0, named=True)
    >>> row["cost_bps"], row["net_carry_bps"], round(row["funding_only_breakeven_days"], 3)
    (53.0, -48.0, 5.889)
    """
    check_asked(fees, notional, style)
    if style not in _HELD:
        raise InputError("style", style, _HELD, advice="a position that earns funding is held")
    checked_frame(figures, "figures")
    priced = "carry_bps" in figures.collect_schema()
    checked_types(figures, _TYPES | (_PRICED if priced else {}))
    rows = collected(figures)
    opened = list(rows.select("trajectory", "window_start").iter_rows())
    costs = [fees.round_trip_bps(key, notional, style, at=at) for key, at in opened]
    lacks = [", ".join(fees.lacking(key, style, at=at)) or None for key, at in opened]
    known = rows.with_columns(
        pl.Series("cost_bps", costs, dtype=pl.Float64),
        pl.Series("cost_lacks", lacks, dtype=pl.String),
        pl.Series("fills", [FILLS[style] * key.count(":") / 2 for key, _ in opened], pl.Float64),
    )
    found = known.select(*_figures(priced=priced), *named_by(fees, notional, style))
    return pl.concat([rows, found], how="horizontal")


def _figures(*, priced: bool) -> list[pl.Expr]:
    of, only = ("carry", "") if priced else ("funding", FUNDING_ONLY)
    cost, carry, apr = pl.col("cost_bps"), pl.col(f"{of}_bps"), pl.col("funding_apr_pct")
    hours = (pl.col("window_end") - pl.col("window_start")) / 3600
    yearly = HOURS_A_YEAR / hours / 100
    basis_apr = pl.col("basis_bps") * yearly if priced else pl.lit(0.0)
    unknown = first_reason({Reason.UNKNOWN_FEE: cost.is_null()})
    of_funding = pl.coalesce("funding_apr_reason", unknown)
    never = (apr <= 0) & (cost > 0)
    days = 365 * cost / (100 * apr)
    return [
        cost,
        unknown.alias("cost_reason"),
        pl.col("cost_lacks"),
        *((carry - k * cost).alias(f"{only}net_carry{at}_bps") for at, k in MULTIPLES.items()),
        pl.coalesce(f"{of}_reason", unknown).alias(f"{only}net_carry_reason"),
        (carry / pl.col("fills")).alias(f"{only}breakeven_bps"),
        pl.col(f"{of}_reason").alias(f"{only}breakeven_reason"),
        *(
            (apr + basis_apr - k * cost * yearly).alias(f"{only}net_apr{at}_pct")
            for at, k in MULTIPLES.items()
        ),
        pl.coalesce("funding_apr_reason", f"{of}_reason", unknown).alias(f"{only}net_apr_reason"),
        pl.when(~never & apr.is_not_null())
        .then(pl.when(cost <= 0).then(0.0).otherwise(days))
        .alias(f"{FUNDING_ONLY}breakeven_days"),
        pl.coalesce(of_funding, first_reason({Reason.NOTHING_LEFT: never})).alias(
            f"{FUNDING_ONLY}breakeven_days_reason"
        ),
    ]
