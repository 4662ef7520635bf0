"""The one pass behind every statistic: chunks of trajectories, time conventions, aggregation.

Conventions, per trajectory and inside the window ``[start, end)``:

- An *observation* is a row with a finite value (below 1e150, so that its square is finite).
  Other rows are counted in ``n_null`` and otherwise as good as absent.
- The *step* is as asked, else the mode of the differences between neighbouring rows, with a value
  or without, the smallest of them on a tie. A *gap* is a difference of observations above 1.5
  steps. A *segment* is a run of observations without a gap. Pairs for lag statistics are
  observations exactly so many steps apart.
- *Bars* begin a step apart, at the commonest remainder of the observations' times by the step, the
  smallest on a tie. An observation that is not at the beginning of a bar counts for the bar it
  falls in, and several in one bar count once. The bars with an observation over all those that
  begin in the window are the *coverage*.
- An observation holds until the next one, at most ``max_stale_s``. The last holds until the end
  of the window, at most ``max_stale_s``. These are the weights of time-weighted statistics, and
  their sum over the length of the window is the *observed share*.

Chunks go through the in-memory engine in a fixed order, as the streaming engine's sums differ from
run to run in their last bits. A chunk is sorted by time, so the order of the rows given changes
nothing, not even a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from toolkit.errors import InputError
from toolkit.market import format_ts
from toolkit.statistics.contract import (
    Frame,
    Question,
    Reason,
    checked_column,
    checked_columns,
    checked_times,
    collected,
    first_reason,
)
from toolkit.statistics.definition import BASES, SPREADS

PAIR_HASH = "pair_hash"
"""The column of a pair's rows that says how its prices were joined: see `spread.pair`."""

_ROWS_PER_CHUNK = 500_000
_LARGEST = 1e150


@dataclass(frozen=True, slots=True)
class Statistic:
    """A group of result columns: how rows are aggregated, and how results are made from that.

    ``aggregate`` gets the name of the value column and may use, of each observation: ``value``,
    ``weight_s`` and ``gap`` (whether one follows). ``finish`` sees one row per trajectory. What
    expressions cannot do is in ``fit``: it gets the observations of a chunk and returns one row
    for each ``number`` in them, with the columns that ``finish`` uses. ``prepare`` adds columns to
    the observations of a chunk, and gets beside them one row per trajectory with its ``number``.
    Of the frame's columns the observations have also those ``carried``.
    """

    aggregate: Callable[[str], list[pl.Expr]]
    finish: Callable[[str], list[pl.Expr]]
    fit: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    prepare: Callable[[pl.LazyFrame, pl.DataFrame], pl.LazyFrame] | None = None
    carried: tuple[str, ...] = ()


def measure(frame: Frame, question: Question, *statistics: Statistic) -> pl.DataFrame:
    """Compute one row per trajectory: the data it rests on, then the statistics asked for.

    A trajectory without an observation in the window keeps its row, with n = 0. The rows are sorted
    by trajectory. A LazyFrame is read once for its trajectories and then chunk by chunk, so that
    memory does not grow with their number. Sorted by trajectory, a file is decoded once. A chunk is
    half a million rows, or one trajectory where that is longer.

    Raises
    ------
    InputError
        The frame lacks a column or has it in another type. A key is null. Two rows of the window
        share a trajectory and a time.

    Examples
    --------
    >>> frame = pl.DataFrame({"trajectory": ["a", "a", "a"], "ts": [0, 60, 120]})
    >>> measure(frame, Question("rows/1", 0, 180)).select("trajectory", "n", "coverage").rows()
    [('a', 3, 1.0)]
    """
    carried = [name for each in statistics for name in each.carried]
    results = [
        _measured(part, observations, question, statistics)
        for part, observations in observed_chunks(frame, question, *carried)
    ]
    return pl.concat(results).sort("trajectory")


def observed_chunks(
    frame: Frame, question: Question, *carried: str
) -> Iterator[tuple[pl.DataFrame, pl.LazyFrame]]:
    """Yield some trajectories at a time with their observations in the window, sorted by time.

    The first frame has one row per trajectory, with the ``number`` it goes by in the second (null
    where it has no row in the window) and the ``params_hash`` of `asked_columns`. The second has
    one row per observation: ``number``, ``ts``, ``value``, ``until_next_s``, ``step_s``,
    ``max_stale_s``, ``gap``, ``weight_s`` and the columns of the frame that are ``carried``. It
    raises as `measure` does.

    >>> frame = pl.DataFrame({"trajectory": ["a", "a"], "ts": [0, 60]})
    >>> [(part, rows)] = observed_chunks(frame, Question("rows/1", 0, 180))
    >>> part["number"].to_list(), rows.collect().select("ts", "weight_s").rows()
    ([0], [(0, 60), (60, 120)])
    """
    if question.column is not None:
        checked_column(frame, question.column)
    checked_columns(frame, *([question.column] if question.column else []))
    some = pl.col("rows") > 0
    number = pl.when(some).then(some.cum_sum() - 1).cast(pl.UInt32).alias("number")
    for part, rows in _chunks(frame, question, _trajectories(frame, question), carried):
        yield part.with_columns(number), _observations(ordered(rows), question)


def asked_columns(question: Question) -> list[pl.Expr]:
    """Build the last columns of a result: those of the question, the hash of each trajectory's own.

    >>> frame = pl.DataFrame({"trajectory": ["a"], "ts": [0], "pair_hash": ["a1"]})
    >>> question = Question("rows/1", 0, 180)
    >>> [(part, _)] = observed_chunks(frame, question)
    >>> part.select(asked_columns(question))["params_hash"].item() == question.hash_of("a1")
    True
    """
    return [*question.columns[:-1], pl.col("params_hash")]


def checked_keys(rows: pl.DataFrame) -> None:
    """Raise an `InputError` where a trajectory or ts is null, or two rows share both.

    >>> checked_keys(pl.DataFrame({"trajectory": ["a", "a"], "ts": [60, 60]}))
    Traceback (most recent call last):
    toolkit.errors.InputError: frame: '1 row with a trajectory and ts already there, the first a
    at 1970-01-01 00:01 UTC' is not allowed; allowed: one row per trajectory and ts; ...
    """
    checked_times(rows)
    ordered(rows.select("trajectory", "ts"))


def observed(column: str) -> pl.Expr:
    """Build the expression of the values that are observations, null elsewhere.

    >>> frame = pl.DataFrame({"x": [1.0, float("nan"), float("inf"), None]})
    >>> frame.select(observed("x")).to_series().to_list()
    [1.0, None, None, None]
    """
    return pl.when(pl.col(column).abs() < _LARGEST).then(pl.col(column))


def _null_key() -> InputError:
    return InputError("frame", "a null trajectory or ts", "rows that have both")


def _trajectories(frame: Frame, question: Question) -> pl.DataFrame:
    """List every trajectory, sorted, with the number of its rows in the window.

    Of a spread, where the frame has ``spread_basis``, also what its rows there rest on. With
    ``params_hash``, into which enters how a pair was joined.
    """
    columns = frame.collect_schema()
    based = question.column in SPREADS and "spread_basis" in columns
    joined = pl.col(PAIR_HASH) if PAIR_HASH in columns else pl.lit(None, pl.String)
    found = (
        frame.lazy()
        .group_by("trajectory")
        .agg(
            _inside(question).sum().cast(pl.Int64).alias("rows"),
            pl.col("ts").null_count().alias("null_times"),
            pl.col("ts").max(),
            joined.min().alias(PAIR_HASH),
            joined.max().alias("other"),
            # a filter within the group would hold all rows of the groups in memory
            *(
                ((pl.col("spread_basis") == each) & _inside(question)).any().alias(each)
                for each in BASES.categories
                if based
            ),
        )
        .sort("trajectory")
        .collect()  # counts are exact on any engine
    )
    if found["trajectory"].null_count() or found["null_times"].sum():
        raise _null_key()
    checked_times(found)
    if (found[PAIR_HASH] != found["other"]).any():
        raise InputError("frame", "one pair joined in two ways", "rows of one pair_hash each")
    hashes = [question.hash_of(each) for each in found[PAIR_HASH]]
    asked = pl.Series("params_hash", hashes, pl.String)
    return found.select("trajectory", "rows", *(_basis() for _ in range(based)), asked)


def _basis() -> pl.Expr:
    """Build the words for what a trajectory's spreads rest on, null where there is none."""
    legs, service = BASES.categories
    words = {f"{legs} and {service}": pl.col(legs) & pl.col(service)}
    words |= {each: pl.col(each) for each in (legs, service)}
    return pl.coalesce(pl.when(held).then(pl.lit(word)) for word, held in words.items()).alias(
        "spread_basis"
    )


def _inside(question: Question) -> pl.Expr:
    return pl.col("ts").is_between(question.start, question.end, closed="left")


def _chunks(
    frame: Frame, question: Question, trajectories: pl.DataFrame, carried: Sequence[str]
) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """Yield some trajectories at a time with their rows in the window: key, value, carried."""
    value = pl.lit(0.0) if question.column is None else observed(question.column)
    own = [pl.col("trajectory", "ts"), value.alias("value"), *map(pl.col, carried)]
    rows = frame.lazy().filter(_inside(question)).select(own)
    held = None
    if isinstance(frame, pl.DataFrame):
        held = collected(rows)
        if not held["trajectory"].is_sorted():
            held = held.sort("trajectory")
    offset = 0
    parts = trajectories.with_columns(
        chunk=pl.col("rows").cum_sum() // _ROWS_PER_CHUNK
    ).partition_by("chunk", maintain_order=True, include_key=False)
    for part in parts or [trajectories]:
        if held is not None:
            count = int(part["rows"].sum())
            yield part, held.slice(offset, count)
            offset += count
        else:
            first, last = pl.lit(part["trajectory"].min()), pl.lit(part["trajectory"].max())
            inside = pl.col("trajectory").is_between(first, last)
            yield part, collected(rows.filter(inside))


def ordered(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort the rows by trajectory and time, and refuse a null there and two that share both.

    >>> ordered(pl.DataFrame({"trajectory": ["a", "a"], "ts": [60, 0]}))["ts"].to_list()
    [0, 60]
    """
    if rows["trajectory"].null_count() or rows["ts"].null_count():
        raise _null_key()
    key, ts = pl.col("trajectory"), pl.col("ts")
    same = key == key.shift(1)
    rising = (key > key.shift(1)) | (same & (ts > ts.shift(1)))
    if rows.select(rising.all()).item():
        return rows
    rows = rows.sort("trajectory", "ts")
    twice = rows.filter(same & (ts == ts.shift(1)))
    if twice.height:
        trajectory, at = twice.row(0)[:2]
        raise InputError(
            "frame",
            f"{twice.height} row{'s' * (twice.height > 1)} with a trajectory and ts "
            f"already there, the first {trajectory} at {format_ts(at)}",
            "one row per trajectory and ts",
            advice="decide which row to keep and drop the others",
        )
    return rows


def _observations(rows: pl.DataFrame, question: Question) -> pl.LazyFrame:
    """Add step, staleness limit, gap and weight to the observations."""
    number, ts, value = pl.col("number"), pl.col("ts"), pl.col("value")
    until_next, step = pl.col("until_next_s"), pl.col("step_s")
    to_next = pl.when(number == number.shift(-1)).then(ts.shift(-1) - ts)
    numbered = (
        rows.select(pl.col("trajectory").rle_id().alias("number"), pl.exclude("trajectory"))
        .lazy()
        .with_columns(number.set_sorted(), to_next.alias("until_next_s"))
    )
    found = numbered.filter(value.is_not_null()).with_columns(to_next.alias("until_next_s"))
    if question.step_s is None:
        modes = numbered.group_by("number", maintain_order=True).agg(
            until_next.drop_nulls().mode().min().alias("step_s")
        )
        found = found.join(modes, on="number", how="left", maintain_order="left")
    else:
        found = found.with_columns(step_s=pl.lit(question.step_s, pl.Int64))
    limit = 3 * step if question.max_stale_s is None else pl.lit(question.max_stale_s, pl.Int64)
    holds = until_next.fill_null(question.end - ts)
    return found.with_columns(
        limit.alias("max_stale_s"),
        (2 * until_next > 3 * step).alias("gap"),
    ).with_columns(
        # min_horizontal passes over a null, which here means that the limit is not known
        pl.when(pl.col("max_stale_s").is_not_null())
        .then(pl.min_horizontal("max_stale_s", holds))
        .alias("weight_s"),
        number.set_sorted(),
    )


def presence(question: Question) -> list[pl.Expr]:
    """Build the sums over a trajectory's observations that `shares` divides.

    They are ``n_present`` and ``n_expected`` (bars), ``observed_s`` and ``window_s``.

    >>> frame = pl.DataFrame({"trajectory": ["a"] * 4, "ts": [0, 60, 90, 240]})
    >>> question = Question("rows/1", 0, 300, step_s=60)
    >>> [(_, rows)] = observed_chunks(frame, question)
    >>> rows.select(presence(question)).collect().row(0)
    (3, 5, 300, 300)
    """
    ts, step = pl.col("ts"), pl.col("step_s").first()
    # of phases that are equally frequent the first since the window's start, whatever the clock
    phase = ((ts - question.start) % step).mode().min() + question.start
    # the bar that an observation falls in, where it begins in the window, else -1
    bar = ((ts - phase) // step).clip(lower_bound=-1)
    first = (ts.first() >= phase).fill_null(value=False)
    return [
        # the observations are sorted by time, so those of one bar are neighbours
        ((bar.diff() != 0).sum() + first).cast(pl.Int64).alias("n_present"),
        (-((phase - question.end) // step)).alias("n_expected"),
        pl.col("weight_s").sum().alias("observed_s"),
        # a column, as polars divides one by a single number through its rounded reciprocal
        (pl.len().cast(pl.Int64) * 0 + (question.end - question.start)).alias("window_s"),
    ]


def shares() -> list[pl.Expr]:
    """Build ``coverage`` and ``observed_share`` from the sums of `presence`, null without a step.

    >>> sums = {"n_present": [3], "n_expected": [5], "observed_s": [300], "window_s": [400]}
    >>> pl.DataFrame(sums | {"max_stale_s": [180]}).select(shares()).row(0)
    (0.6, 0.75)
    """
    held = pl.col("max_stale_s").is_not_null()
    return [
        (pl.col("n_present") / pl.col("n_expected")).alias("coverage"),
        pl.when(held).then(pl.col("observed_s") / pl.col("window_s")).alias("observed_share"),
    ]


def _measured(
    part: pl.DataFrame,
    observations: pl.LazyFrame,
    question: Question,
    statistics: tuple[Statistic, ...],
) -> pl.DataFrame:
    """Compute the result rows of one chunk."""
    column = question.column or ""
    for prepare in [each.prepare for each in statistics if each.prepare]:
        observations = prepare(observations, part)
    fits = [each.fit for each in statistics if each.fit]
    held = collected(observations).lazy() if fits else observations
    aggregated = collected(
        held.group_by("number", maintain_order=True).agg(
            pl.len().cast(pl.Int64).alias("n"),
            *presence(question),
            pl.col("step_s", "max_stale_s").first(),
            pl.col("ts").first().alias("t_first"),
            pl.col("ts").last().alias("t_last"),
            pl.col("gap").sum().cast(pl.Int64).alias("gaps"),
            pl.col("until_next_s").filter(pl.col("gap")).max().alias("longest_gap_s"),
            *(expression for each in statistics for expression in each.aggregate(column)),
        )
    )
    for fit in fits:
        aggregated = aggregated.join(fit(held.collect()), on="number", maintain_order="left")
    return (
        part.join(aggregated, on="number", how="left", maintain_order="left")
        .with_columns(pl.col("n").fill_null(0))
        .select(
            "trajectory",
            *_contract()[:-1],
            pl.col("^spread_basis$"),
            _contract()[-1],
            *(expression for each in statistics for expression in each.finish(column)),
            *asked_columns(question),
        )
    )


def _contract() -> list[pl.Expr]:
    """Build the columns of the data that a row rests on."""
    n, some = pl.col("n"), pl.col("n") > 0
    return [
        n,
        (pl.col("rows") - n).alias("n_null"),
        pl.col("n_expected"),
        *(pl.when(some).then(share).otherwise(0.0) for share in shares()),
        pl.col("step_s"),
        pl.col("max_stale_s"),
        pl.col("t_first"),
        pl.col("t_last"),
        pl.when(some).then(pl.col("gaps") + 1).otherwise(0).cast(pl.Int64).alias("n_segments"),
        pl.when(some).then(pl.col("longest_gap_s").fill_null(0)).alias("longest_gap_s"),
        first_reason({Reason.EMPTY: ~some, Reason.TOO_FEW: pl.col("step_s").is_null()}).alias(
            "coverage_reason"
        ),
    ]
