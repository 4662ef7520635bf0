"""Funding and carry of a position in two legs: per settlement, over a window, and after costs."""

from __future__ import annotations

import polars as pl

from toolkit.analyses import analysis
from toolkit.columns import names_for
from toolkit.errors import InputError
from toolkit.intervals import Interval
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_frame,
    checked_types,
    collected,
    first_reason,
)
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.fees.fee_table import FILLS, NOTIONAL, FeeModel, Style, check_asked
from toolkit.statistics.fees.net_edge import MULTIPLES, named_by
from toolkit.statistics.funding.carry_marks import (
    BASIS,
    FUNDING_ONLY,
    PairPrices,
    Prices,
    with_basis,
)
from toolkit.statistics.funding.differentials import with_service_differential
from toolkit.statistics.funding.rates_in_force import HOURS_A_YEAR
from toolkit.statistics.funding.receipts import MIN_COVERAGE, checked_coverage, receipts
from toolkit.statistics.funding.settlements import settlements

_UNUSUAL = ("n_early", "n_declared_differs", "n_in_force", "n_duplicates")
_SENT = (
    *("differential_n", "differential_basis", "differential_coverage", "differential_step_s"),
    *("differential_pct_8h_time_weighted_mean", "differential_apr_pct"),
)


@analysis(
    "funding.intervals",
    """
        leg ts rate interval_hours funding_apr_pct elapsed_hours missed changed interval_flag""",
    title="Settlements and their intervals",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def intervals(frame: Frame) -> pl.DataFrame:
    """List every settlement of every leg with the interval it accrued over.

    Spot legs have none. The interval is the time since the settlement before, if within a tenth of
    the declared interval, at this settlement or the one before. It is also a shorter time of 1, 2,
    4, 8 or 24 h that lasts for two settlements, as venues shorten their intervals at will.
    Otherwise it is the declared one. Without one, any of these times that lasts counts, else the
    last one seen. This looks one settlement ahead, so the newest interval may still change. Rates
    in force are left out.

    {columns}

    >>> hours = [0, 8, 16, 20, 24, 25, 26, 28]
    >>> frame = pl.DataFrame({"trajectory": "a", "ts": [3600 * hour for hour in hours],
    ...     "buy_rate": 0.0, "sell_rate": 1e-4, "buy_interval_hours": None,
    ...     "sell_interval_hours": [8, 8, 8, 4, 4, 1, 1, 1]})
    >>> found = intervals(frame)
    >>> found["interval_hours"].to_list()
    [8.0, 8.0, 8.0, 4.0, 4.0, 1.0, 1.0, 1.0]
    >>> found.row(-1, named=True)["interval_flag"], found["changed"].sum()
    ('missed', 2)
    """
    return settlements(frame).rows.drop("leg_number")


@analysis(
    "funding.carry",
    ("ts", "carry_bps", "funding_bps", "basis_bps", "payment_bps"),
    title=lambda *, funding_only, **_: (
        "Funding only, settlement by settlement,"
        if funding_only
        else "Carry with prices, settlement by settlement,"
    ),
    about="""
        Positive: long the buy leg and short the sell leg received it. Carry is what
        settlements paid plus what prices brought, from the start of the window to the
        settlement. --funding-only leaves prices out.""",
    command="carry-over-time",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
)
def carry(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    min_coverage: float = MIN_COVERAGE,
    prices: Prices | None = None,
    funding_only: bool = False,
) -> pl.DataFrame:
    """Sum what the position has received and gained after each settlement in ``(start, end]``.

    One row per time at which a leg settles. A settlement pays its whole rate, or the part of its
    time in the window that the other leg covers, as in `summary`, whose ``funding_bps`` is the last
    one here. Basis is that of `summary`, up to the row's time. With ``funding_only`` the columns
    from basis_bps to prices_lack are missing.

    {columns}

    >>> key = "A_B:X.spot:Y.futures"
    >>> frame = pl.DataFrame({"trajectory": [key] * 3, "ts": [0, 28800, 57600], "buy_rate": 0.0,
    ...     "sell_rate": [5e-4, 1e-4, 2e-4], "buy_interval_hours": None,
    ...     "sell_interval_hours": [8] * 3})
    >>> spread = {"trajectory": key, "ts": [-28800, 0, 28800], "spread_log_bps": [9.0, 4.0, 6.0]}
    >>> found = carry(frame, 0, 57600, prices=pl.DataFrame(spread))
    >>> found.select("ts", "payment_bps", "funding_bps", "basis_bps", "carry_bps").rows()
    [(28800, 1.0, 1.0, 5.0, 6.0), (57600, 2.0, 3.0, 3.0, 6.0)]
    """
    window = window_of(frame, start, end, settlements_extent)
    question = _question("funding.carry/4", window, min_coverage, funding_only)
    priced = PairPrices.of(prices, funding_only=funding_only)
    found = receipts(settlements(frame), question, min_coverage=min_coverage)
    known = pl.col("funding_reason").is_null()
    rows = (
        found.payments.group_by("trajectory", "ts", maintain_order=True)
        .agg(pl.col("payment_bps").sum())
        .sort("trajectory", "ts")
        .join(
            found.figures.select("trajectory", "t_first", "funding_reason"),
            on="trajectory",
            how="left",
            maintain_order="left",
        )
        .with_columns(
            pl.when(known).then("payment_bps"),
            pl.when(known)
            .then(pl.col("payment_bps").cum_sum().over("trajectory"))
            .alias("funding_bps"),
        )
    )
    names = ["trajectory", "ts", "payment_bps", "funding_bps", "funding_reason"]
    if priced is not None:
        rows = with_basis(rows.with_columns(question.columns[0], window_end="ts"), priced)
        names += BASIS
    return rows.select(*names, *question.columns)


@analysis(
    "funding.summary",
    """
        funding_apr_pct funding_bps differential_apr_pct basis_bps carry_bps coverage n n_missed
        buy_funding_bps sell_funding_bps buy_coverage sell_coverage""",
    figures=(
        *("n", "n_buy", "n_sell", "n_missed"),
        *_UNUSUAL,
        *("n_changed", "buy_coverage", "sell_coverage", "coverage", "implausible"),
        *("buy_funding_bps", "sell_funding_bps", "funding_bps", "funding_apr_pct"),
        *_SENT,
        "basis_bps",
        "carry_bps",
    ),
    unusual=(*_UNUSUAL, *_SENT),
    order="-funding_apr_pct",
    title=lambda *, funding_only, **_: (
        "Funding only" if funding_only else "Funding received, and carry with prices,"
    ),
    about="""
        Positive: long the buy leg and short the sell leg received it. Carry is what
        settlements paid plus what prices brought, by the stored spread or prices of the
        legs. Only the time that both legs cover counts. A settlement at the start of the
        window is not received, one at its end is. Without a window it takes all stored
        settlements, up to the last sync. The largest APR comes first. One trajectory alone
        is shown with every figure. If the service sends no rates of the legs, the mean of
        its own differential in force follows.

        A rate from snapshots is one in force, which pays nothing until it settles. For such
        keys the command prints the level in percent a year, with coverage by polls.

        With a fee table the carry net of one round trip follows, and the days in which
        funding alone breaks even. --funding-only leaves prices out.""",
    command="funding",
    example="BTC_USDT:AURORA.futures:EQUINOX.futures",
    net="funding.net_summary",
    prices="ends",
    also=("not_tracked", *names_for("spread.summary", "funding_apr_pct")),
    report=1,
)
def summary(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    min_coverage: float = MIN_COVERAGE,
    prices: Prices | None = None,
    funding_only: bool = False,
) -> pl.DataFrame:
    """Sum the funding and the carry of a position over ``(start, end]``, also as a yearly rate.

    One row per trajectory, sorted. Intervals are those of `intervals` over the whole frame.

    - A leg covers the time from each settlement, in the window or after it, back over its interval.
      A spot leg covers everything.
    - Coverage is settlements present over expected, one per interval and each by its part in the
      window: also a share of time.
    - Only time that both legs cover counts. If it is less of the window than ``min_coverage``, 0 to
      1, figures are null.
    - Funding is cash received, as in `carry`: a settlement in ``(start, end]`` counts whole, also
      for an interval that began before ``start``, or by the part that the other leg covers.
    - Basis is of the spreads last known at ``start`` and ``end``. Without one at ``start``, the
      position is opened at the first known within 8 h and before the first settlement.
    - The yearly rate is the mean over the covered time of the sell leg's rate per hour less the buy
      leg's, times 8760 h. Only the part of an interval in the window counts.
    - With ``funding_only`` the columns from basis_bps to prices_lack are missing.

    {columns}

    >>> frame = pl.DataFrame({"trajectory": "BTC_USDT:BINANCE.spot:BINANCE.futures",
    ...     "ts": [28800, 57600, 86400], "buy_rate": 0.0, "sell_rate": 3e-4,
    ...     "buy_interval_hours": None, "sell_interval_hours": [8] * 3})
    >>> row = summary(frame, 0, 86400).row(0, named=True)
    >>> row["n"], row["coverage"], round(row["funding_bps"], 9), round(row["funding_apr_pct"], 9)
    (3, 1.0, 9.0, 32.85)
    >>> row["carry_bps"], row["carry_reason"]
    (None, 'missing_price')
    """
    window = window_of(frame, start, end, settlements_extent)
    question = _question("funding.summary/4", window, min_coverage, funding_only)
    priced = PairPrices.of(prices, funding_only=funding_only)
    found = receipts(settlements(frame), question, min_coverage=min_coverage)
    figures = with_service_differential(found.figures, frame, window)
    figures = figures.with_columns(*question.columns)
    if priced is None:
        return figures
    kept = with_basis(figures, priced)
    return kept.select(pl.exclude(*BASIS, *_ASKED), *BASIS, *_ASKED)


_ASKED = ("window_start", "window_end", "method", "params_hash")


def _question(method: str, window: Interval, min_coverage: float, funding_only: bool) -> Question:
    options = (("min_coverage", checked_coverage(min_coverage)), ("funding_only", funding_only))
    return Question(method, *window, options=options)


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
    """
        net_apr_pct net_carry_bps funding_only_net_apr_pct funding_only_net_carry_bps
        funding_only_breakeven_days""",
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
    8760 h over the hours of the window. Rows keep their order. For rows with ``funding_only``
    figures after cost_lacks are named ``funding_only_``.

    {columns}

    Raises `InputError`: A column is missing or of another type, or a key names no legs. ``fees`` is
    not a fee table, ``notional`` not a number above 0, or ``style`` none in which a position is
    held.

    9 bps in a day break even with a cost of 53 bps in the sixth day.

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
