"""The protocol of what is served: legs, each with bars and maybe settlements, by a clock.

A series is read by time: `Bars` and `SettledRates` are their own series. The rows of a trajectory
are computed for a stretch of time from its legs' `series`. The clocks alone read the time in
`toolkit.service`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from enum import Enum, auto
from typing import Literal, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from toolkit.market import Family, Leg, Market, Trajectory

Kind = Literal["live", "simulated", "replay"]
RowKind = Literal["bars", "funding"]

BLOCK_ROWS = 16_384
"""Rows of a series in memory that are best read at once."""

LONGEST_INTERVAL_HOURS = 24
"""No leg settles less often."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldRows:
    """Rows in memory by ``ts`` (s, Unix UTC), ascending, none twice."""

    ts: NDArray[np.int64]

    @property
    def span(self) -> tuple[int, int]:
        """``[start, end)`` of all ``ts`` (s), ``(0, 0)`` without rows."""
        return (int(self.ts[0]), int(self.ts[-1]) + 1) if len(self.ts) else (0, 0)

    @property
    def block_s(self) -> int:
        """The time that about `BLOCK_ROWS` rows take (s)."""
        start, end = self.span
        return -(-(end - start) * BLOCK_ROWS // max(len(self.ts), 1)) or 1

    def rows(self, start: int, end: int) -> slice:
        """Return where the rows with ``start <= ts < end`` are."""
        first, last = np.searchsorted(self.ts, (start, end))
        return slice(int(first), int(last))


@dataclass(frozen=True, slots=True, eq=False)
class Bars(HeldRows):
    """One leg's bars of one symbol.

    ``ts``: start of each bar. ``price``: at the bar's end (quote), finite and above 0.
    ``interval_s``: length of every bar (s), 0 where rows are moments; a bar is over at ``ts +
    interval_s``. ``mark_price`` (quote) and ``volume`` (quote per bar): None without any.

    >>> bars = Bars(ts=np.array([0, 60]), price=np.array([1.5, 1.25]), interval_s=60)
    >>> bars.span, bars.between(60, 120).price.tolist()
    ((0, 61), [1.25])
    """

    price: NDArray[np.float64]
    interval_s: int
    mark_price: NDArray[np.float64] | None = None
    volume: NDArray[np.float64] | None = None

    def between(self, start: int, end: int) -> Bars:
        """Return the bars with ``start <= ts < end``."""
        rows = self.rows(start, end)
        mark_price = None if self.mark_price is None else self.mark_price[rows]
        volume = None if self.volume is None else self.volume[rows]
        return Bars(self.ts[rows], self.price[rows], self.interval_s, mark_price, volume)

    def parts(self, ts: int) -> Bars:
        """Return the bar that starts at ``ts``, if any: no shorter bars are known."""
        return self.between(ts, ts + 1)


@dataclass(frozen=True, slots=True, eq=False)
class SettledRates(HeldRows):
    """One leg's funding.

    ``ts``: each settlement. ``rate``: fraction per interval, positive where longs pay shorts.
    ``interval_hours``: length of the interval that ends at ``ts`` (h, 1 to 24).
    """

    rate: NDArray[np.float64]
    interval_hours: NDArray[np.int64]

    def between(self, start: int, end: int) -> SettledRates:
        """Return the settlements with ``start <= ts < end``."""
        rows = self.rows(start, end)
        return SettledRates(self.ts[rows], self.rate[rows], self.interval_hours[rows])

    def next_after(self, ts: int) -> int | None:
        """Return when the leg settles next after ``ts`` (s), by the interval known then.

        None before its first settlement. Later settlements are ignored.

        >>> found = SettledRates(np.array([3600, 7200]), np.array([0.0, 0.0]), np.array([1, 8]))
        >>> found.next_after(3599), found.next_after(3600), found.next_after(7200)
        (None, 7200, 36000)
        """
        last = int(np.searchsorted(self.ts, ts, side="right")) - 1
        if last < 0:
            return None
        settled, step_s = int(self.ts[last]), 3_600 * int(self.interval_hours[last])
        return settled + ((ts - settled) // step_s + 1) * step_s


class TimedSeries(Protocol):
    """Rows of one leg, by time."""

    @property
    def span(self) -> tuple[int, int]:
        """``[start, end)`` that contains every present row's ``ts`` (s)."""

    @property
    def block_s(self) -> int:
        """The length of a stretch that is best read at once (s)."""


class BarSeries(TimedSeries, Protocol):
    """The bars of one leg, by time."""

    @property
    def interval_s(self) -> int:
        """Length of every bar (s), 0 where rows are moments."""

    def between(self, start: int, end: int) -> Bars:
        """Return the bars with ``start <= ts < end``, by ``ts``."""

    def parts(self, ts: int) -> Bars:
        """Return the shortest known bars that make up the bar at ``ts``, perhaps itself."""


class SettlementSeries(TimedSeries, Protocol):
    """The settlements of one leg, by time."""

    def between(self, start: int, end: int) -> SettledRates:
        """Return the settlements with ``start <= ts < end``, by ``ts``."""

    def next_after(self, ts: int) -> int | None:
        """Return the next settlement after ``ts`` (s), None if it is not known at ``ts``."""


class Pump(NamedTuple):
    """A recorded pump: its time (s, Unix UTC), symbol and leg."""

    ts: int
    symbol: str
    leg: Leg


@runtime_checkable
class RecordsPumps(Protocol):
    """A source that may have recorded pumps, in place of those detected in its bars."""

    def pumps(self, start: int, end: int) -> Sequence[Pump] | None:
        """Return those with ``start <= ts < end``, by time, None if none at all are recorded."""


class LostRows(NamedTuple):
    """A stretch ``[start, end)`` (s, Unix UTC) by ``ts`` of a leg's rows that nobody could read."""

    start: int
    end: int
    why: str


class MarketSource(Protocol):
    """A source of rows. Time reveals them, up to ``known_until``; later ones are never shown.

    The rows of ``heard`` before ``known_until`` never change. Events are detected in them. In the
    source itself, ``lost`` rows may come late and legs may be added with their history; then
    ``revision`` changes. No row is changed or taken back. ``kind`` and ``id`` go to ``/schemas``,
    as do the names of ``exchanges`` if a source has that attribute.

    >>> from toolkit.service import Simulated
    >>> source: MarketSource = Simulated(7)
    >>> source.kind, len(source.listing)
    ('simulated', 15)
    """

    def __hash__(self) -> int:
        """Return the same for equal sources: what is computed from one serves the other."""

    @property
    def kind(self) -> Kind:
        """What kind of source this is."""

    @property
    def id(self) -> str:
        """Its name, the same wherever the same data are served."""

    @property
    def listing(self) -> Mapping[str, tuple[Leg, ...]]:
        """Each symbol's legs, both in sorted order."""

    @property
    def known_until(self) -> int | None:
        """The end of what is known (s, Unix UTC), None if all is. It never goes back.

        Each bar that is over by then, and each settlement up to and including then, is there or is
        lost. No bar that has `BarSeries.parts` lies across it.
        """

    @property
    def begins(self) -> int | None:
        """The start of what is known (s, Unix UTC), None if nothing is older than its rows."""

    @property
    def revision(self) -> int:
        """A number that changes whenever anything before ``known_until`` does."""

    @property
    def heard(self) -> MarketSource:
        """The source as detectors see it: without rows that came late or before their leg."""

    def lost(
        self, symbol: str, leg: Leg, start: int, end: int, kind: RowKind, /
    ) -> Sequence[LostRows]:
        """Return the lost stretches of a leg's rows of a kind that touch ``[start, end)``."""

    def bars(self, symbol: str, leg: Leg) -> BarSeries:
        """Return the bars of a listed leg, or raise `KeyError` for one that is not listed."""

    def funding(self, symbol: str, leg: Leg) -> SettlementSeries | None:
        """Return the settlements of a listed futures leg, None if none are known."""


class Whole:
    """Base of a source of which all is known from the start."""

    known_until: int | None = None
    begins: int | None = None
    revision: int = 0

    @property
    def heard(self) -> Self:
        """Itself."""
        return self

    def lost(self, *_asked: object) -> Sequence[LostRows]:
        """Return nothing: no row was lost."""
        return ()


def before_all(source: MarketSource, start: int, end: int) -> list[LostRows]:
    """Return the part of ``[start, end)`` (s) before all that a source knows."""
    begins = source.begins
    if begins is None or start >= min(begins, end):
        return []
    return [LostRows(start, min(begins, end), "before the service's archive begins")]


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock, or one stopped at ``fixed_at`` (Unix seconds, UTC).

    >>> Clock(fixed_at=1677628800).now()
    1677628800
    """

    fixed_at: int | None = None

    def now(self) -> int:
        """Return Unix seconds, UTC, rounded down."""
        return int(time.time()) if self.fixed_at is None else self.fixed_at

    def http_date(self) -> str:
        """Return the same moment as an HTTP date (RFC 9110 section 5.6.7).

        >>> Clock(fixed_at=1677628800).http_date()
        'Wed, 01 Mar 2023 00:00:00 GMT'
        """
        return formatdate(self.now(), usegmt=True)


@dataclass(frozen=True, slots=True)
class SpedClock(Clock):
    """A clock that reads ``start`` (s) when it is made, and runs ``speed`` times as fast as time.

    >>> 1677628800 <= SpedClock(start=1677628800, speed=60.0).now() < 1677628860
    True
    """

    start: int = 0
    speed: float = 1.0
    began: float = field(default_factory=time.monotonic, repr=False)

    def now(self) -> int:
        """Return Unix seconds, UTC, rounded down."""
        return int(self.start + (time.monotonic() - self.began) * self.speed)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevealedClock(Clock):
    """A clock that does not go past what its source knows."""

    own: Clock
    source: MarketSource = field(repr=False)

    def now(self) -> int:
        """Return Unix seconds, UTC, at most the source's ``known_until``."""
        known_until, now = self.source.known_until, self.own.now()
        return now if known_until is None else min(now, known_until)


WALL_CLOCK = Clock()
"""The machine's own time."""


RATE_VALID_INTERVALS = 2
"""A settled rate is in force for so many of its intervals, unless the leg settles again before."""

RATE_LOOK_BACK_S = RATE_VALID_INTERVALS * LONGEST_INTERVAL_HOURS * 3_600
"""No older settlement is in force (s)."""

Column = NDArray[np.float64] | pl.Series | None
"""Values by row, None where they are null in every row."""


@dataclass(frozen=True, slots=True, eq=False)
class SeriesRows:
    """Rows by time: ``ts`` (s), and a record's other fields in its order. NaN and null are null."""

    ts: NDArray[np.int64]
    columns: Mapping[str, Column]


@dataclass(frozen=True, slots=True)
class ServedSeries:
    """A trajectory: its span, the length of a row (s), and its rows between two moments.

    A row may be seen at ``ts + interval_s``. ``block_s`` is the best length to read at once.
    """

    span: tuple[int, int]
    interval_s: int
    block_s: int
    between: Callable[[int, int], SeriesRows]


def series(source: MarketSource, trajectory: Trajectory) -> ServedSeries:
    """Return the series of a trajectory of listed legs.

    Price: a row per bar. Spread: a row where both legs have a bar (the caller checks that they have
    one length), ``spread_pct`` is 100 (sell / buy - 1). Funding: a row per settlement of either
    leg, with the rates settled then, the intervals of the rates in force (see `in_force`) and the
    differential of those.
    """
    if trajectory.family is Family.FUNDING:
        return _funding(source, trajectory)
    symbol = str(trajectory.symbol)
    legs = [source.bars(symbol, leg) for leg in trajectory.legs]

    def between(start: int, end: int) -> SeriesRows:
        bars = [leg.between(start, end) for leg in legs]
        if len(bars) == 2:
            return _spread(*bars)
        one = bars[0]
        columns = {"price": one.price, "mark_price": one.mark_price, "volume": one.volume}
        return SeriesRows(one.ts, columns)

    starts, ends = zip(*(leg.span for leg in legs), strict=True)
    block_s = min(leg.block_s for leg in legs)
    return ServedSeries((max(starts), min(ends)), legs[0].interval_s, block_s, between)


def _spread(buy: Bars, sell: Bars) -> SeriesRows:
    ts, of_buy, of_sell = np.intersect1d(buy.ts, sell.ts, assume_unique=True, return_indices=True)
    buy_price, sell_price = buy.price[of_buy], sell.price[of_sell]
    spread_pct = 100.0 * (sell_price / buy_price - 1.0)
    return SeriesRows(
        ts, {"buy_price": buy_price, "sell_price": sell_price, "spread_pct": spread_pct}
    )


def _funding(source: MarketSource, trajectory: Trajectory) -> ServedSeries:
    symbol = str(trajectory.symbol)
    legs = [
        (source.funding(symbol, leg) or Unfunded.UNKNOWN)
        if leg.market is Market.FUTURES
        else Unfunded.NEVER
        for leg in trajectory.legs
    ]
    known = [leg for leg in legs if not isinstance(leg, Unfunded)]

    def between(start: int, end: int) -> SeriesRows:
        stretches = [
            leg if isinstance(leg, Unfunded) else leg.between(start - RATE_LOOK_BACK_S, end)
            for leg in legs
        ]
        settled = [each.ts for each in stretches if isinstance(each, SettledRates)]
        ts = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *settled]))
        ts = ts[np.searchsorted(ts, start) :]
        buy, sell = (in_force(each, ts) for each in stretches)
        return SeriesRows(
            ts,
            {
                "buy_rate": buy.settled_rate,
                "sell_rate": sell.settled_rate,
                "buy_interval_hours": _whole(buy.interval_hours),
                "sell_interval_hours": _whole(sell.interval_hours),
                "differential_pct_8h": 100.0 * (sell.per_8h - buy.per_8h),
            },
        )

    starts, ends = zip(*(leg.span for leg in known), strict=True) if known else ((0,), (0,))
    block_s = min((leg.block_s for leg in known), default=1)
    return ServedSeries((min(starts), max(ends)), 0, block_s, between)


class Unfunded(Enum):
    """Why a leg has no settlements: it never settles, or none are known."""

    NEVER = auto()
    UNKNOWN = auto()


class InForce(NamedTuple):
    """A leg's funding at some moments, NaN where there is none.

    ``settled_rate``: settled at that moment (fraction per interval). ``interval_hours`` (h) and
    ``per_8h`` (fraction per 8 h) are those of the rate in force.
    """

    settled_rate: NDArray[np.float64]
    interval_hours: NDArray[np.float64]
    per_8h: NDArray[np.float64]


def in_force(leg: SettledRates | Unfunded, ts: NDArray[np.int64]) -> InForce:
    """Return a leg's funding at each moment. No later settlement changes it.

    The rate in force is the one settled last, at ``ts`` or before, unless it is older than twice
    its interval. A leg that never settles has a rate of 0.
    """
    nothing = np.full(len(ts), np.nan)
    if leg is Unfunded.NEVER:
        return InForce(np.zeros(len(ts)), nothing, np.zeros(len(ts)))
    if isinstance(leg, Unfunded) or not len(leg.ts):
        return InForce(nothing, nothing, nothing)
    last = np.searchsorted(leg.ts, ts, side="right") - 1
    age_s = np.where(last >= 0, ts - leg.ts[last], np.iinfo(np.int64).max)
    hours, rate = leg.interval_hours[last], leg.rate[last]
    valid = age_s <= RATE_VALID_INTERVALS * 3_600 * hours
    return InForce(
        np.where(age_s == 0, rate, np.nan),
        np.where(valid, hours, np.nan),
        np.where(valid, rate * 8.0 / hours, np.nan),
    )


def _whole(hours: NDArray[np.float64]) -> pl.Series:
    return pl.Series(hours).fill_nan(None).cast(pl.Int64)
