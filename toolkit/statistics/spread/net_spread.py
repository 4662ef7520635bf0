"""Spreads after costs, summed up over a window."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_types,
    first_reason,
    real_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.fees.net_edge import MULTIPLES, gross_bps, named_by, with_costs
from toolkit.statistics.numeric.lags import MIN_PAIRS
from toolkit.statistics.numeric.long_run import WAVES, evenly, memories, slow_variance
from toolkit.statistics.numeric.tails import two_sided_chance

_CELLS = 120
"""Cells of equal time observed, over which the slow part of net is summed."""
_ROUNDING = 1e-13
_PERCENTS = (5, 50, 95, 99)
_EMPTY = {Reason.EMPTY: pl.col("n") == 0}
_UNKNOWN = {Reason.UNKNOWN_FEE: pl.col("net_n").fill_null(0) == 0}


@analysis(
    "spread.net_summary",
    ("cost_bps", "net_share", "net_mean_bps"),
    figures="""
        cost_bps gross_mean_bps gross_q95_bps breakeven_bps breakeven_q95_bps net_share
        net_share_at_half_cost net_share_at_twice_cost net_mean_bps net_mean_at_half_cost_bps
        net_mean_at_twice_cost_bps net_q50_bps net_q95_bps net_q99_bps""",
    command="",
    exit_bps=Parameter("The spread at the exit.", "bps"),
)
def net_summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    fees: FeeModel,
    notional: float = NOTIONAL,
    style: Style = "taker",
    exit_bps: float = 0.0,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Sum up what spreads pay before and after costs: at half, once and twice the costs.

    Reads ``spread_bps`` (computed from the prices if missing) of trajectories whose keys name two
    legs. Gross is as in `toolkit.statistics.fees.net_edge.gross_bps`, the cost
    `FeeModel.round_trip_bps` at the observation's time, and net is gross less cost. Means weigh
    observations by the seconds for which they are valid, quantiles count each once. Observations of
    unknown cost are in the gross figures alone. One row per trajectory, with the columns of
    `coverage` before these:

    {columns}

    Raises `InputError`: As `coverage`. A key names no two legs. ``fees`` is not a fee table,
    ``notional`` not a number above 0, ``exit_bps`` not a number, or ``style`` none of `Style`.

    Three of four minutes are beyond a cost of 53 bps, by 27 bps.

    >>> frame = pl.DataFrame({"trajectory": ["BTC_USDT:BINANCE.spot:KRAKEN.spot"] * 4,
    ...     "ts": [1700000000, 1700000060, 1700000120, 1700000180],
    ...     "spread_bps": [80.0, 80.0, -80.0, 20.0]})
    >>> row = net_summary(frame, fees=FeeModel.example()).row(0, named=True)
    >>> row["gross_mean_bps"], row["cost_bps"], row["net_share"], row["net_mean_bps"]
    (65.0, 53.0, 0.75, 27.0)
    """
    check_asked(fees, notional, style)
    exit_level = real_number("exit_bps", exit_bps, "a finite number")
    frame = holding(frame, "spread_bps")
    checked_types(frame, {"trajectory": "String"})
    by = (("fees", fees.hash), ("style", style), ("notional", float(notional)))
    asked, window = (*by, ("exit_bps", exit_level)), window_of(frame, start, end)
    question = Question("spread.net_summary/2", *window, "spread_bps", step_s, max_stale_s, asked)
    net = _net(gross_bps(pl.col("value"), style, exit_level), fees, notional, style)
    found = measure(frame, question, net)
    lacks = _lacking(found["trajectory"], fees, style, question)
    return found.with_columns(
        pl.when(pl.col("net_n") < pl.col("n")).then(lacks).alias("cost_lacks")
    )


def _net(gross: pl.Expr, fees: FeeModel, notional: float, style: Style) -> Statistic:
    """Make the statistic of gross and net figures, from each observation's value and cost."""

    def prepare(observations: pl.LazyFrame, part: pl.DataFrame) -> pl.LazyFrame:
        priced = with_costs(observations, part, fees, notional, style)
        return priced.with_columns(gross.alias("gross"), pl.col("weight_s").cast(pl.Float64))

    def finish(_column: str) -> list[pl.Expr]:
        return _finished(fees, notional, style)

    return Statistic(_aggregated, finish, _edge, prepare)


def _edge(rows: pl.DataFrame) -> pl.DataFrame:
    net = rows.select(
        "number", "ts", "step_s", "weight_s", net=pl.col("gross") - pl.col("cost_bps")
    )
    parts = net.drop_nulls("net").partition_by("number", maintain_order=True)
    edge = dict.fromkeys(("edge", "edge_error", "edge_chance"), pl.Float64())
    schema = {"number": rows.schema["number"], **edge, "edge_memory": pl.String()}
    found = [(part["number"][0], *_mean_edge(part)) for part in parts]
    figures = pl.DataFrame(found, schema=schema, orient="row")
    every = rows.select(pl.col("number").unique(maintain_order=True))
    return every.join(figures, on="number", how="left", maintain_order="left")


def _mean_edge(part: pl.DataFrame) -> tuple[float, float, float, Reason | None]:
    """Compute the mean of one trajectory's net, its error, its p-value and why it has none."""
    ts, weight_s, net = (part[name].to_numpy() for name in ("ts", "weight_s", "net"))
    total_s = float(weight_s.sum())
    if part["step_s"][0] is None or total_s == 0:
        return math.nan, math.nan, math.nan, Reason.TOO_FEW
    mean = float((net * weight_s).sum()) / total_s
    (memory,) = memories([evenly(ts, net, part["step_s"][0])])
    # seconds are whole, so that no bit of the time observed so far is lost
    place = (weight_s.cumsum() - weight_s / 2) / total_s
    cell = (place * _CELLS).astype(np.int64).clip(max=_CELLS - 1)
    of_cells = np.bincount(cell, (net - mean) * weight_s, _CELLS).astype(np.float64)[None]
    error = math.sqrt(memory.excess * float(slow_variance(of_cells)[0])) / total_s
    if not error > _ROUNDING * float(np.abs(net).max()):
        return mean, math.nan, math.nan, memory.reason
    return mean, error, _chance_above(mean / error), memory.reason


def _chance_above(t: float) -> float:
    both = float(two_sided_chance(np.array([t]), np.array([float(WAVES)]))[0])
    return both / 2 if t >= 0 else 1 - both / 2


def _aggregated(_column: str) -> list[pl.Expr]:
    gross, cost, weight = pl.col("gross"), pl.col("cost_bps"), pl.col("weight_s")
    figures = {
        "gross_s": (gross * weight).sum(),
        "weighed_s": weight.sum(),
        "gross_q95_bps": gross.quantile(0.95, "linear"),
        "cost_bps": cost.last(),
        "cost_changes": cost.ne_missing(cost.shift(1)).slice(1).sum().cast(pl.Int64),
        "net_n": cost.count().cast(pl.Int64),
        "known_s": weight.filter(cost.is_not_null()).sum(),
    }
    for at, multiple in MULTIPLES.items():
        net = gross - multiple * cost
        figures[f"beyond_s{at}"] = weight.filter(net > 0).sum()
        figures[f"left_s{at}"] = (net * weight).filter(net > 0).sum()
        for percent in _PERCENTS:
            figures[f"net_q{percent:02}{at}_bps"] = net.quantile(percent / 100, "linear")
    return [figure.alias(name) for name, figure in figures.items()]


def _finished(fees: FeeModel, notional: float, style: Style) -> list[pl.Expr]:
    mean = _per("gross_s", "weighed_s")
    no_time = {Reason.TOO_FEW: (pl.col("known_s") > 0).not_().fill_null(value=True)}
    share_reason = {**_EMPTY, **_UNKNOWN, **no_time}
    shares = {f"net_share{at}": _per(f"beyond_s{at}", "known_s") for at in MULTIPLES}
    means = {f"net_mean{at}_bps": _per(f"left_s{at}", f"beyond_s{at}") for at in MULTIPLES}
    nothing = {Reason.NOTHING_LEFT: pl.any_horizontal(each.is_null() for each in means.values())}
    quantiles = [f"net_q{percent:02}{at}_bps" for at in MULTIPLES for percent in _PERCENTS]
    return [
        mean.alias("gross_mean_bps"),
        pl.col("gross_q95_bps"),
        (mean / FILLS[style]).alias("breakeven_bps"),
        (pl.col("gross_q95_bps") / FILLS[style]).alias("breakeven_q95_bps"),
        first_reason({**_EMPTY, Reason.TOO_FEW: mean.is_null()}).alias("gross_reason"),
        pl.col("cost_bps"),
        pl.col("cost_changes").fill_null(0),
        first_reason({**_EMPTY, Reason.UNKNOWN_FEE: pl.col("cost_bps").is_null()}).alias(
            "cost_reason"
        ),
        pl.lit(None, pl.String).alias("cost_lacks"),
        pl.col("net_n").fill_null(0),
        *(share.alias(name) for name, share in shares.items()),
        first_reason(share_reason).alias("net_share_reason"),
        *(each.alias(name) for name, each in means.items()),
        first_reason({**share_reason, **nothing}).alias("net_mean_reason"),
        *map(pl.col, quantiles),
        first_reason({**_EMPTY, **_UNKNOWN}).alias("net_quantiles_reason"),
        *_edge_columns(share_reason),
        *named_by(fees, notional, style),
    ]


def _per(total: str, time_s: str) -> pl.Expr:
    return pl.when(pl.col(time_s) > 0).then(pl.col(total) / pl.col(time_s))


def _edge_columns(no_mean: Mapping[Reason, pl.Expr]) -> list[pl.Expr]:
    error, memory = pl.col("edge_error"), pl.col("edge_memory")
    net_n = pl.col("net_n").fill_null(0)
    reason = first_reason(
        {
            **no_mean,
            Reason.TOO_FEW: no_mean[Reason.TOO_FEW]
            | (net_n < MIN_PAIRS)
            | (memory == Reason.TOO_FEW.value),
            Reason.DEGENERATE: error.is_nan(),
            Reason.LONG_MEMORY: memory == Reason.LONG_MEMORY.value,
        }
    )
    tested = reason.is_null()
    return [
        pl.when(first_reason(no_mean).is_null()).then("edge").alias("edge_mean_bps"),
        pl.when(tested).then(error).alias("edge_error_bps"),
        pl.when(tested).then("edge_chance").alias("edge_p_value"),
        reason.alias("edge_reason"),
    ]


def _lacking(keys: Iterable[str], fees: FeeModel, style: Style, question: Question) -> pl.Series:
    inside = [at for at in fees.changes if question.start < at < question.end]
    times = [question.start, *inside]
    words = [
        ", ".join(dict.fromkeys(w for at in times for w in fees.lacking(key, style, at=at)))
        for key in keys
    ]
    return pl.Series("cost_lacks", words, dtype=pl.String)
