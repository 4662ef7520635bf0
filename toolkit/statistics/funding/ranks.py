"""Persistence of the ranks of funding rates from week to week."""

from __future__ import annotations

import itertools
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.market import When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, collected, first_reason, real_number
from toolkit.statistics.core.windows import settlements_extent, window_of
from toolkit.statistics.funding.buckets import mean_rates
from toolkit.statistics.funding.dispersion import TYPES, legs
from toolkit.statistics.funding.receipts import MIN_COVERAGE
from toolkit.statistics.funding.settlements import settlements

_DAY_S, _WEEK_S = 86_400, 604_800
_MONDAY_S = 4 * _DAY_S  # 1970-01-05 was the first Monday
_FEWEST, _ALL_ORDERS = 3, 7
_DRAWS, _SEED = 1_999, 20_261_123
_ROUNDING = 1e-12
_Floats = npt.NDArray[np.float64]


def compared(frame: Frame) -> pl.DataFrame:
    """Return the columns that `rank_persistence` needs, of all trajectories together."""
    return collected(frame.lazy().select(list(TYPES)))


@analysis(
    "funding.rank_persistence",
    ("ts", "rank_correlation", "p_value", "n"),
    key=("symbol",),
    title=lambda *, of, **_: f"Ranks of the funding of {of} in a week and in the next",
    about="Near 1, what paid most in a week paid most in the next. The p-value is of one row.",
    across=compared,
    min_coverage=Parameter("The least part of both weeks, 0 to 1, that what is ranked must cover."),
)
def rank_persistence(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    of: Literal["venues", "pairs"] = "venues",
    min_coverage: float = MIN_COVERAGE,
) -> pl.DataFrame:
    """Correlate the ranks of mean funding rates in a week with those in the next week.

    One row per symbol and week, sorted. Both weeks begin on Monday 00:00 UTC and lie in the window.
    ``of`` venues ranks the legs of each symbol (`toolkit.statistics.funding.legs`), ``of`` pairs
    the trajectories of all symbols. At least ``min_coverage`` of both weeks must be covered.

    The correlation is Spearman's, with mean ranks for ties. The p-value is the share of orders of
    the second week that are correlated as much or more, in either direction: of all orders up to 7,
    above that of 1,999 random ones with a fixed seed and the real one. It is per row: neighbouring
    rows share a week, so their p-values are dependent.

    {columns}

    >>> day = 86400
    >>> rates = pl.DataFrame({"trajectory": [f"funding/A:{name}.f" for name in "XYZ"],
    ...     "sell_rate": [1e-4, 2e-4, 3e-4]})
    >>> frame = rates.join(pl.DataFrame({"ts": [day * (5 + k) for k in range(14)]}), how="cross")
    >>> frame = frame.with_columns(buy_rate=0.0, buy_interval_hours=None, sell_interval_hours=24)
    >>> rank_persistence(frame, 4 * day, 18 * day).row(0)[:5]
    ('A', 345600, 3, 1.0, 0.3333333333333333)
    """
    if of not in ("venues", "pairs"):
        raise InputError("of", of, ["venues", "pairs"])
    allowed = "a part of the window, 0 to 1"
    share = real_number("min_coverage", min_coverage, allowed)
    if not 0 <= share <= 1:
        raise InputError("min_coverage", min_coverage, allowed)
    question = Question(
        "funding.rank_persistence/2",
        *window_of(frame, start, end, settlements_extent),
        options=(("of", of), ("min_coverage", share)),
    )
    weeks = _weekly(legs(frame) if of == "venues" else frame, question, share)
    symbol = pl.col("trajectory").cast(pl.String).str.strip_prefix("funding/").str.split(":")
    grouped = symbol.list.first() if of == "venues" else pl.lit(None, pl.String)
    weeks = weeks.with_columns(grouped.alias("symbol"))
    following = weeks.select("symbol", "trajectory", pl.col("ts") - _WEEK_S, later="apr_pct")
    both = weeks.join(following, on=["symbol", "trajectory", "ts"], nulls_equal=True)
    pairs = both.sort("symbol", "ts", "trajectory").partition_by("symbol", "ts")
    types = {"n": pl.Int64, "rank_correlation": pl.Float64, "p_value": pl.Float64}
    figures = [_correlated(part) for part in pairs]
    keys = both.select("symbol", "ts").unique().sort("symbol", "ts")
    found = pl.concat([keys, pl.DataFrame(figures, schema=types, orient="row")], how="horizontal")
    reasons = {
        Reason.TOO_FEW: pl.col("n") < _FEWEST,
        Reason.DEGENERATE: pl.col("rank_correlation").is_null(),
    }
    return found.with_columns(first_reason(reasons).alias("rank_reason"), *question.columns)


def _weekly(frame: Frame, question: Question, min_coverage: float) -> pl.DataFrame:
    """Average each trajectory over the full weeks that it covers."""
    days = mean_rates(settlements(frame), question, _DAY_S)
    week = (pl.col("ts") - _MONDAY_S) // _WEEK_S * _WEEK_S + _MONDAY_S
    coverage = pl.col("coverage")
    return (
        days.filter(week >= question.start, week + _WEEK_S <= question.end)
        .group_by("trajectory", week.alias("ts"), maintain_order=True)
        .agg(
            ((coverage * pl.col("apr_pct")).sum() / coverage.sum()).alias("apr_pct"),
            (coverage.sum() / (_WEEK_S // _DAY_S)).alias("coverage"),
        )
        .filter(coverage >= min_coverage - _ROUNDING)
    )


def _correlated(part: pl.DataFrame) -> tuple[int, float | None, float | None]:
    ranks = [part[name].rank("average").to_numpy() for name in ("apr_pct", "later")]
    first, second = (each - each.mean() for each in ranks)
    scale = float(np.sqrt((first @ first) * (second @ second)))
    if part.height < _FEWEST or scale == 0:
        return part.height, None, None
    correlation = float(first @ second) / scale
    others = _orders(second) @ first / scale
    as_much = np.abs(others) >= abs(correlation) - _ROUNDING
    return part.height, correlation, float(as_much.mean())


def _orders(values: _Floats) -> _Floats:
    """Return the values in every order, or their own and many random ones."""
    if values.size <= _ALL_ORDERS:
        return np.array(list(itertools.permutations(values)))
    rng = np.random.default_rng(_SEED)
    drawn = rng.permuted(np.tile(values, (_DRAWS, 1)), axis=1)
    return np.vstack([values, drawn])
