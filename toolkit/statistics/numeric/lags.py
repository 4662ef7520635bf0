"""Observations an exact time apart: sums over them, and correlations of two legs' returns.

Two observations are a pair of lag k if their times differ by exactly k steps, whatever lies
between. Sums are taken about the mean, and those of each trajectory apart from all others, so that
they are equal to the last bit whatever else is in the chunk.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import whole_number
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers

Values = TypeVar("Values", Floats, Integers)
Made = TypeVar("Made")

MIN_PAIRS = 100
"""Fewer pairs or triples than this, and nothing is fitted."""

_LONGEST_LAG = 1_440
_ROWS_PER_PART = 30_000
_PLACES_A_ROW = 4
"""An axis of more places than that for each observation of a part is searched, not looked up."""
_BLOCK_STEPS = 5
"""A block is this many times as long as the longer lag of its triples, and 10 steps more."""


class Pairs(NamedTuple):
    """The pairs of one lag of each trajectory: their number and their sums about the means."""

    pairs: Integers
    earlier_squares: Floats
    later_squares: Floats
    products: Floats
    constant: Flags
    """Whether the earlier values are all equal."""

    @property
    def correlation(self) -> Floats:
        """The correlation of each trajectory's pairs, NaN if one side does not vary."""
        with np.errstate(all="ignore"):
            return self.products / np.sqrt(self.earlier_squares * self.later_squares)


class Decay(NamedTuple):
    """The covariances of z(t) with x(t + 1) and x(t + 1 + lag) of each trajectory, in blocks.

    The three observations are taken about their means over the triples. a is the sum over a block
    of time of z x(t + 1 + lag), b that of z x(t + 1).
    """

    lag: Integers
    triples: Integers
    span: Floats
    """The steps that the triples cover: times without any count as 1 + lag at most."""
    a: Floats
    b: Floats
    aa: Floats
    ab: Floats
    bb: Floats
    overlap: Floats
    """The share of the variance of block sums that lies between blocks and is not in aa, ab, bb."""


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of some trajectories, sorted by trajectory and time."""

    numbers: Integers
    """The number of each trajectory, one each, as of ``step_s``."""
    step_s: Integers
    begins: Integers
    """The observation with which each trajectory begins, and the number of observations."""
    value: Floats
    """Less the trajectory's first value."""
    since_s: Integers
    """The time since the trajectory's first observation."""
    key: Integers
    """The time on one axis, on which the trajectories follow each other, far apart: in steps where
    all observations are whole steps apart, else in seconds."""
    a_step: Integers | int
    """How long a step of each observation's trajectory is on that axis."""
    at: Integers | None
    """The observation at each place of the axis, -1 for none. None for an axis of too many."""

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """Read the columns ``number``, ``ts``, ``value`` and ``step_s`` of a chunk's rows."""
        number = rows["number"].to_numpy()
        ts, value = rows["ts"].to_numpy(), rows["value"].to_numpy()
        first = np.flatnonzero(np.diff(number, prepend=-1))
        begins = np.append(first, len(ts))
        counts = np.diff(begins)
        steps = rows["step_s"].gather(first)
        # a single observation has no step, and no pair either
        step_s = (steps.fill_null(1) if steps.null_count() else steps).to_numpy()
        since_s = ts - np.repeat(ts[first], counts)
        own_step_s = np.repeat(step_s, counts)
        since_steps = since_s / own_step_s
        a_step: Integers | int = 1
        key, step = since_steps.astype(np.int64), np.ones(len(counts), np.int64)
        if (key != since_steps).any():
            key, a_step, step = since_s, own_step_s, step_s
        lengths = key[begins[1:] - 1] + _LONGEST_LAG * step + 1
        key = key + np.repeat(np.cumsum(lengths) - lengths, counts)
        value = value - np.repeat(value[first], counts)
        at = _places(key, int(lengths.sum()))
        return cls(number[first], step_s, begins, value, since_s, key, a_step, at)

    def some(self, places: Integers, value: Floats) -> Self:
        """Return the observations at sorted places, with other values."""
        counts, key = self.counts(places), self.key[places]
        held = counts > 0
        return type(self)(
            self.numbers[held],
            self.step_s[held],
            np.append(0, np.cumsum(counts[held])),
            value,
            self.since_s[places],
            key,
            self.a_step if isinstance(self.a_step, int) else self.a_step[places],
            None if self.at is None else _places(key, len(self.at)),
        )

    def later(self, steps: int) -> Integers:
        """Find each observation's partner exactly ``steps`` steps later, -1 for none."""
        target = self.key + steps * self.a_step
        if self.at is not None:
            found = self.at.take(target, mode="clip")
        else:
            near = np.minimum(np.searchsorted(self.key, target), len(target) - 1)
            found = np.where(self.key[near] == target, near, -1)
        if steps > _LONGEST_LAG:  # as far as the next trajectory on the axis, or beyond its end
            own = np.repeat(self.begins[1:], np.diff(self.begins))
            found = np.where((found < own) & (self.key[found] == target), found, -1)
        return np.asarray(found)

    def spans(self) -> Floats:
        """Return the steps from the first observation of each trajectory to its last."""
        apart_s = self.since_s[self.begins[1:] - 1] - self.since_s[self.begins[:-1]]
        return np.asarray(apart_s / self.step_s)

    def counts(self, some: Integers) -> Integers:
        """Count the observations at sorted places by trajectory."""
        return np.diff(np.searchsorted(some, self.begins))

    def pairs(self, later: Integers) -> Pairs:
        """Sum over the pairs of one lag, given each observation's partner."""
        paired = np.flatnonzero(later >= 0)
        counts, before, after = self.counts(paired), self.value[paired], self.value[later[paired]]
        constant = sums(before, counts, np.minimum) == sums(before, counts, np.maximum)
        before, after = centred(before, counts), centred(after, counts)
        earlier, further, both = (
            sums(each, counts) for each in (before * before, after * after, before * after)
        )
        return Pairs(counts, earlier, further, both, constant)

    def decay(self, next_one: Integers, far: Integers, lag: int) -> Decay:
        """Sum over the triples of one lag, given each observation's partners 1 and 1 + lag on."""
        whole = np.flatnonzero((next_one >= 0) & (far >= 0))
        counts, since_s = self.counts(whole), self.since_s[whole]
        z, near, further = (
            centred(self.value[rows], counts) for rows in (whole, next_one[whole], far[whole])
        )
        block_steps = _BLOCK_STEPS * lag + 10
        # whole numbers below 2^52: their quotient is never rounded up to the next one
        block = (since_s / np.repeat(block_steps * self.step_s, counts)).astype(np.int64)
        apart_s = np.diff(since_s, prepend=0)
        begins = (np.cumsum(counts) - counts)[counts > 0]
        new = np.diff(block, prepend=-1) != 0
        new[begins], apart_s[begins] = True, 0
        first = np.flatnonzero(new)
        blocks = np.diff(np.searchsorted(first, np.append(0, np.cumsum(counts))))
        a, b = (sums(z * x, np.diff(first, append=len(z))) for x in (further, near))
        covered_s = np.minimum(apart_s, np.repeat((1 + lag) * self.step_s, counts))
        return Decay(
            lag=np.full(len(counts), lag),
            triples=counts,
            span=sums(covered_s, counts) / self.step_s + 1 + lag,
            a=sums(a, blocks),
            b=sums(b, blocks),
            aa=sums(a * a, blocks),
            ab=sums(a * b, blocks),
            bb=sums(b * b, blocks),
            overlap=np.full(len(counts), lag / (3 * block_steps)),
        )


def _places(key: Integers, length: int) -> Integers | None:
    """List the observation at each place of an axis of this length, -1 for none."""
    if length > _PLACES_A_ROW * max(len(key), _ROWS_PER_PART):
        return None
    at = np.full(length, -1)
    at[key] = np.arange(len(key))
    return at


def parts(rows: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Yield whole trajectories, sorted by ``number``, as many as fit the processor's cache."""
    number = rows["number"].to_numpy()
    ends = np.append(np.flatnonzero(np.diff(number)) + 1, number.size)
    at = 0
    for end in ends[np.diff(ends // _ROWS_PER_PART, append=-1) != 0].tolist():
        yield rows[at:end]
        at = end


def joined(kind: Callable[..., Made], found: Iterable[tuple[Any, ...]]) -> Made:
    """Concatenate arrays of trajectories, along the last axis."""
    return kind(*(np.concatenate(each, axis=-1) for each in zip(*found, strict=True)))


def sums(values: Values, counts: Integers, add: np.ufunc = np.add) -> Values:
    """Add up the values of each trajectory, which follow each other: 0 if it has none."""
    begins, some = np.cumsum(counts) - counts, counts > 0
    if some.all() and some.size:
        return np.asarray(add.reduceat(values, begins))
    found = np.zeros(len(counts), values.dtype)
    if some.any():
        found[some] = add.reduceat(values, begins[some])
    return found


def centred(values: Floats, counts: Integers) -> Floats:
    """Subtract from each value the mean of its trajectory."""
    mean = np.repeat(sums(values, counts) / np.maximum(counts, 1), counts)
    return np.subtract(values, mean, out=mean)


SELL = "sell_log_price"

MOST_LAG_STEPS = 720
"""The longest lag that may be asked for."""


def checked_lag(max_lag_steps: int) -> int:
    """Return the longest lag, or raise `InputError` if it is above 720 steps."""
    most = whole_number("max_lag_steps", max_lag_steps, 1)
    if most > MOST_LAG_STEPS:
        raise InputError("max_lag_steps", most, f"at most {MOST_LAG_STEPS}")
    return most


class _Related(NamedTuple):
    """Figures of each trajectory by lag: NaN if nothing varies, infinite for too few pairs."""

    pairs: Integers
    correlation: Floats
    error: Floats
    """The standard error without any relation, whatever the volatility and the bounce do."""


def related(rows: pl.DataFrame, most: int) -> tuple[Integers, _Related]:
    """Correlate the returns of both legs at all lags (rows) of each trajectory (columns)."""
    moved = [_returns(part) for part in parts(rows)]
    related = [_of_returns(returns, other, most) for returns, other in moved]
    return np.concatenate([each.numbers for each, _ in moved]), joined(_Related, related)


def _returns(rows: pl.DataFrame) -> tuple[Observations, Floats]:
    held = Observations.of(rows)
    later = held.later(1)
    first = np.flatnonzero(later >= 0)
    at = later[first]
    sell = rows[SELL].to_numpy()
    return held.some(at, held.value[at] - held.value[first]), sell[at] - sell[first]


def _of_returns(returns: Observations, other: Floats, most: int) -> _Related:
    own = returns.value
    every = np.arange(own.size)
    found = {0: _at_lag(own, other, np.diff(returns.begins), _next_pairs(returns, every))}
    for lag in range(1, most + 1):
        later = returns.later(lag)
        paired = np.flatnonzero(later >= 0)
        at, counts = later[paired], returns.counts(paired)
        next_pairs = _next_pairs(returns, paired)
        found[lag] = _at_lag(own[paired], other[at], counts, next_pairs)
        found[-lag] = _at_lag(other[paired], own[at], counts, next_pairs)
    in_order = [found[lag] for lag in range(-most, most + 1)]
    return _Related(*(np.array(each) for each in zip(*in_order, strict=True)))


def _next_pairs(returns: Observations, paired: Integers) -> Integers:
    """Return the place among pairs of that one step after each, or -1."""
    place = np.full(returns.value.size + 1, -1)  # the last is that of no return
    place[paired] = np.arange(paired.size)
    found: Integers = place[returns.later(1)[paired]]
    return found


def _at_lag(
    before: Floats, after: Floats, counts: Integers, next_pairs: Integers
) -> tuple[Integers, Floats, Floats]:
    x, y = centred(before, counts), centred(after, counts)
    product = x * y
    with np.errstate(all="ignore"):
        scale = np.sqrt(sums(x * x, counts) * sums(y * y, counts))
        correlation = sums(product, counts) / scale
        alone = sums(product * product, counts)
        # bounce of both legs makes products of neighbours alike
        both = sums(np.where(next_pairs >= 0, product * product[next_pairs], 0.0), counts)
        error = np.sqrt(alone + 2 * np.maximum(both, 0)) / scale
    few = counts < MIN_PAIRS
    correlation = np.where(scale > 0, correlation, math.nan)
    return counts, np.where(few, math.inf, correlation), np.where(few, math.inf, error)


def numbers_of(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the numbers of the trajectories of rows, in their order."""
    return rows.select(pl.col("number").unique(maintain_order=True))


def peaks(rows: pl.DataFrame, most: int) -> pl.DataFrame:
    """Find the lag at which the returns of each trajectory agree most, and how closely.

    ``rows`` are observations of the buy leg's log price as ``value`` with ``number``, ``ts`` and
    ``step_s``, and the sell leg's as ``sell_log_price``. One row per number.
    """
    numbers, found = related(rows, most)
    near_first = np.array(sorted(range(-most, most + 1), key=abs))
    size = np.where(np.isfinite(found.correlation), found.correlation, -math.inf)
    peak = near_first[size[near_first + most].argmax(axis=0)] + most
    column = np.arange(len(numbers))
    every = 1 - (1 - 0.95 ** (1 / (2 * most + 1))) / 2
    squares = np.square(found.correlation)
    with np.errstate(all="ignore"):
        # lag by lag, as numpy adds up one trajectory in another order than several
        ratio = sum(squares[most + 1 :]) / sum(squares[:most])
    own = pl.DataFrame(
        {
            "number": numbers,
            "returns": found.pairs[most],
            "peak_lag": peak - most,
            "peak": found.correlation[peak, column],
            "band": NormalDist().inv_cdf(every) * found.error[peak, column],
            "at_zero": found.correlation[most],
            "ratio": np.where(np.isfinite(ratio), ratio, math.nan),
        },
        schema_overrides={"number": pl.UInt32, "peak_lag": pl.Int64},
    )
    return numbers_of(rows).join(own, on="number", how="left", maintain_order="left")


def why(correlation: pl.Expr) -> dict[Reason, pl.Expr]:
    """Build the reasons for a correlation: infinite for too few pairs, NaN without change."""
    return {
        Reason.EMPTY: pl.col("n") == 0,
        Reason.TOO_FEW: correlation.is_null() | correlation.is_infinite(),
        Reason.DEGENERATE: correlation.is_nan(),
    }
