"""Positions at some times: what was received by then, and what closing would add by prices known.

A path is a level after each settlement, and a holding the difference of two places on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter

import numpy as np
import polars as pl

from toolkit.errors import InputError
from toolkit.market import swapped
from toolkit.reasons import Reason
from toolkit.statistics.core.contract import Frame, checked_columns, collected
from toolkit.statistics.core.definition import holding
from toolkit.statistics.core.observations import checked_keys, observed
from toolkit.statistics.numeric.arrays import Flags, Floats, Integers

TIE_BPS = 1e-9
"""The tolerance of sums of floats that reach a bound."""


@dataclass(frozen=True)
class Path:
    """The level after each settlement, and whether prices are included.

    ``ts`` are the settlements of either leg, rising. ``level`` is the sum received since the
    beginning by a position always held, in units of ``scale``, with one more element first.
    ``mark`` is what closing at each settlement adds, NaN before a price is known, 0 if not
    ``priced``.
    """

    ts: Integers
    level: Floats
    mark: Floats
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
    then, ``funding_scale`` per unit of level.
    """

    ts: Integers
    place: Integers
    level: Floats
    worth: Floats
    scale: Floats
    funding_scale: Floats

    def __getitem__(self, which: Flags | slice) -> Moments:
        return Moments(*(column[which] for column in _columns(self)))


_columns = attrgetter(*(each.name for each in fields(Moments)))


@dataclass(frozen=True, slots=True)
class Holding:
    """The result of each entry, in bps of one leg's notional.

    ``breakeven_h`` is the hours to the first settlement by which the cost was earned, infinite if
    not within the horizon, NaN if the cost is unknown.
    """

    gross_bps: Floats
    funding_bps: Floats
    drawdown_bps: Floats
    breakeven_h: Floats


def covered(segments: list[tuple[Integers, Integers]], ts: Integers, horizon_s: int) -> Flags:
    """Mark the entries over whose whole horizon each leg is covered.

    ``segments`` has for each leg the beginnings and ends of its covered stretches, disjoint and
    rising, as ``ts`` is.
    """
    found = np.ones(ts.size, dtype=np.bool_)
    for begins, ends in segments:
        inside = np.zeros(ts.size, dtype=np.bool_)
        first, last = np.searchsorted(ts, begins), np.searchsorted(ts, ends - horizon_s, "right")
        for begin, end in zip(first.tolist(), last.tolist(), strict=True):
            inside[begin:end] = True
        found &= inside
    return found


def merged(begins: Floats, ends: Floats) -> tuple[Integers, Integers]:
    """Join stretches that touch or overlap, sorted by their beginning."""
    if not begins.size:
        return begins.astype(np.int64), ends.astype(np.int64)
    reach = np.maximum.accumulate(ends)
    new = np.append(True, begins[1:] > reach[:-1])
    last = np.append(np.flatnonzero(new)[1:] - 1, begins.size - 1)
    return np.ceil(begins[new]).astype(np.int64), np.floor(reach[last]).astype(np.int64)


def counted(times: Integers, ts: Integers) -> Integers:
    """Count the rising times at or before each of some equidistant ones."""
    every_s = ts[1] - ts[0] if ts.size > 1 else 1
    since = np.clip(-((ts[:1] - times) // every_s), 0, ts.size) if ts.size else 0 * times
    return np.repeat(np.arange(times.size + 1), np.diff(since, prepend=0, append=ts.size))


def sliced(which: Flags) -> Flags | slice:
    """Return marks as a slice, which copies nothing, if those marked are consecutive."""
    count, first = int(np.count_nonzero(which)), int(np.argmax(which)) if which.size else 0
    return slice(first, first + count) if which[first : first + count].all() else which


def gross_bps(opened: Moments, closed: Moments) -> Floats:
    """Compute the gross result of each entry, NaN if a price is unknown."""
    return opened.scale * (closed.worth - opened.worth)


def held(path: Path, opened: Moments, closed: Moments, gross: Floats, cost_bps: Floats) -> Holding:
    """Compute the result of each entry, from the moment it is opened to the one it is closed.

    ``gross`` is `gross_bps` without NaN. The drawdown is over the entry, the settlements and the
    exit, without the cost.
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
    """The extremes of any stretch of values, by two stretches of a power of two that overlap."""

    def __init__(self, values: Floats) -> None:
        self._width = values.size + 1
        # row 0 is of no values, row 1 of one each, row 2 of two, row 3 of four
        shape = (3, self._width.bit_length() + 1, self._width)
        self._lows, self._highs, self._falls = np.empty(shape)
        self._lows[0], self._highs[0], self._falls[0] = np.inf, -np.inf, -np.inf
        self._lows[1, :-1], self._highs[1, :-1], self._falls[1, :-1] = values, values, 0.0
        self._filled = 1

    def extremes(self, first: Integers, last: Integers) -> tuple[Floats, Floats, Floats]:
        """Return minimum, maximum and largest fall of each ``[first, last)``, infinite if empty."""
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

    def first_at_least(self, first: Integers, last: Integers, least: Floats) -> Integers:
        """Return the first place in each stretch ``[first, last)`` from ``least`` on, or last."""
        at = first.copy()
        rows, _ = self._longest_within(last - first)
        for row in range(int(rows.max(initial=0)), 0, -1):
            size = 1 << (row - 1)
            fits = np.flatnonzero(at + size <= last)
            # a NaN for least is never reached
            at[fits[~(self._highs[row].take(at[fits]) >= least[fits])]] += size
        return at

    def _places(self, row: Integers, begin: Integers, count: int | None) -> Integers | slice:
        at = row * self._width + begin
        return at if count is None else slice(int(at[0]), int(at[0]) + count)

    def _longest_within(self, length: Integers) -> tuple[Integers, Integers]:
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


FUNDING_ONLY = "funding_only_"
"""The prefix of columns without prices."""
HOW_TO_PRICE = "prices= takes rows of both legs' prices, funding_only=True leaves prices out"
STALE_STEPS = 3
"""The default number of steps for which a price holds once known."""

OPENS_WITHIN_S = 28_800
"""How long after a window's start a position may be opened if no price is known before (s)."""
BASIS = ("basis_bps", "basis_reason", "carry_bps", "carry_reason", "prices_lack")

_PREFIX = "funding/"
_SPREAD = "spread_log_bps"


@dataclass(frozen=True, slots=True)
class Marks:
    """The log spread of one pair, 1e4 ln(sell / buy): when known (s, rising), and for how long."""

    known_at: Integers
    spread_log_bps: Floats
    max_stale_s: int

    def at(self, ts: Integers) -> Floats:
        """Return the value last known at each time, NaN if too old."""
        if not self.known_at.size:
            return np.full(ts.size, np.nan)
        row = np.searchsorted(self.known_at, ts, side="right") - 1
        fresh = (row >= 0) & (ts - self.known_at[np.maximum(row, 0)] <= self.max_stale_s)
        return np.where(fresh, self.spread_log_bps[np.maximum(row, 0)], np.nan)

    def last(self, ts: Integers) -> Floats:
        """Return the value last known at each time, however old, NaN before the first."""
        row = np.searchsorted(self.known_at, ts, side="right")
        return np.append(np.nan, self.spread_log_bps)[row]

    def opening(self, start: int, before: int | None) -> float:
        """Return the log spread at which a position is opened at ``start``, NaN without one.

        It is the last known then, else the first known within 8 h and before the first settlement,
        ``before``, so that the same settlements are received.
        """
        known = float(self.at(np.array([start]))[0])
        at = int(np.searchsorted(self.known_at, start))
        if np.isnan(known) and at < self.known_at.size:
            soon = int(self.known_at[at])
            if soon <= start + OPENS_WITHIN_S and (before is None or soon < before):
                return float(self.spread_log_bps[at])
        return known

    @property
    def turned(self) -> Marks:
        """The marks of the reverse pair."""
        return replace(self, spread_log_bps=-self.spread_log_bps)


NONE_KNOWN = Marks(np.empty(0, np.int64), np.empty(0), 0)


@dataclass(frozen=True, slots=True)
class PairPrices:
    """The marks of pairs, by key without ``funding/``, and what ``loads`` missing ones."""

    marks: Mapping[object, Marks]
    loads: Mapping[object, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        prices: Frame | PairPrices | None,
        *,
        funding_only: bool,
        step_s: int | None = None,
        max_stale_s: int | None = None,
    ) -> PairPrices | None:
        """Read the prices given to a statistic, None if it leaves prices out.

        A frame has trajectory, ts and either ``buy_price`` and ``sell_price`` or
        ``spread_log_bps``. Raises `InputError` for another one, and for prices with
        ``funding_only``.
        """
        if not isinstance(funding_only, bool):
            raise InputError("funding_only", funding_only, "True or False")
        if funding_only:
            if prices is not None:
                raise InputError("prices", prices, "None where funding_only leaves prices out")
            return None
        if isinstance(prices, PairPrices):
            return prices if max_stale_s is None else prices.held_for(max_stale_s)
        return cls({} if prices is None else _marks_of(prices, step_s, max_stale_s))

    def __getitem__(self, key: object) -> Marks:
        key = plain(key)
        if key not in self.marks and isinstance(key, str) and swapped(key) in self.marks:
            return self.marks[swapped(key)].turned
        return self.marks.get(key, NONE_KNOWN)

    def lacking(self, key: object) -> str:
        """Return how to load a pair's missing prices."""
        return self.loads.get(plain(key), HOW_TO_PRICE)

    def held_for(self, max_stale_s: int) -> PairPrices:
        """Return the same prices with another ``max_stale_s``."""
        marks = {key: replace(each, max_stale_s=max_stale_s) for key, each in self.marks.items()}
        return replace(self, marks=marks)


def _marks_of(prices: Frame, step_s: int | None, max_stale_s: int | None) -> dict[object, Marks]:
    frame = holding(prices, _SPREAD)
    checked_columns(frame, _SPREAD)
    rows = collected(frame.lazy().select("trajectory", "ts", _SPREAD))
    checked_keys(rows)
    found = {}
    parts = rows.sort("trajectory", "ts").partition_by("trajectory", as_dict=True)
    for (key,), part in parts.items():
        modes = part["ts"].diff().drop_nulls().mode()
        step = step_s or (int(modes.min()) if modes.len() else 1)  # type: ignore[arg-type]  # whole
        found[plain(key)] = marks_of(part, step, max_stale_s)
    return found


def marks_of(rows: pl.DataFrame, step_s: int, max_stale_s: int | None = None) -> Marks:
    """Return the marks of one pair, from rows with ts and ``spread_log_bps``, sorted by ts."""
    known = rows.filter(observed(_SPREAD).is_not_null())
    stale_s = STALE_STEPS * step_s if max_stale_s is None else max_stale_s
    return Marks(known["ts"].to_numpy() + step_s, known[_SPREAD].to_numpy(), stale_s)


def plain(key: object) -> object:
    """Return the key without the prefix of funding."""
    return key.removeprefix(_PREFIX) if isinstance(key, str) else key


def with_basis(figures: pl.DataFrame, prices: PairPrices) -> pl.DataFrame:
    """Add the basis from ``window_start`` to ``window_end``, and the carry: the columns `BASIS`.

    ``figures`` has trajectory, t_first (s, the first settlement), funding_bps with its reason,
    window_start and window_end (s), in any order. See `toolkit.statistics.funding.summary`.
    """
    basis = np.full(figures.height, np.nan)
    lacks = []
    opening = ("trajectory", "window_start", "t_first")
    numbered = figures.select(*opening, "window_end").with_row_index()
    for (key, start, first), part in numbered.group_by(opening, maintain_order=True):
        marks, loads = prices[key], prices.lacking(key)
        at_end = marks.at(part["window_end"].to_numpy())
        opened = marks.opening(int(start), None if first is None else int(first))
        basis[part["index"].to_numpy()] = opened - at_end
        lacks.append(part.select("index", prices_lack=pl.lit(loads)))
    named = (
        pl.concat(lacks).sort("index")["prices_lack"] if lacks else pl.Series([], dtype=pl.String)
    )
    unknown = pl.col("basis_bps").is_null()
    missing = pl.when(unknown).then(pl.lit(Reason.MISSING_PRICE.value))
    return figures.with_columns(
        pl.Series("basis_bps", basis).fill_nan(None), named.alias("prices_lack")
    ).with_columns(
        missing.alias("basis_reason"),
        (pl.col("funding_bps") + pl.col("basis_bps")).alias("carry_bps"),
        pl.coalesce("funding_reason", missing).alias("carry_reason"),
        pl.when(unknown).then("prices_lack").alias("prices_lack"),
    )


@dataclass(frozen=True, slots=True)
class FundedPosition:
    """One trajectory's settlements: ``ts`` rising, and each leg's rate then, 0 without one."""

    ts: Integers
    buy_rate: Floats
    sell_rate: Floats
    marks: Marks | None
    compound: bool

    @property
    def basis(self) -> str:
        """The notional that rates are paid on."""
        return "compound" if self.compound else "constant"

    def path(self) -> Path:
        """Return the path of the position."""
        paid = self.sell_rate - self.buy_rate
        mark = self._mark(None if self.marks is None else self.marks.last(self.ts), self.ts)
        if self.compound:
            level = np.append(1.0, np.cumprod(np.maximum(1 + paid, 0.0)))
            return Path(self.ts, level, level[1:] * mark, self.marks is not None)
        level = np.append(0.0, np.cumsum(paid))
        return Path(self.ts, level, mark, self.marks is not None)

    def moments(self, ts: Integers, path: Path) -> Moments:
        """Return the path's places at equidistant times, and the value of a unit then."""
        place = counted(path.ts, ts)
        mark = self._mark(None if self.marks is None else self.marks.at(ts), ts)
        level = path.level[place]
        scale = funding_scale = np.full(ts.size, 1e4)
        if self.compound:
            # nothing is opened with nothing
            funding_scale = 1e4 / np.where(level > 0, level, np.nan)
            scale, mark = 1e4 / (np.where(level > 0, level, np.nan) * (1 + mark)), level * mark
        return Moments(ts, place, level, level + mark, scale, funding_scale)

    def _mark(self, spread_log_bps: Floats | None, ts: Integers) -> Floats:
        """Return what prices add to a level of 1, or with compounding per one."""
        if spread_log_bps is None:
            return np.zeros(ts.size)
        fall = -spread_log_bps / 1e4
        return np.expm1(fall) if self.compound else fall


Prices = Frame | PairPrices
