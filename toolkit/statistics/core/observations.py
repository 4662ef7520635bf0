"""The observations that statistics are computed from, in chunks of trajectories, sorted by time.

`toolkit.statistics.core.kernel` defines observation, step, gap, bar and weight.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import format_ts
from toolkit.statistics.core.contract import (
    Frame,
    Question,
    checked_column,
    checked_columns,
    checked_times,
    collected,
)
from toolkit.statistics.core.definition import BASES, SPREADS, holding

PAIR_HASH = "pair_hash"
"""The column of a pair's rows that says how its prices were joined: see `spread.pair`."""

_ROWS_PER_CHUNK = 500_000
_LARGEST = 1e150

Chunks = Iterator[tuple[pl.DataFrame, pl.LazyFrame]]


@dataclass(slots=True)
class _Shared:
    """The observations that one of several statistics of a frame used last."""

    frame: Frame
    asked: tuple[Question, tuple[str, ...]] | None = None
    chunks: Iterable[tuple[pl.DataFrame, pl.LazyFrame]] = ()


_SHARED: ContextVar[_Shared | None] = ContextVar("_SHARED", default=None)


@contextmanager
def shared(frame: Frame) -> Iterator[None]:
    """Let statistics of a frame that need the same observations share them in this context.

    A frame of more rows than a chunk is not shared, to hold one chunk in memory at a time.
    """
    small = isinstance(frame, pl.DataFrame) and frame.height <= _ROWS_PER_CHUNK
    token = _SHARED.set(_Shared(frame) if small else None)
    try:
        yield
    finally:
        _SHARED.reset(token)


def observed_chunks(frame: Frame, question: Question, *carried: str) -> Chunks:
    """Yield some trajectories at a time with their observations in the window, sorted by time.

    The first frame has one row per trajectory, with its ``number`` (null without a row in the
    window) and the ``params_hash`` of `asked_columns`. The second has one row per observation:
    ``number``, ``ts``, ``value``, ``until_next_s``, ``step_s``, ``max_stale_s``, ``gap``,
    ``weight_s``, ``bar`` (its number, -1 before the first), ``phase_s`` (from the window's start to
    the first bar) and the columns ``carried``. A spread that the frame does not have is computed.
    Raises as `measure`.
    """
    held, chunks = _SHARED.get(), _observed_chunks(frame, question, carried)
    if held is not None and held.frame is frame:
        asked = (replace(question, method="", options=()), carried)
        if held.asked != asked:
            held.chunks = [(part, collected(rows).lazy()) for part, rows in chunks]
            held.asked = asked
        chunks = iter(held.chunks)
    for part, rows in chunks:
        hashes = [question.hash_of(each) for each in part[PAIR_HASH]]
        yield part.with_columns(pl.Series("params_hash", hashes, pl.String)).drop(PAIR_HASH), rows


def _observed_chunks(frame: Frame, question: Question, carried: Sequence[str]) -> Chunks:
    frame = holding(frame, question.column or "")
    if question.column is not None:
        checked_column(frame, question.column)
    checked_columns(frame, *([question.column] if question.column else []))
    some = pl.col("rows") > 0
    number = pl.when(some).then(some.cum_sum() - 1).cast(pl.UInt32).alias("number")
    for part, rows in _chunks(frame, question, _trajectories(frame, question), carried):
        yield part.with_columns(number), _observations(ordered(rows), part.filter(some), question)


def checked_keys(rows: pl.DataFrame) -> None:
    """Raise `InputError` if a trajectory or ts is null, or two rows share both."""
    checked_times(rows)
    ordered(rows.select("trajectory", "ts"))


def observed(column: str) -> pl.Expr:
    """Build the values that are observations, null elsewhere."""
    return pl.when(pl.col(column).abs() < _LARGEST).then(pl.col(column))


def _null_key() -> InputError:
    return InputError("frame", "a null trajectory or ts", "rows that have both")


def _trajectories(frame: Frame, question: Question) -> pl.DataFrame:
    """List every trajectory, sorted, with its rows in the window, and how they were made."""
    columns = frame.collect_schema()
    based = question.column in SPREADS and "spread_basis" in columns
    joined = pl.col(PAIR_HASH) if PAIR_HASH in columns else pl.lit(None, pl.String)
    key = pl.col("trajectory")
    if isinstance(frame, pl.DataFrame) and frame["trajectory"].is_sorted():
        key = key.rle_id().set_sorted()  # numbers are grouped faster than texts
    found = (
        frame.lazy()
        .group_by(key.alias("key"))
        .agg(
            pl.col("trajectory").first(),
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
    return found.select("trajectory", "rows", *(_basis() for _ in range(based)), PAIR_HASH)


def _basis() -> pl.Expr:
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
    """Sort the rows by trajectory and time, and refuse nulls there and duplicates."""
    if rows["trajectory"].null_count() or rows["ts"].null_count():
        raise _null_key()
    runs = rows["trajectory"].rle().struct.unnest()
    keys = runs["value"]
    apart_s = np.diff(rows["ts"].to_numpy())
    apart_s[runs["len"].to_numpy().cumsum()[:-1] - 1] = 1
    if (apart_s > 0).all() and keys.is_sorted() and keys.n_unique() == len(keys):
        return rows
    key, ts = pl.col("trajectory"), pl.col("ts")
    rows = rows.sort("trajectory", "ts")
    twice = rows.filter((key == key.shift(1)) & (ts == ts.shift(1)))
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


def _observations(rows: pl.DataFrame, some: pl.DataFrame, question: Question) -> pl.LazyFrame:
    """Add number, step, staleness limit, gap, weight and bar to rows of ``some`` trajectories."""
    number, ts, step = pl.col("number"), pl.col("ts"), pl.col("step_s")
    until_next = pl.when(number == number.shift(-1)).then(ts.shift(-1) - ts).alias("until_next_s")
    counts = some["rows"]
    numbers = pl.Series("number", np.repeat(np.arange(len(counts), dtype=np.uint32), counts))
    rows = rows.select(numbers.set_sorted(), pl.exclude("trajectory")).with_columns(until_next)
    found = rows
    if rows["value"].null_count():
        found = rows.filter(pl.col("value").is_not_null()).with_columns(until_next)
    step_s = _modes(rows, pl.col("until_next_s").drop_nulls(), len(counts))
    if isinstance(asked := question.step_s, Mapping):
        own_s = map(asked.get, some["trajectory"], step_s)
        step_s = pl.Series(own_s, dtype=pl.Int64)
    elif asked is not None:
        step_s = pl.repeat(asked, len(counts), dtype=pl.Int64, eager=True)
    own = found["number"]
    # the bar that an observation would fall in if bars began with the window
    found = found.with_columns(step_s.gather(own).alias("step_s")).with_columns(
        ((ts - question.start) // step).alias("bar")
    )
    phase = pl.col("phase_s")
    since_bar_s = ts - question.start - pl.col("bar") * step
    # of phases that are equally frequent the first since the window's start, whatever the clock
    phase_s = _modes(found, since_bar_s, len(counts))
    limit = 3 * step if question.max_stale_s is None else pl.lit(question.max_stale_s, pl.Int64)
    holds = pl.col("until_next_s").fill_null(question.end - ts)
    return (
        found.with_columns(phase_s.gather(own).alias("phase_s"))
        .lazy()
        .with_columns(
            (pl.col("bar") - (since_bar_s < phase).cast(pl.Int64)).alias("bar"),
            limit.alias("max_stale_s"),
            (2 * pl.col("until_next_s") > 3 * step).alias("gap"),
        )
        .with_columns(
            # min_horizontal passes over a null, which here means that the limit is not known
            pl.when(pl.col("max_stale_s").is_not_null())
            .then(pl.min_horizontal("max_stale_s", holds))
            .alias("weight_s"),
            number.set_sorted(),
        )
    )


def _modes(rows: pl.DataFrame, of: pl.Expr, count: int) -> pl.Series:
    found = rows.lazy().group_by("number", maintain_order=True).agg(of.mode().min().alias("mode"))
    numbers = pl.LazyFrame({"number": pl.arange(count, dtype=pl.UInt32, eager=True)})
    return numbers.join(found, on="number", how="left", maintain_order="left").collect()["mode"]
