"""Time of a spread at or above a threshold, its episodes, and the time from entry to close."""

from __future__ import annotations

import functools

import polars as pl

from toolkit.analyses import Parameter, analysis
from toolkit.errors import InputError
from toolkit.market import Step, When
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    collected,
    first_reason,
    real_number,
    whole_number,
)
from toolkit.statistics.core.kernel import (
    Statistic,
    asked_columns,
    measure,
    presence,
    shares,
    why_uncovered,
)
from toolkit.statistics.core.observations import observed_chunks
from toolkit.statistics.core.windows import window_of
from toolkit.statistics.survival import life_quantiles

_HOURS_A_SECOND = 1 / 3600


@analysis(
    "spread.time_above",
    """
        threshold_bps time_above_share time_abs_above_share time_above_s time_abs_above_s n""",
    title="Time at which spreads are above a level,",
    order="-time_above_share",
    about="""
        The level applies to the spread with its sign, with --absolute to its size on either
        side of zero.""",
    example="--threshold-bps 20",
    threshold_bps=Parameter("The level.", "bps", 10.0),
)
def time_above(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    threshold_bps: float,
    absolute: bool = False,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Measure the share of observed time at which a spread is at or above a threshold.

    With ``absolute`` it is the size on either side of zero, and the last three columns are named
    ``time_abs_above_s``, ``time_abs_above_share`` and ``time_abs_above_reason``.

    Each observation counts with the seconds for which it is valid (see `coverage`), and time
    without one counts neither way. One row per trajectory, with the columns of `coverage` before
    these:

    {columns}

    Raises `InputError`: As `coverage`. ``threshold_bps`` is not a number above 0. ``column`` is not
    in bps. ``absolute`` is neither True nor False.

    Two blocks of ten minutes, an hour apart, on either side of zero.

    >>> ts = [60 * minute for minute in [*range(10), *range(70, 80)]]
    >>> values = [50.0] * 10 + [-50.0] * 10
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 20, "ts": ts, "spread_log_bps": values})
    >>> row = time_above(frame, 0, 4800, threshold_bps=40).row(0, named=True)
    >>> row["time_above_s"], round(row["time_above_share"], 3)
    (720.0, 0.545)
    >>> time_above(frame, 0, 4800, threshold_bps=40, absolute=True)["time_abs_above_share"].item()
    1.0
    """
    limit = checked_bps("threshold_bps", threshold_bps, column)
    asked = (("threshold_bps", limit), ("absolute", checked_absolute(absolute)))
    window = window_of(frame, start, end)
    question = Question("spread.time_above/3", *window, column, step_s, max_stale_s, asked)
    return measure(frame, question, _above(limit, absolute=absolute))


def _above(limit: float, *, absolute: bool) -> Statistic:
    name = "time_abs_above" if absolute else "time_above"

    def aggregate(_column: str) -> list[pl.Expr]:
        weight = pl.col("weight_s").cast(pl.Float64)
        known = weight.null_count() == 0
        return [
            pl.when(known)
            .then(weight.filter(sized(absolute=absolute) >= limit).sum())
            .alias(f"{name}_s")
        ]

    def finish(_column: str) -> list[pl.Expr]:
        time = pl.col(f"{name}_s")
        return [
            pl.lit(limit).alias("threshold_bps"),
            time,
            (time / pl.col("observed_s")).alias(f"{name}_share"),
            first_reason({Reason.EMPTY: pl.col("n") == 0, Reason.TOO_FEW: time.is_null()}).alias(
                f"{name}_reason"
            ),
        ]

    return Statistic(aggregate, finish)


def checked_bps(name: str, value: float, column: str) -> float:
    """Return a threshold above 0, or raise `InputError` for it or for a column not in bps."""
    if not isinstance(column, str) or not column.endswith("_bps"):
        raise InputError("column", column, "a column in bps, e.g. spread_log_bps or spread_bps")
    return real_number(name, value, "basis points above 0", above=0)


def checked_absolute(absolute: bool) -> bool:
    """Return ``absolute``, or raise `InputError` for anything but True and False."""
    if not isinstance(absolute, bool):
        raise InputError("absolute", absolute, "True or False")
    return absolute


def sized(*, absolute: bool) -> pl.Expr:
    """Build what a level in bps is compared with: x, or with ``absolute`` abs(x)."""
    return pl.col("value").abs() if absolute else pl.col("value")


def level_words(level_bps: float, *, absolute: bool) -> str:
    """Return in words what counts at a level, for headings."""
    return f"{'|spread| ' if absolute else ''}≥ {level_bps:g} bps"


def _title(enter_bps: float, *, absolute: bool, **_: object) -> str:
    return f"Spreads, episodes {level_words(enter_bps, absolute=absolute)},"


@analysis(
    "spread.episodes",
    """
        start_ts duration_s peak_bps area_bps_h end_ts peak_ts censored_left censored_right n""",
    title=_title,
    about="""
        An episode begins when the spread is ENTER bps or more, and ends when it is less
        than LEAVE bps. The spread has its sign, with --absolute it is its size on either
        side of zero. An episode cut off by a gap or the end lasted longer than seen. `rail
        stats net-episodes --fees FILE` counts those beyond a round trip's cost.""",
    example="--enter-bps 20 --leave-bps 5 --sort -duration_s",
    enter_bps=Parameter("The spread from which an episode begins.", "bps", 10.0),
    merge_gap_s=Parameter("Episodes at most this far apart are one.", "s"),
    min_duration_s=Parameter("Leave out shorter episodes.", "s"),
)
def episodes(
    frame: Frame,
    start: When | None = None,
    end: When | None = None,
    *,
    enter_bps: float,
    absolute: bool = False,
    leave_bps: float | None = None,
    merge_gap_s: int = 0,
    min_duration_s: int = 0,
    column: str = "spread_log_bps",
    step_s: Step = None,
    max_stale_s: int | None = None,
) -> pl.DataFrame:
    """Find every stretch of time in which a spread is at or above a level.

    An episode begins with an observation of x >= ``enter_bps`` and ends with the first of x <
    ``leave_bps`` (None: the same). With ``absolute`` x is the size on either side of zero, and
    ``side`` is the side. Two episodes at most ``merge_gap_s`` apart, without a gap of observations
    between them, are one. Those shorter than ``min_duration_s`` are then left out, censored ones by
    what was observed of them. One row per episode, sorted by trajectory and start. A trajectory
    without one has no row.

    An episode that runs into a gap or the end of the window is right-censored, and ends where the
    last observation ceases to be valid. One at the first observation of the window or after a gap
    is left-censored. A spread between the thresholds after a gap is in no episode.

    {columns}

    If ``column`` was computed, ``spread_basis`` follows observed_share. An episode of a single
    observation without ``step_s`` has a duration of 0, and both shares are null for coverage_reason
    too_few.

    Raises `InputError`: As `coverage`. A threshold is not a number above 0, or ``leave_bps`` is
    above ``enter_bps``. A time is not a whole number of seconds from 0. ``column`` is not in bps.
    ``absolute`` is neither True nor False.

    >>> values = [1.0, 30.0, 60.0, 25.0, 5.0, 0.0, -40.0]
    >>> frame = pl.DataFrame({"trajectory": ["a"] * 7, "ts": [60 * k for k in range(7)],
    ...     "spread_log_bps": values})
    >>> found = episodes(frame, 0, 420, enter_bps=30, leave_bps=20)
    >>> found.select("start_ts", "duration_s", "peak_bps", "censored_right").rows()
    [(60, 180, 60.0, False)]
    >>> found = episodes(frame, 0, 420, enter_bps=30, leave_bps=20, absolute=True)
    >>> found.select("side", "start_ts", "duration_s", "peak_bps", "censored_right").rows()
    [('positive', 60, 180, 60.0, False), ('negative', 360, 60, -40.0, True)]
    """
    enter = checked_bps("enter_bps", enter_bps, column)
    leave = enter if leave_bps is None else checked_bps("leave_bps", leave_bps, column)
    if leave > enter:
        raise InputError("leave_bps", leave_bps, f"at most enter_bps, {enter:g}")
    least = "seconds, at least 0"
    merge_gap_s = whole_number("merge_gap_s", merge_gap_s, 0, least)
    min_duration_s = whole_number("min_duration_s", min_duration_s, 0, least)
    asked = (
        *(("enter_bps", enter), ("absolute", checked_absolute(absolute)), ("leave_bps", leave)),
        *(("merge_gap_s", merge_gap_s), ("min_duration_s", min_duration_s)),
    )
    window = window_of(frame, start, end)
    question = Question("spread.episodes/3", *window, column, step_s, max_stale_s, asked)
    size = sized(absolute=absolute)
    found = []
    for part, chunk in observed_chunks(frame, question):
        rows = collected(chunk).lazy()
        beyond = stretches(rows, size, size >= enter, size < leave, merge_gap_s)
        present = _presence(rows, question)
        found.append(
            part.join(beyond, on="number").join(present, on="number", maintain_order="left")
        )
    lasting = pl.concat(found).filter(pl.col("duration_s") >= min_duration_s)
    return lasting.sort("trajectory", "start_ts").select(*_columns(question))


def _presence(rows: pl.LazyFrame, question: Question) -> pl.DataFrame:
    sums = (*presence(question), pl.col("step_s", "max_stale_s").first())
    return collected(rows.group_by("number").agg(sums))


def stretches(
    rows: pl.LazyFrame, size: pl.Expr, enters: pl.Expr, leaves: pl.Expr, merge_gap_s: int = 0
) -> pl.DataFrame:
    """Find from where observations enter to where they leave, in each run without a gap.

    ``rows`` are observations of a chunk of `observed_chunks`, and ``size`` is what peak and area
    are of. The columns are number, first_bps, and others as in `episodes`.
    """
    number, ts = pl.col("number"), pl.col("ts")
    first, above, inside = pl.col("first"), pl.col("above"), pl.col("inside")
    begins_segment = ((number != number.shift(1)) | pl.col("gap").shift(1)).fill_null(value=True)
    state = pl.when(enters | leaves | first).then(enters).forward_fill()
    episodes = (
        rows.with_columns(begins_segment.alias("first"))
        .with_columns(state.alias("above"), first.cum_sum().alias("segment"))
        .with_columns((first | (above != above.shift(1))).cum_sum().alias("run"))
    )
    bridged = above
    if merge_gap_s:
        bridges = _bridges(episodes, merge_gap_s)
        episodes = episodes.join(bridges, on="run", how="left", maintain_order="left")
        bridged = above | pl.col("bridge")
    return collected(
        episodes.with_columns(bridged.alias("inside"))
        .with_columns((inside & (first | ~inside.shift(1))).cum_sum().alias("episode"))
        .filter(inside)
        .group_by("episode", maintain_order=True)
        .agg(
            number.first(),
            ts.first().alias("start_ts"),
            ts.last().alias("last_ts"),
            pl.col("value").first().alias("first_bps"),
            pl.col("value").get(size.arg_max()).alias("peak_bps"),
            ts.get(size.arg_max()).alias("peak_ts"),
            ((size * pl.col("weight_s").fill_null(0)).sum() * _HOURS_A_SECOND).alias("area_bps_h"),
            first.first().alias("censored_left"),
            pl.col("gap").last().fill_null(value=True).alias("censored_right"),
            pl.col("until_next_s").last(),
            pl.col("weight_s").last().fill_null(0),
            pl.len().cast(pl.Int64).alias("n"),
        )
        .with_columns(
            (
                pl.col("last_ts")
                + pl.when("censored_right").then("weight_s").otherwise("until_next_s")
            ).alias("end_ts")
        )
        .with_columns((pl.col("end_ts") - pl.col("start_ts")).alias("duration_s"))
    )


def _bridges(episodes: pl.LazyFrame, merge_gap_s: int) -> pl.LazyFrame:
    segment, begins = pl.col("segment"), pl.col("begins")
    between = (segment == segment.shift(1)) & (segment == segment.shift(-1))
    short = begins.shift(-1) - begins <= merge_gap_s
    return (
        episodes.group_by("run", maintain_order=True)
        .agg(segment.first(), pl.col("above").first(), pl.col("ts").first().alias("begins"))
        .select("run", (~pl.col("above") & between & short).fill_null(value=False).alias("bridge"))
    )


def _columns(question: Question) -> list[pl.Expr]:
    side = pl.when(pl.col("peak_bps") > 0).then(pl.lit("positive")).otherwise(pl.lit("negative"))
    return [
        pl.col("trajectory"),
        side.alias("side"),
        pl.col("start_ts", "end_ts", "duration_s", "peak_bps", "peak_ts", "area_bps_h"),
        pl.col("censored_left", "censored_right", "n"),
        *shares(),
        pl.col("^spread_basis$"),
        first_reason(why_uncovered()).alias("coverage_reason"),
        *asked_columns(question),
    ]


_LIVES = {"duration_s": pl.Float64, "observed": pl.Int64}
CLOSES = {"n_lives": "entries", "n_ended": "closed"}


@analysis(
    "spread.time_to_close",
    """
        close_median_s close_lower_s close_upper_s entries closed close_q25_s close_q90_s
        truncated""",
    title="How long spreads take to close,",
    order="close_median_s",
    about="""
        An entry is when a spread gets ENTER bps away from a level, its close when it is
        first within EXIT bps. If a gap or the end comes first, it lasted longer than seen.""",
    example="--enter-bps 30 --exit-bps 5",
    enter_bps=Parameter("How far from the level an entry is.", "bps", 1.0),
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
    """Measure the time from when a spread is far from a level to when it is near it again.

    An entry is the first observation of abs(x - toward) >= ``enter_bps`` after a nearer one. It
    closes at the first observation of abs(x - toward) <= ``exit_bps``, and the next entry can
    follow. A spread that jumps across the level, past ``exit_bps`` on the other side, has not
    closed. If a gap or the end of the window comes first, the time is right-censored (Kaplan and
    Meier). An entry at the first observation of the window, or after a gap, was not seen: it is
    counted, but not used.

    One row per trajectory, with the columns of `coverage` before these:

    {columns}

    Raises `InputError`: As `coverage`. ``enter_bps`` is not a number above 0, ``exit_bps`` none
    from 0 to below it, ``toward`` not a number. ``column`` is not in bps.

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
    asked = (("enter_bps", enter), ("exit_bps", leave), ("toward", level))
    window = window_of(frame, start, end)
    question = Question("spread.time_to_close/1", *window, column, step_s, max_stale_s, asked)
    size = (pl.col("value") - level).abs()

    def lives(rows: pl.DataFrame) -> pl.DataFrame:
        return lives_of(stretches(rows.lazy(), size, size >= enter, size <= leave), rows)

    closing = Statistic(lambda _column: [], lambda _column: life_columns("close", CLOSES), lives)
    return measure(frame, question, closing)


def lives_of(found: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    """Compute how long stretches last, for all numbers that have observations.

    The columns are those of `toolkit.statistics.survival.life_quantiles`, and ``truncated``:
    stretches with an unseen beginning, which no other column includes.
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
    """Return the columns of `life_quantiles`, not at import, which would start polars' threads."""
    return tuple(life_quantiles(pl.DataFrame(schema=_LIVES)).columns)
