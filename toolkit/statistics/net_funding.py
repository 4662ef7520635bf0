"""What funding leaves after the cost of opening and closing the position."""

from __future__ import annotations

import polars as pl

from toolkit.errors import InputError
from toolkit.statistics.contract import Frame, Reason, checked_types, collected, first_reason
from toolkit.statistics.fee_table import FILLS, NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.net_edge import MULTIPLES, named_by
from toolkit.statistics.rates_in_force import HOURS_A_YEAR

_HELD = ("taker", "maker", "maker_buy", "maker_sell")
_TYPES = {
    "trajectory": "String",
    "window_start": "Int64",
    "window_end": "Int64",
    "carry_bps": "Float64",
    "carry_reason": "String",
    "funding_apr_pct": "Float64",
    "funding_apr_reason": "String",
}


def net_summary(
    figures: Frame,
    fees: FeeModel,
    *,
    notional: float = NOTIONAL,
    style: Style = "taker",
) -> pl.DataFrame:
    """Add to rows of `toolkit.statistics.funding.summary` what one round trip leaves of the carry.

    The position is opened at ``window_start`` and closed at ``window_end``, and pays the cost of
    `FeeModel.round_trip_bps` once, by the fees at ``window_start``. The yearly rate is less the
    cost times 8760 h over the hours of the window. Rows stay in the order given.

    ===========================  =======  =======  ==============================================
    column                       type     unit     meaning
    ===========================  =======  =======  ==============================================
    cost_bps                     Float64  bps      cost of the round trip
    cost_reason                  String   none     unknown_fee
    cost_lacks                   String   none     what the table lacks, null where nothing
    net_carry_bps                Float64  bps      carry_bps - cost_bps
    net_carry_at_half_cost_bps   Float64  bps      carry_bps - cost_bps / 2
    net_carry_at_twice_cost_bps  Float64  bps      carry_bps - 2 cost_bps
    net_carry_reason             String   none     as carry_reason, unknown_fee
    breakeven_bps                Float64  bps      fee per fill at which the carry leaves nothing:
                                                   carry_bps over the fills
    breakeven_reason             String   none     as carry_reason
    net_apr_pct                  Float64  percent  funding_apr_pct less the cost over the window
    net_apr_at_half_cost_pct     Float64  percent  the same at half the cost
    net_apr_at_twice_cost_pct    Float64  percent  the same at twice the cost
    net_apr_reason               String   none     as funding_apr_reason, unknown_fee
    breakeven_days               Float64  days     until a carry at funding_apr_pct is the cost
    breakeven_days_reason        String   none     as net_apr_reason, nothing_left (the rate is 0
                                                   or paid, and the cost above 0)
    style                        String   none     as asked
    notional                     Float64  quote    as asked
    fee_model                    String   none     the table's name
    fee_model_hash               String   none     the same where the table is the same
    ===========================  =======  =======  ==============================================

    Raises
    ------
    InputError
        A column is missing or of another type, or a key names no legs. ``fees`` is no fee table,
        ``notional`` no number above 0, or ``style`` none in which a position is held.

    Examples
    --------
    9 bps in a day, for two takers' round trips of 53 bps, break even in the sixth day.

    >>> figures = pl.DataFrame(
    ...     {
    ...         "trajectory": ["funding/BTC_USDT:BINANCE.futures:KRAKEN.futures"],
    ...         "carry_bps": [9.0],
    ...         "carry_reason": [None],
    ...         "funding_apr_pct": [32.85],
    ...         "funding_apr_reason": [None],
    ...         "window_start": [1700006400],
    ...         "window_end": [1700092800],
    ...     },
    ...     schema_overrides={"carry_reason": pl.String, "funding_apr_reason": pl.String},
    ... )
    >>> row = net_summary(figures, FeeModel.example()).row(0, named=True)
    >>> row["cost_bps"], row["net_carry_bps"], round(row["breakeven_days"], 3)
    (53.0, -44.0, 5.889)
    """
    check_asked(fees, notional, style)
    if style not in _HELD:
        raise InputError("style", style, _HELD, advice="a position that earns funding is held")
    checked_types(figures, _TYPES)
    rows = collected(figures)
    opened = list(rows.select("trajectory", "window_start").iter_rows())
    costs = [fees.round_trip_bps(key, notional, style, at=at) for key, at in opened]
    lacks = [", ".join(fees.lacking(key, style, at=at)) or None for key, at in opened]
    known = rows.with_columns(
        pl.Series("cost_bps", costs, dtype=pl.Float64),
        pl.Series("cost_lacks", lacks, dtype=pl.String),
        pl.Series("fills", [FILLS[style] * key.count(":") / 2 for key, _ in opened], pl.Float64),
    )
    found = known.select(*_figures(), *named_by(fees, notional, style))
    return pl.concat([rows, found], how="horizontal")


def _figures() -> list[pl.Expr]:
    cost, carry, apr = pl.col("cost_bps"), pl.col("carry_bps"), pl.col("funding_apr_pct")
    hours = (pl.col("window_end") - pl.col("window_start")) / 3600
    cost_apr = cost / 100 * HOURS_A_YEAR / hours
    unknown = first_reason({Reason.UNKNOWN_FEE: cost.is_null()})
    apr_reason = pl.coalesce("funding_apr_reason", unknown)
    never = (apr <= 0) & (cost > 0)
    days = 365 * cost / (100 * apr)
    return [
        cost,
        unknown.alias("cost_reason"),
        pl.col("cost_lacks"),
        *((carry - k * cost).alias(f"net_carry{at}_bps") for at, k in MULTIPLES.items()),
        pl.coalesce("carry_reason", unknown).alias("net_carry_reason"),
        (carry / pl.col("fills")).alias("breakeven_bps"),
        pl.col("carry_reason").alias("breakeven_reason"),
        *((apr - k * cost_apr).alias(f"net_apr{at}_pct") for at, k in MULTIPLES.items()),
        apr_reason.alias("net_apr_reason"),
        pl.when(~never & apr.is_not_null())
        .then(pl.when(cost <= 0).then(0.0).otherwise(days))
        .alias("breakeven_days"),
        pl.coalesce(apr_reason, first_reason({Reason.NOTHING_LEFT: never})).alias(
            "breakeven_days_reason"
        ),
    ]
