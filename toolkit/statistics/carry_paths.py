"""What holdings of one trajectory received, entered at many times: by sums since its beginning.

A path is a level after each settlement, of which a holding keeps the differences. So each figure of
a holding comes from two places on the path, and what lies between from maxima over stretches whose
lengths are powers of two. Nothing here goes through the entries one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]
Times = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

TIE_BPS = 1e-9
"""By how much a sum may miss a bound and has reached it: sums of floats miss by some bits."""


@dataclass(frozen=True, slots=True)
class Path:
    """The level after each settlement, and where it is known.

    ``ts`` are the times of settlement of either leg, rising. ``level`` is what a position that is
    always held has received since its beginning, in the unit of ``scale``. It has one element more
    than ``ts``, the first before all settlements. ``mark`` is what closing at each settlement adds
    to the level, NaN where no price is known.
    """

    ts: Times
    level: Numbers
    mark: Numbers


@dataclass(frozen=True, slots=True)
class Entries:
    """When positions are opened (``ts``, s), the mark then, and bps per unit of level and mark.

    ``funding_scale`` is bps per unit of the level alone, which differs where gains are put back.
    """

    ts: Times
    mark: Numbers
    scale: Numbers
    funding_scale: Numbers


@dataclass(frozen=True, slots=True)
class Holding:
    """What each entry came to: in bps of one leg's notional, and NaN where it is not known.

    ``breakeven_h`` is the hours to the first settlement at which the cost was earned, infinite
    where that was not within the horizon.
    """

    gross_bps: Numbers
    funding_bps: Numbers
    drawdown_bps: Numbers
    breakeven_h: Numbers


def covered(segments: list[tuple[Times, Times]], ts: Times, horizon_s: int) -> Flags:
    """Mark the entries over whose whole horizon each leg is covered.

    ``segments`` has, of each leg, the beginnings and ends of the stretches that it covers, apart
    from each other and rising.

    >>> legs = [(np.array([0, 100]), np.array([60, 200]))]
    >>> covered(legs, np.array([0, 1, 100, 150]), 60).tolist()
    [True, False, True, False]
    """
    found = np.ones(ts.size, dtype=np.bool_)
    for begins, ends in segments:
        at = np.searchsorted(begins, ts, side="right") - 1
        if not begins.size:
            return np.zeros(ts.size, dtype=np.bool_)
        found &= (at >= 0) & (ts + horizon_s <= ends[np.maximum(at, 0)])
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


def held(
    path: Path, entries: Entries, exit_mark: Numbers, horizon_s: int, cost_bps: Numbers
) -> Holding:
    """Compute what each entry came to over ``(entry, entry + horizon]``.

    A settlement at the entry is not received, one at the exit is. ``exit_mark`` is the mark at each
    exit. The drawdown is the largest fall of the level from a maximum before it, over the entry,
    the settlements and the exit. The cost is paid at the entry and is itself no fall.

    >>> path = Path(np.array([60, 120]), np.array([0.0, 2.0, 1.0]), np.zeros(2))
    >>> entries = Entries(np.array([0, 60]), np.zeros(2), np.ones(2), np.ones(2))
    >>> found = held(path, entries, np.zeros(2), 60, np.array([1.0, 1.0]))
    >>> found.gross_bps.tolist(), found.drawdown_bps.tolist()
    ([2.0, -1.0], [0.0, 1.0])
    """
    first = np.searchsorted(path.ts, entries.ts, side="right")
    last = np.searchsorted(path.ts, entries.ts + horizon_s, side="right")
    opened, closed = path.level[first] + entries.mark, path.level[last] + exit_mark
    marks = np.cumsum(np.append(0, np.isnan(path.mark)))
    known = (marks[last] == marks[first]) & ~np.isnan(opened) & ~np.isnan(closed)
    marked = np.nan_to_num(path.level[1:] + path.mark)
    low, high, fall = _extremes(marked, first, last)
    # the entry comes before all settlements, the exit after them
    fall = np.maximum(fall, opened - low)
    fall = np.maximum(fall, np.maximum(high, opened) - closed)
    target = opened + (cost_bps - TIE_BPS) / entries.scale
    # without a cost there is nothing to earn
    asked = not np.isnan(cost_bps).all()
    reached = first_at_least(marked, first, last, target) if asked else last
    earned = reached < last
    at = path.ts[np.minimum(reached, max(path.ts.size - 1, 0))] if path.ts.size else entries.ts
    hours = np.where(earned, (at - entries.ts) / 3600, np.inf)
    return Holding(
        gross_bps=np.where(known, entries.scale * (closed - opened), np.nan),
        funding_bps=np.where(
            known, entries.funding_scale * (path.level[last] - path.level[first]), np.nan
        ),
        drawdown_bps=np.where(known, entries.scale * np.maximum(fall, 0.0), np.nan),
        breakeven_h=np.where(known & ~np.isnan(cost_bps), hours, np.nan),
    )


def _extremes(values: Numbers, first: Times, last: Times) -> tuple[Numbers, Numbers, Numbers]:
    """Return of each stretch ``[first, last)`` the least, the largest and the largest fall.

    The stretch is put together from stretches whose lengths are the powers of two in its own.
    """
    low, high = np.full(first.size, np.inf), np.full(first.size, -np.inf)
    fall = np.full(first.size, -np.inf)
    lows, highs, falls = values, values, np.zeros(values.size)
    at, length, size = first.copy(), last - first, 1
    while np.any(length):
        some = np.flatnonzero(length & size)
        where = at[some]
        fall[some] = np.maximum(np.maximum(fall[some], falls[where]), high[some] - lows[where])
        low[some] = np.minimum(low[some], lows[where])
        high[some] = np.maximum(high[some], highs[where])
        at[some] += size
        length = length & ~size
        if not np.any(length):
            break
        falls = np.maximum(np.maximum(falls[:-size], falls[size:]), highs[:-size] - lows[size:])
        lows, highs = np.minimum(lows[:-size], lows[size:]), np.maximum(highs[:-size], highs[size:])
        size *= 2
    return low, high, fall


def first_at_least(values: Numbers, first: Times, last: Times, least: Numbers) -> Times:
    """Return where in each stretch ``[first, last)`` a value is first ``least`` or more, else last.

    >>> values = np.array([1.0, 3.0, 2.0, 5.0])
    >>> stretch = np.array([0, 2]), np.array([4, 4])
    >>> first_at_least(values, *stretch, np.array([2.5, 6.0])).tolist()
    [1, 4]
    """
    highs = [values]
    longest = int((last - first).max(initial=0))
    while 2 << (len(highs) - 1) <= longest:
        size = 1 << (len(highs) - 1)
        highs.append(np.maximum(highs[-1][:-size], highs[-1][size:]))
    at = first.copy()
    for level in reversed(range(len(highs))):
        fits = np.flatnonzero(at + (1 << level) <= last)
        # a NaN for least is never reached
        skip = fits[~(highs[level][at[fits]] >= least[fits])]
        at[skip] += 1 << level
    return at
