"""Time of a spread from entry back to a level."""

from __future__ import annotations

import functools

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, Question, first_reason, real_number
from toolkit.statistics.core.kernel import Statistic, measure
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.spread.episodes import checked_bps, stretches
from toolkit.statistics.survival import life_quantiles

_LIVES = {"duration_s": pl.Float64, "observed": pl.Int64}
_COUNTS = {"n_lives": "entries", "n_ended": "closed"}


@analysis(
    "spread.time_to_close",
    (
        "close_median_s",
        "close_lower_s",
        "close_upper_s",
        "entries",
        "closed",
        "close_q25_s",
        "close_q90_s",
        "truncated",
    ),
    title="How long spreads take to close,",
    order="close_median_s",
    about="""
        An entry is a spread that comes to ENTER bps from a level, its close the first one within
        EXIT bps. Where a gap or the end comes first, it counts as longer than seen.""",
    example="--enter-bps 30 --exit-bps 5",
    enter_bps=Parameter("How far from the level a spread is entered.", "bps", 1.0),
)
def time_to_close(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    enter_bps: float,
    exit_bps: float,
    toward: float = 0.0,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure the time from where a spread is far from a level to where it is near it again.

    An entry is the first observation of abs(x - toward) >= ``enter_bps`` after one that was nearer.
    It closes at the first observation of abs(x - toward) <= ``exit_bps``, and the next entry can
    follow. A spread that jumps across the level and past ``exit_bps`` on the other side has not
    closed. Where a gap or the end of the window comes first, the time to close is longer than what
    was seen, and counts so (Kaplan and Meier). Where the first observation of the window, or after
    a gap, is beyond ``enter_bps`` already, its entry was not seen: it is counted, and not used.

    One row per trajectory, with the columns of `coverage` before these:

    {columns}

    Raises
    ------
    InputError
        As `coverage`. ``enter_bps`` is not a number above 0, ``exit_bps`` none from 0 to below it,
        ``toward`` not a number. ``column`` is not in bps.

    Examples
    --------
    >>> values = [0.0, 30.0, 20.0, 4.0, -40.0, 0.0, 50.0, 45.0]
    >>> ts = [60 * k for k in range(8)]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 8, "ts": ts, "spread_log_bps": values})
    >>> found = time_to_close(frame, 0, 480, enter_bps=30, exit_bps=5)
    >>> found.select("entries", "closed", "close_median_s", "close_q25_s").row(0)
    (3, 2, 120.0, 60.0)
    """
    enter = checked_bps("enter_bps", enter_bps, column)
    leave = real_number("exit_bps", exit_bps, "basis points from 0")
    if not 0 <= leave < enter:
        raise InputError("exit_bps", exit_bps, f"from 0 to below enter_bps, {enter:g}")
    level = real_number("toward", toward, "a level in basis points")
    question = Question(
        "spread.time_to_close/1",
        *window_of(frame, start, end),
        column,
        step_s,
        max_stale_s,
        (("enter_bps", enter), ("exit_bps", leave), ("toward", level)),
    )
    size = (pl.col("value") - level).abs()

    def lives(rows: pl.DataFrame) -> pl.DataFrame:
        return lives_of(stretches(rows.lazy(), size, size >= enter, size <= leave), rows)

    closing = Statistic(lambda _column: [], lambda _column: life_columns("close", _COUNTS), lives)
    return measure(frame, question, closing)


def lives_of(found: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Compute how long stretches last, by number, of all numbers that have observations.

    The columns are those of `toolkit.statistics.survival.life_quantiles`, and ``truncated``, the
    stretches whose beginning was not seen, which are in none of the others.
    """
    seen = found.filter(~pl.col("censored_left")).select(
        "number",
        pl.col("duration_s").cast(pl.Float64),
        observed=(~pl.col("censored_right")).cast(pl.Int64),
    )
    truncated = found.group_by("number").agg(
        pl.col("censored_left").sum().cast(pl.Int64).alias("truncated")
    )
    return (
        rows.select(pl.col("number").unique(maintain_order=True))
        .join(truncated, on="number", how="left", maintain_order="left")
        .join(life_quantiles(seen, ["number"]), on="number", how="left", maintain_order="left")
    )


def life_columns(name: str, counts: dict[str, str]) -> list[pl.Expr]:
    """Build the result columns of `lives_of`, named for what the lives are."""
    none = first_reason({Reason.EMPTY: pl.col("n") == 0, Reason.TOO_FEW: pl.col("n") > 0})
    renamed = [
        (column, column.replace("median_life", f"{name}_median").replace("life_", f"{name}_"))
        for column in _life_columns()
        if column not in counts
    ]
    lives = pl.col("n_lives").fill_null(0)
    return [
        pl.col("truncated").fill_null(0),
        *(pl.col(column).fill_null(0).alias(shown) for column, shown in counts.items()),
        *(
            pl.when(lives == 0).then(none).otherwise(column).alias(shown)
            if column.endswith("_reason")
            else pl.col(column).alias(shown)
            for column, shown in renamed
        ),
    ]


@functools.cache
def _life_columns() -> tuple[str, ...]:
    """Return the columns of `life_quantiles`, when asked: an import starts no thread of Polars."""
    return tuple(life_quantiles(pl.DataFrame(schema=_LIVES)).columns)
