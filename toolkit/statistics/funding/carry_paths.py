"""Holdings of one trajectory, entered at many times, by sums since its beginning.

A path is a level after each settlement, and a holding the difference of two places on it. Extremes
between them come from stretches whose lengths are powers of two, without a loop over entries.
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
"""The tolerance of sums of floats that reach a bound."""


@dataclass(frozen=True)
class Path:
    """The level after each settlement, and whether prices are included.

    ``ts`` are the settlements of either leg, rising. ``level`` is the sum received since the
    beginning by a position that is always held, in units of ``scale``, with one more element first.
    ``mark`` is what closing at each settlement adds, NaN before a price is known, 0 if not
    ``priced``.
    """

    ts: Times
    level: Numbers
    mark: Numbers
    priced: bool = True

    @cached_property
    def closed(self) -> Stretches:
        """The value of closing at each settlement, 0 if unknown, by stretches."""
        return Stretches(np.nan_to_num(self.level[1:] + self.mark))


@dataclass(frozen=True, slots=True)
class Moments:
    """Times at which positions are opened or closed (``ts``, s), and the path there.

    ``place`` is the number of settlements by then, ``level`` their sum, and ``worth`` the level
    with the mark, NaN without a price. ``scale`` is bps per unit of worth for positions opened
    then, ``funding_scale`` per unit of level, which differs with compounding.
    """

    ts: Times
    place: Times
    level: Numbers
    worth: Numbers
    scale: Numbers
    funding_scale: Numbers

    def __getitem__(self, which: Flags | slice) -> Moments:
        return Moments(*(column[which] for column in _columns(self)))


_columns = attrgetter(*(each.name for each in fields(Moments)))


@dataclass(frozen=True, slots=True)
class Holding:
    """The result of each entry, in bps of one leg's notional.

    ``breakeven_h`` is the hours to the first settlement at which the cost was earned, infinite if
    not within the horizon, NaN if the cost is unknown.
    """

    gross_bps: Numbers
    funding_bps: Numbers
    drawdown_bps: Numbers
    breakeven_h: Numbers


def covered(segments: list[tuple[Times, Times]], ts: Times, horizon_s: int) -> Flags:
    """Mark the entries over whose whole horizon each leg is covered.

    ``segments`` has for each leg the beginnings and ends of its covered stretches, disjoint and
    rising, as ``ts`` is.

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
    """Join stretches that touch or overlap, sorted by their beginning.

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
    """Count the rising times at or before each of some equidistant ones.

    >>> counted(np.array([0, 61, 120]), np.array([60, 120, 180])).tolist()
    [1, 3, 3]
    """
    every_s = ts[1] - ts[0] if ts.size > 1 else 1
    since = np.clip(-((ts[:1] - times) // every_s), 0, ts.size) if ts.size else 0 * times
    return np.repeat(np.arange(times.size + 1), np.diff(since, prepend=0, append=ts.size))


def sliced(which: Flags) -> Flags | slice:
    """Return marks as a slice if those marked are consecutive: it copies nothing.

    >>> sliced(np.array([False, True, True]))
    slice(1, 3, None)
    """
    count, first = int(np.count_nonzero(which)), int(np.argmax(which)) if which.size else 0
    return slice(first, first + count) if which[first : first + count].all() else which


def gross_bps(opened: Moments, closed: Moments) -> Numbers:
    """Compute the gross result of each entry, NaN if a price is unknown."""
    return opened.scale * (closed.worth - opened.worth)


def held(
    path: Path, opened: Moments, closed: Moments, gross: Numbers, cost_bps: Numbers
) -> Holding:
    """Compute the result of each entry, from the moment it is opened to the one it is closed.

    A settlement at the entry is not received, one at the exit is. ``gross`` is `gross_bps` without
    NaN. The drawdown is the largest fall from an earlier maximum, over the entry, the settlements
    and the exit, without the cost.

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
    """The minimum, maximum and largest fall of stretches of consecutive values.

    They are stored for lengths that are powers of two. Any other stretch is two that overlap.
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
        """Return the minimum, the maximum and the largest fall of each stretch ``[first, last)``.

        Without values they are infinite.

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
        """Return the first place in each stretch ``[first, last)`` with ``least`` or more, or last.

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
        """Return the places of some stored stretches, or a slice of ``count``."""
        at = row * self._width + begin
        return at if count is None else slice(int(at[0]), int(at[0]) + count)

    def _longest_within(self, length: Times) -> tuple[Times, Times]:
        """Return the row and the length of the longest stored stretch within each length."""
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
