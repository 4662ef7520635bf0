"""Tail index of a spread, by Hill, at several depths of the tail."""

from __future__ import annotations

import math

import polars as pl

from toolkit.analyses import analysis
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, collected, column_for, first_reason
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.numeric.tails import two_sided_95_between

MIN_TAIL = 50
"""Fewer observations beyond x_min than this, and there is no index."""
TAIL_PERCENTS = (1, 2, 5, 10)
"""The depths of the tail, in percent of the observations."""
DEEP_PERCENT = 60
"""The depth down to which a tail has to go on, in percent of the observations."""
MOST_MEMORY = 0.35
"""Where shares of neighbouring days in the deepest tail correlate more, there is no interval."""

_DAY_S = 86_400
_MIDDLES = {1: 8, 2: 11, 5: 17, 10: 25}
"""Of each depth that at which the sizes between it and the deepest are parted."""
_OF_DAY = ["number", "day"]


@analysis(
    "spread.tail_index",
    """
        tail_5pct_index tail_5pct_lower tail_5pct_upper spread_tail_5pct_x_min_log_bps tail_5pct_n
        tail_5pct_days tail_1pct_index tail_2pct_index tail_10pct_index""",
    title="How fast large spreads become rare,",
    order="tail_5pct_index",
    about="""
        With an index of 3, sizes twice as large are 8 times as rare. The 95 % interval
        draws days, as sizes follow each other.""",
    example='--where "tail_5pct_index < 3"',
)
def tail_index(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Estimate how fast large sizes of a spread become rare, at 1, 2, 5 and 10 % of its rows.

    The tail at p percent has the k = floor(p n / 100) largest of the n sizes abs(x), and x_min is
    the next size below. The index is k / sum ln(size / x_min): with an index of 3, sizes twice as
    large are 8 times as rare. x_min must be above 0 and k at least 50.

    Hill's error, index / sqrt(k), is for independent sizes. As a few times of wide spreads make up
    most of a tail, the interval takes each UTC day as one draw. With E the sum of ln(size / x_min)
    on a day, c its sizes and h = c / k its share of the tail, the day moves the inverse index by (E
    - c / index) / (k (1 - h)) (the jackknife). The variance is the sum of the squares, with
    Satterthwaite's degrees of freedom, (sum of squares)^2 / (sum of fourth powers).

    A spread that stays wide for days has no interval, as its days are dependent: if the shares of
    neighbouring days in the tail of 10 % correlate by more than 0.35. docs/calibration.md has how
    often the others cover.

    Sizes that follow a power law in the far tail alone bias the index. So the sizes between the
    depth and 60 % are divided at about the geometric mean of the two, and the inverse indices of
    both parts are compared, with the error that days give to the difference. If they differ by more
    than the 95 % of Student's t there is no interval (not_pareto): the index is biased toward
    ``tail_60pct_index``, and does not describe rarer sizes. The test needs x_min above 0 at 60 %.

    One row per trajectory, with the columns of `coverage` before these, for each p. Names carry the
    unit of ``column``, here of ``spread_log_bps``:

    {columns}

    Raises `InputError`: As `coverage`.

    Source: Hill, B. M. (1975), Annals of Statistics 3. Hsing, T. (1991), Annals of Statistics 19.
    Bell, R. M. and McCaffrey, D. F. (2002), Survey Methodology 28. Satterthwaite, F. E. (1946),
    Biometrics Bulletin 2.

    >>> sizes = [(k / 6000) ** (-1 / 3) for k in range(1, 6001)]
    >>> ts = [60 * k for k in range(6000)]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 6000, "ts": ts, "spread_log_bps": sizes})
    >>> row = tail_index(frame).row(0, named=True)
    >>> row["tail_5pct_n"], round(row["tail_5pct_index"], 1)
    (300, 3.0)
    """
    window = window_of(frame, start, end)
    question = Question("spread.tail_index/4", *window, column, step_s, max_stale_s)
    tails = Statistic(lambda _column: [], tail_columns, fitted_tails)
    return measure(frame, question, tails)


def fitted_tails(rows: pl.DataFrame) -> pl.DataFrame:
    """Compute the tails of each number, from rows of number, ts (s) and value."""
    sizes = rows.lazy().select("number", day=pl.col("ts") // _DAY_S, size=pl.col("value").abs())
    n = pl.len().cast(pl.Int64)
    ranked = (
        sizes.group_by("number", maintain_order=True)
        .agg(
            n.alias("n"),
            pl.col("size", "day")
            .sort_by("size", descending=True, maintain_order=True)
            .head(n * DEEP_PERCENT // 100 + 1),
        )
        .explode("size", "day")
        .with_columns(place=pl.int_range(pl.len()).over("number"))
    )
    found, days = _memory(ranked, sizes), _by_day(ranked)
    for percent in (*TAIL_PERCENTS, DEEP_PERCENT):
        tail = _tail(days, percent)
        found = found.join(tail, on="number", how="left", maintain_order="left")
    for percent, middle in _MIDDLES.items():
        bend = _bend(days, percent, middle)
        found = found.join(bend, on="number", how="left", maintain_order="left")
    return collected(found)


def _memory(ranked: pl.LazyFrame, sizes: pl.LazyFrame) -> pl.LazyFrame:
    """Correlate the shares of each day's and the next day's sizes that are in the deepest tail."""
    deepest = ranked.filter(pl.col("place") < pl.col("n") * TAIL_PERCENTS[-1] // 100)
    inside = deepest.group_by(_OF_DAY).agg(inside=pl.len())
    share = pl.col("inside").fill_null(0) / pl.col("n")
    day, apart = pl.col("day"), pl.col("share") - pl.col("share").mean()
    together = (apart * apart.shift(-1)).filter(day.shift(-1) == day + 1).sum()
    return (
        sizes.group_by(_OF_DAY, maintain_order=True)
        .agg(n=pl.len())
        .join(inside, on=_OF_DAY, how="left", maintain_order="left")
        .with_columns(share=share)
        .sort(_OF_DAY, maintain_order=True)
        .group_by("number", maintain_order=True)
        .agg(memory=together / apart.pow(2).sum())
    )


def _by_day(ranked: pl.LazyFrame) -> pl.LazyFrame:
    """Count the sizes of each day beyond each depth, and sum the logs of their ratios to x_min."""
    place, size = pl.col("place"), pl.col("size")
    depths = [*TAIL_PERCENTS, *_MIDDLES.values(), DEEP_PERCENT]
    count = {percent: pl.col("n") * percent // 100 for percent in depths}
    cuts = ranked.group_by("number", maintain_order=True).agg(
        size.filter(place == count[percent]).first().alias(f"x_min_{percent}") for percent in depths
    )
    sums = []
    for percent in depths:
        inside, least = place < count[percent], pl.col(f"x_min_{percent}")
        # a column, as polars divides one by a single number through its rounded reciprocal
        excess = pl.when(inside & (least > 0)).then((size / (least + 0 * size)).log())
        some = pl.when(least.first() > 0).then(excess.sum())
        sums += [inside.sum().cast(pl.Int64).alias(f"c_{percent}"), some.alias(f"e_{percent}")]
    return (
        ranked.join(cuts, on="number", how="left", maintain_order="left")
        .group_by(_OF_DAY, maintain_order=True)
        .agg(pl.first(r"^x_min_\d+$"), *sums)
    )


def _tail(days: pl.LazyFrame, percent: int) -> pl.LazyFrame:
    c, excess = pl.col(f"c_{percent}"), pl.col(f"e_{percent}")
    k = c.sum().over("number")
    mean = excess.sum().over("number") / k
    square = pl.col("square")
    return (
        days.filter(c > 0)
        .select(
            "number",
            f"x_min_{percent}",
            k=k,
            mean=pl.when(excess.is_not_null()).then(mean),
            square=((excess - mean * c) / (k - c)).pow(2),
        )
        .group_by("number", maintain_order=True)
        .agg(
            pl.first("k").alias(f"k_{percent}"),
            pl.len().cast(pl.Int64).alias(f"days_{percent}"),
            pl.first(f"x_min_{percent}"),
            (1 / pl.first("mean")).alias(f"index_{percent}"),
            square.sum().sqrt().alias(f"error_{percent}"),
            (square.sum().pow(2) / square.pow(2).sum()).alias(f"freedom_{percent}"),
        )
    )


def _bend(days: pl.LazyFrame, percent: int, middle: int) -> pl.LazyFrame:
    """Compare the inverse indices of two parts, each cut off at its upper end, so independent."""
    sums = []
    for name, upper, lower in (("near", percent, middle), ("deep", middle, DEEP_PERCENT)):
        sums += [
            (pl.col(f"e_{lower}") - pl.col(f"e_{upper}")).alias(f"e_{name}"),
            (pl.col(f"c_{lower}") - pl.col(f"c_{upper}")).alias(f"c_{name}"),
        ]
    moved = [
        (pl.col(f"e_{each}") - pl.col(f"c_{each}") * pl.col(each)) / pl.col(f"k_{each}")
        for each in ("near", "deep")
    ]
    k_near, k_deep = (pl.col(name).sum().over("number") for name in ("c_near", "c_deep"))
    e_near, e_deep = (pl.col(name).sum().over("number") for name in ("e_near", "e_deep"))
    square = (moved[0] - moved[1]).pow(2)
    return (
        days.select("number", *sums)
        .with_columns(k_near=k_near, k_deep=k_deep, near=e_near / k_near, deep=e_deep / k_deep)
        .with_columns(square=square)
        .group_by("number", maintain_order=True)
        .agg(
            (pl.first("near") - pl.first("deep")).abs().alias(f"bend_{percent}"),
            pl.col("square").sum().sqrt().alias(f"bend_error_{percent}"),
            (pl.col("square").sum().pow(2) / pl.col("square").pow(2).sum()).alias(
                f"bend_freedom_{percent}"
            ),
        )
    )


def tail_columns(column: str) -> list[pl.Expr]:
    """Build the result columns of what `fitted_tails` found, from that and ``n``."""
    deep = pl.col(f"index_{DEEP_PERCENT}")
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("n") == 0,
            Reason.TOO_FEW: pl.col(f"k_{DEEP_PERCENT}").fill_null(0) < MIN_TAIL,
            Reason.DEGENERATE: deep.is_finite().fill_null(value=False).not_(),
        }
    )
    return [
        pl.when(reason.is_null()).then(deep).alias(f"tail_{DEEP_PERCENT}pct_index"),
        reason.alias(f"tail_{DEEP_PERCENT}pct_reason"),
        *(each for percent in TAIL_PERCENTS for each in _depth(column, percent)),
    ]


def _depth(column: str, percent: int) -> list[pl.Expr]:
    count = pl.col(f"k_{percent}").fill_null(0)
    least, index = pl.col(f"x_min_{percent}"), pl.col(f"index_{percent}")
    freedom = pl.when(pl.col(f"days_{percent}") > 1).then(f"freedom_{percent}")
    depend = pl.col("memory").fill_nan(0) > MOST_MEMORY
    chance = pl.col(f"bend_error_{percent}") * _student(pl.col(f"bend_freedom_{percent}"))
    bent = (pl.col(f"bend_{percent}") > chance).fill_null(value=False)
    reach = pl.col(f"error_{percent}") * index.pow(2)
    reach *= _student(pl.when(~depend & ~bent).then(freedom))
    reason = first_reason(
        {
            Reason.EMPTY: pl.col("n") == 0,
            Reason.TOO_FEW: count < MIN_TAIL,
            Reason.DEGENERATE: (least <= 0) | ~index.is_finite(),
        }
    )
    shown = {
        f"tail_{percent}pct_index": index,
        f"tail_{percent}pct_error": index / count.sqrt(),
        f"tail_{percent}pct_lower": (index - reach).clip(0),
        f"tail_{percent}pct_upper": index + reach,
    }
    few = freedom.is_null()
    no_interval = {Reason.TOO_FEW: few, Reason.DAYS_DEPEND: depend, Reason.NOT_PARETO: bent}
    return [
        count.alias(f"tail_{percent}pct_n"),
        pl.col(f"days_{percent}").fill_null(0).alias(f"tail_{percent}pct_days"),
        least.alias(column_for(column, f"tail_{percent}pct_x_min")),
        *(pl.when(reason.is_null()).then(each).alias(name) for name, each in shown.items()),
        pl.coalesce(reason, first_reason(no_interval)).alias(f"tail_{percent}pct_reason"),
    ]


def _student(freedom: pl.Expr) -> pl.Expr:
    """Return the 97.5 % points of Student's t, for degrees of freedom that need not be whole."""

    def points(values: pl.Series) -> pl.Series:
        known = values.fill_null(math.nan).to_numpy()
        return pl.Series(two_sided_95_between(known)).fill_nan(None)

    return freedom.map_batches(points, return_dtype=pl.Float64)
