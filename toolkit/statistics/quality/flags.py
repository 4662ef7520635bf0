"""Signs that the prices of a pair are not what they seem, with counts and first examples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_columns,
    checked_frame,
    collected,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.observations import PAIR_HASH
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.lags import checked_lag, peaks, why
from toolkit.statistics.quality.plausibility import (
    APART_BPS,
    MANY_ROWS,
    SERIES_FLAGS,
    conditions,
    prepared,
)

LEGS = ("buy", "sell")


def stale_legs(rows: pl.DataFrame, stale_s: int, stale_moves: int) -> pl.DataFrame:
    """Count the stale stretches of each leg, one row per number.

    ``rows`` are observations with ``number``, ``ts``, ``gap`` and both prices, sorted by number and
    time. Stale is as in `flags`.
    """
    found = rows.select(pl.col("number").unique(maintain_order=True))
    lasted = pl.col("ends") - pl.col("begins")
    for leg, other in (LEGS, LEGS[::-1]):
        stale = (
            _runs(rows, f"{leg}_price", f"{other}_price")
            .filter((lasted > stale_s) & (pl.col("moves") >= stale_moves))
            .group_by("number", maintain_order=True)
            .agg(
                pl.len().cast(pl.Int64).alias(f"stale_{leg}_runs"),
                pl.col("rows").sum().cast(pl.Int64).alias(f"stale_{leg}_rows"),
                lasted.max().alias(f"stale_{leg}_longest_s"),
                pl.col("begins").first().alias(f"stale_{leg}_first_ts"),
            )
        )
        found = found.join(stale, on="number", how="left", maintain_order="left")
    return found


def _runs(rows: pl.DataFrame, leg: str, other: str) -> pl.DataFrame:
    """List the stretches of equal closes of a leg without a gap, and the other's moves in each.

    Columns: number, begins and ends (s, first and last row), rows, moves.
    """
    number, price, beside = pl.col("number"), pl.col(leg), pl.col(other)
    after_gap = (number != number.shift(1)) | pl.col("gap").shift(1)
    begins = after_gap.fill_null(True) | price.ne_missing(price.shift(1))
    moved = (beside != beside.shift(1)).fill_null(False) & ~begins
    marked = rows.select(
        "number",
        "ts",
        price,
        first=begins,
        moves=moved.cast(pl.UInt32).cum_sum(),
        at=pl.int_range(pl.len()),
    )
    last = marked.filter(pl.col("first").shift(-1).fill_null(True))
    return (
        marked.filter("first")
        .select(
            "number",
            price,
            begins="ts",
            ends=last["ts"],
            rows=last["at"] - pl.col("at") + 1,
            moves=last["moves"] - pl.col("moves"),
        )
        .filter(price.is_not_null())
    )


def counted(name: str, which: pl.Expr) -> list[pl.Expr]:
    """Count the observations for which something is true, with the time of the first."""
    return [
        which.sum().cast(pl.Int64).alias(f"{name}_n"),
        pl.col("ts").filter(which).first().alias(f"{name}_first_ts"),
    ]


def with_repeats(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Mark the rows one step after another, and the closes of each leg that repeat.

    Adds the Booleans ``a_step_later``, and per leg ``buy_steps`` (both closes are known) and
    ``repeated_buy`` (they are equal). The rows have ``number``, ``ts``, ``step_s`` and both prices,
    sorted by number and time.
    """
    number = pl.col("number")
    a_step_later = (number == number.shift(1)) & (pl.col("ts").diff() == pl.col("step_s"))
    rows = rows.with_columns(a_step_later.fill_null(False).alias("a_step_later"))
    for leg in LEGS:
        price = pl.col(f"{leg}_price")
        before = price.shift(1)
        known = pl.col("a_step_later") & price.is_not_null() & before.is_not_null()
        repeated = known & (price == before).fill_null(False)
        rows = rows.with_columns(known.alias(f"{leg}_steps"), repeated.alias(f"repeated_{leg}"))
    return rows


def repeats() -> list[pl.Expr]:
    """Count each leg's closes one step after another, and those that repeat.

    The rows are those of `with_repeats`. The columns are ``rows_of_both``, and of each leg
    ``buy_steps``, ``repeated_buy_n`` and ``repeated_buy_first_ts``.
    """
    both = pl.col("buy_price").is_not_null() & pl.col("sell_price").is_not_null()
    found = [both.sum().cast(pl.Int64).alias("rows_of_both")]
    for leg in LEGS:
        found += [
            pl.col(f"{leg}_steps").sum().cast(pl.Int64),
            *counted(f"repeated_{leg}", pl.col(f"repeated_{leg}")),
        ]
    return found


APART = "apart_s"
"""The column of the difference of the ages of both prices (s), null where they have none."""

LATE = [pl.col(name) for name in ("late_s", "stale_sd_log_bps", "within_stale_sd_share")]
"""The figures of `late_legs`."""

UNKNOWN = {Reason.TOO_FEW: pl.col("stale_sd_log_bps").is_null()}
"""Why there are none."""

_DEVIATIONS = 2
"""A spread of fewer standard deviations of what a late leg makes may be that alone."""


def late_legs(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the deviation that a late leg alone gives the spread, and the share within it.

    ``rows`` are observations with ``number``, ``step_s``, ``a_step_later`` (than the one before),
    both prices, ``value`` (the log spread, bps) and `APART`, sorted by number and time. One row per
    number, with the columns of `flags`.
    """
    squares = [
        pl.when("a_step_later").then((price / price.shift(1) - 1).pow(2)).alias(f"{leg}_square")
        for leg in LEGS
        for price in [pl.col(f"{leg}_price")]
    ]
    step_s = pl.col("step_s").first().cast(pl.Float64)
    late_s = pl.coalesce(pl.col(APART).mean(), step_s)
    variance = sum(pl.col(f"{leg}_square").mean() for leg in LEGS) / len(LEGS)
    deviation = 1e4 * (variance * late_s / step_s).sqrt()
    return (
        rows.select("number", "step_s", APART, "value", *squares)
        .group_by("number", maintain_order=True)
        .agg(
            late_s.alias("late_s"),
            deviation.alias("stale_sd_log_bps"),
            (pl.col("value").abs() < _DEVIATIONS * deviation).mean().alias("within_stale_sd_share"),
        )
    )


FLAGS = (
    *("stale_buy", "stale_sell", "repeated_buy", "repeated_sell", "levels_apart"),
    *("power_of_ten", "service_differs", "clock_shift", *SERIES_FLAGS),
)
"""The names of the flags, each a Boolean column of `flags`."""

_CARRIED = ("buy_price", "sell_price", "spread_pct")
_ODD = tuple(name for name in SERIES_FLAGS if name != MANY_ROWS)
_TENFOLD_LOG_BPS = 1e4 * math.log(10)
_EMPTY = {Reason.EMPTY: pl.col("n") == 0}
_MISSING = _EMPTY | {Reason.MISSING_LEG: pl.col("rows_of_both") == 0}


@dataclass(frozen=True)
class _Thresholds:
    """The threshold of each flag: see `flags`."""

    stale_s: int = 3_600
    stale_moves: int = 10
    repeated_share: float = 0.5
    apart_bps: float = APART_BPS
    apart_share: float = 0.5
    differs_bps: float = 1.0
    least_correlation: float = 0.2
    max_lag_steps: int = 5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if name == "max_lag_steps":
                checked: float = checked_lag(value)
            elif name == "stale_s":
                checked = whole_number(name, value, 1, "seconds, at least 1")
            elif name == "stale_moves":
                checked = whole_number(name, value, 1)
            else:
                checked = real_number(name, value, "a number above 0", above=0)
            object.__setattr__(self, name, checked)

    def question(self, about: Question) -> Question:
        """Return the question of the flags about the same rows."""
        return replace(about, method="quality.flags/3", options=tuple(asdict(self).items()))


_USUAL = _Thresholds()


@analysis(
    "quality.flags",
    ("flags", "stale_sd_log_bps", "within_stale_sd_share", "rows_of_both", "n"),
    family="spread",
    order="-flags",
    title="Prices that may not be what they seem,",
    about="""
        A flag is null if the rows lack what it needs. --format explain says what each flag
        means, and which numbers raised it.""",
    stale_s=Parameter("How long a leg must repeat its price to be stale.", "s"),
    stale_moves=Parameter("How often the other leg must move meanwhile."),
    repeated_share=Parameter("The largest share of closes equal to the one before, 0 to 1."),
    apart_bps=Parameter("How far apart legs of two coins are at least.", "bps"),
    apart_share=Parameter("The share of observations, 0 to 1, that must be so far apart."),
    differs_bps=Parameter("How far the service's spread may be from that of the legs.", "bps"),
    least_correlation=Parameter("The correlation of returns that a shifted clock must reach."),
    report=3,
)
def flags(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    stale_s: int = _USUAL.stale_s,
    stale_moves: int = _USUAL.stale_moves,
    repeated_share: float = _USUAL.repeated_share,
    apart_bps: float = _USUAL.apart_bps,
    apart_share: float = _USUAL.apart_share,
    differs_bps: float = _USUAL.differs_bps,
    max_lag_steps: int = _USUAL.max_lag_steps,
    least_correlation: float = _USUAL.least_correlation,
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Flag what is wrong with the prices of a pair: a frozen leg, another coin, a shifted clock.

    Reads ``buy_price``, ``sell_price`` and ``spread_pct``, the service's own spread. A flag is null
    if the frame lacks what it needs. It is true if:

    - ``stale_buy``, ``stale_sell``: the leg repeats its close for longer than ``stale_s`` without a
      gap, while the other moves at least ``stale_moves`` times.
    - ``repeated_buy``, ``repeated_sell``: more than ``repeated_share`` of the leg's closes equal
      that of one step before.
    - ``levels_apart``: in at least ``apart_share`` of the observations the log spread is beyond
      ``apart_bps`` on either side, and near no power of ten.
    - ``power_of_ten``: in at least ``apart_share`` of them the ratio of the prices is within
      ``apart_bps`` of 10^k, k not 0, as if one contract is for 1,000 coins.
    - ``service_differs``: a spread of the legs is more than ``differs_bps`` from the service's.
    - ``clock_shift``: the largest correlation of returns at up to ``max_lag_steps``, as in
      `lead_lag`, is not at lag 0, at least ``least_correlation``, and above that at lag 0 by more
      than the null band.
    - ``level_break``: from one observation to the next the ratio of the prices changes by a factor
      within ``apart_bps`` of 10 or a tenth, or by 100 and more, less ``apart_bps``.
    - ``sentinel_price``: a price is a number that programs use for none
      (`toolkit.statistics.quality.plausibility.sentinel_marks`). Six nines or more count if the
      ratio is beyond twice its median or half of it.
    - ``more_than_expected``: there are more observations than bars.

    ``stale_sd_log_bps`` says how far apart two legs of one price are if one is known later: 1e4
    sigma sqrt(late_s), with sigma the volatility per second, from the one-step returns of both
    legs. ``late_s`` is the mean difference of the ages of both prices in rows of `pair`, else one
    step.

    One row per trajectory, sorted, with the columns of `coverage` before these. A first time is
    null without an example. The thresholds are part of ``params_hash``:

    {columns}

    Raises `InputError`: As `coverage` and `lead_lag`. A threshold is not a number, or not above 0.

    Source: A random walk has moved by so much in that time: Hayashi, T. and Yoshida, N. (2005),
    Bernoulli 11.

    A contract of 1,000 coins against the coin.

    >>> frame = pl.DataFrame({"trajectory": ["PEPE_USDT:AURORA.futures:BOREAS.spot"] * 3,
    ...     "ts": [0, 60, 120], "buy_price": [0.0101, 0.0102, 0.0103],
    ...     "sell_price": [1.01e-05, 1.02e-05, 1.04e-05]})
    >>> flags(frame).select("flags", "power_of_ten_exponent", "clock_shift_reason").row(0)
    ('power_of_ten', -3, 'too_few')
    """
    levels = stale_s, stale_moves, repeated_share, apart_bps, apart_share, differs_bps
    asked = _Thresholds(*levels, least_correlation, max_lag_steps)
    window = window_of(frame, start, end)
    frame = _with_legs(frame)
    question = asked.question(Question("", *window, "spread_log_bps", step_s, max_stale_s))
    return _named(measure(frame, question, _statistic(asked)))


def with_flags(frame: Frame, question: Question, *statistics: Statistic) -> pl.DataFrame:
    """Measure statistics of ``spread_log_bps`` and `flags` by default thresholds in one pass."""
    frame = _with_legs(frame)
    found = _named(measure(frame, question, *statistics, _statistic(_USUAL)))
    own = _USUAL.question(question)
    pairs: set[str | None] = {None}
    if PAIR_HASH in frame.collect_schema():
        pairs |= set(collected(frame.lazy().select(pl.col(PAIR_HASH).unique())).to_series())
    hashes = {question.hash_of(pair): own.hash_of(pair) for pair in pairs}
    first, last = (found.columns.index(name) for name in ("flags", "window_start"))
    names = found.columns
    return found.select(
        *names[:first],
        *names[last:],
        *names[first:last],
        pl.lit(own.method).alias("flags_method"),
        pl.col("params_hash").replace_strict(hashes).alias("flags_params_hash"),
    )


def _with_legs(frame: Frame) -> Frame:
    """Add the log spread, and prices and ``spread_pct`` as null if the frame lacks them."""
    checked_frame(frame)
    frame = holding(frame, "spread_log_bps")
    lacking = [name for name in _CARRIED if name not in frame.collect_schema()]
    frame = frame.with_columns(pl.lit(None, pl.Float64).alias(name) for name in lacking)
    aged = {"buy_age_s", "sell_age_s"} <= set(frame.collect_schema())
    apart = (pl.col("buy_age_s") - pl.col("sell_age_s")).abs() if aged else pl.lit(None)
    frame = frame.with_columns(apart.cast(pl.Float64).alias(APART))
    checked_columns(frame, "spread_log_bps", *_CARRIED)
    for name, least in (("buy_price", 0), ("sell_price", 0), ("spread_pct", -100)):
        given = pl.col(name)
        frame = frame.with_columns(pl.when(given.is_finite() & (given > least)).then(given))
    return frame


@cache
def _statistic(asked: _Thresholds) -> Statistic:
    odd = conditions()
    aggregates = [
        *repeats(),
        *_levels(asked.apart_bps),
        *(each for name in _ODD for each in counted(name, odd[name])),
        *_compared(asked),
    ]
    results = [
        *_results(asked),
        *_shifts(asked.least_correlation),
        *_unless(_MISSING | UNKNOWN, LATE, "stale_sd"),
    ]

    def fitted(rows: pl.DataFrame) -> pl.DataFrame:
        found = stale_legs(rows, asked.stale_s, asked.stale_moves)
        for other in (late_legs(rows), peaks(_logs(rows), asked.max_lag_steps)):
            found = found.join(other, on="number", how="left", maintain_order="left")
        return found

    return Statistic(
        lambda _column: aggregates,
        lambda _column: results,
        fitted,
        lambda rows, _part: prepared(with_repeats(rows), "spread_log_bps", asked.apart_bps),
        carried=(*_CARRIED, APART),
    )


def _logs(rows: pl.DataFrame) -> pl.DataFrame:
    buy, sell = pl.col("buy_price"), pl.col("sell_price")
    return rows.filter(buy.is_not_null() & sell.is_not_null()).select(
        "number", "ts", "step_s", buy.log().alias("value"), sell.log().alias("sell_log_price")
    )


def _levels(apart_bps: float) -> list[pl.Expr]:
    spread = pl.col("value")
    exponent = (spread / _TENFOLD_LOG_BPS).round()
    near = (spread - exponent * _TENFOLD_LOG_BPS).abs() <= apart_bps
    tenfold = near & (exponent != 0)
    return [
        *counted("levels_apart", (spread.abs() > apart_bps) & ~tenfold),
        *counted("power_of_ten", tenfold),
        exponent.filter(tenfold).mode().min().cast(pl.Int64).alias("power_of_ten_exponent"),
    ]


def _compared(asked: _Thresholds) -> list[pl.Expr]:
    buy, sell = pl.col("buy_price"), pl.col("sell_price")
    apart_bps = (1e4 * ((sell - buy) / buy) - 100 * pl.col("spread_pct")).abs()
    return [
        apart_bps.count().cast(pl.Int64).alias("service_compared"),
        *counted("service_differs", (apart_bps > asked.differs_bps).fill_null(False)),
        apart_bps.max().alias("service_differs_largest_bps"),
    ]


def _results(asked: _Thresholds) -> list[pl.Expr]:
    n, both = pl.col("n"), pl.col("rows_of_both")
    stale: list[pl.Expr] = []
    repeated: list[pl.Expr] = []
    for leg in LEGS:
        runs, rows = (pl.col(f"stale_{leg}_{name}").fill_null(0) for name in ("runs", "rows"))
        stale += [
            (runs > 0).alias(f"stale_{leg}"),
            runs,
            (rows / both).alias(f"stale_{leg}_share"),
            pl.col(f"stale_{leg}_longest_s").fill_null(0),
            pl.col(f"stale_{leg}_first_ts"),
        ]
        share = pl.col(f"repeated_{leg}_n") / pl.col(f"{leg}_steps")
        repeated += _flag(f"repeated_{leg}", share, share > asked.repeated_share)
    levels = [
        each
        for name in ("levels_apart", "power_of_ten")
        for share in [pl.col(f"{name}_n") / n]
        for each in _flag(name, share, share >= asked.apart_share)
    ]
    levels.append(pl.col("power_of_ten_exponent"))
    for name in _ODD:
        count = pl.col(f"{name}_n")
        levels += [(count > 0).alias(name), count, pl.col(f"{name}_first_ts")]
    levels.append((n > pl.col("n_expected")).fill_null(value=False).alias(MANY_ROWS))
    differs = pl.col("service_differs_n")
    service = _flag("service_differs", differs / pl.col("service_compared"), differs > 0)
    service.insert(3, pl.col("service_differs_largest_bps"))
    service.insert(1, pl.col("service_compared"))
    few = {Reason.TOO_FEW: (pl.col("buy_steps") == 0) | (pl.col("sell_steps") == 0)}
    nothing = {Reason.EMPTY: pl.col("service_compared").fill_null(0) == 0}
    return [
        both.fill_null(0),
        *_unless(_MISSING, stale, "stale"),
        *_unless(_MISSING | few, repeated, "repeated"),
        *_unless(_EMPTY, levels, "levels"),
        *_unless(nothing, service, "service"),
    ]


def _flag(name: str, share: pl.Expr, true: pl.Expr) -> list[pl.Expr]:
    count, first = pl.col(f"{name}_n"), pl.col(f"{name}_first_ts")
    return [true.alias(name), count, share.alias(f"{name}_share"), first]


def _unless(cases: Mapping[Reason, pl.Expr], found: list[pl.Expr], name: str) -> list[pl.Expr]:
    """Make figures null if there is a reason, which follows them."""
    reason = first_reason(cases)
    return [
        *(pl.when(reason.is_null()).then(each) for each in found),
        reason.alias(f"{name}_reason"),
    ]


def _shifts(least_correlation: float) -> list[pl.Expr]:
    lag, peak, band, at_zero = (pl.col(name) for name in ("peak_lag", "peak", "band", "at_zero"))
    beyond = (peak > band) & (peak - at_zero > band)
    found = {
        "clock_shift": (lag != 0) & beyond & (peak >= least_correlation),
        "clock_shift_steps": lag,
        "clock_shift_correlation": peak,
        "clock_shift_correlation_at_0": at_zero,
    }
    shown = [each.alias(name) for name, each in found.items()]
    return _unless(_MISSING | why(at_zero), shown, "clock_shift")


def _named(found: pl.DataFrame) -> pl.DataFrame:
    true = [pl.when(pl.col(name)).then(pl.lit(name)) for name in FLAGS]
    names = pl.concat_str(true, separator=", ", ignore_nulls=True).alias("flags")
    first = found.columns.index("rows_of_both")
    return found.select(*found.columns[:first], names, *found.columns[first:])
