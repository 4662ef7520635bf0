"""What holdings of one trajectory received, entered at many times: by sums since its beginning.

A path is a level after each settlement, of which a holding keeps the differences. So each figure of
a holding comes from two places on the path, and what lies between from maxima over stretches whose
lengths are powers of two. Nothing here goes through the entries one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from operator import attrgetter

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TIE_BPS = 1e-9
"""By how much a sum may miss a bound and has reached it: sums of floats miss by some bits."""


@dataclass(frozen=True)
class Path:
    """The level after each settlement, and where it is known.

    ``ts`` are the times of settlement of either leg, rising. ``level`` is what a position that is
    always held has received since its beginning, in the unit of ``scale``. It has one element more
    than ``ts``, the first before all settlements. ``mark`` is what closing at each settlement adds
    to the level, NaN before any price is known, and nothing anywhere if the path is not ``priced``.
    """

    ts: Times
    level: Numbers
    mark: Numbers
    priced: bool = True

    @cached_property
    def closed(self) -> Stretches:
        """What closing at each settlement comes to, by stretches, 0 where it is not known."""
        return Stretches(np.nan_to_num(self.level[1:] + self.mark))


@dataclass(frozen=True, slots=True)
class Moments:
    """Times at which positions are opened or closed (``ts``, s), and the path there.

    ``place`` is how many settlements there were by then, and ``level`` what they came to. ``worth``
    is the level with the mark, NaN where no price is known. ``scale`` is bps per unit of the worth
    for what is opened then, and ``funding_scale`` per unit of the level alone, which differs where
    gains are put back.
    """

    ts: Times
    place: Times
    level: Numbers
    worth: Numbers
    scale: Numbers
    funding_scale: Numbers

    def __getitem__(self, which: Flags | slice) -> Moments:
        """Return some of them."""
        return Moments(*(column[which] for column in _columns(self)))


_columns = attrgetter(*(each.name for each in fields(Moments)))


@dataclass(frozen=True, slots=True)
class Holding:
    """What each entry came to, in bps of one leg's notional.

    ``breakeven_h`` is the hours to the first settlement at which the cost was earned, infinite
    where that was not within the horizon, and NaN where a cost is not known.
    """

    gross_bps: Numbers
    funding_bps: Numbers
    drawdown_bps: Numbers
    breakeven_h: Numbers


def covered(segments: list[tuple[Times, Times]], ts: Times, horizon_s: int) -> Flags:
    """Mark the entries over whose whole horizon each leg is covered.

    ``segments`` has, of each leg, the beginnings and ends of the stretches that it covers, apart
    from each other and rising, as ``ts`` is.

    >>> legs = [(np.array([0, 100]), np.array([60, 200]))]
    >>> covered(legs, np.array([0, 1, 100, 150]), 60).tolist()
    [True, False, True, False]
    """
    found = np.ones(ts.size, dtype=np.bool_)
    for begins, ends in segments:
        inside = np.zeros(ts.size, dtype=np.bool_)
        first, last = np.searchsorted(ts, begins), np.searchsorted(ts, ends - horizon_s, "right")
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            inside[begin:end] = True
        found &= inside
    return found


def merged(begins: Numbers, ends: Numbers) -> tuple[Times, Times]:
    """Join stretches that touch or overlap. They come sorted by their beginning.

    >>> [each.tolist() for each in merged(np.array([0.0, 60, 200]), np.array([60.0, 90, 260]))]
    [[0, 200], [90, 260]]
    """
    if not begins.size:
        return begins.astype(np.int64), ends.astype(np.int64)
    reach = np.maximum.accumulate(ends)
    new = np.append(True, begins[1:] > reach[:-1])
    last = np.append(np.flatnonzero(new)[1:] - 1, begins.size - 1)
    return np.ceil(begins[new]).astype(np.int64), np.floor(reach[last]).astype(np.int64)


def counted(times: Times, ts: Times) -> Times:
    """Count those of rising times that are at or before each of some that are equally far apart.

    >>> counted(np.array([0, 61, 120]), np.array([60, 120, 180])).tolist()
    [1, 3, 3]
    """
    every_s = ts[1] - ts[0] if ts.size > 1 else 1
    since = np.clip(-((ts[:1] - times) // every_s), 0, ts.size) if ts.size else 0 * times
    return np.repeat(np.arange(times.size + 1), np.diff(since, prepend=0, append=ts.size))


def sliced(which: Flags) -> Flags | slice:
    """Return marks as a slice where those marked follow each other, since it copies nothing.

    >>> sliced(np.array([False, True, True]))
    slice(1, 3, None)
    """
    count, first = int(np.count_nonzero(which)), int(np.argmax(which)) if which.size else 0
    return slice(first, first + count) if which[first : first + count].all() else which


def gross_bps(opened: Moments, closed: Moments) -> Numbers:
    """Compute what each entry came to, NaN where the price at its entry or exit is not known."""
    return opened.scale * (closed.worth - opened.worth)


def held(
    path: Path, opened: Moments, closed: Moments, gross: Numbers, cost_bps: Numbers
) -> Holding:
    """Compute what each entry came to, from the moment it is opened to the one it is closed.

    A settlement at the entry is not received, one at the exit is. ``gross`` is `gross_bps`, all of
    it known. The drawdown is the largest fall of the level from a maximum before it, over the
    entry, the settlements and the exit. The cost is paid at the entry and is itself no fall.

    >>> path = Path(np.array([60, 120]), np.array([0.0, 2.0, 1.0]), np.zeros(2))
    >>> at, one = np.array([0, 1, 2]), np.ones(3)
    >>> moments = Moments(60 * at, at, path.level, path.level, one, one)
    >>> gross = gross_bps(moments[:-1], moments[1:])
    >>> found = held(path, moments[:-1], moments[1:], gross, np.array([1.0, 1.0]))
    >>> found.gross_bps.tolist(), found.drawdown_bps.tolist()
    ([2.0, -1.0], [0.0, 1.0])
    """
    first, last = opened.place, closed.place
    low, high, fall = path.closed.extremes(first, last)
    # the entry comes before all settlements, the exit after them
    np.maximum(fall, opened.worth - low, out=fall)
    np.maximum(fall, np.maximum(high, opened.worth) - closed.worth, out=fall)
    hours = np.full(cost_bps.size, np.nan)
    if not np.isnan(cost_bps).any():
        reached = path.closed.first_at_least(
            first, last, opened.worth + (cost_bps - TIE_BPS) / opened.scale
        )
        at = np.append(path.ts, 0)[reached]
        hours = np.where(reached < last, (at - opened.ts) / 3600, np.inf)
    funding = gross
    if path.priced:
        funding = opened.funding_scale * (closed.level - opened.level)
    return Holding(
        gross_bps=gross,
        funding_bps=funding,
        drawdown_bps=opened.scale * np.maximum(fall, 0.0),
        breakeven_h=hours,
    )


class Stretches:
    """The least, the largest and the largest fall of stretches of values that follow each other.

    They are kept of each stretch whose length is a power of two, by where it begins. Any other
    stretch is two of them that overlap.
    """

    def __init__(self, values: Numbers) -> None:
        self._width = values.size + 1
        # row 0 is of no values, row 1 of one each, row 2 of two, row 3 of four
        shape = (3, self._width.bit_length() + 1, self._width)
        self._lows, self._highs, self._falls = np.empty(shape)
        self._lows[0], self._highs[0], self._falls[0] = np.inf, -np.inf, -np.inf
        self._lows[1, :-1], self._highs[1, :-1], self._falls[1, :-1] = values, values, 0.0
        self._filled = 1

    def extremes(self, first: Times, last: Times) -> tuple[Numbers, Numbers, Numbers]:
        """Return of each stretch ``[first, last)`` the least, the largest and the largest fall.

        Of no values they are infinite, so that nothing is below the least or above the largest.

        >>> values = Stretches(np.array([1.0, 3.0, 2.0]))
        >>> [each.tolist() for each in values.extremes(np.array([0, 2]), np.array([3, 2]))]
        [[1.0, inf], [3.0, -inf], [1.0, -inf]]
        """
        length, count = last - first, None
        if length.size and np.all(length == length[0]):
            length = length[:1]
            if np.all(first[1:] - first[:-1] == 1):
                first, last, count = first[:1], last[:1], first.size
        row, size = self._longest_within(length)
        head_row, head_size = self._longest_within(length - size)
        second = last - size
        here, there = self._places(row, first, count), self._places(row, second, count)
        heads = [self._places(head_row, at, count) for at in (first, second - head_size)]
        lows, highs, falls = (each.ravel() for each in (self._lows, self._highs, self._falls))
        before = np.maximum(highs[heads[0]], highs[heads[1]])
        low_there = lows[there]
        fall = np.maximum(falls[here], falls[there])
        return (
            np.minimum(lows[here], low_there),
            np.maximum(highs[here], highs[there]),
            np.maximum(fall, before - low_there, out=fall),
        )

    def first_at_least(self, first: Times, last: Times, least: Numbers) -> Times:
        """Return where in each stretch ``[first, last)`` a value is ``least`` or more, else last.

        >>> values = Stretches(np.array([1.0, 3.0, 2.0, 5.0]))
        >>> values.first_at_least(np.array([0, 2]), np.array([4, 4]), np.array([2.5, 6.0])).tolist()
        [1, 4]
        """
        at = first.copy()
        rows, _ = self._longest_within(last - first)
        for row in range(int(rows.max(initial=0)), 0, -1):
            size = 1 << (row - 1)
            fits = np.flatnonzero(at + size <= last)
            # a NaN for least is never reached
            at[fits[~(self._highs[row].take(at[fits]) >= least[fits])]] += size
        return at

    def _places(self, row: Times, begin: Times, count: int | None) -> Times | slice:
        """Return where some kept stretches are, or so many that follow on, row by row."""
        at = row * self._width + begin
        return at if count is None else slice(int(at[0]), int(at[0]) + count)

    def _longest_within(self, length: Times) -> tuple[Times, Times]:
        """Return the row of the longest kept stretch within each length, and how long that is."""
        row = np.frexp(length)[1].astype(np.int64)
        while self._filled < row.max(initial=0):
            size = 1 << (self._filled - 1)
            self._filled += 1
            half, whole = self._filled - 1, (self._filled, slice(self._width - 2 * size))
            here, there = slice(self._width - 2 * size), slice(size, self._width - size)
            lows, highs, falls = self._lows[half], self._highs[half], self._falls[half]
            np.minimum(lows[here], lows[there], out=self._lows[whole])
            np.maximum(highs[here], highs[there], out=self._highs[whole])
            fall = np.maximum(falls[here], falls[there])
            np.maximum(fall, highs[here] - lows[there], out=self._falls[whole])
        return row, (1 << row) >> 1
