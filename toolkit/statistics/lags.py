"""Observations an exact time apart, and the sums over them that a half-life is estimated from.

Two observations are a pair of lag k where their times differ by exactly k steps, whatever lies
between them: gaps, hours among minutes and minutes among hours move nothing. Sums are taken about
the mean, and each trajectory's are added up in the order of time, so that they are the same to the
last bit whatever else is in the chunk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt
import polars as pl

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

_LONGEST_LAG = 100
_BLOCK_STEPS = 5
"""A block is this many times as long as the longer lag of its triples, and 10 steps more."""


class Pairs(NamedTuple):
    """Of each trajectory, the pairs of one lag: their number and their sums about the means."""

    pairs: Integers
    earlier_squares: Floats
    later_squares: Floats
    products: Floats
    constant: npt.NDArray[np.bool_]
    """Whether the earlier values are all equal."""


class Decay(NamedTuple):
    """Of each trajectory, the covariances of z(t) with x(t + 1) and x(t + 1 + lag), in blocks.

    A triple is three observations at t, t + 1 and t + 1 + lag steps. All three are taken about
    their means over the triples. Of each block of time, a is the sum of z x(t + 1 + lag) and b that
    of z x(t + 1).
    """

    lag: int
    triples: Integers
    span: Floats
    """The steps that the triples cover: times without any count as 1 + lag at most."""
    a: Floats
    b: Floats
    aa: Floats
    ab: Floats
    bb: Floats
    overlap: float
    """The share of the variance of block sums that lies between blocks and is not in aa, ab, bb."""


@dataclass(frozen=True, slots=True)
class Observations:
    """The observations of some trajectories, sorted by trajectory and time."""

    numbers: Integers
    """The number of each trajectory, one each."""
    place: Integers
    """Of each observation, which of the trajectories it belongs to."""
    value: Floats
    """Less the trajectory's first value."""
    step_s: Integers
    since_s: Integers
    """The time since the trajectory's first observation."""
    key: Integers
    """The time on one axis, on which the trajectories follow each other, far apart."""

    @classmethod
    def of(cls, rows: pl.DataFrame) -> Self:
        """Read the columns ``number``, ``ts``, ``value`` and ``step_s`` of a chunk's rows."""
        number = rows["number"].to_numpy().astype(np.int64)
        ts, value = rows["ts"].to_numpy(), rows["value"].to_numpy()
        # a single observation has no step, and no pair either
        step_s = rows["step_s"].fill_null(1).to_numpy()
        first = _firsts(number)
        place = np.zeros(len(ts), np.int64)
        place[first[1:]] = 1
        place = np.cumsum(place)
        since_s = ts - ts[first][place]
        last = np.append(first[1:], len(ts))[: len(first)] - 1
        lengths = since_s[last] + _LONGEST_LAG * step_s[last] + 1
        key = since_s + (np.cumsum(lengths) - lengths)[place]
        return cls(number[first], place, value - value[first][place], step_s, since_s, key)

    def later(self, steps: int) -> Integers:
        """Find each observation's partner exactly ``steps`` steps later, -1 where it has none."""
        count = len(self.key)
        target = self.key + steps * self.step_s
        found = np.minimum(np.arange(count) + steps, count - 1)
        astray = np.flatnonzero(self.key[found] != target)
        at = np.minimum(np.searchsorted(self.key, target[astray]), count - 1)
        found[astray] = np.where(self.key[at] == target[astray], at, -1)
        return found

    def totals(self, place: Integers, values: npt.NDArray[np.generic] | None = None) -> Floats:
        """Add up values by trajectory, or count them."""
        return np.bincount(place, values, minlength=len(self.numbers)).astype(np.float64)

    def centred(self, place: Integers, values: Floats) -> Floats:
        """Subtract from each value the mean of its trajectory's."""
        counts = np.maximum(self.totals(place), 1)
        return values - (self.totals(place, values) / counts)[place]

    def pairs(self, later: Integers) -> Pairs:
        """Sum over the pairs of one lag, given each observation's partner."""
        paired = np.flatnonzero(later >= 0)
        place, before, after = self.place[paired], self.value[paired], self.value[later[paired]]
        constant = np.ones(len(self.numbers), np.bool_)
        if first := _firsts(place).tolist():
            constant[place[first]] = np.minimum.reduceat(before, first) == np.maximum.reduceat(
                before, first
            )
        before, after = self.centred(place, before), self.centred(place, after)
        return Pairs(
            self.totals(place).astype(np.int64),
            self.totals(place, before * before),
            self.totals(place, after * after),
            self.totals(place, before * after),
            constant,
        )

    def decay(self, next_one: Integers, far: Integers, lag: int) -> Decay:
        """Sum over the triples of one lag, given each observation's partners 1 and 1 + lag on."""
        whole = np.flatnonzero((next_one >= 0) & (far >= 0))
        place, since_s, step_s = self.place[whole], self.since_s[whole], self.step_s[whole]
        z, near, further = (
            self.centred(place, self.value[rows]) for rows in (whole, next_one[whole], far[whole])
        )
        block_steps = _BLOCK_STEPS * lag + 10
        first = _firsts(place, since_s // (block_steps * step_s))
        sums = [np.add.reduceat(z * x, first) if len(first) else z for x in (further, near)]
        a, b = sums
        apart = np.diff(since_s, prepend=0) / step_s
        apart[_firsts(place)] = 0
        blocks = place[first]
        return Decay(
            lag=lag,
            triples=self.totals(place).astype(np.int64),
            span=self.totals(place, np.minimum(apart, 1 + lag)) + 1 + lag,
            a=self.totals(blocks, a),
            b=self.totals(blocks, b),
            aa=self.totals(blocks, a * a),
            ab=self.totals(blocks, a * b),
            bb=self.totals(blocks, b * b),
            overlap=lag / (3 * block_steps),
        )


def _firsts(*columns: Integers) -> Integers:
    """Find where any of the columns differs from the row before, and the first row."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = False
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return np.flatnonzero(changed)
