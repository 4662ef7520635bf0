"""Net edge: each row of a spread after costs."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    checked_columns,
    checked_types,
    collected,
    first_reason,
    real_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.observations import checked_keys, observed
from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, FeeModel, Style, check_asked

MULTIPLES = {"": 1.0, "_at_half_cost": 0.5, "_at_twice_cost": 2.0}
"""Multiples of the cost, by the suffix of figures' names."""


@analysis(
    "fees.net_edge",
    ("edge_bps", "cost_bps", "gross_bps", "breakeven_bps", "edge_at_twice_cost_bps"),
    family="spread",
    key=("trajectory", "ts"),
    title="What spreads leave after costs,",
    about="""
        One row per observation, with what a round trip on it leaves. `rail stats spread
        --fees FILE` has how often, and how much in all.""",
    example="BTC_USDT:AURORA.spot:BOREAS.spot --fees fees.toml",
    exit_bps=Parameter("The spread at the exit.", "bps"),
)
def net_edge(
    frame: Frame,
    fees: FeeModel,
    *,
    notional: float = NOTIONAL,
    style: Style = "taker",
    exit_bps: float = 0.0,
) -> pl.DataFrame:
    """Compute what the spread of each row would leave after the costs of a round trip.

    Reads ``trajectory`` (String, the key of two legs), ``ts`` and ``spread_bps`` (computed from
    ``buy_price`` and ``sell_price`` if missing). Gross is as in `gross_bps`, the cost
    `FeeModel.round_trip_bps` at the row's time. A LazyFrame is collected.

    {columns}

    Raises `InputError`: A key is null, doubled or not of two legs. ``notional`` or ``exit_bps`` is
    not a number, or ``style`` not one of `Style`. The table has entries and the cost of no row: the
    message names what is missing.

    >>> frame = pl.DataFrame({"trajectory": "BTC_USDT:BINANCE.spot:KRAKEN.spot",
    ...     "ts": [1700000000, 1700000060], "spread_bps": [80.0, -20.0]})
    >>> net = net_edge(frame, FeeModel.example(), notional=10_000)
    >>> net.select("gross_bps", "cost_bps", "edge_bps", "breakeven_bps").rows()
    [(80.0, 53.0, 27.0, 20.0), (20.0, 53.0, -33.0, 5.0)]
    """
    check_asked(fees, notional, style)
    real_number("exit_bps", exit_bps, "a finite number")
    frame = holding(frame, "spread_bps")
    checked_columns(frame, "spread_bps")
    checked_types(frame, {"trajectory": "String"})
    rows = collected(frame)
    checked_keys(rows)
    gross = gross_bps(observed("spread_bps"), style, exit_bps)
    keys = rows["trajectory"].unique(maintain_order=True)
    check_pairs(keys)
    costs = costs_over_time(keys, fees, notional, style)
    found = costed(rows.select("trajectory", "ts", gross.alias("gross_bps")), costs)
    gross, cost = pl.col("gross_bps"), pl.col("cost_bps")
    empty, unknown = {Reason.EMPTY: gross.is_null()}, {Reason.UNKNOWN_FEE: cost.is_null()}
    figures = found.select(
        gross,
        (gross * (1 / FILLS[style])).alias("breakeven_bps"),
        first_reason(empty).alias("gross_reason"),
        cost,
        first_reason(unknown).alias("cost_reason"),
        *((gross - k * cost).alias(f"edge{at}_bps") for at, k in MULTIPLES.items()),
        first_reason({**empty, **unknown}).alias("edge_reason"),
        *fee_table(fees),
    )
    if fees.fees and rows.height and figures["cost_bps"].null_count() == rows.height:
        last = rows.sort("ts").row(-1, named=True)
        if lacks := ", ".join(fees.lacking(last["trajectory"], style, at=last["ts"])):
            advice = "add it under [[fee]], valid from before the rows"
            raise InputError("fees", fees.name, f"a table with {lacks}", advice=advice)
    return pl.concat([rows, figures], how="horizontal")


def costed(rows: pl.DataFrame, costs: pl.DataFrame) -> pl.DataFrame:
    """Add ``cost_bps`` at the time of each row, by `costs_over_time`. Rows keep their order."""
    return (
        rows.with_row_index("row")
        .sort("ts")
        .join_asof(costs, on="ts", by="trajectory", check_sortedness=False)
        .sort("row")
        .drop("row")
    )


def check_pairs(keys: Iterable[str]) -> None:
    """Raise `InputError` for a key that does not name two legs."""
    for key in keys:
        if str(key).count(":") != 2:
            raise InputError("trajectory", key, "SYMBOL:BUY.market:SELL.market")


def gross_bps(spread: pl.Expr, style: Style, exit_bps: float = 0.0) -> pl.Expr:
    """Build the gross payoff of a spread (bps) before costs, taken in a style.

    It is abs(spread - exit_bps) if opened and closed, where ``exit_bps`` is the assumed spread at
    the exit, abs(spread) for ``prefunded``, and the spread for ``transfer``.
    """
    if style == "transfer":
        return spread
    return spread.abs() if style == "prefunded" else (spread - exit_bps).abs()


def net_now_bps(log_bps: pl.Expr, cost_bps: pl.Expr, style: Style) -> pl.Expr:
    """Build what a log spread (bps) leaves of a round trip's cost (bps)."""
    return gross_bps(1e4 * ((log_bps / 1e4).exp() - 1), style) - cost_bps


def with_costs(
    rows: pl.LazyFrame, part: pl.DataFrame, fees: FeeModel, notional: float, style: Style
) -> pl.LazyFrame:
    """Add ``cost_bps``, the cost of a round trip then, to observations of some trajectories."""
    check_pairs(part["trajectory"])
    costs = costs_over_time(part["trajectory"], fees, notional, style)
    numbered = costs.join(part.select("trajectory", "number").drop_nulls(), on="trajectory")
    by_time = numbered.select("number", "ts", "cost_bps").sort("number", "ts").lazy()
    return rows.join_asof(by_time, on="ts", by="number", check_sortedness=False)


def named_by(fees: FeeModel, notional: float, style: Style) -> list[pl.Expr]:
    """Build the columns that name style, notional and fee table."""
    named = [pl.lit(style).alias("style"), pl.lit(float(notional)).alias("notional")]
    return [*named, *fee_table(fees)]


def fee_table(fees: FeeModel | None) -> list[pl.Expr]:
    """Build the columns that name the fee table, null without one."""
    name, of = (fees.name, fees.hash) if fees else (None, None)
    return [
        pl.lit(name, pl.String).alias("fee_model"),
        pl.lit(of, pl.String).alias("fee_model_hash"),
    ]


def costs_over_time(
    keys: Iterable[str], fees: FeeModel, notional: float, style: Style
) -> pl.DataFrame:
    """Return each trajectory's cost from each change of the table on, sorted by time.

    Columns: trajectory, ts (s, from when it applies) and cost_bps, null if unknown.
    """
    given = [
        (key, at, fees.round_trip_bps(key, notional, style, at=at))
        for key in keys
        for at in fees.changes
    ]
    schema = {"trajectory": pl.String, "ts": pl.Int64, "cost_bps": pl.Float64}
    return pl.DataFrame(given, schema=schema, orient="row").sort("ts")
