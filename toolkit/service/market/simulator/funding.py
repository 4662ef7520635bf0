"""Funding: when a futures leg settles, and at which rate.

A premium p (fraction per 8 h) of a leg is a mean, plus a part that its asset's legs share with a
half-life of 14 days, plus two of its own (6 days, 4 hours), plus dislocations. A discount beyond 4
bps counts for a third, but for dislocations. A clamped leg settles, per 8 h, at p + clip(b - p,
-0.0005, 0.0005) with the baseline b = 0.0001, which is b itself where p is near it, any other at b
+ 0.3 p. Rates are capped at 0.00375 per 8 h either way, brought to the leg's interval in
proportion, and rounded to 8 decimals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from toolkit.errors import InputError
from toolkit.service.market.simulator.catalogue import Funding, Listing
from toolkit.service.market.simulator.processes import Floats, Reverting
from toolkit.service.market.simulator.pulses import Pulse, Slots, planted_bps
from toolkit.service.market.simulator.streams import RandomStream
from toolkit.service.market.simulator.timeline import DAY_S, HOUR_S, day_of
from toolkit.service.market.source import SettledRates

CAP = 0.003_75
"""The largest rate either way (fraction per 8 h)."""

CYCLE_DAYS = 20
"""A changing interval repeats after so many days."""

_STAGES = ((9, 8), (15, 4), (CYCLE_DAYS, 1))  # up to which day of a cycle, which interval (h)
_BASELINE, _CLAMP = 0.000_1, 0.000_5
_UNCLAMPED = 0.3  # of the premium reaches the rate of a leg that clamps nothing
_MEAN, _SD = 0.000_03, 0.000_7
_DISCOUNT, _BEYOND = -0.000_4, 0.35  # beyond it, so much of a discount counts
_SHARED = (0.75, 14 * DAY_S)  # share of the variance, half-life
_OWN = {"slow": (0.12, 6 * DAY_S), "fast": (0.13, 4 * HOUR_S)}


class FundingCalendar:
    """When a leg settles.

    >>> calendar = FundingCalendar(Funding(8, first_hour=4), RandomStream(7, "x"))
    >>> ts, hours = calendar.between(1_800_057_600, 1_800_144_000)  # a day
    >>> (ts % 86_400 // 3600).tolist(), hours.tolist()
    ([4, 12, 20], [8, 8, 8])
    """

    def __init__(self, funding: Funding, stream: RandomStream) -> None:
        self._funding = funding
        self._phase_days = int(stream.under("cycle").at(0).integers(CYCLE_DAYS))

    def between(self, start: int, end: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the settlements in ``[start, end)``: times (s) and the intervals they end (h)."""
        hours = np.arange(-(-start // HOUR_S), -(-end // HOUR_S), dtype=np.int64)
        interval = self.interval_hours(hours * HOUR_S - 1)
        due = (hours - self._funding.first_hour) % interval == 0
        return hours[due] * HOUR_S, interval[due]

    def interval_hours(self, ts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the interval in force at each moment (h)."""
        if not self._funding.changing:
            return np.full(len(ts), self._funding.interval_hours, dtype=np.int64)
        day = (ts // DAY_S + self._phase_days) % CYCLE_DAYS
        untils, intervals = zip(*_STAGES, strict=True)
        stage = np.searchsorted(untils, day, side="right")
        return np.array(intervals, dtype=np.int64)[stage]


class LegFunding:
    """A futures leg's settlements."""

    def __init__(
        self, seed: int, symbol: str, listing: Listing, dislocations: Slots[Pulse]
    ) -> None:
        if listing.funding is None:
            raise InputError("leg", str(listing.leg), "a futures leg: only those settle funding")
        stream = RandomStream(seed, "funding")
        own = stream.under(f"{symbol}:{listing.leg}")
        self._funding = listing.funding
        self.calendar = FundingCalendar(listing.funding, own)
        self._dislocations = dislocations
        streams = [(stream.under(listing.instrument.asset.name), *_SHARED)]
        streams += [(own.under(name), *law) for name, law in _OWN.items()]
        self._parts = [
            (share**0.5, Reverting(part, half_life_s=half_life_s, step_s=HOUR_S))
            for part, share, half_life_s in streams
        ]

    def settlements(self, start: int, end: int) -> SettledRates:
        """Return the settlements in ``[start, end)``, by time."""
        ts, interval = self.calendar.between(start, end)
        premium = self._premium(ts)
        pull = np.clip(_BASELINE - premium, -_CLAMP, _CLAMP)
        per_8h = premium + pull if self._funding.clamped else _BASELINE + _UNCLAMPED * premium
        rate = np.round(np.clip(per_8h, -CAP, CAP) * interval / 8, 8)
        return SettledRates(ts, rate, interval)

    def next_settlement(self, ts: int) -> int:
        """Return the first settlement after ``ts``."""
        return int(self.calendar.between(ts + 1, ts + 1 + DAY_S)[0][0])

    def _premium(self, ts: NDArray[np.int64]) -> Floats:
        """Return the premium at whole hours (fraction per 8 h)."""
        if not len(ts):
            return np.empty(0)
        days = range(day_of(int(ts[0])), day_of(int(ts[-1])) + 1)
        hours = (ts - days.start * DAY_S) // HOUR_S
        usual = np.full(len(ts), _MEAN)
        for scale, part in self._parts:
            usual += _SD * scale * np.concatenate([part.day(day)[:-1] for day in days])[hours]
        usual += (_BEYOND - 1.0) * np.minimum(usual - _DISCOUNT, 0.0)
        return usual + planted_bps([self._dislocations], ts) / 1e4
